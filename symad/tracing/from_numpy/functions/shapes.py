"""NumPy's functions on shapes, and selection, on proxies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from symad.core.arrays import Array, ArrayLike, Axis
from symad.core.dims import Dim, as_dim, as_shape, broadcast_shapes, format_shape, size
from symad.core.graph import Node
from symad.errors import ShapeError, TraceError
from symad.ops.basic import shaping
from symad.ops.basic.contraction import contract
from symad.ops.basic.shaping import broadcast_to, reshape
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.selection import select
from symad.tracing.from_numpy.registry import implements, normal_axes
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import as_node, broadcast, number
from symad.tracing.proxies.wrapped import condition as condition_node

if TYPE_CHECKING:
    from symad.core.arrays import Sizes
    from symad.core.dims import Shape
    from symad.tracing.elements.chosen import Chosen


@implements(np.shape)
def shape_(a: ArrayLike) -> Shape:
    """The dimensions."""
    return as_node(a).shape


@implements(np.ndim)
def ndim(a: ArrayLike) -> int:
    """The number of axes."""
    return len(as_node(a).shape)


@implements(np.size)
def size_(a: ArrayLike, axis: Axis = None) -> Dim:
    """The number of elements."""
    node = as_node(a)
    return size([node.shape[k] for k in normal_axes(axis, len(node.shape))])


@implements(np.reshape)
def reshape_(
    a: ArrayLike, shape: Sizes | None = None, order: str = "C", newshape: Sizes | None = None
) -> Proxy:
    """The same elements, in row-major order, under another shape; one −1 is computed.

    ``order="F"``: in column-major order, the first axis fastest, in both shapes.
    """
    node = as_node(a)
    wanted = newshape if shape is None else shape
    dims = list(as_shape(wanted if isinstance(wanted, (tuple, list)) else (wanted,)))
    if -1 in dims:
        known = size(d for d in dims if d != -1)
        dims[dims.index(-1)] = as_dim(_quotient(size(node.shape), known, node, dims))
    if not by_columns("np.reshape", order):
        return Proxy(reshape(node, dims))
    return Proxy(_turned(reshape(_turned(node), tuple(reversed(dims)))))


def by_columns(call: str, order: str) -> bool:
    """True if elements are taken in column-major order ("F"); a traced value is in row-major order.

    Raises:
        TraceError: no such order.
    """
    if order not in ("C", "F", "A", "K"):
        raise TraceError(f"{call}(order={order!r}) is not defined; use 'C' or 'F'")
    return bool(order == "F")


def _turned(node: Node) -> Node:
    """All axes in reverse order."""
    rank = len(node.shape)
    return contract([range(rank)], range(rank - 1, -1, -1), node)


def _quotient(total: Dim, known: Dim, node: Node, dims: Sequence[Dim]) -> int:
    if isinstance(total, int) and isinstance(known, int):
        if known == 0 or total % known:
            raise ShapeError(f"cannot reshape {format_shape(node.shape)} into {format_shape(dims)}")
        return total // known
    return sympy.cancel(sympy.sympify(total, strict=True) / known)


@implements(np.ravel)
def ravel(a: ArrayLike, order: str = "C") -> Proxy:
    """All elements in one axis, in row-major order, or in column-major order for ``order="F"``."""
    node = as_node(a)
    return Proxy(shaping.flatten(_turned(node) if by_columns("np.ravel", order) else node))


@implements(np.transpose)
def transpose(a: ArrayLike, axes: Axis = None) -> Proxy:
    """Axes in another order, reversed by default."""
    node = as_node(a)
    rank = len(node.shape)
    order = tuple(range(rank - 1, -1, -1)) if axes is None else normal_axes(axes, rank)
    if len(order) != rank:
        raise ShapeError(f"np.transpose: {tuple(order)} is not an order of the {rank} axes of a traced value")
    return Proxy(contract([range(rank)], order, node))


@implements(np.swapaxes)
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Proxy:
    """Two axes swapped."""
    order = list(range(len(as_node(a).shape)))
    ((i,), (j,)) = (normal_axes(k, len(order)) for k in (axis1, axis2))
    order[i], order[j] = j, i
    return transpose(a, order)


@implements(np.moveaxis)
def moveaxis(a: ArrayLike, source: Axis, destination: Axis) -> Proxy:
    """Axes moved to other positions."""
    rank = len(as_node(a).shape)
    moved = normal_axes(source, rank)
    places = dict(zip(normal_axes(destination, rank), moved, strict=True))
    rest = iter([k for k in range(rank) if k not in moved])
    return transpose(a, [places[k] if k in places else next(rest) for k in range(rank)])


@implements(np.expand_dims)
def expand_dims(a: ArrayLike, axis: Axis) -> Proxy:
    """New axes of length 1."""
    node = as_node(a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = len(node.shape) + len(axes)
    new, old = normal_axes(axes, rank), iter(node.shape)
    return Proxy(reshape(node, tuple(1 if k in new else next(old) for k in range(rank))))


@implements(np.squeeze)
def squeeze(a: ArrayLike, axis: Axis = None) -> Proxy:
    """Axes of length 1 removed."""
    node = as_node(a)
    axes = (
        normal_axes(axis, len(node.shape))
        if axis is not None
        else [k for k, d in enumerate(node.shape) if d == 1]
    )
    if any(node.shape[k] != 1 for k in axes):
        raise ShapeError(
            f"np.squeeze(axis={axis}) of {format_shape(node.shape)}: that axis is not of length 1"
        )
    return Proxy(reshape(node, tuple(d for k, d in enumerate(node.shape) if k not in axes)))


@implements(np.atleast_1d)
def atleast_1d(*arys: ArrayLike) -> Any:
    """Scalars get an axis."""
    return _each(arys, lambda node: reshape(node, node.shape or (1,)))


@implements(np.atleast_2d)
def atleast_2d(*arys: ArrayLike) -> Proxy | list[Proxy]:
    """Vectors become rows."""
    return _each(arys, lambda node: reshape(node, (1,) * (2 - len(node.shape)) + node.shape))


@implements(np.atleast_3d)
def atleast_3d(*arys: ArrayLike) -> Proxy | list[Proxy]:
    """Axes are added as NumPy does: (n,) to (1, n, 1), (m, n) to (m, n, 1)."""
    added = {0: (1, 2), 1: (1, 1), 2: (0, 1)}

    def change(node: Node) -> Node:
        front, back = added.get(len(node.shape), (0, 0))
        return reshape(node, (1,) * front + node.shape + (1,) * back)

    return _each(arys, change)


def _each(arrays: Sequence[ArrayLike], change: Callable[[Node], Node]) -> Any:
    made = []
    for a in arrays:
        node = as_node(a)
        found = change(node)
        made.append(a if found is node and isinstance(a, Proxy) else Proxy(found))
    return made[0] if len(made) == 1 else made


@implements(np.broadcast_to)
def broadcast_to_(array: ArrayLike, shape: Sizes) -> Proxy:
    """NumPy's broadcasting."""
    return Proxy(
        broadcast_to(as_node(array), as_shape(shape if isinstance(shape, (tuple, list)) else (shape,)))
    )


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: ArrayLike) -> tuple[Proxy, ...]:
    """All arrays under their common shape."""
    nodes = [as_node(a) for a in args]
    common = broadcast_shapes(*[n.shape for n in nodes])
    return tuple(Proxy(broadcast_to(n, common)) for n in nodes)


