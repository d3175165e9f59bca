"""Contractions as the device computes them: two operands at a time, each label in both or in the result.

Every contraction is then a stack of matrix products, which cuBLAS computes in one call, or an elementwise
product whose sum is one kernel. This pass from graph to graph runs before chains are fused.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.dims import Shape
from symad.core.graph import Node, op_of
from symad.core.questions import Nodes
from symad.numeric.passes.algebra.sums_of_products import ordered
from symad.numeric.passes.rewriting import rewritten
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.contraction import Einsum, contract
from symad.ops.basic.shaping import broadcast_axes

Labels = tuple[int, ...]


def two_at_a_time(outputs: Sequence[Node]) -> Nodes:
    """The outputs with contractions of this form only."""
    return rewritten(rewritten(outputs, _ordered), _written)


def _ordered(node: Node, args: Nodes) -> Node | None:
    several = isinstance(node.op, Einsum) and len(args) > 2
    return ordered(op_of(node, Einsum).inputs, op_of(node, Einsum).output, args) if several else None


def _written(node: Node, args: Nodes) -> Node | None:
    op = node.op
    if not isinstance(op, Einsum) or len(args) != 2:
        return None
    one, other = op.inputs
    left, right = _own_sums(one, args[0], (*other, *op.output)), _own_sums(other, args[1], (*one, *op.output))
    return _product(left, right, op.output)


def _own_sums(labels: Labels, node: Node, wanted: Labels) -> tuple[Labels, Node]:
    """An operand without repeated labels, summed over those that are not wanted."""
    kept = tuple(dict.fromkeys(label for label in labels if label in wanted))
    return (labels, node) if kept == labels else (kept, contract([labels], kept, node))


def _product(left: tuple[Labels, Node], right: tuple[Labels, Node], output: Labels) -> Node:
    """A contraction of two operands; a sum of elementwise products if neither has a label of its own."""
    (first, a), (second, b) = left, right
    if set(first) | set(second) == set(output) and len(set(output)) == len(output):
        sizes = dict(zip((*first, *second), (*a.shape, *b.shape), strict=True))
        shape = tuple(sizes[label] for label in output)
        return mul(*(_spread(labels, node, output, shape) for labels, node in (left, right)))
    if set(first) != set(second) or set(first) == set(output):
        return contract([first, second], output, a, b)
    aligned = b if first == second else contract([second], first, b)
    return contract([first], output, mul(a, aligned))


def _spread(labels: Labels, node: Node, output: Labels, shape: Shape) -> Node:
    """An operand, broadcast along the labels that it lacks."""
    order = tuple(label for label in output if label in labels)
    axes = tuple(output.index(label) for label in order)
    return broadcast_axes(contract([labels], order, node), shape, axes)
