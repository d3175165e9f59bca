"""Recurrences whose steps reverse mode runs again in segments, instead of storing all values of every step.

A `Chain` has the value of a `Scan` (all states, or the last one alone) and its derivatives. Its
cotangents come from a `ChainPullback`: it recomputes one segment of the chain at a time from kept states
and pulls back through it. The policy determines which states are kept:

- "recompute": all states, and no other value of any step.
- "every": every k-th state, and one segment of k steps at a time; "sqrt" is k = √T.
- "binomial": c states at a time, by the schedule of `symad.transforms.revolve`.

The kept states are the value of `Kept`, which both sweeps read. The definition of every op here is written
in terms of `Scan`; derivatives of second order that begin with reverse mode follow from it
and keep everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt

import numpy as np
import sympy

from symad.core.dims import Dim, Shape, as_dim, plus, same_shape, size
from symad.core.graph import ZERO, Graph, Node, Op, rebuild, shape, topological
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
)
from symad.errors import ShapeError
from symad.higher_order.scan import Scan, batched_step, closed, flops_of, swapped, traced_step
from symad.numbers.values import outputs_at, unchecked
from symad.ops.arrays.stacking import concatenate, take
from symad.ops.basic.shaping import broadcast_to, cut, flatten, lift, reshape, slice_axis
from symad.ops.basic.sources import constant, fresh_input
from symad.transforms.batches import batch_outputs
from symad.transforms.revolve import keep_states, places
from symad.transforms.tangents import dense, push

POLICIES = ("recompute", "every", "sqrt", "binomial")


@dataclass(frozen=True, eq=False)
class ChainOp(Op):
    """The common fields of the ops of a chain: the body of `Scan`, its number of inputs of steps, the policy.

    ``number``: the distance k of "every", the slots c of "binomial" (0: 2 log2 T). ``history``: true if all
    states are the value, not the last one alone.
    """

    body: Graph
    slices: int
    policy: str
    number: int
    history: bool

    def distance(self, length: int) -> int:
        """The steps of a segment; 0 if the schedule determines them."""
        if self.policy == "binomial":
            return 0
        return {"recompute": 1, "every": self.number, "sqrt": max(1, isqrt(length))}[self.policy]

    def slots(self, length: int) -> int:
        """The number of states that the schedule keeps; 0 for segments of fixed length."""
        return (self.number or 2 * length.bit_length()) if self.policy == "binomial" else 0

    def kept(self, length: int) -> list[int]:
        """The positions of the kept states: all states if they are the value anyway."""
        return places(length, 1 if self.history else self.distance(length), self.slots(length))

    def stretches(self, length: int) -> list[int]:
        """The ends of the segments that are pulled back through one after the other."""
        return places(length, self.distance(length) or int(self.history), self.slots(length))


@dataclass(frozen=True, eq=False)
class Kept(ChainOp):
    """The kept states (K, *c.shape), the last one among them.

    Arguments: c_0, the inputs of steps, the constants. It counts as a constant in derivatives: ops that read
    it define their derivatives by c_0, inputs and constants.
    """


@dataclass(frozen=True, eq=False)
class Chain(ChainOp):
    """All states (T, *c.shape), or the last one. Arguments: those of `Kept`, then the kept states."""


@dataclass(frozen=True, eq=False)
class ChainTangent(ChainOp):
    """The tangent of `Chain`: its arguments, then the tangents of those marked in ``active``."""

    active: tuple[bool, ...]


def chain(
    body: Callable[..., Node], initial: Node, xs: Sequence[Node], policy: str, number: int, history: bool
) -> Node:
    """The recurrence c = body(c, *x_t) under a policy: all states (T, ...), or the last one.

    Raises:
        ShapeError: no inputs, inputs of different length, or a state that changes its shape.
    """
    return close_chain(*traced_step(body, initial, xs), initial, xs, policy, number, history)


def close_chain(
    fresh: Sequence[Node], output: Node, initial: Node, xs: Sequence[Node],
    policy: str, number: int, history: bool,
) -> Node:  # fmt: skip
    """The chain of a traced body."""
    graph, slices, args = closed(fresh, [output], initial, xs)
    kept = Node.of(Kept(graph, slices, policy, number, history), args)
    return Node.of(Chain(graph, slices, policy, number, history), (*args, kept))


def kept_count(length: Dim, policy: str, number: int, history: bool) -> Dim:
    """The number of states kept for the backward sweep, as an expression if the length is one."""
    one, steps = sympy.S.One, sympy.sympify(length, strict=True)
    if history or policy == "recompute":
        return as_dim(sympy.Max(one, steps))
    if policy == "binomial":
        slots = number or 2 * sympy.floor(sympy.log(2 * steps + 1, 2))  # 2·(the bits of T)
        return as_dim(sympy.Max(one, sympy.Min(slots, steps)))
    distance = number if policy == "every" else sympy.Max(one, sympy.floor(sympy.sqrt(steps)))
    return as_dim(sympy.Max(one, sympy.ceiling(steps / distance)))


def arguments(op: ChainOp, args: Nodes) -> tuple[Nodes, Node, Nodes]:
    """The arguments of the recurrence, the kept states, and the rest."""
    count = len(op.body.input_nodes)
    return args[:count], args[count], args[count + 1 :]


def length_of(args: Nodes) -> Dim:
    """The number of steps."""
    return args[1].shape[0]


# ---- shapes --------------------------------------------------------------------------------------


@shape(Kept)
def kept_shape(op: Kept, args: Nodes) -> Shape:
    return (kept_count(length_of(args), op.policy, op.number, op.history), *args[0].shape)


@shape(Chain)
def chain_shape(op: Chain, args: Nodes) -> Shape:
    return (length_of(args), *args[0].shape) if op.history else args[0].shape


@shape(ChainTangent)
def chain_tangent_shape(op: ChainTangent, args: Nodes) -> Shape:
    given, _, dots = arguments(op, args)
    moving = [a for a, flag in zip(given, op.active, strict=True) if flag]
    for arg, dot in zip(moving, dots, strict=True):
        if not same_shape(arg.shape, dot.shape):
            raise ShapeError(
                f"a tangent of shape {dot.shape} cannot be that of an array of shape {arg.shape}"
            )
    return (length_of(args), *args[0].shape) if op.history else args[0].shape


# ---- definitions ---------------------------------------------------------------------------------


def plain(op: ChainOp, args: Nodes) -> Node:
    """The value as a `Scan`."""
    history = Node.of(Scan(op.body, op.slices), args)
    return history if op.history else take(history, 0, plus(history.shape[0], -1))


@definition.dispatch
def chain_definition(op: Chain, y: Node) -> Node:
    return plain(op, arguments(op, y.args)[0])


@definition.dispatch
def chain_tangent_definition(op: ChainTangent, y: Node) -> Node:
    """The second half of the chain of (c, c_dot), by the same policy."""
    args, _, dots = arguments(op, y.args)
    initial, xs, constants = args[0], args[1 : 1 + op.slices], args[1 + op.slices :]
    given = iter(dots)
    tangents = [next(given) if flag else None for flag in op.active]
    first = tangents[0] if tangents[0] is not None else broadcast_to(constant(0), initial.shape)
    moving = [k for k in range(op.slices) if tangents[1 + k] is not None]
    local, half = op.body.input_nodes, size(initial.shape)
    fixed = dict(zip(local[1 + op.slices :], constants, strict=True))

    def body(both: Node, *rest: Node) -> Node:
        c, c_dot = cut(both, [initial.shape, initial.shape])
        xs_t, dots_t = rest[: op.slices], rest[op.slices :]
        points = {local[0]: c} | dict(zip(local[1 : 1 + op.slices], xs_t, strict=True)) | fixed
        steady = {local[k]: t for k, t in enumerate(tangents) if k > op.slices and t is not None}
        known = {local[0]: c_dot} | {local[1 + k]: t for k, t in zip(moving, dots_t, strict=True)} | steady
        # placeholders: a tangent may be an input of an enclosing body, and equal to an input of this body
        along = {node: fresh_input(t.shape) for node, t in known.items()}
        (dot,) = push(op.body.output_nodes, along)
        points |= {along[node]: t for node, t in known.items()}
        new, new_dot = rebuild([op.body.output_nodes[0], dense(dot, c)], points)
        return concatenate([flatten(new), flatten(new_dot)])

    packed = concatenate([flatten(initial), flatten(first)])
    inputs = [*xs, *(t for t in tangents[1 : 1 + op.slices] if t is not None)]
    found = chain(body, packed, inputs, op.policy, op.number, op.history)
    return reshape(slice_axis(found, len(found.shape) - 1, half, half), y.shape)


# ---- derivatives ---------------------------------------------------------------------------------


@jvp.dispatch
def kept_jvp(op: Kept, y: Node, tangents: Tangents) -> Tangent:
    return ZERO


@jvp.dispatch
def chain_jvp(op: Chain, y: Node, tangents: Tangents) -> Tangent:
    active = tuple([isinstance(t, Node) for t in tangents[:-1]])
    return tangent_of_chain(op, y.args, active, [t for t in tangents[:-1] if isinstance(t, Node)])


def tangent_of_chain(op: ChainOp, args: Nodes, active: Flags, dots: Sequence[Node]) -> Tangent:
    if not any(active):
        return ZERO
    tangent = ChainTangent(op.body, op.slices, op.policy, op.number, op.history, active)
    return Node.of(tangent, (*args, *dots))


@jvp.dispatch
def chain_tangent_jvp(op: ChainTangent, y: Node, tangents: Tangents) -> Tangent:
    """The op itself along tangents of the tangents; its definition along others."""
    count = len(op.body.input_nodes) + 1
    if any(isinstance(t, Node) for t in tangents[:count]):
        return push_through_definition(op, y, tangents)
    given = iter(tangents[count:])
    dots = [next(given) if flag else ZERO for flag in op.active]
    active = tuple([isinstance(t, Node) for t in dots])
    return tangent_of_chain(op, y.args[:count], active, [t for t in dots if isinstance(t, Node)])


def push_through_definition(op: ChainOp, y: Node, tangents: Tangents) -> Tangent:
    points = tuple(fresh_input(a.shape) for a in y.args)
    moving = {p: t for p, t in zip(points, tangents, strict=True) if isinstance(t, Node)}
    (dot,) = push([definition(op, Node.of(op, points))], moving)
    return rebuild([dot], dict(zip(points, y.args, strict=True)))[0] if isinstance(dot, Node) else ZERO


# ---- batching ------------------------------------------------------------------------------------


@batch.dispatch
def kept_batch(op: Kept, args: Nodes, batched: Flags, count: Count) -> Node:
    made = _batched(op, args, batched, count)
    return swapped(made.args[-1])


@batch.dispatch
def chain_batch(op: Chain, args: Nodes, batched: Flags, count: Count) -> Node:
    made = _batched(op, args[:-1], batched[:-1], count)
    return swapped(made) if op.history else made


def _batched(op: ChainOp, args: Nodes, batched: Flags, count: Dim) -> Node:
    step = batched_step(op.body, op.slices, args, batched, count)
    return close_chain(*step, op.policy, op.number, op.history)


@batch.dispatch
def chain_tangent_batch(op: ChainTangent, args: Nodes, batched: Flags, count: Count) -> Node:
    """The tangent of the batched chain: a chain of (c, c_dot) would not be linear in its initial state."""
    given, _, dots = arguments(op, args)
    marked = iter(zip(dots, batched[len(given) + 1 :], strict=True))
    points, flags, moving = [], [], {}
    for arg, flag, active in zip(given, batched, op.active, strict=False):
        dot, dot_flag = next(marked) if active else (arg, flag)
        either = flag or dot_flag
        points.append(fresh_input((count, *arg.shape[flag:]) if either else arg.shape))
        flags.append(either)
        if active:
            moving[points[-1]] = lift(dot, dot_flag, count) if either else dot
    value = _batched(op, tuple(points), tuple(flags), count)
    (tangent,) = push([value], moving)
    at = {p: lift(a, f, count) if e else a for p, a, f, e in zip(points, given, batched, flags, strict=False)}
    made = rebuild([dense(tangent, value)], at)[0]
    return swapped(made) if op.history else made


def batched_definition(op: ChainOp, args: Nodes, batched: Flags, count: Dim) -> Node:
    points = [fresh_input(a.shape[1:] if flag else a.shape) for a, flag in zip(args, batched, strict=True)]
    meaning = definition(op, Node.of(op, tuple(points)))
    steady = {p: a for p, a, flag in zip(points, args, batched, strict=True) if not flag}
    moving = {p: a for p, a, flag in zip(points, args, batched, strict=True) if flag}
    return batch_outputs([meaning], moving, count, steady)[0]


# ---- values --------------------------------------------------------------------------------------


def stepper(op: ChainOp, constants: Sequence[float | Array]) -> Callable[..., Array]:
    """The body on numbers."""

    def step(*values: Array | float) -> Array:
        return outputs_at(op.body, *values, *constants)[0]

    return step


@evaluate.dispatch
def kept_evaluate(op: Kept, values: Values) -> Array:
    return kept_by(stepper(op, values[1 + op.slices :]), op, values)


def kept_by(step: Callable[..., Array], op: Kept, values: Values) -> Array:
    """The kept states, computed by a function of one step."""
    return keep_states(step, values[0], values[1 : 1 + op.slices], op.kept(len(values[1])))


@evaluate.dispatch
def chain_evaluate(op: Chain, values: Values) -> Array:
    return values[-1][: len(values[1])] if op.history else values[-1][-1]


@evaluate.dispatch
def chain_tangent_evaluate(op: ChainTangent, values: Values) -> Array:
    points = tuple(fresh_input(np.shape(v)) for v in values)
    meaning = definition(op, Node.of(op, points))
    return unchecked([meaning], dict(zip(points, values, strict=True)))[0]


# ---- costs, forms, examples ----------------------------------------------------------------------


@flops.dispatch
def kept_flops(op: Kept, y: Node) -> Count:
    return length_of(y.args) * flops_of(op.body)


@flops.dispatch
def chain_flops(op: Chain, y: Node) -> Count:
    return 0


@flops.dispatch
def chain_tangent_flops(op: ChainTangent, y: Node) -> Count:
    return sum(flops(n.op, n) for n in topological([definition(op, y)]) if n not in y.args)
