"""Work that leaves loops: parts that do not depend on the state, and values that need no second computation.

Parts of a scan's body that depend on constants only are computed once. Parts that depend on the inputs of the
steps are computed for all steps at once before the loop, so that T small products become one large one.

Derivatives need values of the body at every step. They are written as the body applied to all states, which
is right but repeats the work of the loop. `keep` finds every such array that equals a value of the body, and
lets the loop store it instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from symad.core.contents import holds
from symad.core.graph import Graph, Node, op_of, rebuild, topological
from symad.core.questions import Nodes
from symad.higher_order.scan import LoopOp, Scan, backwards, closed, parts, previous_states
from symad.numeric.passes.bodies import LoopValue, with_body
from symad.numeric.passes.rewriting import with_results
from symad.ops.arrays.stacking import Stack, take
from symad.ops.basic.arithmetic import Add, Mul, signed_product, signed_sum
from symad.ops.basic.shaping import Reshape, Slice
from symad.ops.basic.sources import fresh_input
from symad.transforms.batches import batch_outputs


def hoist(graph: Graph) -> Graph:
    """The graph with every scan's body reduced to what depends on its state."""
    if not holds(graph, LoopOp):
        return graph
    return with_results(graph, hoist_nodes(graph.output_nodes))


def hoist_nodes(outputs: Nodes, kind: type[LoopOp] = LoopOp) -> Nodes:
    """The nodes with the bodies of one kind of loops reduced to what depends on their state."""
    if not any(isinstance(node.op, kind) for node in topological(outputs)):
        return outputs
    done: dict[tuple[Graph, Nodes], tuple[Graph, int, Nodes]] = {}

    def hoisted(node: Node, args: Nodes) -> Node | None:
        op = node.op
        if not isinstance(op, kind):
            return None
        if (op.body, args) not in done:
            done[op.body, args] = hoist_scan(Scan(op.body, op.slices), args)
        body, slices, outer = done[op.body, args]
        return Node.of(with_body(op, body, slices), outer)

    return rebuild(outputs, {}, hoisted)


def hoist_scan(op: Scan, args: Nodes) -> tuple[Graph, int, Nodes]:
    """The body, number of inputs and arguments of a scan after its independent parts have moved out."""
    initial, xs, constants = parts(op, args)
    op = Scan(regrouped(op.body), op.slices)
    if op.body.input_nodes[0] not in op.body.nodes:
        return op.body, op.slices, args  # no step needs the state: the loop exists to save memory
    once, always = _independent(op)
    if not once and not always:
        return op.body, op.slices, args
    local = op.body.input_nodes
    outer = dict(zip(local[1 + op.slices :], constants, strict=True))
    before = rebuild(once, outer)
    # The inputs of a loop that runs backwards are computed in the order of time: often they exist already.
    turned = any(backwards(x) is x.args[0] for x in xs if x.args)
    in_order = [backwards(x) if turned else x for x in xs]
    moving = dict(zip(local[1 : 1 + op.slices], in_order, strict=True))
    at_all_steps = batch_outputs(always, moving, xs[0].shape[0], outer)
    if turned:
        at_all_steps = tuple(backwards(x) for x in at_all_steps)
    fresh = [fresh_input(initial.shape), *(fresh_input(x.shape[1:]) for x in (*xs, *at_all_steps))]
    replaced = dict(zip(local[: 1 + op.slices], fresh, strict=False))
    replaced |= outer
    replaced |= dict(zip(once, before, strict=True))
    replaced |= dict(zip(always, fresh[1 + op.slices :], strict=True))
    outputs = rebuild(op.body, replaced)
    return closed(fresh, outputs, initial, (*xs, *at_all_steps))


def regrouped(body: Graph) -> Graph:
    """The body with sums and products in two groups: operands independent of the state are combined first.

    (s·x)·y becomes s·(x·y), and (s + x) + b becomes s + (x + b).
    """
    order = body.nodes
    users = Counter(a for node in order for a in set(node.args))
    users.update(body.output_nodes)
    state = {body.input_nodes[0]}
    for node in order:
        if any(a in state for a in node.args):
            state.add(node)
    known: set[Node] = {body.input_nodes[0]}

    def group(node: Node, args: Nodes) -> Node:
        single = [users[a] == 1 for a in node.args]
        made = node.over(args)
        if node in state:
            if isinstance(node.op, (Add, Mul)):
                made = _two_groups(made, single, known)
            known.add(made)
        return made

    return Graph(body.input_nodes, rebuild(body, {}, group))


def _weights(op: Add | Mul) -> tuple[int, ...]:
    return op.signs if isinstance(op, Add) else op.powers


