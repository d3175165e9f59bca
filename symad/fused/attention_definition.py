"""The values of the attention ops, written in primitives over all pairs (B, H, N, M).

These are the definitions that the ops are checked against; their further derivatives and
backends without tiled forms use them. The mathematics is in `symad.fused.attention`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from symad.core.arrays import Array
from symad.core.dims import Shape, same_dim, size
from symad.core.graph import ZERO, Node, Tangent, op_of, rebuild
from symad.core.questions import Nodes, Tangents
from symad.fused import attention_ops as ops
from symad.fused.attention_ops import AttentionOp
from symad.fused.score_functions import LOOPS, Load, S, extract_reads
from symad.numbers.values import unchecked
from symad.ops.arrays.gathering import gather
from symad.ops.arrays.softmax import logsumexp, softmax
from symad.ops.basic.arithmetic import add, mul, sub
from symad.ops.basic.contraction import contract, sum_axes
from symad.ops.basic.shaping import broadcast_axes, broadcast_to, reshape
from symad.ops.basic.sources import constant, dimension, fresh_input, input_node, iota
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power
from symad.ops.elementwise.selection import compare, indicator, select
from symad.tracing.from_sympy.scalars import trace_scalar
from symad.transforms.cotangents import pull, transpose_linear
from symad.transforms.tangents import dense, push

ROWS = (0, 1, 2)
"""The axes of L within those of the pairs."""


# ---- definitions at any arguments ---------------------------------------------------------------


def on_fresh(op: AttentionOp, shapes: Sequence[Shape]) -> tuple[Nodes, Node]:
    """Placeholders for the arguments, and the definition in them.

    The arguments of an op may be one node (self-attention), or depend on each other; here they are
    independent.
    """
    rules: Mapping[type, Callable[[Any, Nodes], Node]] = {
        ops.Attention: lambda op, args: value(op, args)[op.part],
        ops.AttentionTangent: lambda op, args: tangent(op, args)[op.part],
        ops.AttentionCotangent: cotangent,
        ops.AttentionSecond: second,
    }
    fresh = tuple(fresh_input(s) for s in shapes)
    return fresh, rules[type(op)](op, fresh)


def definition_of(y: Node) -> Node:
    """The definition of an attention node."""
    fresh, made = on_fresh(op_of(y, AttentionOp), [a.shape for a in y.args])
    return at([made], fresh, y.args)[0]


def at(outputs: Sequence[Node], fresh: Nodes, args: Nodes) -> Nodes:
    """The outputs with the placeholders replaced."""
    return rebuild(outputs, dict(zip(fresh, args, strict=True)))


def push_through(y: Node, tangents: Tangents) -> Tangent:
    """The tangent of the definition."""
    fresh, made = on_fresh(op_of(y, AttentionOp), [a.shape for a in y.args])
    (moved,) = push([made], dict(zip(fresh, tangents, strict=True)))
    return at([moved], fresh, y.args)[0] if isinstance(moved, Node) else ZERO


def transpose_through(y: Node, y_bar: Node, linear: Sequence[bool]) -> Tangents:
    """The cotangents of the arguments in which the definition is linear."""
    fresh, made = on_fresh(op_of(y, AttentionOp), [a.shape for a in y.args])
    seeds = [f for f, flag in zip(fresh, linear, strict=True) if flag]
    bars = iter(transpose_linear([made], [y_bar], seeds))
    found = [next(bars) if flag else ZERO for flag in linear]
    return tuple(at([b], fresh, y.args)[0] if isinstance(b, Node) else ZERO for b in found)


def evaluated(op: AttentionOp, values: Sequence[Array]) -> Array:
    """The value of the definition at numbers or arrays of any kind."""
    fresh, made = _concrete(op, tuple(np.shape(v) for v in values))
    return unchecked([made], dict(zip(fresh, values, strict=True)))[0]


@lru_cache(maxsize=64)
def _concrete(op: AttentionOp, shapes: tuple[Shape, ...]) -> tuple[Nodes, Node]:
    return on_fresh(op, shapes)


# ---- the four ops -------------------------------------------------------------------------------


def value(op: AttentionOp, args: Nodes) -> Nodes:
    """(o, L). Rows without visible keys have o = 0 and L = −∞."""
    t, seen = scores(op, args)
    if seen is None or sees_itself(op, args):
        t = t if seen is None else select(seen, t, constant(-np.inf))
        return apply_weights(softmax(t, (3,)), args[2]), logsumexp(t, (3,))
    alive = compare("<", constant(0), sum_axes(indicator(seen), (3,)))
    there = broadcast_axes(alive, t.shape, ROWS)
    hidden = select(there, select(seen, t, constant(-np.inf)), constant(0))
    total = logsumexp(hidden, (3,))
    p = select(seen, apply(sp.exp, sub(hidden, broadcast_axes(total, t.shape, ROWS))), constant(0))
    return apply_weights(p, args[2]), select(alive, total, constant(-np.inf))


def tangent(op: AttentionOp, args: Nodes) -> Nodes:
    """(ȯ, L̇)."""
    (out, _), dots = args[op.inner : op.inner + 2], args[op.inner + 2 :]
    t, seen = scores(op, args)
    (moved,) = push([t], {args[r]: d for r, d in zip(op.real, dots, strict=True)})
    p = weights(op, args, t, seen)
    p_dot = visible(seen, mul(p, dense(moved, t)))
    lse_dot = sum_axes(p_dot, (3,))
    shifted = mul(broadcast_axes(lse_dot, out.shape, ROWS), out)
    return sub(add(apply_weights(p_dot, args[2]), apply_weights(p, dots[2])), shifted), lse_dot


def cotangent(op: AttentionOp, args: Nodes) -> Node:
    """The cotangent of argument ``op.part``."""
    out, _, out_bar, lse_bar = args[op.inner :]
    t, seen = scores(op, args)
    p = weights(op, args, t, seen)
    if op.part == 2:
        return gather_weights(p, out_bar, args[2].shape)
    delta = sub(sum_axes(mul(out_bar, out), (3,)), lse_bar)
    p_bar = products(out_bar, args[2])
    t_bar = visible(seen, mul(p, sub(p_bar, broadcast_axes(delta, t.shape, ROWS))))
    (bar,) = pull([t], [t_bar], [args[op.part]])
    return dense(bar, args[op.part])


def second(op: AttentionOp, args: Nodes) -> Node:
    """The tangent of the cotangent of argument ``op.part``, the parameters held fixed."""
    end = op.inner + 4
    made = cotangent(op, args[:end])
    moving = (*range(3), *range(op.inner, end))
    dots = {args[k]: dot for k, dot in zip(moving, args[end:], strict=True)}
    return dense(push([made], dots)[0], made)


# ---- their parts --------------------------------------------------------------------------------


def visible(seen: Node | None, a: Node) -> Node:
    """0 at hidden pairs."""
    return a if seen is None else select(seen, a, constant(0))


def sees_itself(op: AttentionOp, args: Nodes) -> bool:
    """Whether the mask is seen to show key i to query i, so that no row is empty."""
    _, _, i, j = LOOPS
    return same_dim(args[0].shape[2], args[1].shape[2]) and op.mask.expression.subs(j, i) == sp.true


def weights(op: AttentionOp, args: Nodes, t: Node, seen: Node | None) -> Node:
    """p = exp(t − L), 0 at hidden pairs."""
    lse = args[op.inner + 1]
    if seen is not None and not sees_itself(op, args):  # L = −∞ where all are hidden
        lse = select(compare("<", constant(-np.inf), lse), lse, constant(0))
    return visible(seen, apply(sp.exp, sub(t, broadcast_axes(lse, t.shape, ROWS))))


def products(rows: Node, columns: Node) -> Node:
    """⟨rows_i, columns_j⟩, (B, H, N, M), with heads shared."""
    (b, h, n, d), (_, g, m, _) = rows.shape, columns.shape
    if same_dim(h, g):
        return contract(["bhnd", "bhmd"], "bhnm", rows, columns)
    split = reshape(rows, (b, g, h // g, n, d))
    return reshape(contract(["bgrnd", "bgmd"], "bgrnm", split, columns), (b, h, n, m))


def apply_weights(p: Node, columns: Node) -> Node:
    """Σ_j p_ij columns_j, (B, H, N, ·)."""
    (b, h, n, m), (_, g, _, d) = p.shape, columns.shape
    if same_dim(h, g):
        return contract(["bhnm", "bhmd"], "bhnd", p, columns)
    split = reshape(p, (b, g, h // g, n, m))
    return reshape(contract(["bgrnm", "bgmd"], "bgrnd", split, columns), (b, h, n, d))


def gather_weights(p: Node, rows: Node, to: Shape) -> Node:
    """Σ_i p_ij rows_i over the queries of all heads that share a key, in the shape of the keys."""
    (b, h, n, m), g = p.shape, to[1]
    if same_dim(h, g):
        return contract(["bhnm", "bhnd"], "bhmd", p, rows)
    split = reshape(p, (b, g, h // g, n, m))
    return contract(["bgrnm", "bgrnd"], "bgmd", split, reshape(rows, (b, g, h // g, n, to[3])))


def scores(op: AttentionOp, args: Nodes) -> tuple[Node, Node | None]:
    """T of all pairs, and the condition under which a pair takes part (None: all do)."""
    q, k = args[:2]
    full = (*q.shape[:3], k.shape[2])
    root = power(dimension(q.shape[3]), constant(sp.Rational(-1, 2)))
    scale = root if op.scale is None else constant(op.scale)
    expressions = extract_reads(op.score.expression, op.mask.expression, op.given)
    score, mask, scalars, loads = expressions
    known: dict[sp.Symbol, Node] = {
        loop: broadcast_axes(iota(full[axis]), full, (axis,)) for axis, loop in enumerate(LOOPS)
    }
    values = {p.name: node for p, node in zip(op.given, args[3:], strict=False)}
    known |= {symbol: values[name] for name, symbol in scalars}
    for load in loads:
        known[load.symbol] = read(load, values[load.name], known)
    known[S] = mul(scale, products(q, k))
    t = broadcast_to(at_pairs(score, known), full)
    return t, None if mask == sp.true else broadcast_to(at_pairs(mask, known), full)


def at_pairs(expression: sp.Basic, known: Mapping[sp.Symbol, Node]) -> Node:
    """A scalar expression applied to arrays of its symbols."""
    node = trace_scalar(expression)
    used = {input_node(symbol): known[symbol] for symbol in expression.free_symbols}
    return rebuild([node], used)[0]


def read(load: Load, table: Node, known: Mapping[sp.Symbol, Node]) -> Node:
    """The entries that an array read takes; positions outside, where a mask hides, are clamped."""
    place: Node = constant(0)
    for index, dim in zip(load.index, table.shape, strict=True):
        last = sub(dimension(dim), constant(1))
        inside = apply(sp.Min, apply(sp.Max, at_pairs(index, known), constant(0)), last)
        place = add(mul(place, dimension(dim)), inside)
    return gather(reshape(table, (size(table.shape),)), place)
