"""Contractions over several axes as one matrix product, with each layout computed once.

In Σ_tb x_tkb y_tjb no operand is a matrix (k, tb) or (tb, j) in memory. Each operand is written as a matrix
with its own rows first, Σ_m X_km Y_jm. Gradients that share a cotangent y then also share its matrix Y.
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
                matrices.append(("im", Node.of(Reshape(shape), (permute(arg, (*rows, *summed)),))))
        return _product(matrices, node)

    return rewrite(graph, better)


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
