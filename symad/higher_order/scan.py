"""Recurrences: one scan op, c_t = f(c_{t−1}, x_t, k) for t = 1..T, whose value is all states c_t.

The body f is a graph of its own, made once for all T. Further outputs of a step are functions
of the states and are computed outside, for all steps at once; so are all parts of the body that do
not depend on the state, and the derivatives with respect to inputs and constants: those become a
few large products instead of T small ones.

The derivative of a scan is a scan with the linearized body, over the states as residuals. Its
transpose is a scan that runs backwards over the transposed body (backpropagation through time).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import sympy

from symad.core.dims import Shape, plus, same_dim, same_shape
from symad.core.graph import ZERO, Graph, Node, Op, op_of, rebuild, shape, topological
from symad.core.questions import (
    Array,
    Count,
    Flags,
    Nodes,
    Tangent,
    Tangents,
    Values,
    batch,
    definition,
    evaluate,
    flops,
    jvp,
    transpose,
)
from symad.errors import ShapeError
from symad.numbers.values import outputs_at
from symad.ops.arrays.stacking import concatenate, stack, take
from symad.ops.basic.arithmetic import add
from symad.ops.basic.contraction import permute
from symad.ops.basic.shaping import Slice, broadcast_to, lift, reshape, slice_axis
from symad.ops.basic.sources import Source, constant, fresh_input, iota
from symad.transforms.batches import batch_outputs
from symad.transforms.cotangents import pull
from symad.transforms.tangents import push


@dataclass(frozen=True, eq=False)
class Local(Source):
    """An input of a scan's body: the state, a step's input, or a constant, by position."""

    outside = True

    position: int
    shape: Shape

    @property
    def symbol(self) -> sympy.Symbol:
        """A name for printing."""
        return sympy.Symbol(f"local_{self.position}", real=True)


@dataclass(frozen=True, eq=False)
class LoopOp(Op):
    """A value of a recurrence at all its steps.

    Arguments: the initial states, then ``slices`` arrays with a leading axis of steps, then constants. The
    inputs of ``body``, which computes one step, are `Local` 0, 1, 2, ... in that order.
    """

    body: Graph
    slices: int
    states = 1
    """The number of states."""


@dataclass(frozen=True, eq=False)
class Scan(LoopOp):
    """(c_1, ..., c_T) with c_t = body(c_{t−1}, x_t..., k...).

    There is one state, and the body's one output has its shape.
    """


def scan(body: Callable[..., Node], initial: Node, xs: Sequence[Node]) -> Node:
    """All states of the recurrence ``c = body(c, *x_t)``, an array (T, *c.shape).

    Args:
        body: from the state's node and one node for each input to the node of the next state; it may
            use any other nodes.
        initial: the state c_0.
        xs: the inputs of all steps, arrays with leading axis T; at least one.

    Raises:
        ShapeError: no inputs, inputs of different length, or a state that changes its shape.
    """
    return close_scan(*traced_step(body, initial, xs), initial, xs)


def traced_step(body: Callable[..., Node], initial: Node, xs: Sequence[Node]) -> tuple[list[Node], Node]:
    """Fresh inputs of one step, and the next state that the body makes of them.

    Raises:
        ShapeError: no inputs, inputs of different length, or a state that changes its shape.
    """
    if not xs or any(not x.shape for x in xs):
        raise ShapeError("scan needs at least one array of inputs with a leading time axis")
    length = xs[0].shape[0]
    for x in xs[1:]:
        if not same_dim(x.shape[0], length):
            raise ShapeError(f"scan: the inputs have {length} and {x.shape[0]} steps")
    fresh = [fresh_input(s) for s in (initial.shape, *(x.shape[1:] for x in xs))]
    output = body(*fresh)
    if not same_shape(output.shape, initial.shape):
        raise ShapeError(f"scan: the state has shape {initial.shape}, but the body gives {output.shape}")
    return fresh, output


def close_scan(fresh: Sequence[Node], output: Node, initial: Node, xs: Sequence[Node]) -> Node:
    """The scan of a traced body: nodes that do not depend on its inputs become constants.

    A scan of no steps has no states.
    """
    if xs[0].shape[0] == 0:
        return broadcast_to(constant(0), (0, *initial.shape))
    body, count, args = closed(fresh, [output], initial, xs)
    return Node.of(Scan(body, count), args)


def closed(
    fresh: Sequence[Node], outputs: Sequence[Node], initial: Node, xs: Sequence[Node]
) -> tuple[Graph, int, Nodes]:
    """A traced body as a graph of local inputs, the number of its inputs of steps, and all arguments."""
    order = topological(outputs)
    needed = set(order)
    used = [k for k in range(len(xs)) if fresh[1 + k] in needed]
    constants = outer_nodes(fresh, outputs, order)
    if not used:  # one input has to stay, to give the number of steps
        fresh, xs = [fresh[0], fresh_input(())], [iota(xs[0].shape[0])]
    else:
        fresh, xs = [fresh[0], *(fresh[1 + k] for k in used)], [xs[k] for k in used]
    return body_of([*fresh, *constants], outputs), len(xs), (initial, *xs, *constants)


def body_of(sources: Sequence[Node], outputs: Sequence[Node]) -> Graph:
    """Outputs as a graph of local inputs, which stand for the sources."""
    local = [Node.of(Local(k, node.shape)) for k, node in enumerate(sources)]
    return Graph(tuple(local), tuple(rebuild(outputs, dict(zip(sources, local, strict=True)))))


def applied(body: Graph, args: Nodes) -> Node:
    """The one output of a body at given nodes for its inputs."""
    return rebuild(body.output_nodes, dict(zip(body.input_nodes, args, strict=True)))[0]


def flops_of(body: Graph) -> Count:
    """The operations of a body."""
    return sum(flops(node.op, node) for node in topological(body.output_nodes))


def outer_nodes(
    fresh: Sequence[Node], outputs: Sequence[Node], order: Sequence[Node] | None = None
) -> list[Node]:
    """The outer nodes that a traced body uses: the largest ones that do not depend on its inputs.

    ``order`` is the topological order of the outputs, if it is known already.
    """
    order = topological(outputs) if order is None else order
    inside = set(fresh)
    for node in order:
        if not inside.isdisjoint(node.args):
            inside.add(node)
    found: dict[Node, None] = {}
    for node in order:
        if node in inside:
            outer = [a for a in node.args if a not in inside]
            found.update((a, None) for a in outer if a.args)
            found.update((a, None) for a in outer if a.op.outside)  # numbers stay in the body
    found.update((output, None) for output in outputs if output not in inside)
    return list(found)


def parts(op: Scan, args: Nodes) -> tuple[Node, Nodes, Nodes]:
    """The initial state, the inputs of the steps, and the constants."""
    return args[0], args[1 : 1 + op.slices], args[1 + op.slices :]


def previous_states(y: Node, k: int = 0) -> Node:
    """(c_0, ..., c_{T−1}) of a scan; for a loop of several states that of state ``k``."""
    if y.shape[0] == 0:
        return y
    first = reshape(y.args[k], (1, *y.args[k].shape))
    return concatenate([first, slice_axis(y, 0, 0, plus(y.shape[0], -1))])


def over_time(op: Scan, states: Node, xs: Nodes, constants: Nodes) -> Node:
    """The body at all steps at once, from all previous states and all inputs."""
    length = states.shape[0]
    local = op.body.input_nodes
    outer = dict(zip(local[1 + op.slices :], constants, strict=True))
    moving = dict(zip(local[: 1 + op.slices], (states, *xs), strict=True))
    made = batch_outputs(op.body.output_nodes, moving, length, outer)
    return made[0]


@shape(Scan)
def scan_shape(op: Scan, args: Nodes) -> Shape:
    return (args[1].shape[0], *args[0].shape)


@shape(Local)
def local_shape(op: Local, args: Nodes) -> Shape:
    return op.shape


@jvp.dispatch
def scan_jvp(op: Scan, y: Node, tangents: Tangents) -> Tangent:
    """c_dot_t = ∂_c f c_dot_{t−1} + ∂_x f x_dot_t + ∂_k f k_dot: a scan over the states of y."""
    if not any(isinstance(t, Node) for t in tangents):
        return ZERO
    initial, xs, constants = parts(op, y.args)
    dot_0 = tangents[0] if isinstance(tangents[0], Node) else broadcast_to(constant(0), initial.shape)
    of_slices = {k: t for k, t in enumerate(tangents[1 : 1 + op.slices]) if isinstance(t, Node)}
    moving, x_dots = list(of_slices), list(of_slices.values())

    def body(c_dot: Node, c: Node, c_new: Node, *rest: Node) -> Node:
        local = op.body.input_nodes
        x, x_dot = rest[: op.slices], rest[op.slices :]
        dots: dict[Node, Node] = {local[0]: c_dot}
        dots |= {local[1 + k]: x_dot[j] for j, k in enumerate(moving)}
        dots |= {
            local[1 + op.slices + j]: t
            for j, t in enumerate(tangents[1 + op.slices :])
            if isinstance(t, Node)
        }
        # placeholders: a tangent may be an input of an enclosing body, and equal to an input of this body
        along = {node: fresh_input(dot.shape) for node, dot in dots.items()}
        (made,) = push(op.body.output_nodes, along)
        # the new state is known: derivatives that are functions of it need no recomputation
        values = {op.body.output_nodes[0]: c_new} | dict(zip(local, (c, *x, *constants), strict=True))
        values |= {along[node]: dot for node, dot in dots.items()}
        return rebuild([made], values)[0] if isinstance(made, Node) else broadcast_to(constant(0), c.shape)

    return scan(body, dot_0, [previous_states(y), y, *xs, *x_dots])


@transpose.dispatch
def scan_transpose(op: Scan, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    """Backpropagation through time of a linear scan.

    Let u_t = (∂_c f_t)ᵀ λ_t be the cotangent that step t passes to the previous state, with λ_t = ȳ_t +
    u_{t+1} from the last step to the first and u_{T+1} = 0. Then x̄_t = (∂_x f_t)ᵀ λ_t in one product over
    all steps, k̄ = Σ_t (∂_k f_t)ᵀ λ_t, and c̄_0 = u_1. The scan is over u, whose step reads arrays at one time
    only. So parts of the body that do not depend on the state are equal nodes outside, computed once.
    """
    # The scan is linear in these arguments, so its derivatives do not depend on their values.
    args = tuple(fresh_input(a.shape) if flag else a for a, flag in zip(y.args, linear, strict=True))
    _, xs, constants = parts(op, args)
    sent = _sent_back(op, args, y_bar)
    multipliers = add(y_bar, backwards(previous_states(sent)))
    states = fresh_input(y.shape)
    out = over_time(op, states, xs, constants)
    wrt = [node for node, flag in zip(args[1:], linear[1:], strict=True) if flag]
    at = [states, *(node for node, flag in zip(args, linear, strict=True) if flag)]
    bars = iter(_anywhere(pull([out], [multipliers], wrt), at))
    result: list[Tangent] = [next(bars) if flag else ZERO for flag in linear[1:]]
    first: Tangent = take(sent, 0, plus(y.shape[0], -1)) if linear[0] else ZERO
    return (first, *result)


def _sent_back(op: Scan, args: Nodes, y_bar: Node) -> Node:
    """(u_T, ..., u_1)."""
    initial, xs, constants = parts(op, args)
    zeros = broadcast_to(constant(0), initial.shape)

    def body(later: Node, bar: Node, *x: Node) -> Node:
        state = fresh_input(initial.shape)
        new = applied(op.body, (state, *x, *constants))
        (sent,) = _anywhere(pull([new], [add(bar, later)], [state]), [state])
        return sent if isinstance(sent, Node) else zeros

    return scan(body, zeros, [backwards(a) for a in (y_bar, *xs)])


def _anywhere(bars: Sequence[Tangent], points: Sequence[Node]) -> list[Tangent]:
    """The cotangents of outputs that are linear in some nodes, taken at zero: the point does not matter."""
    zeros = {p: broadcast_to(constant(0), p.shape) for p in points}
    made = iter(rebuild([b for b in bars if isinstance(b, Node)], zeros))
    return [next(made) if isinstance(b, Node) else b for b in bars]


def backwards(x: Node) -> Node:
    """The array with its first axis reversed."""
    if isinstance(x.op, Slice) and _reverses(x):
        return x.args[0]
    return slice_axis(x, 0, plus(x.shape[0], -1), x.shape[0], -1)


def _reverses(x: Node) -> bool:
    """True if a slice only reverses the first axis of its argument."""
    op = op_of(x, Slice)
    rank = len(x.shape)
    same = all(map(same_dim, x.shape, x.args[0].shape))
    return same and op.step == (-1, *[1] * (rank - 1))


@batch.dispatch
def scan_batch(op: Scan, args: Nodes, batched: Flags, count: Count) -> Node:
    return swapped(close_scan(*batched_step(op.body, op.slices, args, batched, count)))


def batched_step(
    body: Graph, slices: int, args: Nodes, batched: Flags, count: Count
) -> tuple[list[Node], Node, Node, list[Node]]:
    """A step of batched states as `close_scan` takes it; the batch axis comes after the time axis."""
    xs = [swapped(x) if flag else x for x, flag in zip(args[1 : 1 + slices], batched[1:], strict=False)]
    initial = lift(args[0], batched[0], count)
    fresh = [fresh_input(s) for s in (initial.shape, *(x.shape[1:] for x in xs))]
    values = (*fresh, *args[1 + slices :])
    given = list(zip(body.input_nodes, values, (True, *batched[1:]), strict=True))
    moving = {k: v for k, v, flag in given if flag}
    steady = {k: v for k, v, flag in given if not flag}
    (output,) = batch_outputs(body.output_nodes, moving, count, steady)
    return fresh, output, initial, xs


def swapped(x: Node) -> Node:
    """Axes 0 and 1 in the other order."""
    return permute(x, (1, 0, *range(2, len(x.shape))))


@definition.dispatch
def scan_definition(op: Scan, y: Node) -> Node | None:
    """The steps unrolled, for a known number of them."""
    initial, xs, constants = parts(op, y.args)
    if not isinstance(y.shape[0], int):
        return None
    states, state = [], initial
    for t in range(y.shape[0]):
        state = applied(op.body, (state, *[take(x, 0, t) for x in xs], *constants))
        states.append(state)
    return stack(states)


@flops.dispatch
def scan_flops(op: Scan, y: Node) -> Count:
    return y.shape[0] * flops_of(op.body)


@evaluate.dispatch
def scan_evaluate(op: Scan, values: Values) -> Array:
    state = values[0]
    xs, constants = values[1 : 1 + op.slices], values[1 + op.slices :]
    history = []
    for t in range(len(xs[0])):
        (state,) = outputs_at(op.body, state, *[x[t] for x in xs], *constants)
        history.append(np.asarray(state))
    if history:
        return np.stack(history)
    return np.zeros((0, *np.shape(values[0])))
