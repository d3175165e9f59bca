"""Graphs with groups of nodes computed at once: the last step of the passes that fuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import TypeAlias

from symad.core.dims import Shape
from symad.core.following import tell
from symad.core.graph import Graph, Node, rebuild
from symad.core.questions import Nodes
from symad.higher_order.scan import Local
from symad.numeric.fusion.nest import Nest

New: TypeAlias = "Mapping[Node, Node]"


def in_units(
    outputs: Sequence[Node],
    order: Sequence[Node],
    unit_of: Mapping[Node, int],
    make: Callable[[Sequence[Node], New], Mapping[Node, Node]],
) -> Nodes:
    """The outputs with the nodes of each unit made together, once all that they read is made.

    Args:
        outputs: the outputs of a graph.
        order: its nodes, in order.
        unit_of: the number of a node's unit, at least 0; a node without one is a unit of its own.
        make: the new nodes of a unit, from its members and the new nodes so far.
    """
    keys = {node: unit_of.get(node, -1 - k) for k, node in enumerate(order)}
    units: dict[int, list[Node]] = {}
    for node in order:
        units.setdefault(keys[node], []).append(node)
    needs = {key: sorted({keys[a] for m in unit for a in m.args} - {key}) for key, unit in units.items()}
    new: dict[Node, Node] = {}
    for key in TopologicalSorter(needs).static_order():
        new |= make(units[key], new)
    tell(new)
    return tuple(new[o] for o in outputs)


def nests_of(
    results: Sequence[Node], leaves: Sequence[Node], new: New, full: Shape, axes: tuple[int, ...]
) -> dict[Node, Node]:
    """The nests of some results as functions of some leaves; they share a body."""
    local = {leaf: Node.of(Local(k, leaf.shape)) for k, leaf in enumerate(leaves)}
    body = Graph(tuple(local.values()), rebuild(results, local))
    args = tuple(new[leaf] for leaf in leaves)
    return {m: Node.of(Nest(body, k, full, axes), args) for k, m in enumerate(results)}
