"""Scalar values as C99 expressions on doubles, with `math.h` alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy
from sympy.codegen import cfunctions
from sympy.codegen.cfunctions import expm1, log1p
from sympy.codegen.numpy_nodes import logaddexp

from symad.core.graph import Node, Op
from symad.core.questions import question
from symad.errors import LoweringError
from symad.evaluation.number_domains import as_float
from symad.library import scalar_functions as own
from symad.numeric.compiled_arrays.math.vector_math import math_source
from symad.ops.arrays.sources import constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.arithmetic import Add, Mul
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Logic, Select

if TYPE_CHECKING:
    Text = str
    Texts = tuple[str, ...]
else:  # plum sees Any: it dispatches on the op alone
    Text = Texts = Any

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
    lines = [f"static inline double {name}_({body}\n" for name, body in HELPERS.items() if name in chosen]
    return "".join(lines) + math_source(chosen)


PACKED: dict[Any, str] = {
    **{getattr(sympy, name): name for name in ("exp", "log", "tanh", "sech", "sin", "cos")},
    own.sigmoid: "sigmoid",
}
"""Functions that can be evaluated several at a time; `vector_math` has their loops."""

OWN: dict[Any, str] = {
    sympy.sign: "sign_",
    sympy.Mod: "mod_",
    sympy.Heaviside: "heaviside_",
    sympy.loggamma: "loggamma_",
    logaddexp: "logaddexp_",
    sympy.jn: "jn_",
    own.stop_gradient: "same_",
    own.xlogy: "xlogy_",
    **{getattr(own, name): f"{name}_" for name in ("relu", "softplus", "silu", "gelu", "logcosh")},
    **{
        getattr(sympy, name): f"{name}_"
        for name in (
            *("sec", "csc", "cot", "csch", "coth", "asec", "acsc", "acot", "asech", "acsch", "acoth"),
            *("sinc", "frac", "factorial"),
        )
    },
    **{head: f"{name}_" for head, name in PACKED.items()},
}
"""Functions of `HELPERS` and `vector_math`."""


class NotInC(LoweringError):
    """A function that neither math.h has nor we write in C: NumPy and SciPy compute it."""

    def __init__(self, name: str) -> None:
        """``name``: of the function."""
        super().__init__(f"{name} is not in C's math.h; backend='numpy' has it")


def c_literal(value: Any) -> str:
    """A constant as a C double."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, Fraction) and max(abs(value.numerator), value.denominator) < 2**53:
        return f"({float(value.numerator)!r}/{float(value.denominator)!r})"
    number = as_float(value)
    if number != number:
        return "NAN"
    if math.isinf(number):
        return "INFINITY" if number > 0 else "(-INFINITY)"
    return f"({number!r})" if number < 0 else repr(number)


def c_function(head: Any) -> str:
    """The name of a function in C.

    Raises:
        NotInC: C has no such function.
    """
    function = MATH_H.get(head) or OWN.get(head)
    if function is None:
        raise NotInC(head.__name__)
    return function


@question
def c_form(op: Op, node: Node, args: Texts) -> Any:
    """The C expression of a scalar node from the names of its arguments."""


@c_form.dispatch
def no_c_form(op: Op, node: Node, args: Texts) -> Text:
    raise LoweringError(f"the op {type(op).__name__} has no form in C")


@c_form.dispatch
def add_c(op: Add, node: Node, args: Texts) -> Text:
    text = ("-" if op.signs[0] == -1 else "") + args[0]
    for sign, arg in zip(op.signs[1:], args[1:], strict=True):
        text += (" + " if sign == 1 else " - ") + arg
    return text


@c_form.dispatch
def mul_c(op: Mul, node: Node, args: Texts) -> Text:
    over = [a for p, a in zip(op.powers, args, strict=True) if p == 1]
    under = [a for p, a in zip(op.powers, args, strict=True) if p == -1]
    top = "*".join(over) if over else "1.0"
    return top if not under else f"{top}/({'*'.join(under)})"


@c_form.dispatch
def pow_c(op: Pow, node: Node, args: Texts) -> Text:
    value = constant_value(node.args[1])
    if value in (2, 3, 4) and not isinstance(value, float):
        return "*".join([args[0]] * int(value))
    if value == Fraction(1, 2):
        return f"sqrt({args[0]})"
    if value == Fraction(3, 2):
        return f"{args[0]}*sqrt({args[0]})"
    return f"pow({args[0]}, {args[1]})"


@c_form.dispatch
def apply_c(op: Apply, node: Node, args: Texts) -> Text:
    if op.head in (sympy.Max, sympy.Min):
        name = "max_" if op.head is sympy.Max else "min_"
        text = args[0]
        for arg in args[1:]:
            text = f"{name}({text}, {arg})"
        return text
    return f"{c_function(op.head)}({', '.join(args)})"


@c_form.dispatch
def compare_c(op: Compare, node: Node, args: Texts) -> Text:
    return f"{args[0]} {op.relation} {args[1]}"


@c_form.dispatch
def logic_c(op: Logic, node: Node, args: Texts) -> Text:
    if op.kind == "not":
        return f"!({args[0]})"
    joiner = {"and": " && ", "or": " || ", "xor": " != "}[op.kind]
    return joiner.join(f"({arg} != 0)" for arg in args)


@c_form.dispatch
def select_c(op: Select, node: Node, args: Texts) -> Text:
    return f"{args[0]} ? {args[1]} : {args[2]}"
