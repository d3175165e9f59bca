"""The bounds of inputs that a condition implies: a box around the domain of a claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

import sympy

from symad.core.graph import Node, op_of, topological
from symad.evaluation.intervals import Interval, above, below, both
from symad.evaluation.value_ranges import promised
from symad.ops.arrays.reduction import Product
from symad.ops.basic.arithmetic import sub
from symad.ops.basic.sources import Input, constant, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Compare, Logic

Box = Mapping[Node, Interval]
"""The bounds of inputs, the same for all elements of an input."""


def box_within(condition: Node, inputs: Iterable[Node] = ()) -> Box:
    """The bounds that a condition, 1 where it holds, and the assumptions on some inputs imply."""
    found = promised((*inputs, *(n for n in topological([condition]) if isinstance(n.op, Input))))
    for node in _parts(condition):
        if isinstance(node.op, Compare) and node.op.relation in ("<", "<="):
            _bound(node, found)
    return found


def _parts(condition: Node) -> list[Node]:
    """The conditions that hold together where one holds that is 1 there and 0 elsewhere."""
    while isinstance(condition.op, Product):
        condition = condition.args[0]
    waiting, found = list(condition.args[:1]), []
    while waiting:
        node = waiting.pop()
        if isinstance(node.op, Logic) and node.op.kind == "and":
            waiting.extend(node.args)
        else:
            found.append(node)
    return found


def domain_margins(condition: Node) -> list[Node]:
    """What is positive inside of a domain: b − a for a < b, and one node for all that is no comparison."""
    parts = _parts(condition)
    simple = [p for p in parts if isinstance(p.op, Compare) and p.op.relation in ("<", "<=")]
    found = [sub(p.args[1], p.args[0]) for p in simple]
    return found if len(simple) == len(parts) else [*found, sub(condition, constant(Fraction(1, 2)))]


Bounds = Mapping[Node, tuple[float, float]]
"""Between which numbers inputs lie, all elements alike; infinite where there is no bound."""


def bounds_of(box: Box) -> Bounds:
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
