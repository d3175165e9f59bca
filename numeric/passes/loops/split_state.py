"""The parts of a loop's state become states of their own.

The state of an LSTM is a stack (h, c), which every step takes apart and puts together again. With a state
for each part, a step reads and writes separate arrays, and a later reader of h at all steps does not keep c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from symad.core.contents import holds, readers
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
        found = apart(group, users, set(outputs))
        if found:
            return rebuild(outputs, found)
    return None


def apart(
    group: Sequence[Node], users: Users, kept: set[Node], always: bool = False
) -> dict[Node, Node] | None:
    """The replacements of a loop's values and of parts of its states; None if a reader needs all parts.

    If ``always``, such readers get a stack of the parts, and kept values with as many axes have parts, too.
    """
    op, args = loop_of(group[0]), group[0].args
    states, xs, constants = pieces(op, args)
    found = _all_parts(op, len(states), always)
    if found is None:
        return None
    body, moving = _body(op, found, xs)
    initial = [
        take(a, 0, k) for a, parts in zip(states, found, strict=False) for k in range(len(parts or ()))
    ]
    given = (*initial, *moving, *constants)
    every = [
        Node.of(LoopValue(body, op.slices, k, len(initial)), given) for k in range(len(body.output_nodes))
    ]
    first = [0, *accumulate(len(parts or (None,)) for parts in found)]
    made: dict[Node, Node] = {}
    for value in group:
        k = op_of(value, LoopValue).k
        own = every[first[k] : first[k + 1]]
        replaced = _by_parts(value, own, users, kept, always) if found[k] else {value: own[0]}
        if replaced is None:
            return None
        made |= replaced
    return made


def _all_parts(op: LoopOp, states: int, always: bool) -> list[Nodes | None] | None:
    """The parts of each value of a loop (None: it stays one array); None if a state has no parts."""
    outputs = op.body.output_nodes
    found = [_parts(o) or (_rows(o) if always else None) for o in outputs[:states]]
    if None in found or not (always or _reads_parts(op.body)):
        return None
    rank = len(outputs[0].shape)
    return found + [_rows(o) if always and len(o.shape) == rank else None for o in outputs[states:]]


def _by_parts(
    value: Node, own: Sequence[Node], users: Users, kept: set[Node], always: bool
) -> dict[Node, Node] | None:
    """The replacements of a value and of its readers; None if one needs all parts, and not ``always``."""
    reading = users.get(value, [])
    found = [_of_parts(user, value, own, users) for user in reading]
    together = value in kept or None in found or not kept.isdisjoint(reading)
    if together and not always:
        return None
    made = _stacked(value, own) if together else {}
    for part in found:
        made |= part or {}
    return made


def _stacked(value: Node, own: Sequence[Node]) -> dict[Node, Node]:
    """A value of a loop, and its state before the steps, as stacks of the parts."""
    made = {value: stack(own, 1)}
    op = op_of(value, LoopValue)
    if op.k < op.states:
        made[before_steps(value)] = stack(list(map(before_steps, own)), 1)
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


MAX_ROWS = 4
"""The most rows of an array that is no stack which become separate states.

Origin: not recorded; not measured on a device.
"""


def _rows(array: Node) -> Nodes | None:
    """The rows of a value; None if there are not a few."""
    count = array.shape[0] if len(array.shape) > 1 else 0
    few = isinstance(count, int) and 1 <= count <= MAX_ROWS
    return tuple([take(array, 0, k) for k in range(count)]) if few else None


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
    """Whether a body reads only single parts of its only state."""
    state = body.input_nodes[0]
    return state not in body.output_nodes and all(
        _part(node, 0) is not None for node in body.nodes if state in node.args
    )


def _of_parts(user: Node, value: Node, states: Sequence[Node], users: Users) -> dict[Node, Node] | None:
    """The replacement of a reader of all states, or of its readers; None if one needs all parts together."""
    k = _part(user, 1)
    if k is not None:
        return _reshaped(user, states[k], users)
    if _part(user, 0) is not None:  # a single step: copying its parts costs almost nothing
        at = [slice_axis(state, 0, op_of(user, Slice).start[0], 1) for state in states]
        return {user: stack(at, axis=1)}
    joined, *others = users.get(user) or [user]
    op = op_of(value, LoopValue)
    before = before_steps(value) if op.k < op.states else None
    if others or joined is not before or not isinstance(joined.op, Concatenate):
        return None
    made: dict[Node, Node] = {}
    for reader in users.get(joined, []):
        k = _part(reader, 1)
        if k is None:
            return None
        made |= _reshaped(reader, before_steps(states[k]), users)
    return made


def _reshaped(node: Node, array: Node, users: Users) -> dict[Node, Node]:
    """An array in place of a node and of its reshapes."""
    shapes = [u for u in users.get(node, []) if isinstance(u.op, Reshape)]
    return {n: reshape(array, n.shape) for n in (node, *shapes)}


def before_steps(loop: Node) -> Node:
    """The value of a state before every step of its loop."""
    return previous_states(loop, op_of(loop, LoopValue).k)


def _body(op: LoopOp, found: Sequence[Nodes | None], xs: Nodes) -> tuple[Graph, Nodes]:
    """The body with a state for each part, and its moving inputs; leading axes of length 1 are dropped."""
    states, inputs, constants = pieces(op, op.body.input_nodes)
    moving = tuple(map(_without_first, xs))
    parts_of = dict(zip(states, found, strict=False))
    shapes = [part.shape for parts in parts_of.values() for part in parts or ()]
    shapes += [x.shape[1:] for x in moving] + [given.shape for given in constants]
    sources = [Node.of(Local(k, shape)) for k, shape in enumerate(shapes)]
    rest = iter(sources)
    own = {state: [next(rest) for _ in parts or ()] for state, parts in parts_of.items()}
    made = {state: stack(parts) for state, parts in own.items()}
    for given, source_ in zip((*inputs, *constants), rest, strict=True):
        made[given] = reshape(source_, given.shape)

    def better(node: Node, args: Nodes) -> Node:
        k = _part(node, 0) if not own.keys().isdisjoint(node.args) else None
        if k is not None:
            return reshape(own[node.args[0]][k], node.shape)
        if isinstance(node.op, Reshape):
            return _moved_inside(node, args[0])
        return node.over(args)

    wanted = [p for o, parts in zip(op.body.output_nodes, found, strict=True) for p in parts or (o,)]
    outputs = rebuild(tuple(wanted), made, better)
    return Graph(tuple(sources), outputs), moving


def _moved_inside(node: Node, arg: Node) -> Node:
    """A reshaped array; for a sum or product of arrays of one shape, the op on reshaped operands."""
    same = isinstance(arg.op, ElementwiseOp) and all(a.shape in ((), arg.shape) for a in arg.args)
    if same and arg.shape == (1, *node.shape):
        return Node.of(arg.op, tuple(reshape(a, node.shape) if a.shape else a for a in arg.args))
    return reshape(arg, node.shape)


def _without_first(x: Node) -> Node:
    """The steps of an input, without their first axis if it is one of several and has length 1."""
    if len(x.shape) < 3 or x.shape[1] != 1:
        return x
    turned = isinstance(x.op, Slice) and backwards(x) is x.args[0]
    inner = x.args[0] if turned else x
    cut = reshape(inner, (x.shape[0], *x.shape[2:]))
    return backwards(cut) if turned else cut
