"""Sums of arrays padded with zeros into boxes that do not meet: one array, filled box by box."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from symad.core.graph import Node
from symad.ops.arrays.shaping import Pad, Reshape
from symad.ops.elementwise.arithmetic import Add

Box = tuple[tuple[int, int], ...]
"""First and last position (excluded) along each axis."""

BoxIndex = tuple[str, ...]
"""The text of an index: for each axis, but whole ones at the end."""


def boxes(node: Node) -> dict[Node, Box] | None:
    """The boxes of a sum of padded arrays by its arguments; None for anything else."""
    if not isinstance(node.op, Add) or len(node.args) < 2 or set(node.op.signs) != {1}:
        return None
    found: dict[Node, Box] = {}
    for arg in node.args:
        box = _box(arg)
        if box is None or arg in found:
            return None
        found[arg] = box
    listed = list(found.values())
    apart = all(
        any(a[1] <= b[0] or b[1] <= a[0] for a, b in zip(one, other, strict=True))
        for k, one in enumerate(listed)
        for other in listed[:k]
    )
    return found if apart else None


def _box(node: Node) -> Box | None:
    op = node.op
    if not isinstance(op, Pad) or any(step != 1 for step in op.step):
        return None
    sides = []
    for start, count, total in zip(op.start, node.args[0].shape, op.shape, strict=True):
        if not (isinstance(start, int) and isinstance(count, int) and isinstance(total, int)):
            return None
        sides.append((start, start + count))
    return tuple(sides)


def fills(found: Sequence[Box], shape: Sequence[Any]) -> bool:
    """Whether boxes that do not meet fill an array."""
    return sum(prod(b - a for a, b in box) for box in found) == prod(shape)


def source(pad: Node) -> tuple[Node, frozenset[int]]:
    """What is padded, before axes of length 1 were added to it, and those axes."""
    (arg,) = pad.args
    if isinstance(arg.op, Reshape):
        inner = arg.args[0]
        axes = single_axes(inner.shape, arg.shape)
        if axes:
            return inner, axes
    return arg, frozenset()


def single_axes(short: Sequence[Any], long: Sequence[Any]) -> frozenset[int]:
    """The axes of length 1 that make one shape from another; empty if there are none, or no way."""
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


def box_index(box: Box, shape: Sequence[Any], single: frozenset[int]) -> BoxIndex:
    """The index of a box; axes that the source does not have are single positions."""
    parts = []
    for axis, ((a, b), total) in enumerate(zip(box, shape, strict=True)):
        if axis in single:
            parts.append(str(a))
        elif (a, b) == (0, total):
            parts.append(":")
        else:
            parts.append(f"{a or ''}:{b if b != total else ''}")
    return without_whole_axes(parts)


def without_whole_axes(index: Sequence[str]) -> BoxIndex:
    """An index without the axes at the end that it leaves as they are."""
    count = len(index)
    while count > 1 and index[count - 1] == ":":
        count -= 1
    return tuple(index[:count])
