"""Values that are read as row numbers only; they keep the dtype in which they are given."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from symad.core.contents import inner_graphs
from symad.core.graph import Node
from symad.fused.attention_ops import AttentionOp
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.arrays.positions import Positions
from symad.ops.basic.shaping import Broadcast, Reshape, Slice

INDEX_ARGUMENTS: dict[type, Collection[int]] = {Gather: (1,), ScatterAdd: (0,), Positions: range(64)}
"""The positions of the arguments that contain row numbers, for each op."""


def only_indices(order: Sequence[Node], outputs: Sequence[Node]) -> set[Node]:
    """The nodes of an order, arguments first, that are read as row numbers only.

    Such nodes need no conversion to the dtype of the module. In bfloat16, token numbers above 256 would not
    be exact. All other integers need it: an operation with single precision would give double precision.
    """
    computed = {*outputs, *_inner_nodes(order)}
    for node in reversed(order):
        if isinstance(node.op, (Broadcast, Reshape, Slice)) and node not in computed:
            continue
        numbers = INDEX_ARGUMENTS.get(type(node.op), ())
        if isinstance(node.op, AttentionOp):
            numbers = tuple(3 + k for k, p in enumerate(node.op.given) if p.integer)
        args = [arg for k, arg in enumerate(node.args) if k not in numbers] if numbers else node.args
        computed.update(args)
    return {node for node in order if node not in computed}


def _inner_nodes(order: Iterable[Node]) -> set[Node]:
    """The nodes in the bodies of loops and parts. The same nodes may occur outside of the bodies."""
    found: set[Node] = set()
    for op in {node.op for node in order}:
        for body in inner_graphs(op):
            found |= {*body.nodes, *_inner_nodes(body.nodes)}
    return found
