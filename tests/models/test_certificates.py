"""Certificates of the models' derivatives at small sizes; causality from patterns; refutations."""

import numpy as np
import pytest
import sympy

import symad
from symad.models.layers import linear_unit, normalization
from symad.models.layers.feedforward import FeedForward
from symad.models.layers.gated import FeedForwardBlock
from symad.models.layers.parameters import trace_model
from symad.models.sequences import ar, lstm
from symad.models.sequences.encoder_decoder import EncoderDecoder
from symad.models.sequences.neural_ar import NeuralAR
from symad.models.sequences.rnn import RNN
from symad.models.sequences.state_space import StateSpace
from symad.models.transformers import adaptation, positions
from symad.models.transformers import attention as att
from symad.models.transformers.attention import MultiHead
from symad.models.transformers.encoder_only import Encoder
from symad.models.transformers.transformer import Transformer
from symad.verification import Budget


def of(model, *data):
    return trace_model(model.loss, model.shapes, *data)


def gated():
    model = FeedForwardBlock(1, 1, "swiglu")
    return trace_model(lambda p, x: np.sum(model.apply(p, x) ** 2), model.shapes, (1, 1))


def by_parameters(model, loss, *data):
    """The loss as a function of the parameters alone."""
    return trace_model(lambda p: getattr(model, loss)(p, *map(np.asarray, data)), model.shapes)


def many_heads(mask=None):
    model = MultiHead(1, 1)
    return trace_model(lambda p, X: np.sum(model.apply(p, X, mask=mask) ** 2), model.shapes, (2, 1))


def unit():
    shapes = {"W_rec": (2, 2), "w_in": (2,), "w_out": (2,)}
    return trace_model(lambda p, x: np.sum(linear_unit.apply(p, x) ** 2), shapes, (2,))


def low_rank():
    shapes = [(1, 2), (2, 2), (1, 2), (2, 1)]
    return symad.trace(lambda x, W, A, B: np.sum(adaptation.apply(x, W, A, B, 2) ** 2), shapes)


PATIENT = Budget(seconds=120)
"""A busy machine takes several times as long as the few seconds that these certificates need."""

PLAIN = {"hidden": 1, "mask": "none", "position": "none", "norm": "rms", "bias": False}

LARGER = {
    "multi-head": many_heads,
    "causal heads": lambda: many_heads(att.causal_mask(2)),
    "transformer": lambda: by_parameters(
        Transformer(2, 1, 1, 1, 1, order="post", **PLAIN), "loss", [0, 1], [1, 0]
    ),
    "encoder": lambda: by_parameters(
        Encoder(Transformer(2, 2, 1, 1, 1, order="post", **PLAIN)),
        "masked_loss",
        [[0, 1]],
        [[1, 1]],
        [[1.0, 0]],
    ),
    "encoder-decoder": lambda: by_parameters(EncoderDecoder(2, 2, 1, 1, "tanh"), "loss", [[0]], [[0]], [[1]]),
    "state space": lambda: by_parameters(
        StateSpace(1, 1, 1, state=1, expand=1, taps=1), "loss", [[1.0], [2.0]], [[1.0], [0.0]]
    ),
}

SMALL = {
    "linear unit": unit,
    "low rank": low_rank,
    "AR": lambda: symad.trace(ar.loss(), [ar.w, ar.b, ar.x]),
    "LSTM": lambda: of(lstm.LSTM(1, 1, 1), (1, 1), (1, 1)),
    "batch norm": lambda: symad.trace(normalization.batch_norm, [(2, 1), (1,), (1,)]),
    "rotary": lambda: symad.trace(lambda x: positions.rotate(x, np.arange(2)), [(2, 2)]),
    "relative": lambda: symad.trace(
        lambda t: np.exp(positions.relative(t, np.arange(2), np.arange(2))), [(1, 3)]
    ),
    "feed-forward": lambda: FeedForward((1, 2, 1)).graph(2),
    "RNN": lambda: of(RNN(1, 1, 1, bias=False), (2, 1), (2, 1)),
    "LSTM step": lambda: symad.trace(lstm.step, [(1,), (1,), (4, 1), (4, 1, 1)]),
    "causal attention": lambda: symad.trace(
        lambda Q, K, V: att.attention(Q, K, V, att.causal_mask(2)), [(2, 1)] * 3
    ),
    "attention": lambda: symad.trace(att.attention, [(2, 1), (2, 1), (2, 1)]),
    "layer norm": lambda: symad.trace(normalization.layer_norm, [(1, 2), (2,), (2,)]),
    "RMS norm": lambda: symad.trace(normalization.rms_norm, [(1, 2), (2,)]),
    "SwiGLU": gated,
    "neural AR": lambda: symad.trace(
        lambda *p: NeuralAR(2, 1, 1, 1).loss(
            dict(zip(("C", "W1", "b1", "W2", "b2"), p, strict=True)), np.array([[0], [1]]), np.array([1, 0])
        ),
        list(NeuralAR(2, 1, 1, 1).shapes.values()),
    ),
}  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", list(SMALL))
def test_derivatives_are_certified(name):
    graph = SMALL[name]()
    certificate = symad.check(graph)
    levels = ("measured", "proved", "tested") if graph.dims else ("proved", "tested")  # of chosen sizes
    assert certificate.status in levels, str(certificate)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(LARGER))
