"""The op whose value is a sparse matrix: entries from other nodes, placed on a fixed pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from symad.core.arrays import Number
from symad.core.dims import Shape, same_dim, size
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
from symad.ops.arrays.gathering import ScatterAdd, gather
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.contraction import permute, sum_all
from symad.ops.basic.shaping import broadcast_axes, broadcast_to, lift, reshape
from symad.ops.basic.sources import array_constant, constant

INDEX = "<i4"
"""The type of positions: SciPy's sparse solvers use 32-bit indices."""

IntArray: TypeAlias = "NDArray[np.int64]"


@dataclass(frozen=True, eq=False)
class CompressedRows(Op):
    """A matrix of ``shape`` in compressed rows; argument k holds the entries at ``places[k]``.

    Each stored entry is the sum of the arguments' elements for its position. An argument without axes is used
    for all of its positions. The value is a scipy ``csr_array`` on a pattern that never changes; it is a
    dense array for numbers that are not floats, and as an operand of other ops.
    """

    total = True

    shape: Shape
    indptr: bytes
    indices: bytes
    places: tuple[bytes, ...]
    linear = True

    @cached_property
    def rows(self) -> IntArray:
        """The start of each row, (rows + 1,)."""
        return np.frombuffer(self.indptr, INDEX)

    @cached_property
    def columns(self) -> IntArray:
        """The column of each entry, (nnz,)."""
        return np.frombuffer(self.indices, INDEX)

    @cached_property
    def places_of(self) -> tuple[IntArray, ...]:
        """For each argument the positions of its entries among the stored ones, (k,)."""
        return tuple(np.frombuffer(place, INDEX).astype(np.int64) for place in self.places)

    @cached_property
    def writes(self) -> tuple[tuple[IntArray, IntArray, bool], ...]:
        """For each argument: its positions, those to set to zero before, and a flag: true if it is added.

        The first argument that is written to a position is not added.
        """
        filled = np.zeros(len(self.columns), bool)
        made = []
        for places in self.places_of:
            before = filled[places]
            gaps = places[~before] if before.any() else places[:0]
            made.append((places, gaps, bool(before.any())))
            filled[places] = True
        return tuple(made)


def as_slice(positions: IntArray) -> Array | slice:
    """The slice of these positions if they are evenly spaced, otherwise the positions."""
    if len(positions) == 0:
        return slice(0, 0, 1)
    step = int(positions[1] - positions[0]) if len(positions) > 1 else 1
    first, last = int(positions[0]), int(positions[-1])
    if step > 0 and np.array_equal(positions, np.arange(first, last + 1, step)):
        return slice(first, last + 1, step)
    return positions


def compressed_rows(
    dims: tuple[int, int], indptr: Array, indices: Array, parts: Sequence[tuple[Node, Number]]
) -> Node:
    """The sparse matrix with the entries (node (k,), positions (k,)) among the stored ones.

    Args:
        dims: rows and columns.
        indptr: the start of each row among the stored entries, (rows + 1,).
        indices: the column of each stored entry, (nnz,), ascending in each row.
        parts: nodes of entries, with their positions; entries with the same position are added. A node
            without axes is used for all its positions.

    Raises:
        ShapeError: a part has two values for one entry or a position outside, or an entry has no value.
    """
    filled = np.zeros(len(indices), bool)
    for _, places in parts:
        where = np.asarray(places, np.int64)
        if len(where) and (where.min() < 0 or where.max() >= len(filled)):
            raise ShapeError(f"a part has places outside of the {len(filled)} stored entries")
        if np.bincount(where, minlength=1).max() > 1:
            raise ShapeError("a part has several values for one stored entry")
        filled[where] = True
    if not filled.all():
        raise ShapeError(f"the parts do not fill the {len(filled)} stored entries")
    op = CompressedRows(
        dims,
        np.asarray(indptr).astype(INDEX).tobytes(),
        np.asarray(indices).astype(INDEX).tobytes(),
        tuple(np.asarray(places).astype(INDEX).tobytes() for _, places in parts),
    )
    return Node.of(op, tuple(node for node, _ in parts))


