"""Chains of elementwise operations on large arrays are computed block by block.

Every operation on a large array reads and writes memory, but a block of its rows stays in the cache from the
first operation of a chain to the last. A chain is an array with all elementwise operations that only it
depends on. Chains whose results are read by the same loop are computed together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symad.core.graph import Graph, Node, rebuild
from symad.higher_order.scan import Scan
from symad.numeric.passes.blocking.aligned_axes import Misaligned
from symad.numeric.passes.blocking.row_blocks import Group, elements
from symad.numeric.passes.loop import Loop
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.shaping import Broadcast, Reshape, Slice

MIN_ELEMENTS = 2**19
"""The number of elements from which an array is assumed not to stay in the cache.

Blocks take 1.0 times as long as whole arrays at 2**16 elements, 0.9 at 2**19, 0.8 at 2**21
(bench_thresholds.py, "chains").
"""

MIN_ROWS = 8
"""The number of rows from which an array is cut into blocks.

For 2**21 elements, blocks take 1.0 times as long as whole arrays at 2 to 8 rows, 0.98 at 16, 0.9 at 64
(bench_thresholds.py, "rows").
"""


def in_chains(graph: Graph) -> Graph:
    """The graph with its chains in blocks of rows."""
    tried: set[Node] = set()
    while (chain := _find(graph, tried)) is not None:
        try:
            made = rebuild(graph, chain.loop(0, list(chain.axis), graph.output_nodes, {}))
        except Misaligned:
            continue
        graph = Graph(graph.input_nodes, made, graph.structure, graph.name, graph.report)
    return graph


def _find(graph: Graph, tried: set[Node]) -> Group | None:
    """The next chain not yet tried, from the last one on; what is tried is added to ``tried``."""
    order = graph.nodes
    users: dict[Node, set[Node]] = {n: {n} for n in graph.output_nodes}  # used by itself, so never inside
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
        # two operations on 2**19 elements take 0.83 of the time in blocks, three 0.68
        if sum(_is_link(n) for n in chain) >= 2 * len(ends):
            tried |= set(chain)
            length = node.shape[0]
            return Group(length, node, dict.fromkeys(chain, 0), dict.fromkeys(chain, 0))
    return None


def _is_link(node: Node) -> bool:
    """Whether a node is an elementwise operation on large arrays."""
    large = isinstance(node.op, ElementwiseOp) and elements(node) >= MIN_ELEMENTS
    return large and isinstance(node.shape[0], int) and node.shape[0] >= MIN_ROWS


def _closure(ends: set[Node], order: Sequence[Node], users: dict[Node, set[Node]]) -> list[Node]:
    """The ends, and all nodes that only they depend on, in order."""
    inside = set(ends)
    shapes = {n.shape for n in ends}
    for node in reversed(order):
        fits = isinstance(node.op, (ElementwiseOp, Broadcast)) and node.shape in shapes
        if fits and node.args and node not in inside and users.get(node, set()) <= inside:
            inside.add(node)
    return [n for n in order if n in inside]


def _consumers(node: Node, users: dict[Node, set[Node]], known: dict[Node, Any]) -> Any:
    """The loop that alone reads an array, directly or through views; None if there is no such loop."""
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
