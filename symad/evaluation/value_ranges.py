"""Bounds of the elements of arrays of any size: one interval for all elements of a node.

Elementwise ops are evaluated on intervals by their own rules; other ops move elements, sum products, or have
bounds of their own. Endpoints are rounded outwards to the digits of a float in each op, and rounding is
monotone: bounds also hold for values computed in floating point, as 0 <= 1 − σ(x) does. They say nothing
about elements that are NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any, TypeAlias

import flint
from flint import arb

from symad.core.graph import Node, Op, topological
from symad.core.questions import evaluate, question
from symad.errors import SymadError
from symad.evaluation.intervals import (
    INFINITE,
    ONE,
    OPEN,
    ZERO,
    Interval,
    OpenTruth,
    above,
    hull,
    interval,
    whole_line,
)
from symad.ops.arrays.gathering import Gather
from symad.ops.arrays.reduction import Extreme
from symad.ops.arrays.softmax import Softmax
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Pad, Reshape, Slice
from symad.ops.basic.sources import ArrayConstant, Constant, Dimension, Eye, Input, Iota, symbol_of
from symad.ops.elementwise.selection import Condition

BITS = 53
"""The digits of endpoints."""

Bounds: TypeAlias = "Interval | OpenTruth | bool"


def promised(inputs: Iterable[Node]) -> dict[Node, Interval]:
    """The bounds of inputs that the assumptions on their symbols imply."""
    found: dict[Node, Interval] = {}
    for node in inputs:
        symbol = symbol_of(node)
        if getattr(symbol, "is_nonnegative", None):
            found[node] = above(0, bool(symbol.is_positive))
        elif getattr(symbol, "is_nonpositive", None):
            found[node] = -above(0, bool(symbol.is_negative))
    return found


def value_ranges(outputs: Iterable[Node], box: Mapping[Node, Interval] | None = None) -> dict[Node, Any]:
    """The bounds of all nodes that the outputs depend on, or the truth of conditions.

    Args:
        outputs: the nodes that are needed.
        box: the bounds of inputs; by default those that the assumptions on their symbols imply.
    """
    order = topological(outputs)
    given = promised([n for n in order if isinstance(n.op, Input)]) if box is None else box
    found: dict[Node, Bounds] = {}
    before, flint.ctx.prec = flint.ctx.prec, BITS
    try:
        for node in order:
            if isinstance(node.op, Input):
                found[node] = given.get(node) or whole_line(sure=True)
            else:
                found[node] = value_range(node.op, node, tuple([found[a] for a in node.args]))
    finally:
        flint.ctx.prec = before
    return found


@question
def value_range(op: Op, y: Node, args: tuple[Bounds, ...]) -> Any:
    """The bounds of all elements of ``y``, or its truth, from those of its arguments."""


@value_range.dispatch
def unknown_range(op: Op, y: Node, args: tuple[Bounds, ...]) -> Bounds:
    """Nothing is known of other ops."""
    return whole_line()


@value_range.dispatch
def elementwise_range(op: ElementwiseOp, y: Node, args: tuple[Bounds, ...]) -> Bounds:
    """By the op's own rule."""
    try:
        value = evaluate(op, args)
        return value if isinstance(op, Condition) else interval(value)
    except (SymadError, ArithmeticError, TypeError, ValueError, AttributeError):
        return OPEN if isinstance(op, Condition) else whole_line()


@value_range.dispatch
def constant_range(op: Constant, y: Node, args: tuple[Bounds, ...]) -> Bounds:
    """A number, or a truth value."""
    return op.value if isinstance(op.value, bool) else interval(op.value)


@value_range.dispatch
def array_range(op: ArrayConstant, y: Node, args: tuple[Bounds, ...]) -> Bounds:
    """The smallest and the largest element."""
    array = op.array
    if not array.size or array.dtype == object:
        return whole_line()
    if array.dtype == bool:
        return bool(array.flat[0]) if (array == array.flat[0]).all() else OPEN
    return hull([interval(end) for end in (array.min(), array.max())])


@value_range.dispatch
def counting_range(op: Dimension | Iota, y: Node, args: tuple[Bounds, ...]) -> Bounds:
    """Numbers that count are not negative."""
    return above(0, strict=False)


@value_range.dispatch
def unit_range(op: Eye | Softmax, y: Node, args: tuple[Bounds, ...]) -> Bounds:
    """Between 0 and 1."""
    return Interval(arb(0), arb(1), all(interval(a).sure for a in args))


@value_range.dispatch
def moved_range(
    op: Broadcast | Reshape | Slice | Concatenate | Stack | Extreme, y: Node, args: tuple[Bounds, ...]
) -> Bounds:
    """Elements are only moved; the interval is a new one, since the elements are other ones."""
    truths = [a for a in args if not isinstance(a, Interval)]
    if truths:
        return truths[0] if all(t is truths[0] for t in truths) and len(truths) == len(args) else OPEN
    return hull([interval(a) for a in args])


@value_range.dispatch
def gathered_range(op: Gather, y: Node, args: tuple[Bounds, ...]) -> Bounds:
    """Elements of the array."""
    return hull([interval(args[0])])


@value_range.dispatch
def padded_range(op: Pad, y: Node, args: tuple[Bounds, ...]) -> Bounds:
    """The elements, and zeros."""
    return hull([interval(args[0]), ZERO])


@value_range.dispatch
def contraction_range(op: Einsum, y: Node, args: tuple[Bounds, ...]) -> Bounds:
    """A sum of products, by the number of its terms; an array times itself gives squares."""
    total, seen = ONE, dict[tuple[Node, tuple[int, ...]], int]()
    for arg, labels in zip(y.args, op.inputs, strict=True):
        seen[arg, labels] = seen.get((arg, labels), 0) + 1
    known = dict(zip(y.args, args, strict=True))
    for (arg, _), count in seen.items():
        total = total * interval(known[arg]) ** count
    dims = {
        x: d
        for labels, a in zip(op.inputs, y.args, strict=True)
        for x, d in zip(labels, a.shape, strict=True)
    }
    lengths = [d for x, d in dims.items() if x not in op.output]
    if all(isinstance(d, int) for d in lengths):
        return total * interval(prod(lengths))
    return total * Interval(arb(0), INFINITE)