@shape(CompressedRows)
def compressed_rows_shape(op: CompressedRows, args: Nodes) -> Shape:
    """The shape of the matrix; every part must have as many elements as positions, or no axes."""
    lengths = [len(place) // np.dtype(INDEX).itemsize for place in op.places]
    if len(args) != len(lengths) or not all(
        not a.shape or same_dim(size(a.shape), k) for a, k in zip(args, lengths, strict=True)
    ):
        raise ShapeError(f"parts of {[a.shape for a in args]} were given for {lengths} entries")
    return op.shape


@jvp.dispatch
def compressed_rows_jvp(op: CompressedRows, y: Node, tangents: Tangents) -> Tangent:
    """A dense matrix, so that other ops can use it."""
    if not any(isinstance(t, Node) for t in tangents):
        return ZERO
    return _dense(op, [t if isinstance(t, Node) else constant(0) for t in tangents])


@transpose.dispatch
def compressed_rows_transpose(op: CompressedRows, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    """Each part gets the cotangents of its entries."""
    entries = reshape(y_bar, (size(op.shape),))
    flat = _flat_positions(op)
    bars: list[Tangent] = []
    for places, arg, flag in zip(op.places_of, y.args, linear, strict=True):
        if not flag:
            bars.append(ZERO)
            continue
        bar = gather(entries, array_constant(flat[places]))
        bars.append(reshape(bar, arg.shape) if arg.shape else sum_all(bar))
    return tuple(bars)


def _flat_positions(op: CompressedRows) -> IntArray:
    """The position of each entry in the dense matrix, flattened."""
    m, n = (int(d) for d in op.shape)
    return np.repeat(np.arange(m), np.diff(op.rows)) * n + op.columns


def _dense(op: CompressedRows, parts: Sequence[Node], lead: Shape = ()) -> Node:
    """The dense matrix (*lead, m, n), from parts without axes or of shape (*lead, ...).

    ``lead`` has at most one axis.
    """
    flat = _flat_positions(op)
    rows = []
    for places, part in zip(op.places_of, parts, strict=True):
        if len(part.shape) > len(lead):
            row = reshape(part, (*lead, len(places)))
        else:  # one value for all positions
            row = broadcast_axes(part, (*lead, len(places)), tuple(range(len(part.shape))))
        rows.append(permute(row, (1, 0)) if lead else row)
    everywhere = array_constant(np.concatenate([flat[places] for places in op.places_of]))
    added = Node.of(ScatterAdd(size(op.shape)), (everywhere, concatenate(rows)))
    return reshape(permute(added, (1, 0)) if lead else added, (*lead, *op.shape))


@definition.dispatch
def compressed_rows_definition(op: CompressedRows, y: Node) -> Node:
    """The dense matrix: all entries added into zeros."""
    return _dense(op, y.args) if y.args else broadcast_to(constant(0), op.shape)


@batch.dispatch
def compressed_rows_batch(op: CompressedRows, args: Nodes, batched: Flags, count: Count) -> Node:
    """A batch of matrices is dense."""
    return _dense(op, [lift(arg, flag, count) for arg, flag in zip(args, batched, strict=True)], (count,))


@flops.dispatch
def compressed_rows_flops(op: CompressedRows, y: Node) -> Count:
    """0: entries are only moved."""
    return 0


@evaluate.dispatch
def compressed_rows_evaluate(op: CompressedRows, values: Values) -> Array:
    """A ``csr_array`` of floats, a dense array of other numbers."""
    parts = [np.ravel(value) if np.ndim(value) else np.asarray(value) for value in values]
    dtype = np.result_type(np.float32, *parts) if parts else np.dtype(float)
    data = np.zeros(len(op.columns), dtype)
    for (places, _, adds), part in zip(op.writes, parts, strict=True):
        data[places] = data[places] + part if adds else part
    if dtype.kind == "O":
        dense = np.zeros(op.shape, object)
        dense.reshape(-1)[_flat_positions(op)] = data
        return dense
    from scipy.sparse import csr_array

    return csr_array((data, op.columns, op.rows), shape=op.shape)
