"""Fewer launches for moving data: a pass before fusion, since each small launch costs microseconds.

A sum of blocks padded with zeros to adjacent places, as the transpose of cutting an array into pieces gives,
becomes one concatenation, beside the other terms of the sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.dims import plus, same_dim
from symad.core.graph import Node, op_of, rebuild
from symad.core.questions import Nodes
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.arithmetic import Add, signed_sum
from symad.ops.basic.shaping import Pad


def simplify_views(outputs: Sequence[Node]) -> Nodes:
    """The outputs with sums of adjacent blocks as concatenations."""
    return rebuild(outputs, {}, _joined)


def _joined(node: Node, args: Nodes) -> Node:
    made = node if args == node.args else Node.of(node.op, args)
    return _side_by_side(made) or made if isinstance(made.op, Add) else made


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
