"""Elementwise nodes as C statements: the bodies of generated kernels.

Every node becomes one ``const`` variable, so no precedence and no nesting matters. All arithmetic is
in one real type; a float body calls the float functions and writes float literals, so nothing is
promoted to double. Bodies avoid the names that CuPy keeps: ``n``, ``i``, and leading underscores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
from sympy.codegen import cfunctions
from sympy.codegen.numpy_nodes import logaddexp

from symad.core.graph import Node, Op, topological
from symad.core.questions import question
from symad.errors import LoweringError
from symad.library.scalar_functions import (
    gelu,
    logcosh,
    relu,
    sigmoid,
    silu,
    softplus,
    stop_gradient,
    xlogy,
)
from symad.numeric.numpy_arrays.ops.all_ops import Text, Texts
from symad.ops.arrays.shaping import Broadcast
from symad.ops.arrays.sources import Constant, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.arithmetic import Add, Mul
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Condition, Logic, Select

FUNCTIONS: dict[Any, str] = {
    **{
        getattr(sympy, name): name
        for name in (
            "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh",
            "asinh", "acosh", "atanh", "exp", "log", "floor", "erf", "erfc",
        )
    },
    sympy.ceiling: "ceil",
    sympy.Abs: "fabs",
    sympy.gamma: "tgamma",
    cfunctions.log1p: "log1p",
    cfunctions.expm1: "expm1",
    cfunctions.log2: "log2",
    cfunctions.log10: "log10",
    cfunctions.exp2: "exp2",
    cfunctions.hypot: "hypot",
}  # fmt: skip
"""Functions of CUDA's mathematics library; the float form ends in f."""

# "real" stands for the C type, "F(name)" for a function of that precision, "0" and "1" are cast.
HELPERS: dict[str, str] = {
    "symad_max": "real symad_max(real a, real b) { return a > b || a != a ? a : b; }",
    "symad_min": "real symad_min(real a, real b) { return a < b || a != a ? a : b; }",
    "symad_sign": (
        "real symad_sign(real a) { return a != a ? a : (real)((a > 0) - (a < 0)); }"
    ),
    "symad_step": (
        "real symad_step(real a, real b) { return a != a ? a : a == 0 ? b : (real)(a > 0); }"
    ),
    "symad_mod": """real symad_mod(real a, real b) {
  const real r = F(fmod)(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}""",
    "symad_logaddexp": """real symad_logaddexp(real a, real b) {
  if (a == b) return a + (real)0.6931471805599453;
  return (a > b ? a : b) + F(log1p)(F(exp)(-F(fabs)(a - b)));
}""",
    "symad_jn": """real symad_jn(real n, real x) {
  if (n < 0 || n != F(floor)(n)) return (real)(0.0 / 0.0);
  const int order = (int)n;
  real low = F(sin)(x) / x, high = (low - F(cos)(x)) / x, first = 1, term = 1, sum = 0;
  if (F(fabs)(x) < order + 2) {  /* the power series */
    for (int k = 1; k <= order; ++k) first *= x / (2 * k + 1);
    for (int k = 1; k < 24; ++k, term *= -x * x / (2 * (k - 1) * (2 * (order + k) - 1))) sum += term;
    return first * sum;
  }
  for (int k = 1; k < order; ++k) {  /* the recurrence, stable upwards where x > n */
    const real next = (2 * k + 1) / x * high - low;
    low = high, high = next;
  }
  return order ? high : low;
}""",
    "symad_silu": """real symad_silu(real a) {
  const real e = F(exp)(-F(fabs)(a));
  return a > 0 ? a / (1 + e) : a * e / (1 + e);
}""",
    "symad_sech": """real symad_sech(real a) {
  const real e = F(exp)(-F(fabs)(a));
  return 2 * e / (1 + e * e);
}""",
    "symad_logcosh": """real symad_logcosh(real a) {
  const real high = F(fabs)(a), low = high < 20 ? high : 20, s = F(sinh)(low / 2);
  return F(log1p)(2 * s * s) + (high - low);
}""",
    "symad_sinc": "real symad_sinc(real a) { return a == 0 ? (real)1 : F(sin)(a) / a; }",
    "symad_loggamma": (
        "real symad_loggamma(real a) { return a > 0 ? F(lgamma)(a) : (real)(0.0 / 0.0); }"
    ),
    "symad_xlogy": (
        "real symad_xlogy(real a, real b) { return a == 0 && b == b ? (real)0 : a * F(log)(b); }"
    ),
}