@implements(np.zeros_like, layout=True)
def zeros_like(a: ArrayLike, shape: Sizes | None = None) -> Proxy:
    """Zeros."""
    return full_like(a, 0, shape=shape)


@implements(np.empty_like, layout=True)
def empty_like(prototype: ArrayLike, shape: Sizes | None = None) -> Proxy:
    """Zeros; code should overwrite them, as elements of an empty array have no defined value."""
    return full_like(prototype, 0, shape=shape)


@implements(np.ones_like, layout=True)
def ones_like(a: ArrayLike, shape: Sizes | None = None) -> Proxy:
    """Ones."""
    return full_like(a, 1, shape=shape)


@implements(np.full_like, layout=True)
def full_like(a: ArrayLike, fill_value: ArrayLike, shape: Any = None) -> Proxy:
    """An array with the same value everywhere."""
    return Proxy(broadcast_to(number(fill_value), as_node(a).shape if shape is None else as_shape(shape)))


# ---- selection ----------------------------------------------------------------------------------


@implements(np.where)
def where(condition: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None) -> Any:
    """x where the condition holds, else y; with the condition alone, the positions at which it holds."""
    if x is None or y is None:
        return nonzero(condition)
    return Proxy(select(*broadcast(condition_node(condition), *map(number, (x, y)))))


