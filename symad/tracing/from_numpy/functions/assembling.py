"""NumPy's functions that assemble arrays, on proxies: grids, blocks, ranges, inserted and deleted rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from symad.core.arrays import Array, ArrayLike, Axis
from symad.core.dims import Dim, as_dim, format_shape, same_shape
from symad.core.graph import Node
from symad.errors import ShapeError, TraceError
from symad.ops.arrays.gathering import ScatterAdd
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import array_constant, constant
from symad.tracing.from_numpy.registry import implements, normal_axes
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import as_node, number


@implements(np.dstack)
def dstack(tup: Sequence[ArrayLike]) -> Array:
    """Arrays concatenated along the third axis."""
    return np.concatenate([np.atleast_3d(Proxy(as_node(a))) for a in tup], axis=2)


@implements(np.block)
def block(arrays: ArrayLike) -> Proxy:
    """An array of nested lists of blocks: the innermost lists along the last axis, and so on."""
    depth = _depth(arrays)
    rank = max(depth, *(len(as_node(a).shape) for a in _leaves(arrays)))
    return _joined(arrays, depth, rank)


def _depth(arrays: ArrayLike) -> int:
    depths = {_depth(a) for a in arrays} if isinstance(arrays, list) else {-1}
    if len(depths) != 1:
        raise ShapeError("np.block needs lists nested to one depth, and none of them empty")
    return depths.pop() + 1


def _leaves(arrays: ArrayLike) -> list[ArrayLike]:
    return [leaf for a in arrays for leaf in _leaves(a)] if isinstance(arrays, list) else [arrays]


def _joined(arrays: ArrayLike, depth: int, rank: int) -> Any:
    if not isinstance(arrays, list):
        whole = Proxy(as_node(arrays))
        return whole.reshape((*(1,) * (rank - whole.ndim), *whole.shape))
    return np.concatenate([_joined(a, depth - 1, rank) for a in arrays], axis=-depth)


@implements(np.meshgrid)
def meshgrid(*xi: ArrayLike, sparse: bool = False, indexing: str = "xy") -> tuple[Array, ...]:
    """Each vector repeated along the axes of the others; "xy" swaps the first two axes."""
    vectors: list[Any] = [np.ravel(Proxy(as_node(x))) for x in xi]
    if indexing not in ("xy", "ij"):
        raise TraceError(f"np.meshgrid(indexing={indexing!r}) is not defined; use 'xy' or 'ij'")
    rank = len(vectors)
    order = list(range(rank))
    if indexing == "xy" and rank > 1:
        order[:2] = [1, 0]
    thin = [v.reshape(tuple(-1 if a == order[k] else 1 for a in range(rank))) for k, v in enumerate(vectors)]
    return tuple(thin) if sparse else np.broadcast_arrays(*thin)


@implements(np.linspace)
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, retstep: bool = False,
             axis: int = 0) -> Array | tuple[Array, Array]:  # fmt: skip
    """Equal steps from start to stop, along a new axis."""
    ends = np.broadcast_arrays(Proxy(number(start)), Proxy(number(stop)))
    first, last = ends
    parts = (num - 1 if endpoint else num) or 1
    shares = np.arange(num).reshape((num,) + (1,) * first.ndim) / parts
    step = (last - first) / parts
    values = np.moveaxis(first + (last - first) * shares, 0, axis)
    return (values, step) if retstep else values


@implements(np.rot90)
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, ...] = (0, 1)) -> Proxy:
    """Rotated by 90 degrees, k times, from the first of the axes to the second."""
    value: Any = Proxy(as_node(m))
    first, second = normal_axes(tuple(axes), value.ndim)
    for _ in range(k % 4):
        value = np.flip(np.swapaxes(value, first, second), first)
    return value


@implements(np.delete)
def delete(arr: ArrayLike, obj: int | slice | Sequence[int], axis: Axis = None) -> Array:
    """The array without the elements at known positions of an axis."""
    value, k, count = _known_axis("np.delete", arr, axis)
    return np.take(value, np.delete(np.arange(count), obj), axis=k)


@implements(np.insert)
def insert(arr: ArrayLike, obj: ArrayLike, values: ArrayLike, axis: Axis = None) -> Array:
    """The array with one element or slice inserted before a known position of an axis."""
    value, k, count = _known_axis("np.insert", arr, axis)
    if not isinstance(obj, (int, np.integer)):
        raise TraceError("np.insert of traced values takes one position; use np.concatenate for several")
    place = int(obj) + count if obj < 0 else int(obj)
    if not 0 <= place <= count:
        raise ShapeError(f"np.insert: position {obj} is outside of an axis of length {count}")
    new = Proxy(number(values))
    lead = value.shape[:k] + value.shape[k + 1 :]
    if new.ndim == value.ndim:
        piece = np.broadcast_to(new, (*value.shape[:k], new.shape[k], *value.shape[k + 1 :]))
    else:
        piece = np.expand_dims(np.broadcast_to(new, lead), k)
    parts = np.split(value, [place], axis=k)
    return np.concatenate([parts[0], piece, parts[1]], axis=k)


def _known_axis(what: str, arr: ArrayLike, axis: Axis) -> tuple[Any, int, int]:
    value: Any = Proxy(as_node(arr))
    if axis is None:
        value, axis = np.ravel(value), 0
    (k,) = normal_axes(axis, value.ndim)
    count = value.shape[k]
    if not isinstance(count, int):
        raise ShapeError(f"{what} needs an axis of known length, not {format_shape(value.shape)}")
    return value, k, count


@implements(np.bincount)
def bincount(x: Array, weights: ArrayLike | None = None, minlength: int = 0) -> Proxy:
    """y_k = Σ of the weights (by default 1) over the positions where x = k: sums over segments.

    The length is that of NumPy for positions x that are known, and ``minlength`` for traced ones.

    Raises:
        TraceError: traced positions without ``minlength``.
        ShapeError: x and the weights differ in length; in evaluation: a position out of range.
    """
    places = as_node(x) if isinstance(x, Proxy) else array_constant(np.asarray(x, np.int64))
    length: Dim = minlength
    if not isinstance(x, Proxy):
        length = max(minlength, int(np.max(x, initial=-1)) + 1)
    elif not minlength:
        raise TraceError("np.bincount of traced positions needs minlength: the number of bins is not known")
    values = broadcast_to(constant(1), places.shape) if weights is None else number(weights)
    if len(places.shape) != 1 or not same_shape(values.shape, places.shape):
        raise ShapeError(
            f"np.bincount takes vectors of one length, not positions {format_shape(places.shape)} and "
            f"weights {format_shape(values.shape)}"
        )
    return Proxy(Node.of(ScatterAdd(as_dim(length)), (places, values)))


@implements(getattr(np, "unstack", None))
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The parts along an axis, as a tuple."""
    value: Any = Proxy(as_node(x))
    return tuple(np.moveaxis(value, axis, 0))


@implements(getattr(np, "astype", None))
def astype(x: ArrayLike, dtype: DTypeLike, /) -> Proxy:
    """The value itself, for types of floating point."""
    return Proxy(as_node(x)).astype(dtype)
