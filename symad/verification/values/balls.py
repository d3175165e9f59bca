"""Graphs on balls: real numbers with a bound on their error, by Arb.

Every value encloses the true one, so two balls without a common point are two different numbers. A
comparison that the balls do not decide, as at a tie or a jump, has no truth: the point is then of no use.

Source: Johansson (2017), "Arb: efficient arbitrary-precision midpoint-radius interval arithmetic".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import sympy
from flint import arb

from symad.core.arrays import Array, Number
from symad.core.graph import Node
from symad.numbers.arb_functions import FUNCTIONS as MORE
from symad.numbers.number_domains import DOMAINS, Domain, Truth, Undefined, box
from symad.numbers.values import unchecked
from symad.ops.basic.sources import Constant
from symad.sympy_functions.scalar_functions import ScalarFunction
from symad.verification.scalar_definitions import definition_of
from symad.verification.values.mpmath_balls import ball_by_mpmath, named_ball
from symad.verification.values.steady_values import Way


class Undetermined(ArithmeticError):
    """A comparison that balls do not decide."""


class NoTruth:
    """The truth of a comparison of what is undefined."""

    def __bool__(self) -> bool:
        raise Undetermined("a comparison of what is undefined")


NO_TRUTH = NoTruth()


class Ball:
    """A real number within bounds, with the operators of a number; NaN where it is undefined."""

    __slots__ = ("value",)

    def __init__(self, value: flint.arb) -> None:
        """``value`` is an Arb ball."""
        self.value = value

    def __add__(self, other: Any) -> Ball:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return Ball(self.value + _arb(other))

    def __sub__(self, other: Any) -> Ball:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return Ball(self.value - _arb(other))

    def __rsub__(self, other: Any) -> Ball:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return Ball(_arb(other) - self.value)

    def __mul__(self, other: Any) -> Ball:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return Ball(self.value * _arb(other))

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Any) -> Ball:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return _quotient(self.value, _arb(other))

    def __rtruediv__(self, other: Any) -> Ball:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return _quotient(_arb(other), self.value)

    def __pow__(self, other: Ball | Fraction | int) -> Ball:
        return NUMBERS.power(self, other)

    def __neg__(self) -> Ball:
        return Ball(-self.value)

    def __abs__(self) -> Ball:
        return Ball(abs(self.value))

    def __lt__(self, other: Ball | Fraction | int) -> bool | NoTruth:
        return _compare("<", self, other)

    def __le__(self, other: Ball | Fraction | int) -> bool | NoTruth:
        return _compare("<=", self, other)

    def __gt__(self, other: Ball | Fraction | int) -> bool | NoTruth:
        return _compare("<", other, self)

    def __ge__(self, other: Ball | Fraction | int) -> bool | NoTruth:
        return _compare("<=", other, self)

    def __eq__(self, other: object) -> Any:
        return _compare("==", self, other)

    def __int__(self) -> int:
        """An index; an error for what is no exact integer."""
        if not (self.value.is_exact() and self.value.is_integer()):
            raise Undetermined(f"{self.value} is no integer")
        return int(self.value.unique_fmpz())

    def __float__(self) -> float:
        return float(self.value.mid())


def _arb(value: Any) -> flint.arb:
    if isinstance(value, Ball):
        return value.value
    if isinstance(value, Undefined):
        return arb("nan")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Fraction):
        return arb(value.numerator) / value.denominator
    return arb(value)


def _quotient(a: flint.arb, b: flint.arb) -> Ball:
    return Ball(a / b if b != 0 else arb("nan"))


def _compare(relation: str, a: Any, b: Any) -> Any:
    """The truth of a relation.

    Raises:
        Undetermined: the balls overlap.
    """
    u, v = _arb(a), _arb(b)
    if u.is_nan() or v.is_nan():
        return NO_TRUTH
    if relation in ("==", "!="):
        if a is b or (u.is_exact() and v.is_exact() and u.mid() == v.mid()):
            return relation == "=="
        if u.overlaps(v):
            raise Undetermined(f"{u} {relation} {v}")
        return relation == "!="
    if a is b:
        return relation == "<="
    if u < v:
        return True
    if u > v:
        return False
    if u.is_exact() and v.is_exact():
        return relation == "<="
    raise Undetermined(f"{u} {relation} {v}")


class Balls(Domain["Ball | int"]):
    """Arithmetic of balls."""

    rank = 7

    def number(self, value: Number) -> Ball:
        """Floats are their exact binary values."""
        if isinstance(value, sympy.NumberSymbol):
            return Ball(named_ball(value))
        if isinstance(value, sympy.Basic) and not isinstance(value, (sympy.Rational, sympy.Float)):
            return Ball(arb("nan"))
        if isinstance(value, sympy.Basic):
            exact = sympy.Rational(value)
            value = Fraction(int(exact.p), int(exact.q))
        return Ball(_arb(value))

    def apply(self, head: sympy.FunctionClass, *values: Ball | int) -> Ball:
        """By Arb; maxima are the argument itself, and steps have a value away from their jumps only."""
        if any(isinstance(v, Undefined) for v in values):
            return Ball(arb("nan"))
        boxed = [v if isinstance(v, Ball) else self.number(v) for v in values]
        if head in (sympy.Max, sympy.Min):
            return _extreme(head is sympy.Max, boxed)
        arguments = [b.value for b in boxed]
        if any(a.is_nan() for a in arguments):
            return Ball(arb("nan"))
        if head in FUNCTIONS:
            return Ball(FUNCTIONS[head](*arguments))
        if isinstance(head, type) and issubclass(head, ScalarFunction):
            return _defined(head, boxed)
        if not all(a.is_finite() for a in arguments):
            return Ball(arb("nan"))
        found = MORE[head](*arguments) if head in MORE else arb("nan")
        return Ball(found if found.is_finite() else ball_by_mpmath(head, arguments))

    def power(self, base: Any, exponent: Any) -> Ball:
        """The real power."""
        b, e = _arb(base), _arb(exponent)
        if not (b.is_finite() and e.is_finite()):
            return Ball(arb("nan"))
        if e.is_exact() and e.is_integer():
            if e < 0 and b.contains(0):
                return Ball(arb("nan"))
            return Ball(b ** int(e.unique_fmpz())) if abs(e) < 1 << 40 else Ball(arb("nan"))
        if b == 0 and e > 0:
            return Ball(arb(0))
        if isinstance(exponent, Ball) and e.contains_integer() and not b > 0:
            return Ball(arb("nan"))
        return Ball(b**e if b > 0 else arb("nan"))

    def divide(self, a: Any, b: Any) -> Ball:
        """NaN where the divisor may be 0."""
        return _quotient(_arb(a), _arb(b))

    def compare(self, relation: str, a: Ball | int, b: Ball | int) -> Truth:
        """Decided, or an error."""
        return _compare(relation, a, b)

    def select(self, condition: Truth, a: Ball | int, b: Ball | int) -> Ball | int:
        """The branch that is taken."""
        if condition is NO_TRUTH:
            return Ball(arb("nan"))
        return a if condition else b


NUMBERS = Balls()
DOMAINS.append(((Ball,), NUMBERS))


def _extreme(largest: bool, values: Sequence[Ball]) -> Ball:
    best = values[0]
    for value in values:
        if value.value.is_nan():
            return value
    for value in values[1:]:
        if _compare("<", best, value) is largest and value is not best:
            best = value
    return best


def _sign(a: flint.arb) -> flint.arb:
    if a > 0 or a < 0 or (a.is_exact() and a == 0):
        return a.sgn()
    raise Undetermined(f"the sign of {a}")


def _floor(a: flint.arb) -> flint.arb:
    whole = a.floor()
    if whole.is_exact() and not (a.contains_integer() and not a.is_exact()):
        return whole
    raise Undetermined(f"the integer part of {a}")


FUNCTIONS: dict[sympy.FunctionClass, Callable[..., Number]] = {
    sympy.exp: arb.exp, sympy.sin: arb.sin, sympy.cos: arb.cos, sympy.tan: arb.tan, sympy.cot: arb.cot,
    sympy.sec: arb.sec, sympy.csc: arb.csc, sympy.sinh: arb.sinh, sympy.cosh: arb.cosh, sympy.tanh: arb.tanh,
    sympy.coth: arb.coth, sympy.sech: arb.sech, sympy.csch: arb.csch, sympy.asin: arb.asin,
    sympy.acos: arb.acos, sympy.atan: arb.atan,
    sympy.asinh: arb.asinh, sympy.acosh: arb.acosh, sympy.atanh: arb.atanh,
    sympy.atan2: lambda y, x: arb.atan2(y, x),
    sympy.log: lambda a, *b: a.log() / b[0].log() if b else a.log(),
    sympy.erf: arb.erf, sympy.erfc: arb.erfc, sympy.erfi: arb.erfi, sympy.gamma: arb.gamma,
    sympy.loggamma: lambda a: a.lgamma() if a > 0 else arb("nan"), sympy.digamma: arb.digamma, sympy.Abs: abs,
    sympy.sign: _sign, sympy.floor: _floor, sympy.ceiling: lambda a: -_floor(-a),
    sympy.frac: lambda a: a - _floor(a), sympy.Mod: lambda a, b: a - b * _floor(a / b),
    sympy.Heaviside: lambda a, at=None: (1 + _sign(a)) / 2 if at is None or a != 0 else at,
    sympy.sinc: arb.sinc, sympy.factorial: arb.fac,
    sympy.besselj: lambda n, x: x.bessel_j(n), sympy.bessely: lambda n, x: x.bessel_y(n),
    sympy.besseli: lambda n, x: x.bessel_i(n), sympy.besselk: lambda n, x: x.bessel_k(n),
}  # fmt: skip
"""The functions that Arb has."""


def _defined(head: sympy.FunctionClass, values: Sequence[Ball]) -> Ball:
    """A function by its definition."""
    inputs, meaning = definition_of(head, len(values))
    (value,) = unchecked([meaning], dict(zip(inputs, values, strict=True)))
    return value if isinstance(value, Ball) else NUMBERS.number(value)


# ---- graphs -------------------------------------------------------------------------------------


def ball_values(outputs: Sequence[Node], point: Mapping[Node, Number], bits: int) -> list[Any]:
    """Enclosures of some nodes at a rational point, as arrays of balls; not finite where undefined.

    Raises:
        Undetermined: a comparison is not decided at this precision.
        SymadError, ArithmeticError: the point lies outside the domain of a decomposition.
    """
    with in_balls(point, bits) as way:
        return [_as_array(v) for v in unchecked(outputs, way.point)]


@contextmanager
def in_balls(point: Mapping[Node, Number], bits: int) -> Iterator[Way]:
    """The evaluation in balls of so many bits."""
    before = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        numbers: dict[Node, Number] = {n: _entered(v) for n, v in point.items()}
        numbers[Node.of(Constant(sympy.EulerGamma, "symbol"))] = NUMBERS.number(sympy.EulerGamma)
        missing = np.frompyfunc(lambda v: isinstance(v, Ball) and not v.value.is_finite(), 1, 1)
        yield Way(numbers, Ball(arb("nan")), NO_TRUTH, missing=missing)
    finally:
        flint.ctx.prec = before


def _entered(value: Number) -> Ball | Number:
    if isinstance(value, np.ndarray):
        return np.frompyfunc(_entered, 1, 1)(value) if value.dtype == object else value
    return Ball(_arb(value)) if isinstance(value, Fraction) else value


def _as_array(value: Number) -> Array:
    whole = value if isinstance(value, np.ndarray) else box(value)
    made = np.empty(whole.shape, dtype=object)
    for index, number in np.ndenumerate(whole):
        made[index] = number if isinstance(number, Ball) else Ball(_arb(number))
    return made


DISJOINT, EQUAL, UNKNOWN = 1, 0, -1
"""What two balls say: two numbers, the same as far as they tell, or nothing."""

SHARP = 40
"""Balls that overlap agree if both are known to this many bits."""


def compared(left: Any, right: Any) -> np.ndarray:
    """What the elements of two arrays of balls say."""
    pairs = zip(left.ravel(), right.ravel(), strict=True)
    return np.array([_compared(a, b) for a, b in pairs], dtype=int).reshape(left.shape)


def _compared(a: Ball, b: Ball) -> int:
    u, v = a.value, b.value
    if not (u.is_finite() and v.is_finite()):
        return UNKNOWN
    if not u.overlaps(v):
        return DISJOINT
    small = all(w.rel_accuracy_bits() > SHARP or (w.is_exact() or abs(w) < 1e-30) for w in (u, v))
    return EQUAL if small else UNKNOWN
