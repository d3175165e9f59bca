"""Linear systems with a sparse matrix whose pattern is known: factorized by SuperLU, never dense."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from symad.core.dims import Shape, format_shape, same_shape, size
from symad.core.graph import ZERO, Node, Op, shape
from symad.core.questions import (
    Array,
    Count,
    Flags,
    Nodes,
    Tangent,
    Tangents,
    Values,
    batch,
    definition,
    evaluate,
    flops,
    jvp,
    transpose,
)
from symad.errors import ShapeError
from symad.numbers.values import unchecked
from symad.ops.arrays.gathering import ScatterAdd, gather
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.arithmetic import add_tangents, mul, neg
from symad.ops.basic.contraction import permute
from symad.ops.basic.shaping import broadcast_axes, broadcast_to, flatten, lift, reshape
from symad.ops.basic.sources import array_constant, fresh_input
from symad.ops.linalg.solve_det import solve
from symad.ops.sparse.csr import INDEX, CompressedRows, IntArray


@dataclass(frozen=True, eq=False)
class SparseSolve(Op):
    """The solution x of A x = b (Aᵀ x = b if ``transposed``), A (n, n) given by its compressed rows.

    Arguments: the entries (..., nnz) and b (..., n), whose leading axes are those of the entries, and
    possibly more: several right-hand sides for one matrix. Linear in b.
    """

    indptr: bytes
    indices: bytes
    transposed: bool = False

    @cached_property
    def starts(self) -> IntArray:
        """The start of each row, (n + 1,)."""
        return np.frombuffer(self.indptr, INDEX)

    @cached_property
    def columns(self) -> IntArray:
        """The column of each entry, (nnz,)."""
        return np.frombuffer(self.indices, INDEX)

    @cached_property
    def rows(self) -> IntArray:
        """The row of each entry, (nnz,)."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


def sparse_solve(matrix: Node, b: Node) -> Node:
    """The solution x of A x = b for the node of a sparse matrix."""
    op: Any = matrix.op
    return Node.of(SparseSolve(op.indptr, op.indices), (stored_entries(matrix), b))


def stored_entries(matrix: Node) -> Node:
    """The entries of a `CompressedRows`, in the order in which they are stored."""
    op = matrix.op
    assert isinstance(op, CompressedRows)
    parts = [
        flatten(arg) if arg.shape else broadcast_to(arg, (len(places),))
        for arg, places in zip(matrix.args, op.places_of, strict=True)
    ]
    places = array_constant(np.concatenate(op.places_of))
    return Node.of(ScatterAdd(len(op.columns)), (places, concatenate(parts)))


@shape(SparseSolve)
def sparse_solve_shape(op: SparseSolve, args: Nodes) -> Shape:
    entries, b = args
    lead = len(entries.shape) - 1
    fits = same_shape(entries.shape[:-1], b.shape[:lead]) and len(b.shape) > lead
    if not fits or entries.shape[-1] != len(op.columns) or b.shape[-1] != len(op.starts) - 1:
        raise ShapeError(
            f"a sparse system of order {len(op.starts) - 1} with {len(op.columns)} entries does not fit "
            f"entries {format_shape(entries.shape)} and b {format_shape(b.shape)}"
        )
    return b.shape


@jvp.dispatch
def sparse_solve_jvp(op: SparseSolve, y: Node, tangents: Tangents) -> Tangent:
    """The tangent with A x_dot = b_dot − A_dot x."""
    entries_dot, b_dot = tangents
    moved: Tangent = ZERO
    if isinstance(entries_dot, Node):
        moved = neg(_times(op, entries_dot, y))
    right = add_tangents((b_dot, moved))
    return Node.of(op, (y.args[0], right)) if isinstance(right, Node) else ZERO


def _times(op: SparseSolve, entries: Node, x: Node) -> Node:
    """The matrix with these entries (..., nnz) times x (..., n): gathered, multiplied, added up."""
    into, out = (op.columns, op.rows) if op.transposed else (op.rows, op.columns)
    rank, lead = len(x.shape), len(entries.shape) - 1
    first = (rank - 1, *range(rank - 1))
    read = gather(permute(x, first), array_constant(out))  # (nnz, ...)
    own = permute(entries, (lead, *range(lead)))
    factor = broadcast_axes(own, read.shape, tuple(range(lead + 1)))
    added = Node.of(ScatterAdd(len(op.starts) - 1), (array_constant(into), mul(factor, read)))
    return permute(added, (*range(1, rank), 0))


@transpose.dispatch
def sparse_solve_transpose(op: SparseSolve, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    """The cotangent b_bar = A⁻ᵀ y_bar."""
    return ZERO, Node.of(SparseSolve(op.indptr, op.indices, not op.transposed), (y.args[0], y_bar))


@batch.dispatch
def sparse_solve_batch(op: SparseSolve, args: Nodes, batched: Flags, count: Count) -> Node:
    """Right-hand sides are stacked; matrices too, if they differ or b has the axes of their stack."""
    entries, b = args
    if batched[0] or len(entries.shape) > 1:
        entries = lift(entries, batched[0], count)
    return Node.of(op, (entries, lift(b, batched[1], count)))


@definition.dispatch
def sparse_solve_definition(op: SparseSolve, y: Node) -> Node:
    """The definition: a solve with the dense matrix."""
    entries, b = y.args
    n, lead = len(op.starts) - 1, len(entries.shape) - 1
    flat = op.rows * n + op.columns
    own = permute(entries, (lead, *range(lead)))
    dense = Node.of(ScatterAdd(n * n), (array_constant(flat), own))
    matrix = reshape(permute(dense, (*range(1, lead + 1), 0)), (*entries.shape[:-1], n, n))
    if op.transposed:
        matrix = permute(matrix, (*range(lead), lead + 1, lead))
    columns = reshape(b, (*entries.shape[:-1], size(b.shape[lead:-1]), n))
    swapped = permute(columns, (*range(lead), lead + 1, lead))
    found = solve(matrix, swapped)
    return reshape(permute(found, (*range(lead), lead + 1, lead)), b.shape)


@flops.dispatch
def sparse_solve_flops(op: SparseSolve, y: Node) -> Count:
    """A factorization without fill-in, an operation for each pair of entries in a row; and the solves."""
    per_row = np.diff(op.starts)
    return int(np.sum(per_row**2)) + 4 * len(op.columns) * size(y.shape[:-1])


@evaluate.dispatch
def sparse_solve_evaluate(op: SparseSolve, values: Values) -> Array:
    entries, b = map(np.asarray, values)
    if object in (entries.dtype, b.dtype):
        points = tuple(fresh_input(v.shape) for v in (entries, b))
        meaning = definition(op, Node.of(op, points))
        return np.asarray(unchecked([meaning], dict(zip(points, (entries, b), strict=True)))[0])
    return solve_sparse(entries, b, op.starts, op.columns, op.transposed)


def solve_sparse(entries: Array, b: Array, starts: Array, columns: Array, transposed: bool) -> Array:
    """The solution of a sparse system by SuperLU; generated code contains the same function.

    Raises:
        LinAlgError: the matrix is singular.
    """
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    n = len(starts) - 1
    if entries.ndim > 1:
        pairs = zip(entries, b, strict=True)
        return np.stack([solve_sparse(e, right, starts, columns, transposed) for e, right in pairs])
    try:
        factors = splu(csc_array((entries, columns, starts), shape=(n, n)))  # Aᵀ, column by column
    except RuntimeError as error:
        raise np.linalg.LinAlgError(str(error)) from None
    return factors.solve(b.reshape(-1, n).T, trans="N" if transposed else "T").T.reshape(b.shape)
