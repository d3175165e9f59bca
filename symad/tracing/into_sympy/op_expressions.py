"""SymPy objects for ops that SymPy cannot express: an op applied to SymPy operands.

``to_sympy`` uses these if no SymPy class fits (a gather, a padding, a triangular solve, a
function of two matrices). They print as ``Name(operands, field=value)``, may occur inside any SymPy
expression, and tracing returns exactly the node that they came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import sympy
from sympy.matrices.expressions.matexpr import MatrixElement, MatrixExpr
from sympy.tensor.array.expressions.array_expressions import _ArrayExpr

from symad.core.dims import Shape, bind
from symad.core.graph import Node, Op, bind_op
from symad.core.questions import Nodes
from symad.tracing.walk import Tracer, lift, operands

HIDDEN = {"head", "data", "dtype"}
"""Fields that are not printed, because the name contains the head, or data are too long."""


class OpName(sympy.Atom):
    """The op of a form, as an atom of SymPy's expression tree."""

    op: Op
    shape: Shape

    def __new__(cls, op: Op, shape: Shape) -> OpName:
        """The atom of an op whose value has the given shape."""
        atom: OpName = sympy.Atom.__new__(cls)
        atom.op = op
        atom.shape = shape
        return atom

    def __getnewargs__(self) -> tuple[Op, Shape]:
        return self.op, self.shape

    def _hashable_content(self) -> tuple[Op, Shape]:
        return self.op, self.shape

    def _eval_subs(self, old: sympy.Basic, new: sympy.Expr) -> OpName:
        """Replace dimension symbols by numbers."""
        if isinstance(old, sympy.Symbol) and getattr(new, "is_Integer", False):
            values = {old: int(new)}
            return OpName(bind_op(self.op, values), bind(self.shape, values))
        return self

    @property
    def name(self) -> str:
        """The name for readers."""
        head = getattr(self.op, "head", None)
        return str(getattr(head, "__name__", type(self.op).__name__))

    @property
    def settings(self) -> list[str]:
        """The fields as ``name=value``."""
        shown = [f.name for f in fields(self.op) if f.name not in HIDDEN]
        return [f"{name}={getattr(self.op, name)}" for name in shown]

    def _sympystr(self, printer: sympy.printing.printer.Printer) -> str:
        return f"{self.name}[{', '.join(self.settings)}]" if self.settings else self.name


class _OpPrinting:
    """The printing that the three classes below share."""

    args: tuple[sympy.Basic, ...]

    def _sympystr(self, printer: sympy.printing.printer.Printer) -> str:
        name, *parts = self.args
        return f"{name.name}({', '.join([*map(printer._print, parts), *name.settings])})"

    def _latex(self, printer: sympy.printing.printer.Printer) -> str:
        name, *parts = self.args
        settings = [rf"\mathrm{{{text}}}".replace("_", r"\_") for text in name.settings]
        inside = ", ".join([*map(printer._print, parts), *settings])
        return rf"\operatorname{{{name.name}}}\left({inside}\right)".replace("_operator", r"\_operator")


class ScalarForm(_OpPrinting, sympy.Expr):
    """A number computed by an op."""

    is_commutative = True
    is_extended_real = True

    def __new__(cls, name: OpName, *parts: sympy.Basic) -> ScalarForm:
        """The op ``name`` of the operands ``parts``."""
        return sympy.Expr.__new__(cls, name, *parts)


class MatrixForm(_OpPrinting, MatrixExpr):
    """A matrix computed by an op."""

    def __new__(cls, name: OpName, *parts: sympy.Basic) -> MatrixForm:
        """The op ``name`` of the operands ``parts``."""
        return MatrixExpr.__new__(cls, name, *parts)

    @property
    def shape(self) -> Shape:
        """Rows and columns."""
        return tuple(sympy.sympify(n, strict=True) for n in self.args[0].shape)

    def _entry(self, i: sympy.Basic, j: sympy.Basic, **kwargs: Any) -> sympy.Basic:
        return MatrixElement(self, i, j)


class ArrayForm(_OpPrinting, _ArrayExpr):
    """An array with another number of axes, computed by an op."""

    def __new__(cls, name: OpName, *parts: sympy.Basic) -> ArrayForm:
        """The op ``name`` of the operands ``parts``."""
        return sympy.Expr.__new__(cls, name, *parts)

    @property
    def shape(self) -> Shape:
        """The sizes of the axes."""
        return tuple(sympy.sympify(n, strict=True) for n in self.args[0].shape)


def opaque(node: Node, forms: Sequence[sympy.Basic]) -> sympy.Expr:
    """A node as a form of its op, with the SymPy expressions of its arguments."""
    name = OpName(node.op, node.shape)
    cls = {0: ScalarForm, 2: MatrixForm}.get(node.ndim, ArrayForm)
    return cls(name, *forms)


@operands.register(ScalarForm)
@operands.register(MatrixForm)
@operands.register(ArrayForm)
def form_operands(expression: sympy.Expr, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    return expression.args[1:]


@lift.register(ScalarForm)
@lift.register(MatrixForm)
@lift.register(ArrayForm)
def form_lift(expression: sympy.Expr, args: Nodes, tracer: Tracer) -> Node:
    return Node.of(expression.args[0].op, args)
