"""Batching on nodes: a leading axis for every node that depends on a batch. The rules are with the ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symad.core.dims import Dim
from symad.core.graph import Node, topological
from symad.core.questions import batch
from symad.ops.basic.shaping import lift


def batch_outputs(
    outputs: Sequence[Node],
    replaced: Mapping[Node, Node],
    count: Dim,
    shared: Mapping[Node, Node] | None = None,
) -> tuple[Node, ...]:
    """The outputs with a leading axis of length ``count``.

    Args:
        outputs: the nodes to batch.
        replaced: for some nodes their batched counterparts, with the leading axis.
        count: the length of the batch.
        shared: for some nodes their replacement for all points of the batch. Both replacements are made at
            once: a replacement may contain nodes that are equal to the replaced ones.
    """
    made: dict[Node, Node] = {**(shared or {}), **replaced}
    batched = set(replaced)
    for node in topological(outputs, made):
        flags = tuple([a in batched for a in node.args])
        args = tuple([made[a] for a in node.args])
        if any(flags):
            made[node] = batch(node.op, args, flags, count)
            batched.add(node)
        else:
            made[node] = node.over(args)
    return tuple(lift(made[o], o in batched, count) for o in outputs)
