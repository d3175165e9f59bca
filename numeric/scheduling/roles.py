"""What values are called: names by role, from how a graph came about.

The gradient of W is W_bar, a tangent is x_dot, the value keeps the name of the function. Inner cotangents
are found by computing the cotangents of all nodes once more: equal nodes are the same node, so those that
occur in the graph are recognised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from symad.graph import Graph, Node


@dataclass(frozen=True)
class Roles:
    """Names of the results, flat and in order; empty where there is none."""

    labels: tuple[str, ...]

    def stems(self, graph: Graph, prepared: Graph) -> Mapping[Node, str]:
        """The names of nodes of the prepared graph."""
        known = zip(prepared.output_nodes, self.labels, strict=False)
        return {node: label for node, label in known if label and node.args}


def roles_of(graph: Graph) -> Roles:
    """The roles of a graph's results."""
    return Roles(())
