"""Stages of sequence models: recurrent networks, LSTM, attention, transformers."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

import symad
from symad.cli.tour.stage import Finding, Made, TourModel, stage
from symad.core.graph import Graph
from symad.core.signatures import Traceable
from symad.models.costs import layer_cost
from symad.models.layers import maximum
from symad.models.layers.feedforward import FeedForward
from symad.models.layers.parameters import trace_model
from symad.models.sequences import arma, tokenization
from symad.models.sequences.ctc import ctc
from symad.models.sequences.encoder_decoder import EncoderDecoder, context, dot_score
from symad.models.sequences.lstm import LSTM, step
from symad.models.sequences.neural_ar import NeuralAR
from symad.models.sequences.recurrent import Recurrent
from symad.models.sequences.rnn import RNN, jacobian_norms
from symad.models.transformers import adaptation, attention, positions
from symad.models.transformers.generation import generate
from symad.models.transformers.presets import parameter_counts
from symad.models.transformers.transformer import Transformer

Array = np.ndarray


def of(model: Any, *data: Any, small: Any = None, use: Any = None) -> TourModel:
    """A model's loss by its parameters, at initial values and some data."""
    p = model.init(0)
    graph = trace_model(model.loss, model.shapes, *data)
    options = {} if use is None else {"use": use}
    return TourModel(graph, (*p.values(), *data), wrt=list(p), check=small, **options)


def numbers(*shape: int) -> Array:
    """Fixed data."""
    return np.random.default_rng(7).normal(size=shape)


@stage("feed-forward", "two hidden layers, samples as rows or as columns")
def feed_forward() -> TourModel:
    """tanh network with a squared loss."""
    return of(
        FeedForward((2, 3, 3, 1)),
        numbers(4, 2),
        numbers(4, 1),
        small=FeedForward((1, 1, 1, 1)).graph(1),
        use=both_conventions,
    )


def both_conventions(made: Made) -> list[Finding]:
    """The network of transposed matrices."""
    right, left = FeedForward((2, 3, 3, 1)), FeedForward((2, 3, 3, 1), convention="left")
    p, x = right.init(1), numbers(4, 2)
    apart = np.abs(right.apply(p, x).T - left.apply({k: v.T for k, v in p.items()}, x.T)).max()
    return [Finding(f"rows and columns as samples differ by {apart:.1e}", bool(apart < 1e-14))]


@stage("rnn", "a recurrent network: backpropagation through time as the transpose of a scan", quick=True)
def recurrent() -> TourModel:
    """tanh, two inputs, three states, six steps."""
    small = RNN(1, 1, 1)
    certified = trace_model(small.loss, small.shapes, (2, 1), (2, 1))
    return of(RNN(2, 3, 2), numbers(6, 2), numbers(6, 2), small=certified, use=vanish)


def vanish(made: Made) -> list[Finding]:
    """Measures how fast gradients decay, and checks that the size of the graph does not depend on T."""
    model = RNN(1, 8, 1)
    p = model.init(0)
    norms = jacobian_norms(0.9 * p["W_hh1"], model.states(p, numbers(60, 1)))
    sizes = [len(trace_model(model.loss, model.shapes, (T, 1), (T, 1)).nodes) for T in (10, 10_000)]
    return [
        Finding(f"‖∂h_60/∂h_1‖ = {norms[-1]:.1e}: the gradient vanishes", bool(norms[-1] < 1e-2)),
        Finding(
            f"the graph of 10 steps has {sizes[0]} nodes, that of 10,000 steps {sizes[1]}",
            sizes[0] == sizes[1],
        ),
    ]


@stage("lstm", "long short-term memory: the additive path ∂c/∂c = diag(f)")
def long_memory() -> TourModel:
    """One layer, four steps."""
    small = LSTM(1, 1, 1)
    certified = trace_model(small.loss, small.shapes, (1, 1), (1, 1))
    return of(LSTM(1, 2, 1), numbers(4, 1), numbers(4, 1), small=certified, use=additive_path)


