"""Scores and pair functions as statements of CUDA C, by the one printer of scalar expressions.

Every distinct subexpression is one statement. Positions are integers: expressions of them are computed in
integers, by functions in `HELPERS`, and converted where they meet real numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import sympy as sp
from sympy.codegen import cfunctions as cf

from symad.core.graph import Node, topological
from symad.errors import LoweringError
from symad.numeric.fusion.c_expressions import TARGETS, KernelBody
from symad.numeric.pairs.scalar_formulas import ScalarFormulas, check_known, is_integer
from symad.numeric.pairs.stable_sympy import FloorDivide
from symad.numeric.targets.scalars import number
from symad.numeric.targets.target import C, Level, LibraryFunction, Text
from symad.ops.basic.sources import Constant, input_node
from symad.ops.elementwise.selection import Compare, Logic, Select

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
__device__ __forceinline__ int symad_abs(int a) { return a < 0 ? -a : a; }
__device__ __forceinline__ int symad_sign(int a) { return (a > 0) - (a < 0); }
__device__ __forceinline__ int symad_clamp(int a, int n) {
  return symad_max(0, symad_min(a, n - 1));
}
#endif
"""

INTEGERS = "integers"
"""The module that `LibraryFunction` gives for functions of `HELPERS`."""

IN_INTEGERS = C(
    "integers in kernels",
    {
        **{sp.Mod: LibraryFunction(INTEGERS, "mod"), FloorDivide: LibraryFunction(INTEGERS, "floordiv")},
        **{sp.Max: LibraryFunction(INTEGERS, "max"), sp.Min: LibraryFunction(INTEGERS, "min")},
        **{sp.Abs: LibraryFunction(INTEGERS, "abs"), sp.sign: LibraryFunction(INTEGERS, "sign")},
    },
    "INFINITY",
    "NAN",
)
"""C for expressions of integers."""

ONE_INSTRUCTION: dict[type[sp.Basic], LibraryFunction] = {
    sp.Max: LibraryFunction("", "fmax"),
    sp.Min: LibraryFunction("", "fmin"),
}
"""Functions of real numbers that the device has as instructions; they ignore NaN."""


class DeviceVariable(NamedTuple):
    """The C text of a symbol, and its type.

    Attributes:
        text: a C expression without side effects, of type int or real.
        kind: "int", "real" or "bool".
        level: how often it changes: 0 for never within a kernel, larger numbers for inner loops.
    """

    text: str
    kind: str = "real"
    level: int = 0


Variables: TypeAlias = Mapping[sp.Symbol, DeviceVariable]


@dataclass
class Device:
    """The formulas of one kernel.

    Attributes:
        real: "float" or "double".
        fast: use the approximate tanh instruction (absolute error about 5e-4; float only).
        helpers: the functions that statements call so far; `preamble` has their text.
    """

    real: str = "float"
    fast: bool = False
    helpers: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.real not in TARGETS:
            raise LoweringError(f"real is {self.real!r}; use 'float' or 'double'")

    def preamble(self) -> str:
        """The functions that statements call, besides `HELPERS`."""
        return HELPERS + _Statements(self.real, helpers=self.helpers).preamble()

    def statements(
        self, targets: Sequence[tuple[str, sp.Basic]], variables: Variables, prefix: str = "w"
    ) -> list[str]:
        """C statements that assign each expression to its target, sharing common subexpressions.

        ``targets`` are pairs of a C lvalue and an expression, assigned in order after all temporaries, whose
        names begin with ``prefix``.

        Raises:
            LoweringError: an unknown symbol, or a function without a C form.
        """
        formulas = _formulas(variables)
        nodes = formulas.traced([self.folded(expr) for _, expr in targets])
        body = _Statements(self.real, helpers=self.helpers, kinds=formulas.kinds, fast=self.fast)
        body.text = {input_node(symbol): known.text for symbol, known in variables.items()}
        check_known(nodes, body.text)
        for node in topological(nodes):
            if node not in body.text and not isinstance(node.op, Constant):
                name = f"{prefix}{len(body.lines)}"
                body.add(name, node, ())
                body.text[node] = name
        results = [body.operand(node, _kind(node, formulas)) for node in nodes]
        stores = [f"{target} = {made};" for (target, _), made in zip(targets, results, strict=True)]
        return [*body.lines, *stores]

    def folded(self, expr: sp.Basic) -> sp.Basic:
        """exp(a) as 2^(a log₂e) in float, with log₂e folded into the factors of a.

        This takes one instruction on the device instead of five; the relative error grows by |a| 2⁻²⁴.
        """
        if self.real != "float":
            return expr
        log2e = sp.Float(1.4426950408889634074, 20)
        return expr.replace(sp.exp, lambda a: sp.exp(a) if a.is_number else cf.exp2(_scaled(a, log2e)))


