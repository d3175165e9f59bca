"""The functions of symad's derivative table, and the lemma that proves the derivative of each.

A head that is not here has no lemma; `WITHOUT_LEMMA` says why.
"""

from __future__ import annotations

from typing import NamedTuple

import sympy
from sympy.codegen import cfunctions
from sympy.codegen.numpy_nodes import logaddexp

from symad.sympy_functions import scalar_functions as ours
from symad.tracing.from_sympy.parameter_derivatives import COMPANIONS


class CoqHead(NamedTuple):
    """A function in Coq: the constructor of ``fn`` or ``fn2``, the function it denotes, and its lemma."""

    constructor: str
    function: str
    lemma: str


def _of(constructor: str, function: str, lemma: str) -> CoqHead:
    return CoqHead(constructor, function, lemma)


HEADS: dict[sympy.FunctionClass, CoqHead] = {
    sympy.exp: _of("Exp", "exp", "d_exp"),
    sympy.log: _of("Log", "ln", "d_log"),
    sympy.sin: _of("Sin", "sin", "d_sin"),
    sympy.cos: _of("Cos", "cos", "d_cos"),
    sympy.tan: _of("Tan", "tan", "d_tan"),
    sympy.sec: _of("Sec", "sec", "d_sec"),
    sympy.csc: _of("Csc", "csc", "d_csc"),
    sympy.cot: _of("Cot", "cot", "d_cot"),
    sympy.asin: _of("Asin", "asin", "d_asin"),
    sympy.acos: _of("Acos", "acos", "d_acos"),
    sympy.atan: _of("Atan", "atan", "d_atan"),
    sympy.acot: _of("Acot", "acot", "d_acot"),
    sympy.sinh: _of("Sinh", "sinh", "d_sinh"),
    sympy.cosh: _of("Cosh", "cosh", "d_cosh"),
    sympy.tanh: _of("Tanh", "tanh", "d_tanh"),
    sympy.sech: _of("Sech", "sech", "d_sech"),
    sympy.csch: _of("Csch", "csch", "d_csch"),
    sympy.coth: _of("Coth", "coth", "d_coth"),
    sympy.asinh: _of("Asinh", "arcsinh", "d_asinh"),
    sympy.acosh: _of("Acosh", "acosh", "d_acosh"),
    sympy.atanh: _of("Atanh", "atanh", "d_atanh"),
    sympy.Abs: _of("Abs", "Rabs", "d_abs"),
    sympy.sign: _of("Sign", "sign", "d_sign"),
    sympy.Heaviside: _of("Heaviside", "heaviside", "d_heaviside"),
    sympy.Max: _of("Maximum", "Rmax", "d_max"),
    sympy.Min: _of("Minimum", "Rmin", "d_min"),
    sympy.erf: _of("Erf", "erf", "d_erf"),
    sympy.erfc: _of("Erfc", "erfc", "d_erfc"),
    sympy.erfi: _of("Erfi", "erfi", "d_erfi"),
    sympy.fresnels: _of("Fresnels", "fresnels", "d_fresnels"),
    sympy.fresnelc: _of("Fresnelc", "fresnelc", "d_fresnelc"),
    ours.sigmoid: _of("Sigmoid", "sigmoid", "d_sigmoid"),
    ours.softplus: _of("Softplus", "softplus", "d_softplus"),
    ours.logcosh: _of("Logcosh", "logcosh", "d_logcosh"),
    ours.silu: _of("Silu", "silu", "d_silu"),
    ours.xlogy: _of("Xlogy", "xlogy", "d_xlogy"),
    cfunctions.log1p: _of("Log1p", "log1p", "d_log1p"),
    cfunctions.expm1: _of("Expm1", "expm1", "d_expm1"),
    cfunctions.log2: _of("Log2", "log2", "d_log2"),
    cfunctions.log10: _of("Log10", "log10", "d_log10"),
    cfunctions.exp2: _of("Exp2", "exp2", "d_exp2"),
    cfunctions.hypot: _of("Hypot", "hypot", "d_hypot"),
    logaddexp: _of("Logaddexp", "logaddexp", "d_logaddexp"),
}

POWERS = {
    "Inv": CoqHead("Inv", "Rinv", "d_inv"),
    "Sqrt": CoqHead("Sqrt", "sqrt", "d_sqrt"),
    "Power": CoqHead("Power", "Rpower", "d_power"),
}
"""The functions that SymPy writes as powers."""

CONDITIONS = {"Less": CoqHead("Less", "less", "d_less")}
"""The functions that conditions are made of."""

FUNCTIONS = {h.constructor: h.function for h in (*HEADS.values(), *POWERS.values(), *CONDITIONS.values())}
"""The functions that the constructors stand for."""

STEP = "a step with many jumps; the region away from them has no form here"
BY_DECREE = "its derivative is 0 by definition and not that of its values"
NO_DEFINITION = (
    "Coquelicot has no definition of it; it would need a theory of its series or integral with a parameter"
)
INVERSE = "it is the inverse of another function, which is not defined by a formula"
OF_PARTS = "it is a formula of functions that have lemmas; write it as that formula"
INTEGER = "its other argument is an order or a degree, which is an integer"
SINGULAR = "an integral from a singular or removable point, which needs a continuation"

WITHOUT_LEMMA: dict[str, str] = {
    **dict.fromkeys(["floor", "ceiling", "frac", "Mod"], STEP),
    "stop_gradient": BY_DECREE,
    **dict.fromkeys(["asec", "acsc", "asech", "acsch", "acoth", "relu", "gelu", "log_ndtr", "normal_ratio",
                     "normal_excess"], OF_PARTS),
    "atan2": "its branches meet along half lines; each branch is an arctangent, which has a lemma",
    "sinc": "its value at 0 is a limit; elsewhere it is sin(x)/x, which is written by lemmas",
    **dict.fromkeys(["LambertW", "erfinv", "erfcinv"], INVERSE),
    **dict.fromkeys(["Si", "Ci", "Shi", "Chi", "Ei", "E1"], SINGULAR),
    **dict.fromkeys(
        ["gamma", "loggamma", "digamma", "polygamma", "factorial", "binomial", "beta", "zeta", "polylog",
         "lowergamma", "uppergamma", "expint", "betainc", "betainc_regularized", "gammainc", "gammaincc",
         "stdtr", "airyai", "airybi", "airyaiprime", "airybiprime", "elliptic_k", "elliptic_e", "elliptic_f",
         "elliptic_pi", "elliptic_moment", "polylog_slope",
         "hyp0f1", "hyp1f1", "hyp2f1", "owens_t", "voigt_profile", "voigt_dispersion",
         *(made.__name__ for made in COMPANIONS.values())],
        NO_DEFINITION,
    ),
    **dict.fromkeys(
        ["jn", "yn", "spherical_in", "besselj", "bessely", "besseli", "besselk", "ive", "legendre",
         "chebyshevt", "chebyshevu", "hermite", "laguerre", "gegenbauer", "jacobi", "assoc_laguerre",
         "assoc_legendre"],
        INTEGER,
    ),
}  # fmt: skip
"""The functions of the derivative table that have no lemma, by name, with the reason."""