NAMED: dict[Any, str] = {
    sympy.sign: "symad_sign",
    sympy.Heaviside: "symad_step",
    sympy.Mod: "symad_mod",
    logaddexp: "symad_logaddexp",
    sympy.sech: "symad_sech",
    logcosh: "symad_logcosh",
    silu: "symad_silu",
    sympy.jn: "symad_jn",
    sympy.sinc: "symad_sinc",
    sympy.loggamma: "symad_loggamma",
    xlogy: "symad_xlogy",
}
"""Functions that are helpers of ours."""

FORMS: dict[Any, str] = {
    sympy.sec: "1 / F(cos)({})",
    sympy.csc: "1 / F(sin)({})",
    sympy.cot: "1 / F(tan)({})",
    sympy.csch: "1 / F(sinh)({})",
    sympy.coth: "1 / F(tanh)({})",
    sympy.asec: "F(acos)(1 / {})",
    sympy.acsc: "F(asin)(1 / {})",
    sympy.acot: "F(atan)(1 / {})",
    sympy.asech: "F(acosh)(1 / {})",
    sympy.acsch: "F(asinh)(1 / {})",
    sympy.acoth: "F(atanh)(1 / {})",
    sympy.frac: "{0} - F(floor)({0})",
    sympy.factorial: "F(tgamma)({} + 1)",
    sigmoid: "1 / (1 + F(exp)(-{}))",
    stop_gradient: "{}",
    relu: "symad_max({}, 0)",
    softplus: "symad_logaddexp(0, {})",
    gelu: "(real)0.5 * {0} * F(erfc)({0} * (real)-0.7071067811865476)",
}
"""Functions that are expressions in others."""


def has_c_form(node: Node) -> bool:
    """Whether the node can stand in a generated kernel body."""
    if isinstance(node.op, Apply):
        head = node.op.head
        known = head in FUNCTIONS or head in NAMED or head in FORMS
        return known or head in (sympy.Max, sympy.Min)
    return isinstance(node.op, (Add, Mul, Pow, Compare, Logic, Select))


