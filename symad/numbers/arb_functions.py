"""Special functions to many digits by Arb, where mpmath would sum slow series.

Arb gives a ball that contains the value; its midpoint is used if the ball is narrower than one rounding
of the working precision. Everything else, such as a value outside the real domain, is left to mpmath.

Source: Johansson (2017), "Arb: efficient arbitrary-precision midpoint-radius interval arithmetic".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import flint
import mpmath
import sympy
from flint import arb

from symad.core.arrays import Number

GUARD = 30
"""Bits beyond the working precision; cancellation inside a function may need more."""

ATTEMPTS = 3
"""The number of times that the bits are doubled."""

MAX_ARB_ARGUMENT = 10**4
"""Larger arguments are left to mpmath, whose series end early there."""


def _polygamma(n: flint.arb, x: flint.arb) -> flint.arb:
    """ψ⁽ⁿ⁾(x) = (−1)ⁿ⁺¹ n! ζ(n + 1, x) for n ≥ 1."""
    if n == 0:
        return x.digamma()
    order = n.unique_fmpz() if n.is_integer() else None
    if order is None or order < 1 or not x > 0:
        return arb("nan")
    sign = 1 if order % 2 else -1
    return sign * n.fac() * (n + 1).zeta(x)


def _zeta(s: flint.arb, a: flint.arb | None = None) -> flint.arb:
    return s.zeta() if a is None else s.zeta(a) if a > 0 else arb("nan")


def _betainc(regularized: int, a: flint.arb, b: flint.arb, low: flint.arb, high: flint.arb) -> flint.arb:
    if not (a > 0 and b > 0 and low >= 0 and high <= 1):
        return arb("nan")
    return high.beta_lower(a, b, regularized) - (low.beta_lower(a, b, regularized) if low > 0 else 0)


FUNCTIONS: dict[sympy.FunctionClass, Callable[..., arb]] = {
    sympy.besselj: lambda n, x: x.bessel_j(n), sympy.bessely: lambda n, x: x.bessel_y(n),
    sympy.besseli: lambda n, x: x.bessel_i(n), sympy.besselk: lambda n, x: x.bessel_k(n),
    sympy.gamma: arb.gamma, sympy.loggamma: lambda x: x.lgamma() if x > 0 else arb("nan"),
    sympy.polygamma: _polygamma, sympy.digamma: arb.digamma,
    sympy.zeta: _zeta,
    sympy.erf: arb.erf, sympy.erfc: arb.erfc, sympy.erfi: arb.erfi,
    sympy.erfinv: arb.erfinv, sympy.erfcinv: arb.erfcinv,
    sympy.Ei: arb.ei, sympy.Si: arb.si, sympy.Ci: arb.ci, sympy.Shi: arb.shi, sympy.Chi: arb.chi,
    sympy.li: arb.li, sympy.expint: lambda s, x: x.expint(s),
    sympy.fresnels: arb.fresnel_s, sympy.fresnelc: arb.fresnel_c,
    sympy.airyai: arb.airy_ai, sympy.airybi: arb.airy_bi,
    sympy.uppergamma: lambda s, x: x.gamma_upper(s), sympy.lowergamma: lambda s, x: x.gamma_lower(s),
    sympy.betainc: partial(_betainc, 0), sympy.betainc_regularized: partial(_betainc, 1),
    sympy.polylog: lambda s, x: x.polylog(s) if x < 1 else arb("nan"),
}  # fmt: skip
"""The functions that are slow in mpmath and that Arb has."""


def by_arb(head: sympy.FunctionClass, values: tuple[Number, ...]) -> Number | None:
    """head(*values) rounded to mpmath's working precision; None if Arb does not determine it.

    Args:
        head: a function of SymPy.
        values: mpmath numbers.
    """
    function = FUNCTIONS.get(head)
    if function is None or not all(mpmath.isfinite(v) and abs(v) < MAX_ARB_ARGUMENT for v in values):
        return None
    wanted, before = mpmath.mp.prec, flint.ctx.prec
    try:
        for attempt in range(ATTEMPTS):
            flint.ctx.prec = (wanted + GUARD) << attempt
            found = function(*[_exact(v) for v in values])
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
