"""Contractions over several axes as one matrix product, with each layout computed once.

In Σ_tb x_tkb y_tjb no operand is a matrix (k, tb) or (tb, j) in memory. Each operand is written as a matrix
with its own rows first, Σ_m X_km Y_jm. Gradients that share a cotangent y then also share its matrix Y, as
does the sum Σ_tb y_tjb, in whatever order it is written: y is read once.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.dims import size
from symad.core.graph import Graph, Node
from symad.core.questions import Nodes
from symad.numeric.passes.rewriting import rewrite
from symad.ops.basic.contraction import Einsum, contract, permute
from symad.ops.basic.shaping import Reshape

Labels = tuple[int, ...]


def flatten_products(graph: Graph) -> Graph:
    """The graph with contractions over several axes as matrix products."""
    if not any(map(_split, graph.nodes)):
        return graph
    flat: dict[tuple[Node, tuple[int, ...]], Node] = {}

    def better(node: Node, args: Nodes) -> Node | None:
        found = _split(node)
        if found is None:
            return None
        matrices = []
        for (rows, summed, turned), arg in zip(found, args, strict=True):
            shape = (size(arg.shape[k] for k in rows), size(arg.shape[k] for k in summed))
            if turned:  # the operand is a matrix in memory already
                matrices.append(("mi", Node.of(Reshape(shape[::-1]), (arg,))))
            else:
                flat[arg, summed] = Node.of(Reshape(shape), (permute(arg, (*rows, *summed)),))
                matrices.append(("im", flat[arg, summed]))
        return _product(matrices, node)

    def shared(node: Node, args: Nodes) -> Node | None:
        total = _total(node)
        return contract(["im"], "i", flat[total]) if total in flat else None

    return rewrite(rewrite(graph, better), shared)


def _product(matrices: Sequence[tuple[str, Node]], node: Node) -> Node:
    """The product of two matrices."""
    (one, left), (other, right) = matrices
    product = contract([one, other.replace("i", "j")], "ij", left, right)
    return product if product.shape == node.shape else Node.of(Reshape(node.shape), (product,))


def _split(node: Node) -> list[tuple[Labels, Labels, bool]] | None:
    """For both operands: the axes of their rows, the summed axes, and whether the summed axes come first.

    None if both operands are matrices already.
    """
    op = node.op
    if not isinstance(op, Einsum) or len(op.inputs) != 2:
        return None
    left, right = op.inputs
    order = tuple(x for x in left if x in right)
    rows = [tuple(x for x in part if x not in order) for part in op.inputs]
    unique = len(set(left)) == len(left) and len(set(right)) == len(right)
    if not unique or len(order) < 2 or (*rows[0], *rows[1]) != op.output or not all(rows):
        return None
    as_it_is = [part in ((*own, *order), (*order, *own)) for part, own in zip(op.inputs, rows, strict=True)]
    if all(as_it_is):
        return None
    return [
        (tuple(part.index(x) for x in own), tuple(part.index(x) for x in order), part == (*order, *own))
        for part, own in zip(op.inputs, rows, strict=True)
    ]


def _total(node: Node) -> tuple[Node, Labels] | None:
    """The array under nested sums that leave one axis, and its summed axes; None for other nodes."""
    if len(node.shape) != 1:
        return None
    left = None
    while isinstance(node.op, Einsum) and len(node.op.inputs) == 1:
        (labels,), out = node.op.inputs, node.op.output
        if len(set(labels)) != len(labels):
            return None
        left = labels.index(out[0 if left is None else left])
        (node,) = node.args
    if left is None:
        return None
    return node, tuple(k for k in range(len(node.shape)) if k != left)
