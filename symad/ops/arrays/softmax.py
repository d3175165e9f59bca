"""Softmax, log-softmax and log-sum-exp over some axes: fused ops with their definitions.

They are evaluated with the maximum subtracted, which changes nothing mathematically (both sides of a
quotient of exponentials are scaled) and cannot overflow. All derivatives go through the softmax p:

    d logsumexp(x) = ⟨p, ẋ⟩,   d log p = ẋ − ⟨p, ẋ⟩,   dp = p ∘ (ẋ − ⟨p, ẋ⟩) = (Diag p − p pᵀ) ẋ.

The last two are linear ops (Bishop, Pattern Recognition and Machine Learning, 4.106). Where p_m is
almost 1, they are computed from the differences ẋ_i − ẋ_m, and Σ x̄ = 0 gives the cotangent of x_m: the slope
of log p_m by x_m is the sum of the other probabilities, of which 1 − p_m keeps no digit at large margins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from symad.core.dims import Shape, format_shape, same_shape, size
from symad.core.graph import ZERO, Node, Op, shape
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
from symad.numbers.number_domains import apply as apply_values
from symad.numbers.number_domains import divide
from symad.ops.arrays.reduction import keep_axes
from symad.ops.basic.arithmetic import add_tangents, div, mul, neg, sub
from symad.ops.basic.contraction import contract, sum_axes
from symad.ops.basic.shaping import lift
from symad.ops.elementwise.apply import apply


@dataclass(frozen=True, eq=False)
class ExponentialOp(Op):
    """Over ``axes`` of one array x; the others are a stack."""

    finite_slopes = True

    axes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Softmax(ExponentialOp):
    """p = exp(x) / Σ exp(x), in the shape of x."""


@dataclass(frozen=True, eq=False)
class LogSoftmax(ExponentialOp):
    """log p = x − log Σ exp(x), in the shape of x."""


@dataclass(frozen=True, eq=False)
class LogSumExp(ExponentialOp):
    """log Σ exp(x); the axes disappear."""


LIKELY = 0.9
"""A probability of which 1 − p has lost a digit; the printed code has the same number."""


@dataclass(frozen=True, eq=False)
class TangentOp(ExponentialOp):
    """A function of probabilities p over ``axes`` and an array t of the same shape, linear in t."""


@dataclass(frozen=True, eq=False)
class SoftmaxTangent(TangentOp):
    """p ∘ (t − Σ p t), the tangent of softmax: symmetric, so that it is the cotangent too."""


@dataclass(frozen=True, eq=False)
class LogSoftmaxTangent(TangentOp):
    """t − Σ p t, the tangent of log p."""


@dataclass(frozen=True, eq=False)
class LogSoftmaxCotangent(TangentOp):
    """t − p Σ t, the cotangent of x in log p; its sum is 0."""


# ---- makers -------------------------------------------------------------------------------------


def _axes(a: Node, axes: Sequence[int] | None) -> tuple[int, ...]:
    rank = len(a.shape)
    if axes is None:
        return tuple(range(rank))
    for k in axes:
        if not -rank <= k < rank:
            raise ShapeError(f"axis={k} is no axis of an array of shape {format_shape(a.shape)}")
    return tuple(sorted({k % rank for k in axes}))


def softmax(a: Node, axes: Sequence[int] | None = None) -> Node:
    """The softmax over some axes (all by default)."""
    return Node.of(Softmax(_axes(a, axes)), (a,))


def log_softmax(a: Node, axes: Sequence[int] | None = None) -> Node:
    """The logarithm of the softmax over some axes (all by default)."""
    return Node.of(LogSoftmax(_axes(a, axes)), (a,))


def logsumexp(a: Node, axes: Sequence[int] | None = None) -> Node:
    """log Σ exp over some axes (all by default), which disappear."""
    chosen = _axes(a, axes)
    return Node.of(LogSumExp(chosen), (a,)) if chosen else a


def softmax_tangent(p: Node, t: Node, axes: tuple[int, ...]) -> Node:
    """p ∘ (t − Σ p t)."""
    return Node.of(SoftmaxTangent(axes), (p, t))


def log_softmax_tangent(p: Node, t: Node, axes: tuple[int, ...]) -> Node:
    """t − Σ p t."""
    return Node.of(LogSoftmaxTangent(axes), (p, t))


def log_softmax_cotangent(p: Node, t: Node, axes: tuple[int, ...]) -> Node:
    """t − p Σ t."""
    return Node.of(LogSoftmaxCotangent(axes), (p, t))


def _mean(p: Node, t: Node, axes: tuple[int, ...]) -> Node:
    """Σ p t over the axes."""
    labels = range(len(p.shape))
    return contract([labels, labels], [k for k in labels if k not in axes], p, t)


# ---- shapes and definitions ---------------------------------------------------------------------


@shape(Softmax)
def softmax_shape(op: Softmax, args: Nodes) -> Shape:
    return args[0].shape


@shape(LogSoftmax)
def log_softmax_shape(op: LogSoftmax, args: Nodes) -> Shape:
    return args[0].shape


@shape(LogSumExp)
def logsumexp_shape(op: LogSumExp, args: Nodes) -> Shape:
    return tuple(dim for k, dim in enumerate(args[0].shape) if k not in op.axes)


@shape(SoftmaxTangent)
@shape(LogSoftmaxTangent)
@shape(LogSoftmaxCotangent)
def softmax_tangent_shape(op: TangentOp, args: Nodes) -> Shape:
    p, t = args
    if not same_shape(p.shape, t.shape):
        raise ShapeError(f"softmax tangent: p is {format_shape(p.shape)} and t is {format_shape(t.shape)}")
    return p.shape


@definition.dispatch
def softmax_definition(op: Softmax, y: Node) -> Node:
    e = apply(sympy.exp, y.args[0])
    return div(e, keep_axes(sum_axes(e, op.axes), e.shape, op.axes))


@definition.dispatch
def log_softmax_definition(op: LogSoftmax, y: Node) -> Node:
    (x,) = y.args
    total = sum_axes(apply(sympy.exp, x), op.axes)
    return sub(x, keep_axes(apply(sympy.log, total), x.shape, op.axes))


@definition.dispatch
def logsumexp_definition(op: LogSumExp, y: Node) -> Node:
    return apply(sympy.log, sum_axes(apply(sympy.exp, y.args[0]), op.axes))


@definition.dispatch
def softmax_tangent_definition(op: SoftmaxTangent, y: Node) -> Node:
    p, t = y.args
    return mul(p, sub(t, keep_axes(_mean(p, t, op.axes), t.shape, op.axes)))


@definition.dispatch
def log_softmax_tangent_definition(op: LogSoftmaxTangent, y: Node) -> Node:
    p, t = y.args
    return sub(t, keep_axes(_mean(p, t, op.axes), t.shape, op.axes))


@definition.dispatch
def log_softmax_cotangent_definition(op: LogSoftmaxCotangent, y: Node) -> Node:
    p, t = y.args
    return sub(t, mul(p, keep_axes(sum_axes(t, op.axes), t.shape, op.axes)))


# ---- derivatives --------------------------------------------------------------------------------


@jvp.dispatch
def softmax_jvp(op: Softmax, y: Node, tangents: Tangents) -> Tangent:
    (x_dot,) = tangents
    return softmax_tangent(y, x_dot, op.axes) if isinstance(x_dot, Node) else ZERO


@jvp.dispatch
def log_softmax_jvp(op: LogSoftmax, y: Node, tangents: Tangents) -> Tangent:  # ẋ − Σ p ẋ
    (x_dot,) = tangents
    if not isinstance(x_dot, Node):
        return ZERO
    return log_softmax_tangent(softmax(y.args[0], op.axes), x_dot, op.axes)


@jvp.dispatch
def logsumexp_jvp(op: LogSumExp, y: Node, tangents: Tangents) -> Tangent:  # Σ p ẋ
    (x_dot,) = tangents
    if not isinstance(x_dot, Node):
        return ZERO
    return _mean(softmax(y.args[0], op.axes), x_dot, op.axes)


@jvp.dispatch
def softmax_tangent_jvp(op: SoftmaxTangent, y: Node, tangents: Tangents) -> Tangent:
    # d(p ∘ (t − ⟨p, t⟩)) = ṗ ∘ (t − ⟨p, t⟩) − p ∘ ⟨ṗ, t⟩ + p ∘ (ṫ − ⟨p, ṫ⟩)
    p, t = y.args
    p_dot, t_dot = tangents
    terms: list[Tangent] = []
    if isinstance(p_dot, Node):
        centered = log_softmax_tangent(p, t, op.axes)
        moved = keep_axes(_mean(p_dot, t, op.axes), t.shape, op.axes)
        terms.append(sub(mul(p_dot, centered), mul(p, moved)))
    if isinstance(t_dot, Node):
        terms.append(softmax_tangent(p, t_dot, op.axes))
    return add_tangents(terms)


@jvp.dispatch
def log_softmax_tangent_jvp(op: LogSoftmaxTangent, y: Node, tangents: Tangents) -> Tangent:
    # −⟨ṗ, t⟩ + ṫ − ⟨p, ṫ⟩
    p, t = y.args
    p_dot, t_dot = tangents
    terms: list[Tangent] = []
    if isinstance(p_dot, Node):
        terms.append(neg(keep_axes(_mean(p_dot, t, op.axes), t.shape, op.axes)))
    if isinstance(t_dot, Node):
        terms.append(log_softmax_tangent(p, t_dot, op.axes))
    return add_tangents(terms)


@jvp.dispatch
def log_softmax_cotangent_jvp(op: LogSoftmaxCotangent, y: Node, tangents: Tangents) -> Tangent:
    # −ṗ Σ t + ṫ − p Σ ṫ
    p, t = y.args
    p_dot, t_dot = tangents
    terms: list[Tangent] = []
    if isinstance(p_dot, Node):
        terms.append(neg(mul(p_dot, keep_axes(sum_axes(t, op.axes), t.shape, op.axes))))
    if isinstance(t_dot, Node):
        terms.append(log_softmax_cotangent(p, t_dot, op.axes))
    return add_tangents(terms)


@transpose.dispatch
def softmax_tangent_transpose(op: SoftmaxTangent, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    return ZERO, softmax_tangent(y.args[0], y_bar, op.axes)


@transpose.dispatch
def log_softmax_tangent_transpose(op: LogSoftmaxTangent, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    return ZERO, log_softmax_cotangent(y.args[0], y_bar, op.axes)


@transpose.dispatch
def log_softmax_cotangent_transpose(op: LogSoftmaxCotangent, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    return ZERO, log_softmax_tangent(y.args[0], y_bar, op.axes)


@batch.dispatch
def exponential_batch(op: ExponentialOp, args: Nodes, batched: Flags, count: Count) -> Node:
    lifted = tuple(lift(a, b, count) for a, b in zip(args, batched, strict=True))
    return Node.of(type(op)(tuple(k + 1 for k in op.axes)), lifted)


# ---- costs and values ---------------------------------------------------------------------------


@flops.dispatch
def softmax_flops(op: Softmax, y: Node) -> Count:  # exp, add, divide
    return 3 * size(y.shape)


@flops.dispatch
def log_softmax_flops(op: LogSoftmax, y: Node) -> Count:  # exp, add, subtract; one log for each sum
    sums = size(dim for k, dim in enumerate(y.shape) if k not in op.axes)
    return 3 * size(y.shape) + sums


@flops.dispatch
def logsumexp_flops(op: LogSumExp, y: Node) -> Count:  # exp, add; one log for each sum
    return 2 * size(y.args[0].shape) + size(y.shape)


@flops.dispatch
def softmax_tangent_flops(op: SoftmaxTangent, y: Node) -> Count:  # two products, a sum, a difference
    return 4 * size(y.shape)


@flops.dispatch
def log_softmax_tangent_flops(op: LogSoftmaxTangent, y: Node) -> Count:  # a product, a sum, a difference
    return 3 * size(y.shape)


@flops.dispatch
def log_softmax_cotangent_flops(op: LogSoftmaxCotangent, y: Node) -> Count:  # a sum, a product, a difference
    return 3 * size(y.shape)


def _exponentials(x: Any, axes: tuple[int, ...]) -> tuple[Array | float, Array | float, Array | float]:
    """(m, exp(x − m), Σ exp(x − m)), the last two with the axes kept; m is 0 for exact numbers."""
    if x.dtype == object:
        e = apply_values(sympy.exp, (x,))
        return 0, e, e.sum(axis=axes, keepdims=True)
    highest = x.max(axis=axes, keepdims=True) if x.size else x.sum(axis=axes, keepdims=True)
    finite = np.where(np.isfinite(highest), highest, 0)
    e = np.exp(x - finite)
    return finite, e, np.sum(e, axis=axes, keepdims=True)


@evaluate.dispatch
def softmax_evaluate(op: Softmax, values: Values) -> Array:
    _, e, total = _exponentials(np.asarray(values[0]), op.axes)
    return divide(e, total)


@evaluate.dispatch
def log_softmax_evaluate(op: LogSoftmax, values: Values) -> Array:
    x = np.asarray(values[0])
    shift, _, total = _exponentials(x, op.axes)
    return (x - shift) - apply_values(sympy.log, (total,))


@evaluate.dispatch
def logsumexp_evaluate(op: LogSumExp, values: Values) -> Array:
    shift, _, total = _exponentials(np.asarray(values[0]), op.axes)
    return np.squeeze(apply_values(sympy.log, (total,)) + shift, axis=op.axes)[()]


@evaluate.dispatch
def softmax_tangent_evaluate(op: SoftmaxTangent, values: Values) -> Array:
    p, t = values
    return p * _centered(p, t, op.axes)


@evaluate.dispatch
def log_softmax_tangent_evaluate(op: LogSoftmaxTangent, values: Values) -> Array:
    p, t = values
    return _centered(p, t, op.axes)


@evaluate.dispatch
def log_softmax_cotangent_evaluate(op: LogSoftmaxCotangent, values: Values) -> Array:
    p, t = (np.asarray(v) for v in values)
    made = t - p * np.sum(t, axis=op.axes, keepdims=True)
    if p.dtype == object:
        return made
    likely = p > LIKELY
    rest = np.sum(np.where(likely, 0, made), axis=op.axes, keepdims=True)
    return np.where(likely, -rest, made)


def _centered(p: Array, t: Array, axes: tuple[int, ...]) -> Array:
    """t − Σ p t, from differences to the t of a p of almost 1; exact numbers need none."""
    p, t = np.asarray(p), np.asarray(t)
    if p.dtype != object:
        t = t - np.sum(np.where(p > LIKELY, t, 0), axis=axes, keepdims=True)
    made: Array = t - np.sum(p * t, axis=axes, keepdims=True)
    return made
