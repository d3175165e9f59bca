"""Removes clips and branches that the domain of a claim decides: max(2⁻⁵², p) is p where 0.1 < p.

The domain bounds the inputs, and interval arithmetic bounds every value. A clip whose bound is never reached,
or a branch that is never taken, is removed, unless the alternative may be undefined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import sympy

from symad.core.arrays import Array
from symad.core.graph import Graph, Node, op_of, rebuild, topological
from symad.core.signatures import Where
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import Constant, Input, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.selection import Compare, Logic, Select
from symad.verification.certificate.certificate import Certificate
from symad.verification.claimed_domain import read_condition
from symad.verification.terms.rounded_constants import with_simple_constants
from symad.verification.values.intervals import Interval, above, below, both
from symad.verification.values.ranges import promised, ranges

if TYPE_CHECKING:
    from symad.verification.values.intervals import OpenTruth

Box = Mapping[Node, Interval]
"""The bounds of inputs, the same for all elements of an input."""

REASON = "clips and branches that the domain rules out were left out, by intervals and not by the checker"


def box_of(graph: Graph, where: Where) -> Box:
    """The bounds of inputs that assumptions on symbols and the domain of a claim imply.

    Args:
        graph: a graph with these inputs.
        where: a condition on them, as `verify` takes it; None for none.
    """
    found = promised(graph.input_nodes)
    read = None if where is None else read_condition(graph, where)
    waiting = [] if read is None or not read.args else [read.args[0]]
    while waiting:
        node = waiting.pop()
        if isinstance(node.op, Logic) and node.op.kind == "and":
            waiting.extend(node.args)
        elif isinstance(node.op, Compare) and node.op.relation in ("<", "<="):
            _bound(node, found)
    return found


def bounds_of(box: Box) -> dict[Node, tuple[float, float]]:
    """The bounds as floats."""
    return {node: (float(interval.low), float(interval.high)) for node, interval in box.items()}


def _bound(node: Node, found: dict[Node, Interval]) -> None:
    """Adds the bounds that a < b implies for an input or its absolute value."""
    (a, b), strict = node.args, op_of(node, Compare).relation == "<"
    low, high = constant_value(a), constant_value(b)
    if isinstance(b.op, Input) and low is not None:
        _narrow(found, b, above(low, strict))
    elif isinstance(a.op, Input) and high is not None:
        _narrow(found, a, below(high, strict))
    elif high is not None and isinstance(a.op, Apply) and a.op.head is sympy.Abs:
        (inside,) = a.args
        if isinstance(inside.op, Input):
            _narrow(found, inside, below(high, strict))
            _narrow(found, inside, -below(high, strict))


def _narrow(found: dict[Node, Interval], node: Node, bound: Interval) -> None:
    found[node] = both(found[node], bound) if node in found else bound


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


def within(graph: Graph, box: Box, constants: str) -> tuple[Graph, dict[str, str]]:
    """The graph simplified for its domain, and the floats read as simple numbers for that; see `verify`."""
    rounded, read = with_simple_constants(graph) if box and constants == "rounded" else (graph, {})
    made = settled(rounded, box)
    return (graph, {}) if made is rounded else (made, read)


def only_tested(certificate: Certificate) -> Certificate:
    """The certificate with "tested" for "proved": the checker cannot replay the removal of branches."""
    weaker = [
        replace(e, status="tested", reason=REASON) if e.status == "proved" else e for e in certificate.entries
    ]
    return replace(certificate, entries=tuple(weaker), notes=(*certificate.notes, REASON))


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
