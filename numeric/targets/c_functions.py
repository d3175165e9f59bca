"""The functions of scalar C code: those of `math.h`, and our own, which a file holds where it calls them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy
from sympy.codegen import cfunctions
from sympy.codegen.cfunctions import expm1, log1p
from sympy.codegen.numpy_nodes import logaddexp

from symad.errors import LoweringError
from symad.library import scalar_functions as own
from symad.numeric.compiled_arrays.math.vector_math import math_source
from symad.numeric.targets.target import C, Function

MATH_H: dict[Any, str] = {
    **{
        getattr(sympy, name): name
        for name in ("tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "asinh", "acosh", "atanh")
    },
    **{getattr(sympy, name): name for name in ("floor", "erf", "erfc")},
    sympy.ceiling: "ceil",
    sympy.Abs: "fabs",
    sympy.gamma: "tgamma",
    log1p: "log1p",
    expm1: "expm1",
    cfunctions.exp2: "exp2",
    cfunctions.log2: "log2",
    cfunctions.log10: "log10",
    cfunctions.hypot: "hypot",
}

HELPERS = {
    "sign": "double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; }",
    "max": "double a, double b) { return (a > b || a != a) ? a : b; }",
    "min": "double a, double b) { return (a < b || a != a) ? a : b; }",
    "mod": """double a, double b) {
    double r = fmod(a, b);
    return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}""",
    "heaviside": "double x, double at) { return x > 0 ? 1.0 : x < 0 ? 0.0 : x == 0 ? at : x; }",
    "loggamma": "double x) { return x > 0 ? lgamma(x) : NAN; }",
    **{
        name: f"double x) {{ return {form}; }}"
        for name, form in {
            "sec": "1/cos(x)",
            "csc": "1/sin(x)",
            "cot": "1/tan(x)",
            "csch": "1/sinh(x)",
            "coth": "1/tanh(x)",
            "asec": "acos(1/x)",
            "acsc": "asin(1/x)",
            "acot": "atan(1/x)",
            "asech": "acosh(1/x)",
            "acsch": "asinh(1/x)",
            "acoth": "atanh(1/x)",
            "sinc": "x == 0 ? 1.0 : sin(x)/x",
            "frac": "x - floor(x)",
            "factorial": "tgamma(x + 1)",
            "same": "x",
            "relu": "x > 0 || x != x ? x : 0.0",
            "softplus": "(x > 0 ? x : 0.0) + log1p(exp(-fabs(x)))",
            "gelu": "0.5*x*erfc(-x*0.70710678118654752440)",
        }.items()
    },
    "silu": "double x) { double e = exp(-fabs(x)); return x > 0 ? x/(1 + e) : x*e/(1 + e); }",
    "logcosh": """double x) {
    double high = fabs(x), a = high < 20 ? high : 20, s = sinh(0.5*a);
    return log1p(2*s*s) + (high - a);
}""",
    "jn": """double n, double x) {
    if (n < 0 || n != floor(n)) return NAN;
    if (x - x != 0) return x == x ? 0 : x;  /* it falls like 1/x */
    const int order = (int)n;
    double low = sin(x) / x, high = (low - cos(x)) / x, first = 1, term = 1, sum = 0;
    if (fabs(x) < order + 2) {  /* the power series */
        for (int k = 1; k <= order; ++k) first *= x / (2 * k + 1);
        for (int k = 1; k < 24; ++k, term *= -x * x / (2 * (k - 1) * (2 * (order + k) - 1))) sum += term;
        return first * sum;
    }
    for (int k = 1; k < order; ++k) {  /* the recurrence, stable upwards where x > n */
        const double next = (2 * k + 1) / x * high - low;
        low = high, high = next;
    }
    return order ? high : low;
}""",
    "xlogy": "double x, double y) { return x == 0 && y == y ? 0.0 : x*log(y); }",
    "logaddexp": """double a, double b) {
    double high = max_(a, b), low = min_(a, b);
    return high == low ? high + 0.69314718055994530942 : high + log1p(exp(low - high));
}""",
}
"""Functions that math.h lacks, each from the list of its arguments on."""


def helper_source(names: Iterable[str]) -> str:
    """C of the functions ``name_`` and of those they call."""
    chosen = set(names)
    chosen |= {"max", "min"} if "logaddexp" in chosen else set()
    helpers = (f"{own_name(name)}({body}\n" for name, body in HELPERS.items() if name in chosen)
    return "".join(f"static inline double {helper}" for helper in helpers) + math_source(chosen)


PACKED: dict[Any, str] = {
    **{getattr(sympy, name): name for name in ("exp", "log", "tanh", "sech", "sin", "cos")},
    own.sigmoid: "sigmoid",
}
"""Functions that can be evaluated several at a time; `vector_math` has their loops."""

OWN: dict[Any, str] = {
    sympy.sign: "sign",
    sympy.Mod: "mod",
    sympy.Heaviside: "heaviside",
    sympy.loggamma: "loggamma",
    logaddexp: "logaddexp",
    sympy.jn: "jn",
    own.stop_gradient: "same",
    own.xlogy: "xlogy",
    **{getattr(own, name): name for name in ("relu", "softplus", "silu", "gelu", "logcosh")},
    **{
        getattr(sympy, name): name
        for name in (
            *("sec", "csc", "cot", "csch", "coth", "asec", "acsc", "acot", "asech", "acsch", "acoth"),
            *("sinc", "frac", "factorial"),
        )
    },
    **PACKED,
    sympy.Max: "max",
    sympy.Min: "min",
}
"""Functions of `HELPERS` and `vector_math`; in C their names end with an underscore."""


OWN_MODULE = "symad"
"""Where `Function` says that our own functions are."""


class NotInC(LoweringError):
    """A function that neither math.h has nor we write in C: NumPy and SciPy compute it."""

    def __init__(self, name: str) -> None:
        """``name``: of the function."""
        super().__init__(f"{name} is not in C's math.h; backend='numpy' has it")


def own_name(name: str) -> str:
    """What a function of `HELPERS` or `vector_math` is called in C."""
    return f"{name}_"


SCALAR_C = C(
    "c",
    {head: Function("", name) for head, name in MATH_H.items()}
    | {head: Function(OWN_MODULE, name) for head, name in OWN.items()},
    "INFINITY",
    "NAN",
    writes_floats=True,
)
"""C99 with all of these functions."""
