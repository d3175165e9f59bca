"""Loops read and write no zeros that are known: cotangents of the last state, and of parts of a state.

A recurrence whose cotangent enters at the last state alone starts from that cotangent:

    u_t = f_t(ȳ_t + u_{t+1}),   ȳ_t = 0 for t < T,   u_{T+1} = 0

is the recurrence u_t = f_t(u_{t+1}) from u_{T+1} = ȳ_T, without an array of zeros that is read at every step.

The cotangent of one part of a state is an array padded with zeros, which every step of a loop adds to the
state and slices again. `drop_pads` moves the padding into the steps, where a slice of a sum becomes the sum
of the slices, and the slice of a padded array becomes the array itself, or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.contents import readers
from symad.core.dims import plus, same_dim, same_shape
from symad.core.graph import Graph, Node, op_of, rebuild
from symad.core.questions import Nodes
from symad.higher_order.scan import Local, LoopOp, backwards
from symad.numeric.passes.bodies import pieces, with_body
from symad.numeric.passes.rewriting import rewrite
from symad.ops.basic.arithmetic import Add, signed_sum
from symad.ops.basic.shaping import Broadcast, Pad, Reshape, Slice, broadcast_to, pad, reshape
from symad.ops.basic.sources import constant_value, fresh_input

# ---- the last state ------------------------------------------------------------------------------

# The padding moves into the steps: a slice of a sum becomes the sum of the slices, and the slice of a
# padded array becomes the array itself, or nothing.


def start_from_last_step(graph: Graph) -> Graph:
    """The graph with such recurrences started from the cotangent of the last state."""
    return rewrite(graph, _started, LoopOp)


def _started(node: Node, args: Nodes) -> Node | None:
    op = node.op
    if not isinstance(op, LoopOp) or op.states != 1:
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
    return constant_value(node.args[0] if isinstance(node.op, Broadcast) else node) == 0


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


def _without(op: LoopOp, k: int) -> Graph | None:
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


def drop_pads(graph: Graph) -> Graph:
    """The graph with the padding of loop inputs moved into the loop, where slices remove it."""
    bodies: dict[tuple[Graph | Node | None, ...], Graph] = {}

    def better(node: Node, args: Nodes) -> Node | None:
        op = node.op
        if not isinstance(op, LoopOp):
            return None
        found = [_padded(x) if 0 < k <= op.slices else None for k, x in enumerate(args)]
        pads = [pair[0] if pair else None for pair in found]
        if not any(pads):
            return None
        key = (op.body, *pads)
        if key not in bodies:
            bodies[key] = _body(op.body, pads)
        args = tuple(pair[1] if pair else x for pair, x in zip(found, args, strict=True))
        return Node.of(with_body(op, bodies[key], op.slices), args)

    return rewrite(graph, better, LoopOp)


def _padded(x: Node) -> tuple[Node, Node] | None:
    """A padded array, in or against the order of time, and the array before padding in that order."""
    turned = isinstance(x.op, Slice) and not isinstance(x.args[0].op, Slice) and backwards(x.args[0]) is x
    outer = x.args[0] if turned else x
    if not isinstance(outer.op, Pad) or outer.args[0].shape[0] != outer.shape[0]:
        return None
    (inner,), turns = outer.args, turned ^ (outer.op.step[0] == -1)
    return outer, backwards(inner) if turns else inner


def _body(body: Graph, pads: Sequence[Node | None]) -> Graph:
    """The body with some inputs padded inside, and with slices of their sums as sums of slices."""
    sources, made = [], {}
    for k, (given, padded) in enumerate(zip(body.input_nodes, pads, strict=True)):
        sources.append(given)
        if padded is not None:
            op = op_of(padded, Pad)
            sources[-1] = Node.of(Local(k, padded.args[0].shape[1:]))
            made[given] = Node.of(Pad(op.start[1:], op.step[1:], op.shape[1:]), (sources[-1],))
    users = readers(body.nodes)
    whole = set(body.output_nodes)
    taken_apart = {n for n, u in users.items() if n not in whole and all(isinstance(x.op, Slice) for x in u)}

    def better(node: Node, args: Nodes) -> Node:
        if isinstance(node.op, Slice) and isinstance(args[0].op, Add) and node.args[0] in taken_apart:
            sliced = _sum_of_slices(node.op, args[0])
            if sliced is not None:
                return sliced
        return node.over(args)

    return Graph(tuple(sources), rebuild(body, made, better))


def _sum_of_slices(cut: Slice, total: Node) -> Node | None:
    """A slice of a sum with padded terms as a sum of slices; None if it cuts through a padded array."""
    op = op_of(total, Add)
    terms = []
    for sign, term in zip(op.signs, total.args, strict=True):
        if term.shape != total.shape:
            return None
        if not isinstance(term.op, Pad):
            terms.append((sign, Node.of(cut, (term,))))
            continue
        meets = _meeting(cut, term)
        if meets is None:
            return None
        if meets:
            terms.append((sign, term.args[0]))
    padded = any(isinstance(term.op, Pad) for term in total.args)
    return signed_sum(terms) if padded and terms else None


def _meeting(cut: Slice, outer: Node) -> bool | None:
    """True if a slice is exactly the array before padding, False if it has none of it, None otherwise."""
    op = op_of(outer, Pad)
    same = True
    for start, count, step, first, own, size in zip(
        cut.start, cut.count, cut.step, op.start, op.step, outer.args[0].shape, strict=True
    ):
        if (start, count, step, own) == (first, size, 1, 1):
            continue
        same = False
        known = all(isinstance(d, int) for d in (start, count, first, size)) and step == own == 1
        if known and (start + count <= first or first + size <= start):
            return False
    return True if same else None
