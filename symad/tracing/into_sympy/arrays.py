"""The SymPy forms of arrays: matrix expressions for two axes, array expressions for any.

Every function proposes one form, or None if SymPy has no class for it; `symad.tracing.into_sympy.nodes` uses
it only if tracing it gives the same node again. Nothing is evaluated: SymPy would reorder products and merge
powers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy
from sympy.matrices.expressions import (
    HadamardPower,
    HadamardProduct,
    Inverse,
    MatAdd,
    MatMul,
    MatPow,
    Transpose,
    special,
)
from sympy.matrices.expressions.applyfunc import ElementwiseApplyFunction
from sympy.matrices.expressions.blockmatrix import BlockMatrix
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf
from sympy.matrices.expressions.factorizations import LofCholesky
from sympy.matrices.expressions.kronecker import KroneckerProduct
from sympy.matrices.expressions.matexpr import MatrixElement
from sympy.matrices.expressions.slice import MatrixSlice
from sympy.tensor.array.expressions import (
    ArrayAdd,
    ArrayContraction,
    ArrayDiagonal,
    ArraySymbol,
    ArrayTensorProduct,
    PermuteDims,
    Reshape,
)
from sympy.tensor.array.expressions.array_expressions import ArrayElement, OneArray, ZeroArray

from symad.core.dims import Shape, same_dim
from symad.core.graph import Node, topological
from symad.core.questions import sympy_form
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic import shaping as sh
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.sources import ArrayConstant, Eye, constant_value, input_node
from symad.ops.linalg import solve_det as la
from symad.ops.linalg.cholesky import Cholesky
from symad.ops.linalg.matrix_power import MatrixPower
from symad.sympy_functions.held_forms import ArrayElementwiseApplyFunc, HeldInverse
from symad.tracing.error_names import is_array

if TYPE_CHECKING:
    from symad.core.dims import Dim
    from symad.core.graph import Op

MAX_WRITTEN_ELEMENTS = 10_000
"""Larger constant arrays are not written element by element."""

ELEMENT = sympy.Dummy("d", real=True)
"""The bound symbol of all elementwise functions."""

INDICES = tuple(sympy.Dummy(name, integer=True) for name in "ijklmn")
"""The bound indices of sums over elements."""


def is_matrix(form: sympy.Basic) -> bool:
    """True if a form can occur in matrix expressions."""
    return getattr(form, "is_Matrix", False) is True


def all_matrices(forms: Sequence[sympy.Basic]) -> bool:
    """True if every array among the forms is a matrix."""
    return all(is_matrix(form) for form in forms if is_array(form))


# ---- constants, elementwise ---------------------------------------------------------------------


def constant(array: np.ndarray) -> sympy.Basic | None:
    """An explicit matrix or array of numbers; SymPy has none for truth values."""
    if array.size > MAX_WRITTEN_ELEMENTS or array.dtype.kind == "b":
        return None
    if array.ndim == 2:
        return sympy.ImmutableDenseMatrix(*array.shape, array.ravel().tolist())
    return sympy.ImmutableDenseNDimArray(array.ravel().tolist(), array.shape)


def over_elements(op: Op, y: Node, forms: Sequence[sympy.Basic]) -> sympy.Basic:
    """A Lambda over the elements of the one array among the arguments."""
    element = input_node(ELEMENT)
    scalar = Node.of(op, tuple(element if a.shape else a for a in y.args))
    body = sympy_form(
        op, scalar, tuple(ELEMENT if a.shape else f for a, f in zip(y.args, forms, strict=True))
    )
    array = next(f for a, f in zip(y.args, forms, strict=True) if a.shape)
    apply = ElementwiseApplyFunction if is_matrix(array) else ArrayElementwiseApplyFunc
    return apply(sympy.Lambda(ELEMENT, body), array)


def add(shape: Shape, signs: Sequence[int], terms: Sequence[sympy.Basic]) -> sympy.Basic | None:
    """A sum of arrays of one shape."""
    if not all(map(is_array, terms)):
        return None
    matrices = all_matrices(terms)
    scale, total = (MatMul, MatAdd) if matrices else (ArrayTensorProduct, ArrayAdd)
    signed = [scale(-1, term) if sign == -1 else term for sign, term in zip(signs, terms, strict=True)]
    return signed[0] if len(signed) == 1 else total(*signed)


def mul(
    shape: Shape,
    coefficient: sympy.Expr,
    powers: Sequence[int],
    factors: Sequence[sympy.Basic] | list[sympy.Expr] | list[sympy.MatrixExpr],
) -> sympy.Basic | None:
    """Numbers in front of an elementwise product of arrays."""
    pairs = list(zip(powers, factors, strict=True))
    numbers = [inverted(f) if power == -1 else f for power, f in pairs if not is_array(f)]
    numbers = numbers if coefficient == 1 else [coefficient, *numbers]
    arrays = [(power, f) for power, f in pairs if is_array(f)]
    if not all_matrices(factors):
        (power, array), *more = arrays
        return None if more or power == -1 or not numbers else ArrayTensorProduct(*numbers, array)
    matrices = [HadamardPower(f, -1) if power == -1 else f for power, f in arrays]
    product = matrices[0] if len(matrices) == 1 else HadamardProduct(*matrices)
    return MatMul(*numbers, product) if numbers else product


def inverted(form: sympy.Expr) -> sympy.Expr:
    """1/form of a number; a power with a number exponent gets the negated exponent."""
    if isinstance(form, sympy.Pow) and isinstance(form.exp, sympy.Number):
        return sympy.Pow(form.base, -form.exp, evaluate=False)
    return sympy.Pow(form, sympy.S.NegativeOne, evaluate=False)


def pow(shape: Shape, base: sympy.Basic, exponent: sympy.Expr) -> sympy.MatrixExpr | None:
    """An elementwise power."""
    return HadamardPower(base, exponent) if all_matrices([base, exponent]) else None


# ---- contractions -------------------------------------------------------------------------------


def einsum(op: Einsum, y: Node, forms: Sequence[sympy.Basic]) -> sympy.Basic:
    """A matrix product, trace or transpose; else a contraction of a tensor product."""
    form = _diagonal_product(op, y, forms)
    if form is not None:
        return form
    if all_matrices(forms):
        form = _one_matrix(op, y, *forms) if len(forms) == 1 else _two_matrices(op, y, forms)
        if form is not None:
            return form
    return _array_einsum(op, forms) if y.shape else _sum_of_products(op, y, forms)


def _one_matrix(op: Einsum, y: Node, form: sympy.MatrixExpr) -> sympy.Expr | None:
    (labels,) = op.inputs
    if len(labels) != 2:
        return None
    if labels == op.output[::-1]:
        return Transpose(form)
    if op.output == ():
        rows, columns = form.shape
        if labels[0] == labels[1]:
            return sympy.Trace(form)
        ones = [] if columns == 1 else [sympy.OneMatrix(columns, 1)]
        return MatrixElement(MatMul(sympy.OneMatrix(1, rows), form, *ones), 0, 0)
    return None


def _two_matrices(op: Einsum, y: Node, forms: Sequence[sympy.MatrixExpr]) -> sympy.Expr | None:
    if len(forms) != 2:
        return None
    (a, b), (left, right) = op.inputs, forms
    if len(a) != 2 or len(b) != 2 or len({*a, *b}) not in (2, 3):
        return None
    if op.output == ():
        return sympy.Trace(MatMul(left, right) if a == b[::-1] else MatMul(Transpose(left), right))
    shared = set(a) & set(b)
    if len(op.output) != 2 or len(shared) != 1 or shared & set(op.output):
        return None
    left = left if a[1] in shared else Transpose(left)
    right = right if b[0] in shared else Transpose(right)
    return MatPow(left, 2) if left == right else MatMul(left, right)


def _diagonal_product(op: Einsum, y: Node, forms: Sequence[sympy.Basic]) -> sympy.MatrixExpr | None:
    """Diag(v), Diag(v)·B or A·Diag(v)."""
    if op.output != (0, 1) or sorted(map(len, op.inputs)) != [1, 2]:
        return None
    a, b = op.inputs
    vector, matrix = forms if len(a) == 1 else forms[::-1]
    column = _as_column(vector)
    if column is None or not is_matrix(matrix):
        return None
    diagonal = DiagMatrix(column)
    if any(isinstance(arg.op, Eye) for arg in y.args):
        return diagonal
    return MatMul(diagonal, matrix) if (0,) in (a, b) else MatMul(matrix, diagonal)


def _sum_of_products(op: Einsum, y: Node, forms: Sequence[sympy.Basic]) -> sympy.Expr | None:
    """Σ of products of elements, with indices from 0."""
    sizes: dict[int, Dim] = {}
    factors = []
    for labels, arg, form in zip(op.inputs, y.args, forms, strict=True):
        sizes.update(zip(labels, arg.shape, strict=True))
        factors.append(_element(form, [INDICES[label] for label in labels]))
    if len(sizes) > len(INDICES) or any(factor is None for factor in factors):
        return None
    limits = [(INDICES[label], 0, size - 1) for label, size in sizes.items()]
    product = factors[0] if len(factors) == 1 else sympy.Mul(*factors, evaluate=False)
    return sympy.Sum(product, *limits)


def _element(form: sympy.Basic, indices: Sequence[sympy.Symbol]) -> sympy.Expr | None:
    """One element of a form; None if it has no simple expression."""
    if isinstance(form, sympy.IndexedBase):
        return sympy.Indexed(form, *indices)
    if is_matrix(form):
        return MatrixElement(form, *indices)
    if isinstance(form, Reshape) and is_matrix(form.expr) and len(indices) == 1:
        return MatrixElement(form.expr, *indices, 0)
    if isinstance(form, ArrayElementwiseApplyFunc):
        inner = _element(form.expr, indices)
        return None if inner is None else form.function.expr.xreplace({form.function.variables[0]: inner})
    if isinstance(form, (ArrayAdd, ArrayTensorProduct)):
        head = sympy.Add if isinstance(form, ArrayAdd) else sympy.Mul  # of numbers and one array
        parts = [_element(part, indices) if is_array(part) else part for part in form.args]
        return None if None in parts else head(*parts, evaluate=False)
    return ArrayElement(form, tuple(indices)) if isinstance(form, ArraySymbol) else None


def _as_column(vector: sympy.Basic) -> sympy.MatrixExpr:
    """The (n, 1) matrix of a vector that came from one; None for others."""
    if isinstance(vector, Reshape) and is_matrix(vector.expr):
        return vector.expr
    if isinstance(vector, ArrayDiagonal) and is_matrix(vector.expr):
        return DiagonalOf(vector.expr)
    return None


def _array_einsum(op: Einsum, forms: Sequence[sympy.Basic]) -> sympy.Basic:
    """A permuted diagonal of a contraction of a tensor product, without the steps that are not needed."""
    axes = [label for labels in op.inputs for label in labels]
    form = forms[0] if len(forms) == 1 else ArrayTensorProduct(*forms)
    summed = [label for label in dict.fromkeys(axes) if label not in op.output]
    if summed:
        form = ArrayContraction(form, *(_positions(axes, label) for label in summed))
        axes = [label for label in axes if label in op.output]
    repeated = [label for label in dict.fromkeys(axes) if axes.count(label) > 1]
    if repeated:
        form = ArrayDiagonal(form, *(_positions(axes, label) for label in repeated))
        axes = [label for label in axes if label not in repeated] + repeated
    order = [axes.index(label) for label in op.output]
    return form if order == list(range(len(order))) else PermuteDims(form, order)


def _positions(axes: Sequence[int], label: int) -> tuple[int, ...]:
    return tuple(k for k, other in enumerate(axes) if other == label)


# ---- moved elements -----------------------------------------------------------------------------


def shaping(op: Op, y: Node, forms: Sequence[sympy.Basic]) -> sympy.Basic | None:
    """Blocks, slices, elements or repetitions, according to the class of the op."""
    table: dict[Any, Any] = {
        sh.Broadcast: _broadcast,
        sh.Reshape: _reshape,
        sh.Slice: _slice,
        Concatenate: _concatenate,
        Stack: _stack,
        sh.Pad: _pad,
    }
    propose = table.get(type(op))
    return propose(op, y, forms) if propose is not None else None


def _broadcast(op: sh.Broadcast, y: Node, forms: Sequence[sympy.Basic]) -> sympy.Basic | None:
    (form,), matrix = forms, len(op.shape) == 2
    if not op.axes:
        value = constant_value(y.args[0])
        if value == 0:
            return sympy.ZeroMatrix(*op.shape) if matrix else ZeroArray(*op.shape)
        if op.shape == (1, 1) and isinstance(form, MatrixElement) and form.parent.shape == (1, 1):
            return form.parent
        ones = sympy.OneMatrix(*op.shape) if matrix else OneArray(*op.shape)
        return ones if value == 1 else MatMul(form, ones) if matrix else ArrayTensorProduct(form, ones)
    if matrix and isinstance(form, Reshape) and is_matrix(form.expr):
        rows, columns = op.shape
        if op.axes == (0,):
            return MatMul(form.expr, sympy.OneMatrix(1, columns))
        return MatMul(sympy.OneMatrix(rows, 1), form.expr)
    return None


def _reshape(op: sh.Reshape, y: Node, forms: Sequence[sympy.Basic]) -> sympy.Basic | None:
    (form,) = forms
    inner = y.args[0]
    if isinstance(inner.op, Stack) and not inner.args[0].shape:
        entries = sympy.flatten(form)
        return (
            sympy.ImmutableDenseMatrix(*op.shape, entries) if len(op.shape) == 2 else form.reshape(*op.shape)
        )
    if not op.shape:
        return _only_element(form)
    if len(op.shape) == 2:
        return _as_matrix(op.shape, inner, form)
    return Reshape(form, op.shape) if is_array(form) else None


def _only_element(form: sympy.Expr) -> sympy.Expr:
    """The element of an array with one element."""
    if isinstance(form, MatrixSlice):
        return MatrixElement(form.parent, form.rowslice[0], form.colslice[0])
    if is_matrix(form):
        return MatrixElement(form, 0, 0)
    return ArrayElement(form, (0,) * len(form.shape)) if isinstance(form, sympy.Expr) else None


def _as_matrix(shape: Shape, inner: Node, form: sympy.Basic) -> sympy.MatrixExpr | None:
    """A vector or a 4-axis product as a matrix."""
    if isinstance(form, ArrayContraction) and is_matrix(form.expr) and len(form.shape) == 1:
        if form.contraction_indices == ((0,),):
            return MatMul(sympy.OneMatrix(1, form.expr.shape[0]), form.expr)
        return MatMul(form.expr, sympy.OneMatrix(form.expr.shape[1], 1))
    if isinstance(form, ArrayDiagonal):
        return _as_column(form)
    if isinstance(form, PermuteDims) and isinstance(form.expr, ArrayTensorProduct):
        return KroneckerProduct(*form.expr.args)
    if isinstance(form, Reshape) and is_matrix(form.expr) and isinstance(form.expr, sympy.FunctionMatrix):
        return form.expr if same_dim(shape[1], 1) else None
    return None


def _slice(op: sh.Slice, y: Node, forms: Sequence[sympy.Basic]) -> sympy.MatrixExpr | None:
    (form,) = forms
    if not is_matrix(form) or isinstance(form, MatrixSlice):
        return None
    ranges = [
        (start, start + (count - 1) * step + 1, step)
        for start, count, step in zip(op.start, op.count, op.step, strict=True)
    ]
    return MatrixSlice(form, *ranges)


def _concatenate(op: Concatenate, y: Node, forms: Sequence[sympy.Basic]) -> sympy.MatrixExpr | None:
    if not all(map(is_matrix, forms)):
        return None
    return BlockMatrix([[form] for form in forms] if op.axis == 0 else [list(forms)])


def _stack(op: Stack, y: Node, forms: Sequence[sympy.Basic]) -> sympy.Basic | None:
    return None if y.args[0].shape else sympy.ImmutableDenseNDimArray(list(forms), (len(forms),))


def _pad(op: sh.Pad, y: Node, forms: Sequence[sympy.MatrixExpr]) -> sympy.Basic | None:
    """A single element of a matrix, if SymPy has a class for it (1.15)."""
    if not hasattr(special, "MatrixUnit") or len(op.shape) != 2 or y.args[0].shape != (1, 1):
        return None
    return special.MatrixUnit(*op.shape, *op.start)


# ---- linear algebra -----------------------------------------------------------------------------


def is_explicit(matrix: Node) -> bool:
    """True if a matrix has entries that SymPy would compute with one by one."""
    return any(isinstance(node.op, (Stack, ArrayConstant)) for node in topological([matrix]))


def linalg(op: Op, y: Node, forms: Sequence[sympy.Basic]) -> sympy.Expr | None:
    """Inverses, determinants, Cholesky factors and powers of matrices."""
    if not all_matrices(forms):
        return None
    first = forms[0]
    if isinstance(op, la.Solve):
        inverse = (HeldInverse if is_explicit(y.args[0]) else Inverse)(first)
        return inverse if isinstance(y.args[1].op, Eye) else MatMul(inverse, forms[1])
    if isinstance(op, la.Determinant):
        return sympy.Determinant(first)
    if isinstance(op, la.LogDeterminant):
        return sympy.log(sympy.Determinant(first), evaluate=False)
    if isinstance(op, Cholesky):
        return LofCholesky(first)
    return MatPow(first, forms[1]) if isinstance(op, MatrixPower) else None
