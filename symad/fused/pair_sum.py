"""Sums over all pairs of two point sets: a fused op, with fused ops for its derivatives.

For points x (N, D), y (M, D), weights b (M, E) and k_ij = f(x_i, y_j, θ):

    "sum"        a_i = Σ_j k_ij b_j                      (N, E)
    "logsumexp"  a_i = log Σ_j b_j exp(k_ij), b > 0      (N, 1), E = 1
    "softmax"    a_i = Σ_j p_ij b_j, p = softmax_j k     (N, E); and L_i = log Σ_j exp(k_ij), (N,)

(Charlier et al. 2021, JMLR 22(74)). Backends compute the value and the cotangents block by block,
without the matrix of pairs; tangents and further derivatives follow the definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp

from symad.core.dims import Shape, format_shape, same_dim, same_shape
from symad.core.expressions import Formula
from symad.core.graph import ZERO, Node, Op, rebuild, shape, topological
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
from symad.fused.attention_definition import at_pairs
from symad.numbers.values import unchecked
from symad.ops.arrays.softmax import logsumexp, softmax
from symad.ops.arrays.stacking import take
from symad.ops.basic.arithmetic import add
from symad.ops.basic.contraction import contract
from symad.ops.basic.shaping import broadcast_axes, broadcast_to, lift, reshape
from symad.ops.basic.sources import fresh_input
from symad.ops.elementwise.apply import apply
from symad.transforms.batches import batch_outputs
from symad.transforms.cotangents import pull
from symad.transforms.tangents import dense, push

REDUCTIONS = ("sum", "logsumexp", "softmax")
NUMBER = -1
"""The size of a parameter that is a number."""


@dataclass(frozen=True, eq=False)
class PairOp(Op):
    """Arguments begin with x, y, b and the parameters.

    Attributes:
        formula: f in the reads x[0], ..., y[0], ... and the parameters.
        parameters: name and length of each parameter, `NUMBER` for a number.
        reduce: one of `REDUCTIONS`.
        part: the number of the result.
    """

    formula: Formula
    parameters: tuple[tuple[str, int], ...]
    reduce: str
    part: int
    several = ("part",)

    @property
    def inner(self) -> int:
        """The number of arguments x, y, b and parameters."""
        return 3 + len(self.parameters)


@dataclass(frozen=True, eq=False)
class PairSum(PairOp):
    """(x, y, b, θ...) -> part 0: a; part 1, for "softmax": L."""


@dataclass(frozen=True, eq=False)
class PairSumTangent(PairOp):
    """(x, y, b, θ..., ẋ, ẏ, ḃ, θ̇...) -> the tangent of a part of `PairSum`."""


@dataclass(frozen=True, eq=False)
class PairSumCotangent(PairOp):
    """(x, y, b, θ..., ā, a, L) -> the cotangent of argument ``part``.

    a, and L for "softmax", are the values of `PairSum`: passing them saves a pass.
    """


def pair_sum(
    x: Node,
    y: Node,
    b: Node,
    formula: Formula,
    params: Sequence[Node] = (),
    parameters: tuple[tuple[str, int], ...] = (),
    reduce: str = "sum",
    part: int = 0,
) -> Node:
    """The reduction over j of f(x_i, y_j, θ) for every i."""
    return Node.of(PairSum(formula, parameters, reduce, part), (x, y, b, *params))


def in_part(op: PairOp, kind: type[PairOp], part: int, args: Nodes) -> Node:
    """A result of another op with the same function."""
    return Node.of(kind(op.formula, op.parameters, op.reduce, part), args)


def parts_of(op: PairOp) -> tuple[int, ...]:
    """The parts that one computation returns."""
    if isinstance(op, PairSumCotangent):
        return tuple(range(op.inner))
    return (0, 1) if op.reduce == "softmax" else (0,)


def unread(op: Op) -> tuple[int, ...]:
    """The positions of arguments that no result depends on: the cotangents of a sum do not need the sum."""
    return (op.inner + 1,) if isinstance(op, PairSumCotangent) and op.reduce == "sum" else ()


# ---- shapes -------------------------------------------------------------------------------------


def _result(op: PairOp, args: Nodes, part: int) -> Shape:
    x, y, b = args[:3]
    shapes = ", ".join(f"{n} {format_shape(a.shape)}" for n, a in zip("xyb", args[:3], strict=False))
    if op.reduce not in REDUCTIONS:
        raise ShapeError(f"reduce={op.reduce!r} is not one of {', '.join(REDUCTIONS)}")
    fits = len(x.shape) == len(y.shape) == len(b.shape) == 2
    if not fits or not same_dim(x.shape[1], y.shape[1]) or not same_dim(y.shape[0], b.shape[0]):
        raise ShapeError(f"pairs: {shapes}; give x (N, D), y (M, D) and b (M, E)")
    if op.reduce == "logsumexp" and b.shape[1] != 1:
        raise ShapeError(f"pairs: {shapes}; logsumexp takes one column of weights")
    for (name, length), node in zip(op.parameters, args[3:], strict=False):
        expected: Shape = () if length == NUMBER else (length,)
        if not same_shape(node.shape, expected):
            raise ShapeError(
                f"pairs: parameter {name} has shape {format_shape(node.shape)}, not {format_shape(expected)}"
            )
    return (x.shape[0],) if part else (x.shape[0], b.shape[1])


def _check(op: PairOp, args: Nodes, more: Sequence[Shape]) -> None:
    rest = args[op.inner :]
    if len(rest) != len(more) or not all(same_shape(a.shape, s) for a, s in zip(rest, more, strict=True)):
        shapes = ", ".join(format_shape(a.shape) for a in args)
        raise ShapeError(f"{type(op).__name__}: arguments of shapes {shapes} do not fit together")


@shape(PairSum)
def pair_sum_shape(op: PairSum, args: Nodes) -> Shape:
    found = _result(op, args, op.part)
    _check(op, args, ())
    return found


@shape(PairSumTangent)
def pair_tangent_shape(op: PairSumTangent, args: Nodes) -> Shape:
    found = _result(op, args, op.part)
    _check(op, args, [a.shape for a in args[: op.inner]])
    return found


@shape(PairSumCotangent)
def pair_cotangent_shape(op: PairSumCotangent, args: Nodes) -> Shape:
    found = _result(op, args, 0)
    _check(op, args, [found, found, *([found[:1]] if op.reduce == "softmax" else [])])
    return args[op.part].shape


# ---- definitions --------------------------------------------------------------------------------


def logits(op: PairOp, args: Nodes) -> Node:
    """k_ij for all pairs, (N, M)."""
    x, y = args[:2]
    full = (x.shape[0], y.shape[0])
    tables: dict[str, tuple[Node, int]] = {"x": (x, 0), "y": (y, 1)}
    values = dict(zip((name for name, _ in op.parameters), args[3:], strict=False))
    known: dict[sp.Symbol, Node] = {}
    replaced = {}
    expression = op.formula.expression
    for read in sorted(expression.atoms(sp.Indexed), key=sp.default_sort_key):
        name, (position,) = str(read.base.label), read.indices
        symbol = sp.Dummy(name, real=True)
        if name in tables:
            points, axis = tables[name]
            known[symbol] = broadcast_axes(take(points, 1, int(position)), full, (axis,))
        else:
            known[symbol] = take(values[name], 0, int(position))
        replaced[read] = symbol
    expression = expression.xreplace(replaced)
    for symbol in expression.free_symbols - known.keys():
        known[symbol] = values[symbol.name]
    return broadcast_to(at_pairs(expression, known), full)


def value(op: PairOp, args: Nodes, part: int) -> Node:
    """A part of `PairSum`."""
    k, b = logits(op, args), args[2]
    if op.reduce == "sum":
        return contract(["ij", "je"], "ie", k, b)
    if op.reduce == "logsumexp":
        weights = apply(sp.log, reshape(b, (b.shape[0],)))
        total = logsumexp(add(k, broadcast_axes(weights, k.shape, (1,))), (1,))
        return reshape(total, (k.shape[0], 1))
    if part:
        return logsumexp(k, (1,))
    return contract(["ij", "je"], "ie", softmax(k, (1,)), b)


def written_out(op: PairOp, args: Nodes) -> Node:
    """The definition of an op, at independent arguments."""
    if isinstance(op, PairSum):
        return value(op, args, op.part)
    inner = args[: op.inner]
    if isinstance(op, PairSumTangent):
        made = value(op, inner, op.part)
        dots = dict(zip(inner, args[op.inner :], strict=True))
        return dense(push([made], dots)[0], made)
    (bar,) = pull([value(op, inner, 0)], [args[op.inner]], [inner[op.part]])
    return dense(bar, inner[op.part])


def _on_fresh(op: PairOp, shapes: Sequence[Shape]) -> tuple[Nodes, Node]:
    fresh = tuple(fresh_input(s) for s in shapes)
    return fresh, written_out(op, fresh)


def _shapes(args: Nodes) -> list[Shape]:
    return [a.shape for a in args]


@definition.dispatch
def pair_definition(op: PairOp, y: Node) -> Node:
    fresh, made = _on_fresh(op, _shapes(y.args))
    return rebuild([made], dict(zip(fresh, y.args, strict=True)))[0]


# ---- derivatives --------------------------------------------------------------------------------


def _push_through(op: PairOp, y: Node, tangents: Tangents) -> Tangent:
    fresh, made = _on_fresh(op, _shapes(y.args))
    (moved,) = push([made], dict(zip(fresh, tangents, strict=True)))
    if not isinstance(moved, Node):
        return ZERO
    return rebuild([moved], dict(zip(fresh, y.args, strict=True)))[0]


@jvp.dispatch
def pair_sum_jvp(op: PairSum, y: Node, tangents: Tangents) -> Tangent:
    if not any(isinstance(t, Node) for t in tangents):
        return ZERO
    dots = tuple(dense(t, a) for t, a in zip(tangents, y.args, strict=True))
    return in_part(op, PairSumTangent, op.part, (*y.args, *dots))


@jvp.dispatch
def pair_tangent_jvp(op: PairSumTangent, y: Node, tangents: Tangents) -> Tangent:
    if any(isinstance(t, Node) for t in tangents[: op.inner]):
        return _push_through(op, y, tangents)
    dots = zip(tangents[op.inner :], y.args[op.inner :], strict=True)
    return Node.of(op, (*y.args[: op.inner], *(dense(t, a) for t, a in dots)))


@transpose.dispatch
def pair_tangent_transpose(op: PairSumTangent, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    inner, flags = y.args[: op.inner], linear[op.inner :]
    if op.part:  # of L, by the definition
        fresh = tuple(fresh_input(a.shape) for a in inner)
        wrt = [f for f, flag in zip(fresh, flags, strict=True) if flag]
        bars = iter(pull([value(op, fresh, op.part)], [y_bar], wrt))
        found = [next(bars) if flag else ZERO for flag in flags]
        there = dict(zip(fresh, inner, strict=True))
        made = [rebuild([b], there)[0] if isinstance(b, Node) else ZERO for b in found]
        return (*[ZERO] * op.inner, *made)
    residuals = (in_part(op, PairSum, part, inner) for part in parts_of(op))
    args = (*inner, y_bar, *residuals)
    made = [in_part(op, PairSumCotangent, k, args) if flag else ZERO for k, flag in enumerate(flags)]
    return (*[ZERO] * op.inner, *made)


@jvp.dispatch
def pair_cotangent_jvp(op: PairSumCotangent, y: Node, tangents: Tangents) -> Tangent:
    if any(isinstance(t, Node) for t in tangents[: op.inner]):
        return _push_through(op, y, tangents)
    bar_dot = tangents[op.inner]
    if not isinstance(bar_dot, Node):
        return ZERO
    return Node.of(op, (*y.args[: op.inner], bar_dot, *y.args[op.inner + 1 :]))


@transpose.dispatch
def pair_cotangent_transpose(op: PairSumCotangent, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    inner = y.args[: op.inner]
    dots = tuple(y_bar if k == op.part else dense(ZERO, a) for k, a in enumerate(inner))
    bars: list[Tangent] = [ZERO] * len(y.args)
    if linear[op.inner]:
        bars[op.inner] = in_part(op, PairSumTangent, 0, (*inner, *dots))
    return tuple(bars)


@batch.dispatch
def pair_batch(op: PairOp, args: Nodes, batched: Flags, count: Count) -> Node:
    """Batches the definition: kernels support one pair of point sets only."""
    shapes = [a.shape[1:] if flag else a.shape for a, flag in zip(args, batched, strict=True)]
    fresh, made = _on_fresh(op, shapes)
    pairs = list(zip(fresh, args, batched, strict=True))
    outputs = rebuild([made], {f: a for f, a, flag in pairs if not flag})
    (out,) = batch_outputs(outputs, {f: a for f, a, flag in pairs if flag}, count)
    return lift(out, True, count)


# ---- values and costs ---------------------------------------------------------------------------


@evaluate.dispatch
def pair_evaluate(op: PairOp, values: Values) -> Array:
    fresh, made = _on_fresh(op, [np.shape(v) for v in values])
    return unchecked([made], dict(zip(fresh, values, strict=True)))[0]


@flops.dispatch
def pair_flops(op: PairOp, y: Node) -> Count:  # those of the definition
    _, made = _on_fresh(op, _shapes(y.args))
    return sum(flops(n.op, n) for n in topological([made]))


# ---- examples -----------------------------------------------------------------------------------


@sympy_form.dispatch
def pair_sympy(op: PairOp, y: Node, forms: Forms) -> Form:
    return None  # no SymPy class: the op is wrapped, so that tracing returns it
