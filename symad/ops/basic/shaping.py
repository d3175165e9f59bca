"""Moving the elements of one array: broadcast, reshape, slice, pad.

All are linear, and each is the transpose of another: broadcast and sum, slice and pad.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sympy

from symad.core.arrays import Number
from symad.core.dims import Dim, Shape, as_shape, format_shape, plus, same_dim, same_shape, size
from symad.core.graph import ZERO, Node, Op, shape
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
from symad.numbers.number_domains import box
from symad.ops.basic.sources import constant


@dataclass(frozen=True, eq=False)
class ShapingOp(Op):
    """Moves elements without computing: linear in its array arguments, no operations."""

    total = True

    linear = True


@dataclass(frozen=True, eq=False)
class Broadcast(ShapingOp):
    """Axis k of the argument becomes axis ``axes[k]`` of ``shape``; the other axes repeat it."""

    moves = Moved.IN_ORDER

    shape: Shape
    axes: tuple[int, ...]
    repeats = True


@dataclass(frozen=True, eq=False)
class Reshape(ShapingOp):
    """The same elements in row-major order under another shape."""

    moves = Moved.IN_ORDER

    shape: Shape


@dataclass(frozen=True, eq=False)
class Slice(ShapingOp):
    """A slice: on each axis ``count`` elements from ``start`` with ``step`` (which may be negative)."""

    moves = Moved.SOME

    start: Shape
    count: Shape
    step: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Pad(ShapingOp):
    """The transpose of `Slice`: the elements placed in zeros of ``shape``."""

    moves = Moved.PADDED

    start: Shape
    step: tuple[int, ...]
    shape: Shape


# ---- makers -------------------------------------------------------------------------------------


def broadcast_axes(a: Node, to: Shape, axes: Sequence[int]) -> Node:
    """``a`` with its axis k at ``axes[k]`` of the shape ``to``, repeated along the others."""
    if len(a.shape) == len(to):
        return a
    if isinstance(a.op, Broadcast) and not a.op.axes:
        return broadcast_axes(a.args[0], to, ())
    return Node.of(Broadcast(tuple(to), tuple(axes)), (a,))


def broadcast_to(a: Node, to: Shape) -> Node:
    """NumPy's broadcasting: trailing axes match, and axes of length 1 stretch.

    Raises:
        ShapeError: an axis has another length.
    """
    if same_shape(a.shape, to):
        return a
    lead = len(to) - len(a.shape)
    kept = [k for k, dim in enumerate(a.shape) if lead >= 0 and same_dim(dim, to[lead + k])]
    if lead < 0 or any(dim != 1 for k, dim in enumerate(a.shape) if k not in kept):
        raise ShapeError(
            f"an array of shape {format_shape(a.shape)} does not broadcast to {format_shape(to)}"
        )
    squeezed = reshape(a, tuple(a.shape[k] for k in kept))
    return broadcast_axes(squeezed, to, tuple(lead + k for k in kept))


def reshape(a: Node, to: Sequence[Dim]) -> Node:
    """The elements of ``a`` in row-major order under the shape ``to``.

    Raises:
        ShapeError: the numbers of elements differ.
    """
    target = as_shape(to)
    if same_shape(a.shape, target):
        return a
    if not same_dim(size(a.shape), size(target)):
        raise ShapeError(f"cannot reshape {format_shape(a.shape)} into {format_shape(target)}")
    if not a.shape:
        return broadcast_axes(a, target, ())
    if isinstance(a.op, Reshape):
        return reshape(a.args[0], target)
    if isinstance(a.op, Broadcast) and not a.op.axes:
        return broadcast_axes(a.args[0], target, ())
    return Node.of(Reshape(target), (a,))


def flatten(a: Node) -> Node:
    """All elements in one axis."""
    return reshape(a, (size(a.shape),))


def cut(flat: Node, shapes: Sequence[Shape], axis: int = 0) -> list[Node]:
    """The arrays of these shapes that the last axis of an array holds in turn, with the axes before it."""
    found: list[Node] = []
    offset: Dim = 0
    for dims in shapes:
        part = slice_axis(flat, axis, offset, size(dims))
        found.append(reshape(part, (*flat.shape[:axis], *dims)))
        offset = plus(offset, size(dims))
    return found


def slice_axes(
    a: Node, start: Sequence[Dim], count: Sequence[Dim], step: Sequence[int] | None = None
) -> Node:
    """A slice: on each axis k, ``count[k]`` elements from ``start[k]`` with ``step[k]``."""
    steps = tuple(step) if step is not None else (1,) * len(a.shape)
    starts, counts = as_shape(start), as_shape(count)
    if all(s == 0 for s in starts) and same_shape(counts, a.shape) and all(s == 1 for s in steps):
        return a
    return Node.of(Slice(starts, counts, steps), (a,))


def slice_axis(a: Node, axis: int, start: float | sympy.Expr, count: Dim, step: int = 1) -> Node:
    """``count`` elements from ``start`` along one axis."""
    rank = len(a.shape)
    axis %= rank
    starts = [start if k == axis else 0 for k in range(rank)]
    counts = [count if k == axis else a.shape[k] for k in range(rank)]
    return slice_axes(a, starts, counts, [step if k == axis else 1 for k in range(rank)])


def pad(
    a: Node, start: Sequence[int] | tuple[int, ...], to: Shape, step: Sequence[int] | None = None
) -> Node:
    """``a`` placed at ``start`` in zeros of the shape ``to``."""
    steps = tuple(step) if step is not None else (1,) * len(a.shape)
    return Node.of(Pad(as_shape(start), steps, as_shape(to)), (a,))


# ---- shapes -------------------------------------------------------------------------------------


@shape(Broadcast)
def broadcast_shape(op: Broadcast, args: Nodes) -> Shape:
    if not all(same_dim(d, op.shape[k]) for d, k in zip(args[0].shape, op.axes, strict=True)):
        raise ShapeError(
            f"an array of shape {format_shape(args[0].shape)} does not broadcast to {format_shape(op.shape)}"
        )
    if any(isinstance(d, int) and d < 0 for d in op.shape):
        raise ShapeError(f"arrays are too short: one of shape {format_shape(op.shape)} was asked for")
    return op.shape


@shape(Reshape)
def reshape_shape(op: Reshape, args: Nodes) -> Shape:
    return op.shape


@shape(Slice)
def slice_shape(op: Slice, args: Nodes) -> Shape:
    _check_part(op.start, op.count, op.step, args[0].shape)
    return op.count


@shape(Pad)
def pad_shape(op: Pad, args: Nodes) -> Shape:
    _check_part(op.start, args[0].shape, op.step, op.shape)
    return op.shape


def _check_part(starts: Shape, counts: Shape, steps: tuple[int, ...], whole: Shape) -> None:
    """Raise ShapeError if a part of an array of the shape ``whole`` exceeds it."""
    for axis, (dim, start, count, step) in enumerate(zip(whole, starts, counts, steps, strict=True)):
        if not all(isinstance(v, int) for v in (dim, start, count)):
            continue
        last = start + (count - 1) * step
        if count < 0 or (count and not (0 <= start < dim and 0 <= last < dim)):
            raise ShapeError(
                f"elements {start} to {last} of axis {axis} were asked for, but the array has shape "
                f"{format_shape(whole)}"
            )


# ---- derivatives --------------------------------------------------------------------------------


@jvp.dispatch
def shaping_jvp(op: ShapingOp, y: Node, tangents: Tangents) -> Tangent:
    """The op itself, on the tangents."""
    if not any(isinstance(t, Node) for t in tangents):
        return ZERO
    filled = [
        t if isinstance(t, Node) else broadcast_to(constant(0), arg.shape)
        for t, arg in zip(tangents, y.args, strict=True)
    ]
    return Node.of(op, tuple(filled))


@transpose.dispatch
def reshape_transpose(op: Reshape, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    return (reshape(y_bar, y.args[0].shape),)


@transpose.dispatch
def slice_transpose(op: Slice, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    return (pad(y_bar, op.start, y.args[0].shape, op.step),)


@transpose.dispatch
def pad_transpose(op: Pad, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    return (slice_axes(y_bar, op.start, y.args[0].shape, op.step),)


# ---- batching -----------------------------------------------------------------------------------


def lift(arg: Node, flag: bool, count: Dim) -> Node:
    """The argument with the leading batch axis, repeated if it had none."""
    if flag:
        return arg
    return broadcast_axes(arg, (count, *arg.shape), tuple(range(1, len(arg.shape) + 1)))


@batch.dispatch
def broadcast_batch(op: Broadcast, args: Nodes, batched: Flags, count: Count) -> Node:
    return broadcast_axes(args[0], (count, *op.shape), (0, *(k + 1 for k in op.axes)))


@batch.dispatch
def reshape_batch(op: Reshape, args: Nodes, batched: Flags, count: Count) -> Node:
    return reshape(args[0], (count, *op.shape))


@batch.dispatch
def slice_batch(op: Slice, args: Nodes, batched: Flags, count: Count) -> Node:
    return slice_axes(args[0], (0, *op.start), (count, *op.count), (1, *op.step))


@batch.dispatch
def pad_batch(op: Pad, args: Nodes, batched: Flags, count: Count) -> Node:
    return pad(args[0], (0, *op.start), (count, *op.shape), (1, *op.step))


# ---- values -------------------------------------------------------------------------------------


@evaluate.dispatch
def broadcast_evaluate(op: Broadcast, values: Values) -> Array:
    value = as_array(values[0])
    dims = [1] * len(op.shape)
    for k, axis in enumerate(op.axes):
        dims[axis] = value.shape[k]
    return np.broadcast_to(value.reshape(dims), op.shape)


def as_array(value: Number) -> np.ndarray:
    if isinstance(value, (np.ndarray, np.generic, int, float)):
        return np.asarray(value)
    return box(value)


@evaluate.dispatch
def reshape_evaluate(op: Reshape, values: Values) -> Array:
    result = as_array(values[0]).reshape(op.shape)
    return result if op.shape else result[()]


def slices(start: tuple[int, ...], count: tuple[int, ...], step: tuple[int, ...]) -> tuple[slice, ...]:
    made = []
    for first, number, stride in zip(start, count, step, strict=True):
        stop = first + number * stride
        made.append(slice(first, stop if stop >= 0 else None, stride) if number else slice(0, 0))
    return tuple(made)


@evaluate.dispatch
def slice_evaluate(op: Slice, values: Values) -> Array:
    return values[0][slices(op.start, op.count, op.step)]


@evaluate.dispatch
def pad_evaluate(op: Pad, values: Values) -> Array:
    value = np.asarray(values[0])
    result = np.zeros(op.shape, dtype=value.dtype)
    result[slices(op.start, value.shape, op.step)] = value
    return result


@flops.dispatch
def shaping_flops(op: ShapingOp, y: Node) -> Count:
    return 0


# ---- examples -----------------------------------------------------------------------------------
