"""Softmax and its kin over rows as nests: equal to the definitions in `symad.ops.arrays.softmax`, and stable.

The largest element is subtracted first, unless it is infinite; then nothing is subtracted, and the result
shows the infinity. A NaN is in the sum of exponentials, and so in every element. The tangents are sums of
differences to the t of a p of almost 1, as 1 - p would lose digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import sympy

from symad.core.dims import Shape
from symad.core.graph import Graph, Node
from symad.core.questions import Nodes
from symad.higher_order.scan import Local
from symad.numeric.fusion.nest import Nest, summed
from symad.ops.arrays.reduction import Extreme, keep_axes
from symad.ops.arrays.softmax import (
    LIKELY,
    ExponentialOp,
    LogSoftmax,
    LogSoftmaxCotangent,
    LogSoftmaxTangent,
    LogSumExp,
    Softmax,
    SoftmaxTangent,
)
from symad.ops.basic.arithmetic import add, div, mul, neg, sub
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.selection import compare, select


@lru_cache(maxsize=256)
def softmax_nest(kind: type[ExponentialOp], shape: Shape, axes: tuple[int, ...]) -> Nest:
    """The nest of an op of this kind over arrays of a shape."""
    rows = _SoftmaxRows(shape, axes)
    count = 1 if kind in (Softmax, LogSoftmax, LogSumExp) else 2
    given = tuple([Node.of(Local(k, shape)) for k in range(count)])
    return Nest(Graph(given, (BODIES[kind](rows, *given),)), 0, shape, axes)


class _SoftmaxRows:
    """Sums over rows, and numbers for each row repeated along it."""

    def __init__(self, shape: Shape, axes: tuple[int, ...]) -> None:
        self.shape, self.axes = shape, axes

    def sum(self, term: Node) -> Node:
        return summed(term, self.axes)

    def along(self, number: Node) -> Node:
        return keep_axes(number, self.shape, self.axes)

    def exponentials(self, x: Node) -> Nodes:
        """(m, exp(x - m), Σ exp(x - m))."""
        highest = Node.of(Extreme("max", self.axes), (x,))
        finite = compare("<", apply(sympy.Abs, highest), constant(math.inf))
        shift = select(finite, highest, constant(0))
        e = apply(sympy.exp, sub(x, self.along(shift)))
        return shift, e, self.sum(e)

    def mean(self, p: Node, t: Node) -> Nodes:
        """(t of a p of almost 1, the mean of t less that), for each row."""
        likely = compare(">", p, constant(LIKELY))
        other = select(likely, constant(0), p)
        shift = self.sum(select(likely, t, constant(0)))
        return shift, sub(self.sum(mul(other, t)), mul(self.sum(other), shift))


def _softmax(rows: _SoftmaxRows, x: Node) -> Node:
    _, e, total = rows.exponentials(x)
    return mul(e, rows.along(div(constant(1), total)))


def _log_softmax(rows: _SoftmaxRows, x: Node) -> Node:
    shift, _, total = rows.exponentials(x)
    return sub(sub(x, rows.along(shift)), rows.along(apply(sympy.log, total)))  # a sum of both rounds


def _log_sum_exp(rows: _SoftmaxRows, x: Node) -> Node:
    shift, _, total = rows.exponentials(x)
    return add(shift, apply(sympy.log, total))


def _log_softmax_tangent(rows: _SoftmaxRows, p: Node, t: Node) -> Node:
    shift, mean = rows.mean(p, t)
    return sub(sub(t, rows.along(shift)), rows.along(mean))


def _softmax_tangent(rows: _SoftmaxRows, p: Node, t: Node) -> Node:
    return mul(p, _log_softmax_tangent(rows, p, t))


def _log_softmax_cotangent(rows: _SoftmaxRows, p: Node, t: Node) -> Node:
    """The sum of all is 0, which gives the element of a p of almost 1."""
    likely = compare(">", p, constant(LIKELY))
    made = sub(t, mul(p, rows.along(rows.sum(t))))
    rest = rows.sum(select(likely, constant(0), made))
    return select(likely, rows.along(neg(rest)), made)


BODIES: dict[type[ExponentialOp], Callable[..., Node]] = {
    Softmax: _softmax,
    LogSoftmax: _log_softmax,
    LogSumExp: _log_sum_exp,
    SoftmaxTangent: _softmax_tangent,
    LogSoftmaxTangent: _log_softmax_tangent,
    LogSoftmaxCotangent: _log_softmax_cotangent,
}
"""The value of each op for its arrays."""
