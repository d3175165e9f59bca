"""Gradients and Jacobians of nodes, by either mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symad.core.dims import Dim, plus, size
from symad.core.graph import Node, Tangent
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.shaping import broadcast_axes, reshape, slice_axis
from symad.ops.basic.sources import constant
from symad.transforms.cotangents import pull
from symad.transforms.seeding import (
    Block,
    Descent,
    blocks_of,
    flat_columns,
    pack_matrix,
    scalar_parts,
    split_flat,
    through_lanes,
    total_size,
    transposed,
    unrolled_rows,
)
from symad.transforms.tangents import push


def forward_gradient(value: Node, wrt: Sequence[Node]) -> list[Node]:
    """The gradient of a scalar node by forward mode."""
    return split_flat(reshape(forward_jacobian([value], wrt), (total_size(wrt),)), wrt)


def forward_jacobian(outputs: Sequence[Node], wrt: Sequence[Node]) -> Node:
    """The Jacobian by columns."""
    if not wrt:
        return broadcast_axes(constant(0), (total_size(outputs), 0), ())
    columns = [_columns(outputs, wrt, block) for block in blocks_of(wrt)]
    return concatenate(columns, 1)


def _columns(outputs: Sequence[Node], wrt: Sequence[Node], block: Block) -> Node:
    """The columns of one block of inputs: (M, total)."""
    parts = scalar_parts(outputs)
    if parts is not None and not block.members[0].shape:
        descent = Descent(parts, block.members)
        if descent.worth_unrolling():
            rows = list(zip(*descent.columns(), strict=True))
            return pack_matrix(rows, len(parts), len(block.members))
    lanes = through_lanes(lambda dots: push(outputs, dots), block)
    return transposed(flat_columns(lanes, outputs, block.total))


def _rows_of(jacobian: Node, outputs: Sequence[Node]) -> list[Node]:
    """The rows of each output."""
    start: Dim = 0
    found = []
    for y in outputs:
        found.append(slice_axis(jacobian, 0, start, size(y.shape)))
        start = plus(start, size(y.shape))
    return found


def reverse_jacobian(outputs: Sequence[Node], wrt: Sequence[Node]) -> Node:
    """The Jacobian by rows."""
    if not outputs or not wrt:
        return broadcast_axes(constant(0), (total_size(outputs), total_size(wrt)), ())
    parts = scalar_parts(outputs)
    if parts is not None and not any(node.shape for node in wrt):
        return pack_matrix(unrolled_rows(parts, wrt), len(parts), len(wrt))
    distinct = tuple(dict.fromkeys(outputs))
    if len(distinct) < len(outputs):  # a block has the rows of each of its members once
        known = dict(zip(distinct, _rows_of(reverse_jacobian(distinct, wrt), distinct), strict=True))
        return concatenate([known[y] for y in outputs], 0)
    rows = []
    for block in blocks_of(outputs):

        def pulled(bars: Mapping[Node, Tangent], block: Block = block) -> list[Tangent]:
            return pull(block.members, [bars[y] for y in block.members], wrt)

        rows.append(flat_columns(through_lanes(pulled, block), wrt, block.total))
    return concatenate(rows, 0)