def additive_path(made: Made) -> list[Finding]:
    """∂c_T/∂c_0 is the product of the forget gates if W_h = 0; otherwise the gates contribute to it."""
    driven, c = numbers(20, 4, 2), numbers(2)
    driven[:, 1] += 3.0  # forget gates that forget little
    graph = symad.trace(lambda c, W: last_cell(c, driven, W), [(2,), (4, 2, 2)])
    jacobian = symad.jacobian(graph, "c")
    gates = np.prod(1 / (1 + np.exp(-driven[:, 1])), axis=0)
    apart = np.abs(jacobian(c, np.zeros((4, 2, 2))) - np.diag(gates)).max()
    norm = np.linalg.norm(jacobian(c, 0.3 * numbers(4, 2, 2)), 2)
    return [
        Finding(f"without W_h, ∂c_20/∂c_0 and diag(Π f_t) differ by {apart:.0e}", bool(apart < 1e-14)),
        Finding(f"with it, ‖∂c_20/∂c_0‖ = {norm:.2f}: after twenty steps the gradient is still there", True),
    ]


def last_cell(c: Any, driven: Array, W_h: Array) -> Array:
    """c_T of an LSTM from c_0 = c, h_0 = 0."""
    h = np.zeros_like(c)
    for z in driven:
        h, c = step(h, c, z, W_h)
    return c


@stage("recurrent layers", "a GRU in PyTorch's layout; ARMA by the Kalman filter; CTC; Taylor mode")
def gated_units() -> TourModel:
    """Both directions, two sequences of four steps."""
    model, small = Recurrent("gru", 2, 2, bidirectional=True), Recurrent("gru", 1, 1)
    graph = trace_model(lambda p, x: model.apply(p, x)[0].sum(), model.shapes, (4, 2, 2))
    certified = trace_model(lambda p, x: small.apply(p, x)[0].sum(), small.shapes, (1, 1))
    p = model.init(0)
    return TourModel(
        graph, (*p.values(), numbers(4, 2, 2)), wrt=list(p), check=certified, use=series_and_paths
    )


def series_and_paths(made: Made) -> list[Finding]:
    """The likelihood as a density of all numbers, CTC as a sum over paths, ten derivatives at once."""
    phi, theta, y = np.array([0.6]), np.array([0.3]), numbers(5)
    variance = (1 + 2 * 0.6 * 0.3 + 0.3**2) / (1 - 0.6**2)
    ahead = [variance, *(0.6**k * (0.6 * variance + 0.3) for k in range(4))]
    gamma = np.array(ahead)[np.abs(np.subtract.outer(range(5), range(5)))]
    density = -(y @ np.linalg.solve(gamma, y) + np.linalg.slogdet(2 * np.pi * gamma)[1]) / 2
    apart = abs(arma.log_likelihood(phi, theta, 0.0, 1.0, y) - density)

    log_p = numbers(3, 2) - np.logaddexp.reduce(numbers(3, 2), axis=1, keepdims=True)
    paths = [
        (1, 1, 1),
        (0, 1, 1),
        (1, 1, 0),
        (0, 0, 1),
        (0, 1, 0),
        (1, 0, 0),
    ]  # of the label 1; 0 is the blank
    total = -np.logaddexp.reduce([sum(log_p[t, k] for t, k in enumerate(path)) for path in paths])
    missed = abs(ctc(log_p, np.array([1]), None, None) - total)

    x = sympy.Symbol("x", real=True)
    nodes = len(symad.jet(sympy.exp(sympy.sin(x) * sympy.tanh(x)) / (1 + x**2), 10).nodes)
    return [
        Finding(f"ARMA(1, 1): the filter and the joint density differ by {apart:.0e}", apart < 1e-13),
        Finding(f"CTC and the sum over six paths differ by {missed:.0e}", bool(missed < 1e-13)),
        Finding(f"ten derivatives of one formula in {nodes} nodes", nodes <= 2000),
    ]


