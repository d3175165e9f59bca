"""Ops that stand for a part of the graph: one output of a body, whose inputs are the op's arguments.

`RowBlocks` is a loop over blocks of rows, which the passes in `blocking` make; `LoopValue` is a scan that
keeps several values of every step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import sympy

from symad.core.contents import readers
from symad.core.dims import Dim, Shape
from symad.core.graph import Graph, Node, Op, rebuild, shape, topological
from symad.core.questions import Array, Nodes, Values, definition, evaluate
from symad.higher_order.scan import Local, LoopOp, Scan
from symad.numbers.values import unchecked
from symad.ops.arrays.stacking import stack, take


@dataclass(frozen=True, eq=False)
class BodyOp(Op):
    """Output ``index`` of a ``body``, whose inputs are `Local` 0, 1, 2, ..."""

    body: Graph
    index: int
    several = ("index",)


def body_shape(op: BodyOp, args: Nodes) -> Shape:
    """The shape of this output; each kind of body registers it."""
    return op.body.output_nodes[op.index].shape


@evaluate.dispatch
def body_evaluate(op: BodyOp, values: Values) -> Array:
    """The value of the output, from the values of the arguments."""
    return body_values(op.body, values)[op.index]


@definition.dispatch
def body_definition(op: BodyOp, y: Node) -> Node:
    """The output as nodes of the graph itself."""
    return body_nodes(op.body, y.args)[op.index]


def body_values(body: Graph, values: Values) -> list[Array]:
    """The outputs of a body at the values of its inputs."""
    return unchecked(body.output_nodes, dict(zip(body.input_nodes, values, strict=True)))


def body_nodes(body: Graph, args: Nodes) -> Nodes:
    """The outputs of a body, applied to other nodes."""
    return rebuild(body.output_nodes, dict(zip(body.input_nodes, args, strict=True)))


def body_of(node: Node) -> Graph:
    """One node as a body, whose inputs are its distinct arguments."""
    local = {arg: Node.of(Local(k, arg.shape)) for k, arg in enumerate(dict.fromkeys(node.args))}
    return Graph(tuple(local.values()), (Node.of(node.op, tuple([local[arg] for arg in node.args])),))


def read_once(outputs: Sequence[Node]) -> set[Node]:
    """The nodes that one other node reads, and that are no outputs."""
    found = readers(topological(outputs))
    return {node for node, users in found.items() if len(users) == 1} - set(outputs)


# ---- loops over blocks of rows -------------------------------------------------------------------


ROWS = sympy.Dummy("rows", integer=True, positive=True)
"""The number of rows of a block; the last block may have fewer."""

COLUMNS = sympy.Dummy("columns", integer=True, positive=True)
"""The number of columns that the rows of a block read."""


@dataclass(frozen=True, eq=False)
class RowBlocks(Op):
    """Value number ``k`` of a loop over blocks of rows.

    The first arguments are cut along ``axes``, the others are used whole. The blocks of value k are
    concatenated along ``joined[k]``, or summed where that is None.
    """

    body: Graph
    axes: tuple[int, ...]
    joined: tuple[int | None, ...]
    length: Dim
    k: int
    columns: tuple[int | None, ...] = ()
    """For each argument, the axis that is cut at the last row of the block, if any."""
    ends: tuple[int | None, ...] = ()
    """For each value, the axis along which a block ends at its last row, if any."""
    several = ("k",)

    @property
    def axis(self) -> int | None:
        """The axis along which the blocks of the value are concatenated."""
        return self.joined[self.k]

    @property
    def end(self) -> int | None:
        """The axis along which a block of the value ends at its last row; after it the value is 0."""
        return self.ends[self.k] if self.ends else None


@shape(RowBlocks)
def row_blocks_shape(op: RowBlocks, args: Nodes) -> Shape:
    """The shape of the value over all rows."""
    inner = op.body.output_nodes[op.k].shape
    return tuple(op.length if j in (op.axis, op.end) else d for j, d in enumerate(inner))


@definition.dispatch
def row_blocks_definition(op: RowBlocks, y: Node) -> Node:
    """The body, applied to one block with all rows."""
    return body_nodes(op.body.at({ROWS: op.length, COLUMNS: op.length}), y.args)[op.k]


@evaluate.dispatch
def row_blocks_evaluate(op: RowBlocks, values: Values) -> Array:
    """The value over two blocks, if there are two rows, concatenated or summed."""
    arrays = [np.asarray(value) for value in values]
    (length,) = {array.shape[axis] for array, axis in zip(arrays, op.axes, strict=False)}
    cut = (*op.axes, *[None] * (len(arrays) - len(op.axes)))
    columns = op.columns or [None] * len(arrays)
    dims = tuple(length if d in (ROWS, COLUMNS) else d for d in op.body.output_nodes[op.k].shape)
    made = np.zeros(dims)
    for rows in (slice(0, length // 2), slice(length // 2, length)):
        body = op.body.at({ROWS: rows.stop - rows.start, COLUMNS: rows.stop})
        parts = [
            array[_index(array.ndim, rows, axis, column)]
            for array, axis, column in zip(arrays, cut, columns, strict=True)
        ]
        made[_index(made.ndim, rows, op.axis, op.end)] += body_values(body, tuple(parts))[op.k]
    return made


def _index(rank: int, rows: slice, axis: int | None, column: int | None) -> tuple[slice, ...]:
    """The index of a block: its rows along one axis, the columns up to its last row along another."""
    return tuple(rows if j == axis else slice(rows.stop) if j == column else slice(None) for j in range(rank))


# ---- loops over steps ----------------------------------------------------------------------------


Part = TypeVar("Part")


@dataclass(frozen=True, eq=False)
class LoopValue(LoopOp):
    """Value number ``k`` of a loop at all its steps: first the states, then the values kept at each step.

    The body has one output for each value.
    """

    k: int
    states: int = 1
    several = ("k",)


def with_body(op: LoopOp, body: Graph, slices: int) -> Op:
    """The op of the same loop value with another body."""
    return LoopValue(body, slices, op.k, op.states) if isinstance(op, LoopValue) else Scan(body, slices)


def loop_of(node: Node) -> LoopOp:
    """The loop op of a node that is a value of a loop."""
    assert isinstance(node.op, LoopOp), node
    return node.op


def pieces(op: LoopOp, args: tuple[Part, ...]) -> tuple[tuple[Part, ...], ...]:
    """The initial states, the inputs of the steps, and the constants among arguments or body inputs."""
    first, last = op.states, op.states + op.slices
    return args[:first], args[first:last], args[last:]


def values(node: Node) -> list[Node]:
    """All values of the loop that has the given node as a value."""
    op = loop_of(node)
    if isinstance(op, Scan):
        return [node]
    every = range(len(op.body.output_nodes))
    return [Node.of(LoopValue(op.body, op.slices, k, op.states), node.args) for k in every]


@shape(LoopValue)
def loop_shape(op: LoopValue, args: Nodes) -> Shape:
    """The steps, then the axes of the value."""
    return (args[op.states].shape[0], *op.body.output_nodes[op.k].shape)


def by_loop(values: Iterable[Node]) -> list[list[Node]]:
    """Values of loops, grouped by loop."""
    groups: dict[tuple[Graph, Nodes], list[Node]] = {}
    for node in values:
        if isinstance(node.op, LoopOp):
            groups.setdefault((node.op.body, node.args), []).append(node)
    return [*groups.values()]


@evaluate.dispatch
def loop_evaluate(op: LoopValue, values: Values) -> Array:
    """The value, computed step by step."""
    states = list(values[: op.states])
    xs, constants = values[op.states : op.states + op.slices], values[op.states + op.slices :]
    history = []
    for t in range(len(xs[0])):
        point = dict(zip(op.body.input_nodes, (*states, *[x[t] for x in xs], *constants), strict=True))
        made = unchecked(op.body.output_nodes, point)
        states = made[: op.states]
        history.append(np.asarray(made[op.k]))
    return np.stack(history) if history else np.zeros((0, *op.body.output_nodes[op.k].shape))


@definition.dispatch
def loop_definition(op: LoopValue, y: Node) -> Node | None:
    """The steps written out, if their number is known."""
    states, xs, constants = pieces(op, y.args)
    if not isinstance(y.shape[0], int):
        return None
    kept = []
    for t in range(y.shape[0]):
        inputs = (*states, *[take(x, 0, t) for x in xs], *constants)
        made = rebuild(op.body.output_nodes, dict(zip(op.body.input_nodes, inputs, strict=True)))
        states = made[: op.states]
        kept.append(made[op.k])
    return stack(kept)
