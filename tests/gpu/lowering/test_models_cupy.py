"""Every model's loss and gradients in CuPy code, against NumPy code."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import symad
from symad import functions
from symad.models.layers import convolution, losses, soft
from symad.models.layers.convolutional import Adversaries, Classifier
from symad.models.layers.feedforward import FeedForward
from symad.models.layers.parameters import trace_model
from symad.models.layers.two_layer import TwoLayer
from symad.models.sequences import alignment, arma
from symad.models.sequences.dynamics import AttentionDynamics
from symad.models.sequences.encoder_decoder import EncoderDecoder
from symad.models.sequences.lstm import LSTM
from symad.models.sequences.neural_ar import NeuralAR
from symad.models.sequences.recurrent import Recurrent
from symad.models.sequences.rnn import RNN
from symad.models.sequences.state_space import StateSpace
from symad.models.sequences.tcn import TCN
from symad.models.transformers import tasks
from symad.models.transformers.encoder_decoder_transformer import EncoderDecoderTransformer
from symad.models.transformers.encoder_only import Encoder
from symad.models.transformers.transformer import Transformer
from tests.gpu.cupy_agreement import WHERE, agree
from tests.gpu.lowering.model_cases import CASES

RNG = np.random.default_rng(11)
TOKENS, TARGETS = RNG.integers(0, 7, (2, 5)), RNG.integers(0, 7, (2, 5))


def normal(*shape):
    return RNG.normal(size=shape)


SHORT = symad.trace(lambda a: np.sum(np.tanh(a) * np.exp(-a * a)), [(3,)])
PAIR, READER, SEQUENCES = Adversaries(4, 1, 2, 3), RNN(2, 3, 2), RNG.normal(size=(4, 3, 2))


def case(name, model, loss, *data):
    CASES[name] = (model, loss, data)


case("lstm", LSTM(3, 4, 2, 2), "loss", normal(5, 6, 3), normal(5, 6, 2))
case("lstm last", LSTM(2, 3, 1), "last_loss", normal(4, 2), normal(1))
case("feedforward", FeedForward((3, 4, 6, 2), "gelu"), "loss", normal(5, 3), normal(5, 2))
case("classifier", FeedForward((3, 4, 3)), "classification_loss", normal(5, 3), RNG.integers(0, 3, 5))
case("neural ar", NeuralAR(7, 3, 4, 5), "loss", RNG.integers(0, 7, (6, 3)), RNG.integers(0, 7, 6))
for cell, score in (("tanh", "dot"), ("lstm", "additive")):
    data = RNG.integers(0, 6, (3, 4)), *RNG.integers(0, 5, (2, 3, 6))
    case(f"encoder {cell} {score}", EncoderDecoder(6, 5, 3, 4, cell, score), "loss", *data)
case("rnn", RNN(3, 4, 2), "loss", normal(5, 3), normal(5, 2))
for switches in (
    {},
    {"position": "rotary", "norm": "rms", "block": "swiglu"},
    {"position": "alibi", "block": "gelu"},
    {"position": "relative", "block": "geglu"},
):
    name = "transformer " + " ".join(switches.values())
    case(name, Transformer(7, 6, 8, 2, 2, **switches), "loss", TOKENS, TARGETS)
case("two layer", TwoLayer(3, 5, "tanh"), "loss", normal(6, 3), normal(6))
case("tcn", TCN(2, 3, 1, 2), "loss", normal(7, 2, 2), normal(7, 2, 1))
for parallel in (False, True):
    model = StateSpace(2, 3, 1, state=2, parallel=parallel)
    case(f"state space {'parallel' * parallel}", model, "loss", normal(5, 2, 2), normal(5, 2, 1))
case("images", Classifier(8, 1, 2, 3), "loss", normal(2, 8, 8, 1), np.array([0, 2]))
case("dynamics", AttentionDynamics(3), "loss", np.eye(4, 3) - 0.5, normal(4, 3))
body = Transformer(7, 6, 4, 1, 2, mask="none")
case("masked tokens", Encoder(body), "masked_loss", TOKENS, TARGETS, RNG.integers(0, 2, (2, 5)) + 0.0)
case("classes of text", Encoder(body, 3, "max"), "classification_loss", TOKENS, np.array([0, 2]))
case("pair", EncoderDecoderTransformer(7, 7, 6, 4, 1, 2), "loss", TOKENS, TOKENS[:, :3], TARGETS[:, :3])

case(
    "transformer of shared keys",
    Transformer(7, 6, 8, 2, 4, key_heads=2, window=3, cap=5.0, position="rotary", rotary="interleaved"),
    "loss", TOKENS, TARGETS,
)  # fmt: skip
GRU = Recurrent("gru", 2, 3, 2, bidirectional=True)

FUNCTIONS = {
    "gru of sequences of other lengths": (
        lambda x, *p: np.sum(
            GRU.apply(dict(zip(GRU.shapes, p, strict=True)), x, lengths=np.array([4, 2, 3]))[0] ** 2
        ),
        [normal(4, 3, 2), *(0.5 * normal(*shape) for shape in GRU.shapes.values())],
    ),
    "class weights": (
        lambda z: losses.cross_entropy(z, np.array([1, -1, 0]), np.array([1.0, 2.0]), 0.1, -1),
        [normal(3, 2)],
    ),
    "arma": (
        lambda phi, theta, y: arma.log_likelihood(0.3 * np.tanh(phi), theta, 0.1, 2.0, y),
        [normal(2), normal(1), normal(7)],
    ),
    "exponential": (lambda a: np.sin(functions.expm(a)).sum(), [normal(3, 3)]),
    "qr": (lambda a: np.sin(functions.qr(a)[0]).sum(), [normal(4, 3)]),
    "lu": (lambda a: np.sin(functions.lu(a)[1]).sum(), [normal(3, 3)]),
    "series": (lambda a, v: sum(symad.jet(SHORT, 4)(a, v)), [normal(3), normal(3)]),
    "transposed convolution": (
        lambda y, W: np.sum(np.sin(convolution.convolve_transposed(y, W, 2, 1, 1, 1))),
        (normal(2, 3, 4, 2), normal(3, 3, 1, 2)),
    ),
    "generator": (
        lambda *p: np.sum(
            PAIR.generate(dict(zip(PAIR.generator_shapes, p, strict=True)), np.ones((2, 3))) ** 2
        ),
        [0.5 * normal(*shape) for shape in PAIR.generator_shapes.values()],
    ),
    "fine-tuning": (
        lambda z: alignment.fine_tuning_loss(z, TARGETS, np.tril(np.ones((2, 5)))),
        [normal(2, 5, 7)],
    ),
    "dpo": (alignment.dpo_loss, [normal(4) for _ in range(4)]),
    "grpo": (
        lambda p, old, ref: alignment.grpo_objective(p, old, ref, np.array([0.3, -1, 2, 0.5])),
        [normal(4) for _ in range(3)],
    ),
    "smooth maximum": (lambda z: np.sum(soft.maximum(z, 0.5) * soft.argmax(z, 0.5)), [normal(3, 4)]),
    "task": (
        lambda *p: tasks.classification_loss(
            READER, dict(zip(READER.shapes, p, strict=True)), SEQUENCES, np.array([0, 1, 1]), "mean"
        ),
        [0.5 * normal(*shape) for shape in READER.shapes.values()],
    ),
}


@pytest.mark.sample(6, without=("transformer", "state space"))
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-10), ("float32", 1e-3)])
@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradients(name, dtype, rtol, where):
    model, loss, data = CASES[name]
    graph = trace_model(getattr(model, loss), model.shapes, *data)
    parameters = [0.5 * normal(*shape) for shape in model.shapes.values()]
    wrt = list(model.shapes)
    agree(symad.value_and_gradient(graph, wrt), [*parameters, *data], dtype, rtol, where)


@pytest.mark.thorough
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_and_gradients(name, where):
    f, values = FUNCTIONS[name]
    graph = symad.trace(f, [v.shape for v in values])
    agree(symad.value_and_gradient(graph), values, rtol=1e-10, where=where)


@pytest.mark.thorough
def test_symbolic_sizes():
    T, d = sympy.symbols("T d", integer=True, positive=True)
    model = RNN(d, 3, 1)
    graph = symad.value_and_gradient(trace_model(model.last_loss, model.shapes, (T, d), (1,)))
    small = RNN(2, 3, 1)
    values = [0.5 * normal(*shape) for shape in small.shapes.values()]
    agree(graph, [*values, normal(6, 2), normal(1)])
