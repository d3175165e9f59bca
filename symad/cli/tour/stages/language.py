"""Stages of the parts of language models: linear units, embeddings, heads, positions, blocks."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import sympy

import symad
from symad.cli.tour.stage import Finding, Made, TourModel, stage
from symad.cli.tour.stages.sequences import numbers
from symad.core.arrays import Array
from symad.models.layers import linear_unit, normalization
from symad.models.layers.gated import FeedForwardBlock
from symad.models.layers.losses import cross_entropy
from symad.models.layers.parameters import trace_model
from symad.models.sequences import embedding, ngram
from symad.models.transformers import positions
from symad.models.transformers.attention import MultiHead, attention, attention_columns
from symad.models.transformers.presets import PRESETS

SAME = ("proved", "tested")


@stage("linear unit", "a linear recurrence, and why an autoregressive model is one")
def unit() -> TourModel:
    """The squared outputs of AR(2) as a recurrent unit, on four numbers."""

    def energy(w: Array, x: Array) -> Array:
        return np.sum(linear_unit.apply(linear_unit.from_ar(w), x) ** 2)

    return TourModel(energy, (numbers(2), numbers(4)), inputs=[(2,), (4,)], use=autoregression)


def autoregression(made: Made) -> list[Finding]:
    """Both forms are one function of all weights and inputs; Fibonacci numbers."""

    def windows(w: Array, x: Array) -> Array:
        padded = np.concatenate([np.zeros(3), x])
        return np.stack([w @ padded[t : t + 4][::-1] for t in range(6)])

    direct = symad.trace(windows, [(4,), (6,)])
    recurrent = symad.trace(lambda w, x: linear_unit.apply(linear_unit.from_ar(w), x), [(4,), (6,)])
    status = symad.equal(direct, recurrent).status
    series = [1.0, 1.0]
    for _ in range(8):
        series.append(float(linear_unit.apply(linear_unit.from_ar([1.0, 1.0]), np.array(series))[-1]))
    grown = [int(v) for v in series]
    return [
        Finding(f"AR(4) by its windows and as a recurrent unit are equal: {status}", status == "proved"),
        Finding(f"w = (1, 1) continues 1, 1: {grown}", grown[-1] == 55),
    ]


@stage("embedding", "a vector for each token, tied to the scores; counting as the baseline")
def vectors() -> TourModel:
    """The cross-entropy of the next token with a table shared by the embedding and the scores."""
    tokens, targets = np.array([0, 2, 1]), np.array([2, 1, 0])

    def loss(C: Array) -> Array | float:
        return cross_entropy(embedding.decode(embedding.embed(C, tokens), C), targets)

    small = symad.trace(
        lambda C: cross_entropy(embedding.decode(embedding.embed(C, tokens[:1]), C), np.array([1])), [(2, 1)]
    )
    return TourModel(loss, (numbers(3, 2),), inputs=[(3, 2)], use=look_up_and_count, check=small)


def look_up_and_count(made: Made) -> list[Finding]:
    """A lookup is a product with one-hot rows; the rank of W₁ C; Shannon's word sampling."""
    table, tokens = numbers(7, 2), np.array([3, 0, 6, 3])
    apart = np.abs(embedding.embed(table, tokens) - embedding.one_hot(tokens, 7) @ table).max()
    rank = np.linalg.matrix_rank(numbers(5, 2) @ table.T)
    text = "it was the best of times it was the worst of times it was the age of wisdom"
    words = text.split(" ")
    known = sorted(set(words))
    ids = [known.index(w) for w in words]
    model = ngram.fit(ids, 2, len(known))
    drawn = [ids[0], *model.sample(ids[:1], 7, seed=3)]
    occurred = set(pairwise(drawn)) <= set(pairwise(ids))
    spoken = " ".join(known[k] for k in drawn)
    return [
        Finding(f"a lookup and the product with one-hot rows differ by {apart:g}", bool(apart == 0)),
        Finding(f"W₁ C (5, 7) through two features has rank {rank}", bool(rank == 2)),
        Finding(f"first-order words after Shannon: '{spoken}', each pair of them occurred", occurred),
    ]


@stage("heads", "several heads, and attention to another sequence; both conventions; permutations")
def heads() -> TourModel:
    """The squared output of two heads that read two tokens of another sequence."""
    model = MultiHead(2, 2, 1, context=1)
    shapes = model.shapes
    graph = trace_model(lambda p, X, Z: np.sum(model.apply(p, X, Z) ** 2), shapes, (1, 2), (2, 1))
    one = MultiHead(1, 1)
    small = trace_model(lambda p, X: np.sum(one.apply(p, X)), one.shapes, (2, 1))
    point = (*model.init(0, 1.0).values(), numbers(1, 2), numbers(2, 1))
    return TourModel(graph, point, wrt=list(shapes), use=permute, check=small)


