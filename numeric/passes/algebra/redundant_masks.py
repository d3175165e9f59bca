"""Masks that change nothing, because the masked elements are zero already."""

from __future__ import annotations

import numpy as np

from symad.core.graph import Graph, Node
from symad.core.questions import Nodes
from symad.numeric.passes.rewriting import rewrite
from symad.ops.arrays.softmax import Softmax, SoftmaxTangent
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import ArrayConstant, Constant, Input, constant_value
from symad.ops.elementwise.selection import Select

FINITE = (Softmax, SoftmaxTangent, Einsum, Add, Constant, Input)
"""Factors that 0 can be multiplied by: not √ and its slopes, which may be infinite where they are masked."""


def drop_masks(graph: Graph) -> Graph:
    """The graph without masks on arrays that are zero where they are masked."""
    return rewrite(graph, _unmasked, Select)


def _unmasked(node: Node, args: Nodes) -> Node | None:
    """The masked array itself, if the mask changes nothing."""
    if not isinstance(node.op, Select) or constant_value(args[2]) != 0:
        return None
    condition, kept, _ = args
    redundant = kept.shape == node.shape and shows_every_row(condition) and vanishes(kept, condition)
    return kept if redundant else None


def constant_mask(condition: Node) -> np.ndarray | None:
    """The constant array that a condition broadcasts; None for other conditions."""
    inner = condition.args[0] if isinstance(condition.op, Broadcast) else condition
    return inner.op.array if isinstance(inner.op, ArrayConstant) else None


def shows_every_row(condition: Node) -> bool:
    """Whether a constant mask keeps an element in every row, so that a softmax of each row is defined."""
    mask = constant_mask(condition)
    return mask is not None and mask.ndim > 0 and bool(np.asarray(mask, bool).any(axis=-1).all())


def vanishes(node: Node, condition: Node) -> bool:
    """Whether an array is 0 wherever the condition is false, for finite arguments."""
    op = node.op
    if isinstance(op, Select):
        return node.args[0] is condition and constant_value(node.args[2]) == 0
    if isinstance(op, Softmax):
        masked = node.args[0]
        last = (len(node.shape) - 1,)
        return (
            op.axes == last
            and isinstance(masked.op, Select)
            and masked.args[0] is condition
            and constant_value(masked.args[2]) == -np.inf
        )
    if isinstance(op, SoftmaxTangent):
        return vanishes(node.args[0], condition)
    if isinstance(op, Mul):
        zero = [vanishes(a, condition) for a in node.args]
        finite = [
            p == 1 and (z or isinstance(a.op, FINITE))
            for p, a, z in zip(op.powers, node.args, zero, strict=True)
        ]
        return any(zero) and all(finite)
    return False
