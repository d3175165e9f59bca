"""Scalar SymPy expressions as CUDA C statements.

Every subexpression used twice is computed once (one shared elimination over all expressions given),
and products and sums are grouped so that factors which change less often stand together: the
compiler then moves them out of the inner loop, as it may not reorder floating-point operations
itself. The text calls `HELPERS` and, for approximations, prims.h; no other header.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import sympy as sp
from sympy.codegen import cfunctions as cf
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanAtom, BooleanFunction

from symad.errors import LoweringError
from symad.gpu.sympy_to_cuda.writers import ATOM, PRODUCT, SUM, UNARY, WRITERS, is_negative
from symad.numeric.pairs.stable_sympy import FloorDivide, children, topological

HELPERS = """\
#ifndef SYMAD_HELPERS
#define SYMAD_HELPERS
__device__ __forceinline__ int symad_mod(int a, int n) {
  int r = a % n;
  return (r != 0 && ((r < 0) != (n < 0))) ? r + n : r;
}
__device__ __forceinline__ int symad_floordiv(int a, int n) { return (a - symad_mod(a, n)) / n; }
__device__ __forceinline__ int symad_min(int a, int b) { return a < b ? a : b; }
__device__ __forceinline__ int symad_max(int a, int b) { return a > b ? a : b; }
__device__ __forceinline__ int symad_clamp(int a, int n) {
  return symad_max(0, symad_min(a, n - 1));
}
#endif
"""

# C name of each function of one or two real arguments; the float form ends in f.
FUNCTIONS: dict[type, str] = {
    sp.exp: "exp",
    sp.log: "log",
    sp.sin: "sin",
    sp.cos: "cos",
    sp.tan: "tan",
    sp.asin: "asin",
    sp.acos: "acos",
    sp.atan: "atan",
    sp.atan2: "atan2",
    sp.sinh: "sinh",
    sp.cosh: "cosh",
    sp.tanh: "tanh",
    sp.asinh: "asinh",
    sp.acosh: "acosh",
    sp.atanh: "atanh",
    sp.erf: "erf",
    sp.erfc: "erfc",
    sp.gamma: "tgamma",
    sp.loggamma: "lgamma",
    cf.exp2: "exp2",
    cf.expm1: "expm1",
    cf.log1p: "log1p",
    cf.log2: "log2",
    cf.Sqrt: "sqrt",
}


@dataclass(frozen=True)
class Style:
    """The format of numbers.

    Attributes:
        real: "float" or "double".
        fast: use the approximate tanh instruction (absolute error about 5e-4; float only).
    """

    real: str = "float"
    fast: bool = False

    def __post_init__(self) -> None:
        if self.real not in ("float", "double"):
            raise LoweringError(f"real is {self.real!r}; use 'float' or 'double'")

    def literal(self, value: float) -> str:
        """A C literal that reads back as ``value`` rounded to the real type."""
        if value != value or value in (float("inf"), float("-inf")):
            sign = "-" if value < 0 else ""
            top = "0.0" if value != value else f"{sign}1.0"
            return f"({top}f / 0.0f)" if self.real == "float" else f"({top} / 0.0)"
        return f"{value!r}f" if self.real == "float" else repr(value)

    def function(self, name: str) -> str:
        """The C function of this precision."""
        return name + "f" if self.real == "float" else name


@dataclass(frozen=True)
class Variable:
    """The C text of a symbol, and its type.

    Attributes:
        text: a C expression without side effects, of type int or real.
        kind: "int", "real" or "bool".
        level: how often it changes: 0 for never within a kernel, larger numbers for inner loops.
    """

    text: str
    kind: str = "real"
    level: int = 0


Variables = Mapping[sp.Symbol, Variable]


def statements(
    targets: Sequence[tuple[str, sp.Basic]],
    variables: Variables,
    style: Style,
    prefix: str = "w",
) -> list[str]:
    """C statements that assign each expression to its target, sharing common subexpressions.

    Args:
        targets: (C lvalue, expression) pairs, assigned in order after all temporaries.
        variables: the C text of each symbol that may occur.
        style: precision and approximations.
        prefix: the prefix of the temporaries' names.

    Raises:
        LoweringError: an unknown symbol, or a function without a C form.
    """
    exprs = [fold_exponentials(expr, style) for _, expr in targets]
    printer = Printer(variables, style)
    uses = Counter(c for e in topological(exprs) for c in children(e))
    lines: list[str] = []
    for expr in topological(exprs):
        text = printer.write(expr)
        if _needs_name(expr, uses[expr]):
            name = f"{prefix}{len(lines)}"
            kind = printer.kind(expr)
            lines.append(f"const {style.real if kind == 'real' else kind} {name} = {text};")
            printer.binding[expr] = ATOM
            printer.negative.discard(expr)
            text = name
        printer.text[expr] = text
    for (target, _), expr in zip(targets, exprs, strict=True):
        lines.append(f"{target} = {printer.text[expr]};")
    return lines


def kind_of(expr: sp.Basic, variables: Variables) -> str:
    """The type of the C text of ``expr``: "int", "real" or "bool"."""
    printer = Printer(variables, Style())
    for part in topological([expr]):
        printer.text[part] = printer.write(part)
    return printer.kind(expr)


def _needs_name(expr: sp.Basic, uses: int) -> bool:
    """Whether a node gets a name: shared nodes and repeated operands do; constants and symbols do not."""
    if not expr.args or isinstance(expr, sp.Number):
        return False
    return uses > 1 or expr.is_Add or isinstance(expr, (sp.Function, sp.Pow))


def fold_exponentials(expr: sp.Basic, style: Style) -> sp.Basic:
    """exp(a) as 2^(a log₂e) in float, with log₂e folded into the factors of a.

    This takes one instruction on the device instead of five; the relative error grows by |a| 2⁻²⁴.
    """
    if style.real != "float":
        return expr
    log2e = sp.Float(1.4426950408889634074, 20)
    return expr.replace(sp.exp, lambda a: sp.exp(a) if a.is_number else cf.exp2(_scaled(a, log2e)))


def _scaled(expr: sp.Expr, factor: sp.Expr) -> sp.Expr:
    if expr.is_Add:
        return sp.Add(*[_scaled(term, factor) for term in expr.args])
    return sp.Mul(factor, expr)


class Printer:
    """Writes one node at a time, given the text of its operands."""

    def __init__(self, variables: Variables, style: Style) -> None:
        self.variables = variables
        self.style = style
        self.text: dict[sp.Basic, str] = {}
        self.binding: dict[sp.Basic, int] = {}
        self.negative: set[sp.Basic] = set()
        """The expressions that are written with a leading minus sign."""
        self.kinds: dict[sp.Basic, str] = {}
        self.levels: dict[sp.Basic, int] = {}

    def write(self, expr: sp.Basic) -> str:
        """The C text of ``expr``; its kind, level and binding are recorded."""
        parts = children(expr)
        self.levels[expr] = max((self.levels[p] for p in parts), default=0)
        self.kinds[expr] = self._kind(expr, parts)
        for matches, binding, rule in WRITERS:
            if isinstance(expr, matches):
                text = rule(self, expr)
                self.binding[expr] = UNARY if expr in self.negative and binding > SUM else binding
                return text
        self.binding[expr] = ATOM
        return self._call(expr)

    def kind(self, expr: sp.Basic) -> str:
        """The type of the text: int, real or bool."""
        return self.kinds[expr]

    def real(self, expr: sp.Basic) -> str:
        """The operand as a real number, for the argument of a function."""
        if isinstance(expr, sp.Number):
            return self.style.literal(float(expr))
        return self.text[expr] if self.kind(expr) == "real" else self.operand(expr, "real")

    def operand(self, expr: sp.Basic, kind: str, binding: int = ATOM) -> str:
        """The operand in the type of its user, in parentheses if it binds less tightly."""
        if kind == "real" and isinstance(expr, sp.Number):
            text = self.style.literal(float(expr))
            return f"({text})" if is_negative(expr) and binding > SUM else text
        if kind == "real" and self.kind(expr) != "real":
            return f"({self.style.real}){self.operand(expr, 'int')}"
        text = self.text[expr]
        return text if self.binding[expr] >= binding else f"({text})"

    def begins_negative(self, expr: sp.Basic, kind: str, binding: int) -> bool:
        """Whether `operand` begins with a minus sign."""
        if kind == "real" and isinstance(expr, sp.Number):
            return is_negative(expr) and binding <= SUM
        if kind == "real" and self.kind(expr) != "real":
            return False
        return expr in self.negative and self.binding[expr] >= binding

    def _kind(self, expr: sp.Basic, parts: Sequence[sp.Basic]) -> str:
        if expr.is_Symbol:
            known = self.variables.get(expr)
            if known is None:
                names = ", ".join(sorted(str(s) for s in self.variables))
                raise LoweringError(f"unknown symbol {expr}: the expression may use {names}")
            return known.kind
        if isinstance(expr, (Relational, BooleanFunction, BooleanAtom)):
            return "bool"
        if isinstance(expr, (sp.Integer, FloorDivide, sp.floor, sp.ceiling)):
            return "int"
        closed = (sp.Add, sp.Mul, sp.Max, sp.Min, sp.Mod, sp.Abs, sp.sign)
        power = isinstance(expr, sp.Pow) and isinstance(expr.exp, sp.Integer) and expr.exp > 0
        values = parts[::2] if isinstance(expr, sp.Piecewise) else parts
        if (isinstance(expr, (*closed, sp.Piecewise)) or power) and all(
            self.kinds[p] == "int" for p in values
        ):
            return "int"
        return "real"

    def _call(self, expr: sp.Basic) -> str:
        name = FUNCTIONS.get(expr.func)
        if name is None:
            known = ", ".join(sorted(f.__name__ for f in FUNCTIONS))
            raise LoweringError(
                f"{expr.func.__name__} in {expr} has no CUDA form; supported functions are "
                f"{known}, Abs, sign, Min, Max, Mod, floor, ceiling, Heaviside, Piecewise and "
                "comparisons"
            )
        if name == "tanh" and self.style.fast and self.style.real == "float":
            return f"tanh_fast({self.real(expr.args[0])})"
        return f"{self.style.function(name)}({', '.join(self.real(a) for a in expr.args)})"

    def grouped(self, terms: Iterable[sp.Basic], binding: int, kind: str) -> Part:
        """A sum or product; the operands of each lower level are grouped in parentheses."""
        levels: dict[int, list[Part]] = {}
        # A right operand of equal binding needs parentheses: a * (b / c) is not a * b / c.
        needed = binding + (binding == PRODUCT)
        for term in terms:
            part = Part(self.operand(term, kind, needed), self.begins_negative(term, kind, needed))
            levels.setdefault(self.levels[term], []).append(part)
        inner: list[Part] = []
        for level in sorted(levels):
            made = _joined([*inner, *levels[level]], binding)
            inner = [Part(f"({made.text})", False) if len(levels) > 1 and " " in made.text else made]
        return made


class Part(NamedTuple):
    """An operand as text, and whether the text begins with a minus sign."""

    text: str
    negative: bool


def _joined(parts: Sequence[Part], binding: int) -> Part:
    """Operands joined to a text; a sum writes negative ones as differences, after the positive ones."""
    if binding == PRODUCT:
        return Part(" * ".join(p.text for p in parts), parts[0].negative)
    first, *rest = sorted(parts, key=lambda p: p.negative)
    tail = [f" - {p.text[1:]}" if p.negative else f" + {p.text}" for p in rest]
    return Part("".join([first.text, *tail]), first.negative)
