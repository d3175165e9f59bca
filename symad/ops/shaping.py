"""Moving elements: broadcast, reshape, slice, pad, concatenate, stack, gather, scatter-add.

All are linear in their arrays and each is the transpose of another: broadcast and sum, slice and
pad, concatenate and slices, gather and scatter-add.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from symad.dims import Dim, Shape, as_dim, as_shape, format_shape, plus, same_dim, same_shape, size
from symad.errors import ShapeError
from symad.graph import ZERO, Node, Op, shape
from symad.ops.sources import array_constant, constant, constant_value, input_node
from symad.questions import (
    Flags,
    Forms,
    Nodes,
    Tangent,
    Tangents,
    Values,
    batch,
    evaluate,
    examples,
    flops,
    jvp,
    sympy_form,
    transpose,
)


@dataclass(frozen=True, eq=False)
class ShapingOp(Op):
    """Moves elements without computing: linear in its array arguments, no operations."""

    linear = True


@dataclass(frozen=True, eq=False)
class Broadcast(ShapingOp):
    """Axis k of the argument becomes axis ``axes[k]`` of ``shape``; the other axes repeat it."""

    shape: Shape
    axes: tuple[int, ...]
    repeats = True


@dataclass(frozen=True, eq=False)
class Reshape(ShapingOp):
    """The same elements in row-major order under another shape."""

    shape: Shape


@dataclass(frozen=True, eq=False)
class Slice(ShapingOp):
    """On each axis ``count`` elements from ``start`` with ``step`` (which may be negative)."""

    start: tuple[Any, ...]
    count: tuple[Any, ...]
    step: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Pad(ShapingOp):
    """The transpose of `Slice`: the elements placed in zeros of ``shape``."""

    start: tuple[Any, ...]
    step: tuple[int, ...]
    shape: Shape


@dataclass(frozen=True, eq=False)
class Concatenate(ShapingOp):
    """The arguments one after the other along ``axis``."""

    axis: int


@dataclass(frozen=True, eq=False)
class Stack(ShapingOp):
    """Arguments of one shape along a new axis."""

    axis: int


@dataclass(frozen=True, eq=False)
class Gather(ShapingOp):
    """Rows: y[i..., :] = table[indices[i...], :] along axis 0 of the table. Linear in the table."""


@dataclass(frozen=True, eq=False)
class ScatterAdd(ShapingOp):
    """The transpose of `Gather`: rows of ``updates`` added into zeros of ``size`` rows.

    Arguments: indices (s...), updates (s..., rest...). Linear in the updates.
    """

    size: Any


# ---- makers -------------------------------------------------------------------------------------


def broadcast_axes(a: Node, to: Shape, axes: Sequence[int]) -> Node:
    """``a`` with its axis k at ``axes[k]`` of the shape ``to``, repeated along the others."""
    if len(a.shape) == len(to):
        return a
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


def reshape(a: Node, to: Sequence[Any]) -> Node:
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
    if not target and isinstance(a.op, Broadcast) and not a.op.axes:
        return a.args[0]
    return Node.of(Reshape(target), (a,))


def flatten(a: Node) -> Node:
    """All elements in one axis."""
    return reshape(a, (size(a.shape),))


def slice_axes(
    a: Node, start: Sequence[Any], count: Sequence[Any], step: Sequence[int] | None = None
) -> Node:
    """On each axis ``count[k]`` elements from ``start[k]`` with ``step[k]``."""
    steps = tuple(step) if step is not None else (1,) * len(a.shape)
    starts, counts = as_shape(start), as_shape(count)
    if all(s == 0 for s in starts) and same_shape(counts, a.shape) and all(s == 1 for s in steps):
        return a
    return Node.of(Slice(starts, counts, steps), (a,))


def slice_axis(a: Node, axis: int, start: Any, count: Any, step: int = 1) -> Node:
    """``count`` elements from ``start`` along one axis."""
    rank = len(a.shape)
    axis %= rank
    starts = [start if k == axis else 0 for k in range(rank)]
    counts = [count if k == axis else a.shape[k] for k in range(rank)]
    return slice_axes(a, starts, counts, [step if k == axis else 1 for k in range(rank)])


def take(a: Node, axis: int, position: Any) -> Node:
    """One position along an axis, which disappears."""
    if isinstance(a.op, Stack) and isinstance(position, int) and a.op.axis == axis:
        return a.args[position]
    if (
        isinstance(a.op, Reshape)
        and axis == 0
        and len(a.args[0].shape) == 1
        and isinstance(position, int)
    ):
        inner = size(a.shape[1:])
        return reshape(slice_axis(a.args[0], 0, position * inner, inner), a.shape[1:])
    piece = slice_axis(a, axis, position, 1)
    return reshape(piece, a.shape[:axis] + a.shape[axis + 1 :])


def element(a: Node, *position: Any) -> Node:
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


def pad(a: Node, start: Sequence[Any], to: Shape, step: Sequence[int] | None = None) -> Node:
    """``a`` placed at ``start`` in zeros of the shape ``to``."""
    steps = tuple(step) if step is not None else (1,) * len(a.shape)
    return Node.of(Pad(as_shape(start), steps, as_shape(to)), (a,))


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


def _numbers(parts: Sequence[Node]) -> np.ndarray[Any, Any] | None:
    """The parts as an integer or float array where each is a number such an array holds exactly."""
    values: list[Any] = []
    for part in parts:
        value = constant_value(part)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 2**53:
            return None
        values.append(value)
    return np.array(values)


def gather(table: Node, indices: Node) -> Node:
    """The rows of ``table`` at ``indices``."""
    return Node.of(Gather(), (table, indices))


# ---- shapes -------------------------------------------------------------------------------------


@shape(Broadcast)
def broadcast_shape(op: Broadcast, args: Nodes) -> Shape:
    if not all(same_dim(d, op.shape[k]) for d, k in zip(args[0].shape, op.axes, strict=True)):
        raise ShapeError(
            f"an array of shape {format_shape(args[0].shape)} does not broadcast to {format_shape(op.shape)}"
        )
    return op.shape


@shape(Reshape)
def reshape_shape(op: Reshape, args: Nodes) -> Shape:
    return op.shape


@shape(Slice)
def slice_shape(op: Slice, args: Nodes) -> Shape:
    dims = zip(args[0].shape, op.start, op.count, op.step, strict=True)
    for axis, (dim, start, count, step) in enumerate(dims):
        if not all(isinstance(v, int) for v in (dim, start, count)):
            continue
        last = start + (count - 1) * step
        if count < 0 or (count and not (0 <= start < dim and 0 <= last < dim)):
            raise ShapeError(
                f"elements {start} to {last} of axis {axis} were asked for, but the array has shape "
                f"{format_shape(args[0].shape)}"
            )
    return op.count


@shape(Pad)
def pad_shape(op: Pad, args: Nodes) -> Shape:
    return op.shape


@shape(Concatenate)
def concatenate_shape(op: Concatenate, args: Nodes) -> Shape:
    first = args[0].shape
    total: Dim = 0
    for arg in args:
        others = [
            (a, b) for k, (a, b) in enumerate(zip(arg.shape, first, strict=False)) if k != op.axis
        ]
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
        raise ShapeError(
            f"stack: the shapes {', '.join(format_shape(a.shape) for a in args)} differ"
        )
    return (*first[: op.axis], len(args), *first[op.axis :])


@shape(Gather)
def gather_shape(op: Gather, args: Nodes) -> Shape:
    table, indices = args
    return indices.shape + table.shape[1:]


@shape(ScatterAdd)
def scatter_add_shape(op: ScatterAdd, args: Nodes) -> Shape:
    indices, updates = args
    return (op.size, *updates.shape[len(indices.shape) :])


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


@jvp.dispatch
def gather_jvp(op: Gather, y: Node, tangents: Tangents) -> Tangent:
    return gather(tangents[0], y.args[1]) if isinstance(tangents[0], Node) else ZERO


@jvp.dispatch
def scatter_add_jvp(op: ScatterAdd, y: Node, tangents: Tangents) -> Tangent:
    return Node.of(op, (y.args[0], tangents[1])) if isinstance(tangents[1], Node) else ZERO


@transpose.dispatch
def broadcast_transpose(op: Broadcast, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    from symad.ops.contraction import contract

    return (contract([range(len(op.shape))], op.axes, y_bar),)


@transpose.dispatch
def reshape_transpose(op: Reshape, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    return (reshape(y_bar, y.args[0].shape),)


@transpose.dispatch
def slice_transpose(op: Slice, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    return (pad(y_bar, op.start, y.args[0].shape, op.step),)


@transpose.dispatch
def pad_transpose(op: Pad, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    return (slice_axes(y_bar, op.start, y.args[0].shape, op.step),)


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


@transpose.dispatch
def gather_transpose(op: Gather, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    table, indices = y.args
    return Node.of(ScatterAdd(table.shape[0]), (indices, y_bar)), ZERO


@transpose.dispatch
def scatter_add_transpose(op: ScatterAdd, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    return ZERO, gather(y_bar, y.args[0])


# ---- batching -----------------------------------------------------------------------------------


def lift(arg: Node, flag: bool, count: Dim) -> Node:
    """The argument with the leading batch axis, repeated if it had none."""
    if flag:
        return arg
    return broadcast_axes(arg, (count, *arg.shape), tuple(range(1, len(arg.shape) + 1)))


@batch.dispatch
def broadcast_batch(op: Broadcast, args: Nodes, batched: Flags, count: Any) -> Node:
    return broadcast_axes(args[0], (count, *op.shape), (0, *(k + 1 for k in op.axes)))


@batch.dispatch
def reshape_batch(op: Reshape, args: Nodes, batched: Flags, count: Any) -> Node:
    return reshape(args[0], (count, *op.shape))


@batch.dispatch
def slice_batch(op: Slice, args: Nodes, batched: Flags, count: Any) -> Node:
    return slice_axes(args[0], (0, *op.start), (count, *op.count), (1, *op.step))


@batch.dispatch
def pad_batch(op: Pad, args: Nodes, batched: Flags, count: Any) -> Node:
    return pad(args[0], (0, *op.start), (count, *op.shape), (1, *op.step))


@batch.dispatch
def concatenate_batch(op: Concatenate, args: Nodes, batched: Flags, count: Any) -> Node:
    return concatenate([lift(a, b, count) for a, b in zip(args, batched, strict=True)], op.axis + 1)


@batch.dispatch
def stack_batch(op: Stack, args: Nodes, batched: Flags, count: Any) -> Node:
    return stack([lift(a, b, count) for a, b in zip(args, batched, strict=True)], op.axis + 1)


@batch.dispatch
def gather_batch(op: Gather, args: Nodes, batched: Flags, count: Any) -> Node:
    """Batched tables are laid end to end and the indices shifted."""
    table, indices = args
    if not batched[0]:
        return gather(table, indices)
    rows = table.shape[1]
    flat = reshape(table, (size((count, rows)), *table.shape[2:]))
    return gather(flat, _shifted(lift(indices, batched[1], count), count, rows))


def _shifted(indices: Node, count: Dim, rows: Dim) -> Node:
    """indices[b, ...] + b·rows."""
    from symad.ops.arithmetic import add, mul
    from symad.ops.sources import dimension, iota

    offset = mul(iota(count), dimension(rows))
    return add(indices, broadcast_axes(offset, indices.shape, (0,)))


@batch.dispatch
def scatter_add_batch(op: ScatterAdd, args: Nodes, batched: Flags, count: Any) -> Node:
    indices, updates = (lift(a, b, count) for a, b in zip(args, batched, strict=True))
    shifted = _shifted(indices, count, op.size)
    flat = Node.of(ScatterAdd(size((count, op.size))), (shifted, updates))
    return reshape(flat, (count, op.size, *flat.shape[1:]))


# ---- values -------------------------------------------------------------------------------------


@evaluate.dispatch
def broadcast_evaluate(op: Broadcast, values: Values) -> Any:
    value = _as_array(values[0])
    dims = [1] * len(op.shape)
    for k, axis in enumerate(op.axes):
        dims[axis] = value.shape[k]
    return np.broadcast_to(value.reshape(dims), op.shape)


def _as_array(value: Any) -> np.ndarray[Any, Any]:
    from symad.values import box

    if isinstance(value, (np.ndarray, np.generic, int, float)):
        return np.asarray(value)
    return box(value)


@evaluate.dispatch
def reshape_evaluate(op: Reshape, values: Values) -> Any:
    result = _as_array(values[0]).reshape(op.shape)
    return result if op.shape else result[()]


def _slices(start: Any, count: Any, step: Any) -> tuple[slice, ...]:
    made = []
    for first, number, stride in zip(start, count, step, strict=True):
        stop = first + number * stride
        made.append(slice(first, stop if stop >= 0 else None, stride) if number else slice(0, 0))
    return tuple(made)


@evaluate.dispatch
def slice_evaluate(op: Slice, values: Values) -> Any:
    return values[0][_slices(op.start, op.count, op.step)]


@evaluate.dispatch
def pad_evaluate(op: Pad, values: Values) -> Any:
    value = np.asarray(values[0])
    result = np.zeros(op.shape, dtype=value.dtype)
    result[_slices(op.start, value.shape, op.step)] = value
    return result


@evaluate.dispatch
def concatenate_evaluate(op: Concatenate, values: Values) -> Any:
    return np.concatenate([np.asarray(v) for v in values], axis=op.axis)


@evaluate.dispatch
def stack_evaluate(op: Stack, values: Values) -> Any:
    return np.stack([_as_array(v) for v in values], axis=op.axis)


def as_indices(value: Any, rows: int) -> Any:
    """Integral numbers as integer indices into ``rows`` rows.

    Raises:
        ShapeError: an index is not integral or out of range; the message names the first one.
    """
    from symad.dual import primals

    found = primals(value)
    indices = found.astype(np.int64)
    wrong = (indices != found) | (indices < 0) | (indices >= rows)
    if np.any(wrong):
        position = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise ShapeError(
            f"index {found[position]} at position {position} is not an integer in 0..{rows - 1}"
        )
    return indices


@evaluate.dispatch
def gather_evaluate(op: Gather, values: Values) -> Any:
    table = np.asarray(values[0])
    return table[as_indices(values[1], table.shape[0])]


@evaluate.dispatch
def scatter_add_evaluate(op: ScatterAdd, values: Values) -> Any:
    updates = np.asarray(values[1])
    indices = as_indices(values[0], op.size)
    result = np.zeros((op.size, *updates.shape[indices.ndim :]), dtype=updates.dtype)
    np.add.at(result, indices, updates)
    return result


@flops.dispatch
def shaping_flops(op: ShapingOp, y: Node) -> Any:
    return 0


@flops.dispatch
def scatter_add_flops(op: ScatterAdd, y: Node) -> Any:
    return size(y.args[1].shape)


@sympy_form.dispatch
def shaping_sympy(op: ShapingOp, y: Node, forms: Forms) -> Any:
    from symad.tracing.back import array_shaping

    return array_shaping(op, y, forms)


# ---- examples -----------------------------------------------------------------------------------


def _matrix(name: str, rows: int, columns: int) -> Node:
    return input_node(sympy.MatrixSymbol(name, rows, columns), (rows, columns))


@examples(Broadcast)
def broadcast_examples() -> list[Node]:
    x = input_node(sympy.Symbol("x", real=True))
    return [broadcast_to(x, (2, 3)), broadcast_to(_matrix("A", 1, 3), (4, 2, 3))]


@examples(Reshape)
def reshape_examples() -> list[Node]:
    return [reshape(_matrix("A", 2, 6), (3, 4))]


@examples(Slice)
def slice_examples() -> list[Node]:
    a = _matrix("A", 4, 5)
    return [slice_axes(a, (1, 0), (2, 3), (1, 2)), slice_axis(a, 1, 4, 5, -1), element(a, 1, 2)]


@examples(Pad)
def pad_examples() -> list[Node]:
    return [pad(_matrix("A", 2, 3), (1, 0), (4, 5), (1, 2))]


@examples(Concatenate)
def concatenate_examples() -> list[Node]:
    return [
        concatenate([_matrix("A", 2, 3), _matrix("B", 1, 3)]),
        concatenate([_matrix("A", 2, 3), _matrix("C", 2, 2)], 1),
    ]


@examples(Stack)
def stack_examples() -> list[Node]:
    return [stack([_matrix("A", 2, 3), _matrix("B", 2, 3)], 1)]


@examples(Gather)
def gather_examples() -> list[Node]:
    return [gather(_matrix("A", 4, 3), array_constant(np.array([[2, 0], [2, 3]])))]


@examples(ScatterAdd)
def scatter_add_examples() -> list[Node]:
    indices = array_constant(np.array([2, 0, 2]))
    return [Node.of(ScatterAdd(as_dim(4)), (indices, _matrix("A", 3, 2)))]
