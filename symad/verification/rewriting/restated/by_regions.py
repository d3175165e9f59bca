"""Numbers of few inputs by the signs of these; of one input, on each interval between its conditions' ends.

An input is ±p with p > 0, so that signs and absolute values are known. On an interval, interval arithmetic
decides conditions and signs: cos x is positive for |x| < 1, so that √(1 − sin² x) is cos x there. An identity
that holds with these signs holds on the interval; the intervals cover the line, but for some points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
import sympy

from symad.core.graph import Node, rebuild, topological
from symad.evaluation.intervals import ZERO, Interval, above, below, both
from symad.evaluation.value_ranges import promised
from symad.ops.basic.arithmetic import neg, sub
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import Input, constant, input_node, symbol_of
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Compare, Select
from symad.verification.rewriting.restated.by_injective import Box
from symad.verification.rewriting.restated.by_whole_parts import by_whole_parts
from symad.verification.rewriting.rewrite import expand_definitions
from symad.verification.terms.discontinuities import SIGNS
from symad.verification.terms.linear_terms import linear_terms, number
from symad.verification.values.ranges import ranges

MAX_INPUTS = 3
"""The maximum number of inputs: with more there are too many cases of signs."""

MAX_CUTS = 6
"""The maximum number of points that cut the line of one input."""


class Case(NamedTuple):
    """Two sides on one interval: with another input, which is positive, and its bounds."""

    left: Node
    right: Node
    box: Box


def cases_of(outputs: Sequence[Node]) -> Iterator[list[Case]]:
    """The cases of two numbers, all of which must hold, in each way in which there are some."""
    yield [Case(a, b, {}) for a, b in by_whole_parts(outputs)]
    yield by_regions(outputs)


def by_regions(outputs: Sequence[Node]) -> list[Case]:
    """Two scalars for each choice of intervals of their inputs; none of arrays, or where these are many."""
    sides = expand_definitions(outputs)
    nodes = topological(sides)
    inputs = [n for n in nodes if isinstance(n.op, Input)]
    if len(inputs) > MAX_INPUTS or any(n.shape for n in (*sides, *inputs)):
        return []
    conditions = [n for n in nodes if isinstance(n.op, Compare)] if len(inputs) == 1 else []
    cuts = {cut for n in conditions for cut in _cuts(n, inputs[0])}
    pieces = [_pieces(x, cuts if len(cuts) <= MAX_CUTS else set()) for x in inputs]
    made = []
    for choice in product(*pieces):
        left, right = rebuild(sides, dict(zip(inputs, (piece for piece, _ in choice), strict=True)))
        box = {free: bounds for _, own in choice for free, bounds in own.items()}
        made.append(Case(*without_conditions([left, right], box), box))
    return made


def _pieces(x: Node, cuts: set[Fraction]) -> list[tuple[Node, Box]]:
    """An input by a positive one on each interval between cuts and 0, with its bounds; none of an integer.

    Without other cuts than 0 the sign says all.
    """
    symbol, ends = symbol_of(x), sorted(cuts | {Fraction(0)})
    made: list[tuple[Node, Box]] = []
    if getattr(symbol, "is_integer", False):
        return made
    for low, high in zip([None, *ends], [*ends, None], strict=True):
        positive = low is not None and low >= 0
        if getattr(symbol, "is_nonpositive" if positive else "is_nonnegative", None):
            continue
        free, bounds = input_node(sympy.Dummy(str(symbol), positive=True)), between(low, high)
        box = {free: bounds if positive else -bounds} if cuts else {}
        made.append((free if positive else neg(free), box))
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
    known = ranges(sides, box) if box else {}

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
