"""Balls of Arb of numbers with a name, and of functions that Arb lacks, by mpmath."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import flint
import mpmath
import numpy as np
import sympy
from flint import arb

from symad.core.arrays import Number
from symad.errors import EvaluationError
from symad.numbers.function_values import mpmath_function
from symad.numbers.number_domains import UndefinedValue


def ball_of(value: Any) -> flint.arb:
    """A ball of a number of any kind, NaN where there is none; floats are their exact binary values."""
    if type(value) is int or type(value) is float:
        return arb(value)
    if isinstance(value, sympy.NumberSymbol):
        return named_ball(value)
    if isinstance(value, UndefinedValue):
        return arb("nan")
    if isinstance(value, sympy.Basic):
        if value in (sympy.oo, -sympy.oo):
            return arb("inf") if value == sympy.oo else arb("-inf")
        if not isinstance(value, (sympy.Rational, sympy.Float)):
            return arb("nan")
        exact = sympy.Rational(value)
        value = Fraction(int(exact.p), int(exact.q))
    if isinstance(value, np.generic):
        value = value.item()
    return arb(value.numerator) / value.denominator if isinstance(value, Fraction) else arb(value)


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
    except (ArithmeticError, ValueError, TypeError, EvaluationError, mpmath.libmp.NoConvergence):
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
