"""Laurent series at 0 with rational coefficients, and those of functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import mul
from typing import Any

import sympy
from flint import ctx, fmpq, fmpq_series
from sympy.codegen.cfunctions import expm1, log1p

from symad.core.graph import Node
from symad.numbers.number_domains import as_float
from symad.ops.basic.sources import constant
from symad.ops.elementwise.powers import HALF, power
from symad.sympy_functions.scalar_functions import sigmoid

ORDER, FEW = 48, 6
"""The coefficients computed, and at first."""


@dataclass(frozen=True)
class Laurent:
    """t^order (s₀ + s₁ t + ...) with s₀ ≠ 0; ``pole``: whether what it was made from has no value at 0."""

    order: int
    series: fmpq_series
    pole: bool = False

    def __mul__(self, other: Laurent) -> Laurent:
        return Laurent(self.order + other.order, self.series * other.series, self.pole or other.pole)

    def power(self, exponent: int | Fraction) -> Laurent | None:
        """A power; those that are not whole exist for series that start with 1."""
        if isinstance(exponent, int):
            made = Laurent(0, fmpq_series([1]), self.pole or self.order * exponent < 0)
            one = self if exponent > 0 else Laurent(-self.order, 1 / self.series, self.pole)
            for _ in range(abs(exponent)):
                made = made * one
            return made
        if self.order or self.series[0] != 1:
            return None
        return Laurent(0, (self.series.log() * exact_number(exponent)).exp(), self.pole)


@contextmanager
def first(n: int) -> Iterator[None]:
    """Series with n coefficients."""
    before, ctx.cap = ctx.cap, n
    try:
        yield
    finally:
        ctx.cap = before


def exact_number(value: float | Fraction) -> fmpq:
    """A number as a rational coefficient; floats are the numbers that they are."""
    exact = Fraction(value)
    return fmpq(exact.numerator, exact.denominator)


def scaled(value: float | Fraction, order: int = 0) -> Laurent:
    """The series of one term, value t^order."""
    return Laurent(order, fmpq_series([exact_number(value)]), order < 0)


def product_of(parts: Sequence[Laurent]) -> Laurent:
    """The product of series."""
    return reduce(mul, parts)


def sum_of(given: Sequence[Laurent]) -> Laurent | None:
    """The sum of series; None where no coefficient is left, or their orders lie far apart."""
    lowest = min(part.order for part in given)
    if max(part.order for part in given) - lowest >= ORDER:
        return None
    total = fmpq_series([0])
    for part in given:
        total += part.series * fmpq_series([0] * (part.order - lowest) + [1])
    return _normal(lowest, total, any(part.pole for part in given))


def _normal(order: int, series: fmpq_series, pole: bool) -> Laurent | None:
    """The series from its first coefficient that is not 0; None where all of those known are 0."""
    start = series.valuation()
    coefficients = series.coeffs()
    if start < 0 or start >= len(coefficients):
        return None
    return Laurent(order + start, fmpq_series(coefficients[start:], prec=series.prec - start), pole)


Rule = Callable[[Laurent], "Laurent | None"]


def _at_zero(value: Callable[[fmpq_series], fmpq_series]) -> Rule:
    """A function with a series at 0, of an argument that is 0 there."""

    def rule(part: Laurent) -> Laurent | None:
        if part.order <= 0:
            return None
        return _normal(0, value(part.series * fmpq_series([0] * part.order + [1])), part.pole)

    return rule


def _inverse(rule: Rule) -> Rule:
    def inverted(part: Laurent) -> Laurent | None:
        made = rule(part)
        return None if made is None else made.power(-1)

    return inverted


def _log(part: Laurent) -> Laurent | None:
    return _normal(0, part.series.log(), part.pole) if part.order == 0 and part.series[0] == 1 else None


def _named(name: str) -> Rule:
    return _at_zero(lambda x: getattr(x, name)())


SERIES: dict[Any, Rule] = {
    **{
        getattr(sympy, name): _named(name)
        for name in ("exp", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "atan", "asinh", "atanh")
    },
    **{
        head: _inverse(_named(name))
        for head, name in (
            (sympy.cot, "tan"), (sympy.sec, "cos"), (sympy.csc, "sin"),
            (sympy.coth, "tanh"), (sympy.sech, "cosh"), (sympy.csch, "sinh"),
        )
    },
    sympy.log: _log,
    log1p: _at_zero(lambda x: (1 + x).log()),
    expm1: _at_zero(lambda x: x.exp() - 1),
    sigmoid: _at_zero(lambda x: 1 / (1 + (-x).exp())),
    sympy.erf: _at_zero(lambda x: 2 * ((-(x * x)).exp() * x.derivative()).integral()),
    sympy.erfi: _at_zero(lambda x: 2 * ((x * x).exp() * x.derivative()).integral()),
}  # fmt: skip
"""The series of functions by those of their arguments, up to a factor."""

ROOT_OF_PI, ROUNDED = power(constant(sympy.pi), constant(HALF)), constant(as_float(sympy.sqrt(sympy.pi)))
FACTORS: dict[Any, tuple[tuple[Node, int], ...]] = {
    head: ((ROUNDED, -1),) for head in (sympy.erf, sympy.erfi)
}
"""The factors of functions whose series have no rational coefficients."""
