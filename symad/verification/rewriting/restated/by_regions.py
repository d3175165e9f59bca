"""Numbers of one input, on each interval between the points where conditions on this input change.

On an interval, interval arithmetic decides conditions and signs: cos x is positive for |x| < 1, so that
√(1 − sin² x) is cos x there. An identity that holds with these signs holds on the interval; the intervals
cover the line, but for some points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import sympy

from symad.core.graph import Node, rebuild, topological
from symad.ops.basic.arithmetic import neg, sub
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import Input, constant, input_node, symbol_of
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Compare, Select
from symad.verification.rewriting.restated.by_injective import Box, by_signs
from symad.verification.rewriting.restated.by_whole_parts import by_whole_parts
from symad.verification.rewriting.rewrite import expand_definitions
from symad.verification.terms.discontinuities import SIGNS
from symad.verification.terms.linear_terms import linear_terms, number
from symad.verification.values.intervals import ZERO, Interval, above, below, both
from symad.verification.values.ranges import promised, ranges

MAX_CUTS = 6
"""The maximum number of points that cut the line of one input."""


class Case(NamedTuple):
    """Two sides on one interval: with another input, which is positive, and its bounds."""

    left: Node
    right: Node
    box: Box


def cases_of(outputs: Sequence[Node]) -> Iterator[list[Case]]:
    """The cases of two numbers, all of which must hold, in each way in which there are some."""
    for pairs in (by_signs(outputs), by_whole_parts(outputs)):
        yield [Case(a, b, {}) for a, b in pairs]
    yield by_regions(outputs)


def by_regions(outputs: Sequence[Node]) -> list[Case]:
    """Two scalars of one real input on each interval; none where no condition says where to cut."""
    sides = expand_definitions(outputs)
    nodes = topological(sides)
    inputs = [n for n in nodes if isinstance(n.op, Input)]
    if len(inputs) != 1 or any(n.shape for n in (*sides, *inputs)):
        return []
    (x,) = inputs
    cuts = {cut for n in nodes if isinstance(n.op, Compare) for cut in _cuts(n, x)}
    if getattr(symbol_of(x), "is_integer", False) or not 0 < len(cuts) <= MAX_CUTS:
        return []
    ends = sorted(cuts | {Fraction(0)})
    line = promised([x]).get(x)
    made = []
    for low, high in zip([None, *ends], [*ends, None], strict=True):
        positive = low is not None and low >= 0
        if line is not None and ((line.low >= 0) != positive):
            continue
        free = input_node(sympy.Dummy(str(symbol_of(x)), positive=True))
        bounds = between(low, high) if positive else -between(low, high)
        left, right = rebuild(sides, {x: free if positive else neg(free)})
        made.append(Case(*without_conditions([left, right], {free: bounds}), {free: bounds}))
    return made


def _cuts(condition: Node, x: Node) -> Iterator[Fraction]:
    """Where c x + d or c |x| + d, of which a condition asks the sign, is 0."""
    terms = {m: c for c, m in linear_terms(sub(*condition.args))}
    rest = sum((c for m, c in terms.items() if number(m) == 1), Fraction(0))
    others = [(m, c) for m, c in terms.items() if number(m) is None]
    if len(others) != 1:
        return
    ((m, c),) = others
    if m is x:
        yield -rest / c
    elif isinstance(m.op, Apply) and m.op.head is sympy.Abs and m.args[0] is x:
        yield from (-rest / c, rest / c)


def between(low: Fraction | None, high: Fraction | None) -> Interval:
    """The open interval of these ends; None for one that has none."""
    if low is None or high is None:
        return above(low, strict=True) if low is not None else below(high or Fraction(0), strict=True)
    return both(above(low, strict=True), below(high, strict=True))


def without_conditions(sides: Sequence[Node], box: Box) -> tuple[Node, Node]:
    """The sides without branches that are taken nowhere in a box."""
    known = ranges(sides, box)

    def taken(node: Node, args: tuple[Node, ...]) -> Node:
        truth = known.get(node.args[0]) if isinstance(node.op, Select) else None
        if isinstance(truth, (bool, np.bool_)):
            return broadcast_to(args[1 if truth else 2], node.shape)
        return node if args == node.args else Node.of(node.op, args)

    left, right = rebuild(sides, {}, taken)
    return left, right


def with_known_signs(nodes: Sequence[Node], box: Box) -> tuple[Node, ...]:
    """Nodes with numbers in place of signs that are the same at every point of a box."""
    inputs = [n for n in topological(nodes) if isinstance(n.op, Input)]
    known = ranges(nodes, {**promised(inputs), **box})

    def signed(node: Node, args: tuple[Node, ...]) -> Node:
        if isinstance(node.op, Apply) and node.op.head in SIGNS:
            inside = known.get(node.args[0])
            if isinstance(inside, Interval) and (ZERO.below(inside) or inside.below(ZERO)):
                return constant(1 if ZERO.below(inside) else -1)
        return node if args == node.args else Node.of(node.op, args)

    return rebuild(nodes, {}, signed)
