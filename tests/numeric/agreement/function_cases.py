"""Scalar functions with their values by mpmath, written by hand: the references of `test_backends_agree`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
import scipy.special as sc
import sympy as sp
from sympy.codegen import cfunctions
from sympy.codegen.numpy_nodes import logaddexp
from sympy.functions.special.elliptic_integrals import elliptic_e, elliptic_k

from symad.sympy_functions import scalar_functions as own

SMALL = [0.0, 1e-9, -1e-9, 2.0**-30]
MIDDLE = [0.3, -0.7, 0.9, 1.7, -2.6, 4.2]
LARGE = [20.0, -40.0, 90.0, -700.0]
HUGE = [1e5, -1e10]


class Case(NamedTuple):
    """A function, its value by mpmath, and where it is asked."""

    function: Any
    exact: Callable[..., Any]
    points: tuple[float, ...] = (*SMALL, *MIDDLE, *LARGE, *HUGE)
    kinks: tuple[float, ...] = ()
    """Where no derivative is compared."""
    ulps: float = 8
    """Of the value, times its condition number. More than 8 only where SciPy itself keeps no more."""
    slopes: float = 64
    """Of the derivatives. More than 64 only where formulas of derivatives are differences of larger terms."""
    digits: int = 700
    """Of the exact value: exp(−700) has to be seen beside 1; special functions take long with so many."""
    cancels: bool = False
    """Whether second derivatives are differences: 1/r − x²/r³, right beside 1/r."""


INSIDE = (*SMALL, 0.3, -0.7, 0.999, -0.25)
POSITIVE = (1e-9, 0.3, 0.9, 1.7, 4.2, 20.0, 90.0)
OUTSIDE = (1.7, -2.6, 20.0, -40.0, 1e5, 1.0625)
LIMITED = (*SMALL, *MIDDLE, 20.0, -15.0)
PARAMETERS = (0.3, -0.7, 0.9, 0.0, 1e-9, -1e-4)
"""Of elliptic integrals; near 0 the formulas of tables for derivatives have no digit."""
STEPS = (0.3, -0.7, 1.7, -2.6, 4.2, 20.25, -700.5)
FEW = 120
"""Digits for special functions."""


def _of(name: str) -> Callable[..., Any]:
    return getattr(mp, name)  # type: ignore[no-any-return]


SYMPY = {
    **{name: Case(getattr(sp, name), _of(name)) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "atan": Case(sp.atan, mp.atan, (*SMALL, *MIDDLE, *LARGE, 1e5)),
    **{name: Case(getattr(sp, name), _of(name)) for name in ("asinh", "exp", "sech", "erf", "erfc")},
    **{name: Case(getattr(sp, name), _of(name), INSIDE) for name in ("asin", "acos", "atanh")},
    **{name: Case(getattr(sp, name), _of(name), OUTSIDE) for name in ("acosh", "asec", "acsc", "acoth")},
    **{
        name: Case(getattr(sp, name), _of(name), (*MIDDLE, *LARGE))
        for name in ("sec", "csc", "cot", "csch", "coth")
    },
    "acot": Case(sp.acot, mp.acot, (*MIDDLE, *LARGE)),
    "acsch": Case(sp.acsch, mp.acsch, (*MIDDLE, *LARGE)),
    "asech": Case(sp.asech, mp.asech, (0.3, 0.7, 0.9375)),
    "log": Case(sp.log, mp.log, (*POSITIVE, 0.0, -1.0, 1e-300, 1.0)),
    "sqrt": Case(sp.sqrt, mp.sqrt, (*POSITIVE, 1e-300, -1.0)),
    "cube": Case(lambda x: x**3, lambda x: x**3),
    "power": Case(
        lambda x: x ** sp.Rational(5, 3), lambda x: x ** (mp.mpf(5) / 3), (*POSITIVE, -1.0), ulps=9
    ),  # 5/3 is rounded
    "inverse": Case(lambda x: 1 / x**2, lambda x: 1 / x**2, (*POSITIVE[1:], 1e-6, -0.7)),
    "log1p": Case(cfunctions.log1p, mp.log1p, (*INSIDE, 20.0, 1e5, -1.0, -2.0)),
    "expm1": Case(cfunctions.expm1, mp.expm1),
    "log2": Case(cfunctions.log2, lambda x: mp.log(x) / mp.log(2), POSITIVE),
    "log10": Case(cfunctions.log10, mp.log10, POSITIVE),
    "exp2": Case(cfunctions.exp2, lambda x: mp.mpf(2) ** x),
    "Abs": Case(sp.Abs, abs, kinks=(0.0,)),
    "sign": Case(sp.sign, mp.sign, STEPS),
    "floor": Case(sp.floor, mp.floor, STEPS),
    "ceiling": Case(sp.ceiling, mp.ceil, STEPS),
    "frac": Case(sp.frac, lambda x: x - mp.floor(x), STEPS),
    "sinc": Case(sp.sinc, mp.sinc, (*SMALL, *MIDDLE, 20.0, -40.0)),
    "gamma": Case(sp.gamma, mp.gamma, (0.3, -0.7, 1.7, -2.6, 4.2, 20.0, 90.0), digits=FEW),
    "loggamma": Case(sp.loggamma, mp.loggamma, (1e-9, 0.3, 0.9, 1.7, 4.2, 20.0, 1e5), digits=FEW),
    "digamma": Case(sp.digamma, mp.digamma, (1e-9, 0.3, 0.9, 1.7, 4.2, 20.0, 1e5), digits=FEW),
    "trigamma": Case(
        lambda x: sp.polygamma(1, x), lambda x: mp.psi(1, x), (0.3, 1.7, 4.2, 20.0, -0.7, -2.6), digits=FEW
    ),
    "factorial": Case(sp.factorial, mp.factorial, (0.3, 1.7, 4.2, 20.0), digits=FEW),
    "erfi": Case(sp.erfi, mp.erfi, LIMITED),
    "erfinv": Case(sp.erfinv, mp.erfinv, INSIDE, digits=FEW),
    "Ei": Case(sp.Ei, mp.ei, (0.3, 0.9, 1.7, 4.2, -0.7, 20.0), digits=FEW),
    "E1": Case(sp.E1, mp.e1, (0.3, 0.9, 1.7, 4.2, 20.0), digits=FEW),
    "Si": Case(sp.Si, mp.si, (*SMALL, *MIDDLE, 20.0), digits=FEW),
    "Ci": Case(sp.Ci, mp.ci, (0.3, 0.9, 1.7, 4.2, 20.0, -0.5), digits=FEW),
    "Shi": Case(sp.Shi, mp.shi, (*SMALL, *MIDDLE, 20.0), digits=FEW),
    "Chi": Case(sp.Chi, mp.chi, (0.3, 0.9, 1.7, 4.2, 20.0, -0.5), digits=FEW),
    "fresnels": Case(sp.fresnels, mp.fresnels, MIDDLE, digits=FEW),
    "fresnelc": Case(sp.fresnelc, mp.fresnelc, MIDDLE, digits=FEW),
    "airyai": Case(sp.airyai, mp.airyai, MIDDLE, ulps=10, digits=FEW),
    "airybi": Case(sp.airybi, mp.airybi, MIDDLE, digits=FEW),
    "besselj": Case(lambda x: sp.besselj(0, x), lambda x: mp.besselj(0, x), (*MIDDLE, 20.0), digits=FEW),
    "besseli": Case(lambda x: sp.besseli(1, x), lambda x: mp.besseli(1, x), MIDDLE, digits=FEW),
    "besselk": Case(
        lambda x: sp.besselk(0, x), lambda x: mp.besselk(0, x), (0.3, 0.9, 1.7, 4.2, 20.0), digits=FEW
    ),
    "bessely": Case(
        lambda x: sp.bessely(0, x), lambda x: mp.bessely(0, x), (0.3, 0.9, 1.7, 4.2, 20.0), digits=FEW
    ),
    "jn": Case(
        lambda x: sp.jn(2, x),
        lambda x: mp.sqrt(mp.pi / (2 * x)) * mp.besselj(2.5, x),
        (0.3, 1.7, 4.2),
        digits=FEW,
    ),
    "LambertW": Case(sp.LambertW, mp.lambertw, (1e-9, 0.3, 0.9, 1.7, 20.0, -0.25), digits=FEW),
    "elliptic_k": Case(elliptic_k, mp.ellipk, PARAMETERS, digits=FEW),
    "elliptic_e": Case(elliptic_e, mp.ellipe, PARAMETERS, digits=FEW),
    "sigmoid": Case(own.sigmoid, lambda x: 1 / (1 + mp.exp(-x))),
    "softplus": Case(own.softplus, lambda x: mp.log1p(mp.exp(x)) if x > -200 else mp.exp(x)),
    "logcosh": Case(own.logcosh, lambda x: mp.log(mp.cosh(x))),
    "relu": Case(own.relu, lambda x: max(x, mp.mpf(0)), kinks=(0.0,)),
    "silu": Case(own.silu, lambda x: x / (1 + mp.exp(-x))),
    "gelu": Case(own.gelu, lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2, (*SMALL, *MIDDLE, 20.0, -15.0)),
}

NUMPY = {
    "cbrt": Case(np.cbrt, lambda x: mp.sign(x) * mp.cbrt(abs(x)), (*MIDDLE, *LARGE)),
    "reciprocal": Case(np.reciprocal, lambda x: 1 / x, (*MIDDLE, *LARGE)),
    "square": Case(np.square, lambda x: x * x),
    "degrees": Case(np.degrees, mp.degrees),
    "radians": Case(np.radians, mp.radians),
    "fabs": Case(np.fabs, abs, kinks=(0.0,)),
    "trunc": Case(np.trunc, lambda x: mp.sign(x) * mp.floor(abs(x)), STEPS),
    "log_expit": Case(sc.log_expit, lambda x: -mp.log1p(mp.exp(-x)) if x < 200 else -mp.exp(-x)),
    "logit": Case(sc.logit, lambda x: mp.log(x) - mp.log1p(-x), (1e-9, 0.3, 0.75, 0.999)),
    "ndtr": Case(sc.ndtr, mp.ncdf, (1e-9, *MIDDLE, -15.0, 20.0), digits=FEW),
    "entr": Case(sc.entr, lambda x: -x * mp.log(x), POSITIVE),
    "i0e": Case(sc.i0e, lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), MIDDLE, digits=FEW),
    "x·x": Case(lambda x: x * x * 3 - x / 7, lambda x: 3 * x * x - x / 7),
    "norm": Case(lambda x: np.sqrt(x * x + 1), lambda x: mp.sqrt(x * x + 1), (*MIDDLE, *LARGE), cancels=True),
    "1 - cos": Case(lambda x: 1 - np.cos(x), lambda x: 2 * mp.sin(x / 2) ** 2, (*SMALL, *MIDDLE)),
    "exp - 1": Case(lambda x: np.exp(x) - 1, mp.expm1, LIMITED),
}

PAIRS = ((0.3, 1.7), (-0.7, 2.6), (4.2, 0.9), (1e-9, 1.0), (20.0, 18.5), (-40.0, 3.0), (5.5, -2.25))
POSITIVE_PAIRS = ((0.3, 1.7), (2.6, 0.7), (4.2, 0.9), (1e-9, 1.0), (20.0, 3.5))

BINARY = {
    "atan2": Case(sp.atan2, mp.atan2, PAIRS),  # type: ignore[arg-type]
    "hypot": Case(cfunctions.hypot, mp.hypot, PAIRS, cancels=True),  # type: ignore[arg-type]
    "logaddexp": Case(logaddexp, lambda a, b: mp.log(mp.exp(a) + mp.exp(b)), PAIRS),  # type: ignore[arg-type]
    "Max": Case(sp.Max, max, PAIRS),  # type: ignore[arg-type]
    "Min": Case(sp.Min, min, PAIRS),  # type: ignore[arg-type]
    "quotient": Case(lambda a, b: a / b, lambda a, b: a / b, PAIRS),  # type: ignore[arg-type]
    "xlogy": Case(own.xlogy, lambda a, b: a * mp.log(b), POSITIVE_PAIRS),  # type: ignore[arg-type]
    "power of two": Case(lambda a, b: a**b, lambda a, b: a**b, POSITIVE_PAIRS),  # type: ignore[arg-type]
    "beta": Case(sp.beta, mp.beta, ((0.3, 1.7), (2.6, 0.7), (4.2, 0.9)), digits=FEW),  # type: ignore[arg-type]
}
