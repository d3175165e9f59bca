"""Array ops in NumPy: making, shaping, selecting, reducing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import plus, same_dim
from symad.numeric.expressions.views import as_index
from symad.numeric.passes.memory_layout.packed_entries import Pack
from symad.numeric.program.expressions import Compute, is_number
from symad.numeric.targets import helpers
from symad.numeric.targets.scalars import Written, write
from symad.numeric.targets.sizes import dimension
from symad.numeric.targets.target import Level, NumPy, Text, Texts
from symad.numeric.targets.writer import Writer
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.arrays.ordering import SortingPositions
from symad.ops.arrays.positions import Positions
from symad.ops.arrays.reduction import Extreme, Product
from symad.ops.arrays.softmax import (
    ExponentialOp,
    LogSoftmax,
    LogSoftmaxCotangent,
    LogSoftmaxTangent,
    LogSumExp,
    Softmax,
    SoftmaxTangent,
)
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.shaping import Broadcast, Pad, Reshape, Slice
from symad.ops.basic.sources import ArrayConstant, Constant, Eye, Iota

# ---- sources ------------------------------------------------------------------------------------


@write.dispatch
def write_array_constant(
    op: ArrayConstant, target: NumPy, node: Compute, args: Texts, writer: Writer
) -> Written:
    array = op.array
    if array.size and array.dtype.kind != "b" and not array.any() and not np.signbit(array).any():
        return Text(f"{target.np}.zeros({writer.shape(op.shape)}{writer.float_type()})")
    if array.dtype.kind == "b":
        return Text(writer.constant(array))
    rows = array.dtype.kind in "iu" and array.size and np.abs(array.astype(float)).max() >= 2**24  # perhaps
    return Text(writer.constant(array.astype(np.float64 if rows else writer.dtype)))


@write.dispatch
def write_iota(op: Iota, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    return Text(f"{target.np}.arange({writer.dim(op.size)}, dtype={writer.type_text})")


@write.dispatch
def write_eye(op: Eye, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    kind = "" if writer.dtype == "float64" else f", dtype={writer.type_text}"
    return Text(f"{target.np}.eye({writer.dim(op.size)}{kind})")


# ---- shaping ------------------------------------------------------------------------------------


@write.dispatch
def write_broadcast(op: Broadcast, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    """Zeros, ones, a number in an array, or a broadcast array."""
    shape, (arg,) = writer.shape(op.shape), node.args
    if is_number(arg):
        value = arg.op.value if isinstance(arg, Compute) and isinstance(arg.op, Constant) else None
        name = {0: "zeros", 1: "ones"}.get(value) if type(value) is int else None
        if name is not None:
            return Text(f"{target.np}.{name}({shape}{writer.float_type()})")
        return Text(f"{target.np}.full({shape}, {args[0]}, {writer.type_text})")
    text = args[0].text
    if op.axes and op.axes != tuple(range(len(op.shape) - len(op.axes), len(op.shape))):
        index = ", ".join(":" if k in op.axes else "None" for k in range(len(op.shape)))
        text = f"{args[0].inside(Level.ATOM)}[{index}]"
    return Text(f"{target.np}.broadcast_to({text}, {shape})")


@write.dispatch
def write_slice(op: Slice, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    view = as_index(node)
    assert view is not None  # every slice is a view
    return writer.index_text(view)


@write.dispatch
def write_reshape(op: Reshape, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    """An index if the reshape only adds or drops axes of length 1; else a call."""
    view = as_index(node)
    if view is not None:
        return writer.index_text(view)
    base = args[0].inside(Level.ATOM)
    if not node.args[0].shape:
        return Text(f"{target.np}.reshape({args[0]}, {writer.shape(op.shape)})")
    if len(op.shape) == 1:
        return Text(f"{base}.reshape(-1)")
    return Text(f"{base}.reshape({', '.join(writer.dim(d) for d in op.shape) or '()'})")


@write.dispatch
def write_pad(op: Pad, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    """An array of zeros with the array written into it."""
    index = []
    for start, step, count, dim in zip(op.start, op.step, node.args[0].shape, op.shape, strict=True):
        if start == 0 and same_dim(count, dim):
            index.append("slice(None)")
            continue
        stop = plus(start, count * step)
        last = writer.dim(stop)
        if step < 0:  # a negative number would count from the end
            below = isinstance(stop, int) and stop < 0
            last = "None" if below else last if isinstance(stop, int) else f"{last} if {last} >= 0 else None"
        index.append(f"slice({writer.dim(start)}, {last}{f', {step}' if step != 1 else ''})")
    display = index[0] if len(index) == 1 else f"({', '.join(index)})"
    return Text(f"{writer.helper(helpers._pad)}({args[0]}, {writer.shape(op.shape)}, {display})")


@write.dispatch
def write_pack(op: Pack, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    """The entries and one argument of the function, which gives the axes of the batch at many points."""
    shape = "".join(f"{d}, " for d in op.shape)
    helper = writer.helper(helpers._stacked)
    return Text(f"{helper}({writer.batch}, [{', '.join(a.text for a in args)}], ({shape}))")


@write.dispatch
def write_concatenate(op: Concatenate, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    axis = f", axis={op.axis}" if op.axis else ""
    return Text(f"{target.np}.concatenate([{', '.join(a.text for a in args)}]{axis})")


@write.dispatch
def write_stack(op: Stack, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    entries = ", ".join(a.text for a in args)
    if not node.args[0].shape:
        numbers = all(map(is_number, node.args))  # NumPy would make an array of integers from some of them
        kind = f", {writer.type_text}" if numbers else writer.float_type()
        return Text(f"{target.np}.array([{entries}]{kind})")
    axis = f", axis={op.axis}" if op.axis else ""
    return Text(f"{target.np}.stack([{entries}]{axis})")


# ---- selection by index -------------------------------------------------------------------------


@write.dispatch
def write_positions(op: Positions, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    """Checked positions, combined into one number for several axes; integers are exact in every precision."""
    helper, made = writer.helper(helpers._positions), None
    for arg, dim, axis in zip(args, op.shape, op.axes, strict=True):
        length = dimension(dim, writer)
        low = f"-{length.inside(Level.ATOM)}" if op.from_end else "0"
        found = f"{helper}({arg}, {low}, {length}, {axis}, {op.what!r})"
        made = found if made is None else f"({made})*{length.inside(Level.ATOM)} + {found}"
    return Text(f"{made}", Level.SUM if len(args) > 1 else Level.ATOM)


def rows_text(text: Text, length: str, writer: Writer) -> str:
    """Row numbers as checked integers."""
    return f"{writer.helper(helpers._indices)}({text}, {length})"


@write.dispatch
def write_gather(op: Gather, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    rows = rows_text(args[1], writer.dim(node.args[0].shape[0]), writer)
    return Text(f"{args[0].inside(Level.ATOM)}[{rows}]")


@write.dispatch
def write_scatter_add(op: ScatterAdd, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    length = writer.dim(op.size)
    rows = rows_text(args[0], length, writer)
    return Text(f"{writer.helper(helpers._scatter_add)}({rows}, {args[1]}, {length})")


@write.dispatch
def write_sorting_positions(
    op: SortingPositions, target: NumPy, node: Compute, args: Texts, writer: Writer
) -> Written:
    return Text(f"{target.np}.argsort({args[0]}, axis=-1, kind='stable').astype({writer.type_text})")


# ---- reductions ---------------------------------------------------------------------------------


def axes_text(axes: tuple[int, ...]) -> str:
    """One axis as a number, several as a tuple."""
    return str(axes[0]) if len(axes) == 1 else str(axes)


@write.dispatch
def write_extreme(op: Extreme, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    every = len(op.axes) == len(node.args[0].shape)
    return Text(f"{args[0].inside(Level.ATOM)}.{op.kind}({'' if every else f'axis={axes_text(op.axes)}'})")


@write.dispatch
def write_product(op: Product, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    return Text(f"{args[0].inside(Level.ATOM)}.prod(axis=-1)")


ALONG_AXES: dict[type, Callable[..., Array]] = {
    Softmax: helpers._softmax,
    LogSoftmax: helpers._log_softmax,
    LogSumExp: helpers._logsumexp,
    SoftmaxTangent: helpers._softmax_tangent,
    LogSoftmaxTangent: helpers._log_softmax_tangent,
    LogSoftmaxCotangent: helpers._log_softmax_cotangent,
}


@write.dispatch
def write_exponentials(
    op: ExponentialOp, target: NumPy, node: Compute, args: Texts, writer: Writer
) -> Written:
    given = ", ".join(map(str, args))
    return Text(f"{writer.helper(ALONG_AXES[type(op)])}({given}, {axes_text(op.axes)})")
