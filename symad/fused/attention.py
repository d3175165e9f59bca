"""Attention with any score function and mask: a fused op, with fused ops for its derivatives.

For queries q (B, H, N, d), keys k (B, G, M, d) and values v (B, G, M, d_v), G a divisor of H, with
s_ij = scale ⟨q_i, k_j⟩ and t_ij = f(s_ij, b, h, i, j, θ) where the mask allows the pair:

    L_i = log Σ_j exp(t_ij),   p = exp(t − L),   o = p v.

The tangent, at fixed (q, k, v, θ, o, L), is one linear op of (q̇, k̇, v̇, θ̇), and the transpose of this op
is another op, of (ō, L̄); with Δ = rowsum(ō ∘ o) − L̄

    L̇ = Σ_j p ∘ ṫ,   ȯ = (p ∘ ṫ) v + p v̇ − L̇ o;      t̄ = p ∘ (ō vᵀ − Δ),   v̄ = pᵀ ō,

and q̄, k̄, θ̄ from t̄ through f (Dao et al. 2022, arXiv 2205.14135, section 3.1 and algorithm 4). The
tangent of the cotangents is a fourth op, from which Hessian-vector products through attention are made.
`symad.fused.attention_definition` defines their values; backends have tiled forms.

An op has several results, numbered by ``part``; a backend computes all that are used in one pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from symad.core.dims import Shape, format_shape, same_dim, same_shape, size
from symad.core.expressions import Formula
from symad.core.graph import ZERO, Node, rebuild, shape, topological
from symad.core.questions import (
    Array,
    Count,
    Flags,
    Form,
    Forms,
    Nodes,
    Tangent,
    Tangents,
    Values,
    batch,
    definition,
    evaluate,
    flops,
    jvp,
    sympy_form,
    transpose,
)
from symad.errors import ShapeError
from symad.fused import attention_definition as written_out
from symad.fused.attention_ops import (
    Attention,
    AttentionCotangent,
    AttentionOp,
    AttentionSecond,
    AttentionTangent,
)
from symad.fused.score_functions import B, Parameter, S
from symad.ops.basic.shaping import broadcast_to, lift, reshape
from symad.ops.basic.sources import constant
from symad.transforms.batches import batch_outputs
from symad.transforms.tangents import dense


def attention(
    q: Node,
    k: Node,
    v: Node,
    params: Sequence[Node] = (),
    score: Formula | None = None,
    mask: Formula | None = None,
    parameters: tuple[Parameter, ...] = (),
    scale: float | None = None,
) -> tuple[Node, Node]:
    """(o, L); the formulas are those of `symad.fused.score_functions`."""
    names = tuple((p.name, p.ndim, p.integer) for p in parameters)
    chosen = Attention(score or Formula(S), mask or Formula(sp.true), names, scale, 0)
    args = (q, k, v, *params)
    return Node.of(chosen, args), in_part(chosen, Attention, 1, args)


def in_part(op: AttentionOp, kind: type[AttentionOp], part: int, args: Nodes) -> Node:
    """A result of another op with the same score."""
    return Node.of(kind(op.score, op.mask, op.parameters, op.scale, part), args)


# ---- shapes -------------------------------------------------------------------------------------


def _shapes(op: AttentionOp, args: Nodes) -> tuple[Shape, Shape]:
    """The shapes of o and L."""
    q, k, v = args[:3]
    shapes = ", ".join(f"{n} {format_shape(a.shape)}" for n, a in zip("qkv", args[:3], strict=False))
    if any(len(a.shape) != 4 for a in (q, k, v)):
        raise ShapeError(f"attention: {shapes}; give (batch, heads, length, width)")
    pairs = [(q, k, 0), (q, k, 3), (k, v, 0), (k, v, 1), (k, v, 2)]
    if not all(same_dim(a.shape[axis], b.shape[axis]) for a, b, axis in pairs):
        raise ShapeError(
            f"attention: {shapes}; q and k share the batch and the head dim, k and v all but the last axis"
        )
    heads, groups = q.shape[1], k.shape[1]
    if not same_dim(heads, groups) and (
        not (isinstance(heads, int) and isinstance(groups, int)) or groups == 0 or heads % groups
    ):
        raise ShapeError(f"attention: {shapes}; the query heads must be a multiple of the key heads")
    for p, node in zip(op.given, args[3:], strict=False):
        if len(node.shape) != p.ndim:
            raise ShapeError(
                f"attention: parameter {p.name} has shape {format_shape(node.shape)}, but is used with "
                f"{p.ndim} indices"
            )
    return (*q.shape[:3], v.shape[3]), q.shape[:3]


def _check(op: AttentionOp, args: Nodes, expected: Sequence[Shape]) -> None:
    if len(args) != op.inner + len(expected) or not all(
        same_shape(a.shape, s) for a, s in zip(args[op.inner :], expected, strict=True)
    ):
        shapes = ", ".join(format_shape(a.shape) for a in args)
        raise ShapeError(f"{type(op).__name__}: arguments of shapes {shapes} do not fit together")


@shape(Attention)
def attention_shape(op: Attention, args: Nodes) -> Shape:
    out, rows = _shapes(op, args)
    _check(op, args, ())
    return rows if op.part else out


@shape(AttentionTangent)
def tangent_shape(op: AttentionTangent, args: Nodes) -> Shape:
    out, rows = _shapes(op, args)
    _check(op, args, (out, rows, *(args[r].shape for r in op.real)))
    return rows if op.part else out


@shape(AttentionCotangent)
def cotangent_shape(op: AttentionCotangent, args: Nodes) -> Shape:
    out, rows = _shapes(op, args)
    _check(op, args, (out, rows, out, rows))
    return args[op.part].shape


@shape(AttentionSecond)
def second_shape(op: AttentionSecond, args: Nodes) -> Shape:
    out, rows = _shapes(op, args)
    _check(op, args, (out, rows) * 2 + tuple(a.shape for a in args[:3]) + (out, rows) * 2)
    return args[op.part].shape


# ---- derivatives --------------------------------------------------------------------------------


def _both(op: AttentionOp, args: Nodes) -> Nodes:
    """(o, L) of an attention with these arguments."""
    return tuple(in_part(op, Attention, part, args[: op.inner]) for part in (0, 1))


@jvp.dispatch
def attention_jvp(op: Attention, y: Node, tangents: Tangents) -> Tangent:
    if not any(isinstance(tangents[r], Node) for r in op.real):
        return ZERO
    dots = tuple(dense(tangents[r], y.args[r]) for r in op.real)
    return in_part(op, AttentionTangent, op.part, (*y.args, *_both(op, y.args), *dots))


def _along_linear(y: Node, at: int, tangents: Tangents) -> Tangent:
    """The tangent of an op that is linear in the arguments from number ``at`` on."""
    if any(isinstance(t, Node) for t in tangents[:at]):
        return written_out.push_through(y, tangents)
    if not any(isinstance(t, Node) for t in tangents):
        return ZERO
    dots = tuple(dense(t, a) for t, a in zip(tangents[at:], y.args[at:], strict=True))
    return Node.of(y.op, (*y.args[:at], *dots))


@jvp.dispatch
def tangent_jvp(op: AttentionTangent, y: Node, tangents: Tangents) -> Tangent:
    """The op itself along the linear arguments; the definition along the others."""
    return _along_linear(y, op.inner + 2, tangents)


@transpose.dispatch
def tangent_transpose(op: AttentionTangent, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    at = op.inner + 2
    bars = [broadcast_to(constant(0), a.shape) for a in y.args[op.inner : at]]
    bars[op.part] = y_bar
    args = (*y.args[:at], *bars)
    made = [
        in_part(op, AttentionCotangent, part, args) if flag else ZERO
        for part, flag in zip(op.real, linear[at:], strict=True)
    ]
    return (*[ZERO] * at, *made)


@jvp.dispatch
def cotangent_jvp(op: AttentionCotangent, y: Node, tangents: Tangents) -> Tangent:
    """A tiled op if parameters have no tangent and the result belongs to q, k or v; else the definition."""
    at = op.inner + 2
    if not any(isinstance(t, Node) for t in tangents):
        return ZERO
    if not any(isinstance(t, Node) for t in tangents[:at]):
        bars = tuple(dense(t, a) for t, a in zip(tangents[at:], y.args[at:], strict=True))
        return Node.of(op, (*y.args[:at], *bars))
    if op.part > 2 or any(isinstance(t, Node) for t in tangents[3 : op.inner]):
        return written_out.push_through(y, tangents)
    moving = (*range(3), *range(op.inner, op.inner + 4))
    dots = tuple(dense(tangents[k], y.args[k]) for k in moving)
    return in_part(op, AttentionSecond, op.part, (*y.args, *dots))


@transpose.dispatch
def cotangent_transpose(op: AttentionCotangent, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    at = op.inner + 2
    dots = tuple(y_bar if r == op.part else broadcast_to(constant(0), y.args[r].shape) for r in op.real)
    made = [
        in_part(op, AttentionTangent, part, (*y.args[:at], *dots)) if flag else ZERO
        for part, flag in enumerate(linear[at:])
    ]
    return (*[ZERO] * at, *made)


@jvp.dispatch
def second_jvp(op: AttentionSecond, y: Node, tangents: Tangents) -> Tangent:
    return _along_linear(y, op.inner + 4, tangents)


@transpose.dispatch
def second_transpose(op: AttentionSecond, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    tangents = [flag and k >= op.inner + 4 for k, flag in enumerate(linear)]
    return written_out.transpose_through(y, y_bar, tangents)


# ---- definitions, values and costs --------------------------------------------------------------


@definition.dispatch
def attention_definition(op: AttentionOp, y: Node) -> Node:
    return written_out.definition_of(y)


@evaluate.dispatch
def attention_evaluate(op: AttentionOp, values: Values) -> Array:
    return written_out.evaluated(op, values)


@flops.dispatch
def attention_flops(op: AttentionOp, y: Node) -> Count:  # those of the definition
    _, node = written_out.on_fresh(op, [a.shape for a in y.args])
    return sum(flops(n.op, n) for n in topological([node]))


@batch.dispatch
def attention_batch(op: AttentionOp, args: Nodes, batched: Flags, count: Count) -> Node:
    """The new axis is merged with the batch; the definition if b or a parameter depends on the element."""
    shared = {r for r in range(len(args)) if 3 <= r < op.inner or _of_parameter(op, r)}
    apart = any(f.expression.has(B) for f in (op.score, op.mask)) or op.part > 2
    if apart or any(batched[r] for r in shared):
        shapes = [a.shape[1:] if flag else a.shape for a, flag in zip(args, batched, strict=True)]
        fresh, made = written_out.on_fresh(op, shapes)
        pairs = list(zip(fresh, args, batched, strict=True))
        outputs = rebuild([made], {f: a for f, a, flag in pairs if not flag})
        return batch_outputs(outputs, {f: a for f, a, flag in pairs if flag}, count)[0]
    lifted = [
        a if r in shared else lift(a, flag, count)
        for r, (a, flag) in enumerate(zip(args, batched, strict=True))
    ]
    joined = [a if r in shared else _joined(a) for r, a in enumerate(lifted)]
    y = Node.of(op, tuple(joined))
    return reshape(y, (*lifted[0].shape[:2], *y.shape[1:]))


def _joined(a: Node) -> Node:
    return reshape(a, (size(a.shape[:2]), *a.shape[2:]))


def _of_parameter(op: AttentionOp, position: int) -> bool:
    """True if an argument is a parameter's tangent."""
    return isinstance(op, AttentionTangent) and position >= op.inner + 5


# ---- examples -----------------------------------------------------------------------------------


@sympy_form.dispatch
def attention_sympy(op: AttentionOp, y: Node, forms: Forms) -> Form:
    return None  # no SymPy class: the op is wrapped, so that tracing returns it
