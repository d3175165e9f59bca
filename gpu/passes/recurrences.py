"""Loops over time that become one kernel each: a pass from graph to graph.

Values of a step are kept instead of computed again, elementwise work for all steps moves into the loop that
reads it, and the parts of its state become states: the state of an LSTM is a stack of h and c. A loop stays
unchanged if rows of its state depend on each other, or if a step has an op that the kernel does not support.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from symad.core.contents import readers
from symad.core.dims import Shape, is_concrete
from symad.core.graph import Graph, Node, Op, op_of, rebuild, shape, topological
from symad.core.questions import Array, Nodes, Values, definition, evaluate
from symad.gpu.passes.integers import needed_as_integers
from symad.gpu.passes.known_rows import filled
from symad.gpu.recurrences.step import NotByRows, step_of
from symad.higher_order.scan import Scan, backwards
from symad.numeric.passes import expand, keep, prepare
from symad.numeric.passes.bodies import LoopValue, by_loop, loop_evaluate, pieces
from symad.numeric.passes.loops.sink_into_loop import sink
from symad.numeric.passes.loops.split_state import apart, before_steps
from symad.numeric.passes.loops.zeros import drop_pads
from symad.numeric.passes.memory_layout.pads import join_pads
from symad.numeric.passes.rewriting import with_results
from symad.ops.arrays.stacking import Stack, stack
from symad.ops.basic.shaping import Pad, Reshape, Slice, broadcast_to, reshape, slice_axes
from symad.ops.basic.sources import Iota, constant

# ---- the op --------------------------------------------------------------------------------------

# Every row of the state (a sample of the batch) goes through the steps without the others. A block of threads
# that owns some rows then needs no other block, from the first step to the last.


@dataclass(frozen=True, eq=False)
class Recurrence(Op):
    """Value number ``k`` of a loop; with ``before``, state k before each step (without its last value).

    Arguments: the initial states that are not 0, the inputs of the steps, the constants. The body and the
    values are those of `LoopValue`. ``zeros`` says which states begin with 0, and ``kept`` which states are
    also needed before each step.
    """

    body: Graph
    slices: int
    k: int
    zeros: tuple[bool, ...]
    kept: tuple[bool, ...]
    before: bool = False
    several = ("k", "before")

    @property
    def states(self) -> int:
        """The number of states."""
        return len(self.zeros)


Part = TypeVar("Part")


def parts_of(
    op: Recurrence, args: tuple[Part, ...]
) -> tuple[list[Part | None], tuple[Part, ...], tuple[Part, ...]]:
    """The initial states (None means 0), the inputs of the steps, and the constants."""
    given = iter(args)
    initial = [None if zero else next(given) for zero in op.zeros]
    rest = tuple(given)
    return initial, rest[: op.slices], rest[op.slices :]


def steps_of(op: Recurrence, args: tuple[Any, ...]) -> Any:
    """The number of steps."""
    return parts_of(op, args)[1][0].shape[0]


@shape(Recurrence)
def recurrence_shape(op: Recurrence, args: Nodes) -> Shape:
    """The steps, then the axes of the value."""
    return (steps_of(op, args), *op.body.output_nodes[op.k].shape)


def _starts(op: Recurrence, initial: Sequence[Any]) -> list[Any]:
    shapes = [local.shape for local in op.body.input_nodes]
    return [np.zeros(s) if a is None else a for a, s in zip(initial, shapes, strict=False)]


@evaluate.dispatch
def recurrence_evaluate(op: Recurrence, values: Values) -> Array:
    """The value, computed step by step."""
    given = iter(values)
    initial = [None if zero else next(given) for zero in op.zeros]
    starts = _starts(op, initial)
    made = loop_evaluate(LoopValue(op.body, op.slices, op.k, op.states), (*starts, *given))
    return np.concatenate([np.asarray(starts[op.k])[None], made[:-1]]) if op.before else made


@definition.dispatch
def recurrence_definition(op: Recurrence, y: Node) -> Node:
    """The loop."""
    initial, xs, constants = parts_of(op, y.args)
    shapes = [local.shape for local in op.body.input_nodes]
    starts = [broadcast_to(constant(0), s) if a is None else a for a, s in zip(initial, shapes, strict=False)]
    loop = Node.of(LoopValue(op.body, op.slices, op.k, op.states), (*starts, *xs, *constants))
    return before_steps(loop) if op.before else loop


# ---- the pass ------------------------------------------------------------------------------------


def _opened(node: Node, args: Nodes) -> Node:
    """A node over new arguments, where a slice of a stack is a stack of slices of its arrays."""
    made = node.over(args)
    op = made.op
    if not made.args or not isinstance(made.args[0].op, Stack):
        return made
    arrays, axis = made.args[0].args, made.args[0].op.axis
    if isinstance(op, Reshape) and len(arrays) == 1:
        return reshape(arrays[0], op.shape)
    if not isinstance(op, Slice) or not is_concrete((op.start[axis], op.count[axis])):
        return made
    rest = [[*field[:axis], *field[axis + 1 :]] for field in (op.start, op.count, op.step)]
    taken = [arrays[op.start[axis] + j * op.step[axis]] for j in range(op.count[axis])]
    return stack([slice_axes(array, *rest) for array in taken], axis)


def recurrent(graph: Graph) -> Graph:
    """The graph with its loops as kernels if all of them can be; otherwise the graph unchanged."""
    if not any(isinstance(node.op, Scan) for node in graph.nodes):
        return graph
    made = drop_pads(prepare(keep(expand(graph))))
    sunk = with_results(graph, sink(made.output_nodes, lambda node: True))
    outputs: Sequence[Node] = join_pads(sunk).output_nodes
    try:
        while (changed := _one(outputs)) is not None:
            outputs = changed
    except NotByRows:
        return graph
    return join_pads(with_results(graph, rebuild(outputs, {}, _opened)))


def _one(outputs: Sequence[Node]) -> Sequence[Node] | None:
    """The outputs with one more loop as a kernel; None if there is no loop left.

    Raises:
        NotByRows: the loop cannot be a kernel.
    """
    order = topological(outputs)
    if any(isinstance(node.op, Scan) for node in order):
        raise NotByRows("a scan that stays one")
    groups = by_loop(node for node in order if isinstance(node.op, LoopValue))
    if not groups:
        return None
    integers = needed_as_integers(outputs, None)
    try:
        return rebuild(outputs, _replaced(groups[0], set(order), integers))
    except NotByRows:
        fewer = apart(groups[0], readers(order), set(outputs), always=True)
        if fewer is None:
            raise
        return rebuild(outputs, fewer)


def _replaced(group: Sequence[Node], known: set[Node], integers: set[Node]) -> dict[Node, Node]:
    """The replacements of the values of a loop, and of views of them."""
    op = op_of(group[0], LoopValue)
    args = group[0].args
    initial, xs, constants = pieces(op, args)
    _check(op, xs, [*xs, *constants, *initial], integers)
    numbers = [
        *range(op.states),
        *sorted({op_of(n, LoopValue).k for n in group if op_of(n, LoopValue).k >= op.states}),
    ]
    peeled = [_peeled(op.body.output_nodes[k]) for k in numbers]
    body = Graph(op.body.input_nodes, tuple(inner for inner, _ in peeled))
    step_of(body, op.states)
    zeros = tuple(filled(a) == 0 for a in initial)
    states = [Node.of(LoopValue(op.body, op.slices, k, op.states), args) for k in range(op.states)]
    before = [before_steps(state) if state.shape[0] != 0 else state for state in states]
    kept = tuple(node in known and node is not state for node, state in zip(before, states, strict=True))
    given = (*(a for a, zero in zip(initial, zeros, strict=True) if not zero), *xs, *constants)
    made: dict[Node, Node] = {}
    for place, (k, (_, pad)) in enumerate(zip(numbers, peeled, strict=True)):
        old = Node.of(LoopValue(op.body, op.slices, k, op.states), args)
        new = Node.of(Recurrence(body, op.slices, place, zeros, kept), given)
        made[old] = _padded(new, pad)
        if pad is not None:
            made[backwards(old)] = _padded(backwards(new), pad)
        if place < op.states and kept[place]:
            made[before[place]] = Node.of(Recurrence(body, op.slices, place, zeros, kept, True), given)
    return made


def _check(op: LoopValue, xs: Sequence[Node], args: Sequence[Node], integers: set[Node]) -> None:
    read = set(topological(op.body.output_nodes))
    local = pieces(op, op.body.input_nodes)[1]
    if any(isinstance(x.op, Iota) and here in read for x, here in zip(xs, local, strict=True)):
        raise NotByRows("a step that reads its number")
    if any(a in integers for a in args):
        raise NotByRows("integers")


def _peeled(output: Node) -> tuple[Node, Pad | None]:
    """The array inside a padded result, and its padding."""
    op = output.op
    if isinstance(op, Pad) and output.args[0].shape[:-1] == output.shape[:-1]:
        return output.args[0], op
    return output, None


def _padded(value: Node, pad: Pad | None) -> Node:
    if pad is None:
        return value
    steps = value.shape[0]
    return Node.of(Pad((0, *pad.start), (1, *pad.step), (steps, *pad.shape)), (value,))
