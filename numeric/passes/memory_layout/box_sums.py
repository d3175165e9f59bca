"""Sums of arrays padded with zeros into disjoint boxes: one array, filled box by box."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

from symad.core.dims import Dim
from symad.core.graph import Node, Op
from symad.numeric.program.expressions import Compute
from symad.ops.basic.arithmetic import Add
from symad.ops.basic.shaping import Pad, Reshape

Box = tuple[tuple[int, int], ...]
"""The first and the last position (exclusive) along each axis."""

Padded: TypeAlias = "Node | Compute"
"""An op with its arguments and its shape."""


def boxes(node: Node) -> dict[Node, Box] | None:
    """The boxes of a sum of padded arrays, by its arguments; None for other nodes."""
    found = boxes_of(node.op, node.args) if len({*node.args}) == len(node.args) else None
    return None if found is None else dict(zip(node.args, found, strict=True))


def boxes_of(op: Op, args: Sequence[Padded]) -> list[Box] | None:
    """The boxes of a sum of padded arrays, one for each argument; None if they overlap, or for other ops."""
    if not isinstance(op, Add) or len(args) < 2 or set(op.signs) != {1}:
        return None
    found: list[Box] = []
    for arg in args:
        box = _box(arg)
        if box is None or not all(_apart(box, other) for other in found):
            return None
        found.append(box)
    return found


def _apart(one: Box, other: Box) -> bool:
    return any(a[1] <= b[0] or b[1] <= a[0] for a, b in zip(one, other, strict=True))


def _box(array: Padded) -> Box | None:
    op = array.op
    if not isinstance(op, Pad) or any(step != 1 for step in op.step):
        return None
    sides = []
    for start, count, total in zip(op.start, array.args[0].shape, op.shape, strict=True):
        if not (isinstance(start, int) and isinstance(count, int) and isinstance(total, int)):
            return None
        sides.append((start, start + count))
    return tuple(sides)


def fills(found: Sequence[Box], shape: Sequence[Dim]) -> bool:
    """Whether disjoint boxes fill an array."""
    return sum(prod(b - a for a, b in box) for box in found) == prod(shape)


def source(pad: Node) -> tuple[Node, frozenset[int]]:
    """The array that is padded, before axes of length 1 were inserted, and those axes."""
    (arg,) = pad.args
    if isinstance(arg.op, Reshape):
        inner = arg.args[0]
        axes = single_axes(inner.shape, arg.shape)
        if axes:
            return inner, axes
    return arg, frozenset()


def single_axes(short: Sequence[Dim], long: Sequence[Dim]) -> frozenset[int]:
    """The axes of length 1 that turn one shape into the other; empty if there are none, or if none fit."""
    axes: set[int] = set()
    k = 0
    for axis, dim in enumerate(long):
        left = len(short) - k
        if (
            left
            and short[k] == dim
            and len(long) - axis >= left
            and not (dim == 1 and len(long) - axis > left)
        ):
            k += 1
        elif dim == 1:
            axes.add(axis)
        else:
            return frozenset()
    return frozenset(axes) if k == len(short) else frozenset()
