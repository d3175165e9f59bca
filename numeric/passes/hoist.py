"""Work that leaves the loops: parts of a scan's body that do not depend on its state.

What depends on constants only is computed once; what depends on the inputs of the steps is computed
for all steps at once, before the loop: T small products become one large one.
"""

from __future__ import annotations

from symad.batching import batch_outputs
from symad.graph import Graph, Node, rebuild, topological
from symad.ops.recurrence import Scan, backwards, close_scan, fresh_input, parts
from symad.questions import Nodes


def hoist(graph: Graph) -> Graph:
    """The graph with every scan's body reduced to what depends on its state."""
    if not any(isinstance(node.op, Scan) for node in topological(graph.output_nodes)):
        return graph
    made = rebuild(graph.output_nodes, {}, _hoisted)
    return Graph(graph.input_nodes, made, graph.structure, graph.name, graph.report)


def _hoisted(node: Node, args: Nodes) -> Node:
    if isinstance(node.op, Scan):
        return hoist_scan(node.op, args)
    return node if args == node.args else Node.of(node.op, args)


def hoist_scan(op: Scan, args: Nodes) -> Node:
    """One scan with its independent parts outside."""
    initial, xs, constants = parts(op, args)
    if op.body.input_nodes[0] not in topological(op.body.output_nodes):
        return Node.of(op, args)  # steps that need no state: a loop that is there to save memory
    once, always = _independent(op)
    if not once and not always:
        return Node.of(op, args)
    local = op.body.input_nodes
    outer = dict(zip(local[1 + op.slices :], constants, strict=True))
    before = rebuild(once, outer)
    per_step = rebuild(always, outer)
    # Of a loop from the last step to the first, in the order of time: those are often known already.
    turned = any(backwards(x) is x.args[0] for x in xs if x.args)
    in_order = [backwards(x) if turned else x for x in xs]
    moving = dict(zip(local[1 : 1 + op.slices], in_order, strict=True))
    at_all_steps = batch_outputs(per_step, moving, xs[0].shape[0])
    if turned:
        at_all_steps = tuple(backwards(x) for x in at_all_steps)
    fresh = [fresh_input(initial.shape), *(fresh_input(x.shape[1:]) for x in (*xs, *at_all_steps))]
    replaced = dict(zip(local[: 1 + op.slices], fresh, strict=False))
    replaced |= outer
    replaced |= dict(zip(once, before, strict=True))
    replaced |= dict(zip(always, fresh[1 + op.slices :], strict=True))
    (output,) = rebuild(op.body.output_nodes, replaced)
    return close_scan(fresh, output, initial, (*xs, *at_all_steps))


def _independent(op: Scan) -> tuple[list[Node], list[Node]]:
    """The largest parts of the body that need only constants, and those that need only inputs."""
    order = topological(op.body.output_nodes)
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
