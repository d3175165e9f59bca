"""The ranges of the arguments of every scalar function, and random points in them."""

from __future__ import annotations

import random
from typing import Any

import mpmath
import sympy
from sympy.codegen import cfunctions
from sympy.codegen.numpy_nodes import logaddexp
from sympy.functions.special.elliptic_integrals import elliptic_e, elliptic_f, elliptic_k, elliptic_pi

from symad import functions
from symad.sympy_functions.elliptic_moments import elliptic_moment
from symad.sympy_functions.probability import (
    gammainc,
    gammaincc,
    ive,
    log_ndtr,
    normal_excess,
    normal_ratio,
    stdtr,
)
from symad.sympy_functions.scalar_functions import logcosh
from symad.sympy_functions.special_functions import (
    hyp0f1,
    hyp1f1,
    hyp2f1,
    owens_t,
    polylog_slope,
    spherical_in,
    voigt_dispersion,
    voigt_profile,
)
from symad.tracing.from_sympy.parameter_derivatives import COMPANIONS, PARAMETERS

WIDE, UNIT, ABOVE, POSITIVE = (-3.0, 3.0), (-0.95, 0.95), (1.05, 4.0), (0.1, 4.0)

# For each function the ranges of its arguments; a tuple of ints stands for orders to choose from.
DOMAINS: dict[Any, tuple[Any, ...]] = {
    **dict.fromkeys(
        [sympy.sin, sympy.cos, sympy.sinh, sympy.cosh, sympy.tanh, sympy.atan, sympy.asinh, sympy.exp],
        (WIDE,),
    ),
    **dict.fromkeys([sympy.tan, sympy.sec], ((-1.4, 1.4),)),
    **dict.fromkeys([sympy.cot, sympy.csc, sympy.csch, sympy.coth, sympy.acsch, sympy.acot], (POSITIVE,)),
    **dict.fromkeys([sympy.asin, sympy.acos, sympy.atanh, sympy.erfinv], (UNIT,)),
    **dict.fromkeys([sympy.acosh, sympy.asec, sympy.acsc, sympy.acoth], (ABOVE,)),
    **dict.fromkeys([sympy.log, cfunctions.log2, cfunctions.log10], (POSITIVE,)),
    **dict.fromkeys([sympy.sech, sympy.sinc, sympy.erf, sympy.erfc, sympy.erfi, cfunctions.expm1], (WIDE,)),
    **dict.fromkeys([cfunctions.exp2, sympy.Abs, sympy.sign, sympy.floor, sympy.ceiling], (WIDE,)),
    **dict.fromkeys([sympy.frac, sympy.Heaviside], (WIDE,)),
    cfunctions.log1p: ((-0.9, 4.0),),
    cfunctions.hypot: (WIDE, WIDE),
    logaddexp: (WIDE, WIDE),
    logcosh: (WIDE,),
    sympy.asech: ((0.05, 0.95),),
    sympy.atan2: (WIDE, WIDE),
    sympy.Mod: (WIDE, POSITIVE),
    sympy.Max: (WIDE, WIDE),
    sympy.Min: (WIDE, WIDE),
    **dict.fromkeys([sympy.gamma, sympy.loggamma, sympy.digamma, sympy.factorial], (POSITIVE,)),
    sympy.polygamma: ((0, 1, 2), POSITIVE),
    sympy.binomial: ((4.0, 7.0), (0.5, 3.0)),
    sympy.beta: (POSITIVE, POSITIVE),
    sympy.erfcinv: ((0.1, 1.9),),
    **dict.fromkeys([sympy.besselj, sympy.bessely, sympy.besseli, sympy.besselk], ((0, 1, 3), POSITIVE)),
    **dict.fromkeys([sympy.jn, sympy.yn], ((1, 2), POSITIVE)),
    **dict.fromkeys([sympy.airyai, sympy.airybi, sympy.airyaiprime, sympy.airybiprime], (WIDE,)),
    **dict.fromkeys([sympy.Ei, sympy.E1, sympy.Si, sympy.Ci, sympy.Shi, sympy.Chi], (POSITIVE,)),
    **dict.fromkeys([sympy.fresnels, sympy.fresnelc], (WIDE,)),
    sympy.LambertW: (POSITIVE,),
    sympy.zeta: ((2, 3), POSITIVE),
    elliptic_k: (UNIT,),
    **dict.fromkeys([elliptic_e, elliptic_f], ((-1.4, 1.4), UNIT)),
    elliptic_pi: ((-0.9, 0.9), (-1.4, 1.4), UNIT),
    elliptic_moment: ((0, 1, 2), (0, 1), (0, 1), (-0.9, 0.9), (-1.4, 1.4), UNIT),
    **dict.fromkeys([sympy.lowergamma, gammainc, gammaincc], (POSITIVE, POSITIVE)),
    **dict.fromkeys([sympy.uppergamma, sympy.expint], (WIDE, POSITIVE)),
    sympy.polylog: ((2, 3, -1), UNIT),
    **dict.fromkeys([sympy.betainc, sympy.betainc_regularized], (POSITIVE, POSITIVE, (0.1, 0.4), (0.5, 0.9))),
    ive: ((0, 1, 3), WIDE),
    **dict.fromkeys([log_ndtr, normal_ratio, normal_excess], (WIDE,)),
    stdtr: (POSITIVE, WIDE),
    **dict.fromkeys([sympy.legendre, sympy.chebyshevt, sympy.chebyshevu], ((2, 5), UNIT)),
    **dict.fromkeys([sympy.hermite, sympy.laguerre], ((2, 5), WIDE)),
    sympy.assoc_laguerre: ((2, 4), (0.5, 2.0), WIDE),
    sympy.assoc_legendre: ((2, 4), (0, 2), UNIT),
    sympy.gegenbauer: ((2, 4), (0.5, 2.0), UNIT),
    sympy.jacobi: ((2, 3), (0.5, 2.0), (0.5, 2.0), UNIT),
    **dict.fromkeys(
        [functions.sigmoid, functions.softplus, functions.relu, functions.silu, functions.gelu], (WIDE,)
    ),
    functions.xlogy: (POSITIVE, POSITIVE),
    hyp0f1: (POSITIVE, WIDE),
    hyp1f1: (WIDE, POSITIVE, WIDE),
    hyp2f1: (WIDE, WIDE, POSITIVE, (-0.9, 0.7)),
    owens_t: (WIDE, WIDE),
    spherical_in: ((0, 1, 3), WIDE),
    polylog_slope: ((1, 2), (0.5, 3.5), UNIT),
    **dict.fromkeys([voigt_profile, voigt_dispersion], (WIDE, POSITIVE, POSITIVE)),
}
DOMAINS |= {made: (((0, 1),) * len(PARAMETERS[head]) + DOMAINS[head]) for head, made in COMPANIONS.items()}


def points(domain: tuple[Any, ...], rng: random.Random) -> list[Any]:
    """Arguments: ints for orders, else rationals with small denominators."""
    found = []
    for part in domain:
        if all(isinstance(p, int) for p in part):
            found.append(rng.choice(part))
        else:
            found.append(mpmath.mpf(rng.randrange(int(part[0] * 97), int(part[1] * 97) + 1)) / 97)
    return found
