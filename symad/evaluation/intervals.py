"""Interval arithmetic: the bounds of a value, and if it exists at every point.

Endpoints are exact Arb numbers, rounded outwards. A function without a rule gets the whole line. Truth values
are true, false or `OPEN`. One object stands for one value: the square of an object is not negative.

Source: Johansson (2017), "Arb: efficient arbitrary-precision midpoint-radius interval arithmetic".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import flint
import numpy as np
import sympy
from flint import arb
from sympy.codegen.cfunctions import log1p
from sympy.codegen.numpy_nodes import logaddexp

from symad.core.arrays import Number
from symad.evaluation.scalar_definitions import definition_of, is_defined
from symad.facts.functions import Facts, fact
from symad.numbers.ball_functions import ball_of
from symad.numbers.number_domains import DOMAINS, Domain, Truth
from symad.numbers.values import unchecked

INFINITE = arb("inf")
ABOVE = 1 + 2.0**-50
"""More than the rounding of an endpoint to a float."""


class OpenTruth:
    """The truth value of a condition that may hold at some points of the box and not at others."""

    def __bool__(self) -> bool:
        raise TypeError("a condition that intervals leave open has no truth")


OPEN = OpenTruth()

Beyond = tuple[bool, bool]
CLOSED: Beyond = (False, False)


class Interval:
    """The numbers from ``low`` to ``high``, which are exact.

    ``beyond`` has a flag for each endpoint: true if it is excluded. ``sure`` is true if the value exists at
    every point of the box.
    """

    __slots__ = ("beyond", "high", "low", "sure")

    def __init__(self, low: flint.arb, high: flint.arb, sure: bool = True, beyond: Beyond = CLOSED) -> None:
        """An endpoint that is not a number gives the whole line."""
        known = not (low.is_nan() or high.is_nan())
        self.low, self.high = (low, high) if known else (-INFINITE, INFINITE)
        self.sure, self.beyond = sure, beyond if known else CLOSED

    def __add__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else _sum(self, interval(other))

    def __sub__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else _sum(self, -interval(other))

    def __rsub__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else _sum(-self, interval(other))

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return _whole_power(self, 2) if other is self else _product(self, interval(other))

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else INTERVALS.divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else INTERVALS.divide(other, self)

    def __pow__(self, other: Any) -> Interval:
        return INTERVALS.power(self, other)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low, self.sure, self.beyond[::-1])

    @property
    def largest(self) -> float:
        """The largest absolute value, rounded up; infinite where there may be no value."""
        return max(float(abs(end)) for end in (self.low, self.high)) * ABOVE if self.sure else float("inf")

    @property
    def smallest(self) -> float:
        """The smallest absolute value, rounded down; 0 where there may be no value."""
        if not self.sure or self.low <= 0 <= self.high:
            return 0.0
        return min(float(abs(end)) for end in (self.low, self.high)) / ABOVE

    def below(self, other: Interval) -> bool:
        """True if every value is less than every value of the other."""
        return bool(self.high < other.low) or (
            bool(self.high == other.low) and (self.beyond[1] or other.beyond[0])
        )


ZERO, ONE = Interval(arb(0), arb(0)), Interval(arb(1), arb(1))


def whole_line(sure: bool = False) -> Interval:
    """The interval of all numbers, for a value that nothing is known of."""
    return Interval(-INFINITE, INFINITE, sure)


def above(number: Number, strict: bool) -> Interval:
    """The numbers above a number, with it unless ``strict``."""
    return Interval(interval(number).low, INFINITE, True, (strict, False))


def below(number: Number, strict: bool) -> Interval:
    """The numbers below a number, with it unless ``strict``."""
    return Interval(-INFINITE, interval(number).high, True, (False, strict))


def both(a: Interval, b: Interval) -> Interval:
    """The intersection of two intervals."""
    low, high = max(a.low, b.low), min(a.high, b.high)
    passed = (
        any(v.beyond[0] for v in (a, b) if v.low == low),
        any(v.beyond[1] for v in (a, b) if v.high == high),
    )
    return Interval(low, high, a.sure and b.sure, passed)


def hull(parts: Sequence[Interval]) -> Interval:
    """A new interval of all numbers in some intervals, and between them."""
    low, high = min(v.low for v in parts), max(v.high for v in parts)
    passed = (
        all(v.beyond[0] for v in parts if v.low == low),
        all(v.beyond[1] for v in parts if v.high == high),
    )
    return Interval(low, high, all(v.sure for v in parts), passed)


def _sum(a: Interval, b: Interval) -> Interval:
    beyond = a.beyond[0] or b.beyond[0], a.beyond[1] or b.beyond[1]
    return Interval((a.low + b.low).lower(), (a.high + b.high).upper(), a.sure and b.sure, beyond)


def _product(a: Interval, b: Interval) -> Interval:
    """The product of two intervals; 0 times an infinite endpoint is 0, because ∞ is not a value."""
    if a.high < 0:
        return -_product(-a, b)
    if b.high < 0:
        return -_product(a, -b)
    if a.low > 0 and b.low > 0 and a.high.is_finite() and b.high.is_finite():
        return Interval((a.low * b.low).lower(), (a.high * b.high).upper(), a.sure and b.sure)
    zero = arb(0)
    ends = [u * v if u != 0 and v != 0 else zero for u in (a.low, a.high) for v in (b.low, b.high)]
    low, high = _hull(ends)
    passed = _never_zero(a) and _never_zero(b)
    return Interval(low, high, a.sure and b.sure, (passed and bool(low == 0), passed and bool(high == 0)))


def _never_zero(a: Interval) -> bool:
    """True if the interval does not contain 0."""
    return a.below(ZERO) or ZERO.below(a)


def _hull(values: Sequence[flint.arb]) -> tuple[flint.arb, flint.arb]:
    """The smallest and the largest of some balls; not a number if one of them is not, as 0 times ∞."""
    if any([v.is_nan() for v in values]):
        return arb("nan"), arb("nan")
    return min([v.lower() for v in values]), max([v.upper() for v in values])


def interval(value: Any) -> Interval:
    """The interval of a number or a truth value; nothing is known of an infinite float."""
    if isinstance(value, Interval):
        return value
    if isinstance(value, OpenTruth):
        return Interval(arb(0), arb(1))
    if isinstance(value, float) and not np.isfinite(value):
        return whole_line()
    return of_ball(ball_of(value))


def of_ball(ball: flint.arb, sure: bool = True) -> Interval:
    """The numbers in a ball; those of a function are known to exist where its ball is finite."""
    return Interval(ball.lower(), ball.upper(), sure and not ball.is_nan())


class Intervals(Domain["Interval | float"]):
    """Interval arithmetic."""

    rank = 8

    def number(self, value: Any) -> Interval:
        """The interval of one number; floats stand for their exact binary values."""
        return interval(value)

    def apply(self, head: sympy.FunctionClass, *values: Any) -> Interval:
        """A function of intervals, by its monotonicity, its bounds or its definition; else the whole line."""
        given = [interval(v) for v in values]
        made = RULES[head](*given) if head in RULES else None
        if made is not None:
            return made
        monotone = at_end(head) if len(given) == 1 else None
        if monotone is not None:
            return _monotone(fact(head), monotone, given[0])
        sure = all(v.sure for v in given)
        return _by_arb(head, given, sure) or _otherwise(head, given, sure)

    def power(self, base: Any, exponent: Any) -> Any:
        """A power with a constant exponent or a positive base; the whole line for others."""
        b, e = interval(base), interval(exponent)
        sure = b.sure and e.sure
        if b.low > 0:
            low, high = _hull([u**v for u in (b.low, b.high) for v in (e.low, e.high)])
            return Interval(low, high, sure)
        if e.low != e.high:
            return whole_line()
        if not e.low.is_integer():  # roots of negative numbers have no value
            high = (b.high**e.low).upper() if e.low > 0 and 0 <= b.high < INFINITE else INFINITE
            return Interval(arb(0), high, sure and bool(b.low >= 0 and e.low > 0))
        count = int(e.low.unique_fmpz())
        return _whole_power(b, count) if count >= 0 else self.divide(ONE, _whole_power(b, -count))

    def divide(self, a: Any, b: Any) -> Any:
        """A quotient; the whole line if the divisor may have both signs."""
        a, b = interval(a), interval(b)
        if b.high <= 0:
            a, b = -a, -b
        if not b.low >= 0:
            return whole_line()
        if not b.low > 0:
            sure = a.sure and b.sure and b.beyond[0]
            return _product(a, Interval((1 / b.high).lower(), INFINITE, sure))
        low, high = _hull([u / v for u in (a.low, a.high) for v in (b.low, b.high)])
        return Interval(low, high, a.sure and b.sure)

    def compare(self, relation: str, a: Any, b: Any) -> Truth:
        """True or false if the intervals decide the relation, else `OPEN`."""
        a, b = interval(a), interval(b)
        if not (a.sure and b.sure):
            return OPEN
        if a is b:
            return relation in ("==", "<=")
        less, more = a.below(b), b.below(a)
        if relation in ("==", "!="):
            return (relation == "!=") if less or more else OPEN
        if less or (relation == "<=" and a.high <= b.low):
            return True
        return False if more or (relation == "<" and b.high <= a.low) else OPEN

    def select(self, condition: Truth, a: Any, b: Any) -> Any:
        """The branch that is taken, or the hull of both."""
        if not isinstance(condition, OpenTruth):
            return interval(a if condition else b)
        return hull([interval(a), interval(b)])

    def logic(self, kind: str, *conditions: Truth) -> Truth:
        """And, or, xor, not; `OPEN` if the conditions do not decide them."""
        known = [c for c in conditions if not isinstance(c, OpenTruth)]
        if kind in ("and", "or") and any(bool(c) is (kind == "or") for c in known):
            return kind == "or"
        if len(known) < len(conditions):
            return OPEN
        return super().logic(kind, *conditions)


INTERVALS = Intervals()
DOMAINS.append(((Interval, OpenTruth), INTERVALS))


def _whole_power(b: Interval, count: int) -> Interval:
    """A power with an exponent of 0, 1, 2, ..."""
    ends = [_raised(b.low, count), _raised(b.high, count)]
    if count % 2 == 0 and b.low <= 0 and b.high >= 0:
        ends.append(arb(0))
    low, high = _hull(ends)
    passed = _never_zero(b)
    return Interval(low, high, b.sure, (passed and bool(low == 0), passed and bool(high == 0)))


def _raised(end: flint.arb, count: int) -> flint.arb:
    """A power of an endpoint, which may be infinite."""
    if end.is_finite() or count == 0:
        return end**count
    return -INFINITE if end < 0 and count % 2 else INFINITE


def _largest(*values: Interval) -> Interval:
    """The maximum of intervals; its lower end is excluded if one of theirs is, its upper end if all are."""
    low, high = max(v.low for v in values), max(v.high for v in values)
    passed = any(v.beyond[0] for v in values if v.low == low)
    sure = all(v.sure for v in values)
    return Interval(low, high, sure, (passed, all(v.beyond[1] for v in values if v.high == high)))


def _smallest(*values: Interval) -> Interval:
    return -_largest(*[-v for v in values])


def _absolute(a: Interval) -> Interval:
    size = _largest(a, -a)
    return size if size.low >= 0 else Interval(arb(0), size.high, a.sure, (False, size.beyond[1]))


def _sign(a: Interval) -> Interval:
    low, high = (int(ZERO.below(a)), 1) if a.low >= 0 else (-1, 1)
    return Interval(arb(low), arb(-1 if a.below(ZERO) else high), a.sure)


def _step(a: Interval, *at: Interval) -> Interval:
    """Heaviside's function, with its value at 0."""
    step = (_sign(a) + 1) / 2
    return step if _never_zero(a) or not at else hull([step, *at])


