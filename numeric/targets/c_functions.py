"""The functions of C code: those of `math.h`, and symad's own, which a file contains if it calls them.

Texts are templates: ``$real`` stands for the floating-point type, and ``$exp`` for the function of that type,
for a vector form of it, or for one of symad's helpers.
"""

from __future__ import annotations

from collections.abc import Iterable

import sympy
from sympy.codegen import cfunctions
from sympy.codegen.numpy_nodes import logaddexp

from symad.errors import LoweringError
from symad.numeric.compiler.c_templates import filled
from symad.numeric.compiler.math.vector_math import math_source
from symad.numeric.targets.target import C, LibraryFunction
from symad.sympy_functions import scalar_functions as own

MATH_H: dict[type[sympy.Basic], str] = {
    **{getattr(sympy, name): name for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh")},
    **{getattr(sympy, name): name for name in ("cosh", "tanh", "asinh", "acosh", "atanh", "exp", "log")},
    **{getattr(sympy, name): name for name in ("floor", "erf", "erfc")},
    **{getattr(cfunctions, name): name for name in ("log1p", "expm1", "exp2", "log2", "log10")},
    sympy.ceiling: "ceil",
    sympy.Abs: "fabs",
    sympy.gamma: "tgamma",
}
"""The functions of math.h; the names of their float versions end in f."""

HELPERS: dict[str, str] = {
    "max": "$real $max($real a, $real b) { return a > b || a != a ? a : b; }",
    "min": "$real $min($real a, $real b) { return a < b || a != a ? a : b; }",
    "sign": "$real $sign($real a) { return a != a ? a : ($real)((a > 0) - (a < 0)); }",
    "step": "$real $step($real a, $real b) { return a != a ? a : a == 0 ? b : ($real)(a > 0); }",
    "mod": """$real $mod($real a, $real b) {
  const $real r = $fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}""",
    "logaddexp": """$real $logaddexp($real a, $real b) {
  if (a == b) return a + ($real)0.69314718055994530942;
  return (a > b ? a : b) + $log1p($exp(-$fabs(a - b)));
}""",
    "jn": """$real $jn($real n, $real x) {
  if (n < 0 || n != $floor(n)) return ($real)(0.0 / 0.0);
  if (x - x != 0) return x == x ? 0 : x;  /* it falls like 1/x */
  const int order = (int)n;
  $real low = $sin(x) / x, high = (low - $cos(x)) / x, first = 1, term = 1, sum = 0;
  if ($fabs(x) < order + 2) {  /* the power series */
    for (int k = 1; k <= order; ++k) first *= x / (2 * k + 1);
    for (int k = 1; k < 24; ++k, term *= -x * x / (2 * (k - 1) * (2 * (order + k) - 1))) sum += term;
    return first * sum;
  }
  for (int k = 1; k < order; ++k) {  /* the recurrence, stable upwards where x > n */
    const $real next = (2 * k + 1) / x * high - low;
    low = high, high = next;
  }
  return order ? high : low;
}""",
    "silu": """$real $silu($real a) {
  const $real e = $exp(-$fabs(a));
  return a > 0 ? a / (1 + e) : a * e / (1 + e);
}""",
    "sech": """$real $sech($real a) {
  const $real e = $exp(-$fabs(a));
  return 2 * e / (1 + e * e);
}""",
    "logcosh": """$real $logcosh($real a) {
  const $real high = $fabs(a), low = high < 20 ? high : 20, s = $sinh(low / 2);
  return $log1p(2 * s * s) + (high - low);
}""",
    "sinc": "$real $sinc($real a) { return a == 0 ? ($real)1 : $sin(a) / a; }",
    "loggamma": "$real $loggamma($real a) { return a > 0 ? $lgamma(a) : ($real)(0.0 / 0.0); }",
    "hypot": """$real $hypot($real a, $real b) {  /* without a branch, so that loops are vectorized */
  const $real square = a * a + b * b, low = ($real)(sizeof a == 4 ? 1e-30 : 1e-280), high = 1 / low;
  const $real up = ($real)(sizeof a == 4 ? 0x1p80 : 0x1p600), down = 1 / up;
  const $real factor = square < low ? up : square > high ? down : 1;
  const $real back = square < low ? down : square > high ? up : 1;  /* an int between would be converted */
  a *= factor, b *= factor;
  return $sqrt(a * a + b * b) * back;
}""",
    "xlogy": "$real $xlogy($real a, $real b) { return a == 0 && b == b ? ($real)0 : a * $log(b); }",
}
"""Functions that math.h lacks."""

OWN: dict[type[sympy.Basic], str] = {
    **{getattr(own, name): name for name in ("silu", "logcosh", "xlogy")},
    **{getattr(sympy, name): name for name in ("sign", "sech", "jn", "sinc", "loggamma")},
    cfunctions.hypot: "hypot",
    sympy.Heaviside: "step",
    sympy.Mod: "mod",
    logaddexp: "logaddexp",
    sympy.Max: "max",
    sympy.Min: "min",
}
"""Functions computed by symad's helpers."""

FORMS: dict[type[sympy.Basic], str] = {
    sympy.sec: "1 / $cos($a)",
    sympy.csc: "1 / $sin($a)",
    sympy.cot: "1 / $tan($a)",
    sympy.csch: "1 / $sinh($a)",
    sympy.coth: "1 / $tanh($a)",
    sympy.asec: "$acos(1 / $a)",
    sympy.acsc: "$asin(1 / $a)",
    sympy.acot: "$atan(1 / $a)",
    sympy.asech: "$acosh(1 / $a)",
    sympy.acsch: "$asinh(1 / $a)",
    sympy.acoth: "$atanh(1 / $a)",
    sympy.frac: "$a - $floor($a)",
    sympy.factorial: "$tgamma($a + 1)",
    own.sigmoid: "1 / (1 + $exp(-$a))",
    own.stop_gradient: "$a",
    own.relu: "$max($a, 0)",
    own.softplus: "$logaddexp(0, $a)",
    own.gelu: "($real)0.5 * $a * $erfc($a * ($real)-0.70710678118654752440)",
}
"""Functions of one argument that are written as expressions of other functions."""

OWN_MODULE = "symad"
"""The module that `LibraryFunction` gives for symad's own functions."""


PACKED: dict[type[sympy.Basic], str] = {
    **{getattr(sympy, name): name for name in ("exp", "log", "tanh", "sech", "sin", "cos")},
    own.sigmoid: "sigmoid",
}
"""Functions that can be evaluated on several arguments at a time; `vector_math` has their loops."""


def scalar_name(name: str) -> str:
    """The name in scalar code for a name in a template."""
    return "double" if name == "real" else own_name(name) if name in HELPERS else name


def helper_source(names: Iterable[str]) -> str:
    """The C source of the functions ``name_`` and of the functions they call."""
    chosen = set(names)
    helpers = (filled(text, scalar_name) for name, text in HELPERS.items() if name in chosen - SCALAR_PACKED)
    return "".join(f"static inline {helper}\n" for helper in helpers) + math_source(chosen, own_name)


SCALAR_PACKED = {*PACKED.values()}


class NotInC(LoweringError):
    """A function that neither math.h nor symad has in C; NumPy and SciPy compute it."""

    def __init__(self, name: str) -> None:
        """``name`` is the function's name."""
        super().__init__(f"{name} is not in C's math.h; backend='numpy' has it")


def own_name(name: str) -> str:
    """The C name of a function of `HELPERS` or `vector_math`."""
    return f"{name}_"


SCALAR_OWN = OWN | PACKED
"""Functions of `HELPERS` and `vector_math`; in scalar C their names end with an underscore."""

SCALAR_C = C(
    "c",
    {head: LibraryFunction("", name) for head, name in MATH_H.items()}
    | {head: LibraryFunction(OWN_MODULE, name) for head, name in SCALAR_OWN.items()},
    "INFINITY",
    "NAN",
    writes_floats=True,
    forms={head: form for head, form in FORMS.items() if head not in PACKED},
)
"""C99 with all functions of this file."""
