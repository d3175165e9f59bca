"""All gates of a cell by one tanh.

σ(u) = ½ + ½ tanh(u/2). Where pieces of one array z in a loop go through σ and tanh, the halves go into what
z is made of, outside of the loop; every step then takes one tanh of the whole array, which costs less than
half of the exponentials, and scales the pieces of σ. For single precision, where tanh is fast; gates are
right to the precision of numbers around 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import sympy

from symad.dims import Shape
from symad.graph import Graph, Node, Op, rebuild, shape, topological
from symad.numeric.passes.loop import Loop
from symad.ops.arithmetic import Add, mul, signed_sum
from symad.ops.contraction import Einsum
from symad.ops.elementwise import Apply
from symad.ops.recurrence import closed, fresh_input
from symad.ops.shaping import Broadcast, Slice, broadcast_to
from symad.ops.sources import constant
from symad.ops.stacking import Concatenate, concatenate
from symad.questions import Nodes
from symad.scalar_functions import sigmoid

Range = tuple[int, int]

SMALL = 2**16
"""Arrays up to this size may be scaled outside of a loop."""

MOST = 0.7
"""The part of z that the pieces must be."""


@dataclass(frozen=True, eq=False)
class Gates(Op):
    """tanh(z), and in some ranges of the first axis ½ + ½ tanh(z)."""

    ranges: tuple[Range, ...]


@shape(Gates)
def gates_shape(op: Gates, args: Nodes) -> Shape:
    """That of z."""
    return args[0].shape


def join_gates(graph: Graph) -> Graph:
    """The graph with such pieces in its loops joined."""
    users = _users(graph.output_nodes)
    plans: dict[tuple[Graph, Nodes], _Plan | None] = {}
    for node in graph.nodes:
        if isinstance(node.op, Loop) and (node.op.body, node.args) not in plans:
            plans[node.op.body, node.args] = _plan(node, users, graph.output_nodes)
    if not any(plans.values()):
        return graph
    done: dict[tuple[Graph, Nodes], Any] = {}

    def better(node: Node, args: Nodes) -> Node:
        op: Any = node.op
        plan = plans.get((op.body, node.args)) if isinstance(op, Loop) else None
        if plan is not None:
            if (op.body, args) not in done:
                done[op.body, args] = _joined(op.body, op.slices, args, plan)
            made = done[op.body, args]
            if made is not None:
                return _value(made, op.k, plan, op.body)
        return node if args == node.args else Node.of(op, args)

    made = rebuild(graph.output_nodes, {}, better)
    return Graph(graph.input_nodes, made, graph.structure, graph.name, graph.report)


@dataclass(frozen=True)
class _Plan:
    """The array z of a body, σ of all of it if that is there, the rows of σ, and σ or tanh of pieces."""

    z: Node
    whole: Node | None
    ranges: tuple[Range, ...]
    pieces: tuple[Node, ...]

    def shows(self, output: Node) -> bool:
        """Whether a value is part of what the joined gates are."""
        return output is self.whole or output in self.pieces


def _users(outputs: Nodes) -> dict[Node, list[Node]]:
    found: dict[Node, list[Node]] = {}
    for node in topological(outputs):
        for arg in dict.fromkeys(node.args):
            found.setdefault(arg, []).append(node)
    return found


def _plan(loop: Node, outside: dict[Node, list[Node]], results: Nodes) -> _Plan | None:
    """What can be joined in a loop's body; None if nothing."""
    op: Any = loop.op
    body: Graph = op.body
    users = _users(body.output_nodes)
    for z in topological(body.output_nodes):
        if not isinstance(z.op, Add) or len(z.shape) != 2 or z in body.output_nodes:
            continue
        whole = next((u for u in users[z] if _head(u) is sigmoid), None)
        cut = [u for u in users[z] if u is not whole]
        pieces = tuple(dict.fromkeys(v for u in cut for v in users.get(u, [])))
        heads = {_head(p) for p in pieces}
        if not heads <= {sigmoid, sympy.tanh} or any(u in body.output_nodes for u in cut):
            continue
        soft = [_rows(u, 0) for u in users.get(whole, [])] if whole else []
        for k, output in enumerate(body.output_nodes):
            if output is whole:
                value = Node.of(Loop(body, op.slices, k), loop.args)
                soft += [_rows(u, 1) for u in outside.get(value, [])] + [None] * (value in results)
        hard = [_rows(p.args[0], 0) for p in pieces if _head(p) is sympy.tanh]
        soft += [_rows(p.args[0], 0) for p in pieces if _head(p) is sigmoid]
        known, rest = [r for r in soft if r], [r for r in hard if r]
        apart = all(a[1] <= b[0] or b[1] <= a[0] for a in known for b in rest)
        covered = sum(stop - start for start, stop in _merged([*known, *rest]))
        complete = None not in (*soft, *hard) and isinstance(z.shape[0], int) and covered >= MOST * z.shape[0]
        plan = _Plan(z, whole, _merged(known), pieces)
        if known and apart and complete and not plan.shows(body.output_nodes[0]):
            return plan
    return None


def _head(node: Node) -> Any:
    return node.op.head if isinstance(node.op, Apply) else None


def _rows(node: Node, axis: int) -> Range | None:
    """The rows along an axis that a slice takes, all of the other axes; None for anything else."""
    op: Any = node.op
    if not isinstance(op, Slice) or any(step != 1 for step in op.step[axis : axis + 1]):
        return None
    whole = node.args[0].shape
    if any(c != d for k, (c, d) in enumerate(zip(op.count, whole, strict=True)) if k != axis):
        return None
    start, count = op.start[axis], op.count[axis]
    return (start, start + count) if isinstance(start, int) and isinstance(count, int) else None