@stage("maximum", "the largest of five numbers by a ReLU network: weights that exist, and training")
def largest() -> TourModel:
    """The squared loss at the initial values of a training run."""
    p, x = maximum.init(1), numbers(5, 4)
    graph = trace_model(maximum.squared_loss, maximum.SHAPES, x.shape)
    return TourModel(graph, (*p.values(), x), wrt=list(p), use=exact_and_trained, check=one_unit())


def one_unit() -> Graph:
    """The squared answer of a network with one unit to two numbers, for the certificate."""
    shapes = {"W_in": (1,), "W_rec": (1, 1), "W_out": (1,)}
    return trace_model(lambda p, x: np.sum(maximum.apply(p, x) ** 2), shapes, (2, 1))


def exact_and_trained(made: Made) -> list[Finding]:
    """The exact weights on integers, and what gradient descent finds."""
    from symad.numeric.training.loop import train
    from symad.numeric.training.optimizers import Adam

    x = np.random.default_rng(0).integers(-1000, 1000, (5, 2000)).astype(float)
    wrong = np.abs(maximum.apply(maximum.exact_parameters(), x) - x.max(axis=0)).max()
    rng = np.random.default_rng(1)
    stream = ((maximum.batch(rng),) for _ in range(300))
    loss = trace_model(maximum.squared_loss, maximum.SHAPES, (5, 256))
    losses = train(loss, maximum.init(1), stream, Adam(0.01), 300).losses
    return [
        Finding(f"the exact weights err by {wrong:g} on 2000 integer sequences", bool(wrong == 0)),
        Finding(
            f"300 steps of Adam bring the squared error from {losses[0]:.2f} to {losses[-1]:.4f}, not to 0",
            losses[-1] < 0.2 * losses[0],
        ),
    ]


@stage("neural ar", "the next token from the last two: shared embedding, cross-entropy, byte pairs")
def next_token() -> TourModel:
    """Six tokens, two of context."""
    model = NeuralAR(6, 2, 2, 3)
    contexts, targets = np.array([[1, 2], [0, 5], [3, 1]]), np.array([0, 4, 2])
    return of(model, contexts, targets, use=byte_pairs)


def byte_pairs(made: Made) -> list[Finding]:
    """The merges of abracadabra."""
    learned = tokenization.learn("abracadabra", 8)
    merges = ", ".join(learned.texts[5:])
    return [Finding(f"byte pairs of 'abracadabra': {merges}", merges == "ab, ra, abra")]


@stage(
    "attention", "one head, masked: causality from the pattern; the multiplicative mask refuted", quick=True
)
def attend() -> TourModel:
    """softmax(Q Kᵀ / √d) V with three positions."""
    data = numbers(3, 2), numbers(3, 2)[::-1].copy(), numbers(3, 1)
    small = symad.trace(attention.attention, [(2, 1), (2, 1), (2, 1)])
    return TourModel(attention.attention, data, inputs=[d.shape for d in data], check=small, use=causality)


def causality(made: Made) -> list[Finding]:
    """The positions that each position depends on, from the graph alone."""
    mask, n = attention.causal_mask(5), 5

    def seen(f: Traceable) -> Array:
        pattern = symad.jacobian_sparsity(symad.trace(f, [(n, 2)]), [0]).toarray()
        found: Array = pattern.reshape(n, -1, n, 2).any(axis=(1, 3))
        return found

    good = seen(lambda X: attention.attention(X, X, X, mask))
    bad = seen(lambda X: attention.multiplicative_mask(X, X, mask))
    upper = np.triu_indices(n, 1)
    table = positions.sinusoidal(np.arange(2), 4, 100)[1].round(6).tolist()
    return [
        Finding("with −∞ before the softmax no position sees a later one", not good[upper].any()),
        Finding("softmax ⊙ mask leaks through its denominator", bool(bad[upper].all())),
        Finding(f"sinusoidal positions, base 100, t = 1: {table}", table[0] == 0.841471),
    ]


