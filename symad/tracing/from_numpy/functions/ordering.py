"""NumPy's functions of order on proxies: sort, positions of extremes, medians and quantiles, search."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from symad.core.arrays import Array, ArrayLike, Axis
from symad.core.dims import format_shape
from symad.core.graph import Node
from symad.errors import ShapeError, TraceError
from symad.ops.arrays.ordering import sorting_positions
from symad.ops.arrays.reduction import extreme
from symad.ops.basic.shaping import broadcast_axes, reshape
from symad.ops.basic.sources import dimension, iota
from symad.ops.elementwise.selection import compare, logic, select
from symad.tracing.from_numpy.functions.joining import take_along_axis
from symad.tracing.from_numpy.functions.reductions import sum_
from symad.tracing.from_numpy.registry import along, implements, normal_axes
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import broadcast, number


@implements(np.argsort)
def argsort(a: ArrayLike, axis: Axis = -1) -> Proxy:
    """The positions that sort an axis; equal elements keep their order."""
    node, k = along(a, axis)
    if not node.shape:
        raise ShapeError("np.argsort needs an array with at least one axis, not a scalar")
    whole: Any = Proxy(node)
    places: Any = Proxy(sorting_positions(number(np.moveaxis(whole, k, -1))))
    result: Proxy = np.moveaxis(places, -1, k)
    return result


@implements(np.sort)
def sort(a: ArrayLike, axis: Axis = -1) -> Proxy:
    """The elements in ascending order, with their derivatives."""
    node, k = along(a, axis)
    return take_along_axis(Proxy(node), argsort(Proxy(node), k), k)


@implements(np.argmax)
def argmax(a: ArrayLike, axis: Axis = None, *, keepdims: bool = False) -> Proxy:
    """The position of the largest element, the first one if several are equal."""
    return _first_extreme("max", a, axis, keepdims)


@implements(np.argmin)
def argmin(a: ArrayLike, axis: Axis = None, *, keepdims: bool = False) -> Proxy:
    """The position of the smallest element, the first one if several are equal."""
    return _first_extreme("min", a, axis, keepdims)


def _first_extreme(kind: str, a: ArrayLike, axis: Axis, keepdims: bool) -> Proxy:
    rank = len(number(a).shape)
    node, k = along(number(a), axis)
    places = broadcast_axes(iota(node.shape[k]), node.shape, (k,))
    best = reshape(extreme(kind, node, (k,)), _kept(node, k))
    found = compare("==", *broadcast(node, best))
    missing = compare("!=", node, node)  # NumPy finds the first NaN
    chosen = select(logic("or", found, missing), places, dimension(node.shape[k]))
    position = Proxy(extreme("min", chosen, (k,)))
    if not keepdims:
        return position
    return position.reshape((1,) * rank if axis is None else _kept(node, k))


def _kept(node: Node, axis: int) -> tuple[int | sympy.Symbol, ...]:
    return tuple(1 if j == axis else d for j, d in enumerate(node.shape))


@implements(np.median)
def median(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Proxy:
    """The middle element in ascending order, or the mean of the two middle ones."""
    return _quantile("np.median", a, 0.5, axis, keepdims)


@implements(np.percentile)
def percentile(
    a: ArrayLike, q: ArrayLike, axis: Axis = None, method: str = "linear", keepdims: bool = False
) -> Proxy:
    """The quantile at q/100."""
    _known("np.percentile", q, 100, method)
    return _quantile("np.percentile", a, np.asarray(q) / 100, axis, keepdims)


@implements(np.quantile)
def quantile(
    a: ArrayLike, q: ArrayLike, axis: Axis = None, method: str = "linear", keepdims: bool = False
) -> Proxy:
    """The value below which the fraction q of the elements lies, by linear interpolation between neighbors.

    q: a number or an array of numbers in [0, 1], known at trace time; its axes lead in the result.

    Raises:
        TraceError: q is traced, or another method than "linear".
        ShapeError: an axis of unknown length.
    """
    _known("np.quantile", q, 1, method)
    return _quantile("np.quantile", a, q, axis, keepdims)


def _known(name: str, q: ArrayLike, most: int, method: str) -> None:
    """Refuse positions that are traced, or outside of [0, most], and other methods than "linear"."""
    if isinstance(q, Proxy) or method != "linear":
        raise TraceError(f"{name} of traced values needs numbers q and method='linear'")
    shares = np.asarray(q, dtype=float)
    if np.any((shares < 0) | (shares > most) | np.isnan(shares)):
        raise TraceError(f"{name}: q = {q} is outside of [0, {most}]")


def _quantile(name: str, a: ArrayLike, q: ArrayLike, axis: Axis, keepdims: bool) -> Proxy:
    shares = np.asarray(q, dtype=float)
    node = number(a)
    axes = normal_axes(axis, len(node.shape))
    rest = [k for k in range(len(node.shape)) if k not in axes]
    whole: Any = Proxy(node)
    flat = np.transpose(whole, [*rest, *axes]).reshape((*(node.shape[k] for k in rest), -1))
    count = flat.shape[-1]
    if not isinstance(count, int) or not count:
        raise ShapeError(f"{name} needs axes of known length, not {count}")
    ordered = sort(flat)
    place = shares * (count - 1)
    low = np.floor(place).astype(int)
    lower, upper = ordered[..., low], ordered[..., np.minimum(low + 1, count - 1)]
    found = np.where(place == low, lower, lower + (upper - lower) * (place - low))
    if shares.ndim:
        found = np.moveaxis(found, tuple(range(-shares.ndim, 0)), tuple(range(shares.ndim)))
    if keepdims:
        found = found.reshape((*shares.shape, *(1 if k in axes else d for k, d in enumerate(node.shape))))
    return found


@implements(np.searchsorted)
def searchsorted(a: ArrayLike, v: ArrayLike, side: str = "left", sorter: Array | None = None) -> Proxy:
    """The position of v in the ascending a: the number of elements that are smaller ("right": not larger)."""
    table, values = number(a if sorter is None else np.take(Proxy(number(a)), sorter)), number(v)
    if len(table.shape) != 1 or side not in ("left", "right"):
        raise TraceError(
            f"np.searchsorted takes a vector and side 'left' or 'right', not {format_shape(table.shape)} "
            f"and {side!r}"
        )
    wide = (*values.shape, table.shape[0])
    rank = len(values.shape)
    left = broadcast_axes(table, wide, (rank,))
    right = broadcast_axes(values, wide, tuple(range(rank)))
    return sum_(Proxy(compare("<" if side == "left" else "<=", left, right)), -1)


@implements(np.digitize)
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False) -> Proxy:
    """The number of the bin of each element, for ascending bins."""
    if not isinstance(bins, Proxy) and np.any(np.diff(np.asarray(bins)) < 0):
        raise TraceError("np.digitize of traced values needs bins that ascend")
    return searchsorted(bins, x, "left" if right else "right")
