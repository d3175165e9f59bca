"""A pass before printing: fused ops without a kernel are replaced by their definitions.

The definitions are then fused and scheduled like all other nodes.
"""

from __future__ import annotations

from symad.core.graph import Graph, Node, rebuild
from symad.core.questions import definition
from symad.fused.attention_ops import AttentionOp
from symad.fused.pair_sum import PairOp
from symad.gpu.attention_kernels import printer as attention
from symad.gpu.pairs import printer as pair_sum


def with_kernels(graph: Graph, dtype: str) -> Graph:
    """The graph in which every attention and every sum over pairs has kernels."""

    def make(node: Node, args: tuple[Node, ...]) -> Node:
        made = Node.of(node.op, args)
        if isinstance(node.op, AttentionOp):
            known = attention.has_kernels(node.op, made, dtype)
        elif isinstance(node.op, PairOp):
            known = pair_sum.has_kernels(node.op, made, dtype)
        else:
            return made
        written: Node = made if known else definition(made.op, made)
        return written

    outputs = rebuild(graph.output_nodes, {n: n for n in graph.input_nodes}, make)
    return Graph(graph.input_nodes, outputs, graph.structure, graph.name, graph.report)
