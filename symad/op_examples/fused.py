"""Examples of attention, sums over pairs, softmax and random numbers, for tests and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sympy as sp

from symad.core.dims import Shape
from symad.core.expressions import Formula
from symad.core.graph import Node
from symad.core.questions import EXAMPLES, examples
from symad.fused.attention_ops import (
    Attention,
    AttentionCotangent,
    AttentionOp,
    AttentionSecond,
    AttentionTangent,
)
from symad.fused.pair_sum import NUMBER, PairOp, PairSum, PairSumCotangent, PairSumTangent, in_part
from symad.fused.score_functions import H, I, J, Parameter, S, parameter_symbol
from symad.op_examples.arrays import matrix, vector
from symad.ops.arrays.random import KEY, FoldIn, Uniform, fold_in, key_of, split, uniform
from symad.ops.arrays.softmax import (
    LogSoftmax,
    LogSoftmaxCotangent,
    LogSoftmaxTangent,
    LogSumExp,
    Softmax,
    SoftmaxTangent,
    log_softmax,
    log_softmax_cotangent,
    log_softmax_tangent,
    logsumexp,
    softmax,
    softmax_tangent,
)
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.sources import array_constant, constant, input_node
from symad.ops.elementwise.apply import apply


def _inputs(*shapes: Shape) -> list[Node]:
    return [input_node(sp.IndexedBase(f"x_{k}", shape=s, real=True), s) for k, s in enumerate(shapes)]


def _attentions(kind: type[AttentionOp], *more: Shape, part: int = 0) -> list[Node]:
    """A plain causal attention, and one with a soft cap, learned slopes and a window, without dead rows."""
    plain = (Formula(S), Formula(sp.true), (), None, part)
    slope = Parameter("slope", 1, False)
    curved = 2 * sp.tanh((S + parameter_symbol(slope)[H] * (J - I)) / 2)
    window = sp.And(J <= I, I - J < 2)
    scored = (Formula(curved), Formula(window), (("slope", 1, False),), 0.5, part)
    made = []
    for fields, parameters in ((plain, ()), (scored, ((2,),))):
        op = kind(*fields)
        q, k, v = (1, 2, 3, 2), (1, 1, 3, 2), (1, 1, 3, 2)
        dots = [q, k, v, *parameters] if kind is AttentionTangent else [q, k, v]
        shapes = [q, k, v, *parameters, *([(1, 2, 3, 2), (1, 2, 3)] if kind is not Attention else [])]
        extra = {
            Attention: [],
            AttentionTangent: dots,
            AttentionCotangent: [(1, 2, 3, 2), (1, 2, 3)],
            AttentionSecond: [(1, 2, 3, 2), (1, 2, 3), *dots, *[(1, 2, 3, 2), (1, 2, 3)] * 2],
        }[kind]
        made.append(Node.of(op, tuple(_inputs(*shapes, *extra))))
    return made


def _pair_inputs(*shapes: Shape) -> tuple[Node, ...]:
    return tuple(
        input_node(sp.IndexedBase(f"x_{k}", shape=s, real=True) if s else sp.Symbol(f"x_{k}", real=True), s)
        for k, s in enumerate(shapes)
    )


def _pair_sums(kind: type[PairOp], parts: Sequence[int]) -> list[Node]:
    """A Gaussian kernel with a width, and scores with a vector of weights."""
    x, y, w = (sp.IndexedBase(name, real=True) for name in "xyw")
    distance = sum((x[k] - y[k]) ** 2 for k in range(2))
    gaussian = Formula(sp.exp(-distance / (2 * sp.Symbol("ell", real=True) ** 2)))
    scores = Formula(sum(w[k] * x[k] * y[k] for k in range(2)) - sp.Abs(x[0] - y[1]))
    made = []
    for formula, name, length, reduce in (
        (gaussian, "ell", NUMBER, "sum"), (scores, "w", 2, "softmax"), (scores, "w", 2, "logsumexp"),
    ):  # fmt: skip
        columns = 1 if reduce == "logsumexp" else 2
        inner: list[Shape] = [(3, 2), (4, 2), (4, columns), () if length == NUMBER else (length,)]
        for part in parts:
            op = kind(formula, ((name, length),), reduce, part)
            if part and kind is not PairSumCotangent and reduce != "softmax":
                continue
            if kind is PairSumCotangent:
                *args, bar = _pair_inputs(*inner, (3, columns))
                several = (0, 1) if reduce == "softmax" else (0,)
                known = [in_part(op, PairSum, k, tuple(args)) for k in several]
                made.append(Node.of(op, (*args, bar, *known)))
            else:
                made.append(Node.of(op, _pair_inputs(*inner * (2 if kind is PairSumTangent else 1))))
    return made


def _example_key(name: str) -> Node:
    """⌊2¹⁶ x⌋ of an input (4,) in [0, 1): a key at every point."""
    return apply(sp.floor, mul(constant(2**16), vector(name, KEY)))


def _table() -> Node:
    return matrix("A", 3, 4)


def _tangents(make: Callable[[Node, Node, tuple[int, ...]], Node]) -> list[Node]:
    """Of probabilities without a likely element in some rows, and with one in others."""
    t = matrix("T", 3, 4)
    return [make(softmax(mul(constant(2), _table()), axes), t, axes) for axes in ((1,), (0, 1))]


@examples(Uniform)
def uniform_examples() -> list[Node]:
    return [uniform(_example_key("x"), (2, 3)), uniform(_example_key("x"))]


@examples(FoldIn)
def fold_in_examples() -> list[Node]:
    return [fold_in(_example_key("x"), constant(7)), split(array_constant(key_of(1)), 3)]


EXAMPLES.update(
    {
        Attention: lambda: [*_attentions(Attention), *_attentions(Attention, part=1)],
        AttentionTangent: lambda: [*_attentions(AttentionTangent), *_attentions(AttentionTangent, part=1)],
        AttentionCotangent: lambda: [n for k in range(3) for n in _attentions(AttentionCotangent, part=k)],
        AttentionSecond: lambda: [n for k in range(3) for n in _attentions(AttentionSecond, part=k)],
        PairSum: lambda: _pair_sums(PairSum, range(2)),
        PairSumTangent: lambda: _pair_sums(PairSumTangent, range(2)),
        PairSumCotangent: lambda: _pair_sums(PairSumCotangent, range(4)),
        Softmax: lambda: [softmax(_table()), softmax(_table(), (1,))],
        LogSoftmax: lambda: [log_softmax(_table()), log_softmax(_table(), (0,))],
        LogSumExp: lambda: [logsumexp(_table()), logsumexp(_table(), (1,))],
        SoftmaxTangent: lambda: _tangents(softmax_tangent),
        LogSoftmaxTangent: lambda: _tangents(log_softmax_tangent),
        LogSoftmaxCotangent: lambda: _tangents(log_softmax_cotangent),
    }
)
