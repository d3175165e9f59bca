"""The parts of a loop's state become states of their own.

The state of an LSTM is a stack (h, c), which every step takes apart and puts together again. With a state
for each part, a step reads and writes separate arrays, and a later reader of h at all steps does not keep c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symad.core.contents import holds, readers
from symad.core.dims import plus
from symad.core.graph import Graph, Node, op_of, rebuild, topological
from symad.core.questions import Nodes
from symad.higher_order.scan import Local, LoopOp, backwards, previous_states
from symad.numeric.passes.bodies import LoopValue, by_loop, loop_of, pieces
from symad.numeric.passes.memory_layout.pads import boxes, source
from symad.numeric.passes.rewriting import with_results
from symad.ops.arrays.stacking import Concatenate, Stack, stack, take
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.shaping import Reshape, Slice, reshape, slice_axis

Users = Mapping[Node, Sequence[Node]]


def in_parts(graph: Graph) -> Graph:
    """The graph with states split into parts, where nothing reads all parts together."""
    if not holds(graph, LoopOp):
        return graph
    outputs = graph.output_nodes
    while (made := _one(outputs)) is not None:
        outputs = made
    return with_results(graph, outputs)


def _one(outputs: Nodes) -> Nodes | None:
    """The outputs with one loop changed; None if no loop can be changed."""
    order = topological(outputs)
    users = readers(order)
    loops = [n for n in order if isinstance(n.op, LoopValue) and n.op.states == 1]
    for group in by_loop(loops):
        found = _changed(group, users, set(outputs))
        if found:
            return rebuild(outputs, found)
    return None


def _changed(group: Sequence[Node], users: Users, kept: set[Node]) -> dict[Node, Node] | None:
    """The replacements of a loop's values and of parts of its state; None if a reader needs all parts."""
    op = loop_of(group[0])
    args = group[0].args
    parts = _parts(op.body.output_nodes[0])
    if not parts or not _reads_parts(op.body):
        return None
    n = len(parts)
    body, xs = _body(op.body, op.slices, parts, pieces(op, args)[1])
    initial = [take(args[0], 0, k) for k in range(n)]
    new = (*initial, *xs, *pieces(op, args)[2])
    states = [Node.of(LoopValue(body, op.slices, k, n), new) for k in range(n)]
    made: dict[Node, Node] = {}
    for value in group:
        if op_of(value, LoopValue).k:
            made[value] = Node.of(LoopValue(body, op.slices, op_of(value, LoopValue).k + n - 1, n), new)
            continue
        if value in kept:
            return None
        for user in users.get(value, []):
            found = _of_parts(user, value, states, users)
            if found is None or user in kept:
                return None
            made |= found
    return made


def _parts(state: Node) -> Nodes | None:
    """The arrays that are stacked to the new state; None if it is not a stack along the first axis."""
    if isinstance(state.op, Stack) and state.op.axis == 0 and state.args[0].shape:
        return state.args
    found = boxes(state)
    if found is None or len(state.shape) < 2 or len(found) != state.shape[0]:
        return None
    rest = tuple((0, d) for d in state.shape[1:])
    inner = {box[0][0]: source(pad) for pad, box in found.items() if box[1:] == rest}
    if sorted(inner) != [*range(len(found))] or any(axes != {0} for _, axes in inner.values()):
        return None
    return tuple(inner[k][0] for k in range(len(found)))


def _part(node: Node, axis: int) -> int | None:
    """The position along an axis that a slice takes alone, with everything of the other axes; None if not."""
    op = node.op
    if not isinstance(op, Slice) or op.count[axis] != 1 or not isinstance(op.start[axis], int):
        return None
    whole = node.args[0].shape
    rest = [k for k in range(len(whole)) if k != axis]
    same = all(op.step[k] == 1 and op.count[k] == whole[k] and op.start[k] == 0 for k in rest)
    return op.start[axis] if same else None


def _reads_parts(body: Graph) -> bool:
    """Whether a body reads only single parts of its state."""
    state = body.input_nodes[0]
    order = body.nodes
    return state not in body.output_nodes and all(_part(n, 0) is not None for n in order if state in n.args)


def _of_parts(user: Node, value: Node, states: Sequence[Node], users: Users) -> dict[Node, Node] | None:
    """The replacement of a reader of all states, or of its readers; None if one needs all parts together."""
    k = _part(user, 1)
    if k is not None:
        return _reshaped(user, states[k], users)
    if _part(user, 0) is not None:  # a single step: copying its parts costs almost nothing
        at = [slice_axis(state, 0, op_of(user, Slice).start[0], 1) for state in states]
        return {user: stack(at, axis=1)}
    joined, *others = users.get(user) or [user]
    before = previous_states(value)
    if others or joined is not before or not isinstance(joined.op, Concatenate):
        return None
    made: dict[Node, Node] = {}
    for reader in users.get(joined, []):
        k = _part(reader, 1)
        if k is None:
            return None
        made |= _reshaped(reader, _before(states[k], k), users)
    return made


def _reshaped(node: Node, array: Node, users: Users) -> dict[Node, Node]:
    """An array in place of a node and of its reshapes."""
    shapes = [u for u in users.get(node, []) if isinstance(u.op, Reshape)]
    return {n: reshape(array, n.shape) for n in (node, *shapes)}


def _before(state: Node, k: int) -> Node:
    """The states, each one step earlier."""
    first = reshape(state.args[k], (1, *state.shape[1:]))
    return Node.of(Concatenate(0), (first, slice_axis(state, 0, 0, plus(state.shape[0], -1))))


def _body(body: Graph, slices: int, parts: Nodes, xs: Nodes) -> tuple[Graph, Nodes]:
    """The body with a state for each part, and its moving inputs; leading axes of length 1 are dropped."""
    n = len(parts)
    local = body.input_nodes
    thin = [len(x.shape) > 2 and x.shape[1] == 1 for x in xs]
    shapes = [p.shape for p in parts]
    shapes += [x.shape[2:] if cut else x.shape[1:] for x, cut in zip(xs, thin, strict=True)]
    shapes += [given.shape for given in local[1 + slices :]]
    sources = [Node.of(Local(k, shape)) for k, shape in enumerate(shapes)]
    made = {}
    for given, source_ in zip(local[1:], sources[n:], strict=True):
        made[given] = reshape(source_, given.shape)

    def better(node: Node, args: Nodes) -> Node:
        if local[0] in node.args:
            k = _part(node, 0)
            return reshape(sources[k or 0], node.shape)
        if isinstance(node.op, Reshape):
            return _moved_inside(node, args[0])
        return node.over(args)

    made[local[0]] = local[0]
    outputs = rebuild((*parts, *body.output_nodes[1:]), made, better)
    moving = tuple(_without_first(x) if cut else x for x, cut in zip(xs, thin, strict=True))
    return Graph(tuple(sources), outputs), moving


def _moved_inside(node: Node, arg: Node) -> Node:
    """A reshaped array; for a sum or product of arrays of one shape, the op on reshaped operands."""
    same = isinstance(arg.op, ElementwiseOp) and all(a.shape in ((), arg.shape) for a in arg.args)
    if same and arg.shape == (1, *node.shape):
        return Node.of(arg.op, tuple(reshape(a, node.shape) if a.shape else a for a in arg.args))
    return reshape(arg, node.shape)


def _without_first(x: Node) -> Node:
    """The steps of an input without their first axis, which has length 1."""
    turned = isinstance(x.op, Slice) and backwards(x) is x.args[0]
    inner = x.args[0] if turned else x
    cut = reshape(inner, (x.shape[0], *x.shape[2:]))
    return backwards(cut) if turned else cut
