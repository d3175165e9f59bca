"""Values of SymPy expressions by mpmath alone, without symad, which decide the pairs."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

import mpmath
import sympy as sp

DIGITS = 40
CLOSE = mpmath.mpf(10) ** -25
"""Values with a relative difference below this count as equal up to rounding."""

Point = Mapping[Any, Any]

FUNCTIONS = {
    sp.log: mpmath.log, sp.sin: mpmath.sin, sp.cos: mpmath.cos, sp.tan: mpmath.tan, sp.exp: mpmath.exp,
    sp.sinh: mpmath.sinh, sp.cosh: mpmath.cosh, sp.tanh: mpmath.tanh, sp.atan: mpmath.atan,
    sp.asin: mpmath.asin, sp.acos: mpmath.acos, sp.asinh: mpmath.asinh, sp.acosh: mpmath.acosh,
    sp.atanh: mpmath.atanh, sp.floor: mpmath.floor, sp.ceiling: mpmath.ceil, sp.Abs: abs,
    sp.sign: mpmath.sign, sp.Max: max, sp.Min: min, sp.erf: mpmath.erf,
    sp.Heaviside: lambda u, at=0.5: mpmath.mpf(at if u == 0 else u > 0),
    sp.Mod: lambda a, b: a - b * mpmath.floor(a / b),
}  # fmt: skip

RELATIONS = {
    sp.Gt: lambda a, b: a > b, sp.Ge: lambda a, b: a >= b, sp.Lt: lambda a, b: a < b,
    sp.Le: lambda a, b: a <= b, sp.Eq: lambda a, b: a == b, sp.Ne: lambda a, b: a != b,
}  # fmt: skip


class NoValue(ArithmeticError):
    """An expression has no real value at a point."""


def value(e: Any, point: Point) -> Any:
    """The real value of an expression; branches that are not taken need no value.

    Raises:
        NoValue: the expression has no real value.
    """
    if e.is_Symbol:
        return point[e]
    if e.is_Number or e.is_NumberSymbol:
        return mpmath.mpf(e.p) / e.q if e.is_Rational else mpmath.mpmathify(e.evalf(DIGITS))
    if isinstance(e, sp.Piecewise):
        return value(next(branch for branch, condition in e.args if truth(condition, point)), point)
    args = [value(a, point) for a in e.args]
    try:
        return _real(_combined(e, args))
    except (ZeroDivisionError, ValueError, OverflowError):
        raise NoValue(str(e)) from None


def _combined(e: Any, args: list[Any]) -> Any:
    if e.is_Add:
        return mpmath.fsum(args)
    if e.is_Mul:
        return mpmath.fprod(args)
    if e.is_Pow:
        return args[0] ** (int(args[1]) if e.exp.is_Integer else args[1])
    return FUNCTIONS[e.func](*args)


def _real(number: Any) -> Any:
    if isinstance(number, mpmath.mpc):
        if number.imag:
            raise NoValue("complex")
        number = number.real
    if not mpmath.isfinite(number):
        raise NoValue("infinite")
    return number


def truth(condition: Any, point: Point) -> bool:
    """The truth of a condition."""
    if condition in (sp.true, sp.false):
        return bool(condition)
    if isinstance(condition, sp.Not):
        return not truth(condition.args[0], point)
    if isinstance(condition, (sp.And, sp.Or)):
        parts = [truth(c, point) for c in condition.args]
        return all(parts) if isinstance(condition, sp.And) else any(parts)
    return bool(RELATIONS[condition.func](*[value(a, point) for a in condition.args]))


def number(symbol: Any, rng: random.Random) -> Any:
    """A random number that the assumptions of a symbol allow: no integer and no multiple of another."""
    if symbol.is_integer:
        return mpmath.mpf(rng.randrange(1 if symbol.is_positive else -9, 10))
    size = mpmath.mpf(rng.randrange(1, 4000)) / rng.choice([397, 1009, 4001, 97]) + mpmath.mpf(1) / 100_003
    return size if symbol.is_positive or rng.random() < 0.5 else -size


def apart(symbols: list[Any], rng: random.Random) -> Point:
    """Numbers of different sizes, because nothing is claimed at ties."""
    while True:
        point = {s: number(s, rng) for s in symbols}
        sizes = [abs(v) for s, v in point.items() if not s.is_integer]
        if len(set(sizes)) == len(sizes):
            return point


def elements(side: Any) -> list[Any]:
    """The elements of an expression, a matrix, or a list of these."""
    if isinstance(side, (list, tuple)):
        return [e for part in side for e in elements(part)]
    return list(side) if isinstance(side, sp.MatrixBase) else [side]


def compare(left: Any, right: Any, rng: random.Random, wanted: int = 12) -> Point | bool | None:
    """A point at which some element differs, True if there is none, None if few points have values.

    Each element counts where both of its own sides have a value.
    """
    sides = list(zip(elements(left), elements(right), strict=True))
    symbols = sorted({s for pair in sides for e in pair for s in e.free_symbols}, key=sp.default_sort_key)
    met = [0] * len(sides)
    with mpmath.workdps(DIGITS):
        for _ in range(6 * wanted):
            point = apart(symbols, rng)
            for k, (a, b) in enumerate(sides):
                if met[k] < wanted:
                    differs = differ(a, b, point)
                    if differs:
                        return point
                    met[k] += differs is not None
            if min(met) >= wanted:
                return True
    return True if min(met) >= min(wanted, 3) else None


def differ(a: Any, b: Any, point: Point) -> bool | None:
    """True if two expressions differ at a point; None if one has no value there."""
    try:
        u, v = value(a, point), value(b, point)
    except NoValue:
        return None
    return bool(abs(u - v) > CLOSE * max(abs(u), abs(v)))


def differ_anywhere(pairs: Iterable[tuple[Any, Any]]) -> bool:
    """True if the two numbers of some pair differ; pairs with NaN do not count."""
    return any(
        mpmath.isfinite(u) and mpmath.isfinite(v) and abs(u - v) > CLOSE * max(abs(u), abs(v))
        for u, v in pairs
    )
