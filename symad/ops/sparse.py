"""The op whose value is a sparse matrix: entries computed elsewhere, put on a fixed pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from symad.dims import Shape, same_dim, size
from symad.errors import ShapeError
from symad.graph import ZERO, Node, Op, shape
from symad.ops.contraction import permute
from symad.ops.shaping import ScatterAdd, broadcast_to, concatenate, gather, lift, reshape
from symad.ops.sources import array_constant, constant
from symad.questions import (
    Flags,
    Forms,
    Nodes,
    Tangent,
    Tangents,
    Values,
    batch,
    definition,
    evaluate,
    flops,
    jvp,
    sympy_form,
    transpose,
)

INDEX = "<i4"
"""How positions are stored: SciPy's sparse solvers take 32-bit indices."""

IntArray: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


@dataclass(frozen=True, eq=False)
class CompressedRows(Op):
    """A matrix of ``shape`` in compressed rows; argument k holds the entries at ``places[k]``.

    Its value is a scipy ``csr_array`` on a pattern that never changes; a dense array where the
    numbers are no floats, and wherever it is used in a computation.
    """

    shape: Shape
    indptr: bytes
    indices: bytes
    places: tuple[bytes, ...]
    linear = True

    @cached_property
    def rows(self) -> IntArray:
        """Where each row starts, (rows + 1,)."""
        return np.frombuffer(self.indptr, INDEX)

    @cached_property
    def columns(self) -> IntArray:
        """The column of each entry, (nnz,)."""
        return np.frombuffer(self.indices, INDEX)

    @cached_property
    def positions(self) -> tuple[Any, ...]:
        """For each argument the positions of its entries: a slice where they are evenly spaced."""
        return tuple(_as_slice(np.frombuffer(place, INDEX)) for place in self.places)


def _as_slice(positions: IntArray) -> Any:
    if len(positions) == 0:
        return slice(0, 0, 1)
    step = int(positions[1] - positions[0]) if len(positions) > 1 else 1
    first, last = int(positions[0]), int(positions[-1])
    if step > 0 and np.array_equal(positions, np.arange(first, last + 1, step)):
        return slice(first, last + 1, step)
    return positions


def compressed_rows(
    dims: tuple[int, int], indptr: Any, indices: Any, parts: Sequence[tuple[Node, Any]]
) -> Node:
    """The sparse matrix with the entries (node (k,), positions (k,)) among the stored ones.

    Args:
        dims: rows and columns.
        indptr: where each row starts among the stored entries, (rows + 1,).
        indices: the column of each stored entry, (nnz,), ascending in each row.
        parts: nodes of entries, with their positions.

    Raises:
        ShapeError: the parts do not fill the stored entries once each.
    """
    empty = np.zeros(0, np.int64)
    filled = np.concatenate([empty, *(np.asarray(places, np.int64) for _, places in parts)])
    if not np.array_equal(np.sort(filled), np.arange(len(indices))):
        raise ShapeError(f"the parts do not fill the {len(indices)} stored entries once each")
    op = CompressedRows(
        dims,
        np.asarray(indptr).astype(INDEX).tobytes(),
        np.asarray(indices).astype(INDEX).tobytes(),
        tuple(np.asarray(places).astype(INDEX).tobytes() for _, places in parts),
    )
    return Node.of(op, tuple(node for node, _ in parts))


@shape(CompressedRows)
def compressed_rows_shape(op: CompressedRows, args: Nodes) -> Shape:
    """The matrix's; every part must have as many elements as places."""
    lengths = [len(place) // np.dtype(INDEX).itemsize for place in op.places]
    if len(args) != len(lengths) or not all(
        same_dim(size(a.shape), k) for a, k in zip(args, lengths, strict=True)
    ):
        raise ShapeError(f"parts of {[a.shape for a in args]} were given for {lengths} entries")
    return op.shape


@jvp.dispatch
def compressed_rows_jvp(op: CompressedRows, y: Node, tangents: Tangents) -> Tangent:
    """A dense matrix: other ops can go on with it."""
    if not any(isinstance(t, Node) for t in tangents):
        return ZERO
    filled = [
        t if isinstance(t, Node) else broadcast_to(constant(0), arg.shape)
        for t, arg in zip(tangents, y.args, strict=True)
    ]
    return _dense(op, [reshape(t, (size(t.shape),)) for t in filled])


@transpose.dispatch
def compressed_rows_transpose(op: CompressedRows, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    """Each part gets the cotangents of its entries."""
    entries = reshape(y_bar, (size(op.shape),))
    flat = _flat_positions(op)
    return tuple(
        reshape(gather(entries, array_constant(flat[where])), arg.shape) if flag else ZERO
        for where, arg, flag in zip(op.positions, y.args, linear, strict=True)
    )


def _flat_positions(op: CompressedRows) -> IntArray:
    """The position of each entry in the dense matrix, flattened."""
    m, n = (int(d) for d in op.shape)
    return np.repeat(np.arange(m), np.diff(op.rows)) * n + op.columns


def _dense(op: CompressedRows, parts: Sequence[Node]) -> Node:
    """The dense matrix, from parts (k,), or matrices (b, m, n) from parts (k, b)."""
    flat = _flat_positions(op)
    places = array_constant(np.concatenate([flat[where] for where in op.positions]))
    added = Node.of(ScatterAdd(size(op.shape)), (places, concatenate(parts)))
    if len(added.shape) > 1:
        added = permute(added, (1, 0))
    return reshape(added, (*added.shape[:-1], *op.shape))


@definition.dispatch
def compressed_rows_definition(op: CompressedRows, y: Node) -> Node:
    """The dense matrix: all entries added into zeros."""
    if not y.args:
        return broadcast_to(constant(0), op.shape)
    return _dense(op, [reshape(arg, (size(arg.shape),)) for arg in y.args])


@batch.dispatch
def compressed_rows_batch(op: CompressedRows, args: Nodes, batched: Flags, count: Any) -> Node:
    """A batch of matrices is dense."""
    lifted = [lift(arg, flag, count) for arg, flag in zip(args, batched, strict=True)]
    flat = [reshape(arg, (count, size(arg.shape[1:]))) for arg in lifted]
    return _dense(op, [permute(arg, (1, 0)) for arg in flat])


@flops.dispatch
def compressed_rows_flops(op: CompressedRows, y: Node) -> Any:
    """None: entries are moved."""
    return 0


@evaluate.dispatch
def compressed_rows_evaluate(op: CompressedRows, values: Values) -> Any:
    """A ``csr_array`` of floats, a dense array of other numbers."""
    parts = [np.ravel(value) for value in values]
    dtype = np.result_type(np.float32, *parts) if parts else np.dtype(float)
    data = np.zeros(len(op.columns), dtype)
    for where, part in zip(op.positions, parts, strict=True):
        data[where] = part
    if dtype.kind == "O":
        dense = np.zeros(op.shape, object)
        dense.reshape(-1)[_flat_positions(op)] = data
        return dense
    from scipy.sparse import csr_array

    return csr_array((data, op.columns, op.rows), shape=op.shape)


@sympy_form.dispatch
def compressed_rows_sympy(op: CompressedRows, y: Node, forms: Forms) -> Any:
    """SymPy has no sparse matrix of given pattern: the op stands for itself."""
    return None
