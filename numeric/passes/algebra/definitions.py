"""Fused ops that no backend can print are replaced by their definitions before anything else is planned.

Printers could replace them while they print, but then stable rewrites, fusion and the liveness of arrays
would not see the nodes of the definition.
"""

from __future__ import annotations

from collections.abc import Callable

from symad.core.contents import holds
from symad.core.graph import Graph, Node, rebuild
from symad.core.questions import definition
from symad.fused.pair_sum import PairSumTangent
from symad.higher_order.checkpointed_chain import ChainTangent
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.sources import Constant, Dimension, Input
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Logic, Select, select
from symad.ops.elementwise.undefined import Undefined

WITHOUT_FORM = (PairSumTangent, ChainTangent, Undefined)
"""Ops that no target prints."""

SCALAR_OPS = (Input, Constant, Add, Mul, Pow, Apply, Compare, Logic, Select)
"""Ops of numbers that every target can print."""


def write_definitions(graph: Graph) -> Graph:
    """The graph with fused ops that cannot be printed replaced by their definitions."""
    return written(graph, _lacks_form) if holds(graph, Dimension, *WITHOUT_FORM) else graph


def _lacks_form(node: Node) -> bool:
    """Whether a node is a fused op without a printed form, or a size that has become a number.

    Targets divide such sizes as integers.
    """
    op = node.op
    known = isinstance(op, Dimension) and isinstance(op.expression, int)
    return known or isinstance(op, WITHOUT_FORM)


def write_scalar_definitions(graph: Graph) -> Graph:
    """The graph with every number computed by `SCALAR_OPS`, as far as its ops have definitions."""
    return written(graph, lambda node: not node.shape and not isinstance(node.op, SCALAR_OPS))


def written(graph: Graph, without_form: Callable[[Node], bool]) -> Graph:
    """The graph with some nodes replaced by their definitions; the graph itself if there are none."""
    if not any(map(without_form, graph.nodes)):
        return graph

    def make(node: Node, args: tuple[Node, ...]) -> Node:
        made = select(*args) if isinstance(node.op, Select) else Node.of(node.op, args)
        meaning = definition(made.op, made) if without_form(made) else None
        if not isinstance(meaning, Node):
            return made
        return rebuild((meaning,), {arg: arg for arg in args}, make)[0]

    outputs = rebuild(graph, {n: n for n in graph.input_nodes}, make)
    return Graph(graph.input_nodes, outputs, graph.structure, graph.name, graph.report)
