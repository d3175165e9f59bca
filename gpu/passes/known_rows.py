"""What is known when code is printed: arrays of one number, and row numbers in part.

Reading rows 0, 1, 2, ... is a slice, and adding to them is adding a padded array. Adding u_i at column t_i of
row i, as the gradient of a cross-entropy does, is [j = t_i] u_i, which a fused kernel computes. No kernel
reads an array whose elements are one known number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from symad.core.dims import same_dim, size
from symad.core.graph import Node, op_of, rebuild
from symad.core.nodes import Moved
from symad.core.questions import Nodes, evaluate
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.arrays.ordering import SortingPositions
from symad.ops.arrays.positions import Positions, name_of, positions
from symad.ops.arrays.random import FoldIn
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.shaping import (
    Pad,
    broadcast_axes,
    broadcast_to,
    reshape,
    slice_axis,
)
from symad.ops.basic.sources import ArrayConstant, Constant, Iota, constant, iota
from symad.ops.elementwise.selection import compare, select

if TYPE_CHECKING:
    from symad.core.dims import Dim


# ---- arrays of one number ------------------------------------------------------------------------


def filled(node: Node) -> Any:
    """The number that all elements of an array equal by construction; None if there is no such number.

    In a sum or product, only operands are seen that show their number.
    """
    op = node.op
    if not isinstance(op, (Add, Mul)) or not node.shape:
        return _shown(node)
    values = [_shown(arg) for arg in node.args]
    if not all(isinstance(value, (int, float)) for value in values):
        return None
    with np.errstate(all="ignore"):
        return float(evaluate(op, tuple(map(float, values))))


def _shown(node: Node) -> Any:
    """The number that an array repeats; None for others."""
    while node.op.moves <= Moved.SOME:
        node = node.args[0]
    return node.op.value if isinstance(node.op, Constant) and not isinstance(node.op.value, bool) else None


EXACT = 1 << 24
"""Up to here all integers are exact in float32, in which kernels compare them."""


def known_length(node: Node) -> Dim | None:
    """An n such that the values are known to be integers in 0..n − 1; None if there is none."""
    op = node.op
    if isinstance(op, Iota):
        return op.size
    if isinstance(op, ArrayConstant):
        array = op.array
        whole = array.dtype.kind in "iu" and array.size and array.min() >= 0
        return int(array.max()) + 1 if whole else None
    if isinstance(op, Positions):
        return size(op.shape)
    if isinstance(op, SortingPositions):
        return node.shape[-1]
    if isinstance(op, FoldIn):
        return 65536
    if op.moves <= Moved.SOME or isinstance(op, Gather):
        return known_length(node.args[0])
    return None


def fits(node: Node, length: Dim) -> bool:
    """Whether all values are known to be row numbers below ``length``."""
    known = known_length(node)
    if known is None:
        return False
    if isinstance(known, int) and isinstance(length, int):
        return known <= length
    return same_dim(known, length)


def known_rows(outputs: Sequence[Node]) -> Nodes:
    """The outputs with reads and additions at known rows replaced."""
    return rebuild(outputs, {}, _known)


def _known(node: Node, args: Nodes) -> Node | None:
    if isinstance(node.op, Gather) and _in_order(args[0]):
        return positions((args[1],), args[0].shape, (0,), name_of(args[0]), from_end=False)
    if isinstance(node.op, Gather) and _in_order(args[1]):
        count, rows = args[1].shape[0], args[0].shape[0]
        if isinstance(rows, int) and count <= rows:
            return slice_axis(args[0], 0, 0, count)
    if isinstance(node.op, ScatterAdd):
        return _added(node.over(args))
    return None


def _in_order(node: Node) -> bool:
    """Whether the values are 0, 1, 2, ... along the only axis."""
    if len(node.shape) != 1 or not isinstance(node.shape[0], int):
        return False
    if isinstance(node.op, ArrayConstant):
        array = node.op.array
        return bool(array.dtype.kind in "iu" and (array == np.arange(len(array))).all())
    return isinstance(node.op, Iota)


def _added(node: Node) -> Node:
    """An addition to rows as another op, if the row numbers are known; else the node."""
    (indices, updates), rows = node.args, op_of(node, ScatterAdd).size
    if _in_order(indices) and isinstance(rows, int) and indices.shape[0] <= rows:
        if indices.shape[0] == rows:
            return updates
        rank = len(updates.shape)
        return Node.of(Pad((0,) * rank, (1,) * rank, (rows, *updates.shape[1:])), (updates,))
    if isinstance(indices.op, Positions) and len(updates.shape) == len(indices.shape):
        return _one_in_each_row(node, indices, updates) or node
    return node


def _one_in_each_row(node: Node, indices: Node, updates: Node) -> Node | None:
    """[j = t_i] u_i, if exactly one index belongs to each row; else None."""
    op = op_of(indices, Positions)
    *lead, last = indices.args
    columns = op.shape[-1]
    if not isinstance(columns, int) or columns > EXACT or not fits(last, columns):
        return None
    if len(lead) != len(indices.shape) - 1 or indices.shape != (*op.shape[:-1], 1):
        return None
    if not all(_counts(arg, axis, op.shape[axis]) for axis, arg in enumerate(lead)):
        return None
    axes = tuple(range(len(lead)))
    own, value = (
        broadcast_axes(reshape(broadcast_to(a, indices.shape), op.shape[:-1]), op.shape, axes)
        for a in (last, updates)
    )
    number = filled(updates)
    if number is not None:
        value = broadcast_to(constant(number), op.shape)
    column = broadcast_axes(iota(columns), op.shape, (len(lead),))
    zero = broadcast_to(constant(0), op.shape)
    return reshape(select(compare("==", column, own), value, zero), node.shape)


def _counts(node: Node, axis: int, size: Dim) -> bool:
    """Whether an array counts 0, 1, 2, ... along one axis, and has length 1 along the others."""
    if any(d != 1 for k, d in enumerate(node.shape) if k != axis) or node.shape[axis] != size:
        return False
    while node.op.moves is Moved.IN_ORDER and node.args[0].shape:
        (node,) = node.args
    return len(node.shape) == 1 and node.shape[0] == size and _in_order(node)
