"""Loops over time that become one kernel each: a pass from graph to graph.

Values of a step are kept instead of computed again, elementwise work for all steps moves into the loop that
reads it, and the parts of its state become states. A loop stays unchanged if rows of its state depend on each
other, or if a step has an op that the kernel does not support.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.graph import Graph, Node, op_of, rebuild, topological
from symad.gpu.known_numbers import filled
from symad.gpu.passes.integers import needed_as_integers
from symad.gpu.recurrences.elements import NotByRows
from symad.gpu.recurrences.parts import apart, open_stacks, spread
from symad.gpu.recurrences.recurrence import Recurrence, before_steps
from symad.gpu.recurrences.step import step_of
from symad.higher_order.scan import Scan, backwards
from symad.numeric.passes import expand, keep, prepare
from symad.numeric.passes.loop import LoopValue, by_loop, pieces
from symad.numeric.passes.loops.sink_into_loop import sink
from symad.numeric.passes.memory_layout.cancel_pads import drop_pads
from symad.numeric.passes.memory_layout.joined_pads import join_pads
from symad.numeric.passes.rewriting import with_results
from symad.ops.basic.shaping import Pad
from symad.ops.basic.sources import Iota


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
