"""NumPy's reductions and running sums on proxies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import sympy

from symad.core.arrays import Array, ArrayLike, Axis
from symad.core.dims import Dim, plus, size
from symad.core.graph import Node
from symad.errors import ShapeError, TraceError
from symad.higher_order.scan import scan
from symad.ops.arrays import stacking
from symad.ops.arrays.reduction import extreme, product
from symad.ops.basic.arithmetic import add, div, mul, sub
from symad.ops.basic.contraction import contract, permute, sum_axes
from symad.ops.basic.shaping import broadcast_to, reshape, slice_axis
from symad.ops.basic.sources import constant, constant_value, dimension
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power, sqrt
from symad.ops.elementwise.selection import equal, select
from symad.tracing.from_numpy.registry import along, implements, normal_axes
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import broadcast, condition, number


def _reduced(a: Node, y: Node, axes: Sequence[int], keepdims: bool) -> Proxy:
    """A reduced value; with ``keepdims``, axes of length 1 replace the reduced ones."""
    if not keepdims:
        return Proxy(y)
    return Proxy(reshape(y, tuple(1 if k in axes else d for k, d in enumerate(a.shape))))


def _count(a: Node, axes: Sequence[int]) -> Dim:
    return size([a.shape[k] for k in axes])


def _chosen(node: Node, where: ArrayLike, neutral: int) -> Node:
    """The elements where a condition holds, a neutral value elsewhere; the whole array without condition."""
    if where is True:
        return node
    return select(*broadcast(condition(where), node, constant(neutral)))


def _how_many(node: Node, axes: Sequence[int], where: ArrayLike) -> Node:
    """The number of elements over some axes for which a condition holds."""
    if where is True:
        return dimension(_count(node, axes))
    return sum_axes(number(Proxy(broadcast_to(condition(where), node.shape))), axes)


def _joined(y: Proxy, initial: ArrayLike | None, combine: Callable[..., Node]) -> Proxy:
    """A reduced value combined with an initial one."""
    if initial is np._NoValue or initial is None:
        return y
    return Proxy(combine(*broadcast(y._node, number(initial))))


@implements(np.sum)
def sum_(
    a: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike = True,
) -> Proxy:
    """Σ over some axes."""
    node = _chosen(number(a), where, 0)
    axes = normal_axes(axis, len(node.shape))
    return _joined(_reduced(node, sum_axes(node, axes), axes, keepdims), initial, add)


@implements(np.mean)
def mean(a: ArrayLike, axis: Axis = None, keepdims: bool = False, where: ArrayLike = True) -> Proxy:
    """The mean over some axes."""
    node = number(a)
    axes = normal_axes(axis, len(node.shape))
    total = sum_axes(_chosen(node, where, 0), axes)
    return _reduced(node, div(total, _how_many(node, axes, where)), axes, keepdims)


@implements(np.average)
def average(
    a: ArrayLike, axis: Axis = None, weights: Any = None, returned: bool = False, keepdims: bool = False
) -> Array | tuple[Array, Array]:
    """The mean, or Σ w a / Σ w; with the sum of the weights if ``returned``."""
    values: Any = Proxy(number(a))
    if weights is None:
        weights = 1
    elif np.ndim(weights) < values.ndim:  # one weight for each place of the axes
        axes = normal_axes(axis, values.ndim)
        if np.shape(weights) != tuple(values.shape[k] for k in axes):
            raise ShapeError(
                f"np.average: weights of shape {np.shape(weights)} do not fit axis {axis} of {values.shape}"
            )
        ordered = np.transpose(Proxy(number(weights)), np.argsort(np.argsort(axes)).tolist())
        weights = ordered.reshape(tuple(d if k in axes else 1 for k, d in enumerate(values.shape)))
    spread = Proxy(broadcast_to(number(weights), values.shape))
    total = sum_(spread, axis, keepdims)
    found = sum_(values * spread, axis, keepdims) / total
    return (found, total) if returned else found


@implements(np.var)
def var(
    a: ArrayLike,
    axis: Axis = None,
    ddof: ArrayLike = 0,
    keepdims: bool = False,
    where: ArrayLike = True,
    mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Proxy:
    """Σ (a − mean)² / max(count − ddof, 0); ``correction`` is another name of ddof.

    A count that is a symbol is taken to be 1 or more where ddof is 1, for the sake of proofs.
    """
    node = number(a)
    axes = normal_axes(axis, len(node.shape))
    middle = average_of(node, axes, where) if _missing(mean) else number(mean)
    centered = sub(*broadcast(node, middle))
    squares = sum_axes(_chosen(power(centered, constant(2)), where, 0), axes)
    freedom = number(ddof if _missing(correction) else correction)
    left = sub(_how_many(node, axes, where), freedom)
    value = constant_value(left)
    known = isinstance(value, (int, float, Fraction))
    if where is not True or (value < 0 if known else constant_value(freedom) not in (0, 1)):
        left = apply(sympy.Max, *broadcast(left, constant(0)))
    return _reduced(node, div(squares, left), axes, keepdims)


def average_of(node: Node, axes: tuple[int, ...], where: ArrayLike) -> Node:
    """The mean over some axes, which are kept with length 1."""
    return mean(Proxy(node), axes, True, where)._node


def _missing(value: ArrayLike) -> bool:
    return value is None or value is np._NoValue


@implements(np.std)
def std(
    a: ArrayLike,
    axis: Axis = None,
    ddof: ArrayLike = 0,
    keepdims: bool = False,
    where: ArrayLike = True,
    mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Proxy:
    """The square root of the variance; its derivative is 0 where all elements agree, as for norms at 0."""
    squares = var(a, axis, ddof, keepdims, where, mean, correction)._node
    return Proxy(select(equal(squares, constant(0)), constant(0), sqrt(squares)))


@implements(np.prod)
def prod(
    a: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike = True,
) -> Proxy:
    """Π over some axes."""
    node = _chosen(number(a), where, 1)
    axes = normal_axes(axis, len(node.shape))
    rest = [k for k in range(len(node.shape)) if k not in axes]
    flat = reshape(
        contract([range(len(node.shape))], [*rest, *axes], node),
        (*(node.shape[k] for k in rest), _count(node, axes)),
    )
    return _joined(_reduced(node, product(flat), axes, keepdims), initial, mul)


def _extreme(
    kind: str,
    a: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike = True,
) -> Proxy:
    """The largest or the smallest element over some axes.

    With ``where``, ``initial`` replaces the elements that are not selected.
    """
    if where is not True and _missing(initial):
        raise TraceError(f"np.{kind}(..., where=...) needs initial=, the value where no element is chosen")
    node = number(a)
    if where is not True:
        node = select(*broadcast(condition(where), node, number(initial)))
    axes = normal_axes(axis, len(node.shape))
    head = sympy.Max if kind == "max" else sympy.Min
    if not _missing(initial) and any(node.shape[k] == 0 for k in axes):
        left = tuple(d for k, d in enumerate(node.shape) if k not in axes)
        return _reduced(node, broadcast_to(number(initial), left), axes, keepdims)
    y = _reduced(node, extreme(kind, node, axes), axes, keepdims)
    return _joined(y, initial, partial(apply, head))


max_ = implements(np.max, np.amax)(partial(_extreme, "max"))
min_ = implements(np.min, np.amin)(partial(_extreme, "min"))


@implements(np.ptp)
def ptp(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Proxy:
    """Max − min."""
    largest, smallest = (f(a, axis, keepdims)._node for f in (max_, min_))
    return Proxy(sub(largest, smallest))


@implements(np.all)
def all_(a: ArrayLike, axis: Axis = None, keepdims: bool = False, where: ArrayLike = True) -> Proxy:
    """True if all elements are true."""
    found = Proxy(_chosen(number(Proxy(condition(a))), where, 1))
    if _may_be_empty(found._node, axis):
        return sum_(np.subtract(1, found), axis, keepdims=keepdims) == 0
    return _extreme("min", found, axis, keepdims) == 1


@implements(np.any)
def any_(a: ArrayLike, axis: Axis = None, keepdims: bool = False, where: ArrayLike = True) -> Proxy:
    """True if an element is true."""
    found = Proxy(_chosen(number(Proxy(condition(a))), where, 0))
    if _may_be_empty(found._node, axis):
        return sum_(found, axis, keepdims=keepdims) > 0
    return _extreme("max", found, axis, keepdims) == 1


def _may_be_empty(node: Node, axis: Axis) -> bool:
    """True if some axes may have no elements: an extreme has no value then."""
    return any(not isinstance(d := node.shape[k], int) or d == 0 for k in normal_axes(axis, len(node.shape)))


@implements(np.count_nonzero)
def count_nonzero(a: ArrayLike, axis: Axis = None, *, keepdims: bool = False) -> Proxy:
    """The number of elements that are not 0; a step function."""
    return sum_(Proxy(condition(a)), axis, keepdims)


@implements(np.cumsum)
def cumsum(a: ArrayLike, axis: Axis = None) -> Proxy:
    """y_i = Σ_{j ≤ i} a_j: log2(n) shifted additions, or a loop of n steps for a symbolic length."""
    return _prefixes(a, axis, add, 0)


@implements(np.cumprod)
def cumprod(a: ArrayLike, axis: Axis = None) -> Proxy:
    """y_i = Π_{j ≤ i} a_j, in the same way."""
    return _prefixes(a, axis, mul, 1)


def running(head: type[sympy.Basic], a: ArrayLike, axis: Axis) -> Proxy:
    """All prefixes along an axis under an associative function such as Max, Min or logaddexp."""
    node, k = along(a, axis)
    count = node.shape[k]
    if not isinstance(count, int):
        raise ShapeError(f"running {head.__name__} needs an axis of known length, not {count}")
    shift = 1
    while shift < count:
        kept = slice_axis(node, k, 0, shift)
        later = (slice_axis(node, k, start, count - shift) for start in (shift, 0))
        node = stacking.concatenate([kept, apply(head, *later)], k)
        shift *= 2
    return Proxy(node)


@implements(getattr(np, "cumulative_sum", None))
def cumulative_sum(x: ArrayLike, /, *, axis: Axis = None, include_initial: bool = False) -> Proxy:
    """Running sums, as `cumsum`, after an initial 0 if ``include_initial``."""
    return _begun(cumsum(x, axis), axis, 0 if include_initial else None)


@implements(getattr(np, "cumulative_prod", None))
def cumulative_prod(x: ArrayLike, /, *, axis: Axis = None, include_initial: bool = False) -> Proxy:
    """Running products, as `cumprod`, after an initial 1 if ``include_initial``."""
    return _begun(cumprod(x, axis), axis, 1 if include_initial else None)


def _begun(prefixes: Proxy, axis: Axis, first: int | None) -> Proxy:
    if first is None:
        return prefixes
    node = prefixes._node
    (k,) = normal_axes(0 if axis is None else axis, len(node.shape))
    start = broadcast_to(constant(first), tuple(1 if j == k else d for j, d in enumerate(node.shape)))
    return Proxy(stacking.concatenate([start, node], k))


def _prefixes(a: ArrayLike, axis: Axis, combine: Callable[..., Node], neutral: int) -> Proxy:
    node, k = along(a, axis)
    count = node.shape[k]
    if isinstance(count, int):
        return Proxy(_running(node, k, count, combine, neutral))
    rank = len(node.shape)
    moved = permute(node, (k, *range(k), *range(k + 1, rank)))
    start = broadcast_to(constant(neutral), moved.shape[1:])
    prefixes = scan(combine, start, [moved])
    return Proxy(permute(prefixes, (*range(1, k + 1), 0, *range(k + 1, rank))))


def _running(node: Node, axis: int, count: int, combine: Callable[..., Node], neutral: int) -> Node:
    """All prefixes under an associative operation (Hillis and Steele 1986)."""
    shift = 1
    while shift < count:
        head = list(node.shape)
        head[axis] = shift
        filler = broadcast_to(constant(neutral), tuple(head))
        moved = stacking.concatenate([filler, slice_axis(node, axis, 0, count - shift)], axis)
        node = combine(node, moved)
        shift *= 2
    return node


@implements(np.diff)
def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Proxy:
    """Differences of neighbors, n times, of the array with values before and after it."""
    node = number(a)
    (k,) = normal_axes(axis, len(node.shape))
    ends = [None if _missing(end) else number(end) for end in (prepend, append)]
    one = tuple(1 if j == k else d for j, d in enumerate(node.shape))
    before, behind = (e if e is None or e.shape else broadcast_to(e, one) for e in ends)
    node = stacking.concatenate([part for part in (before, node, behind) if part is not None], k)
    for _ in range(n):
        count = plus(node.shape[k], -1) if node.shape[k] != 0 else 0
        node = sub(slice_axis(node, k, 1, count), slice_axis(node, k, 0, count))
    return Proxy(node)
