"""Linear algebra, recurrences in closed form, random numbers and sparse matrices in NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import size
from symad.core.graph import Op
from symad.higher_order import adjugate
from symad.higher_order.adjugate import Adjugate, AdjugateTangent
from symad.higher_order.affine_scan import AffineScan, join_pairs
from symad.numbers import philox
from symad.numeric.program.expressions import Compute
from symad.numeric.targets import helpers
from symad.numeric.targets.scalars import Written, write
from symad.numeric.targets.target import Level, MatrixProduct, NumPy, Text, Texts
from symad.numeric.targets.writer import Writer
from symad.ops.arrays.random import FoldIn, Uniform
from symad.ops.basic.contraction import Einsum, Labels
from symad.ops.linalg.cholesky import Cholesky, Triangle, TriangularSolve
from symad.ops.linalg.eigen import EigenSystem, EigenValues, EigenVectors
from symad.ops.linalg.matrix_power import MatrixPower, MatrixPowerDerivative
from symad.ops.linalg.slogdet import DeterminantSign
from symad.ops.linalg.solve_det import Determinant, LogDeterminant, Solve
from symad.ops.sparse.csr import CompressedRows, as_slice
from symad.ops.sparse.sparse_solve import SparseSolve, solve_sparse

Called: TypeAlias = (
    Solve
    | Determinant
    | LogDeterminant
    | Cholesky
    | MatrixPowerDerivative
    | EigenSystem
    | Adjugate
    | AdjugateTangent
)
"""Ops that are calls of one function on their arguments."""

CALLS: dict[type[Op], str | Callable[..., Array]] = {
    Solve: "linalg.solve",
    Determinant: "linalg.det",
    LogDeterminant: helpers._log_determinant,
    Cholesky: "linalg.cholesky",
    MatrixPowerDerivative: helpers._matrix_power_derivative,
    EigenSystem: helpers._eigen_system,
    Adjugate: adjugate.adjugate_of,
    AdjugateTangent: adjugate.adjugate_tangent_of,
}
"""The function that each of these ops calls: one of NumPy's, by name, or a helper."""


