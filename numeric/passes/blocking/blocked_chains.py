"""Chains of elementwise operations on large arrays go block by block.

Every operation of a chain on a large array reads and writes memory; a block of its rows stays in the cache
from the first operation to the last. A chain is an array and all that only it is made of; chains whose
results one loop consumes go together.
"""

from __future__ import annotations

from typing import Any

from symad.core.graph import Graph, Node, rebuild, topological
from symad.core.questions import Nodes
from symad.numeric.passes.blocking.aligned_axes import Misaligned
from symad.numeric.passes.blocking.row_blocks import Group, elements
from symad.numeric.passes.loops.loop import Loop
from symad.ops.arrays.shaping import Broadcast, Reshape, Slice
from symad.ops.elementwise.arithmetic import ElementwiseOp
from symad.ops.loops.scan import Scan

LARGE = 2**19
"""Arrays with this many elements do not stay in the cache."""

SHORTEST = 4
"""So many operations are worth a loop."""

ROWS = 8
"""An array has at least so many rows."""


def in_chains(graph: Graph) -> Graph:
    """The graph with its chains in blocks of rows."""
    outputs = graph.output_nodes
    tried: set[Node] = set()
    while True:
        chain = _find(outputs, tried)
        if chain is None:
            return Graph(graph.input_nodes, outputs, graph.structure, graph.name, graph.report)
        try:
            outputs = rebuild(outputs, chain.loop(0, list(chain.axis), outputs, {}))
        except Misaligned:
            continue


def _find(outputs: Nodes, tried: set[Node]) -> Group | None:
    """The next chain that has not been tried, the last one first; notes what has been tried."""
    order = topological(outputs)
    users: dict[Node, set[Node]] = {n: {n} for n in outputs}  # an output is used by itself, so never inside
    for node in order:
        for arg in node.args:
            users.setdefault(arg, set()).add(node)
    consumers: dict[Node, set[Node]] = {}
    for node in reversed(order):
        if not _is_link(node) or node in tried:
            continue
        ends = {node}
        goal = _consumers(node, users, consumers)
        if goal is not None:
            ends = {n for n in order if _is_link(n) and n.shape == node.shape and n not in tried
                    and _consumers(n, users, consumers) == goal}  # fmt: skip
        tried |= ends
        chain = _closure(ends, order, users)
        if sum(_is_link(n) for n in chain) >= max(SHORTEST, 2 * len(ends)):
            tried |= set(chain)
            length = node.shape[0]
            return Group(length, node, dict.fromkeys(chain, 0), dict.fromkeys(chain, 0))
    return None


def _is_link(node: Node) -> bool:
    """Whether a node is an elementwise operation on large arrays."""
    large = isinstance(node.op, ElementwiseOp) and elements(node) >= LARGE
    return large and isinstance(node.shape[0], int) and node.shape[0] >= ROWS


def _closure(ends: set[Node], order: list[Node], users: dict[Node, set[Node]]) -> list[Node]:
    """The ends, and all that nothing but they need, in order."""
    inside = set(ends)
    shapes = {n.shape for n in ends}
    for node in reversed(order):
        fits = isinstance(node.op, (ElementwiseOp, Broadcast)) and node.shape in shapes
        if fits and node.args and node not in inside and users.get(node, set()) <= inside:
            inside.add(node)
    return [n for n in order if n in inside]


def _consumers(node: Node, users: dict[Node, set[Node]], known: dict[Node, Any]) -> Any:
    """The loop that alone consumes an array, through views or not; None for anything else."""
    if node not in known:
        found: set[Any] = set()
        for user in users.get(node, set()):
            op = user.op
            if isinstance(op, (Scan, Loop)):
                found.add((op.body, user.args))
            elif user is not node and isinstance(op, (Slice, Reshape)):
                found.add(_consumers(user, users, known))
            else:
                found.add(None)
        known[node] = found.pop() if len(found) == 1 else None
    return known[node]
