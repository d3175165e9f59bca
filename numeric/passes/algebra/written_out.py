"""Ops that a target cannot print are replaced by their definitions before anything else is planned."""

from __future__ import annotations

from collections.abc import Callable

from symad.core.contents import fields_of, inner_graphs
from symad.core.graph import Graph, Node, Op, rebuild
from symad.core.questions import Nodes, definition
from symad.fused.attention_ops import AttentionOp
from symad.fused.pair_sum import PairOp
from symad.higher_order.checkpointed_chain import ChainOp
from symad.higher_order.remat import Remat

FUSED = (AttentionOp, PairOp, ChainOp, Remat)
"""Ops that plain text shows by their definitions: fusing, tiling and recomputing are not mathematics."""


def write_out(graph: Graph) -> Graph:
    """The graph with fused ops replaced by their definitions, also in the bodies of loops."""
    made = _written(graph.output_nodes)
    return Graph(graph.input_nodes, made, graph.structure, graph.name, graph.report)


def _written(outputs: Nodes) -> Nodes:
    return tuple(rebuild(outputs, {}, _write))


def _write(node: Node, args: Nodes) -> Node:
    op = in_bodies(node.op, _written)
    made = node if op is node.op and args == node.args else Node.of(op, args)
    if not isinstance(op, FUSED):
        return made
    meaning = definition(op, made)
    if not isinstance(meaning, Node):
        return made
    return rebuild((meaning,), {arg: arg for arg in args}, _write)[0]


def in_bodies(op: Op, change: Callable[[Nodes], Nodes]) -> Op:
    """The op with the outputs of its inner graphs changed; the op itself if nothing changes."""
    if not inner_graphs(op):
        return op
    old = fields_of(op)
    new = [Graph(v.input_nodes, change(v.output_nodes)) if isinstance(v, Graph) else v for v in old]
    return op if new == old else type(op)(*new)
