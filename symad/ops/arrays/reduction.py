"""Reductions that are not sums: the extreme of some axes and the product along one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sympy

from symad.core.dims import Shape, size
from symad.core.graph import ZERO, Node, Op, shape
from symad.core.questions import (
    Array,
    Count,
    Flags,
    Nodes,
    Tangent,
    Tangents,
    Values,
    batch,
    chosen,
    evaluate,
    flops,
    jvp,
)
from symad.numbers.number_domains import apply
from symad.ops.arrays.stacking import concatenate, take
from symad.ops.basic.arithmetic import div, mul
from symad.ops.basic.contraction import contract, sum_axes
from symad.ops.basic.shaping import broadcast_axes, slice_axis
from symad.ops.basic.sources import constant, eye
from symad.ops.elementwise.selection import compare, equal, indicator, logic, select


@dataclass(frozen=True, eq=False)
class Extreme(Op):
    """The largest ("max") or smallest ("min") element over ``axes``; the axes disappear."""

    finite_slopes = kinked = True

    kind: str
    axes: tuple[int, ...]
    branches = True


@dataclass(frozen=True, eq=False)
class Product(Op):
    """The product along the last axis, which disappears."""

    finite_slopes = True


def extreme(kind: str, a: Node, axes: Sequence[int] | None = None) -> Node:
    """The "max" or "min" over some axes (all by default)."""
    rank = len(a.shape)
    chosen = tuple(sorted(k % rank for k in axes)) if axes is not None else tuple(range(rank))
    return Node.of(Extreme(kind, chosen), (a,)) if chosen else a


def product(a: Node, axis: int = -1) -> Node:
    """The product along an axis: a balanced tree of pairwise products for a known length.

    The tree makes every derivative linear in the length and correct at factors that are 0.
    """
    rank = len(a.shape)
    axis %= rank
    count = a.shape[axis]
    if not isinstance(count, int):
        order = [k for k in range(rank) if k != axis]
        return Node.of(Product(), (contract([range(rank)], [*order, axis], a),))
    if count == 0:
        return broadcast_axes(constant(1), a.shape[:axis] + a.shape[axis + 1 :], ())
    while count > 1:
        half = count // 2
        paired = mul(slice_axis(a, axis, 0, half), slice_axis(a, axis, half, half))
        if count % 2:
            paired = concatenate([paired, slice_axis(a, axis, count - 1, 1)], axis)
        a, count = paired, half + count % 2
    return take(a, axis, 0)


def keep_axes(y: Node, a_shape: Shape, axes: Sequence[int]) -> Node:
    """A reduced value repeated along the axes it was reduced over."""
    return broadcast_axes(y, a_shape, tuple(k for k in range(len(a_shape)) if k not in axes))


@shape(Extreme)
def extreme_shape(op: Extreme, args: Nodes) -> Shape:
    return tuple(dim for k, dim in enumerate(args[0].shape) if k not in op.axes)


@shape(Product)
def product_shape(op: Product, args: Nodes) -> Shape:
    return args[0].shape[:-1]


@jvp.dispatch
def extreme_jvp(op: Extreme, y: Node, tangents: Tangents) -> Tangent:
    """The mean of the tangents where the extreme is attained: k-way ties give 1/k each."""
    (a,), (a_dot,) = y.args, tangents
    if not isinstance(a_dot, Node):
        return ZERO
    hits = indicator(equal(a, keep_axes(y, a.shape, op.axes)))
    labels = range(len(a.shape))
    kept = [k for k in labels if k not in op.axes]
    return div(contract([labels, labels], kept, hits, a_dot), sum_axes(hits, op.axes))


@chosen.dispatch
def extreme_chosen(op: Extreme, y: Node, k: int) -> Node | None:
    """Where no other element is larger, or smaller."""
    (a,) = y.args
    pair = (a, keep_axes(y, a.shape, op.axes))
    return logic("not", compare("<", *(pair if op.kind == "max" else pair[::-1])))


@jvp.dispatch
def product_jvp(op: Product, y: Node, tangents: Tangents) -> Tangent:
    """y_dot = Σ_i (Π_{j≠i} a_j) a_i_dot; the products of the others are exact at factors that are 0."""
    (a,), (a_dot,) = y.args, tangents
    if not isinstance(a_dot, Node):
        return ZERO
    rank, count = len(a.shape), a.shape[-1]
    square = (*a.shape[:-1], count, count)
    repeated = broadcast_axes(a, square, (*range(rank - 1), rank))
    same = broadcast_axes(eye(count), square, (rank - 1, rank))
    others = Node.of(Product(), (select(equal(same, constant(1)), constant(1), repeated),))
    labels = range(rank)
    return contract([labels, labels], labels[:-1], others, a_dot)


@batch.dispatch
def extreme_batch(op: Extreme, args: Nodes, batched: Flags, count: Count) -> Node:
    return Node.of(Extreme(op.kind, tuple(k + 1 for k in op.axes)), args)


@batch.dispatch
def product_batch(op: Product, args: Nodes, batched: Flags, count: Count) -> Node:
    return Node.of(op, args)


@flops.dispatch
def extreme_flops(op: Extreme, y: Node) -> Count:
    return size(y.args[0].shape)


@flops.dispatch
def product_flops(op: Product, y: Node) -> Count:
    return size(y.args[0].shape)


@evaluate.dispatch
def extreme_evaluate(op: Extreme, values: Values) -> Array:
    (a,) = values
    if a.dtype != object or not a.size:
        return (np.max if op.kind == "max" else np.min)(a, axis=op.axes)
    kept = [k for k in range(a.ndim) if k not in op.axes]
    rows = a.transpose(*op.axes, *kept).reshape(-1, *(a.shape[k] for k in kept))
    return apply(sympy.Max if op.kind == "max" else sympy.Min, tuple(rows))


@evaluate.dispatch
def product_evaluate(op: Product, values: Values) -> Array:
    return np.prod(values[0], axis=-1)