def permute(made: Made) -> list[Finding]:
    """Attn(P X) = P Attn(X); rows and columns as tokens."""
    model, order = MultiHead(2, 1), np.array([2, 0, 1])
    before = trace_model(lambda p, X: model.apply(p, X[order]), model.shapes, (3, 2))
    after = trace_model(lambda p, X: model.apply(p, X)[order], model.shapes, (3, 2))
    moved = symad.equal(before, after).status
    shapes = [(2, 1), (3, 1), (3, 2)]
    rows = symad.trace(attention, shapes)
    columns = symad.trace(lambda Q, K, V: attention_columns(Q.T, K.T, V.T).T, shapes)
    turned = symad.equal(rows, columns).status
    return [
        Finding(f"Attn(P X) = P Attn(X) for all X and all weights: {moved}", moved in SAME),
        Finding(f"tokens as rows and as columns give one function: {turned}", turned in SAME),
    ]


@stage("positions", "where a token stands: sinusoids, rotations, biases of the scores")
def places() -> TourModel:
    """The score of a query at t = 3 and a key at t = 1, both turned by their positions."""

    def score(q: Array, k: Array) -> Array:
        return np.sum(positions.rotate(q, np.array([3]), 100) * positions.rotate(k, np.array([1]), 100))

    return TourModel(score, (numbers(1, 4), numbers(1, 4)[:, ::-1]), inputs=[(1, 4), (1, 4)], use=turn)


def turn(made: Made) -> list[Finding]:
    """A shift is a rotation; rotary scores depend on the distance only; ALiBi's slopes."""
    t, delta = sympy.symbols("t Delta", real=True)
    base = sympy.Symbol("base", positive=True)
    shifted = positions.sinusoidal(t + delta, 4, base)
    rotated = positions.shift_matrix(delta, 4, base) * sympy.Matrix(positions.sinusoidal(t, 4, base))
    pairs = zip(shifted, rotated, strict=True)
    same = [sympy.expand(sympy.expand_trig(sympy.expand(a)) - b) == 0 for a, b in pairs]
    q, k = numbers(1, 4), numbers(1, 4)[:, ::-1]

    def score(t: int, s: int) -> float:
        at = positions.rotate(q, np.array([t]), 100), positions.rotate(k, np.array([s]), 100)
        return float(np.sum(at[0] * at[1]))

    apart = max(abs(score(t + 2, t) - made.graph(q, k)) for t in range(50))
    slopes = positions.alibi_slopes(4).tolist()
    return [
        Finding("PE[t + Δ] = R(Δ) PE[t] for all t, Δ and bases: by SymPy, to zero", all(same)),
        Finding(f"rotary scores at distance 2 differ by {apart:.0e} along fifty positions", apart < 1e-13),
        Finding(f"ALiBi's slopes of four heads: {slopes}", slopes == [0.25, 0.0625, 0.015625, 0.00390625]),
    ]


@stage("blocks", "norms and gated blocks; the published architectures as switches of one block")
def blocks() -> TourModel:
    """The squared output of RMS norm and SwiGLU on two tokens."""
    model = FeedForwardBlock(2, 2, "swiglu", bias=False)

    def loss(p: Mapping[str, Array], X: Array) -> Array:
        return np.sum(model.apply(p, normalization.rms_norm(X, p["gamma"])) ** 2)

    shapes = {**model.shapes, "gamma": (2,)}
    tiny = FeedForwardBlock(1, 1, "swiglu", bias=False)
    small = trace_model(lambda p, X: np.sum(tiny.apply(p, X) ** 2), tiny.shapes, (1, 1))
    point = (*model.init(0, 1.0).values(), np.ones(2), numbers(2, 2))
    return TourModel(trace_model(loss, shapes, (2, 2)), point, wrt=list(shapes), use=normalize, check=small)


def normalize(made: Made) -> list[Finding]:
    """Proves the invariances of a layer norm, and compares the published sizes."""
    norm = symad.trace(lambda x, g: normalization.layer_norm(x, g), [(3,), (3,)])
    raised = symad.trace(lambda x, g: normalization.layer_norm(x + 7, g), [(3,), (3,)])
    blind = symad.equal(norm, raised).status
    worst = max(abs(p.estimate / 1e9 / p.published - 1) for p in PRESETS.values())
    sizes = ", ".join(f"{name} {p.estimate / 1e9:.2f}" for name, p in PRESETS.items())
    return [
        Finding(f"layer norm does not see a constant added to all features: {blind}", blind in SAME),
        Finding(f"12 L d² in 10⁹: {sizes}; at most {worst:.1%} from the published sizes", worst < 0.025),
    ]
