"""A bias is one more row of the weights.

U x + b = [U b] [x; 1]: the sum costs a pass over the result, and x is often much smaller. Done where the
result is large, and x is copied anyway or small.
"""

from __future__ import annotations

from math import prod
from typing import Any

from symad.core.graph import Graph, Node, rebuild
from symad.core.questions import Nodes
from symad.ops.arrays.contraction import Einsum, contract, permute
from symad.ops.arrays.shaping import Broadcast, broadcast_to, reshape
from symad.ops.arrays.sources import constant
from symad.ops.arrays.stacking import concatenate
from symad.ops.elementwise.arithmetic import Add, signed_sum

LARGE = 2**18
"""Elements of a result from which this is worth the additional operations."""

RATIO = 4
"""So many times the copied operand the result has to be."""


def fold_biases(graph: Graph) -> Graph:
    """The graph with biases of large, wide products as weights of a constant input."""
    users: dict[Node, int] = {}
    for node in graph.nodes:
        for arg in set(node.args):
            users[arg] = users.get(arg, 0) + 1
    alone = {node for node, count in users.items() if count == 1} - set(graph.output_nodes)

    def better(node: Node, args: Nodes) -> Node:
        made = node if args == node.args else Node.of(node.op, args)
        return (_folded(made, [a in alone for a in node.args]) if isinstance(node.op, Add) else None) or made

    made = rebuild(graph.output_nodes, {}, better)
    return Graph(graph.input_nodes, made, graph.structure, graph.name, graph.report)


def _folded(node: Node, single: list[bool]) -> Node | None:
    """The sum with a product and a bias as one product."""
    op: Any = node.op
    terms = list(zip(op.signs, node.args, single, strict=True))
    if not all(isinstance(d, int) for d in node.shape) or prod(node.shape) < LARGE:
        return None
    for product in (t for t in terms if t[0] == 1 and t[2] and isinstance(t[1].op, Einsum)):
        for bias in (t for t in terms if t[0] == 1 and isinstance(t[1].op, Broadcast) and t[1].args[0].shape):
            whole = _with_bias(product[1], *_bare(bias[1]))
            if whole is not None:
                rest = [(sign, term) for sign, term, _ in terms if term not in (product[1], bias[1])]
                return signed_sum([(1, whole), *rest])
    return None


def _bare(repeated: Node) -> tuple[Node, tuple[int, ...]]:
    """What is repeated, and its axes among those of the repetition."""
    axes, (arg,) = repeated.op.axes, repeated.args  # type: ignore[attr-defined]
    while isinstance(arg.op, Broadcast) and arg.args[0].shape:
        axes, (arg,) = tuple(axes[k] for k in arg.op.axes), arg.args
    return arg, axes


def _with_bias(product: Node, bias: Node, axes: tuple[int, ...]) -> Node | None:
    """Σ_k w_kj x_kc + b_j as one contraction; None if b is no row of w, or x is not small."""
    op: Any = product.op
    if len(op.inputs) != 2 or any(len(set(part)) < len(part) for part in op.inputs):
        return None
    labels = tuple(op.output[a] for a in axes)
    for one, other in ((0, 1), (1, 0)):
        weights, x = op.inputs[one], op.inputs[other]
        summed = [k for k in weights if k in x]
        if len(weights) != 2 or len(summed) != 1 or summed[0] in op.output:
            continue
        (k,) = summed
        (j,) = (label for label in weights if label != k)
        if labels != (j,) or RATIO * prod(product.args[other].shape) > prod(product.shape):
            continue
        lead = tuple(label for label in op.output if label != j)
        order = (*lead[:-1], k, *lead[-1:])
        turned = permute(product.args[other], [x.index(label) for label in order])
        axis = order.index(k)
        ones = broadcast_to(constant(1), (*turned.shape[:axis], 1, *turned.shape[axis + 1 :]))
        rows = permute(product.args[one], [weights.index(k), weights.index(j)])
        joined = concatenate([rows, reshape(bias, (1, *bias.shape))], 0)
        return contract([(k, j), order], op.output, joined, concatenate([turned, ones], axis))
    return None
