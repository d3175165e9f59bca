"""The cotangents of a chain, one segment at a time, from the kept states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from symad.core.dims import Dim, Shape, plus, size
from symad.core.graph import ZERO, Graph, Node, rebuild, shape, topological
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
from symad.higher_order.checkpointed_chain import (
    ChainOp,
    ChainTangent,
    arguments,
    batched_definition,
    length_of,
    plain,
    push_through_definition,
    stepper,
    tangent_of_chain,
)
from symad.higher_order.scan import flops_of
from symad.numbers.values import outputs_at
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.shaping import cut, flatten
from symad.ops.basic.sources import fresh_input
from symad.transforms.chain_plans import make_plan
from symad.transforms.cotangents import pull
from symad.transforms.revolve import reverse_chain
from symad.transforms.tangents import dense


@dataclass(frozen=True, eq=False)
class ChainPullback(ChainOp):
    """The cotangents of the arguments marked in ``active``, flattened and concatenated.

    Arguments: those of `Chain`, then the cotangent of its value.
    """

    active: tuple[bool, ...]


def wanted(op: ChainPullback, args: Nodes) -> list[Node]:
    """The arguments marked in ``active``."""
    return [arg for arg, flag in zip(args, op.active, strict=False) if flag]


@shape(ChainPullback)
def chain_pullback_shape(op: ChainPullback, args: Nodes) -> Shape:
    total: Dim = 0
    for arg in wanted(op, args):
        total = plus(total, size(arg.shape))
    return (total,)


@definition.dispatch
def chain_pullback_definition(op: ChainPullback, y: Node) -> Node:
    """The pullback of the `Scan`."""
    args, _, (bar,) = arguments(op, y.args)
    points = tuple(fresh_input(a.shape) for a in args)
    found = pull([plain(op, points)], [bar], wanted(op, points))
    flat = concatenate([flatten(dense(b, a)) for b, a in zip(found, wanted(op, args), strict=True)])
    return rebuild([flat], dict(zip(points, args, strict=True)))[0]


@jvp.dispatch
def chain_pullback_jvp(op: ChainPullback, y: Node, tangents: Tangents) -> Tangent:
    """The op itself along a tangent of the cotangent; its definition along others."""
    if any(isinstance(t, Node) for t in tangents[:-1]):
        return push_through_definition(op, y, tangents)
    return Node.of(op, (*y.args[:-1], tangents[-1])) if isinstance(tangents[-1], Node) else ZERO


@transpose.dispatch
def chain_pullback_transpose(op: ChainPullback, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    """The transpose of a pullback is the tangent."""
    args, kept, _ = arguments(op, y.args)
    dots = cut(y_bar, [a.shape for a in wanted(op, args)])
    tangent = tangent_of_chain(op, (*args, kept), op.active, dots)
    return (*[ZERO] * (len(args) + 1), tangent)


@batch.dispatch
def chain_pullback_batch(op: ChainPullback, args: Nodes, batched: Flags, count: Count) -> Node:
    return batched_definition(op, args, batched, count)


@evaluate.dispatch
def chain_pullback_evaluate(op: ChainPullback, values: Values) -> Array:
    constants = values[1 + op.slices : -2]

    def pulled(state: Array, *rest: Array) -> list[Array]:
        stretch = stretch_pullback(op, len(rest[0]), tuple(np.shape(c) for c in constants))
        return outputs_at(stretch, state, *rest[:-1], *constants, rest[-1])

    return pulled_back(stepper(op, constants), pulled, op, values)


def pulled_back(
    step: Callable[..., Array], pulled: Callable[..., Sequence[Array]], op: ChainPullback, values: Values
) -> Array:
    """The cotangents, from a function of one step and one that pulls back through a segment."""
    args, kept, bar = values[:-2], values[-2], values[-1]
    xs, length = args[1 : 1 + op.slices], len(args[1])
    dtype = np.result_type(float, *[np.asarray(v) for v in (bar, *args)])
    flat = np.zeros(sum(np.size(a) for a, flag in zip(args, op.active, strict=True) if flag), dtype)
    outs, first = _views(op, args, flat)
    stops = op.stretches(length)
    states = [args[0], *((kept[stop - 1] for stop in stops) if op.history else kept)]
    slots = 0 if op.history else op.slots(length)
    carry = reverse_chain(step, pulled, xs, states, stops, slots, bar, op.history, outs)
    if first is not None and carry is not None:
        first[...] = carry
    return flat


def _views(
    op: ChainPullback, args: Sequence[Any], flat: np.ndarray
) -> tuple[list[tuple[np.ndarray, bool]], np.ndarray | None]:
    """The positions of the cotangents in the flat array: of inputs and constants, and of c_0."""
    outs: list[tuple[np.ndarray, bool]] = []
    first, offset = None, 0
    for k, (arg, flag) in enumerate(zip(args, op.active, strict=True)):
        if not flag:
            continue
        view = flat[offset : offset + np.size(arg)].reshape(np.shape(arg))
        offset += np.size(arg)
        if k:
            outs.append((view, k <= op.slices))
        else:
            first = view
    return outs, first


@lru_cache(maxsize=64)
def stretch_pullback(op: ChainPullback, length: Dim, constants: tuple[Shape, ...]) -> Graph:
    """(c, x_t..., k..., bar) -> (c_bar, x_bar..., k_bar...) of a segment of some steps.

    ``bar`` is the cotangent of all states of the segment if ``history``, otherwise of the last; the
    cotangents of x and k are those that ``active`` marks.
    """
    local = op.body.input_nodes
    shapes = [(length, *node.shape) if 0 < k <= op.slices else node.shape for k, node in enumerate(local)]
    points = tuple(map(fresh_input, (*shapes[: 1 + op.slices], *constants)))
    value = plain(op, points)
    bar = fresh_input(value.shape)
    wrt = [points[0], *(p for p, flag in zip(points[1:], op.active[1:], strict=True) if flag)]
    bars = pull([value], [bar], wrt)
    return Graph((*points, bar), tuple(dense(b, p) for b, p in zip(bars, wrt, strict=True)))


@flops.dispatch
def chain_pullback_flops(op: ChainPullback, y: Node) -> Count:
    """The cost of the pullback, which contains one run of the steps, and of the steps that are run again."""
    length, again = length_of(y.args), 0
    if op.policy == "binomial" and isinstance(length, int) and not op.history:
        again = make_plan(length, "binomial", op.slots(length)).recomputations
    known = set(topological(y.args))
    steps = again * flops_of(op.body)
    return steps + sum(flops(n.op, n) for n in topological([definition(op, y)]) if n not in known)


@transpose.dispatch
def chain_tangent_transpose(op: ChainTangent, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    """The cotangents of the tangents, by `ChainPullback`."""
    args, kept, _ = arguments(op, y.args)
    flags = iter(linear[len(args) + 1 :])
    active = tuple([flag and next(flags) for flag in op.active])
    back = ChainPullback(op.body, op.slices, op.policy, op.number, op.history, active)
    flat = Node.of(back, (*args, kept, y_bar))
    bars = iter(cut(flat, [a.shape for a in wanted(back, args)]))
    used = [a for a, flag in zip(active, op.active, strict=True) if flag]
    return (*[ZERO] * (len(args) + 1), *[next(bars) if flag else ZERO for flag in used])
