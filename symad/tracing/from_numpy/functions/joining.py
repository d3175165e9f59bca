"""NumPy's functions that concatenate, split and move elements, on proxies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import sympy

from symad.core.arrays import Array, Axis
from symad.core.dims import Dim, as_dim, as_shape, format_shape, plus, size, times
from symad.core.graph import Node
from symad.errors import ShapeError, TraceError
from symad.ops.arrays import stacking
from symad.ops.basic import shaping
from symad.ops.basic.arithmetic import add, sub
from symad.ops.basic.contraction import contract, diagonal_matrix
from symad.ops.basic.shaping import broadcast_axes, broadcast_to, reshape, slice_axis
from symad.ops.basic.sources import constant, dimension, iota
from symad.ops.elementwise.selection import compare, select
from symad.tracing.from_numpy.functions.shapes import atleast_1d, atleast_2d
from symad.tracing.from_numpy.registry import along, implements, normal_axes
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import alike, as_node, number

if TYPE_CHECKING:
    from symad.core.arrays import ArrayLike, Index, Sizes


@implements(np.concatenate)
def concatenate(arrays: Sequence[ArrayLike] | Array, axis: Axis = 0) -> Proxy:
    """Arrays concatenated along an axis."""
    nodes = alike(arrays)
    if axis is None:
        return Proxy(stacking.concatenate([shaping.flatten(n) for n in nodes]))
    (k,) = normal_axes(axis, len(nodes[0].shape))
    return Proxy(stacking.concatenate(nodes, k))


@implements(np.stack)
def stack(arrays: list[Array] | list[Proxy] | tuple[Proxy, ...], axis: int = 0) -> Proxy:
    """Arrays of one shape along a new axis."""
    nodes = alike(arrays)
    (k,) = normal_axes(axis, len(nodes[0].shape) + 1)
    return Proxy(stacking.stack(nodes, k))


@implements(np.vstack)
def vstack(tup: Sequence[ArrayLike]) -> Proxy:
    """Rows stacked vertically."""
    return concatenate([atleast_2d(Proxy(as_node(a))) for a in tup], 0)


@implements(np.hstack)
def hstack(tup: Sequence[ArrayLike]) -> Proxy:
    """Columns stacked horizontally; vectors are concatenated."""
    arrays = [atleast_1d(Proxy(as_node(a))) for a in tup]
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1)


@implements(np.column_stack)
def column_stack(tup: Sequence[ArrayLike]) -> Proxy:
    """Vectors as the columns of a matrix."""
    nodes = [as_node(a) for a in tup]
    return concatenate([Proxy(n if len(n.shape) > 1 else reshape(n, (size(n.shape), 1))) for n in nodes], 1)


@implements(np.append)
def append(arr: ArrayLike, values: ArrayLike, axis: Axis = None) -> Proxy:
    """Values after the array."""
    return concatenate([arr, values], axis)


@implements(np.split)
def split(ary: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Proxy]:
    """NumPy's parts of an axis of known length; an integer gives the number of equal parts."""
    node = as_node(ary)
    (k,) = normal_axes(axis, len(node.shape))
    length, sections = node.shape[k], indices_or_sections
    if isinstance(sections, int) and isinstance(length, int) and (sections < 1 or length % sections):
        raise ShapeError(f"np.split: {length} elements of axis {k} do not part into {sections} equal pieces")
    return array_split(ary, indices_or_sections, axis)


def _split_along(axis: int) -> Callable[..., list[Proxy]]:
    """The function that splits along one axis."""

    def split_axis(ary: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Proxy]:
        return split(ary, indices_or_sections, axis)

    return split_axis


implements(np.vsplit)(_split_along(0))
implements(np.dsplit)(_split_along(2))


@implements(np.hsplit)
def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Proxy]:
    """Parts along the second axis, or along the only axis of a vector."""
    return split(ary, indices_or_sections, min(1, len(as_node(ary).shape) - 1))


@implements(np.array_split)
def array_split(ary: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Proxy]:
    """NumPy's parts of an axis of known length."""
    node = as_node(ary)
    (k,) = normal_axes(axis, len(node.shape))
    if not isinstance(node.shape[k], int):
        raise ShapeError(f"np.split needs an axis of known length, not {node.shape[k]}; use slices")
    pieces = np.array_split(np.arange(node.shape[k]), indices_or_sections)
    starts = np.cumsum([0, *map(len, pieces)])
    return [Proxy(slice_axis(node, k, int(s), len(p))) for s, p in zip(starts, pieces, strict=False)]


