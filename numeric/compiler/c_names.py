"""Names that users give to functions in C."""

from __future__ import annotations

import keyword

from symad.core.identifiers import brief
from symad.errors import LoweringError
from symad.numeric.compiler.c_layout import C_KEYWORDS, CPP_KEYWORDS, MACROS

STANDARD = {
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos"),
    *("cosh", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "fdim", "floor", "fma", "fmax", "fmin", "fmod"),
    *("frexp", "gamma", "hypot", "ilogb", "isfinite", "isinf", "isnan", "j0", "j1", "jn", "ldexp", "lgamma"),
    *("llrint", "llround", "log", "log10", "log1p", "log2", "logb", "lrint", "lround", "main", "memset"),
    *("modf", "nan", "nearbyint", "nextafter", "pow", "remainder", "remquo", "rint", "round", "scalbn"),
    *("signbit", "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc", "w", "x", "y", "y0", "y1", "yn"),
}
"""Functions of math.h, the main function of a program, and the parameters of generated functions."""


def checked_c_name(name: str) -> str:
    """A name that a user gives a function in C.

    Raises:
        LoweringError: it is not a name, or C or C++ use it themselves.
    """
    plain = isinstance(name, str) and name.isascii() and name.isidentifier()
    if not plain or "_" in (name[0], name[-1]):  # helpers end in an underscore
        raise LoweringError(f"name={brief(name)}: a name in C has ASCII letters, digits, and _ inside it")
    if keyword.iskeyword(name) or name in C_KEYWORDS | CPP_KEYWORDS | MACROS | STANDARD:
        raise LoweringError(
            f"name={name!r}: C, C++, their libraries or generated code use this name themselves; "
            "choose another one"
        )
    return name
