"""Which nodes of many claims depend on a node of some kind: one pass over what the claims share."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from symad.core.graph import Node, topological


def depending(outputs: Iterable[Node], wanted: Callable[[Node], object]) -> set[Node]:
    """The nodes on which some outputs depend that are wanted themselves, or depend on one that is."""
    found = set[Node]()
    for node in topological(outputs):
        if wanted(node) or not found.isdisjoint(node.args):
            found.add(node)
    return found