@implements(np.repeat)
def repeat(a: ArrayLike, repeats: int | Array, axis: Axis = None) -> Proxy:
    """Every element several times in a row: one number of times, or one for each element.

    Raises:
        TraceError: a number is negative or traced.
        ShapeError: different numbers for an axis of unknown length.
    """
    node, k = along(a, axis)
    symbolic = isinstance(repeats, sympy.Expr)
    if isinstance(repeats, Proxy) or not (symbolic or np.all(np.asarray(repeats) >= 0)):
        raise TraceError(f"np.repeat of traced values takes known numbers of repeats >= 0, not {repeats!r}")
    if np.ndim(repeats):
        length = node.shape[k]
        if not isinstance(length, int):
            raise ShapeError(f"np.repeat needs an axis of known length for an array of repeats, not {length}")
        return take(Proxy(node), np.repeat(np.arange(length), repeats), k)
    shape = (*node.shape[: k + 1], as_dim(repeats), *node.shape[k + 1 :])
    spread = broadcast_axes(node, shape, [j for j in range(len(shape)) if j != k + 1])
    return Proxy(
        reshape(spread, (*node.shape[:k], times(node.shape[k], as_dim(repeats)), *node.shape[k + 1 :]))
    )


@implements(np.tile)
def tile(A: ArrayLike, reps: Sizes) -> Proxy:
    """The array repeated along its axes."""
    node = as_node(A)
    counts = as_shape(reps if isinstance(reps, (tuple, list)) else (reps,))
    rank = max(len(counts), len(node.shape))
    counts = (1,) * (rank - len(counts)) + counts
    dims = (1,) * (rank - len(node.shape)) + node.shape
    wide = tuple(d for pair in zip(counts, dims, strict=True) for d in pair)
    spread = broadcast_axes(reshape(node, dims), wide, range(1, 2 * rank, 2))
    return Proxy(reshape(spread, tuple(times(c, d) for c, d in zip(counts, dims, strict=True))))


@implements(np.roll)
def roll(a: ArrayLike, shift: int | Sequence[int], axis: Axis = None) -> Proxy:
    """Elements shifted cyclically along an axis."""
    node = as_node(a)
    if axis is None:
        return Proxy(reshape(roll(Proxy(shaping.flatten(node)), shift, 0)._node, node.shape))
    axes = normal_axes(axis, len(node.shape))
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if not all(isinstance(amount, (int, np.integer, sympy.Expr)) for amount in shifts):
        raise TraceError(f"np.roll(shift={shift!r}): a shift is an integer, or one integer for each axis")
    for k, amount in zip(axes, shifts, strict=True):
        length = node.shape[k]
        amount = amount % max(length, 1) if isinstance(length, int) else amount
        cut = plus(length, -amount) if amount >= 0 else -amount
        if amount:
            pieces = [
                slice_axis(node, k, cut, plus(length, times(-1, cut))),
                slice_axis(node, k, 0, cut),
            ]
            node = stacking.concatenate(pieces, k)
    return Proxy(node)


@implements(np.flip)
def flip(m: ArrayLike, axis: Axis = None) -> Proxy:
    """Axes in reverse direction."""
    node = as_node(m)
    for k in normal_axes(axis, len(node.shape)):
        node = slice_axis(node, k, plus(node.shape[k], -1), node.shape[k], -1)
    return Proxy(node)


@implements(np.fliplr)
def fliplr(m: ArrayLike) -> Proxy:
    """The second axis reversed."""
    return flip(m, 1)


@implements(np.flipud)
def flipud(m: ArrayLike) -> Proxy:
    """The first axis reversed."""
    return flip(m, 0)


@implements(np.pad)
def pad(
    array: ArrayLike,
    pad_width: ArrayLike,
    mode: str = "constant",
    constant_values: ArrayLike = 0,
    reflect_type: str = "even",
) -> Proxy:
    """Elements added around the array: one constant, or its own (edge, reflect, symmetric, wrap)."""
    node = number(array)
    rank = len(node.shape)
    widths = _widths(pad_width, rank)
    if reflect_type != "even":
        raise TraceError(f"np.pad(reflect_type={reflect_type!r}) is not supported on traced values")
    if mode == "constant":
        if len(number(constant_values).shape):
            raise TraceError("np.pad of traced values takes one number constant_values for all sides")
        around = [plus(d, before + after) for d, (before, after) in zip(node.shape, widths, strict=True)]
        value = number(constant_values)
        inside = shaping.pad(sub(node, value), [before for before, _ in widths], tuple(around))
        return Proxy(add(inside, value))
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise TraceError(
            f"np.pad(mode={mode!r}) is not supported on traced values; use constant, edge, reflect or wrap"
        )
    result = Proxy(node)
    for k, (before, after) in enumerate(widths):
        length = node.shape[k]
        if not isinstance(length, int):
            raise ShapeError(f"np.pad(mode={mode!r}) needs axes of known length, not {length}")
        if before or after:
            positions = np.pad(np.arange(length), (before, after), mode)  # type: ignore[call-overload]  # checked above
            result = result[(*(slice(None),) * k, positions)]
    return result


