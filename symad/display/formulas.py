"""A node as a formula in terms of the names of its arguments, as text and as LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import singledispatch

import sympy

from symad.core.dims import format_shape
from symad.core.graph import Node, Op
from symad.core.questions import sympy_form
from symad.display.latex import escaped, latex
from symad.display.tables import Math
from symad.ops.arrays.gathering import Gather
from symad.ops.arrays.reduction import Extreme, Product
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape, Slice
from symad.ops.basic.sources import ArrayConstant, Eye, Input, Iota, Source, input_node
from symad.ops.linalg.cholesky import Cholesky
from symad.ops.linalg.solve_det import Determinant, LogDeterminant, Solve


def symbol(name: str) -> sympy.Symbol:
    """The symbol of a state, tangent or adjoint, such as ``s_3``."""
    return sympy.Symbol(name, real=True)


def formula(node: Node, names: Sequence[sympy.Expr]) -> Math:
    """The formula of a node: ``sin(s_1)``, ``s_1 @ s_2``, ``sum(s_3)``.

    Args:
        node: any node.
        names: for each argument a SymPy symbol or number that stands for it.
    """
    return _formula(node.op, node, tuple(names))


def expression(value: sympy.Expr) -> Math:
    """A SymPy object as a formula."""
    return Math(str(value), latex(value))


def call(name: str, names: Sequence[sympy.Expr], *options: str) -> Math:
    """A function call."""
    arguments = ", ".join([*map(str, names), *options])
    inside = ", ".join([*map(latex, names), *(rf"\text{{{escaped(o)}}}" for o in options)])
    return Math(f"{name}({arguments})", rf"\operatorname{{{escaped(name)}}}\left({inside}\right)")


@singledispatch
def _formula(op: Op, node: Node, names: tuple[sympy.Expr, ...]) -> Math:
    """The formula of an op; by default its name with its fields."""
    options = [f"{f.name}={_short(getattr(op, f.name))}" for f in fields(op)]
    return call(type(op).__name__.lower(), names, *options)


def _short(value: object) -> str:
    """A field of an op; a large value is replaced by the name of its type."""
    if isinstance(value, tuple):
        return format_shape(value) if value else "()"
    plain = (int, float, str, sympy.Basic, type)
    return str(value) if isinstance(value, plain) else type(value).__name__


@_formula.register(ElementwiseOp)
def _elementwise(op: ElementwiseOp, node: Node, names: tuple[sympy.Symbol, sympy.Expr]) -> Math:
    """The scalar formula, for every shape."""
    scalar = Node.of(op, tuple(input_node(sympy.Dummy(real=True)) for _ in names))
    return expression(sympy_form(op, scalar, names))


@_formula.register(Source)
def _source(op: Source, node: Node, names: tuple[sympy.Expr, ...]) -> Math:
    return expression(sympy_form(op, node, ()))


@_formula.register(Input)
def _input(op: Input, node: Node, names: tuple[sympy.Expr, ...]) -> Math:
    return Math(str(op.symbol), latex(op.symbol))


@_formula.register(ArrayConstant)
def _array_constant(op: ArrayConstant, node: Node, names: tuple[sympy.Expr, ...]) -> Math:
    shape = "×".join(map(str, op.shape))
    return Math(f"constant {shape}", rf"\text{{constant }} {shape.replace('×', chr(92) + 'times ')}")


@_formula.register(Eye)
def _eye(op: Eye, node: Node, names: tuple[sympy.Expr, ...]) -> Math:
    return Math(f"I({op.size})", f"I_{{{latex(op.size)}}}")


@_formula.register(Iota)
def _iota(op: Iota, node: Node, names: tuple[sympy.Expr, ...]) -> Math:
    return Math(f"0..{op.size - 1}", rf"0,\dots,{latex(op.size - 1)}")


@_formula.register(Einsum)
def _einsum(op: Einsum, node: Node, names: tuple[sympy.Expr, ...]) -> Math:
    """Matrix products, transposes and sums in their usual notation."""
    texts, latexes = list(map(str, names)), list(map(latex, names))
    if len(names) == 2:
        product = matrix_product(op)
        if product is not None:
            marks = list(zip(product, ("ᵀ", "ᵀ"), strict=True))
            left, right = (t + m if flip else t for t, (flip, m) in zip(texts, marks, strict=True))
            tops = (f"{t}^T" if flip else t for t, flip in zip(latexes, product, strict=True))
            return Math(f"{left} @ {right}", " ".join(tops))
        if op.inputs[0] == op.inputs[1] and not op.output:
            return Math(f"sum({texts[0]}*{texts[1]})", rf"\sum {latexes[0]} {latexes[1]}")
    if len(names) == 1 and set(op.inputs[0]) == set(op.output):
        if len(op.inputs[0]) > len(op.output):
            return call("diagonal", names)
        if len(op.output) == 2:
            return Math(f"{texts[0]}ᵀ", f"{latexes[0]}^T")
        return call("permute", names, str(tuple(op.inputs[0].index(k) for k in op.output)))
    if len(names) == 1 and len(set(op.inputs[0])) == len(op.inputs[0]):
        gone = [k for k, label in enumerate(op.inputs[0]) if label not in op.output]
        return call("sum", names, *([f"axis={gone[0]}"] if op.output and len(gone) == 1 else []))
    return call("trace", names) if op.spec == "ii->" else call("einsum", names, op.spec)


def matrix_product(op: Einsum) -> tuple[bool, bool] | None:
    """For each factor of a matrix product, true if it is transposed; None for other contractions."""
    first, second = op.inputs
    shared = set(first) & set(second)
    kept = [k for k in (*first, *second) if k not in shared]
    if len(shared) != 1 or max(len(first), len(second)) != 2 or list(op.output) != kept:
        return None
    (common,) = shared
    return first[-1] != common, second[0] != common


@_formula.register(Broadcast)
def _broadcast(op: Broadcast, node: Node, names: tuple[sympy.Expr, ...]) -> Math:
    return call("broadcast", names, format_shape(op.shape))


@_formula.register(Reshape)
def _reshape(op: Reshape, node: Node, names: tuple[sympy.Expr, ...]) -> Math:
    return call("reshape", names, format_shape(op.shape))


@_formula.register(Slice)
def _slice(op: Slice, node: Node, names: tuple[sympy.Expr, ...]) -> Math:
    """The subscripts as Python writes them."""
    parts = []
    for dim, start, count, step in zip(node.args[0].shape, op.start, op.count, op.step, strict=True):
        if start == 0 and count == dim and step == 1:
            parts.append(":")
        elif count == 1:
            parts.append(str(start))
        else:
            stop = start + count * step
            parts.append(f"{start}:{stop}" + (f":{step}" if step != 1 else ""))
    inside = ", ".join(parts)
    return Math(f"{names[0]}[{inside}]", rf"{latex(names[0])}\left[{inside}\right]")


@_formula.register(Stack)
@_formula.register(Concatenate)
@_formula.register(Gather)
@_formula.register(Product)
@_formula.register(Cholesky)
@_formula.register(Determinant)
@_formula.register(LogDeterminant)
@_formula.register(Solve)
def _named(op: Op, node: Node, names: tuple[sympy.Expr, ...]) -> Math:
    known = {"Determinant": "det", "LogDeterminant": "logdet"}
    return call(known.get(type(op).__name__, type(op).__name__.lower()), names)


@_formula.register(Extreme)
def _extreme(op: Extreme, node: Node, names: tuple[sympy.Expr, ...]) -> Math:
    partial = len(op.axes) < len(node.args[0].shape)
    return call(op.kind, names, *([f"axis={op.axes[0]}"] if partial and len(op.axes) == 1 else []))
