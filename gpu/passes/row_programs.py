"""Small networks as one kernel: the work on each row of a batch that does not depend on other rows.

It consists of products with small matrices and elementwise functions between them, forward and backward; only
sums over the batch, such as gradients of weights, depend on several rows. The kernel is that of a loop over
time (`symad.gpu.recurrences`) with one step. No path leaves such a region and returns to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from symad.core.graph import Graph, Node, Op, rebuild, shape, topological
from symad.core.questions import Nodes, question
from symad.gpu.recurrences.step import NotByRows, step_of
from symad.higher_order.scan import Local
from symad.numeric.fusion.c_expressions import has_c_form
from symad.numeric.fusion.chains import on_host
from symad.numeric.passes.bodies import BodyOp, body_shape
from symad.ops.arrays.positions import Positions
from symad.ops.arrays.stacking import Concatenate
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape, Slice
from symad.ops.basic.sources import Dimension
from symad.ops.elementwise.selection import Condition

MAX_WORK = 1 << 25
"""The most operations of a kernel's products; with more, cuBLAS's speed outweighs the saved launches.

It is estimated from published costs of launches (some microseconds each), not measured on a device.
"""

MAX_MEMBERS = 300
"""The most nodes that are tried as the members of one kernel.

Origin: not recorded; not measured on a device.
"""


@dataclass(frozen=True, eq=False)
class RowProgram(BodyOp):
    """Output ``index`` of a ``body`` that one launch computes, with a block of threads for some rows."""


shape(RowProgram)(body_shape)


def row_programs(outputs: Sequence[Node]) -> Nodes:
    """The outputs, with such regions as values of one op each."""
    made = tuple(outputs)
    while (found := _one(made)) is not None:
        made = found
    return made


def _one(outputs: Nodes) -> Nodes | None:
    """The outputs with one more region as an op; None if there is no region left."""
    order = topological(outputs)
    rows = dict.fromkeys(n.shape[0] for n in order if _is_layer(n) and isinstance(n.shape[0], int))
    for count in rows:
        members = _region(order, count)
        layers = [m for m in members if _is_layer(m)]
        steps = [m for m in members if isinstance(m.op, (Einsum, ElementwiseOp)) and m.args]
        work = sum(2 * prod(m.shape) * m.args[0].shape[-1] for m in layers if _known(m))
        if not layers or len(steps) < 2 or work > MAX_WORK or not all(map(_known, layers)):
            continue
        made = _program(outputs, order, members)
        if made is not None:
            return made
    return None


def _known(node: Node) -> bool:
    return all(isinstance(d, int) for n in (node, *node.args) for d in n.shape)


def _is_layer(node: Node) -> bool:
    """Σ_k x_nk w_kj."""
    op = node.op
    if not isinstance(op, Einsum) or len(node.args) != 2 or len(node.shape) != 2:
        return False
    left, right = op.inputs
    n, j = op.output
    summed = (set(left) & set(right)) - {n, j}
    return len(summed) == 1 and set(left) == {n, *summed} and left[0] == n and set(right) == {j, *summed}


def _region(order: Sequence[Node], rows: int) -> dict[Node, None]:
    """Nodes whose rows depend on no other rows, and on no value made from all rows."""
    members: dict[Node, None] = {}
    outside: set[Node] = set()
    for node in order:
        inside = [a for a in node.args if a in members]
        free = not any(a in outside for a in node.args)
        if free and len(members) < MAX_MEMBERS and _joins(node, rows, members):
            members[node] = None
        elif inside or not free:
            outside.add(node)
    members = _about_layers(members)
    while True:  # nodes at the boundary that only move elements are removed
        moved = [m for m in members if not isinstance(m.op, (Einsum, ElementwiseOp))]
        idle = [m for m in moved if not any(a in members for a in m.args)]
        if not idle:
            return members
        for m in idle:
            del members[m]


def _about_layers(members: dict[Node, None]) -> dict[Node, None]:
    """The products of a region, with the nodes in it that they depend on or that depend on them."""
    after: set[Node] = set()
    for m in members:
        if _is_layer(m) or any(a in after for a in m.args):
            after.add(m)
    before = {m for m in members if _is_layer(m)}
    for m in reversed(members):
        if m in before:
            before.update(a for a in m.args if a in members)
    return {m: None for m in members if m in after or m in before}


def _joins(node: Node, rows: int, members: dict[Node, None]) -> bool:
    """Whether each row of a value is a function of the same row of its arguments."""
    if not node.shape or len(node.shape) > 2 or node.shape[0] != rows:
        return False
    return bool(by_rows(node.op, node, members))


@question
def by_rows(op: Op, node: Node, members: dict[Node, None]) -> Any:
    """Whether each row of a value that has one for each row is made from the same row of its arguments."""


@by_rows.dispatch
def other_by_rows(op: Op, node: Node, members: dict[Node, None]) -> bool:
    """Other ops stay outside."""
    return False


@by_rows.dispatch
def product_by_rows(op: Einsum, node: Node, members: dict[Node, None]) -> bool:
    """A product with a matrix that no row of the region makes."""
    return _is_layer(node) and node.args[1] not in members and node.args[0].shape[0] == node.shape[0]


@by_rows.dispatch
def elementwise_by_rows(op: ElementwiseOp, node: Node, members: dict[Node, None]) -> bool:
    """A function of elements of one shape, and of numbers."""
    flags = any(isinstance(a.op, Condition) and a not in members for a in node.args)
    return has_c_form(node) and not flags and all(a.shape in ((), node.shape) for a in node.args)


@by_rows.dispatch
def broadcast_by_rows(op: Broadcast, node: Node, members: dict[Node, None]) -> bool:
    """A number for each row, repeated along it; or a row or number from outside, in all rows."""
    return op.axes == (0,) or (op.axes in ((), (1,)) and node.args[0] not in members)


@by_rows.dispatch
def reshape_by_rows(op: Reshape, node: Node, members: dict[Node, None]) -> bool:
    """A vector of rows as a column, or the reverse."""
    columns = (node.shape[:1], (node.shape[0], 1))
    return node.args[0].shape in columns and node.shape in columns


@by_rows.dispatch
def slice_by_rows(op: Slice, node: Node, members: dict[Node, None]) -> bool:
    """Adjacent columns of a value of the region."""
    whole = len(node.shape) == 2 and op.start[0] == 0 and op.step == (1, 1)
    return whole and node.args[0] in members


@by_rows.dispatch
def concatenate_by_rows(op: Concatenate, node: Node, members: dict[Node, None]) -> bool:
    """Columns side by side."""
    return op.axis == 1


VIEWS = (Broadcast, Reshape, Slice)


def _results(outputs: Nodes, order: Sequence[Node], members: dict[Node, None]) -> list[Node]:
    """The values of a region that are read elsewhere; a view is replaced by the array that it shows."""
    read = set(outputs) | {a for n in order if n not in members for a in n.args}
    results = dict.fromkeys(m for m in members if m in read)
    for m in [*results]:
        while isinstance(m.op, VIEWS) and m.args[0] in members:
            (m,) = m.args
        results[m] = None
    return [m for m in results if not (isinstance(m.op, VIEWS) and m.args[0] in members)]


def _program(outputs: Nodes, order: Sequence[Node], members: dict[Node, None]) -> Nodes | None:
    """The outputs with a region as one op; None if the kernel does not support it."""
    results, numbers = _results(outputs, order, members), on_host(order)
    given = [a for m in members for a in m.args]
    leaves = dict.fromkeys(a for a in given if a not in members and a not in numbers)
    host = topological([a for a in given if a in numbers])
    kinds = [(host, Dimension), (leaves, Positions), (results, Broadcast)]
    if any(isinstance(n.op, kind) for nodes, kind in kinds for n in nodes):
        return None
    local = {leaf: Node.of(Local(k, leaf.shape)) for k, leaf in enumerate(leaves)}
    body = Graph(tuple(local.values()), rebuild(results, local))
    try:
        step_of(body, 0)
    except NotByRows:
        return None
    args = tuple(leaves)
    return rebuild(outputs, {m: Node.of(RowProgram(body, k), args) for k, m in enumerate(results)})
