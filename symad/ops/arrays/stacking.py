"""Several arrays as one, and parts of an array: concatenate, stack, take.

Each is linear, and the transpose of slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symad.core.dims import Dim, Shape, format_shape, plus, same_dim, same_shape, size
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
    transpose,
)
from symad.errors import ShapeError
from symad.ops.basic.shaping import (
    Reshape,
    ShapingOp,
    as_array,
    lift,
    reshape,
    slice_axes,
    slice_axis,
)
from symad.ops.basic.sources import array_constant, constant_value


@dataclass(frozen=True, eq=False)
class Concatenate(ShapingOp):
    """The arguments one after the other along ``axis``."""

    moves = Moved.JOINED

    axis: int


@dataclass(frozen=True, eq=False)
class Stack(ShapingOp):
    """Arguments of one shape along a new axis."""

    moves = Moved.JOINED

    axis: int


def take(a: Node, axis: int, position: Dim) -> Node:
    """The part of an array at one position of an axis, without that axis."""
    if isinstance(a.op, Stack) and isinstance(position, int) and a.op.axis == axis:
        return a.args[position]
    if isinstance(a.op, Reshape) and axis == 0 and len(a.args[0].shape) == 1 and isinstance(position, int):
        inner = size(a.shape[1:])
        return reshape(slice_axis(a.args[0], 0, position * inner, inner), a.shape[1:])
    piece = slice_axis(a, axis, position, 1)
    return reshape(piece, a.shape[:axis] + a.shape[axis + 1 :])


def element(a: Node, *position: Dim) -> Node:
    """One element."""
    if (
        isinstance(a.op, Reshape)
        and isinstance(a.args[0].op, Stack)
        and all(isinstance(p, int) for p in position)
    ):
        flat = int(np.ravel_multi_index(position, a.shape))
        return take(a.args[0], 0, flat)
    piece = slice_axes(a, position, (1,) * len(a.shape))
    return reshape(piece, ())


def concatenate(parts: Sequence[Node], axis: int = 0) -> Node:
    """The parts one after the other along an axis."""
    return parts[0] if len(parts) == 1 else Node.of(Concatenate(axis), tuple(parts))


def stack(parts: Sequence[Node], axis: int = 0) -> Node:
    """Parts of one shape along a new axis."""
    return Node.of(Stack(axis), tuple(parts))


def pack_scalars(parts: Sequence[Node], to: Shape) -> Node:
    """Scalars in row-major order as an array; numbers alone become one constant."""
    if not parts:
        return array_constant(np.zeros(to))
    numbers = _numbers(parts)
    return reshape(stack(parts), to) if numbers is None else array_constant(numbers.reshape(to))


def _numbers(parts: Sequence[Node]) -> np.ndarray | None:
    """The parts as an integer or float array, if each is a number that such an array represents exactly."""
    values: list[Any] = []
    for part in parts:
        value = constant_value(part)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 2**53:
            return None
        values.append(value)
    return np.array(values)


@shape(Concatenate)
def concatenate_shape(op: Concatenate, args: Nodes) -> Shape:
    first = args[0].shape
    total: Dim = 0
    for arg in args:
        others = [(a, b) for k, (a, b) in enumerate(zip(arg.shape, first, strict=False)) if k != op.axis]
        if len(arg.shape) != len(first) or not all(same_dim(a, b) for a, b in others):
            raise ShapeError(
                f"concatenate along axis {op.axis}: the shapes "
                f"{', '.join(format_shape(a.shape) for a in args)} differ elsewhere"
            )
        total = plus(total, arg.shape[op.axis])
    return (*first[: op.axis], total, *first[op.axis + 1 :])


@shape(Stack)
def stack_shape(op: Stack, args: Nodes) -> Shape:
    first = args[0].shape
    if not all(arg.shape == first or same_shape(arg.shape, first) for arg in args):
        raise ShapeError(f"stack: the shapes {', '.join(format_shape(a.shape) for a in args)} differ")
    return (*first[: op.axis], len(args), *first[op.axis :])


@transpose.dispatch
def concatenate_transpose(op: Concatenate, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    result: list[Tangent] = []
    offset: Dim = 0
    for arg, flag in zip(y.args, linear, strict=True):
        length = arg.shape[op.axis]
        result.append(slice_axis(y_bar, op.axis, offset, length) if flag else ZERO)
        offset = plus(offset, length)
    return tuple(result)


@transpose.dispatch
def stack_transpose(op: Stack, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    return tuple(take(y_bar, op.axis, k) if flag else ZERO for k, flag in enumerate(linear))


@batch.dispatch
def concatenate_batch(op: Concatenate, args: Nodes, batched: Flags, count: Count) -> Node:
    return concatenate([lift(a, b, count) for a, b in zip(args, batched, strict=True)], op.axis + 1)


@batch.dispatch
def stack_batch(op: Stack, args: Nodes, batched: Flags, count: Count) -> Node:
    return stack([lift(a, b, count) for a, b in zip(args, batched, strict=True)], op.axis + 1)


@evaluate.dispatch
def concatenate_evaluate(op: Concatenate, values: Values) -> Array:
    return np.concatenate([np.asarray(v) for v in values], axis=op.axis)


@evaluate.dispatch
def stack_evaluate(op: Stack, values: Values) -> Array:
    return np.stack([as_array(v) for v in values], axis=op.axis)