def _two_groups(node: Node, single: Sequence[bool], state: set[Node]) -> Node:
    op = node.op
    assert isinstance(op, (Add, Mul)), node
    flat: list[tuple[int, Node]] = []
    for weight, arg, alone in zip(_weights(op), node.args, single, strict=True):
        inner, same = arg.op, type(arg.op) is type(op)
        if alone and isinstance(inner, (Add, Mul)) and same and arg.shape == node.shape and arg in state:
            flat += [(weight * w, a) for w, a in zip(_weights(inner), arg.args, strict=True)]
        else:
            flat.append((weight, arg))
    moving = [(w, a) for w, a in flat if a in state]
    steady = [(w, a) for w, a in flat if a not in state]
    if not moving or not [a for _, a in steady if a.shape] or len(steady) < 2:
        return node
    join = signed_sum if isinstance(op, Add) else signed_product
    return join([*moving, (1, join(steady))])


def _independent(op: Scan) -> tuple[list[Node], list[Node]]:
    """The largest parts of the body that depend on constants only, and those that depend on inputs only."""
    order = op.body.nodes
    state = {op.body.input_nodes[0]}
    moving = set(op.body.input_nodes[1 : 1 + op.slices])
    for node in order:
        if any(a in state for a in node.args):
            state.add(node)
        elif any(a in moving for a in node.args):
            moving.add(node)
    once: dict[Node, None] = {}
    always: dict[Node, None] = {}
    users = [*(node for node in order if node in state)]
    needed = [a for node in users for a in node.args if a not in state and a.args]
    needed += [o for o in op.body.output_nodes if o not in state and o.args]
    for node in needed:
        (always if node in moving else once)[node] = None
    return list(once), list(always)


# ---- values that are kept ------------------------------------------------------------------------


def keep(graph: Graph) -> Graph:
    """The graph with scans as loops that keep the values read elsewhere.

    Loops are treated from the last to the first, and independent parts move out of each loop at once:
    a part that leaves a backward loop often equals a value that the forward loop has computed.
    """
    if not holds(graph, Scan):
        return graph
    outputs = graph.output_nodes
    while True:
        order = topological(outputs)
        scans = [node for node in order if isinstance(node.op, Scan)]
        if not scans:
            return with_results(graph, outputs)
        outputs = hoist_nodes(rebuild(outputs, _kept(scans[-1], outputs, set(order))), LoopValue)


def _kept(node: Node, outputs: Nodes, known: set[Node]) -> dict[Node, Node]:
    """A scan, and the arrays that equal values of its steps, as values of one loop."""
    op = op_of(node, Scan)
    steps = {array: inner for inner, array in at_all_steps(node).items() if array in known}
    new = op.body.output_nodes[0]
    own = {part: k for k, part in enumerate(new.args)} if isinstance(new.op, Stack) else {}
    used = _used_outside(set(steps), outputs)
    wanted = {array: inner for array, inner in steps.items() if array in used and not _is_view(inner)}
    states = {array: own.pop(inner) for array, inner in wanted.items() if inner in own}
    wanted = {array: inner for array, inner in wanted.items() if array not in states}
    body = Graph(op.body.input_nodes, (*op.body.output_nodes, *dict.fromkeys(wanted.values())))
    place = {inner: k + 1 for k, inner in enumerate(dict.fromkeys(wanted.values()))}
    turned = _turned(node)
    made = {node: Node.of(LoopValue(body, op.slices, 0), node.args)}
    for array, k in states.items():
        part = take(made[node], 1 + op_of(new, Stack).axis, k)
        made[array] = backwards(part) if turned else part
    for array, inner in wanted.items():
        value = Node.of(LoopValue(body, op.slices, place[inner]), node.args)
        made[array] = backwards(value) if turned else value
    return made


def _used_outside(steps: set[Node], outputs: Nodes) -> set[Node]:
    """The arrays over all steps that other nodes read, directly or through views."""
    used = set(outputs)
    for node in reversed(topological(outputs)):
        if node not in steps or (_is_view(node) and node in used):
            used.update(node.args)
    return used


def _is_view(node: Node) -> bool:
    """Whether the array is a view, which costs nothing outside of the loop either."""
    return isinstance(node.op, (Slice, Reshape))


def at_all_steps(node: Node) -> dict[Node, Node]:
    """The values of the body that depend on the state, each with its array over all steps, in time order."""
    op = op_of(node, Scan)
    _, xs, constants = parts(op, node.args)
    local = op.body.input_nodes
    state = {local[0]}
    inner = []
    for n in op.body.nodes:
        if any(a in state for a in n.args):
            state.add(n)
            inner.append(n)
    moving = [previous_states(node), *xs]
    if _turned(node):
        moving = [backwards(x) for x in moving]
    outer = dict(zip(local[1 + op.slices :], constants, strict=True))
    arrays = batch_outputs(
        inner, dict(zip(local[: 1 + op.slices], moving, strict=True)), node.shape[0], outer
    )
    return dict(zip(inner, arrays, strict=True))


def _turned(node: Node) -> bool:
    """Whether a scan runs from the last step to the first."""
    op = op_of(node, Scan)
    _, xs, _ = parts(op, node.args)
    return any(x.args and backwards(x) is x.args[0] for x in xs)
