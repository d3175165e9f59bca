"""A recurrence whose cotangent enters at the last state alone starts from that cotangent.

    u_t = f_t(ȳ_t + u_{t+1}),   ȳ_t = 0 for t < T,   u_{T+1} = 0

is the recurrence u_t = f_t(u_{t+1}) from u_{T+1} = ȳ_T, without an array of zeros that is read at every step.
"""

from __future__ import annotations

from symad.core.dims import plus, same_dim, same_shape
from symad.core.graph import Graph, Node, rebuild
from symad.core.questions import Nodes
from symad.higher_order.scan import Local, Scan, backwards
from symad.numeric.passes.loop import LoopValue, pieces, with_body
from symad.numeric.passes.rewriting import rewrite
from symad.ops.basic.arithmetic import Add
from symad.ops.basic.shaping import Broadcast, Pad, Reshape, broadcast_to, pad, reshape
from symad.ops.basic.sources import constant_value, fresh_input


def start_from_last_step(graph: Graph) -> Graph:
    """The graph with such recurrences started from the cotangent of the last state."""
    return rewrite(graph, _started, Scan, LoopValue)


def _started(node: Node, args: Nodes) -> Node | None:
    op = node.op
    if not isinstance(op, (Scan, LoopValue)) or (isinstance(op, LoopValue) and op.states != 1):
        return None
    (initial,), xs, constants = pieces(op, args)
    if len(xs) < 2 or not _is_zero(initial):  # one array must remain: it gives the number of steps
        return None
    for k, x in enumerate(xs):
        seed = _last_alone(x)
        body = _without(op, k) if seed is not None else None
        if seed is not None and body is not None:
            start = broadcast_to(seed, initial.shape)
            return Node.of(with_body(op, body, op.slices - 1), (start, *xs[:k], *xs[k + 1 :], *constants))
    return None


def _is_zero(node: Node) -> bool:
    return isinstance(node.op, Broadcast) and constant_value(node.args[0]) == 0


def _last_alone(x: Node) -> Node | None:
    """The last step of an array that is zero at all other steps, and is read backwards; None otherwise."""
    turned = backwards(x)
    if not x.args or turned is not x.args[0]:
        return None
    return _last_row(turned)


def _last_row(x: Node) -> Node | None:
    """The last row of an array whose other rows are zero by construction; None for other arrays."""
    if not x.args or not x.shape:
        return None
    (value,) = x.args[:1]
    op = x.op
    if isinstance(op, Reshape) and value.shape and same_dim(value.shape[0], x.shape[0]):
        inner = _last_row(value)
        return reshape(inner, x.shape[1:]) if inner is not None else None
    if not isinstance(op, Pad):
        return None
    if value.shape[0] == 1 and op.step[0] == 1 and same_dim(op.start[0], plus(x.shape[0], -1)):
        row: Node | None = reshape(value, value.shape[1:])
    elif op.start[0] == 0 and op.step[0] == 1 and same_dim(value.shape[0], x.shape[0]):
        row = _last_row(value)
    else:
        return None
    if row is None or same_shape(row.shape, x.shape[1:]):
        return row
    return pad(row, op.start[1:], x.shape[1:], op.step[1:])


def _without(op: Scan | LoopValue, k: int) -> Graph | None:
    """The body with state + x_k as its state, if neither is read anywhere else; None otherwise."""
    body = op.body
    state, x = body.input_nodes[0], body.input_nodes[1 + k]
    order = body.nodes
    users = [node for node in order if state in node.args or x in node.args]
    if len(users) != 1 or state in body.output_nodes or x in body.output_nodes:
        return None
    (sum_,) = users
    if not isinstance(sum_.op, Add) or sum_.op.signs != (1,) * len(sum_.args) or len(sum_.args) != 2:
        return None
    fresh = [fresh_input(node.shape) for node in body.input_nodes]
    moved = rebuild(body, {**dict(zip(body.input_nodes, fresh, strict=True)), sum_: fresh[0]})
    kept = [node for j, node in enumerate(fresh) if j != 1 + k]
    local = [Node.of(Local(j, node.shape)) for j, node in enumerate(kept)]
    return Graph(tuple(local), rebuild(moved, dict(zip(kept, local, strict=True))))