def _log_of_sum(a: Interval, b: Interval) -> Interval:
    """log(exp a + exp b)."""
    largest = _largest(a, b)
    return largest + INTERVALS.apply(log1p, INTERVALS.apply(sympy.exp, _smallest(a, b) - largest))


def _by_arb(head: sympy.FunctionClass, values: Sequence[Interval], sure: bool) -> Interval | None:
    """A function by Arb, on balls around finite intervals; None where that says nothing."""
    function, ends = fact(head).balls, [end for v in values for end in (v.low, v.high)]
    if function is None or not all(end.is_finite() for end in ends):
        return None
    found = function(*[v.low.union(v.high) for v in values])
    return both(of_ball(found, sure), _bounds(head, sure)) if found.is_finite() else None


def _otherwise(head: sympy.FunctionClass, values: Sequence[Interval], sure: bool) -> Interval:
    """A function by its definition, or by the bounds of all of its values."""
    bounds = _bounds(head, sure and fact(head).total)
    found = _defined(head, values) if is_defined(head) else None
    if found is None or (fact(head).definition is not None and not found.sure):
        return bounds  # a formula in other functions may lack values
    made = both(found, bounds)
    return Interval(made.low, made.high, found.sure or bounds.sure, made.beyond)


def _bounds(head: sympy.FunctionClass, sure: bool) -> Interval:
    low, high = map(arb, fact(head).range)
    return Interval(low, high, sure)


