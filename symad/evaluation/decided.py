"""Selections, maxima and conditions that the ranges of their arguments decide.

max(2⁻⁵², p) is p where 0.1 < p, and a branch that is never taken is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import sympy

from symad.core.graph import Graph, Node, op_of, rebuild
from symad.core.questions import Nodes
from symad.evaluation.intervals import Interval
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import Constant
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.selection import Select

Known: TypeAlias = "Mapping[Node, Any]"
"""The intervals of nodes, and the truth of conditions; arrays of both where each element has its own."""


def decided(graph: Graph, known: Known, rule: Callable[[Node, Nodes, Known], Node | None]) -> Graph:
    """The graph with a rule applied to its nodes, as `taken`; the same graph where that changes none.

    The rule gets a node of this graph, its new arguments, and the ranges of this graph's nodes.
    """

    def simple(node: Node, args: Nodes) -> Node:
        made = rule(node, args, known)
        if made is not None:
            return broadcast_to(made, node.shape)
        return node.over(args)

    outputs = tuple(rebuild(graph.output_nodes, {n: n for n in graph.input_nodes}, simple))
    return graph if outputs == tuple(graph.output_nodes) else graph.with_outputs(outputs, graph.structure)


def taken(node: Node, args: Nodes, known: Known) -> Node | None:
    """The branch of a selection that is always taken, and an extreme without what it never is."""
    if isinstance(node.op, Select):
        truth = truth_of(known[node.args[0]])
        return None if truth is None else args[1 if truth else 2]
    if isinstance(node.op, Apply) and node.op.head in (sympy.Max, sympy.Min):
        rest = [args[k] for k in _reached(node, known)]
        if len(rest) < len(args):
            return rest[0] if len(rest) == 1 else apply(node.op.head, *rest)
    return None


def can_be_decided(node: Node) -> bool:
    """Whether `taken` may have an answer."""
    return isinstance(node.op, Select) or (
        isinstance(node.op, Apply) and node.op.head in (sympy.Max, sympy.Min)
    )


def truth_of(values: Any) -> bool | None:
    """True if a condition holds everywhere, False if it holds nowhere, None if neither is known."""
    every = np.asarray(values, dtype=object).ravel()
    if not all(isinstance(v, (bool, np.bool_)) for v in every) or len({bool(v) for v in every}) != 1:
        return None
    return bool(every[0])


def _reached(node: Node, known: Known) -> list[int]:
    """The arguments of a maximum or minimum without the constants that never are its value."""
    largest = op_of(node, Apply).head is sympy.Max
    others = [k for k, arg in enumerate(node.args) if not isinstance(arg.op, Constant)]
    kept = []
    for k, arg in enumerate(node.args):
        if k in others or not any(_beyond(known[node.args[m]], known[arg], largest) for m in others):
            kept.append(k)
    return kept


def _beyond(values: Any, bound: Any, above: bool) -> bool:
    """True if all values exist and are at least (or at most) a constant."""
    every = np.asarray(values, dtype=object).ravel()
    if not isinstance(bound, Interval):
        return False
    return all(
        isinstance(v, Interval) and v.sure and bool(v.low >= bound.high if above else v.high <= bound.low)
        for v in every
    )
