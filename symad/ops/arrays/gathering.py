"""Rows by index: gather, and its transpose scatter-add. Both are linear in their arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symad.core.arrays import ArrayLike
from symad.core.dims import Dim, Shape, size
from symad.core.graph import ZERO, Node, shape
from symad.core.nodes import Moved
from symad.core.questions import (
    Array,
    Count,
    Flags,
    Nodes,
    Tangent,
    Tangents,
    Values,
    batch,
    evaluate,
    flops,
    jvp,
    transpose,
)
from symad.errors import ShapeError
from symad.numbers.dual import primals
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.shaping import ShapingOp, broadcast_axes, lift, reshape
from symad.ops.basic.sources import dimension, iota


@dataclass(frozen=True, eq=False)
class Gather(ShapingOp):
    """Rows: y[i..., :] = table[indices[i...], :] along axis 0 of the table. Linear in the table."""

    moves = Moved.JOINED
    row_numbers = (1,)


@dataclass(frozen=True, eq=False)
class ScatterAdd(ShapingOp):
    """The transpose of `Gather`: rows of ``updates`` added into zeros of ``size`` rows.

    Arguments: indices (s...), updates (s..., rest...). Linear in the updates.
    """

    row_numbers = (0,)

    size: Dim


def gather(table: Node, indices: Node) -> Node:
    """The rows of ``table`` at ``indices``."""
    return Node.of(Gather(), (table, indices))


@shape(Gather)
def gather_shape(op: Gather, args: Nodes) -> Shape:
    table, indices = args
    return indices.shape + table.shape[1:]


@shape(ScatterAdd)
def scatter_add_shape(op: ScatterAdd, args: Nodes) -> Shape:
    indices, updates = args
    return (op.size, *updates.shape[len(indices.shape) :])


@jvp.dispatch
def gather_jvp(op: Gather, y: Node, tangents: Tangents) -> Tangent:
    return gather(tangents[0], y.args[1]) if isinstance(tangents[0], Node) else ZERO


@jvp.dispatch
def scatter_add_jvp(op: ScatterAdd, y: Node, tangents: Tangents) -> Tangent:
    return Node.of(op, (y.args[0], tangents[1])) if isinstance(tangents[1], Node) else ZERO


@transpose.dispatch
def gather_transpose(op: Gather, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    table, indices = y.args
    return Node.of(ScatterAdd(table.shape[0]), (indices, y_bar)), ZERO


@transpose.dispatch
def scatter_add_transpose(op: ScatterAdd, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    return ZERO, gather(y_bar, y.args[0])


@batch.dispatch
def gather_batch(op: Gather, args: Nodes, batched: Flags, count: Count) -> Node:
    """Batched tables are concatenated and the indices shifted."""
    table, indices = args
    if not batched[0]:
        return gather(table, indices)
    rows = table.shape[1]
    flat = reshape(table, (size((count, rows)), *table.shape[2:]))
    return gather(flat, _shifted(lift(indices, batched[1], count), count, rows))


def _shifted(indices: Node, count: Dim, rows: Dim) -> Node:
    """indices[b, ...] + b·rows."""
    offset = mul(iota(count), dimension(rows))
    return add(indices, broadcast_axes(offset, indices.shape, (0,)))


@batch.dispatch
def scatter_add_batch(op: ScatterAdd, args: Nodes, batched: Flags, count: Count) -> Node:
    indices, updates = (lift(a, b, count) for a, b in zip(args, batched, strict=True))
    shifted = _shifted(indices, count, op.size)
    flat = Node.of(ScatterAdd(size((count, op.size))), (shifted, updates))
    return reshape(flat, (count, op.size, *flat.shape[1:]))


def as_indices(value: ArrayLike, rows: int) -> Array:
    """Integral numbers as integer indices into ``rows`` rows.

    Raises:
        ShapeError: an index is not integral or out of range; the message names the first one.
    """
    found = primals(value)
    indices = found.astype(np.int64)
    wrong = (indices != found) | (indices < 0) | (indices >= rows)
    if np.any(wrong):
        position = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise ShapeError(f"index {found[position]} at position {position} is not an integer in 0..{rows - 1}")
    return indices


@evaluate.dispatch
def gather_evaluate(op: Gather, values: Values) -> Array:
    table = np.asarray(values[0])
    return table[as_indices(values[1], table.shape[0])]


@evaluate.dispatch
def scatter_add_evaluate(op: ScatterAdd, values: Values) -> Array:
    updates = np.asarray(values[1])
    indices = as_indices(values[0], op.size)
    result = np.zeros((op.size, *updates.shape[indices.ndim :]), dtype=updates.dtype)
    np.add.at(result, indices, updates)
    return result


@flops.dispatch
def scatter_add_flops(op: ScatterAdd, y: Node) -> Count:
    return size(y.args[1].shape)