def _defined(head: sympy.FunctionClass, values: Sequence[Interval]) -> Interval:
    """A function of intervals by its definition."""
    inputs, meaning = definition_of(head, len(values))
    (value,) = unchecked([meaning], dict(zip(inputs, values, strict=True)))
    return interval(value)


def at_end(head: type[sympy.Basic]) -> Callable[[flint.arb], flint.arb] | None:
    """A monotone function at an end of an interval, −∞ below its domain; None of another function."""
    row = fact(head)
    function = row.balls
    if not row.monotone or function is None or row.size_below is not None:
        return None
    return lambda a: -INFINITE if row.above is not None and a <= row.above else function(a)


def _monotone(row: Facts, function: Callable[[flint.arb], flint.arb], a: Interval) -> Interval:
    low, high = _hull([function(a.low), function(a.high)])
    sure = a.sure and (row.above is None or Interval(arb(row.above), arb(row.above)).below(a))
    passed = a.beyond[0] or a.low == -INFINITE, a.beyond[1] or a.high == INFINITE  # exp is 0 at no number
    return Interval(low, high, sure, passed if row.monotone > 0 else passed[::-1])


WAVES: dict[sympy.FunctionClass, tuple[Callable[[flint.arb], flint.arb], float, float]] = {
    sympy.sin: (arb.sin, 0.25, 0.75), sympy.cos: (arb.cos, 0.0, 0.5),
}  # fmt: skip
"""Functions of period 2π, and the parts of it at which they are 1 and −1."""


