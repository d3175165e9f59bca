"""NumPy's reductions and running sums on proxies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symad.dims import Dim, plus, size
from symad.errors import ShapeError
from symad.graph import Node
from symad.ops import stacking
from symad.ops.arithmetic import add, div, mul, sub
from symad.ops.contraction import contract, sum_axes
from symad.ops.elementwise import apply
from symad.ops.powers import power, sqrt
from symad.ops.reduction import extreme, product
from symad.ops.shaping import broadcast_to, reshape, slice_axis
from symad.ops.sources import constant, dimension
from symad.proxy import Proxy
from symad.scanning import scan
from symad.tracing.numpy_functions import along, implements, normal_axes
from symad.wrapped import broadcast, condition, number


def _reduced(a: Node, y: Node, axes: Sequence[int], keepdims: Any) -> Proxy:
    """A reduced value, with axes of length 1 in place of the lost ones if asked for."""
    if not keepdims:
        return Proxy(y)
    return Proxy(reshape(y, tuple(1 if k in axes else d for k, d in enumerate(a.shape))))


def _count(a: Node, axes: Sequence[int]) -> Dim:
    return size([a.shape[k] for k in axes])


@implements(np.sum)
def sum_(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: Any = False) -> Proxy:
    """Σ over some axes."""
    node = number(a)
    axes = normal_axes(axis, len(node.shape))
    return _reduced(node, sum_axes(node, axes), axes, keepdims)


@implements(np.mean)
def mean(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: Any = False) -> Proxy:
    """The mean over some axes."""
    node = number(a)
    axes = normal_axes(axis, len(node.shape))
    return _reduced(node, div(sum_axes(node, axes), dimension(_count(node, axes))), axes, keepdims)


@implements(np.average)
def average(a: Any, axis: Any = None, weights: Any = None) -> Proxy:
    """The mean, or Σ w a / Σ w."""
    if weights is None:
        return mean(a, axis)
    total = sum_(Proxy(number(a)) * weights, axis)
    return total / sum_(Proxy(broadcast_to(number(weights), number(a).shape)), axis)


@implements(np.var)
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: Any = False,
) -> Proxy:
    """Σ (a − mean)² / (count − ddof)."""
    node = number(a)
    axes = normal_axes(axis, len(node.shape))
    centred = sub(*broadcast(node, mean(node, axes, keepdims=True)._node))
    squares = sum_axes(power(centred, constant(2)), axes)
    return _reduced(node, div(squares, dimension(plus(_count(node, axes), -ddof))), axes, keepdims)


@implements(np.std)
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: Any = False,
) -> Proxy:
    """The square root of the variance; its derivative does not exist where all elements agree."""
    return Proxy(sqrt(var(a, axis, ddof=ddof, keepdims=keepdims)._node))


@implements(np.prod)
def prod(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: Any = False) -> Proxy:
    """Π over some axes."""
    node = number(a)
    axes = normal_axes(axis, len(node.shape))
    rest = [k for k in range(len(node.shape)) if k not in axes]
    flat = reshape(
        contract([range(len(node.shape))], [*rest, *axes], node),
        (*(node.shape[k] for k in rest), _count(node, axes)),
    )
    return _reduced(node, product(flat), axes, keepdims)


@implements(np.max, np.amax)
def max_(a: Any, axis: Any = None, out: None = None, keepdims: Any = False) -> Proxy:
    """The largest element over some axes."""
    return _extreme("max", number(a), axis, keepdims)


@implements(np.min, np.amin)
def min_(a: Any, axis: Any = None, out: None = None, keepdims: Any = False) -> Proxy:
    """The smallest element over some axes."""
    return _extreme("min", number(a), axis, keepdims)


def _extreme(kind: str, node: Node, axis: Any, keepdims: Any) -> Proxy:
    axes = normal_axes(axis, len(node.shape))
    return _reduced(node, extreme(kind, node, axes), axes, keepdims)


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: None = None, keepdims: Any = False) -> Proxy:
    """Max − min."""
    largest, smallest = (f(a, axis, keepdims=keepdims)._node for f in (max_, min_))
    return Proxy(sub(largest, smallest))


@implements(np.all)
def all_(a: Any, axis: Any = None, out: None = None, keepdims: Any = False) -> Proxy:
    """Whether all are true."""
    return _extreme("min", number(Proxy(condition(a))), axis, keepdims) == 1


@implements(np.any)
def any_(a: Any, axis: Any = None, out: None = None, keepdims: Any = False) -> Proxy:
    """Whether any is true."""
    return _extreme("max", number(Proxy(condition(a))), axis, keepdims) == 1


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Proxy:
    """The number of elements that are not 0; a step function."""
    return sum_(Proxy(condition(a)), axis, keepdims=keepdims)


@implements(np.cumsum)
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Proxy:
    """y_i = Σ_{j ≤ i} a_j: log2(n) shifted additions, or a loop of n steps for a symbolic length."""
    return _prefixes(a, axis, add, 0)


@implements(np.cumprod)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Proxy:
    """y_i = Π_{j ≤ i} a_j, in the same way."""
    return _prefixes(a, axis, mul, 1)


def running(head: Any, a: Any, axis: Any) -> Proxy:
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
def cumulative_sum(x: Any, /, *, axis: Any = None, dtype: Any = None, out: None = None) -> Proxy:
    """Running sums, as `cumsum`."""
    return cumsum(x, axis)


@implements(getattr(np, "cumulative_prod", None))
def cumulative_prod(x: Any, /, *, axis: Any = None, dtype: Any = None, out: None = None) -> Proxy:
    """Running products, as `cumprod`."""
    return cumprod(x, axis)


def _prefixes(a: Any, axis: Any, combine: Callable[..., Node], neutral: int) -> Proxy:
    node, k = along(a, axis)
    count = node.shape[k]
    if isinstance(count, int):
        return Proxy(_running(node, k, count, combine, neutral))
    whole: Any = Proxy(node)
    moved = np.moveaxis(whole, k, 0)
    start = Proxy(broadcast_to(constant(neutral), moved.shape[1:]))
    prefixes = scan(lambda y, x: Proxy(combine(number(y), number(x))), start, moved)
    result: Proxy = np.moveaxis(prefixes, 0, k)
    return result


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
def diff(a: Any, n: int = 1, axis: int = -1) -> Proxy:
    """Differences of neighbours, n times."""
    node = number(a)
    (k,) = normal_axes(axis, len(node.shape))
    for _ in range(n):
        count = plus(node.shape[k], -1)
        node = sub(slice_axis(node, k, 1, count), slice_axis(node, k, 0, count))
    return Proxy(node)