def _widths(pad_width: ArrayLike, rank: int) -> list[list[int]]:
    """The numbers of elements before and after each axis; a dict gives those of some axes.

    Raises:
        TraceError: widths that are not integers >= 0, or do not match the axes.
    """
    if isinstance(pad_width, dict):
        of_axes = {normal_axes(k, rank)[0]: v for k, v in pad_width.items()}
        pad_width = [np.broadcast_to(of_axes.get(k, 0), 2) for k in range(rank)]
    try:
        widths = np.broadcast_to(np.asarray(pad_width), (rank, 2))
    except ValueError:
        widths = np.full((1, 2), -1)
    if widths.dtype.kind not in "iu" or np.any(widths < 0):
        raise TraceError(
            f"np.pad(pad_width={pad_width!r}) of {rank} axes: give integers >= 0, one pair for each axis"
        )
    return [[int(before), int(behind)] for before, behind in widths]


@implements(np.take)
def take(a: ArrayLike, indices: ArrayLike, axis: Axis = None, mode: str = "raise") -> Proxy:
    """The elements at some positions of an axis; positions outside are errors, wrap around or are clipped.

    Raises:
        TraceError: no such mode.
    """
    node, k = along(a, axis) if axis is None else (as_node(a), normal_axes(axis, len(as_node(a).shape))[0])
    if mode not in ("raise", "wrap", "clip"):
        raise TraceError(f"np.take(mode={mode!r}) is not defined; use 'raise', 'wrap' or 'clip'")
    if mode != "raise":
        places, count = Proxy(as_node(indices)), Proxy(dimension(node.shape[k]))
        indices = np.clip(places, 0, np.subtract(count, 1)) if mode == "clip" else np.mod(places, count)
    return Proxy(node)[(*(slice(None),) * k, indices)]


@implements(np.take_along_axis)
def take_along_axis(arr: ArrayLike, indices: ArrayLike, axis: Axis = -1) -> Proxy:
    """For each line along an axis, its elements at the positions given for that line."""
    node, places = as_node(arr), as_node(indices)
    (k,) = normal_axes(axis, len(node.shape))
    rank = len(node.shape)
    key: list[Index] = [
        Proxy(reshape(iota(d), (*(1,) * j, d, *(1,) * (rank - 1 - j)))) for j, d in enumerate(places.shape)
    ]
    key[k] = Proxy(places)
    return Proxy(node)[tuple(key)]


# ---- diagonals and triangles --------------------------------------------------------------------


@implements(np.diagonal)
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Proxy:
    """A diagonal of two axes, as the last axis."""
    node = as_node(a)
    rank = len(node.shape)
    i, j = normal_axes((axis1, axis2), rank)
    rest = [k for k in range(rank) if k not in (i, j)]
    node = contract([range(rank)], [*rest, i, j], node)
    rows, columns = node.shape[-2:]
    first, second = max(-offset, 0), max(offset, 0)
    count = _shorter(plus(rows, -first), plus(columns, -second), node)
    node = slice_axis(slice_axis(node, rank - 2, first, count), rank - 1, second, count)
    labels = [str(k) for k in range(rank - 2)]
    return Proxy(contract([[*labels, "d", "d"]], [*labels, "d"], node))


def _shorter(a: Dim, b: Dim, node: Node) -> Dim:
    if isinstance(a, int) and isinstance(b, int):
        return max(min(a, b), 0)
    difference = plus(a, times(-1, b))
    if not isinstance(difference, int):
        raise ShapeError(
            f"a diagonal of {format_shape(node.shape)} has a length that the symbols do not decide"
        )
    return b if difference > 0 else a


@implements(np.diag)
def diag(v: ArrayLike, k: int = 0) -> Proxy:
    """The diagonal of a matrix, or the matrix with this diagonal."""
    node = number(v)
    if len(node.shape) == 2:
        return diagonal(v, k)
    if len(node.shape) != 1:
        raise ShapeError(f"np.diag needs a vector or a matrix, not {format_shape(node.shape)}")
    square = diagonal_matrix(node)
    if not k:
        return Proxy(square)
    order = plus(node.shape[0], abs(k))
    return Proxy(shaping.pad(square, (max(-k, 0), max(k, 0)), (order, order)))


@implements(np.diagflat)
def diagflat(v: ArrayLike, k: int = 0) -> Proxy:
    """The matrix with all elements of v on its diagonal."""
    return diag(Proxy(shaping.flatten(number(v))), k)


@implements(np.tril)
def tril(m: ArrayLike, k: int = 0) -> Proxy:
    """The elements with column − row ≤ k, zeros elsewhere."""
    return _triangle(m, "<=", k)


@implements(np.triu)
def triu(m: ArrayLike, k: int = 0) -> Proxy:
    """The elements with column − row ≥ k, zeros elsewhere."""
    return _triangle(m, ">=", k)


def _triangle(m: ArrayLike, relation: str, k: int) -> Proxy:
    node = number(m)
    if len(node.shape) == 1:
        node = broadcast_to(node, (node.shape[0], node.shape[0]))
    rank = len(node.shape)
    rows, columns = (
        broadcast_axes(iota(node.shape[axis]), node.shape, (axis,)) for axis in (rank - 2, rank - 1)
    )
    kept = compare(relation, sub(columns, rows), constant(k))
    return Proxy(select(kept, node, constant(0)))
