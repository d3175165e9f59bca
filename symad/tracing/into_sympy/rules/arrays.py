"""The SymPy forms of the ops of `symad.ops.arrays`, and of sources, shapes and contractions."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import sympy
from sympy.tensor.array.expressions import Reshape

from symad.core.graph import Node
from symad.core.questions import Form, Forms, definition, sympy_form
from symad.ops.arrays.ordering import SortingPositions
from symad.ops.arrays.positions import Positions
from symad.ops.arrays.random import RandomOp
from symad.ops.arrays.reduction import Extreme, Product
from symad.ops.arrays.softmax import ExponentialOp, LogSoftmax, LogSumExp, Softmax
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import ShapingOp
from symad.ops.basic.sources import ArrayConstant, Constant, Dimension, Eye, Input, Iota
from symad.sympy_functions import matrix_functions
from symad.tracing.inferred_bases import with_shape
from symad.tracing.into_sympy import arrays
from symad.tracing.into_sympy.nodes import nodes_to_sympy


@sympy_form.dispatch
def einsum_sympy(op: Einsum, y: Node, forms: Forms) -> Form:
    return arrays.einsum(op, y, forms)


@sympy_form.dispatch
def sorting_positions_sympy(op: SortingPositions, y: Node, forms: Forms) -> Form:
    return nodes_to_sympy([definition(op, y)])[0]


@sympy_form.dispatch
def positions_sympy(op: Positions, y: Node, forms: Forms) -> Form:
    return nodes_to_sympy([definition(op, y)])[0]


@sympy_form.dispatch
def extreme_sympy(op: Extreme, y: Node, forms: Forms) -> Form:
    return None  # SymPy has no such reduction


@sympy_form.dispatch
def product_sympy(op: Product, y: Node, forms: Forms) -> Form:
    return None  # SymPy has no such reduction


@sympy_form.dispatch
def shaping_sympy(op: ShapingOp, y: Node, forms: Forms) -> Form:
    return arrays.shaping(op, y, forms)


@sympy_form.dispatch
def input_sympy(op: Input, y: Node, forms: Forms) -> Form:
    return with_shape(op.symbol, op.shape)


@sympy_form.dispatch
def constant_sympy(op: Constant, y: Node, forms: Forms) -> Form:
    if isinstance(op.value, Fraction):
        return sympy.Rational(op.value.numerator, op.value.denominator)
    return sympy.sympify(op.value, strict=True)


@sympy_form.dispatch
def array_constant_sympy(op: ArrayConstant, y: Node, forms: Forms) -> Form:
    return arrays.constant(op.array)


@sympy_form.dispatch
def dimension_sympy(op: Dimension, y: Node, forms: Forms) -> Form:
    return op.expression


@sympy_form.dispatch
def iota_sympy(op: Iota, y: Node, forms: Forms) -> Form:
    """The column of row numbers, as a vector."""
    row, column = sympy.symbols("row column", integer=True)
    rows = sympy.FunctionMatrix(op.size, 1, sympy.Lambda((row, column), row))
    return Reshape(rows, (op.size,))


@sympy_form.dispatch
def eye_sympy(op: Eye, y: Node, forms: Forms) -> Form:
    return sympy.Identity(op.size)


@sympy_form.dispatch
def random_sympy(op: RandomOp, y: Node, forms: Forms) -> Form:
    """SymPy has no such function: the op is wrapped."""
    return None


@sympy_form.dispatch
def exponential_sympy(op: ExponentialOp, y: Node, forms: Forms) -> Form:
    """A function of `symad.functions` of a matrix; if there is none, the op is wrapped."""
    heads: dict[type, Callable[..., Any]] = {
        Softmax: matrix_functions.Softmax,
        LogSoftmax: matrix_functions.LogSoftmax,
        LogSumExp: matrix_functions.LogSumExp,
    }
    head = heads.get(type(op))
    everything = len(op.axes) == len(y.args[0].shape)
    if head is None or not isinstance(forms[0], sympy.MatrixExpr):
        return None
    if everything:
        return head(forms[0])
    return None if type(op) is LogSumExp else head(forms[0], op.axes[0])
