"""Positions that sort elements; sorting, medians and quantiles read elements at these positions.

The positions are a step function of the elements, so their derivative is 0, and a sorted array is a
gather at them. Equal elements keep their order (a stable sort); NaN comes last, as in NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import sympy

from symad.core.dims import Shape, plus, size
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
    definition,
    evaluate,
    flops,
    jvp,
)
from symad.errors import EvaluationError, ShapeError
from symad.numbers.dual import primals
from symad.ops.basic.arithmetic import add, sub
from symad.ops.basic.contraction import contract, sum_axes
from symad.ops.basic.shaping import broadcast_axes
from symad.ops.basic.sources import constant, iota
from symad.ops.elementwise.selection import compare, indicator, logic


@dataclass(frozen=True, eq=False)
class SortingPositions(Op):
    """p with x[..., p_0] ≤ x[..., p_1] ≤ ... along the last axis. x, p: (..., n)."""

    total = True


def sorting_positions(x: Node) -> Node:
    """The positions that sort the last axis, in ascending order."""
    return Node.of(SortingPositions(), (x,))


@shape(SortingPositions)
def sorting_positions_shape(op: SortingPositions, args: Nodes) -> Shape:
    if not args[0].shape:
        raise ShapeError("sorting needs an array with at least one axis, not a scalar")
    return args[0].shape


@jvp.dispatch
def sorting_positions_jvp(op: SortingPositions, y: Node, tangents: Tangents) -> Tangent:
    return ZERO


@batch.dispatch
def sorting_positions_batch(op: SortingPositions, args: Nodes, batched: Flags, count: Count) -> Node:
    return Node.of(op, args)  # leading axes are a stack already


@evaluate.dispatch
def sorting_positions_evaluate(op: SortingPositions, values: Values) -> Array:
    try:
        return np.argsort(primals(values[0]), axis=-1, kind="stable")
    except TypeError:
        raise EvaluationError("the order of symbols is not known: sort numbers") from None


@flops.dispatch
def sorting_positions_flops(op: SortingPositions, y: Node) -> Count:
    """About n log2 n comparisons a line."""
    return size(y.shape) * sympy.ceiling(sympy.log(plus(y.shape[-1], 1), 2))


@definition.dispatch
def sorting_positions_definition(op: SortingPositions, y: Node) -> Node:
    """p_k is the i of rank k; rank_i = #{j: x_j < x_i} + #{j < i: x_j = x_i}. n² comparisons."""
    (x,) = y.args
    half = constant(Fraction(1, 2))  # keeps comparisons of integers away from ties, which proofs exclude
    lead, n = len(x.shape) - 1, x.shape[-1]
    wide = (*x.shape, n)  # ..., i, j
    axes = tuple(range(lead))
    mine, other = broadcast_axes(x, wide, (*axes, lead)), broadcast_axes(x, wide, (*axes, lead + 1))
    i, j = (broadcast_axes(iota(n), wide, (lead + k,)) for k in (0, 1))
    before = logic("and", compare("==", other, mine), compare("<", j, sub(i, half)))
    rank = sum_axes(add(indicator(compare("<", other, mine)), indicator(before)), (lead + 1,))
    ranks = broadcast_axes(rank, wide, (*axes, lead))
    near = logic("and", compare("<", sub(ranks, half), j), compare("<", j, add(ranks, half)))
    is_rank = indicator(near)  # ..., i, k
    labels = [f"axis {k}" for k in axes]
    return contract([[*labels, "i", "k"], ["i"]], [*labels, "k"], is_rank, iota(n))
