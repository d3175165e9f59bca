"""Large arrays that nothing outside needs as a whole are computed one block of rows at a time.

Pair arrays (kernel matrices, attention scores) are computed from small arrays, go through some elementwise
functions, and end in products that are small again. Computed block by block they never leave the cache and
are never stored. A group consists of the nodes that act row by row along one axis, and the contractions over
that axis, which are summed over the blocks. If a later row needs such a sum, a new stage begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from symad.core.contents import readers
from symad.core.dims import Dim, Shape
from symad.core.graph import Graph, Node, op_of, rebuild, topological
from symad.core.nodes import Moved
from symad.core.questions import Nodes
from symad.higher_order.scan import Local
from symad.numeric.passes.blocking.causal_blocks import (
    Misaligned,
    argument_axes,
    resized,
    result_axis,
    up_to_diagonal,
)
from symad.numeric.passes.bodies import ROWS, RowBlocks
from symad.numeric.passes.rewriting import with_results
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import ArrayConstant, Constant

MIN_ELEMENTS = 2**18
"""The number of elements from which an array is assumed not to stay in the cache.

Blocks take 1.0 times as long as whole arrays at 2**16 pairs, 0.9 at 2**18, 0.6 at 2**20 (bench_thresholds.py,
"row blocks").
"""

BLOCK = 2**17
"""The number of elements of a block of a large array.

For 2**22 pairs, 2**13 elements take 1.0 times as long, 2**15 0.9, 2**18 1.3 and 2**20 1.9 times
(bench_thresholds.py, "block of rows").
"""

MIN_GROWTH = 4
"""A pair array has at least this many times as many elements as any array it is computed from.

Pairs of 2,048 and 512 points in blocks take 1.03 times as long at a growth of 1, 0.97 at 2, 0.93 at 4, 0.85
at 8 (bench_thresholds.py, "growth").
"""

MIN_LARGE_PER_STORED = 3
"""A group must have at least this many large arrays for each large array that is stored.

Pairs of 2,048 points of which one array is stored, times a vector, take 1.02 of the time with one large
array, 0.89 with two, 0.94 with three (bench_layout_thresholds.py, "stored pairs"). The gradient of an LSTM,
with two of which one is stored, takes 1.10 to 1.36 times as long in blocks.
"""

MAX_SMALL_BETWEEN = 16
"""Small arrays between large ones are computed in the same loop if there are at most this many.

