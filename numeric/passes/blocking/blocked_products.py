"""Products summed over steps and batches, some steps at a time: Σ_tk a_tik b_tjk.

As one matrix product it needs a copy of both arrays, with rows along (t, k). Copies of whole arrays have
left the cache when BLAS reads them, but copies of a few steps have not. In the gradients of an LSTM's
weights (100 steps of 353 × 32 numbers) copies and products then take a quarter less time. The value changes
by rounding only.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from symad.core.contents import holds
from symad.core.graph import Graph, Node, rebuild
from symad.core.questions import Nodes
from symad.core.readers import readers
from symad.ops.basic.contraction import Einsum, contract, permute
from symad.ops.basic.shaping import Reshape

BLOCK = 2**17
"""Numbers of both operands copied at a time: 1 MiB in double precision, a core's second-level cache."""

MIN_NUMBERS = 4 * BLOCK
"""Numbers of both operands from which blocks pay: copies of fewer fit the cache, or nearly.

The gradient of an LSTM (40 steps, 64 units) with blocks takes 1.0 times as long for 16 sequences, 0.92 to
1.0 for 32, 0.94 to 0.98 for 64 (bench_thresholds.py, "blocked products").
"""


def block_products(graph: Graph) -> Graph:
    """The graph with products of large copied matrices as sums over steps."""
    if not holds(graph, Einsum):
        return graph
    order = graph.nodes
    users = readers(order)
    alone = {node for node, found in users.items() if len(found) == 1} - set(graph.output_nodes)

    def better(node: Node, args: Nodes) -> Node:
        made = node if args == node.args else Node.of(node.op, args)
        return (_by_steps(made) or made) if set(node.args) <= alone else made

    made = rebuild(graph, {}, better)
    return Graph(graph.input_nodes, made, graph.structure, graph.name, graph.report)


def steps_at_a_time(node: Node) -> int | None:
    """The number of steps summed in one block of such a product; None for other nodes."""
    op = node.op
    if not isinstance(op, Einsum) or [len(labels) for labels in op.inputs] != [3, 3] or not _known(node.args):
        return None
    (t, i, k), (s, j, m) = op.inputs
    if len({t, i, j, k}) < 4 or (s, m, op.output) != (t, k, (i, j)):
        return None
    each = sum(prod(arg.shape[1:]) for arg in node.args)
    return max(1, BLOCK // each)


def _by_steps(node: Node) -> Node | None:
    """The product of two matrices as a sum over steps, if both are copies of large arrays."""
    op = node.op
    if not isinstance(op, Einsum) or len(op.inputs) != 2 or not _known(node.args):
        return None
    summed = set(op.inputs[0]) & set(op.inputs[1]) - set(op.output)
    rows = [[x for x in labels if x not in summed] for labels in op.inputs]
    if len(summed) != 1 or any(len(labels) != 2 for labels in op.inputs) or not all(map(len, rows)):
        return None
    if op.output != (*rows[0], *rows[1]) or sum(prod(arg.shape) for arg in node.args) < MIN_NUMBERS:
        return None
    found = [_stack(arg, labels[0] in summed) for arg, labels in zip(node.args, op.inputs, strict=True)]
    left, right = found
    if left is None or right is None or (left.shape[0], left.shape[2]) != (right.shape[0], right.shape[2]):
        return None
    return contract(["tik", "tjk"], "ij", left, right)


def _stack(matrix: Node, summed_first: bool) -> Node | None:
    """The array a_tik that a matrix A_i(tk) or A_(tk)i is a copy of, as a view; None for other matrices."""
    if not isinstance(matrix.op, Reshape) or len(matrix.args[0].shape) != 3:
        return None
    (turned,) = matrix.args
    op = turned.op
    if not isinstance(op, Einsum) or len(op.inputs) != 1 or not _known((turned,)):
        return None
    if sorted(op.inputs[0]) != sorted(op.output):
        return None
    first, middle, last = turned.shape
    if matrix.shape != ((first * middle, last) if summed_first else (first, middle * last)):
        return None
    return permute(turned, (0, 2, 1) if summed_first else (1, 0, 2))


def _known(nodes: Sequence[Node]) -> bool:
    return all(isinstance(d, int) for node in nodes for d in node.shape)
