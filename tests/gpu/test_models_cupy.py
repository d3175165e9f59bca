"""Every model's loss and gradients in CuPy code, against NumPy code."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import symad
from symad.models.encoder_decoder import EncoderDecoder
from symad.models.feedforward import FeedForward
from symad.models.lstm import LSTM
from symad.models.neural_ar import NeuralAR
from symad.models.parameters import trace_model
from symad.models.rnn import RNN
from symad.models.transformer import Transformer
from tests.gpu.cupy_agreement import WHERE, agree

RNG = np.random.default_rng(11)
TOKENS, TARGETS = RNG.integers(0, 7, (2, 5)), RNG.integers(0, 7, (2, 5))


def normal(*shape):
    return RNG.normal(size=shape)


CASES = {}


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


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-10), ("float32", 1e-3)])
@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradients(name, dtype, rtol, where):
    model, loss, data = CASES[name]
    graph = trace_model(getattr(model, loss), model.shapes, *data)
    parameters = [0.5 * normal(*shape) for shape in model.shapes.values()]
    wrt = list(model.shapes)
    agree(symad.value_and_gradient(graph, wrt), [*parameters, *data], dtype, rtol, where)


def test_symbolic_sizes():
    T, d = sympy.symbols("T d", integer=True, positive=True)
    model = RNN(d, 3, 1)
    graph = symad.value_and_gradient(trace_model(model.last_loss, model.shapes, (T, d), (1,)))
    small = RNN(2, 3, 1)
    values = [0.5 * normal(*shape) for shape in small.shapes.values()]
    agree(graph, [*values, normal(6, 2), normal(1)])
