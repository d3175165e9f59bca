"""Who reads which node."""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.graph import Node


def readers(order: Sequence[Node]) -> dict[Node, list[Node]]:
    """For each of some nodes the nodes that read it, in their order, each once.

    ``order``: nodes with all their arguments, such as the nodes of a graph.
    """
    found: dict[Node, list[Node]] = {node: [] for node in order}
    for node in order:
        for arg in dict.fromkeys(node.args):
            found[arg].append(node)
    return found
