"""Numbers are equal if a function that takes each value once, on a range with both, makes them equal.

The square and cosh do so on x ≥ 0, and on x ≤ 0, exp everywhere, w exp(w) on w ≥ −1 (so W(u) = w if
u = w exp(w)), and cosine and sine together on angles that differ by less than 2π: of sums of inverse
circular functions, cos(a − b) = 1 and sin(a − b) = 0 say that a − b is a multiple of 2π, and intervals that
it is 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

import sympy
from flint import arb

from symad.core.graph import Node, topological
from symad.evaluation.intervals import Interval
from symad.evaluation.value_ranges import promised
from symad.ops.basic.arithmetic import mul, sub
from symad.ops.basic.sources import constant, inputs_in
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow
from symad.verification.terms.linear_terms import number
from symad.verification.terms.signs import known_signs
from symad.verification.values.ranges import ranges

MAX_FUNCTIONS_APPLIED = 2
"""The maximum number of functions that are applied one after the other."""

ANGLES = {sympy.asin, sympy.acos, sympy.atan, sympy.atan2, sympy.acot}

MULTIPLES = (1, 2)
"""Of a difference of angles; of π/4 only the double has a cosine without roots."""

Pairs = list[tuple[Node, Node]]
Heads = Set[type[sympy.Basic]]


Box = Mapping[Node, Interval]
"""Bounds of inputs: a claim is made for these alone."""

NO_BOX: Box = {}


def by_injective(a: Node, b: Node, box: Box = NO_BOX, steps: int = MAX_FUNCTIONS_APPLIED) -> Iterator[Pairs]:
    """Claims of each of which it follows that two scalars are equal where both are defined.

    ``box`` bounds inputs, beside what their symbols promise.
    """
    heads = {n.op.head for n in topological([a, b]) if isinstance(n.op, Apply)}
    yield [(a, b)]
    for m in MULTIPLES if heads & ANGLES else ():
        if _within_a_turn(a, b, m, box):
            gap = mul(constant(m), sub(a, b))
            yield [(apply(sympy.sin, gap), constant(0)), (apply(sympy.cos, gap), constant(1))]
    for rule in INJECTIVE if steps else ():
        for left, right in rule(a, b, heads):
            yield from by_injective(left, right, box, steps - 1)


def times_their_exponential(a: Node, b: Node, heads: Heads) -> Pairs:
    """u = w exp(w) for W(u) = w, where w > 0."""
    return [
        (w.args[0], mul(other, apply(sympy.exp, other)))
        for w, other in ((a, b), (b, a))
        if getattr(w.op, "head", None) is sympy.LambertW and len(w.args) == 1 and _signs(other) == [1]
    ]


def squares(a: Node, b: Node, heads: Heads) -> Pairs:
    """The squares, where there are roots."""
    rooted = any(isinstance(n.op, Pow) and _is_root(n) for n in topological([a, b]))
    return [(mul(a, a), mul(b, b))] if rooted and _have_one_sign(a, b) else []


def hyperbolic_cosines(a: Node, b: Node, heads: Heads) -> Pairs:
    """cosh, where there are its inverses."""
    inverse = bool(heads & {sympy.acosh, sympy.asech}) and _have_one_sign(a, b)
    return [(apply(sympy.cosh, a), apply(sympy.cosh, b))] if inverse else []


def exponentials(a: Node, b: Node, heads: Heads) -> Pairs:
    """exp of twice both, where there are logarithms."""
    if not heads & {sympy.log, sympy.asinh, sympy.acosh, sympy.atanh}:
        return []
    left, right = (apply(sympy.exp, mul(constant(2), side)) for side in (a, b))
    return [(left, right)]


INJECTIVE = (times_their_exponential, squares, hyperbolic_cosines, exponentials)
"""Pairs of which the equality says that of others: functions that take each value once, where they do."""


def _is_root(node: Node) -> bool:
    exponent = number(node.args[1])
    return exponent is not None and exponent.denominator > 1


def _have_one_sign(a: Node, b: Node) -> bool:
    return _signs(a, b) in ([1, 1], [-1, -1])


def _signs(*nodes: Node) -> list[int]:
    known = known_signs(nodes)
    return [known[n] for n in nodes]


def _within_a_turn(a: Node, b: Node, m: int, box: Box) -> bool:
    """True if two nodes differ by less than 2π/m at every point where both are defined."""
    inputs = inputs_in([a, b])
    found = ranges([a, b], {**promised(inputs), **box})
    if not found or not all(isinstance(found[side], Interval) for side in (a, b)):
        return False
    gap = found[a] - found[b]
    turn = 2 * arb.pi() / m
    return bool(-turn < gap.low) and bool(gap.high < turn)
