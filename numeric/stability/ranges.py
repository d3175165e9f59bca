"""Ranges: enclosures of all values that a number takes, as a kind of number on which graphs are evaluated.

A range is a ball of Arb that may be wide. A decision that is not the same everywhere in a range gives the
union of both branches; what is not known is NaN. So a graph evaluated on ranges encloses its values at all
points of a box at once.

Source: Johansson (2017), "Arb: efficient arbitrary-precision midpoint-radius interval arithmetic".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import sympy
from flint import arb
from sympy.codegen import cfunctions
from sympy.codegen.numpy_nodes import logaddexp

from symad.core.arrays import Number
from symad.facts.functions import fact
from symad.numbers.number_domains import DOMAINS, Domain, Truth
from symad.numbers.values import unchecked
from symad.sympy_functions.scalar_functions import ScalarFunction
from symad.verification.scalar_definitions import definition_of
from symad.verification.values.balls import NUMBERS, strict
from symad.verification.values.intervals import at_end

UNKNOWN = arb("nan")


class Range:
    """An enclosure with the operators of a number; ``value`` is NaN where nothing is known."""

    __slots__ = ("value",)

    def __init__(self, value: arb) -> None:
        """``value`` is a ball."""
        self.value = value

    def __add__(self, other: Number) -> Range:
        return NotImplemented if isinstance(other, np.ndarray) else Range(self.value + ball(other))

    def __sub__(self, other: Number) -> Range:
        return NotImplemented if isinstance(other, np.ndarray) else Range(self.value - ball(other))

    def __rsub__(self, other: Number) -> Range:
        return NotImplemented if isinstance(other, np.ndarray) else Range(ball(other) - self.value)

    def __mul__(self, other: Number) -> Range:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return Range(_square(self.value) if other is self else self.value * ball(other))

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Number) -> Range:
        return NotImplemented if isinstance(other, np.ndarray) else Range(self.value / ball(other))

    def __rtruediv__(self, other: Number) -> Range:
        return NotImplemented if isinstance(other, np.ndarray) else Range(ball(other) / self.value)

    def __neg__(self) -> Range:
        return Range(-self.value)

    def __abs__(self) -> Range:
        return Range(abs(self.value))

    def __lt__(self, other: Number) -> Number:
        return _less(self.value, ball(other))

    def __le__(self, other: Number) -> Number:
        return _at_most(self.value, ball(other))

    def __gt__(self, other: Number) -> Number:
        return _less(ball(other), self.value)

    def __ge__(self, other: Number) -> Number:
        return _at_most(ball(other), self.value)

    def __eq__(self, other: object) -> Any:
        return _equal(self.value, ball(other))

    def __ne__(self, other: object) -> Any:
        return _not(_equal(self.value, ball(other)))

    __hash__ = object.__hash__

    @property
    def largest(self) -> float:
        """The largest absolute value, rounded up; infinite where nothing is known."""
        upper = self.value.abs_upper()
        return float("inf") if upper.is_nan() else float(upper) * (1 + 2.0**-50)

    @property
    def smallest(self) -> float:
        """The smallest absolute value, rounded down; 0 where nothing is known."""
        lower = self.value.abs_lower()
        return 0.0 if lower.is_nan() else float(lower) * (1 - 2.0**-50)


class Undecided:
    """The truth of a comparison that does not hold everywhere in a range, nor nowhere."""

    def __bool__(self) -> bool:
        raise ArithmeticError("a decision is not the same everywhere in a range")


UNDECIDED = Undecided()


def ball(value: Number) -> arb:
    """A number of any kind as a ball."""
    return value.value if isinstance(value, Range) else strict(value).value


def _square(a: arb) -> arb:
    """a·a, which is not negative."""
    return a * a if not a.contains(0) else (a.abs_upper() ** 2).union(arb(0))


def _less(a: arb, b: arb) -> Number:
    return True if a < b else False if a >= b else UNDECIDED


def _at_most(a: arb, b: arb) -> Number:
    return True if a <= b else False if a > b else UNDECIDED


def _equal(a: arb, b: arb) -> Number:
    if a.is_exact() and b.is_exact():
        return bool(a == b)
    return UNDECIDED if a.overlaps(b) or a.is_nan() or b.is_nan() else False


def _not(truth: Number) -> Number:
    return truth if truth is UNDECIDED else not truth


class Ranges(Domain["Range"]):
    """Arithmetic of ranges."""

    rank = 8

    def number(self, value: Number) -> Range:
        """An enclosure of an exact number."""
        return Range(NUMBERS.number(value).value)

    def apply(self, head: sympy.FunctionClass, *values: Range) -> Range:
        """By Arb; steps are the union of the values on both sides."""
        arguments = [ball(v) for v in values]
        if head in (sympy.Max, sympy.Min):
            return Range(reduce(arb.max if head is sympy.Max else arb.min, arguments))
        if head is logaddexp:
            largest, least = arguments[0].max(arguments[1]), arguments[0].min(arguments[1])
            return Range(largest + (least - largest).exp().log1p())
        if head in STEPS:
            return Range(STEPS[head](*arguments))
        monotone = at_end(head) if len(arguments) == 1 else None
        if monotone is not None:
            return Range(monotone(arguments[0].lower()).union(monotone(arguments[0].upper())))
        function = fact(head).balls
        if function is not None:
            return Range(function(*arguments))
        if isinstance(head, type) and issubclass(head, ScalarFunction):
            return self._defined(head, values)
        return Range(UNKNOWN)

    def _defined(self, head: sympy.FunctionClass, values: tuple[Range, ...]) -> Range:
        """A function of the library, by its definition."""
        inputs, output = definition_of(head, len(values))
        return unchecked([output], dict(zip(inputs, values, strict=True)))[0]

    def power(self, base: Number, exponent: Number) -> Range:
        """The real power; unknown where a negative base meets an exponent that is no integer."""
        b, e = ball(base), ball(exponent)
        if e.is_exact() and e.is_integer():
            return Range(_whole_power(b, int(e.unique_fmpz())))
        if e == arb(1) / 2:
            return Range(b.sqrt())
        if b > 0:
            return Range(b**e)
        upper = b.abs_upper()
        return Range((upper**e).union(arb(0)) if b >= 0 and e > 0 else UNKNOWN)

    def divide(self, a: Number, b: Number) -> Range:
        """Unknown where the divisor may be 0."""
        return Range(ball(a) / ball(b))

    def compare(self, relation: str, a: Number, b: Number) -> Truth:
        """True, False, or `UNDECIDED`."""
        u, v = ball(a), ball(b)
        if relation in ("==", "!="):
            return _equal(u, v) if relation == "==" else _not(_equal(u, v))
        return _less(u, v) if relation == "<" else _at_most(u, v)

    def select(self, condition: Truth, a: Number, b: Number) -> Range:
        """The branch that is taken, or the union of both."""
        if not isinstance(condition, Undecided):
            return Range(ball(a if condition else b))
        return Range(ball(a).union(ball(b)))

    def logic(self, kind: str, *conditions: Truth) -> Truth:
        """And, or, xor, not: a false part decides an "and", whatever the others are."""
        known = [bool(c) for c in conditions if not isinstance(c, Undecided)]
        if (kind == "and" and not all(known)) or (kind == "or" and any(known)):
            return kind == "or"
        return UNDECIDED if len(known) < len(conditions) else super().logic(kind, *known)


def _log_of_sum(a: arb, b: arb) -> arb:
    """log(eˣ + eʸ)."""
    largest = a.max(b)
    return largest + (a.min(b) - largest).exp().log1p()


STEPS: dict[sympy.FunctionClass, Callable[..., arb]] = {
    sympy.sign: arb.sgn,
    sympy.Heaviside: lambda a, at=None: at if at is not None and a == 0 else (1 + a.sgn()) / 2,
    logaddexp: _log_of_sum,
    cfunctions.exp2: lambda a: arb(2) ** a,
    cfunctions.log2: lambda a: a.log() / arb(2).log(),
    cfunctions.log10: lambda a: a.log() / arb(10).log(),
    cfunctions.hypot: lambda a, b: (_square(a) + _square(b)).sqrt(),
}
"""Functions of ranges beside those of Arb: a step has all values between those on both sides."""

DOMAINS.append(((Range, Undecided), Ranges()))


def _whole_power(b: arb, n: int) -> arb:
    """bⁿ of an integer; Arb's own power of a ball around 0 is wider or NaN."""
    if n < 0 or not b.contains(0):
        return b**n
    bound = b.abs_upper() ** n if n else arb(1)
    return arb(1) if n == 0 else bound.union(arb(0) if n % 2 == 0 else -bound)
