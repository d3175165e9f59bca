"""Fused ops that no backend has a form for are written out before anything else is planned.

Printers could do it while they print, but then neither stable rewrites nor fusion nor the lifetimes of
arrays would see the definition's nodes.
"""

from __future__ import annotations

from symad.core.graph import Graph, Node, rebuild
from symad.core.questions import definition
from symad.ops.elementwise.selection import Select, select
from symad.ops.elementwise.undefined import Undefined
from symad.ops.fused.pair_sum import PairSumTangent

WITHOUT_FORMS = (PairSumTangent, Undefined)


def write_definitions(graph: Graph) -> Graph:
    """The graph with the definitions of those ops in their places."""
    if not any(isinstance(node.op, WITHOUT_FORMS) for node in graph.nodes):
        return graph

    def make(node: Node, args: tuple[Node, ...]) -> Node:
        made = select(*args) if isinstance(node.op, Select) else Node.of(node.op, args)
        written: Node = definition(made.op, made) if isinstance(made.op, WITHOUT_FORMS) else made
        return written

    outputs = rebuild(graph.output_nodes, {n: n for n in graph.input_nodes}, make)
    return Graph(graph.input_nodes, outputs, graph.structure, graph.name, graph.report)
