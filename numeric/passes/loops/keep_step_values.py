"""Values that the steps of a scan compute are kept, not computed again for all steps at once.

Derivatives need values of the body at every step. They are written as the body applied to all states, which
is right but repeats the work of the loop. This pass finds every such array that equals a value of the body,
and lets the loop store it instead.
"""

from __future__ import annotations

from symad.core.graph import Graph, Node, op_of, rebuild, topological
from symad.core.questions import Nodes
from symad.higher_order.scan import Scan, backwards, parts, previous_states
from symad.numeric.passes.loop import LoopValue, has_loops
from symad.numeric.passes.loops.hoist import hoist_nodes
from symad.numeric.passes.rewriting import with_results
from symad.ops.arrays.stacking import Stack, take
from symad.ops.basic.shaping import Reshape, Slice
from symad.transforms.batches import batch_outputs


def keep(graph: Graph) -> Graph:
    """The graph with scans as loops that keep the values read elsewhere.

    Loops are treated from the last to the first, and independent parts move out of each loop at once:
    a part that leaves a backward loop often equals a value that the forward loop has computed.
    """
    if not has_loops(graph, (Scan,)):
        return graph
    outputs = graph.output_nodes
    while True:
        order = topological(outputs)
        scans = [node for node in order if isinstance(node.op, Scan)]
        if not scans:
            return with_results(graph, outputs)
        outputs = hoist_nodes(rebuild(outputs, _kept(scans[-1], outputs, set(order))), (LoopValue,))


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
