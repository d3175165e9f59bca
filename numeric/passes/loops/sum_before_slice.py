"""A sum of equal slices of arrays becomes a slice of the sum of the arrays.

The gates of a recurrent cell are slices of W h + b and of U x + c, added gate by gate. As slices of one sum
they take one pass over the memory. The rule applies if the
slices together contain each element of the arrays exactly once, so that it adds no further elements.
"""

from __future__ import annotations

from itertools import combinations
from math import prod

from symad.core.contents import holds
from symad.core.dims import Dim
from symad.core.graph import Graph, Node
from symad.core.questions import Nodes
from symad.higher_order.scan import Scan
from symad.numeric.passes.rewriting import rewritten, with_results
from symad.ops.basic.arithmetic import Add, signed_sum
from symad.ops.basic.shaping import Slice

Arrays = tuple[tuple[int, Node], ...]
"""The arrays in a sum, with their signs."""

Box = tuple[tuple[Dim, ...], tuple[Dim, ...]]
"""The starts and counts of a slice whose steps are all 1."""


def sum_before_slicing(graph: Graph) -> Graph:
    """The graph with sums of slices as slices of sums, also in the bodies of scans."""
    return with_results(graph, _joined(graph))


def _joined(graph: Graph) -> Nodes:
    groups: dict[Arrays, set[Box]] = {}
    for node in graph.nodes:
        found = _sum_of_slices(node, node.args)
        if found is not None:
            arrays, op = found
            groups.setdefault(arrays, set()).add((op.start, op.count))
    chosen = {arrays for arrays, boxes in groups.items() if len(boxes) > 1 and _tile(boxes, arrays[0][1])}
    if not chosen and not holds(graph, Scan):
        return graph.output_nodes
    bodies: dict[Graph, Graph] = {}

    def better(node: Node, args: Nodes) -> Node | None:
        op = node.op
        if isinstance(op, Scan):
            if op.body not in bodies:
                bodies[op.body] = Graph(op.body.input_nodes, _joined(op.body))
            return Node.of(Scan(bodies[op.body], op.slices), args)
        before, after = _sum_of_slices(node, node.args), _sum_of_slices(node, args)
        if before is not None and after is not None and before[0] in chosen:
            arrays, slice_ = after
            return Node.of(slice_, (signed_sum(arrays),))
        return None

    return rewritten(graph, better)


def _sum_of_slices(node: Node, args: Nodes) -> tuple[Arrays, Slice] | None:
    """The arrays of a sum whose terms are the same slice of each, and that slice."""
    op = node.op
    if not isinstance(op, Add) or len(args) < 2:
        return None
    slices = [arg.op for arg in args if isinstance(arg.op, Slice)]
    if len(slices) < len(args) or set(slices[0].step) != {1}:
        return None
    sources = [arg.args[0] for arg in args]
    for slice_, source in zip(slices, sources, strict=True):
        same = (slice_.start, slice_.count, slice_.step) == (slices[0].start, slices[0].count, slices[0].step)
        if not same or source.shape != sources[0].shape:
            return None
    return tuple(zip(op.signs, sources, strict=True)), slices[0]


def _tile(boxes: set[Box], array: Node) -> bool:
    """Whether the boxes, if their places are known, contain each element of the array exactly once."""
    if not all(isinstance(d, int) for places in (*boxes, (array.shape,)) for place in places for d in place):
        return False
    apart = all(_apart(one, other) for one, other in combinations(boxes, 2))
    return apart and sum(prod(count) for _, count in boxes) == prod(array.shape)


def _apart(one: Box, other: Box) -> bool:
    """Whether two boxes share no element."""
    return any(
        a + m <= b or b + n <= a for a, m, b, n in zip(one[0], one[1], other[0], other[1], strict=True)
    )
