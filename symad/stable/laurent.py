"""Laurent series at 0 with rational coefficients, of nodes in one variable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

import sympy
from flint import ctx, fmpq, fmpq_series
from sympy.codegen.cfunctions import expm1, log1p

from symad.core.arrays import Number
from symad.core.graph import Node
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.sources import constant_value, is_exact
from symad.ops.elementwise.powers import HALF, Pow
from symad.stable.normal_forms import head_of
from symad.sympy_functions.scalar_functions import sigmoid

ORDER, FEW = 48, 6
"""The coefficients computed, and at first."""


@dataclass(frozen=True)
class Laurent:
    """t^order (s₀ + s₁ t + ...) with s₀ ≠ 0."""

    order: int
    series: fmpq_series


@contextmanager
def first(n: int) -> Iterator[None]:
    """Series with n coefficients."""
    before, ctx.cap = ctx.cap, n
    try:
        yield
    finally:
        ctx.cap = before


def laurent(node: Node, t: Node, known: dict[Node, Laurent | None]) -> Laurent | None:
    """The series of a value at t = 0; None if it has none with rational coefficients."""
    if node not in known:
        known[node] = Laurent(1, fmpq_series([1])) if node is t else _laurent(node, t, known)
    return known[node]


def _laurent(node: Node, t: Node, known: dict[Node, Laurent | None]) -> Laurent | None:
    value = constant_value(node)
    if value is not None:
        exact = is_exact(value) or isinstance(value, float)
        return Laurent(0, fmpq_series([exact_number(value)])) if exact and value else None
    parts = [laurent(a, t, known) for a in node.args]
    given = [part for part in parts if part is not None]
    if len(given) < len(parts):
        return None
    if type(node.op) is Add:
        return sum_of(node.op.signs, given)
    if type(node.op) is Mul:
        order = sum(p * part.order for p, part in zip(node.op.powers, given, strict=True))
        series = fmpq_series([1])
        for p, part in zip(node.op.powers, given, strict=True):
            series = series * part.series if p > 0 else series / part.series
        return Laurent(order, series)
    if type(node.op) is Pow:
        return _power(given[0], constant_value(node.args[1]))
    rule = SERIES.get(head_of(node)) if len(given) == 1 else None
    return None if rule is None else rule(given[0])


def exact_number(value: float | Fraction) -> fmpq:
    """A number as a rational coefficient; floats are the numbers that they are."""
    exact = Fraction(value)
    return fmpq(exact.numerator, exact.denominator)


def sum_of(signs: tuple[int, ...], parts: list[Laurent]) -> Laurent | None:
    """The sum of series; None where no coefficient is left, or their orders lie far apart."""
    lowest = min(part.order for part in parts)
    if max(part.order for part in parts) - lowest >= ORDER:
        return None
    total = fmpq_series([0])
    for sign, part in zip(signs, parts, strict=True):
        total += sign * part.series * fmpq_series([0] * (part.order - lowest) + [1])
    return _normal(lowest, total)


def _normal(order: int, series: fmpq_series) -> Laurent | None:
    """The series from its first coefficient that is not 0; None where all of those known are 0."""
    start = series.valuation()
    coefficients = series.coeffs()
    if start < 0 or start >= len(coefficients):
        return None
    return Laurent(order + start, fmpq_series(coefficients[start:], prec=series.prec - start))


def _power(base: Laurent, exponent: Number) -> Laurent | None:
    if isinstance(exponent, int) and 0 < exponent <= ORDER:
        series = fmpq_series([1])
        for _ in range(exponent):
            series = series * base.series
        return Laurent(base.order * exponent, series)
    if base.order or base.series[0] != 1 or not isinstance(exponent, Fraction):
        return None
    if exponent == HALF:
        return Laurent(0, base.series.sqrt())
    return Laurent(0, (base.series.log() * exact_number(exponent)).exp())


def _whole(part: Laurent) -> fmpq_series:
    """The argument of a function, as a power series."""
    return part.series * fmpq_series([0] * part.order + [1])


def _at_zero(name: str) -> Callable[[Laurent], Laurent | None]:
    """A function with a series at 0, of an argument that is 0 there."""
    return lambda part: _normal(0, getattr(_whole(part), name)()) if part.order > 0 else None


def _inverse(rule: Callable[[Laurent], Laurent | None]) -> Callable[[Laurent], Laurent | None]:
    def inverted(part: Laurent) -> Laurent | None:
        made = rule(part)
        return None if made is None else Laurent(-made.order, 1 / made.series)

    return inverted


def _log(part: Laurent) -> Laurent | None:
    return _normal(0, part.series.log()) if part.order == 0 and part.series[0] == 1 else None


SERIES: dict[sympy.FunctionClass, Callable[[Laurent], Laurent | None]] = {
    **{
        getattr(sympy, name): _at_zero(name)
        for name in ("exp", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "atan", "asinh", "atanh")
    },
    **{
        head: _inverse(_at_zero(name))
        for head, name in (
            (sympy.cot, "tan"), (sympy.sec, "cos"), (sympy.csc, "sin"),
            (sympy.coth, "tanh"), (sympy.sech, "cosh"), (sympy.csch, "sinh"),
        )
    },
    sympy.log: _log,
    log1p: lambda part: _normal(0, (1 + _whole(part)).log()) if part.order > 0 else None,
    expm1: lambda part: _normal(0, _whole(part).exp() - 1) if part.order > 0 else None,
    sigmoid: lambda part: _normal(0, 1 / (1 + (-_whole(part)).exp())) if part.order > 0 else None,
}  # fmt: skip
"""The series by functions."""