@implements(np.nonzero)
def nonzero(a: ArrayLike) -> tuple[Chosen, ...]:
    """The positions of the elements that are not 0, as indices of arrays of the same shape."""
    from symad.tracing.elements import chosen

    return chosen.nonzero(Proxy(condition_node(a)))


@implements(np.flatnonzero)
def flatnonzero(a: ArrayLike) -> Chosen:
    """The positions of the elements that are not 0, in the flattened array."""
    return nonzero(np.ravel(Proxy(condition_node(a))))[0]


@implements(np.select)
def select_(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Proxy:
    """The choice of the first condition that holds."""
    pairs = zip(reversed(condlist), reversed(choicelist), strict=True)
    return reduce(lambda rest, pair: where(pair[0], pair[1], rest), pairs, Proxy(number(default)))


@implements(np.clip)
def clip(
    a: ArrayLike,
    a_min: ArrayLike | float | None = None,
    a_max: ArrayLike | None = None,
    *,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
) -> Proxy:
    """The value, clipped to two bounds; at a bound the derivative is 1/2."""
    node = number(a)
    low, high = a_min if min is None else min, a_max if max is None else max
    if low is not None and not _is(low, -np.inf):
        node = apply(sympy.Max, *broadcast(node, number(low)))
    if high is not None and not _is(high, np.inf):
        node = apply(sympy.Min, *broadcast(node, number(high)))
    return Proxy(node)


def _is(bound: ArrayLike, value: float) -> bool:
    """True if a bound is this number."""
    return isinstance(bound, (float, np.floating)) and bound == value


@implements(np.copy, np.real_if_close, np.ascontiguousarray, layout=True)
def same(a: ArrayLike) -> Proxy:
    """The value itself."""
    return Proxy(as_node(a))


@implements(np.real)
def real(val: ArrayLike) -> Proxy:
    """The value itself."""
    return Proxy(as_node(val))


@implements(np.imag)
def imag(val: ArrayLike) -> Proxy:
    """0: every value is real."""
    return full_like(val, 0)


@implements(np.iscomplexobj)
def iscomplexobj(x: ArrayLike) -> bool:
    """False: no value is complex."""
    return False


@implements(np.iscomplex)
def iscomplex(x: ArrayLike) -> Any:
    """False everywhere, as an array of NumPy, so that code may branch on it."""
    return np.zeros([d if isinstance(d, int) else 1 for d in as_node(x).shape], dtype=bool)[()]


@implements(np.isreal)
def isreal(x: ArrayLike) -> Array:
    """True everywhere."""
    return ~iscomplex(x)


@implements(np.isrealobj)
def isrealobj(x: ArrayLike) -> bool:
    """True: every value is real."""
    return True


@implements(np.result_type)
def result_type(*arrays_and_dtypes: ArrayLike) -> np.dtype[np.float64]:
    """Double precision."""
    return np.dtype(np.float64)