@dataclass
class Body:
    """The C text of one kernel body as it grows."""

    real: str
    text: dict[Node, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    helpers: dict[str, None] = field(default_factory=dict)

    def literal(self, value: Any) -> str:
        """A number as C text of the real type."""
        number = float(value)
        suffix = "f" if self.real == "float" else ""
        if math.isnan(number):
            return f"(0.0{suffix} / 0.0{suffix})"
        if math.isinf(number):
            return f"({'-' if number < 0 else ''}1.0{suffix} / 0.0{suffix})"
        return f"({number!r}{suffix})" if number < 0 else f"{number!r}{suffix}"

    def expand(self, template: str) -> str:
        """A text with F(name) as the function of this precision."""
        suffix = "f" if self.real == "float" else ""
        for piece in template.split("F(")[1:]:
            name = piece.split(")")[0]
            template = template.replace(f"F({name})", name + suffix)
        return template

    def form(self, head: Any) -> str:
        """The expression of one of `FORMS`."""
        return FORMS[head]

    def helper(self, name: str) -> str:
        """Note the use of one of `HELPERS`; its name."""
        self.helpers[name] = None
        return name

    def preamble(self) -> str:
        """The helper functions that the body calls."""
        texts = [self.expand(HELPERS[name]).replace("real ", f"{self.real} ") for name in self.helpers]
        texts = [t.replace("(real)", f"({self.real})") for t in texts]
        return "\n".join(f"static __device__ {t}" for t in texts)


def statements(outputs: Sequence[Node], names: Mapping[Node, str], body: Body) -> list[str]:
    """Grow ``body`` by the statements that compute some nodes; the C text of each.

    ``names`` gives the text of the leaves. Broadcasts inside a body repeat a scalar: the identity.
    """
    body.text.update(names)
    for node in topological(outputs):
        if node in body.text:
            continue
        if isinstance(node.op, Constant):
            value = node.op.value
            flag = isinstance(value, bool)
            body.text[node] = str(value).lower() if flag else body.literal(value)
        elif isinstance(node.op, Broadcast):
            body.text[node] = body.text[node.args[0]]
        else:
            text = c_form(node.op, node, tuple(body.text[a] for a in node.args), body)
            kind = "bool" if isinstance(node.op, Condition) else body.real
            name = f"w{len(body.lines)}"
            body.lines.append(f"const {kind} {name} = {text};")
            body.text[node] = name
    return [body.text[o] for o in outputs]


@question
def c_form(op: Op, node: Node, args: Texts, body: Body) -> Any:
    """The C expression of an elementwise node; the arguments are names or literals."""


@c_form.dispatch
def no_c_form(op: Op, node: Node, args: Texts, body: Body) -> Text:
    raise LoweringError(f"the op {type(op).__name__} has no form in a generated kernel")


@c_form.dispatch
def add_c(op: Add, node: Node, args: Texts, body: Body) -> Text:
    text = ("-" if op.signs[0] == -1 else "") + args[0]
    for sign, arg in zip(op.signs[1:], args[1:], strict=True):
        text += (" + " if sign == 1 else " - ") + arg
    return text


@c_form.dispatch
def mul_c(op: Mul, node: Node, args: Texts, body: Body) -> Text:
    over = [a for p, a in zip(op.powers, args, strict=True) if p == 1]
    under = [a for p, a in zip(op.powers, args, strict=True) if p == -1]
    top = " * ".join(over) if over else body.literal(1)
    if not under:
        return top
    return f"{top} / {under[0]}" if len(under) == 1 else f"{top} / ({' * '.join(under)})"


@c_form.dispatch
def pow_c(op: Pow, node: Node, args: Texts, body: Body) -> Text:
    base, exponent = args
    value = constant_value(node.args[1])
    if value is not None and not isinstance(value, bool):
        if value in (2, 3):
            return " * ".join([base] * int(value))
        if value == 4:
            return f"({base} * {base}) * ({base} * {base})"
        if value == sympy.Rational(1, 2) or value == 0.5:
            return body.expand(f"F(sqrt)({base})")
        if value == 1.5:
            return body.expand(f"{base} * F(sqrt)({base})")
        if value == -2:
            return f"{body.literal(1)} / ({base} * {base})"
    return body.expand(f"F(pow)({base}, {exponent})")


@c_form.dispatch
def apply_c(op: Apply, node: Node, args: Texts, body: Body) -> Text:
    head = op.head
    if head in (sympy.Max, sympy.Min):
        name = body.helper("symad_max" if head is sympy.Max else "symad_min")
        text = args[0]
        for arg in args[1:]:
            text = f"{name}({text}, {arg})"
        return text
    if head in FUNCTIONS:
        return body.expand(f"F({FUNCTIONS[head]})({', '.join(args)})")
    if head in NAMED:
        return f"{body.helper(NAMED[head])}({', '.join(args)})"
    if head in FORMS:
        form = body.form(head)
        for name in HELPERS:
            if name in form:
                body.helper(name)
        return body.expand(form).replace("(real)", f"({body.real})").format(*args)
    raise LoweringError(f"{head.__name__} has no form in a generated kernel")


@c_form.dispatch
def compare_c(op: Compare, node: Node, args: Texts, body: Body) -> Text:
    return f"{args[0]} {op.relation} {args[1]}"


@c_form.dispatch
def logic_c(op: Logic, node: Node, args: Texts, body: Body) -> Text:
    if op.kind == "not":
        return f"!{args[0]}"
    return {"and": " && ", "or": " || ", "xor": " != "}[op.kind].join(args)


@c_form.dispatch
def select_c(op: Select, node: Node, args: Texts, body: Body) -> Text:
    return f"{args[0]} ? {args[1]} : {args[2]}"
