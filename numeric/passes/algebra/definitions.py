"""Ops that a target cannot print are replaced by their definitions before anything else is planned.

Printers could replace them while they print, but then stable rewrites, fusion and the liveness of arrays
would not see the nodes of the definition.
"""

from __future__ import annotations

from collections.abc import Callable

from symad.core.contents import holds, in_bodies
from symad.core.graph import Graph, Node, rebuild
from symad.core.questions import Nodes, definition
from symad.fused.attention_ops import AttentionOp
from symad.fused.pair_sum import PairOp, PairSumTangent
from symad.higher_order.checkpointed_chain import ChainOp, ChainTangent
from symad.higher_order.remat import Remat
from symad.numeric.passes.rewriting import with_results
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.sources import Constant, Dimension, Input
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Logic, Select, select
from symad.ops.elementwise.undefined import Undefined

WITHOUT_FORM = (PairSumTangent, ChainTangent, Undefined)
"""Ops that no target prints."""

FUSED = (AttentionOp, PairOp, ChainOp, Remat)
"""Ops that plain text shows by their definitions: fusing, tiling and recomputing are not mathematics."""

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


def write_out(graph: Graph) -> Graph:
    """The graph with `FUSED` ops replaced by their definitions, also in the bodies of loops."""
    return written(graph, lambda node: isinstance(node.op, FUSED), inside=True)


def written(graph: Graph, without_form: Callable[[Node], bool], inside: bool = False) -> Graph:
    """The graph with some nodes replaced by their definitions, ``inside`` the bodies of loops too."""

    def outputs_of(outputs: Nodes) -> Nodes:
        return rebuild(outputs, {}, make)

    def make(node: Node, args: Nodes) -> Node:
        op = in_bodies(node.op, outputs_of) if inside else node.op
        if op is node.op and args == node.args:
            made = node
        else:
            made = select(*args) if isinstance(op, Select) else Node.of(op, args)
        meaning = definition(made.op, made) if without_form(made) else None
        return rebuild((meaning,), {arg: arg for arg in args}, make)[0] if isinstance(meaning, Node) else made

    if not inside and not any(map(without_form, graph.nodes)):
        return graph
    return with_results(graph, outputs_of(graph.output_nodes))