@write.dispatch
def write_call(op: Called, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    function = CALLS[type(op)]
    name = f"{target.np}.{function}" if isinstance(function, str) else writer.helper(function)
    return Text(f"{name}({', '.join(a.text for a in args)})")


Formed: TypeAlias = (
    DeterminantSign | MatrixPower | EigenValues | EigenVectors | TriangularSolve | AffineScan | FoldIn
)
"""Ops whose text is a form that is filled."""

FORMS: dict[type[Op], tuple[str, Callable[..., Array] | None]] = {
    DeterminantSign: ("{np}.linalg.slogdet({0})[0]", None),
    MatrixPower: ("{np}.linalg.matrix_power({0}, int({1})).copy()", None),  # the power 1 is the matrix itself
    EigenValues: ("{last}[..., 0, :].copy()", None),  # results must not share memory
    EigenVectors: ("{last}[..., 1:, :].copy()", None),
    TriangularSolve: ("{helper}({0}, {1}, {op.lower})", helpers._solve_triangular),
    AffineScan: ("{helper}({0}, {1}, {op.matrices}, {op.backward})", join_pairs),  # h_t = a_t h_{t−1} + b_t
    FoldIn: ("{helper}({0}, {1}, {type})", philox._fold_in),
}
"""The form of each of these ops, and the helper that it calls."""


@write.dispatch
def write_form(op: Formed, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    form, function = FORMS[type(op)]
    helper, last = writer.helper(function) if function else "", args[-1].inside(Level.ATOM)
    return Text(form.format(*args, np=target.np, helper=helper, last=last, op=op, type=writer.type_text))


@write.dispatch
def write_triangle(op: Triangle, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    if op.diagonal in (0, 1):
        return Text(f"{target.np}.tril({args[0]}{', -1' if op.diagonal == 0 else ''})")
    return Text(f"{writer.helper(helpers._lower_triangle)}({args[0]}, {float(op.diagonal)})")


@write.dispatch
def write_uniform(op: Uniform, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    shape = "".join(f"{writer.dim(d)}, " for d in op.shape)
    return Text(f"{writer.helper(philox._uniform)}({args[0]}, ({shape}), {writer.type_text})")


@write.dispatch
def write_compressed_rows(
    op: CompressedRows, target: NumPy, node: Compute, args: Texts, writer: Writer
) -> Written:
    pairs = zip(args, op.places_of, strict=True)
    entries = ", ".join(f"({a}, {places_text(places, writer)})" for a, places in pairs)
    starts, columns = writer.constant(op.rows), writer.constant(op.columns)
    shape = writer.shape(op.shape)
    helper, kind = writer.helper(helpers._sparse), writer.type_text
    return Text(f"{helper}([{entries}], {starts}, {columns}, {shape}, {kind})")


def places_text(places: np.ndarray, writer: Writer) -> str:
    """Positions as text; a slice if they are evenly spaced."""
    found = as_slice(places)
    if not isinstance(found, slice):
        return writer.constant(places)
    step = f", {found.step}" if found.step != 1 else ""
    return f"slice({found.start}, {found.stop}{step})"


@write.dispatch
def write_sparse_solve(op: SparseSolve, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    pattern = ", ".join(writer.constant(np.asarray(part)) for part in (op.starts, op.columns))
    return Text(f"{writer.helper(solve_sparse)}({args[0]}, {args[1]}, {pattern}, {op.transposed})")


# ---- contractions in NumPy -----------------------------------------------------------------------


@write.dispatch
def write_einsum(op: Einsum, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    """The simplest expression of a contraction."""
    made = contraction(op, node, args, writer)
    return made.text() if isinstance(made, MatrixProduct) else made


def contraction(op: Einsum, node: Compute, args: Texts, writer: Writer) -> Text | MatrixProduct:
    """A contraction as a matrix product, or as another expression if it is not one."""
    made: Text | MatrixProduct | None = None
    if len(args) == 1:
        made = one_operand(op, node, args[0], writer)
    elif len(args) == 2:
        made = two_operands(op, node, args, writer)
    if made is not None:
        return made
    optimize = ", optimize=True" if len(args) > 2 else ""
    return Text(f'{writer.np}.einsum("{op.spec}", {", ".join(a.text for a in args)}{optimize})')


def transposed(arg: Text, labels: Labels, wanted: Labels, writer: Writer) -> Text:
    """An array with its axes in the wanted order."""
    if labels == wanted:
        return arg
    base = arg.inside(Level.ATOM)
    return Text(writer.turned(base) if wanted == labels[::-1] else base + permutation(labels, wanted))


def permutation(labels: Labels, wanted: Labels) -> str:
    """The text after an array that puts its axes in the wanted order."""
    if labels == wanted:
        return ""
    if wanted == labels[::-1]:
        return ".T"
    return f".transpose({', '.join(str(labels.index(label)) for label in wanted)})"


def one_operand(op: Einsum, node: Compute, arg: Text, writer: Writer) -> Text | MatrixProduct | None:
    """A sum over axes, a transposition or a trace; None for other contractions of one array."""
    (labels,) = op.inputs
    if len(set(labels)) < len(labels):
        return Text(f"{writer.np}.trace({arg})") if labels == (0, 0) and not op.output else None
    axes = tuple(k for k, label in enumerate(labels) if label not in op.output)
    kept = tuple(label for label in labels if label in op.output)
    made = writer.sum_over(node, arg, axes) if axes else arg
    if isinstance(made, MatrixProduct):
        return MatrixProduct(made.left, made.right, made.after + permutation(kept, op.output))
    return transposed(made, kept, op.output, writer)


def two_operands(op: Einsum, node: Compute, args: Texts, writer: Writer) -> Text | MatrixProduct | None:
    """A product with ``@`` or ``*``, a dot product, or a sum of products; None for other contractions."""
    left, right = op.inputs
    if len(set(left)) < len(left) or len(set(right)) < len(right):
        return None
    both, every = set(left) & set(right), set(left) | set(right)
    if every - both - set(op.output):
        return None  # an axis of one operand alone is summed
    summed = both - set(op.output)
    if not summed:
        return outer(op, args, writer)
    if left == right and not op.output and (len(left) > 1 or not writer.reads_well):
        return Text(f"{writer.np}.vdot({args[0]}, {args[1]})")
    apart = both == summed
    several = apart and max(len(set(part) - summed) for part in op.inputs) > 1
    if len(summed) == 1 and (writer.reads_well or not several):
        return matmul(op, args, next(iter(summed)), writer)
    made = None if writer.reads_well else by_matrices(op, node, args, summed, writer)
    return made or (tensordot(op, args, summed, writer) if apart else None)


def outer(op: Einsum, args: Texts, writer: Writer) -> Text:
    """A product without sums, with axes aligned by None."""
    parts = []
    for labels, arg in zip(op.inputs, args, strict=True):
        order = tuple(label for label in op.output if label in labels)
        part = transposed(arg, labels, order, writer)
        if order != op.output[len(op.output) - len(order) :]:
            index = ", ".join(":" if label in labels else "None" for label in op.output)
            part = Text(f"{part.inside(Level.ATOM)}[{index}]")
        parts.append(part)
    return Text(f"{parts[0].inside(Level.PRODUCT)}*{parts[1].inside(Level.SIGN)}", Level.PRODUCT)


def matmul(op: Einsum, args: Texts, k: int, writer: Writer) -> Text | MatrixProduct | None:
    """``a @ b`` over one axis; the order of axes is: common leading axes, rows, the summed axis, columns."""
    left, right = op.inputs
    stack, rows, columns = _axes(op)
    if len(rows) > 1 and len(columns) <= 1 and not stack and op.output == (*rows, *columns):
        stack, rows = rows[:-1], rows[-1:]  # a stack of matrices times one matrix
        first = transposed(args[0], left, (*stack, *rows, k), writer)
        return _product(first, transposed(args[1], right, (k, *columns), writer))
    made = matrix_by_stack(op, args, k, writer)
    if made is not None:
        return made
    if len(rows) > 1 or len(columns) > 1 or (stack and (not rows or not columns)):
        return tensordot(op, args, {k}, writer) if not stack else None
    if (*stack, *columns, *rows) == op.output and rows and columns:  # (a b)ᵀ = bᵀ aᵀ
        args, left, right, rows, columns = args[::-1], right, left, columns, rows
    first = transposed(args[0], left, (*stack, *rows, k), writer)
    second = transposed(args[1], right, (*stack, k, *columns), writer)
    return _product(first, second, permutation((*stack, *rows, *columns), op.output))


def _axes(op: Einsum) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The axes of the result that both operands have, those of the left one alone, and of the right one."""
    left, right = ({*part} for part in op.inputs)
    kinds = (left & right, left - right, right - left)
    stack, rows, columns = (tuple(x for x in op.output if x in kind) for kind in kinds)
    return stack, rows, columns


def matrix_by_stack(op: Einsum, args: Texts, k: int, writer: Writer) -> MatrixProduct | None:
    """One matrix times each of a stack of matrices, Σ_k a_rk b_tkc -> trc, with the operands in any order."""
    for one, other in ((0, 1), (1, 0)):
        matrix, stack = op.inputs[one], op.inputs[other]
        row = next((x for x in matrix if x != k), k)
        if len(matrix) != 2 or len(stack) < 3 or row in stack or op.output[-2:-1] != (row,):
            continue
        second = transposed(args[other], stack, (*op.output[:-2], k, op.output[-1]), writer)
        return _product(transposed(args[one], matrix, (row, k), writer), second)
    return None


def _product(first: Text, second: Text, after: str = "") -> MatrixProduct:
    return MatrixProduct(first.inside(Level.PRODUCT), second.inside(Level.SIGN), after)


def by_matrices(
    op: Einsum, node: Compute, args: Texts, summed: set[int], writer: Writer
) -> MatrixProduct | None:
    """One product of operands that become matrices when neighboring axes are joined; faster than einsum."""
    left, right = op.inputs
    if len(summed) == 1 and (made := matrix_by_stack(op, args, next(iter(summed)), writer)) is not None:
        return made
    order = tuple(x for x in left if x in summed)
    rows, columns = (tuple(x for x in part if x not in summed) for part in op.inputs)
    if (*rows, *columns) != op.output or not rows or not columns or set(left) & set(right) - summed:
        return None
    shapes = [a.shape for a in node.args]
    first = _as_matrix(args[0], shapes[0], left, rows, order, writer)
    second = _as_matrix(args[1], shapes[1], right, order, columns, writer)
    if first is None or second is None:
        return None
    plain = len(rows) == 1 and len(columns) == 1
    return _product(first, second, "" if plain else f".reshape({', '.join(map(writer.dim, node.shape))})")


def _as_matrix(
    arg: Text, shape: tuple[int, ...], labels: Labels, rows: Labels, columns: Labels, writer: Writer
) -> Text | None:
    """An operand with the given groups of axes as rows and columns."""
    dims = dict(zip(labels, shape, strict=True))
    for one, other, turned in ((rows, columns, False), (columns, rows, True)):
        if labels == (*one, *other):
            if len(labels) > 2:
                groups = ", ".join(writer.dim(size(dims[x] for x in group)) for group in (one, other))
                arg = Text(f"{arg.inside(Level.ATOM)}.reshape({groups})")
            return Text(writer.turned(arg.inside(Level.ATOM))) if turned else arg
    return None


def tensordot(op: Einsum, args: Texts, summed: set[int], writer: Writer) -> Text:
    """A sum over several axes of two operands that have no other axes in common."""
    left, right = op.inputs
    axes = [x for x in left if x in summed]
    places = [left.index(x) for x in axes], [right.index(x) for x in axes]
    rest = (*(x for x in left if x not in summed), *(x for x in right if x not in summed))
    made = Text(f"{writer.np}.tensordot({args[0]}, {args[1]}, axes={places})")
    return transposed(made, rest, op.output, writer)
