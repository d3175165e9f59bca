"""Values under one condition: c ? a : 0 and c ? b : 0 are added as c ? a + b : 0, where a + b may cancel."""

from __future__ import annotations

from collections.abc import Iterator

from symad.core.graph import Graph, Node, rebuild
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import Add, Mul, signed_product, signed_sum
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.selection import Select, select

DEPTH = 6
"""The depth of sums, products and selections in which a condition is looked for."""


def by_conditions(graph: Graph) -> Graph:
    """The graph in which each selection is as far outside as possible, and its branches do not repeat it."""
    if not any(type(node.op) is Select for node in graph.nodes):
        return graph
    made = rebuild(graph, {n: n for n in graph.input_nodes}, _outside)
    return Graph(graph.input_nodes, made, graph.structure, graph.name, graph.report)


def _outside(node: Node, args: Nodes) -> Node:
    made = node if args == node.args else Node.of(node.op, args)
    if type(made.op) is Select:
        condition, *branches = made.args
        found = [assumed(b, condition, truth) for b, truth in zip(branches, (True, False), strict=True)]
        return made if found == branches else _selected(condition, found, made)
    if type(made.op) is not Add or len(made.args) < 2:
        return made
    for condition in dict.fromkeys(conditions(made, 3)):
        found = [assumed(made, condition, truth) for truth in (True, False)]
        if any(constant_value(b) is not None for b in found):
            return _selected(condition, found, made)
    return made


def _selected(condition: Node, branches: list[Node], like: Node) -> Node:
    return broadcast_to(select(condition, *branches), like.shape)


def conditions(node: Node, depth: int) -> Iterator[Node]:
    """The conditions of selections in a sum or product."""
    if type(node.op) is Select:
        yield node.args[0]
    elif depth and type(node.op) in (Add, Mul):
        for arg in node.args:
            yield from conditions(arg, depth - 1)


def assumed(
    node: Node, condition: Node, truth: bool, depth: int = DEPTH, known: dict[Node, Node] | None = None
) -> Node:
    """The node where a condition is true, or false; a product with a branch 0 is 0."""
    known = {} if known is None else known
    if type(node.op) is Select and node.args[0] is condition:
        return assumed(node.args[1 if truth else 2], condition, truth, depth, known)
    if not depth or type(node.op) not in (Add, Mul, Select):
        return node
    if node not in known:
        args = tuple([assumed(a, condition, truth, depth - 1, known) for a in node.args])
        if args == node.args:
            known[node] = node
        elif type(node.op) is Add:
            known[node] = signed_sum(zip(node.op.signs, args, strict=True))
        elif type(node.op) is Select:
            known[node] = select(*args)
        elif any(p > 0 and constant_value(a) == 0 for p, a in zip(node.op.powers, args, strict=True)):
            known[node] = constant(0)
        else:
            known[node] = signed_product(zip(node.op.powers, args, strict=True))
    return known[node]
