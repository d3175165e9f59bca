"""Loops over time that become one kernel each: a pass from graph to graph.

Values of a step are kept instead of computed again, elementwise work for all steps moves into the loop that
reads it, and the parts of its state become states: the state of an LSTM is a stack of h and c. A loop stays
unchanged if rows of its state depend on each other, or if a step has an op that the kernel does not support.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symad.core.dims import Shape, is_concrete, plus
from symad.core.graph import Graph, Node, Op, op_of, rebuild, shape, topological
from symad.core.questions import Array, Nodes, Values, definition, evaluate
from symad.gpu.passes.integers import needed_as_integers
from symad.gpu.passes.known_rows import filled
from symad.gpu.recurrences.step import NotByRows, step_of
from symad.higher_order.scan import Local, Scan, backwards
from symad.numeric.passes import expand, keep, prepare
from symad.numeric.passes.bodies import LoopValue, by_loop, loop_evaluate, pieces
from symad.numeric.passes.loops.sink_into_loop import sink
from symad.numeric.passes.loops.zeros import drop_pads
from symad.numeric.passes.memory_layout.pads import join_pads
from symad.numeric.passes.rewriting import with_results
from symad.ops.arrays.stacking import Stack, concatenate, stack, take
from symad.ops.basic.shaping import Pad, Reshape, Slice, broadcast_to, reshape, slice_axes, slice_axis
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


def parts_of(op: Recurrence, args: Nodes) -> tuple[list[Node | None], Nodes, Nodes]:
    """The initial states (None means 0), the inputs of the steps, and the constants."""
    given = iter(args)
    initial = [None if zero else next(given) for zero in op.zeros]
    rest = tuple(given)
    return initial, rest[: op.slices], rest[op.slices :]


def steps_of(op: Recurrence, args: Nodes) -> Any:
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
    starts = [
        broadcast_to(constant(0), s) if a is None else a for a, s in zip(initial, shapes, strict=False)
    ]
    loop = Node.of(LoopValue(op.body, op.slices, op.k, op.states), (*starts, *xs, *constants))
    return before_steps(loop) if op.before else loop


def before_steps(loop: Node) -> Node:
    """The value of a state before every step of its loop."""
    op = op_of(loop, LoopValue)
    start = pieces(op, loop.args)[0][op.k]
    rest = slice_axis(loop, 0, 0, plus(loop.shape[0], -1))
    return concatenate([reshape(start, (1, *start.shape)), rest])


def is_known(node: Node) -> bool:
    """Whether all sizes are numbers."""
    return is_concrete(node.shape)


# ---- stacks as separate arrays -------------------------------------------------------------------

# The state of an LSTM is (h, c); each row of h and of c is a row of a separate state.


MAX_PARTS = 4
"""The most arrays in a stack that become separate states.

Origin: not recorded; not measured on a device.
"""


def apart(group: Sequence[Node]) -> dict[Node, Node]:
    """The replacements of the values of a loop whose states and results are stacks, by stacks of values.

    Raises:
        NotByRows: a state is not a stack of a few arrays.
    """
    op = op_of(group[0], LoopValue)
    outputs, args = op.body.output_nodes, group[0].args
    counts = _counts(op)
    initial, xs, constants = pieces(op, args)
    starts = [take(a, 0, j) for a, count in zip(initial, counts, strict=False) for j in range(count)]
    states = sum(counts[: op.states])
    local, replaced = _locals(op, starts, counts)
    bodies = rebuild(outputs, replaced)
    parts = [
        take(body, 0, j) if count else body
        for body, count in zip(bodies, counts, strict=True)
        for j in range(count or 1)
    ]
    body = Graph(local, tuple(parts))
    given = (*starts, *xs, *constants)
    first = [sum(count or 1 for count in counts[:k]) for k in range(len(counts))]
    made: dict[Node, Node] = {}
    for k, count in enumerate(counts):
        values = [Node.of(LoopValue(body, op.slices, first[k] + j, states), given) for j in range(count or 1)]
        old = Node.of(LoopValue(op.body, op.slices, k, op.states), args)
        made[old] = stack(values, 1) if count else values[0]
        if k < op.states and old.shape[0] != 0:
            made[before_steps(old)] = stack([before_steps(value) for value in values], 1)
    return made


def _counts(op: LoopValue) -> list[int]:
    """The number of arrays in the stack of each value of a loop; 0 for a value that is not split."""
    outputs = op.body.output_nodes
    counts = [_count(o) if len(o.shape) == len(outputs[0].shape) else 0 for o in outputs]
    if not all(counts[: op.states]):
        raise NotByRows("a state that is not a stack")
    return counts


def _count(output: Node) -> int:
    """The number of arrays in a stack; 0 for a value that is not split."""
    size = output.shape[0] if len(output.shape) > 1 else 0
    return size if isinstance(size, int) and 1 <= size <= MAX_PARTS else 0


def _locals(op: LoopValue, starts: Sequence[Node], counts: Sequence[int]) -> tuple[Nodes, dict[Node, Node]]:
    """The inputs of the new body, and the replacements of the old body's inputs."""
    old = pieces(op, op.body.input_nodes)
    shapes = [s.shape for s in starts] + [here.shape for here in (*old[1], *old[2])]
    local = tuple(Node.of(Local(k, shape)) for k, shape in enumerate(shapes))
    given, replaced = iter(local), {}
    for here, count in zip(old[0], counts, strict=False):
        replaced[here] = stack([next(given) for _ in range(count)])
    replaced |= dict(zip((*old[1], *old[2]), given, strict=True))
    return local, replaced


