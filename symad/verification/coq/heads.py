"""The functions of symad's derivative table of which a lemma proves the derivative, as Coq has them.

A head that is not here has no lemma; `WITHOUT_LEMMA` says why.
"""

from __future__ import annotations

import sympy
from sympy.codegen import cfunctions
from sympy.codegen.numpy_nodes import logaddexp

from symad.sympy_functions import scalar_functions as ours
from symad.tracing.from_sympy.parameter_derivatives import COMPANIONS

HEADS: dict[sympy.FunctionClass, str] = {
    sympy.exp: "Exp", sympy.log: "Log", sympy.sin: "Sin", sympy.cos: "Cos", sympy.tan: "Tan",
    sympy.sec: "Sec", sympy.csc: "Csc", sympy.cot: "Cot", sympy.asin: "Asin", sympy.acos: "Acos",
    sympy.atan: "Atan", sympy.acot: "Acot", sympy.sinh: "Sinh", sympy.cosh: "Cosh", sympy.tanh: "Tanh",
    sympy.sech: "Sech", sympy.csch: "Csch", sympy.coth: "Coth", sympy.asinh: "Asinh", sympy.acosh: "Acosh",
    sympy.atanh: "Atanh", sympy.Abs: "Abs", sympy.sign: "Sign", sympy.Heaviside: "Heaviside",
    sympy.Max: "Maximum", sympy.Min: "Minimum", sympy.erf: "Erf", sympy.erfc: "Erfc", sympy.erfi: "Erfi",
    sympy.fresnels: "Fresnels", sympy.fresnelc: "Fresnelc", ours.sigmoid: "Sigmoid",
    ours.softplus: "Softplus", ours.logcosh: "Logcosh", ours.silu: "Silu", ours.xlogy: "Xlogy",
    cfunctions.log1p: "Log1p", cfunctions.expm1: "Expm1", cfunctions.log2: "Log2",
    cfunctions.log10: "Log10", cfunctions.exp2: "Exp2", cfunctions.hypot: "Hypot", logaddexp: "Logaddexp",
}  # fmt: skip
"""The constructor of ``fn`` or ``fn2`` for each function. Its lemma is d_ and the name in small letters."""

MORE = ("Inv", "Sqrt", "Power", "Less")
"""What SymPy writes as powers, and what conditions are made of."""

RENAMED = {
    "Log": "ln", "Asinh": "arcsinh", "Abs": "Rabs", "Maximum": "Rmax", "Minimum": "Rmin", "Inv": "Rinv",
    "Power": "Rpower",
}  # fmt: skip

FUNCTIONS = {name: RENAMED.get(name, name.lower()) for name in (*HEADS.values(), *MORE)}
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