@stage("transformer", "decoder-only: rotary, RMS norm, SwiGLU; generation with a cache; cost and size")
def transformer() -> TourModel:
    """One layer of width 4 on three tokens."""
    switches: dict[str, Any] = {"norm": "rms", "block": "swiglu", "bias": False}
    model = Transformer(4, 3, 4, 1, 2, hidden=4, position="rotary", **switches)
    # The certificate is about the embedding, a key and a feed-forward matrix of a layer without mask,
    # the other parameters being 1; the stage before proves causality.
    plain = Transformer(2, 1, 1, 1, 1, hidden=1, mask="none", position="none", **switches)
    fixed = np.array([0, 1]), np.array([1, 0])
    free = {name: plain.shapes[name] for name in ("E", "layer1_W_K", "layer1_W_2")}
    ones = {name: np.ones(shape, dtype=int) for name, shape in plain.shapes.items()}
    small = trace_model(lambda p: plain.loss({**ones, **p}, *fixed), free)
    return of(model, np.array([0, 3, 1]), np.array([3, 1, 2]), small=small, use=generate_and_count)


def generate_and_count(made: Made) -> list[Finding]:
    """The cache changes nothing; the published count."""
    model = Transformer(9, 16, 8, 2, 2, position="rotary")
    p, tokens = model.init(0, 1.0), [1, 2]
    written = generate(model, p, tokens, 8, temperature=0)
    for _ in range(8):
        tokens.append(int(np.argmax(model.scores(p, np.array(tokens))[-1])))
    large = Transformer(50257, 2048, 12288, 96, 96, tied=False, position="none", bias=False)
    total = parameter_counts(large)["total"]
    return [
        Finding("with and without a cache the same eight tokens", written == tokens[2:]),
        Finding(f"multiply-adds of a layer, from its graph: {layer_cost()}"),
        Finding(f"96 layers of width 12288: {total:,} parameters", total == 175_181_291_520),
    ]


@stage("encoder-decoder", "an LSTM reads, another writes and attends to what was read")
def translate() -> TourModel:
    """Three source tokens to two targets."""
    model = EncoderDecoder(3, 3, 1, 2, "tanh")
    x, before, y = np.array([[0, 2, 1]]), np.array([[0, 1]]), np.array([[1, 2]])
    return of(model, x, before, y, use=context_numbers)


def context_numbers(made: Made) -> list[Finding]:
    """The worked example of dot-product attention."""
    h = np.array([[1.0, 0, 1], [0, 1, 1], [1, 1, 0]])
    weights, summary = context(np.array([1.0, 0, 1]), h, dot_score)
    text = f"weights {np.round(weights, 3).tolist()}, context {np.round(summary, 3).tolist()}"
    return [Finding(text, np.round(summary, 3).tolist() == [0.788, 0.424, 0.788])]


@stage("low rank", "adaptation W + (α/r) B A: merged weights are the same map")
def low_rank() -> TourModel:
    """The squared output of an adapted map."""

    def loss(x: Array, W: Array, A: Array, B: Array) -> Array:
        return np.sum(adaptation.apply(x, W, A, B, 2.0) ** 2)

    data = numbers(2, 3), numbers(2, 3), numbers(1, 3), np.zeros((2, 1))
    return TourModel(loss, data, inputs=[d.shape for d in data], wrt=["A", "B"], use=merge)


def merge(made: Made) -> list[Finding]:
    """Merging is an identity, and A has no slope at the start."""
    shapes = [(2, 3), (2, 3), (1, 3), (2, 1)]
    apart = symad.trace(lambda x, W, A, B: adaptation.apply(x, W, A, B, 2), shapes)
    whole = symad.trace(lambda x, W, A, B: x @ adaptation.merged(W, A, B, 2).T, shapes)
    status = symad.equal(apart, whole).status
    data = numbers(2, 3), numbers(2, 3), numbers(1, 3), np.zeros((2, 1))
    slope = np.abs(symad.gradient(made.graph, "A")(*data)).max()
    return [
        Finding(f"merged and apart are equal: {status}", status == "proved"),
        Finding(f"with B = 0 the slope of A is {slope:g}", bool(slope == 0)),
    ]
