"""Aligned axes: the axes of arguments whose positions correspond to those of an axis of the result."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from symad.core.graph import Node
from symad.ops.arrays.softmax import LogSoftmax, LogSumExp, Softmax, TangentOp
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape
from symad.ops.elementwise.apply import Apply

if TYPE_CHECKING:
    from symad.core.dims import Dim, Shape

ALONG = (Softmax, LogSoftmax, TangentOp)
"""Ops over some axes whose results keep all axes."""


class Misaligned(Exception):
    """An op mixes the positions of an axis."""


def argument_axes(node: Node, axis: int) -> list[int | None]:
    """For each argument, its axis aligned with one axis of the result; None if it has none.

    Raises:
        Misaligned: the op is not applied position by position along the axis.
    """
    op = node.op
    if isinstance(op, (ElementwiseOp, Apply)):
        return [axis if a.shape else None for a in node.args]
    if isinstance(op, ALONG) and axis not in op.axes:
        return [axis] * len(node.args)
    if isinstance(op, Broadcast):
        return [op.axes.index(axis) if axis in op.axes else None]
    if isinstance(op, Einsum):
        label = op.output[axis]
        if any(part.count(label) > 1 for part in op.inputs) or op.output.count(label) > 1:
            raise Misaligned
        return [part.index(label) if label in part else None for part in op.inputs]
    if isinstance(op, Reshape):
        found = _same_axis(node.shape, node.args[0].shape, axis)
        if found is not None:
            return [found]
    raise Misaligned


def result_axis(node: Node, k: int, axis: int) -> int | None:
    """The axis of the result aligned with one axis of argument ``k``; None if that axis is summed over.

    Raises:
        Misaligned: the axis is neither kept position by position nor summed over.
    """
    op = node.op
    if isinstance(op, (ElementwiseOp, Apply)):
        return axis
    if isinstance(op, ALONG) and axis not in op.axes:
        return axis
    if isinstance(op, LogSumExp):
        raise Misaligned
    if isinstance(op, Broadcast):
        return int(op.axes[axis])
    if isinstance(op, Einsum):
        label = op.inputs[k][axis]
        if op.inputs[k].count(label) > 1 or op.output.count(label) > 1:
            raise Misaligned
        return op.output.index(label) if label in op.output else None
    if isinstance(op, Reshape):
        found = _same_axis(node.args[0].shape, node.shape, axis)
        if found is not None:
            return found
    raise Misaligned


def _same_axis(shape: Shape, other: Shape, axis: int) -> int | None:
    """The axis of another shape of the same elements that has the same length and place in memory."""
    if not all(isinstance(d, int) for d in (*shape, *other)):
        return None
    before = prod(shape[:axis])
    for k, d in enumerate(other):
        if d == shape[axis] and prod(other[:k]) == before:
            return k
    return None


def resized(node: Node, args: tuple[Node, ...], sizes: dict[int, Dim]) -> Node:
    """The node with other arguments, and with other lengths of some axes of its result."""
    op = node.op
    if isinstance(op, (Broadcast, Reshape)):
        new = tuple(sizes.get(k, d) for k, d in enumerate(op.shape))
        op = Broadcast(new, op.axes) if isinstance(op, Broadcast) else Reshape(new)
    return Node.of(op, args)