Origin: it bounds the length of a loop's body.
"""


def in_row_blocks(graph: Graph) -> Graph:
    """The graph with its pair arrays in blocks of rows."""
    tried: set[Node] = set()
    while (group := _find(graph, tried)) is not None:
        graph = with_results(graph, group.rewritten(graph.output_nodes))
    return graph


def elements(node: Node) -> int:
    """The number of elements; 0 if it is not known."""
    return prod(node.shape) if all(isinstance(d, int) for d in node.shape) else 0


@dataclass
class BlockGroup:
    """Nodes that are computed block by block along one axis."""

    length: int
    seed: Node
    axis: dict[Node, int] = field(default_factory=dict)
    """The axis of each node that acts row by row."""
    stage: dict[Node, int] = field(default_factory=dict)
    summed: dict[Node, int] = field(default_factory=dict)
    """Contractions over the rows, and the stage in which they are summed."""

    def saves(self, order: Sequence[Node], outputs: set[Node]) -> bool:
        """Whether most of the large arrays are never stored."""
        arrays = [n for n in self.axis if n.op.moves is not Moved.IN_ORDER]
        large = [n for n in arrays if elements(n) >= MIN_ELEMENTS]
        inside = {*self.axis, *self.summed}
        stage = self.stage
        stored = {a for n in order for a in n.args if stage.get(n) != stage.get(a) or n not in inside}
        kept = [n for n in large if n in stored or n in outputs]
        return len(large) >= MIN_LARGE_PER_STORED * len(kept)

    def rewritten(self, outputs: Nodes) -> Nodes:
        """The outputs, with each stage that has large arrays as one loop."""
        made: dict[Node, Node] = {}
        for stage in sorted({*self.stage.values()}):
            rows = [n for n in topological(outputs) if self.stage.get(n) == stage and n in self.axis]
            if any(elements(n) >= MIN_ELEMENTS for n in rows):
                made |= self.loop(stage, rows, outputs, made)
        return rebuild(outputs, made)

    def loop(self, stage: int, rows: list[Node], outputs: Nodes, made: dict[Node, Node]) -> dict[Node, Node]:
        """The nodes of one stage that others read, as values of a loop."""
        order = topological(outputs)
        sums = [n for n in order if self.summed.get(n) == stage]
        inside = {*rows, *sums}
        needed = {a for n in order if n not in inside for a in n.args} | set(outputs)
        results = [n for n in (*rows, *sums) if n in needed or n in self.summed]
        uses = {n: self._outer_axes(n, inside) for n in inside}
        outer = dict.fromkeys((a, x) for n in order if n in inside for a, x in uses[n] if a is not None)
        arguments = sorted(outer, key=lambda pair: pair[1] is None)  # arguments that are cut come first
        local = _locals(arguments)
        body: dict[Node, Node] = {}
        for node in order:
            if node in inside:
                args = tuple(
                    body[a] if a in inside else local.get((a, axis), a)
                    for a, (_, axis) in zip(node.args, uses[node], strict=True)
                )
                sizes: dict[int, Dim] = {self.axis[node]: ROWS} if node in self.axis else {}
                body[node] = resized(node, args, sizes)
        inner_graph = Graph(tuple(local.values()), tuple(body[n] for n in results))
        joined = tuple(self.axis.get(n) for n in results)
        cut = tuple(axis for _, axis in arguments if axis is not None)
        args = tuple(rebuild(tuple(a for a, _ in arguments), made))
        fewer = up_to_diagonal(inner_graph, args, cut, self.length)
        columns: tuple[int | None, ...] = ()
        ends: tuple[int | None, ...] = ()
        if fewer is not None:
            inner_graph, columns, ends = fewer
        return {
            n: Node.of(RowBlocks(inner_graph, cut, joined, self.length, k, columns, ends), args)
            for k, n in enumerate(results)
        }

    def _outer_axes(self, node: Node, inside: set[Node]) -> list[tuple[Node | None, int | None]]:
        """The arguments and the axes along which they are cut; None for constants and for nodes inside."""
        axes = argument_axes(node, self.axis[node]) if node in self.axis else self._summed_axes(node)
        return [
            (None if a in inside or isinstance(a.op, Constant) else a, axis)
            for a, axis in zip(node.args, axes, strict=True)
        ]

    def _summed_axes(self, node: Node) -> list[int | None]:
        """The axes of the arguments of a contraction over the rows."""
        op = op_of(node, Einsum)
        k = next(k for k, a in enumerate(node.args) if a in self.axis)
        label = op.inputs[k][self.axis[node.args[k]]]
        return [part.index(label) if label in part else None for part in op.inputs]


def _find(graph: Graph, tried: set[Node]) -> BlockGroup | None:
    """The group of the first pair array that has not been tried; None if there is none."""
    order, outputs = graph.nodes, graph.output_nodes
    for node in order:
        if node not in tried and _is_pair_array(node):
            tried.add(node)
            try:
                group = _grown(node, order)
                if group is not None and group.saves(order, set(outputs)):
                    group.rewritten(outputs)  # checks the shapes of all bodies
                    return group
            except Misaligned:
                continue
    return None


def _is_pair_array(node: Node) -> bool:
    if elements(node) < MIN_ELEMENTS or node.op.outside or isinstance(node.op, (Broadcast, ArrayConstant)):
        return False
    sources = [a.args[0] if isinstance(a.op, Broadcast) else a for a in node.args]
    return bool(sources) and MIN_GROWTH * max(map(elements, sources)) <= elements(node)


def _row_axis(seed: Node) -> int:
    op = seed.op
    if isinstance(op, Einsum):
        for axis, label in enumerate(op.output):
            if sum(label in part for part in op.inputs) == 1:
                return axis
    return max(len(seed.shape) - 2, 0)


def _grown(seed: Node, order: Sequence[Node]) -> BlockGroup | None:
    """The group of a pair array; None if the array has too few rows."""
    users = readers(order)
    group = BlockGroup(seed.shape[_row_axis(seed)], seed)
    large = _large_relatives(seed, users)
    if group.length * BLOCK < 2 * elements(seed):
        return None
    candidates = {*large, *(u for n in large for u in users.get(n, []))}
    small = [n for n in _between(candidates, order) if n not in large]
    if len(small) <= MAX_SMALL_BETWEEN:
        candidates |= set(small)
    after: dict[Node, int] = {}
    for node in order:
        begins = max((_available(a, group, after) for a in node.args), default=0)
        if node in candidates:
            _place(node, large, group, begins)
        if node not in group.stage:
            moved = [group.stage[a] + 1 for a in node.args if a in group.stage]
            after[node] = max([begins, *moved])
    return group


def _available(arg: Node, group: BlockGroup, after: dict[Node, int]) -> int:
    """The first stage in which an array can be read."""
    if arg in group.summed:
        return group.summed[arg] + 1
    return group.stage[arg] if arg in group.stage else after.get(arg, 0)


def _place(node: Node, large: dict[Node, int], group: BlockGroup, begins: int) -> None:
    """Add a node to the group if it acts row by row, or sums large arrays over the rows."""
    own = [(k, a) for k, a in enumerate(node.args) if a in group.axis]
    try:
        axes = {result_axis(node, k, group.axis[a]) for k, a in own}
        if node in large:
            axes.add(large[node])
        if len(axes) != 1:
            return
        (axis,) = axes
        if axis is not None:
            argument_axes(node, axis)
            group.axis[node] = axis
            group.stage[node] = begins
        elif isinstance(node.op, Einsum) and any(elements(a) >= MIN_ELEMENTS for _, a in own):
            group.stage[node] = group.summed[node] = begins
    except Misaligned:
        return


def _large_relatives(seed: Node, users: dict[Node, list[Node]]) -> dict[Node, int]:
    """The large arrays aligned row by row with the seed, and their axes.

    Raises:
        Misaligned: one of them would be needed along two axes.
    """
    found = {seed: _row_axis(seed)}
    todo = [seed]

    def note(node: Node, axis: int | None) -> None:
        if axis is None or elements(node) < MIN_ELEMENTS:
            return
        if node.op.outside or isinstance(node.op, ArrayConstant):
            return
        if node not in found:
            found[node] = axis
            todo.append(node)
        elif found[node] != axis:
            raise Misaligned

    while todo:
        node = todo.pop()
        for arg, axis in zip(node.args, argument_axes(node, found[node]), strict=True):
            note(arg, axis)
        for user in users.get(node, []):
            for k, arg in enumerate(user.args):
                if arg is node:
                    try:
                        axis = result_axis(user, k, found[node])
                        if axis is not None:
                            argument_axes(user, axis)
                    except Misaligned:
                        continue
                    note(user, axis)
    return found


def _between(nodes: set[Node], order: Sequence[Node]) -> list[Node]:
    """The nodes on paths between two of the given nodes."""
    later: set[Node] = set()
    for node in order:
        if node in nodes or any(a in later for a in node.args):
            later.add(node)
    earlier: set[Node] = set()
    for node in reversed(order):
        if node in nodes or node in earlier:
            earlier.add(node)
            earlier.update(node.args)
    return [n for n in order if n in later and n in earlier]


def _locals(arguments: Sequence[tuple[Node, int | None]]) -> dict[tuple[Node, int | None], Node]:
    """The inputs of a body, for its arguments and the axes along which they are cut."""
    made: dict[tuple[Node, int | None], Node] = {}
    for k, (arg, axis) in enumerate(arguments):
        inner: Shape = tuple(ROWS if j == axis else d for j, d in enumerate(arg.shape))
        made[arg, axis] = Node.of(Local(k, inner))
    return made
