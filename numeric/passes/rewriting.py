"""The loop of the passes that replace nodes one by one: such a pass is a rule for a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from symad.core.contents import holds
from symad.core.graph import Graph, Node, Op, rebuild
from symad.core.questions import Nodes

Rule: TypeAlias = "Callable[[Node, Nodes], Node | None]"
"""The node in place of another one, whose arguments have been replaced already; None keeps its op."""


def rewrite(graph: Graph, rule: Rule, *kinds: type[Op]) -> Graph:
    """The graph with every node replaced by a rule; unchanged if it has none of some kinds of ops."""
    if kinds and not holds(graph, *kinds):
        return graph
    return with_results(graph, rebuild(graph, {}, rule))


def with_results(graph: Graph, outputs: Iterable[Node]) -> Graph:
    """The graph of the same function, computed by other nodes."""
    return Graph(graph.input_nodes, tuple(outputs), graph.structure, graph.name, graph.report)
