"""Fewer launches for moving data: a pass before fusion, since each small launch costs microseconds.

A slice of length one whose axis is dropped becomes one view. A sum of blocks padded with zeros to adjacent
places, as the transpose of cutting an array into pieces gives, becomes one concatenation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symad.core.dims import Shape, plus, same_dim, same_shape
from symad.core.graph import Node, op_of, rebuild, shape
from symad.core.questions import Array, Nodes, Values, definition, evaluate
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.arithmetic import Add, signed_sum
from symad.ops.basic.shaping import Pad, Reshape, ShapingOp, Slice, reshape


@dataclass(frozen=True, eq=False)
class Take(ShapingOp):
    """A slice without its axes ``dropped``, which have length 1."""

    start: tuple[Any, ...]
    count: tuple[Any, ...]
    step: tuple[int, ...]
    dropped: tuple[int, ...]


@shape(Take)
def take_shape(op: Take, args: Nodes) -> Shape:
    """The remaining axes."""
    return tuple(count for k, count in enumerate(op.count) if k not in op.dropped)


@definition.dispatch
def take_definition(op: Take, y: Node) -> Node:
    """The slice, reshaped to the remaining axes."""
    return reshape(Node.of(Slice(op.start, op.count, op.step), y.args), y.shape)


@evaluate.dispatch
def take_evaluate(op: Take, values: Values) -> Array:
    """The slice without the axes of length 1."""
    return np.squeeze(evaluate(Slice(op.start, op.count, op.step), values), axis=op.dropped)


def simplify_views(outputs: Sequence[Node]) -> Nodes:
    """The outputs with slices without axes as `Take`, and sums of adjacent blocks as concatenations."""
    return rebuild(outputs, {}, _joined)


def _joined(node: Node, args: Nodes) -> Node:
    made = node if args == node.args else Node.of(node.op, args)
    if isinstance(made.op, Reshape) and isinstance(args[0].op, Slice):
        return _taken(made, args[0]) or made
    if isinstance(made.op, Add):
        return _side_by_side(made) or made
    return made


def _taken(node: Node, piece: Node) -> Node | None:
    op, source = piece.op, piece.args[0]
    assert isinstance(op, Slice)
    dropped = tuple(
        k for k, (n, whole) in enumerate(zip(op.count, source.shape, strict=True)) if n == 1 != whole
    )
    left = tuple(n for k, n in enumerate(op.count) if k not in dropped)
    if not dropped or len(left) != len(node.shape) or not same_shape(left, node.shape):
        return None
    return Node.of(Take(op.start, op.count, op.step, dropped), (source,))


def _side_by_side(node: Node) -> Node | None:
    """The sum as a concatenation of its padded blocks, if they fill an axis; else None."""
    assert isinstance(node.op, Add)
    terms = list(zip(node.op.signs, node.args, strict=True))
    for axis, dim in enumerate(node.shape):
        blocks = [n for sign, n in terms if sign == 1 and _is_block(n, axis)]
        chain: list[Node] = []
        place = 0
        while following := [
            b for b in blocks if b not in chain and same_dim(op_of(b, Pad).start[axis], place)
        ]:
            chain.append(following[0])
            place = plus(place, following[0].args[0].shape[axis])
        if len(chain) > 1 and same_dim(place, dim):
            rest = [pair for pair in terms if pair[1] not in chain]
            return signed_sum([(1, concatenate([b.args[0] for b in chain], axis)), *rest])
    return None


def _is_block(node: Node, axis: int) -> bool:
    """Whether a node is an array padded with zeros at the ends of this axis only."""
    if not isinstance(node.op, Pad) or node.op.step[axis] != 1:
        return False
    whole = [same_dim(n, m) for n, m in zip(node.args[0].shape, node.shape, strict=True)]
    return not whole[axis] and all(w for k, w in enumerate(whole) if k != axis)
