"""Matrices of parts, and parts of matrices: blocks, slices, elements, diagonals, permutations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import sympy
from sympy.matrices.expressions import special
from sympy.matrices.expressions.blockmatrix import BlockDiagMatrix, BlockMatrix
from sympy.matrices.expressions.companion import CompanionMatrix
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.funcmatrix import FunctionMatrix
from sympy.matrices.expressions.matexpr import MatrixElement
from sympy.matrices.expressions.permutation import MatrixPermute, PermutationMatrix
from sympy.matrices.expressions.slice import MatrixSlice

from symad.core.dims import Dim, Shape, as_dim, as_shape, dim_symbols, format_shape, same_dim
from symad.core.graph import Node, rebuild, topological
from symad.core.questions import Nodes
from symad.errors import ShapeError, TraceError
from symad.ops.arrays.gathering import gather
from symad.ops.arrays.stacking import concatenate, element, pack_scalars
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import contract, diagonal_matrix, matrix_transpose
from symad.ops.basic.shaping import broadcast_axes, broadcast_to, flatten, pad, reshape, slice_axes
from symad.ops.basic.sources import array_constant, constant, dimension, input_node, iota
from symad.ops.elementwise.selection import equal, select
from symad.tracing.error_names import describe
from symad.tracing.walk import Tracer, lift, operands

# ---- the elements of a matrix by a Lambda of their indices ----------------------------------------

# The body is traced once, as a scalar graph in its bound symbols, and then the bound symbols are replaced
# by arrays: elementwise ops act on each element, all other ops are batched.


def apply_lambda(function: sympy.Lambda, arrays: Sequence[Node], tracer: Tracer) -> Node:
    """``function`` of the elements of some arrays of one shape.

    Raises:
        TraceError: the function takes another number of arguments.
    """
    variables = function.variables
    if len(variables) != len(arrays):
        raise TraceError(f"{function} takes {len(variables)} arguments, but is applied to {len(arrays)}")
    body = function.expr
    taken = [v for v in variables if v in tracer.dims]
    if taken:  # the bound symbol hides a dimension of the same name
        fresh = {v: sympy.Dummy(v.name, real=True) for v in taken}
        body, variables = body.xreplace(fresh), [fresh.get(v, v) for v in variables]
    node = tracer.trace(body)
    return substitute(node, dict(zip(map(input_node, variables), arrays, strict=True)))


def substitute(body: Node, replaced: Mapping[Node, Node]) -> Node:
    """A scalar node with some scalar inputs replaced by arrays of one shape, element by element."""
    shape = next(iter(replaced.values())).shape
    reached = set(replaced)
    elementwise = True
    for node in topological([body]):
        if node not in reached and any(a in reached for a in node.args):
            reached.add(node)
            elementwise = elementwise and isinstance(node.op, ElementwiseOp)
    if elementwise:
        return broadcast_to(rebuild((body,), replaced)[0], shape)
    return _batched(body, replaced)


def _batched(body: Node, replaced: Mapping[Node, Node]) -> Node:
    """The node with the elements as a batch, for ops that are not elementwise."""
    from symad.core.dims import size
    from symad.transforms.batches import batch_outputs

    shape = next(iter(replaced.values())).shape
    rows = {node: flatten(array) for node, array in replaced.items()}
    return reshape(batch_outputs((body,), rows, size(shape))[0], shape)


# ---- explicit matrices and arrays ---------------------------------------------------------------


@operands.register(sympy.MatrixBase)
def explicit_operands(expression: sympy.MatrixBase, tracer: Tracer) -> tuple[sympy.Expr | sympy.Symbol, ...]:
    return tuple(expression.flat())


@lift.register(sympy.MatrixBase)
def explicit_lift(expression: sympy.MatrixBase, args: Nodes, tracer: Tracer) -> Node:
    return pack_scalars(args, tuple(expression.shape))


@operands.register(sympy.NDimArray)
def ndim_operands(expression: sympy.NDimArray, tracer: Tracer) -> tuple[sympy.Expr, ...]:
    return tuple(sympy.flatten(expression)) if expression.shape else (expression[()],)


@lift.register(sympy.NDimArray)
def ndim_lift(expression: sympy.NDimArray, args: Nodes, tracer: Tracer) -> Node:
    return pack_scalars(args, as_shape(expression.shape)) if expression.shape else args[0]


@operands.register(BlockMatrix)
def block_operands(expression: BlockMatrix, tracer: Tracer) -> tuple[sympy.MatrixExpr, ...]:
    return tuple(expression.blocks.flat())


@lift.register(BlockMatrix)
def block_lift(expression: BlockMatrix, args: Nodes, tracer: Tracer) -> Node:
    rows, columns = expression.blocks.shape
    return concatenate([concatenate(args[r * columns : (r + 1) * columns], 1) for r in range(rows)], 0)


@operands.register(BlockDiagMatrix)
def block_diagonal_operands(expression: BlockDiagMatrix, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    return expression.args


@lift.register(BlockDiagMatrix)
def block_diagonal_lift(expression: BlockDiagMatrix, args: Nodes, tracer: Tracer) -> Node:
    """Rows of blocks, zeros off the diagonal."""
    zero = constant(0)
    rows = [
        concatenate(
            [a if i == j else broadcast_to(zero, (a.shape[0], b.shape[1])) for j, b in enumerate(args)],
            1,
        )
        for i, a in enumerate(args)
    ]
    return concatenate(rows, 0)


@operands.register(CompanionMatrix)
def companion_operands(expression: CompanionMatrix, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    return (expression.as_explicit(),)


@lift.register(CompanionMatrix)
def companion_lift(expression: CompanionMatrix, args: Nodes, tracer: Tracer) -> Node:
    return args[0]


@operands.register(FunctionMatrix)
def function_matrix_operands(expression: FunctionMatrix, tracer: Tracer) -> tuple[()]:
    return ()


@lift.register(FunctionMatrix)
def function_matrix_lift(expression: FunctionMatrix, args: Nodes, tracer: Tracer) -> Node:
    """The body over all index pairs."""
    shape = as_shape(expression.shape)
    return apply_lambda(expression.lamda, [index_along(shape, axis) for axis in (0, 1)], tracer)


def index_along(shape: Shape, axis: int) -> Node:
    """An array of the given shape whose elements are their positions along ``axis``."""
    index = iota(shape[axis])
    if all(same_dim(dim, 1) for k, dim in enumerate(shape) if k != axis):
        return reshape(index, shape)
    return broadcast_axes(index, shape, (axis,))


def unit_lift(expression: sympy.Basic, args: Nodes, tracer: Tracer) -> Node:
    """A matrix with a single 1, at (i, j)."""
    rows, columns, i, j = as_shape(expression.args)
    return pad(broadcast_to(constant(1), (1, 1)), (i, j), (rows, columns))


if hasattr(special, "MatrixUnit"):  # SymPy 1.15
    operands.register(special.MatrixUnit, function_matrix_operands)
    lift.register(special.MatrixUnit, unit_lift)


# ---- elements and slices ------------------------------------------------------------------------


def is_position(index: sympy.Expr, tracer: Tracer) -> bool:
    """True if an index is known when the dimensions are: an integer, or an expression in them."""
    return bool(index.is_Integer) or dim_symbols([as_dim(index)]) <= tracer.dims


def index_operands(indices: Sequence[sympy.Expr], tracer: Tracer) -> tuple[sympy.Basic, ...]:
    """The indices that are values and have to be traced."""
    return tuple(index for index in indices if not is_position(index, tracer))


def element_at(array: Node, indices: Sequence[sympy.Expr], values: Nodes, tracer: Tracer) -> Node:
    """array[i, j, ...]; ``values`` are the nodes of those indices that are values."""
    if not values:
        return element(array, *map(as_dim, indices))
    rest = iter(values)
    for index in indices:
        known = constant(as_dim(index)) if index.is_Integer else None
        if known is None and is_position(index, tracer):
            known = dimension(index)
        array = gather(array, known if known is not None else next(rest))
    return array


@operands.register(MatrixElement)
def element_operands(expression: MatrixElement, tracer: Tracer) -> tuple[sympy.MatrixExpr, ...]:
    parent, *indices = expression.args
    return (parent, *index_operands(indices, tracer))


@lift.register(MatrixElement)
def element_lift(expression: MatrixElement, args: Nodes, tracer: Tracer) -> Node:
    matrix, *values = args
    indices = expression.args[1:]
    for index, dim in zip(indices, matrix.shape, strict=True):
        if index.is_Integer and isinstance(dim, int) and not 0 <= int(index) < dim:
            raise ShapeError(
                f"{describe(expression)} is outside of the matrix, whose shape is "
                f"{format_shape(matrix.shape)}"
            )
    return element_at(matrix, indices, tuple(values), tracer)


@operands.register(MatrixSlice)
def slice_operands(expression: MatrixSlice, tracer: Tracer) -> tuple[sympy.MatrixExpr, ...]:
    return (expression.parent,)


@lift.register(MatrixSlice)
def slice_lift(expression: MatrixSlice, args: Nodes, tracer: Tracer) -> Node:
    """A[a:b:s, c:d:t] as NumPy counts it: ⌈(b − a)/s⌉ rows, where SymPy rounds down."""
    ranges = [as_shape(part) for part in (expression.rowslice, expression.colslice)]
    starts, counts, steps = [], [], []
    for start, stop, step in ranges:
        if not isinstance(step, int):
            raise TraceError(f"{describe(expression)} has the step {step}; steps are numbers")
        starts.append(start)
        counts.append(_count(start, stop, step))
        steps.append(step)
    return slice_axes(args[0], starts, counts, steps)


def _count(start: Dim, stop: Dim, step: int) -> Dim:
    length = as_dim(stop - start)
    if step == 1:
        return length
    return -(-length // step) if isinstance(length, int) else as_dim(sympy.ceiling(length / step))


# ---- diagonals ----------------------------------------------------------------------------------


@lift.register(DiagMatrix)
def diag_matrix_lift(expression: DiagMatrix, args: Nodes, tracer: Tracer) -> Node:
    """The square matrix with a row or column vector on its diagonal."""
    (v,) = args
    if not any(same_dim(dim, 1) for dim in v.shape):
        raise ShapeError(
            f"{describe(expression)} needs a vector, not a matrix of shape {format_shape(v.shape)}"
        )
    length = v.shape[1] if same_dim(v.shape[0], 1) else v.shape[0]
    return diagonal_matrix(reshape(v, (length,)))


@lift.register(DiagonalMatrix)
def diagonal_part_lift(expression: DiagonalMatrix, args: Nodes, tracer: Tracer) -> Node:
    """A with zeros off the diagonal; A may be rectangular."""
    (a,) = args
    if same_dim(*a.shape):
        return diagonal_matrix(contract([(0, 0)], (0,), a))
    rows, columns = (index_along(a.shape, axis) for axis in (0, 1))
    return select(equal(rows, columns), a, constant(0))


@lift.register(DiagonalOf)
def diagonal_of_lift(expression: DiagonalOf, args: Nodes, tracer: Tracer) -> Node:
    """The diagonal as a column; for a rectangular matrix that of its leading square."""
    (a,) = args
    numbers = [dim for dim in a.shape if isinstance(dim, int)]
    if not numbers and not same_dim(*a.shape):
        raise ShapeError(
            f"{describe(expression)}: which side of the shape {format_shape(a.shape)} is shorter is not known"
        )
    length = min(numbers) if numbers else a.shape[0]  # a symbol counts as longer, as in SymPy
    square = slice_axes(a, (0, 0), (length, length))
    return reshape(contract([(0, 0)], (0,), square), (length, 1))


# ---- permutations -------------------------------------------------------------------------------


@operands.register(PermutationMatrix)
def permutation_operands(expression: PermutationMatrix, tracer: Tracer) -> tuple[()]:
    return ()


@lift.register(PermutationMatrix)
def permutation_lift(expression: PermutationMatrix, args: Nodes, tracer: Tracer) -> Node:
    """P[i, p(i)] = 1."""
    order = expression.args[0].array_form
    return array_constant(np.eye(len(order), dtype=np.int64)[order])


@operands.register(MatrixPermute)
def matrix_permute_operands(expression: MatrixPermute, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    return (expression.args[0],)


@lift.register(MatrixPermute)
def matrix_permute_lift(expression: MatrixPermute, args: Nodes, tracer: Tracer) -> Node:
    """Rows (axis 0) or columns (axis 1) taken in the order of the permutation."""
    _, permutation, axis = expression.args
    order = array_constant(np.array(permutation.array_form))
    if axis == 0:
        return gather(args[0], order)
    return matrix_transpose(gather(matrix_transpose(args[0]), order))