def _wave(head: sympy.FunctionClass, a: Interval) -> Interval | None:
    """By the ends, where no extreme lies between: then nothing inside is as large or as small as an end."""
    if not (a.low.is_finite() and a.high.is_finite()):
        return None
    function, top, bottom = WAVES[head]
    ends = [(function(a.low), a.beyond[0]), (function(a.high), a.beyond[1])]
    low, high = _hull([value for value, _ in ends])
    passed = (
        all(beyond for value, beyond in ends if value.lower() <= low),
        all(beyond for value, beyond in ends if value.upper() >= high),
    )
    if _meets(a, bottom):
        low, passed = arb(-1), (False, passed[1])
    if _meets(a, top):
        high, passed = arb(1), (passed[0], False)
    return Interval(low, high, a.sure, passed)


def _meets(a: Interval, part: float) -> bool:
    """True if (k + part) 2π may lie in an interval for an integer k."""
    turn = 2 * arb.pi()
    return bool((a.low / turn - part).lower().ceil() <= (a.high / turn - part).upper().floor())


def _arcsine(head: type[sympy.Basic], a: Interval) -> Interval:
    """Arcsine or arccosine of the part of an interval that lies in [−1, 1]."""
    low, high = max(a.low, arb(-1)), min(a.high, arb(1))
    if not low <= high:
        return whole_line()
    sure = a.sure and bool(a.low >= -1) and bool(a.high <= 1)
    ends = [arb.asin(e) if head is sympy.asin else arb.acos(e) for e in (low, high)]
    return Interval(*_hull(ends), sure)


def _angle(y: Interval, x: Interval) -> Interval:
    """The angle of the point (x, y), from the quadrants that it may be in; π on the negative axis."""
    half, zero, falls = arb.pi() / 2, arb(0), y.below(ZERO)
    if x.low >= 0:
        ends = [zero if y.low >= 0 else -half, zero if y.high <= 0 else half]
    elif falls:
        ends = [-2 * half, -half if x.high <= 0 else zero]
    else:
        low = zero if y.low >= 0 else -2 * half
        ends = [half if x.high <= 0 and y.low >= 0 else low, 2 * half]
    return Interval(*_hull(ends), y.sure and x.sure)


RULES: dict[type[sympy.Basic], Callable[..., Interval | None]] = {
    sympy.Max: _largest, sympy.Min: _smallest, sympy.Abs: _absolute, sympy.sign: _sign,
    sympy.Heaviside: _step, sympy.atan2: _angle, logaddexp: _log_of_sum,
    **{head: partial(_arcsine, head) for head in (sympy.asin, sympy.acos)},
    **{head: partial(_wave, head) for head in WAVES},
}  # fmt: skip
"""Functions that are neither monotone nor left to Arb; None where a rule says nothing."""