def kind_of(expr: sp.Basic, variables: Variables) -> str:
    """The type of the C text of ``expr``: "int", "real" or "bool"."""
    formulas = _formulas(variables)
    (node,) = formulas.traced([expr])
    return _kind(node, formulas)


def _kind(node: Node, formulas: ScalarFormulas) -> str:
    return "int" if is_integer(node) else formulas.kinds[node]


def _formulas(variables: Variables) -> ScalarFormulas:
    kinds = {input_node(symbol): known.kind for symbol, known in variables.items()}
    return ScalarFormulas({symbol: known.level for symbol, known in variables.items()}, kinds)


def _scaled(expr: sp.Expr, factor: sp.Expr) -> sp.Expr:
    if expr.is_Add:
        return sp.Add(*[_scaled(term, factor) for term in expr.args])
    return sp.Mul(factor, expr)


@dataclass
class _Statements(KernelBody):
    """The statements of one function, whose values have the types in ``kinds``."""

    kinds: dict[Node, str] = field(default_factory=dict)
    fast: bool = False

    @property
    def target(self) -> C:
        """The target of real numbers."""
        target = TARGETS[self.real]
        own = dict(ONE_INSTRUCTION)
        if self.fast and self.real == "float":
            own[sp.tanh] = LibraryFunction("prims.h", "tanh_fast")
        return replace(target, functions={**target.functions, **own})

    def function(self, function: LibraryFunction) -> str:
        """The name of a function."""
        if function.module == INTEGERS:
            return f"symad_{function.name}"
        return function.name if function.module == "prims.h" else super().function(function)

    def helper(self, name: str) -> str:
        """The name of a function of real numbers; `HELPERS` has some of the same names for integers."""
        self.helpers[name] = None
        return f"symad_real_{name}"

    def type_of(self, node: Node) -> str:
        """The C type of a node's value."""
        return self.real if self.kinds[node] == "real" else self.kinds[node]

    def expression(self, node: Node, args: Sequence[str]) -> str:
        """The C expression of a node, with its arguments in the types that it needs."""
        kinds = self._kinds_of_arguments(node)
        target = IN_INTEGERS if "int" in kinds and "real" not in kinds else self.target
        return self.written(node, target, [self.operand(a, k) for a, k in zip(node.args, kinds, strict=True)])

    def _kinds_of_arguments(self, node: Node) -> list[str]:
        op, kind = node.op, self.kinds[node]
        if isinstance(op, Logic):
            return ["bool"] * len(node.args)
        if isinstance(op, Compare):
            found = {self.kinds[a] for a in node.args if not is_integer(a)}
            return ["int" if found == {"int"} else "real"] * len(node.args)
        if isinstance(op, Select):
            return ["bool", kind, kind]
        return [kind] * len(node.args)

    def operand(self, node: Node, kind: str) -> Text:
        """The text of a node, converted to a type."""
        if isinstance(node.op, Constant):
            if isinstance(node.op.value, bool):
                return Text("true" if node.op.value else "false")
            return number(node.op.value, IN_INTEGERS if kind == "int" else self.target)
        if kind == self.kinds[node] or kind == "bool":
            return Text(self.text[node])
        return Text(f"({self.real if kind == 'real' else kind}){self.text[node]}", Level.SIGN)
