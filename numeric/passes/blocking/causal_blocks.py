"""Axes that correspond in arguments and results, and blocks of rows under a causal mask.

An axis of an argument is aligned with one of the result if their positions correspond. Under a causal mask a
row reads the columns up to its own position: in the loop over blocks of rows, all arrays with the masked axis
are cut at the end of the block. This is right if every array that is contracted over the axis, or leaves the
loop, is 0 after that position.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from symad.core.contents import readers
from symad.core.dims import Dim
from symad.core.graph import Graph, Node, op_of
from symad.core.questions import Nodes
from symad.higher_order.scan import Local
from symad.numeric.passes.bodies import COLUMNS
from symad.ops.arrays.softmax import (
    LogSoftmax,
    LogSoftmaxCotangent,
    LogSoftmaxTangent,
    LogSumExp,
    Softmax,
    SoftmaxTangent,
    TangentOp,
)
from symad.ops.basic.arithmetic import Add, ElementwiseOp, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape
from symad.ops.basic.sources import ArrayConstant, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Select

if TYPE_CHECKING:
    from symad.core.dims import Shape


# ---- aligned axes --------------------------------------------------------------------------------


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


Columns = tuple[Graph, tuple[int | None, ...], tuple[int | None, ...]]


def up_to_diagonal(body: Graph, args: Nodes, axes: tuple[int, ...], length: int) -> Columns | None:
    """The body on fewer columns, and for each argument and value the axis that becomes shorter.

    None if the body has no causal mask, or if cutting columns would change a value.
    """
    order = body.nodes
    masks = {
        local
        for local, arg, axis in zip(body.input_nodes, args, axes, strict=False)
        if axis == 0 and is_triangle(arg, length)
    }
    selects = [n for n in order if isinstance(n.op, Select) and _mask(n.args[0]) in masks]
    if not selects:
        return None
    try:
        columns = _aligned(selects, order)
    except Misaligned:
        return None
    if not _right(order, columns, masks, body.output_nodes):
        return None
    made: dict[Node, Node] = {}
    for node in order:
        axis = columns.get(node)
        sizes: dict[int, Dim] = {} if axis is None else {axis: COLUMNS}
        if isinstance(node.op, Local):
            shape = tuple(sizes.get(k, d) for k, d in enumerate(node.shape))
            made[node] = Node.of(Local(node.op.position, shape))
        else:
            made[node] = resized(node, tuple(made[a] for a in node.args), sizes)
    shorter = Graph(
        tuple(made.get(n, n) for n in body.input_nodes), tuple(made[n] for n in body.output_nodes)
    )
    inputs = tuple(columns.get(n) for n in body.input_nodes)
    return shorter, inputs, tuple(columns.get(n) for n in body.output_nodes)


def is_triangle(node: Node, length: int) -> bool:
    """Whether a constant is the mask of row i and the columns j ≤ i."""
    if not isinstance(node.op, ArrayConstant) or node.shape != (length, length):
        return False
    array = np.asarray(node.op.array, bool)
    return bool((array == np.tril(np.ones_like(array))).all())


def _mask(condition: Node) -> Node:
    return condition.args[0] if isinstance(condition.op, Broadcast) else condition


def _aligned(selects: list[Node], order: Sequence[Node]) -> dict[Node, int]:
    """The axis of each array that is aligned with the masked axis.

    Raises:
        Misaligned: an array has two such axes, or an op mixes its positions.
    """
    users = readers(order)
    found: dict[Node, int] = {}
    todo: list[Node] = []

    def note(node: Node, axis: int | None) -> None:
        if axis is None or not node.shape:
            return
        if node not in found:
            found[node] = axis
            todo.append(node)
        elif found[node] != axis:
            raise Misaligned

    for node in selects:
        condition = node.args[0]
        inner = condition.op
        note(node, inner.axes[1] if isinstance(inner, Broadcast) else 1)
    while todo:
        node = todo.pop()
        if not isinstance(node.op, Local):
            for arg, axis in zip(node.args, _argument_axes(node, found[node]), strict=True):
                note(arg, axis)
        for user in users.get(node, []):
            for k, arg in enumerate(user.args):
                if arg is not node:
                    continue
                if isinstance(user.op, ALONG):
                    note(user, found[node])
                    continue
                axis = result_axis(user, k, found[node])
                note(user, axis)
                if axis is None:
                    op = op_of(user, Einsum)
                    label = op.inputs[k][found[node]]
                    for other, part in zip(user.args, op.inputs, strict=True):
                        note(other, part.index(label) if label in part else None)
    return found


def _argument_axes(node: Node, axis: int) -> list[int | None]:
    if isinstance(node.op, ALONG):
        return [axis] * len(node.args)
    return argument_axes(node, axis)


def _keeps_zero(node: Node, columns: dict[Node, int], zero: set[Node]) -> bool:
    """Whether a sum or product is 0 wherever its arguments are."""
    op = node.op
    if isinstance(op, Mul):
        return any(p == 1 and a in zero for p, a in zip(op.powers, node.args, strict=True))
    if isinstance(op, Einsum):
        return any(a in zero for a in node.args if a in columns)
    return isinstance(op, Add) and all(a in zero for a in node.args)


def _sums_inside(node: Node, hidden: set[Node], zero: set[Node]) -> bool:
    """Whether the sums of a softmax, or of its derivatives, have no term outside of the triangle."""
    if isinstance(node.op, Softmax):
        return node.args[0] in hidden
    if isinstance(node.op, (SoftmaxTangent, LogSoftmaxTangent)):  # Σ p t
        return node.args[0] in zero
    return isinstance(node.op, LogSoftmaxCotangent) and node.args[1] in zero  # Σ t


def _note_masked(node: Node, hidden: set[Node], zero: set[Node]) -> None:
    """Note what a selection by the mask is outside of the triangle: −∞ or 0."""
    other = constant_value(node.args[2])
    if other == -np.inf:
        hidden.add(node)
    elif other == 0:
        zero.add(node)


def _right(order: Sequence[Node], columns: dict[Node, int], masks: set[Node], outputs: Nodes) -> bool:
    """Whether every array that is summed over the columns or leaves the loop is 0 outside of the triangle."""
    hidden: set[Node] = set()
    zero: set[Node] = set()
    for node in order:
        op = node.op
        args = node.args
        if isinstance(op, Einsum) and node not in columns:
            summed = [a for a in args if a in columns]
            if summed and not any(a in zero for a in summed):
                return False
            continue
        if node not in columns:
            continue
        if isinstance(op, Select) and _mask(args[0]) in masks:
            _note_masked(node, hidden, zero)
        elif isinstance(op, ALONG) and columns[node] in op.axes:
            if not _sums_inside(node, hidden, zero):
                return False
            if isinstance(op, (Softmax, SoftmaxTangent)) or all(a in zero for a in args):
                zero.add(node)
        elif _keeps_zero(node, columns, zero):
            zero.add(node)
    return all(n in zero for n in outputs if n in columns)
