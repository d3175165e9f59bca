"""Special functions of SymPy and SciPy, and NumPy's other functions, with their values by mpmath.

Parameters such as degrees are numbers, so that each is a function of one or two arguments.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
import scipy.special as sc
import sympy as sp
from sympy.codegen import cfunctions, numpy_nodes, scipy_nodes
from sympy.functions.special.elliptic_integrals import elliptic_f, elliptic_pi

from tests.numeric.agreement.function_cases import (
    FEW,
    LARGE,
    MIDDLE,
    PAIRS,
    PARAMETERS,
    POSITIVE,
    POSITIVE_PAIRS,
    STEPS,
    Case,
)

THIRD = sp.Rational(1, 3)
DEGREE = sp.Rational(5, 2)
N = mp.mpf("2.5")
A, B = sp.Rational(9, 4), sp.Rational(7, 4)
"""Parameters that are binary fractions, so that both sides compute with the same numbers."""

SOME = (0.3, 0.9, 1.7, 4.2)
UNIT = (0.0625, 0.3, 0.5, 0.9)
TO_ONE = (*UNIT, 0.9999999)


SPECIAL = {
    "airyaiprime": Case(sp.airyaiprime, lambda x: mp.airyai(x, derivative=1), MIDDLE, digits=FEW),
    "airybiprime": Case(sp.airybiprime, lambda x: mp.airybi(x, derivative=1), MIDDLE, digits=FEW),
    "chebyshevt": Case(lambda x: sp.chebyshevt(DEGREE, x), lambda x: mp.chebyt(N, x), TO_ONE, digits=FEW),
    "chebyshevu": Case(lambda x: sp.chebyshevu(DEGREE, x), lambda x: mp.chebyu(N, x), TO_ONE, digits=FEW),
    "legendre": Case(lambda x: sp.legendre(DEGREE, x), lambda x: mp.legendre(N, x), TO_ONE, digits=FEW),
    "hermite": Case(lambda x: sp.hermite(DEGREE, x), lambda x: mp.hermite(N, x), MIDDLE, digits=FEW),
    "elliptic_pi": Case(
        lambda x: elliptic_pi(sp.Rational(1, 4), x),
        lambda x: mp.ellippi(0.25, x),
        PARAMETERS,
        digits=FEW,
    ),
    "erfcinv": Case(sp.erfcinv, lambda x: mp.erfinv(1 - x), (0.3, 0.9, 1.7), digits=FEW),
    "expint": Case(lambda x: sp.expint(2, x), lambda x: mp.expint(2, x), SOME, digits=FEW),
    "lowergamma": Case(lambda x: sp.lowergamma(A, x), lambda x: mp.gammainc(2.25, 0, x), SOME, digits=FEW),
    "uppergamma": Case(lambda x: sp.uppergamma(A, x), lambda x: mp.gammainc(2.25, x), SOME, digits=FEW),
    "betainc": Case(
        lambda x: sp.betainc(A, B, 0, x), lambda x: mp.betainc(2.25, 1.75, 0, x), UNIT, digits=FEW
    ),
    "betainc_regularized": Case(
        lambda x: sp.betainc_regularized(A, B, 0, x),
        lambda x: mp.betainc(2.25, 1.75, 0, x, regularized=True),
        UNIT,
        digits=FEW,
    ),
    "polygamma": Case(
        lambda x: sp.polygamma(2, x), lambda x: mp.psi(2, x), (*SOME, 20.0, -0.7, -2.6), digits=FEW
    ),
    "polylog": Case(
        lambda x: sp.polylog(3, x), lambda x: mp.polylog(3, x), (0.3, -0.7, 0.9, 0.0, 1e-9), digits=FEW
    ),
    "yn": Case(
        lambda x: sp.yn(2, x),
        lambda x: mp.sqrt(mp.pi / (2 * x)) * mp.bessely(2.5, x),
        (0.3, 1.7, 4.2),
        digits=FEW,
    ),
    "zeta": Case(lambda x: sp.zeta(3, x), lambda x: mp.zeta(3, x), (*SOME, 20.0), digits=FEW),
    "Heaviside": Case(sp.Heaviside, lambda x: (mp.sign(x) + 1) / 2, STEPS),
    "harmonic": Case(sp.harmonic, mp.harmonic, (*SOME, 20.0), digits=FEW),
    "harmonic of order 2": Case(
        lambda x: sp.harmonic(x, 2), lambda x: mp.zeta(2) - mp.zeta(2, x + 1), SOME, digits=FEW
    ),
    "catalan": Case(
        sp.catalan,
        lambda x: 4**x * mp.gamma(x + 0.5) / (mp.sqrt(mp.pi) * mp.gamma(x + 2)),
        SOME,
        digits=FEW,
    ),
    "li": Case(sp.li, mp.li, (0.3, 1.7, 4.2, 20.0), digits=FEW),
    "Li": Case(sp.Li, lambda x: mp.li(x) - mp.li(2), (0.3, 1.7, 4.2, 20.0), digits=FEW),
    "Sqrt": Case(cfunctions.Sqrt, mp.sqrt, POSITIVE),
    "Cbrt": Case(cfunctions.Cbrt, lambda x: mp.sign(x) * mp.cbrt(abs(x)), (*MIDDLE, *LARGE), digits=FEW),
    "cosm1": Case(scipy_nodes.cosm1, lambda x: -2 * mp.sin(x / 2) ** 2, (1e-9, *MIDDLE)),
}

ALSO_NUMPY = {
    "arctan": Case(np.arctan, mp.atan, (*MIDDLE, *LARGE, 1e5)),
    "arcsinh": Case(np.arcsinh, mp.asinh),
    "exp2 of arrays": Case(np.exp2, lambda x: mp.mpf(2) ** x),
    "sqrt of arrays": Case(np.sqrt, mp.sqrt, (*POSITIVE, -1.0)),
    "signbit": Case(lambda x: np.where(np.signbit(x), 1.0, 2.0), lambda x: mp.mpf(1 if x < 0 else 2), STEPS),
    "rint": Case(np.rint, mp.nint, (0.3, -0.7, 1.7, -2.6, 20.25)),
    "sc.gamma": Case(sc.gamma, mp.gamma, (0.3, -0.7, 1.7, 4.2, 20.0), digits=FEW),
    "gammaln": Case(sc.gammaln, mp.loggamma, (1e-9, 0.3, 0.9, 1.7, 4.2, 20.0, 1e5), digits=FEW),
    "psi": Case(sc.psi, mp.digamma, (1e-9, 0.3, 0.9, 1.7, 4.2, 20.0), digits=FEW),
    "ndtri": Case(sc.ndtri, lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), (0.0625, 0.3, 0.9), digits=FEW),
    "log_ndtr": Case(
        sc.log_ndtr,
        lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2),
        (0.3, -0.7, 1.7, -3.0, -4.9, -5.1, -15.0, -200.0, 20.0),
        digits=700,
    ),
    "gammainc": Case(
        lambda x: sc.gammainc(2.25, x), lambda x: mp.gammainc(2.25, 0, x, regularized=True), SOME, digits=FEW
    ),
    "gammaincc": Case(
        lambda x: sc.gammaincc(2.25, x), lambda x: mp.gammainc(2.25, x, regularized=True), SOME, digits=FEW
    ),
    "sc.betainc": Case(
        lambda x: sc.betainc(2.25, 1.75, x),
        lambda x: mp.betainc(2.25, 1.75, 0, x, regularized=True),
        UNIT,
        digits=FEW,
    ),
    "betaincc": Case(
        lambda x: sc.betaincc(2.25, 1.75, x),
        lambda x: mp.betainc(2.25, 1.75, x, 1, regularized=True),
        UNIT,
        digits=FEW,
    ),
    "chdtr": Case(
        lambda x: sc.chdtr(4.5, x), lambda x: mp.gammainc(2.25, 0, x / 2, regularized=True), SOME, digits=FEW
    ),
    "chdtrc": Case(
        lambda x: sc.chdtrc(4.5, x), lambda x: mp.gammainc(2.25, x / 2, regularized=True), SOME, digits=FEW
    ),
    "gdtr": Case(
        lambda x: sc.gdtr(0.5, 2.25, x),
        lambda x: mp.gammainc(2.25, 0, x / 2, regularized=True),
        SOME,
        digits=FEW,
    ),
    "stdtr": Case(
        lambda x: sc.stdtr(4.5, x),
        lambda t: (
            mp.betainc(2.25, 0.5, 0, 4.5 / (4.5 + t * t), regularized=True) / 2
            if t < 0
            else 1 - mp.betainc(2.25, 0.5, 0, 4.5 / (4.5 + t * t), regularized=True) / 2
        ),
        (0.0, 1e-9, 0.3, -0.7, 1.7, -2.6, -300.0, 1e4),
        ulps=9,
        digits=FEW,
    ),
    "pdtr": Case(lambda m: sc.pdtr(3.0, m), lambda m: mp.gammainc(4, m, regularized=True), SOME, digits=FEW),
    "sc.cosm1": Case(sc.cosm1, lambda x: -2 * mp.sin(x / 2) ** 2, (1e-9, *MIDDLE)),
    "i0": Case(sc.i0, lambda x: mp.besseli(0, x), MIDDLE, digits=FEW),
    "i1": Case(sc.i1, lambda x: mp.besseli(1, x), MIDDLE, digits=FEW),
    "i1e": Case(sc.i1e, lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), MIDDLE, digits=FEW),
    "ive": Case(
        lambda x: sc.ive(0.5, x), lambda x: mp.exp(-abs(x)) * mp.besseli(0.5, x), SOME, ulps=13, digits=FEW
    ),
    "j0": Case(sc.j0, lambda x: mp.besselj(0, x), MIDDLE, digits=FEW),
    "j1": Case(sc.j1, lambda x: mp.besselj(1, x), MIDDLE, digits=FEW),
    "k0": Case(sc.k0, lambda x: mp.besselk(0, x), SOME, digits=FEW),
    "k1": Case(sc.k1, lambda x: mp.besselk(1, x), SOME, digits=FEW),
    "y0": Case(sc.y0, lambda x: mp.bessely(0, x), SOME, digits=FEW),
    "y1": Case(sc.y1, lambda x: mp.bessely(1, x), SOME, digits=FEW),
    "ellipk": Case(sc.ellipk, mp.ellipk, PARAMETERS, digits=FEW),
    "ellipe": Case(sc.ellipe, mp.ellipe, PARAMETERS, digits=FEW),
    "expn": Case(lambda x: sc.expn(2, x), lambda x: mp.expint(2, x), SOME, digits=FEW),
}

ALSO_BINARY = {
    "elliptic_f": Case(elliptic_f, mp.ellipf, ((0.3, 0.4), (0.9, -0.7), (1.2, 0.5), (1.2, 1e-9)), digits=FEW),  # type: ignore[arg-type]
    "binomial": Case(sp.binomial, mp.binomial, ((5.5, 2.25), (7.0, 3.5), (4.2, 0.9)), ulps=11, digits=FEW),  # type: ignore[arg-type]
    "Mod": Case(sp.Mod, lambda a, b: a - b * mp.floor(a / b), ((5.5, 2.0), (-7.25, 3.0), (4.2, -0.9))),  # type: ignore[arg-type]
    "erf2": Case(sp.erf2, lambda a, b: mp.erf(b) - mp.erf(a), PAIRS[:4], digits=FEW),  # type: ignore[arg-type]
    "logaddexp2": Case(
        numpy_nodes.logaddexp2,
        lambda a, b: mp.log(mp.mpf(2) ** a + mp.mpf(2) ** b) / mp.log(2),
        PAIRS,  # type: ignore[arg-type]
    ),
    "maximum": Case(numpy_nodes.maximum, max, PAIRS),  # type: ignore[arg-type]
    "minimum": Case(numpy_nodes.minimum, min, PAIRS),  # type: ignore[arg-type]
    "fma": Case(
        lambda a, b: cfunctions.fma(a, b, THIRD * 3),
        lambda a, b: a * b + 1,
        POSITIVE_PAIRS,  # type: ignore[arg-type]
    ),
    "powm1": Case(scipy_nodes.powm1, lambda a, b: a**b - 1, POSITIVE_PAIRS),  # type: ignore[arg-type]
}

ALSO_NUMPY_PAIRS = {
    "copysign": Case(np.copysign, lambda a, b: abs(a) * (1 if b >= 0 else -1), PAIRS),  # type: ignore[arg-type]
    "fmax": Case(np.fmax, max, PAIRS),  # type: ignore[arg-type]
    "fmin": Case(np.fmin, min, PAIRS),  # type: ignore[arg-type]
    "fmod": Case(
        np.fmod,
        lambda a, b: a - b * mp.sign(a / b) * mp.floor(abs(a / b)),
        ((5.5, 2.0), (-7.25, 3.0), (4.2, -0.9)),  # type: ignore[arg-type]
    ),
    "remainder": Case(
        np.remainder,
        lambda a, b: a - b * mp.floor(a / b),
        ((5.5, 2.0), (-7.25, 3.0), (4.2, -0.9)),  # type: ignore[arg-type]
    ),
    "floor_divide": Case(np.floor_divide, lambda a, b: mp.floor(a / b), ((5.5, 2.0), (-7.25, 3.0))),  # type: ignore[arg-type]
    "float_power": Case(np.float_power, lambda a, b: a**b, POSITIVE_PAIRS),  # type: ignore[arg-type]
    "arctan2": Case(np.arctan2, mp.atan2, PAIRS),  # type: ignore[arg-type]
    "np.logaddexp": Case(np.logaddexp, lambda a, b: mp.log(mp.exp(a) + mp.exp(b)), PAIRS),  # type: ignore[arg-type]
    "heaviside": Case(np.heaviside, lambda a, b: (mp.sign(a) + 1) / 2, PAIRS),  # type: ignore[arg-type]
    "xlog1py": Case(
        sc.xlog1py,
        lambda a, b: a * mp.log1p(b),
        (*POSITIVE_PAIRS, (2.0, 1e-20), (1.5, -0.3), (0.7, -0.9)),  # type: ignore[arg-type]
    ),  # type: ignore[arg-type]
    "rel_entr": Case(sc.rel_entr, lambda a, b: a * mp.log(a / b), POSITIVE_PAIRS),  # type: ignore[arg-type]
    "kl_div": Case(sc.kl_div, lambda a, b: a * mp.log(a / b) - a + b, POSITIVE_PAIRS),  # type: ignore[arg-type]
    "betaln": Case(
        sc.betaln,
        lambda a, b: mp.log(mp.beta(a, b)),
        ((0.3, 1.7), (2.6, 0.7), (4.2, 0.9)),
        digits=FEW,  # type: ignore[arg-type]
    ),
    "sc.beta": Case(sc.beta, mp.beta, ((0.3, 1.7), (2.6, 0.7), (4.2, 0.9)), digits=FEW),  # type: ignore[arg-type]
    "ellipkinc": Case(
        sc.ellipkinc, mp.ellipf, ((0.3, 0.4), (0.9, -0.7), (1.2, 0.5), (1.2, 1e-9)), digits=FEW
    ),  # type: ignore[arg-type]
    "ellipeinc": Case(
        sc.ellipeinc, mp.ellipe, ((0.3, 0.4), (0.9, -0.7), (1.2, 0.5), (1.2, 1e-9)), digits=FEW
    ),  # type: ignore[arg-type]
}
