"""Gradients and Jacobians of nodes, by either mode, and the seeds from which they and Hessians are built.

Scalar inputs either get one unit seed each, folded into the graph as the constant 1 (structural
zeros then vanish: sparse derivatives cost no more than their nonzeros), or all get one-hot lanes that pass
through the graph together as arrays (dense derivatives of many inputs). Array inputs always use lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from symad.core.dims import Dim, plus, size
from symad.core.graph import ZERO, Node, Tangent
from symad.ops.arrays.stacking import Stack, concatenate, pack_scalars, take
from symad.ops.basic.contraction import permute
from symad.ops.basic.shaping import Reshape, broadcast_axes, broadcast_to, cut, reshape, slice_axis
from symad.ops.basic.sources import constant, eye
from symad.ops.elementwise.selection import Condition
from symad.transforms.batches import batch_outputs
from symad.transforms.cotangents import fresh_seed, pull
from symad.transforms.guards import Guards
from symad.transforms.tangents import prepared, push, push_along

# ---- seeds ---------------------------------------------------------------------------------------


UNROLL = 60_000
"""Unrolled scalar seeds are used if they create fewer tangents than this."""

DENSE = 40
"""... or fewer than this for each node of the graph."""

Linear = Callable[[Mapping[Node, Tangent]], "list[Tangent]"]
"""A linear map: from tangents of the wrt nodes to output nodes."""


@dataclass(frozen=True)
class Block:
    """Inputs that are seeded together; ``total`` is their number of elements."""

    members: tuple[Node, ...]
    total: Dim


def blocks_of(wrt: Sequence[Node]) -> list[Block]:
    """Arrays one by one; adjacent scalars together."""
    blocks: list[Block] = []
    run: list[Node] = []
    for node in wrt:
        if node.shape:
            if run:
                blocks.append(Block(tuple(run), len(run)))
            run = []
            blocks.append(Block((node,), size(node.shape)))
        else:
            run.append(node)
    if run:
        blocks.append(Block(tuple(run), len(run)))
    return blocks


def total_size(nodes: Sequence[Node]) -> Dim:
    """The number of elements of some nodes together."""
    total: Dim = 0
    for node in nodes:
        total = plus(total, size(node.shape))
    return total


def seed_matrix_rows(block: Block) -> dict[Node, Node]:
    """For each member the unit seeds of the whole block: arrays (total, *shape)."""
    identity = eye(block.total)
    if len(block.members) == 1 and block.members[0].shape:
        (node,) = block.members
        long = [k for k, dim in enumerate(node.shape) if dim != 1]
        if len(long) == 1:  # a vector with unit axes: contractions get the identity itself
            return {node: broadcast_axes(identity, (block.total, *node.shape), (0, long[0] + 1))}
        return {node: reshape(identity, (block.total, *node.shape))}
    if len(block.members) == 1:
        return {block.members[0]: broadcast_to(constant(1), (1,))}
    return {node: take(identity, 1, k) for k, node in enumerate(block.members)}


def through_lanes(linear: Linear, block: Block) -> list[Tangent]:
    """A linear map applied to all unit seeds of a block at once: outputs (total, *shape)."""
    placeholders: dict[Node, Tangent] = {node: fresh_seed(node) for node in block.members}
    results = linear(placeholders)
    rows = seed_matrix_rows(block)
    replaced = {p: rows[n] for n, p in placeholders.items() if isinstance(p, Node)}
    nodes = [r for r in results if isinstance(r, Node)]
    batched = iter(batch_outputs(nodes, replaced, block.total))
    return [next(batched) if isinstance(r, Node) else ZERO for r in results]


def scalar_parts(nodes: Sequence[Node]) -> list[Node] | None:
    """The elements of the nodes if each is a scalar or packed scalars; None otherwise."""
    parts: list[Node] = []
    for node in nodes:
        packed = node.args[0] if isinstance(node.op, Reshape) else node
        if not node.shape:
            parts.append(node)
        elif isinstance(packed.op, Stack) and not packed.args[0].shape:
            parts.extend(packed.args)
        else:
            return None
    return parts


class Descent:
    """The dependency relation of a graph: pushes one input at a time, at the cost of its dependent nodes."""

    def __init__(self, outputs: Sequence[Node], wrt: Sequence[Node]) -> None:
        """Number the nodes and list their users."""
        self.outputs, self.order = prepared(outputs, dict.fromkeys(wrt, ZERO))
        self.rank = {node: k for k, node in enumerate(self.order)}
        self.users: dict[Node, list[Node]] = {node: [] for node in self.order}
        wanted = set(self.outputs)
        for node in reversed(self.order):  # what only comparisons use has no derivative that counts
            if node in wanted and not isinstance(node.op, Condition):
                wanted.update(node.args)
                for arg in node.args:
                    self.users[arg].append(node)
        self.wrt = wrt

    def pairs(self, limit: int) -> int:
        """The number of (input, dependent node) pairs, counted up to a limit."""
        bit = {node: 1 << k for k, node in enumerate(self.wrt)}
        deps: dict[Node, int] = {}
        total = 0
        for node in self.order:
            mask = bit.get(node, 0)
            for arg in node.args:
                mask |= deps[arg]
            deps[node] = mask
            total += mask.bit_count()
            if total > limit:
                break
        return total

    def columns(self) -> list[dict[Node, Tangent]]:
        """For each w the tangents ∂output/∂w of the outputs that depend on it, its seed folded."""
        guards = Guards.of(self.order, self.outputs)
        wanted = dict.fromkeys(self.outputs)
        columns = []
        for w in self.wrt:
            heirs: set[Node] = {w} if w in self.rank else set()
            stack = list(heirs)
            while stack:
                for user in self.users[stack.pop()]:
                    if user not in heirs:
                        heirs.add(user)
                        stack.append(user)
            order = sorted(heirs, key=self.rank.__getitem__)
            reached = [node for node in order if node in wanted]
            dots = push_along(order, {w: constant(1)}, guards, reached)
            columns.append(dict(zip(reached, dots, strict=True)))
        return columns

    def worth_unrolling(self) -> bool:
        """True if folded unit seeds make a graph of reasonable size."""
        limit = max(UNROLL, DENSE * len(self.order))
        return self.pairs(limit) <= limit


def pack_matrix(entries: Sequence[Sequence[Tangent]], rows: int, columns: int) -> Node:
    """Scalar entries, by rows, as a (rows, columns) array; structural zeros are constants."""
    zero = constant(0)
    flat = [e if isinstance(e, Node) else zero for row in entries for e in row]
    return pack_scalars(flat, (rows, columns))


def flat_columns(results: Sequence[Tangent], like: Sequence[Node], count: Dim) -> Node:
    """Results by lanes (count, *shape) of all outputs, concatenated: (count, total size)."""
    parts = []
    for result, node in zip(results, like, strict=True):
        wide = (count, size(node.shape))
        parts.append(reshape(result, wide) if isinstance(result, Node) else broadcast_to(constant(0), wide))
    return concatenate(parts, 1)


def transposed(matrix: Node) -> Node:
    """The transpose of a matrix."""
    return permute(matrix, (1, 0))


def forward_gradient(value: Node, wrt: Sequence[Node]) -> list[Node]:
    """The gradient of a scalar node by forward mode."""
    flat = reshape(forward_jacobian([value], wrt), (total_size(wrt),))
    return cut(flat, [node.shape for node in wrt])


def forward_jacobian(outputs: Sequence[Node], wrt: Sequence[Node]) -> Node:
    """The Jacobian by columns."""
    if not wrt:
        return broadcast_axes(constant(0), (total_size(outputs), 0), ())
    columns = [_columns(outputs, wrt, block) for block in blocks_of(wrt)]
    return concatenate(columns, 1)


def _columns(outputs: Sequence[Node], wrt: Sequence[Node], block: Block) -> Node:
    """The columns of one block of inputs: (M, total)."""
    parts = scalar_parts(outputs)
    if parts is not None and not block.members[0].shape:
        descent = Descent(parts, block.members)
        if descent.worth_unrolling():
            columns = descent.columns()
            rows = [[column.get(y, ZERO) for column in columns] for y in descent.outputs]
            return pack_matrix(rows, len(parts), len(block.members))
    lanes = through_lanes(lambda dots: push(outputs, dots), block)
    return transposed(flat_columns(lanes, outputs, block.total))


def _rows_of(jacobian: Node, outputs: Sequence[Node]) -> list[Node]:
    """The rows of each output."""
    start: Dim = 0
    found = []
    for y in outputs:
        found.append(slice_axis(jacobian, 0, start, size(y.shape)))
        start = plus(start, size(y.shape))
    return found


def reverse_jacobian(outputs: Sequence[Node], wrt: Sequence[Node]) -> Node:
    """The Jacobian by rows."""
    if not outputs or not wrt:
        return broadcast_axes(constant(0), (total_size(outputs), total_size(wrt)), ())
    parts = scalar_parts(outputs)
    if parts is not None and not any(node.shape for node in wrt):
        return pack_matrix([pull([y], [constant(1)], wrt) for y in parts], len(parts), len(wrt))
    distinct = tuple(dict.fromkeys(outputs))
    if len(distinct) < len(outputs):  # a block has the rows of each of its members once
        known = dict(zip(distinct, _rows_of(reverse_jacobian(distinct, wrt), distinct), strict=True))
        return concatenate([known[y] for y in outputs], 0)
    rows = []
    for block in blocks_of(outputs):

        def pulled(bars: Mapping[Node, Tangent], block: Block = block) -> list[Tangent]:
            return pull(block.members, [bars[y] for y in block.members], wrt)

        rows.append(flat_columns(through_lanes(pulled, block), wrt, block.total))
    return concatenate(rows, 0)