def _merged(ranges: list[Range]) -> tuple[Range, ...]:
    """The union of ranges, joined where they meet."""
    made: list[Range] = []
    for start, stop in sorted(ranges):
        if made and start <= made[-1][1]:
            made[-1] = (made[-1][0], max(stop, made[-1][1]))
        else:
            made.append((start, stop))
    return tuple(made)


def _factors(ranges: tuple[Range, ...], rows: Any) -> Node:
    """½ in the ranges, 1 elsewhere."""
    pieces, last = [], 0
    for start, stop in (*ranges, (rows, rows)):
        pieces += [(1, start - last), (Fraction(1, 2), stop - start)]
        last = stop
    return concatenate([broadcast_to(constant(value), (count,)) for value, count in pieces if count])


def _joined(body: Graph, slices: int, args: Nodes, plan: _Plan) -> tuple[Graph, int, Nodes] | None:
    """The new body, the number of its inputs of steps and all arguments; None if z cannot be scaled."""
    initial, xs, constants = args[0], list(args[1 : 1 + slices]), args[1 + slices :]
    local = body.input_nodes
    d = _factors(plan.ranges, plan.z.shape[0])
    fresh = [fresh_input(initial.shape), *(fresh_input(x.shape[1:]) for x in xs)]
    replaced: dict[Node, Node] = dict(zip(local[: 1 + slices], fresh, strict=True))
    replaced |= dict(zip(local[1 + slices :], constants, strict=True))
    terms = []
    for sign, term in zip(plan.z.op.signs, plan.z.args, strict=True):  # type: ignore[attr-defined]
        made = _term(term, d, local, slices, xs, fresh, replaced)
        if made is None:
            return None
        terms.append((sign, made))
    gates = Node.of(Gates(plan.ranges), (signed_sum(terms),))

    def better(node: Node, new: Nodes) -> Node:
        if node is plan.whole:
            return gates
        if node in plan.pieces:
            return Node.of(node.args[0].op, (gates,))
        return node if new == node.args else Node.of(node.op, new)

    outputs = rebuild([o for o in body.output_nodes if not plan.shows(o)], replaced, better)
    shown = [gates] if len(outputs) < len(body.output_nodes) else []
    return closed(fresh, [*outputs, *shown], initial, xs)


def _term(
    term: Node,
    d: Node,
    local: Nodes,
    slices: int,
    xs: list[Node],
    fresh: list[Node],
    replaced: dict[Node, Node],
) -> Node | None:
    """A term of z with its rows scaled, outside of the loop."""
    if term in local[1 : 1 + slices]:
        made = _scaled(xs[local.index(term) - 1], 1, d)
        if made is None:
            return None
        xs.append(made)
        fresh.append(fresh_input(made.shape[1:]))
        return fresh[-1]
    op: Any = term.op
    if not isinstance(op, Einsum) or op.output[0] in op.output[1:]:
        return None
    carriers = [k for k, part in enumerate(op.inputs) if op.output[0] in part]
    if len(carriers) != 1 or term.args[carriers[0]] not in local[1 + slices :]:
        return None
    (k,) = carriers
    weights = _scaled(replaced[term.args[k]], op.inputs[k].index(op.output[0]), d)
    if weights is None:
        return None
    args = list(rebuild(term.args, replaced))
    args[k] = weights
    return Node.of(op, tuple(args))


def _scaled(node: Node, axis: int, d: Node) -> Node | None:
    """The array times d along an axis, by its smallest parts; None if those are large."""
    op: Any = node.op
    if isinstance(op, Einsum):
        label = op.output[axis]
        carriers = [k for k, part in enumerate(op.inputs) if label in part]
        if len(carriers) == 1 and op.inputs[carriers[0]].count(label) == op.output.count(label) == 1:
            return _with_part(node, carriers[0], op.inputs[carriers[0]].index(label), d)
    if isinstance(op, Broadcast) and axis in op.axes:
        return _with_part(node, 0, op.axes.index(axis), d)
    whole = isinstance(op, Add) and all(a.shape == node.shape for a in node.args)
    if whole or (isinstance(op, Concatenate) and op.axis != axis):
        parts = [_scaled(a, axis, d) for a in node.args]
        return None if None in parts else Node.of(op, tuple(p for p in parts if p))
    if not all(isinstance(n, int) for n in node.shape) or prod(node.shape) > SMALL:
        return None
    return mul(node, Node.of(Broadcast(node.shape, (axis,)), (d,)) if len(node.shape) > 1 else d)


def _with_part(node: Node, k: int, axis: int, d: Node) -> Node | None:
    made = _scaled(node.args[k], axis, d)
    return None if made is None else Node.of(node.op, (*node.args[:k], made, *node.args[k + 1 :]))


def _value(made: tuple[Graph, int, Nodes], k: int, plan: _Plan, body: Graph) -> Node:
    """Value number ``k`` of the old body from the new loop, whose last value is all gates."""
    new, slices, args = made
    output = body.output_nodes[k]
    if not plan.shows(output):
        before = sum(not plan.shows(o) for o in body.output_nodes[:k])
        return Node.of(Loop(new, slices, before), args)
    whole = Node.of(Loop(new, slices, len(new.output_nodes) - 1), args)
    if output is plan.whole:
        return whole
    cut: Any = output.args[0].op
    return Node.of(Slice((0, *cut.start), (whole.shape[0], *cut.count), (1, *cut.step)), (whole,))
