"""Contractions over an axis of one element sum nothing: they become products of broadcast arrays, or views.

The cotangent of a layer with one output is such a contraction, (m, 1) times (1, n). A BLAS call for it takes
many times as long as the multiplications, which can also join neighbouring operations, in place or fused.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.contents import holds
from symad.core.dims import Shape
from symad.core.graph import Graph, Node, rebuild
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import broadcast_axes, reshape


def as_outer_products(graph: Graph) -> Graph:
    """The graph with such contractions as products, if the operands then follow the axes of the result."""
    if not holds(graph, Einsum):
        return graph
    made = rebuild(graph, {}, _multiplied)
    return Graph(graph.input_nodes, made, graph.structure, graph.name, graph.report)


def _multiplied(node: Node, args: Nodes) -> Node:
    made = node if args == node.args else Node.of(node.op, args)
    op = made.op
    if not isinstance(op, Einsum) or len(args) > 2 or not op.output:
        return made
    summed = {label for labels in op.inputs for label in labels} - set(op.output)
    plain = all(len(set(labels)) == len(labels) for labels in op.inputs)
    if not plain or not summed or any(_length(label, op, args) != 1 for label in summed):
        return made
    if len(args) == 1:
        kept = tuple(label for label in op.inputs[0] if label in op.output)
        return reshape(args[0], made.shape) if kept == op.output else made
    operands = zip(args, op.inputs, strict=True)
    repeated = (_repeated(a, labels, op.output, made.shape) for a, labels in operands)
    factors = [r for r in repeated if r is not None]
    return mul(*factors) if len(factors) == 2 else made


def _length(label: int, op: Einsum, args: Nodes) -> object:
    """The length of an axis; 1 only if it is 1 in all operands."""
    operands = zip(args, op.inputs, strict=True)
    lengths = {a.shape[labels.index(label)] for a, labels in operands if label in labels}
    return lengths.pop() if len(lengths) == 1 else None


def _repeated(arg: Node, labels: Sequence[int], output: Sequence[int], to: Shape) -> Node | None:
    """An operand without its axes of one element, broadcast to the result; None if its axes are permuted."""
    kept = [k for k, label in enumerate(labels) if label in output]
    places = tuple(output.index(labels[k]) for k in kept)
    if list(places) != sorted(places) or not places:
        return None
    return broadcast_axes(reshape(arg, [arg.shape[k] for k in kept]), to, places)
