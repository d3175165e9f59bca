"""Special functions to many digits by Arb, where mpmath would sum slow series.

Arb gives a ball that contains the value; its midpoint is used if the ball is narrower than one rounding
of the working precision. Everything else, such as a value outside the real domain, is left to mpmath.

Source: Johansson (2017), "Arb: efficient arbitrary-precision midpoint-radius interval arithmetic".
"""

from __future__ import annotations

import flint
import mpmath
import sympy
from flint import arb

from symad.core.arrays import Number
from symad.facts.functions import fact

GUARD = 30
"""Bits beyond the working precision; cancellation inside a function may need more."""

ATTEMPTS = 3
"""The number of times that the bits are doubled."""

MAX_ARB_ARGUMENT = 10**4
"""Larger arguments are left to mpmath, whose series end early there."""


def by_arb(head: sympy.FunctionClass, values: tuple[Number, ...]) -> Number | None:
    """head(*values) rounded to mpmath's working precision; None if Arb does not determine it.

    Args:
        head: a function of SymPy.
        values: mpmath numbers.
    """
    row = fact(head)
    if (
        row.balls is None
        or not row.slow
        or not all(mpmath.isfinite(v) and abs(v) < MAX_ARB_ARGUMENT for v in values)
    ):
        return None
    wanted, before = mpmath.mp.prec, flint.ctx.prec
    try:
        for attempt in range(ATTEMPTS):
            flint.ctx.prec = (wanted + GUARD) << attempt
            found = row.balls(*[_exact(v) for v in values])
            if found.is_nan():
                return None
            if found.is_finite() and found.rel_accuracy_bits() > wanted + 2:
                mantissa, exponent = found.mid().man_exp()
                return mpmath.ldexp(mpmath.mpf(int(mantissa)), int(exponent))
    except (ValueError, TypeError, OverflowError):
        pass
    finally:
        flint.ctx.prec = before
    return None


def _exact(value: mpmath.mpf) -> flint.arb:
    sign, mantissa, power, _ = value._mpf_
    return arb((-int(mantissa) if sign else int(mantissa), int(power)))
