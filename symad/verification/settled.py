"""Removes clips and branches that the domain of a claim decides: max(2⁻⁵², p) is p where 0.1 < p.

The domain bounds the inputs, and interval arithmetic bounds every value. A clip whose bound is never reached,
or a branch that is never taken, is removed, unless the alternative may be undefined.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import sympy

from symad.core.arrays import Array
from symad.core.graph import Graph, Node, op_of, rebuild, topological
from symad.core.signatures import Where
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import Constant
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.selection import Select
from symad.verification.claimed_domain import read_condition
from symad.verification.terms.rounded_constants import with_simple_constants
from symad.verification.values.boxes import Box, box_within
from symad.verification.values.intervals import Interval
from symad.verification.values.ranges import promised, ranges

if TYPE_CHECKING:
    from symad.verification.values.intervals import OpenTruth

REASON = "clips and branches that the domain rules out were left out, by intervals and not by the checker"


def box_of(graph: Graph, where: Where) -> Box:
    """The bounds of inputs that assumptions on symbols and the domain of a claim imply.

    Args:
        graph: a graph with these inputs.
        where: a condition on them, as `verify` takes it; None for none.
    """
    read = None if where is None else read_condition(graph, where)
    return promised(graph.input_nodes) if read is None else box_within(read, graph.input_nodes)


def settled(graph: Graph, box: Box) -> Graph:
    """The graph without the clips and branches that the box rules out; the same graph if there are none."""
    if not box or not any(map(_can_settle, topological(graph.output_nodes))):
        return graph
    known = ranges(graph.output_nodes, box)
    if not known:
        return graph

    def simple(node: Node, args: tuple[Node, ...]) -> Node:
        if isinstance(node.op, Select):
            truth = _truth(known[node.args[0]])
            if truth is not None:
                return broadcast_to(args[1] if truth else args[2], node.shape)
        if isinstance(node.op, Apply) and node.op.head in (sympy.Max, sympy.Min):
            kept = _reached(node, known)
            if len(kept) < len(args):
                rest = [args[k] for k in kept]
                return broadcast_to(rest[0] if len(rest) == 1 else apply(node.op.head, *rest), node.shape)
        return node if args == node.args else Node.of(node.op, args)

    outputs = rebuild(graph.output_nodes, {}, simple)
    return graph if outputs == graph.output_nodes else graph.with_outputs(outputs, graph.structure)


def _truth(values: OpenTruth | bool) -> bool | None:
    """True if a condition holds everywhere, False if it holds nowhere, None if neither is known."""
    every = np.asarray(values, dtype=object).ravel()
    if not all(isinstance(v, (bool, np.bool_)) for v in every) or len({bool(v) for v in every}) != 1:
        return None
    return bool(every[0])


def within(graph: Graph, box: Box, constants: str) -> Graph:
    """The graph without what a box rules out; floats are read as simple numbers before, if so requested."""
    return settled(with_simple_constants(graph)[0] if constants == "rounded" else graph, box)


def _can_settle(node: Node) -> bool:
    return isinstance(node.op, Select) or (
        isinstance(node.op, Apply) and node.op.head in (sympy.Max, sympy.Min)
    )


def _reached(node: Node, known: Mapping[Node, Interval]) -> list[int]:
    """The arguments of a maximum or minimum without the constants that never are its value."""
    largest = op_of(node, Apply).head is sympy.Max
    others = [k for k, arg in enumerate(node.args) if not isinstance(arg.op, Constant)]
    kept = []
    for k, arg in enumerate(node.args):
        if k in others or not any(_beyond(known[node.args[m]], known[arg], largest) for m in others):
            kept.append(k)
    return kept


def _beyond(values: Array | Interval, bound: Array | Interval, above: bool) -> bool:
    """True if all values exist and are at least (or at most) a constant."""
    every = np.asarray(values, dtype=object).ravel()
    if not isinstance(bound, Interval):
        return False
    return all(
        isinstance(v, Interval) and v.sure and bool(v.low >= bound.high if above else v.high <= bound.low)
        for v in every
    )