def spread(group: Sequence[Node]) -> dict[Node, Node]:
    """The replacements of the values of a loop that reads stacks: the new loop reads the stacked arrays.

    An array whose elements are one known number is replaced by the number.
    """
    op = op_of(group[0], LoopValue)
    initial, xs, constants = pieces(op, group[0].args)
    old = pieces(op, op.body.input_nodes)
    moving: list[Node] = []
    inside: list[list[int] | float] = []
    for k, x in enumerate(xs):
        number, last = filled(x), k == len(xs) - 1 and not moving  # one must remain, to count the steps
        if isinstance(number, (int, float)) and not last:
            inside.append(number)
            continue
        arrays = x.args if isinstance(x.op, Stack) and x.op.axis else (x,)
        inside.append([*range(len(moving), len(moving) + len(arrays))])
        moving += arrays
    if tuple(moving) == xs:
        return {}
    given = (*initial, *moving, *constants)
    shapes = [a.shape for a in (*initial, *moving, *constants)]
    shapes[op.states : op.states + len(moving)] = [x.shape[1:] for x in moving]
    local = tuple(Node.of(Local(k, shape)) for k, shape in enumerate(shapes))
    same = (*local[: op.states], *local[op.states + len(moving) :])
    replaced = dict(zip((*old[0], *old[2]), same, strict=True))
    for here, x, places in zip(old[1], xs, inside, strict=True):
        if not isinstance(places, list):
            replaced[here] = broadcast_to(constant(places), here.shape)
            continue
        parts_ = [local[op.states + place] for place in places]
        stacked = parts_[0].shape != here.shape
        replaced[here] = stack(parts_, op_of(x, Stack).axis - 1) if stacked else parts_[0]
    body = Graph(local, rebuild(op.body.output_nodes, replaced))
    numbers = range(len(op.body.output_nodes))
    loops = [Node.of(LoopValue(op.body, op.slices, k, op.states), group[0].args) for k in numbers]
    made = {o: Node.of(LoopValue(body, len(moving), k, op.states), given) for k, o in enumerate(loops)}
    return made | {before_steps(o): before_steps(made[o]) for o in loops[: op.states] if o.shape[0] != 0}


def open_stacks(outputs: Sequence[Node]) -> Nodes:
    """The outputs, with slices of stacks as slices of the stacked arrays."""
    return rebuild(outputs, {}, _opened)


def _opened(node: Node, args: Nodes) -> Node:
    made = node.over(args)
    if not isinstance(made.op, Slice) or not isinstance(args[0].op, Stack):
        return _unthinned(made)
    op, (whole,) = made.op, args
    axis = op_of(whole, Stack).axis
    if not isinstance(op.start[axis], int) or not isinstance(op.count[axis], int):
        return made
    rest = [k for k in range(len(op.start)) if k != axis]
    rows = [op.start[axis] + j * op.step[axis] for j in range(op.count[axis])]
    pieces_ = [
        slice_axes(whole.args[r], *(tuple(field[k] for k in rest) for field in (op.start, op.count, op.step)))
        for r in rows
    ]
    return stack(pieces_, axis)


def _unthinned(node: Node) -> Node:
    """The array itself for a stack of one array that is reshaped back; else the node."""
    if isinstance(node.op, Reshape) and isinstance(node.args[0].op, Stack) and len(node.args[0].args) == 1:
        return reshape(node.args[0].args[0], node.shape)
    return node


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
    return join_pads(with_results(graph, open_stacks(outputs)))


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
    fewer = spread(groups[0])
    if fewer:
        return rebuild(outputs, fewer)
    integers = needed_as_integers(outputs, None)
    try:
        return rebuild(outputs, _replaced(groups[0], set(order), integers))
    except NotByRows:
        return open_stacks(rebuild(outputs, apart(groups[0])))  # the loop has more states now: try again


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