def test_derivatives_of_larger_models_are_certified(name):
    certificate = symad.check(LARGER[name](), budget=PATIENT)
    assert certificate.status in ("proved", "tested"), str(certificate)


@pytest.mark.thorough
def test_both_modes_agree_where_normalization_hides_the_queries():
    """With width 1 the norms are ±1 but for ε: ∂f/∂W_Q is what is left of a cancellation of ten digits."""
    switches = {"mask": "none", "position": "none", "norm": "rms", "block": "swiglu", "bias": False}
    model = Transformer(2, 1, 1, 1, 1, hidden=1, **switches)
    ones = {name: np.ones(shape, dtype=int) for name, shape in model.shapes.items()}
    free = {name: model.shapes[name] for name in ("E", "layer1_W_Q", "layer1_W_2")}
    f = trace_model(lambda p: model.loss({**ones, **p}, np.array([0, 1]), np.array([1, 0])), free)
    modes = [symad.gradient(f, "layer1_W_Q", mode=mode) for mode in ("forward", "reverse")]
    certificate = symad.equal(*modes, budget=PATIENT)
    assert certificate.status in ("proved", "tested"), str(certificate)


def seen(f, n, width, out):
    """Which of n rows of outputs may depend on which rows of the input, from the graph alone."""
    pattern = symad.jacobian_sparsity(symad.trace(f, [(n, width)]), [0]).toarray()
    return pattern.reshape(n, out, -1, width).any(axis=(1, 3))


def test_causality_from_the_pattern():
    """∂Y_t/∂x_{t'} = 0 for t' > t, for all parameters and inputs."""
    model, lower_triangle = MultiHead(4, 2), np.tril(np.ones((5, 5), dtype=bool))
    p = model.init(0)

    def masked(mask):
        return seen(lambda X: model.apply(p, X, mask=mask), 5, 4, 4)

    np.testing.assert_array_equal(masked(att.causal_mask(5)), lower_triangle)
    prefix = lower_triangle.copy()
    prefix[:, :3] = True
    np.testing.assert_array_equal(masked(att.prefix_mask(5, 3)), prefix)


@pytest.mark.parametrize("position", ["learned", "rotary", "alibi"])
def test_causality_of_a_transformer_from_the_pattern(position):
    model = Transformer(5, 5, 4, 2, 2, tied=False, position=position)
    p = model.init(0)
    table = seen(lambda E: model.scores(p | {"E": E}, np.arange(5)), 5, 4, 5)
    np.testing.assert_array_equal(table, np.tril(np.ones((5, 5), dtype=bool)))


def test_the_multiplicative_mask_is_no_causal_softmax():
    mask = att.causal_mask(2)
    wrong = symad.trace(lambda S: att.multiplicative_mask(S, S, mask), [(2, 1)])
    right = symad.trace(lambda S: att.weights(S, S, mask), [(2, 1)])
    assert symad.equal(wrong, right).status == "refuted"
    leaks = seen(lambda S: att.multiplicative_mask(S, S, att.causal_mask(4)), 4, 3, 4)
    assert leaks[np.triu_indices(4, 1)].all()


@pytest.mark.thorough
def test_permutation_equivariance_is_an_identity():
    """Attn(P X) = P Attn(X) for all X and all weights, P a cyclic shift of three rows."""
    model, order = MultiHead(2, 1), np.array([2, 0, 1])
    before = trace_model(lambda p, X: model.apply(p, X[order]), model.shapes, (3, 2))
    after = trace_model(lambda p, X: model.apply(p, X)[order], model.shapes, (3, 2))
    assert symad.equal(before, after).status in ("proved", "tested")
    other = trace_model(lambda p, X: model.apply(p, X), model.shapes, (3, 2))
    assert symad.equal(before, other).status == "refuted"


def test_both_conventions_of_attention_are_one():
    n, d, v = sympy.symbols("n d v", integer=True, positive=True)
    rows = symad.trace(att.attention, [(n, d), (n, d), (n, v)]).at({n: 2, d: 2, v: 1})
    columns = symad.trace(
        lambda Q, K, V: att.attention_columns(Q.T, K.T, V.T).T, [(n, d), (n, d), (n, v)]
    ).at({n: 2, d: 2, v: 1})
    assert symad.equal(rows, columns).status == "proved"
