"""Functions of balls of Arb: their values, where they have none, their infinities and their limits.

One row says what one function does; a function without a row has values that are not known there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flint
import mpmath
import sympy
from flint import arb
from sympy.codegen import cfunctions

from symad.core.arrays import Number
from symad.functions import relu, sigmoid, silu, softplus
from symad.numbers.function_values import mpmath_function

NAN = arb("nan")


def sign_of(a: flint.arb) -> int | None:
    """The sign of a ball; None where it is not known."""
    if a > 0:
        return 1
    if a < 0:
        return -1
    return 0 if a.is_exact() and a == 0 else None


def _step(a: flint.arb) -> flint.arb:
    """The sign; NaN where it is not known."""
    sign = sign_of(a)
    return NAN if sign is None else arb(sign)


def _floor(a: flint.arb) -> flint.arb:
    """The integer part; NaN where a ball holds an integer."""
    whole = a.floor()
    return whole if whole.is_exact() and not (a.contains_integer() and not a.is_exact()) else NAN


FUNCTIONS: dict[sympy.FunctionClass, Callable[..., Number]] = {
    sympy.exp: arb.exp, sympy.sin: arb.sin, sympy.cos: arb.cos, sympy.tan: arb.tan, sympy.cot: arb.cot,
    sympy.sec: arb.sec, sympy.csc: arb.csc, sympy.sinh: arb.sinh, sympy.cosh: arb.cosh, sympy.tanh: arb.tanh,
    sympy.coth: arb.coth, sympy.sech: arb.sech, sympy.csch: arb.csch, sympy.asin: arb.asin,
    sympy.acos: arb.acos, sympy.atan: arb.atan,
    sympy.asinh: arb.asinh, sympy.acosh: arb.acosh, sympy.atanh: arb.atanh,
    sympy.atan2: lambda y, x: arb.atan2(y, x),
    sympy.log: lambda a, *b: a.log() / b[0].log() if b else a.log(),
    cfunctions.log1p: arb.log1p, cfunctions.expm1: arb.expm1,
    sympy.erf: arb.erf, sympy.erfc: arb.erfc, sympy.erfi: arb.erfi, sympy.gamma: arb.gamma,
    sympy.loggamma: lambda a: a.lgamma() if a > 0 else NAN, sympy.digamma: arb.digamma, sympy.Abs: abs,
    sympy.sign: _step, sympy.floor: _floor, sympy.ceiling: lambda a: -_floor(-a),
    sympy.frac: lambda a: a - _floor(a), sympy.Mod: lambda a, b: a - b * _floor(a / b),
    sympy.Heaviside: lambda a, at=None: (1 + _step(a)) / 2 if at is None or a != 0 else at,
    sympy.sinc: arb.sinc, sympy.factorial: arb.fac,
    sympy.besselj: lambda n, x: x.bessel_j(n), sympy.bessely: lambda n, x: x.bessel_y(n),
    sympy.besseli: lambda n, x: x.bessel_i(n), sympy.besselk: lambda n, x: x.bessel_k(n),
}  # fmt: skip
"""The functions that Arb has."""


def _is_pole(a: flint.arb) -> bool:
    return bool(a.is_exact() and a.is_integer() and a <= 0)


def _is_zero(a: flint.arb) -> bool:
    return sign_of(a) == 0


OUTSIDE: dict[sympy.FunctionClass, Callable[..., bool]] = {
    sympy.log: lambda a, *b: a < 0 or any(c <= 0 for c in b), cfunctions.log1p: lambda a: a < -1,
    cfunctions.log2: lambda a: a < 0, cfunctions.log10: lambda a: a < 0, sympy.loggamma: lambda a: a < 0,
    sympy.asin: lambda a: abs(a) > 1, sympy.acos: lambda a: abs(a) > 1, sympy.atanh: lambda a: abs(a) > 1,
    sympy.acosh: lambda a: a < 1, sympy.acoth: lambda a: abs(a) < 1, sympy.asec: lambda a: abs(a) < 1,
    sympy.acsc: lambda a: abs(a) < 1, sympy.asech: lambda a: a <= 0 or a > 1, sympy.acsch: _is_zero,
    sympy.gamma: _is_pole, sympy.digamma: _is_pole, sympy.factorial: lambda a: _is_pole(a + 1),
    sympy.cot: _is_zero, sympy.csc: _is_zero, sympy.coth: _is_zero, sympy.csch: _is_zero,
    sympy.Mod: lambda a, b: _is_zero(b), sympy.erfinv: lambda a: abs(a) > 1,
    sympy.erfcinv: lambda a: a < 0 or a > 2, sympy.bessely: lambda n, x: x <= 0,
    sympy.besselk: lambda n, x: x <= 0,
}  # fmt: skip
"""Where functions are shown to have no real value."""

ENDS: dict[sympy.FunctionClass, dict[int, int]] = {
    sympy.log: {0: -1}, cfunctions.log1p: {-1: -1}, cfunctions.log2: {0: -1}, cfunctions.log10: {0: -1},
    sympy.loggamma: {0: 1}, sympy.atanh: {1: 1, -1: -1}, sympy.erfinv: {1: 1, -1: -1},
    sympy.erfcinv: {0: 1, 2: -1},
}  # fmt: skip
"""Where functions of one argument are +∞ or −∞: the point and the sign."""

LIMITS: dict[sympy.FunctionClass, tuple[Any, Any]] = {
    sympy.exp: (0, "+"), cfunctions.exp2: (0, "+"), cfunctions.expm1: (-1, "+"), sympy.log: (None, "+"),
    cfunctions.log1p: (None, "+"), cfunctions.log2: (None, "+"), cfunctions.log10: (None, "+"),
    sympy.sinh: ("-", "+"), sympy.cosh: ("+", "+"), sympy.tanh: (-1, 1), sympy.coth: (-1, 1),
    sympy.sech: (0, 0), sympy.csch: (0, 0), sympy.asinh: ("-", "+"), sympy.acosh: (None, "+"),
    sympy.erf: (-1, 1), sympy.erfc: (2, 0), sympy.erfi: ("-", "+"), sympy.Abs: ("+", "+"),
    sympy.sign: (-1, 1), sympy.floor: ("-", "+"), sympy.ceiling: ("-", "+"), sympy.gamma: (None, "+"),
    sympy.loggamma: (None, "+"), sympy.digamma: (None, "+"), sympy.Heaviside: (0, 1), sympy.sin: (None, None),
    sympy.cos: (None, None), sympy.tan: (None, None), sympy.acoth: (0, 0), sympy.sinc: (0, 0),
    sigmoid: (0, 1), relu: (0, "+"), softplus: (0, "+"), silu: (0, "+"),
}  # fmt: skip
"""The limits at −∞ and +∞: a number, the sign of an infinity, or None for no value."""


def named_ball(value: sympy.Expr) -> flint.arb:
    """A number with a name, such as pi, at the precision in use."""
    known = {sympy.pi: arb.pi, sympy.E: arb.const_e, sympy.EulerGamma: arb.const_euler}
    if value in known:
        return known[value]()
    with mpmath.workprec(flint.ctx.prec + 20):
        return _from_mpmath(mpmath.mpf(value.evalf(mpmath.mp.dps + 5)._mpf_), 2 - flint.ctx.prec)


def ball_by_mpmath(head: sympy.FunctionClass, arguments: Sequence[flint.arb]) -> flint.arb:
    """A function that Arb lacks: mpmath's value at the midpoints, in two precisions.

    What they differ by, and by how much the value moves over the balls, bounds the error, times a safety
    factor.
    """
    bits = flint.ctx.prec
    function = mpmath_function(head)
    try:
        with mpmath.workprec(2 * bits):
            middle = [to_mpmath(a.mid()) for a in arguments]
            fine = _real(function(*middle))
            edges = [[to_mpmath(end(a)) for a in arguments] for end in (arb.lower, arb.upper)]
            moved = max(abs(_real(function(*edge)) - fine) for edge in edges)
        with mpmath.workprec(bits):
            error = abs(_real(function(*middle)) - fine)
    except (ValueError, ZeroDivisionError, OverflowError, TypeError, mpmath.libmp.NoConvergence):
        return arb("nan")
    with mpmath.workprec(2 * bits):
        radius = 64 * (error + moved)
        exponent = int(mpmath.mag(radius)) if radius else int(mpmath.mag(fine) if fine else 0) - bits
    return _from_mpmath(fine, max(exponent, (int(mpmath.mag(fine)) if fine else 0) - bits + 6))


def _real(value: mpmath.mpf) -> mpmath.mpf:
    value = mpmath.mpmathify(value)
    if isinstance(value, mpmath.mpc) and value.imag:
        raise ValueError("complex")
    if not mpmath.isfinite(value):
        raise ValueError("infinite")
    return mpmath.re(value)


def to_mpmath(value: flint.arb) -> Number:
    """The midpoint of a ball, exactly."""
    value = value.mid()
    mantissa, exponent = value.man_exp()
    return mpmath.mp.make_mpf(mpmath.libmp.from_man_exp(int(mantissa), int(exponent)))


def _from_mpmath(value: mpmath.mpf, exponent: int) -> flint.arb:
    """The ball of radius 2^exponent around a number."""
    sign, mantissa, power, _ = value._mpf_
    exact = arb((-int(mantissa) if sign else int(mantissa), int(power)))
    return exact + arb(0, arb((1, exponent)))
