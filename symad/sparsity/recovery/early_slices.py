"""Slices of computed arrays, moved as far as possible towards the operands of sums and paddings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symad.core.graph import Node
from symad.ops.arrays.gathering import gather
from symad.ops.basic.arithmetic import Add, add, signed_sum
from symad.ops.basic.shaping import Broadcast, Pad, Slice, broadcast_to, flatten, slice_axes
from symad.ops.basic.sources import array_constant
from symad.sparsity.patterns.pattern import IntArray
from symad.sparsity.patterns.rules import size_of

MAX_SLICE_DEPTH = 8
"""The maximum number of ops through which a slice is moved."""

Ints = Sequence[int]


def sliced(a: Node, start: Ints, count: Ints, step: Ints, depth: int = MAX_SLICE_DEPTH) -> Node:
    """``count`` elements of each axis from ``start`` with ``step``.

    If ``a`` is padded with zeros that the slice removes, neither op is used; a sum with such a term is
    sliced term by term. Slices are views, while padding copies.
    """
    if isinstance(a.op, Broadcast) and not a.op.axes:
        return broadcast_to(a.args[0], tuple(count))
    if isinstance(a.op, Slice):
        outer = zip(a.op.start, a.op.step, start, step, strict=True)
        first, strides = zip(*[(s0 + d0 * s, d0 * d) for s0, d0, s, d in outer], strict=True)
        return sliced(a.args[0], first, count, strides, depth)
    if depth and isinstance(a.op, Pad) and all(s == 1 for s in a.op.step):
        (inner,) = a.args
        inside = [first - low for first, low in zip(start, a.op.start, strict=True)]
        ends = [
            first + (number - 1) * stride for first, number, stride in zip(inside, count, step, strict=True)
        ]
        if all(
            min(first, last) >= 0 and max(first, last) < dim
            for first, last, dim in zip(inside, ends, inner.shape, strict=True)
        ):
            return sliced(inner, inside, count, step, depth - 1)
    if depth and isinstance(a.op, Add) and any(isinstance(arg.op, Pad) for arg in a.args):
        return signed_sum(
            (sign, sliced(arg, start, count, step, depth - 1) if arg.shape else arg)
            for sign, arg in zip(a.op.signs, a.args, strict=True)
        )
    return slice_axes(a, start, count, step)


def moved_slice(op: Slice, a: Node) -> Node:
    """`sliced` by a slice op."""
    return sliced(a, op.start, op.count, op.step)


def chosen(a: Node, positions: IntArray) -> Node:
    """The elements at some ascending flat positions, in this order.

    A slice, in all axes of ``a``, if the positions fill a box; otherwise a gather with one axis. For an array
    of equal elements the result is their number.
    """
    if isinstance(a.op, Broadcast) and not a.op.axes:
        return a.args[0]
    if not a.shape:
        return a
    shape = tuple(int(d) for d in a.shape)
    along = np.unravel_index(positions, shape)
    axes = [np.flatnonzero(np.bincount(index)) for index in along]
    counts = [len(axis) for axis in axes]
    steps = [int(axis[1] - axis[0]) if len(axis) > 1 else 1 for axis in axes]
    even = all((np.diff(axis) == step).all() for axis, step in zip(axes, steps, strict=True))
    if shape and even and int(np.prod(counts)) == len(positions):
        return sliced(a, [int(axis[0]) for axis in axes], counts, steps)
    return gather(flatten(a), array_constant(positions))


def sum_of(values: Sequence[Node]) -> Node:
    """The sum of arrays; equal slices of arrays of one shape are taken after adding.

    Whole arrays are added faster than slices of them, unless the slice removes most of the array.
    """
    terms = [_signed(value) for value in values]
    first = terms[0][1]
    alike = all(
        isinstance(a.op, Slice) and a.op is first.op and a.args[0].shape == first.args[0].shape
        for _, a in terms
    )
    if len(terms) < 2 or not alike or 2 * size_of(first) < size_of(first.args[0]):
        return add(*values)
    return Node.of(first.op, (signed_sum((sign, a.args[0]) for sign, a in terms),))


def _signed(a: Node) -> tuple[int, Node]:
    """A term without its sign."""
    if isinstance(a.op, Add) and len(a.args) == 1:
        return a.op.signs[0], a.args[0]
    return 1, a
