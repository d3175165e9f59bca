"""Contractions without a sum are products; written as products, they join elementwise chains."""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.numeric.passes.rewriting import rewritten
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import broadcast_axes


def as_products(outputs: Sequence[Node]) -> Nodes:
    """The outputs with such contractions as products of (broadcast) arrays."""
    return rewritten(outputs, _written)


def _written(node: Node, args: Nodes) -> Node | None:
    op = node.op
    if not isinstance(op, Einsum) or len(args) < 2 or not _is_product(op):
        return None
    return mul(*(_repeated(a, labels, op.output, node) for a, labels in zip(args, op.inputs, strict=True)))


def _is_product(op: Einsum) -> bool:
    """Whether no label is summed, none is repeated, and axes keep their order."""
    for labels in op.inputs:
        places = [op.output.index(label) for label in labels if label in op.output]
        if len(places) < len(labels) or places != sorted(set(places)):
            return False
    return any(tuple(labels) == tuple(op.output) for labels in op.inputs)


def _repeated(arg: Node, labels: Sequence[int], output: Sequence[int], made: Node) -> Node:
    if tuple(labels) == tuple(output):
        return arg
    return broadcast_axes(arg, made.shape, tuple(output.index(label) for label in labels))
