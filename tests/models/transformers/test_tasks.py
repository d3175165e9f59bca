"""Denoising, forecasting, classification, regression on every sequence model, against torch."""

import numpy as np
import pytest

import symad
from symad.errors import ShapeError, SymadError
from symad.models.layers.parameters import trace_model
from symad.models.sequences.lstm import LSTM
from symad.models.sequences.rnn import RNN
from symad.models.sequences.state_space import StateSpace
from symad.models.sequences.tcn import TCN
from symad.models.transformers import tasks
from symad.numeric.training.loop import batches, train
from symad.numeric.training.optimizers import Adam
from tests.models.reference import agrees_with_torch

rng = np.random.default_rng(0)
MODEL = RNN(2, 3, 2)
X, Y = rng.normal(size=(5, 4, 2)), rng.normal(size=(5, 4, 2))
MODELS = {m.__name__: m for m in (RNN, LSTM, TCN, StateSpace)}


def torch_outputs(torch, p, x):
    h, rows = torch.zeros(x.shape[1], 3, dtype=torch.float64), []
    for x_t in x:
        h = torch.tanh(h @ p["W_hh1"].T + x_t @ p["W_xh1"].T + p["b1"])
        rows.append(h @ p["W_hy"].T + p["c"])
    return torch.stack(rows)


def test_denoising():
    agrees_with_torch(
        lambda p, x, y: tasks.denoising_loss(MODEL, p, x, y), MODEL.shapes,
        lambda torch, p, x, y: ((torch_outputs(torch, p, x) - y) ** 2).mean(), X, Y,
    )  # fmt: skip


def test_forecasting():
    agrees_with_torch(
        lambda p, x: tasks.forecasting_loss(MODEL, p, x), MODEL.shapes,
        lambda torch, p, x: ((torch_outputs(torch, p, x[:-1]) - x[1:]) ** 2).mean(), X,
    )  # fmt: skip


@pytest.mark.parametrize("readout", ["last", "mean"])
def test_classification(readout):
    def reference(torch, p, x, labels):
        y = torch_outputs(torch, p, x)
        return torch.nn.functional.cross_entropy(y[-1] if readout == "last" else y.mean(0), labels)

    agrees_with_torch(
        lambda p, x, labels: tasks.classification_loss(MODEL, p, x, labels, readout),
        MODEL.shapes, reference, X, np.array([0, 1, 1, 0]),
    )  # fmt: skip


@pytest.mark.parametrize("readout", ["last", "mean"])
def test_regression(readout):
    def reference(torch, p, x, target):
        y = torch_outputs(torch, p, x)
        return (((y[-1] if readout == "last" else y.mean(0)) - target) ** 2).mean()

    agrees_with_torch(
        lambda p, x, target: tasks.regression_loss(MODEL, p, x, target, readout),
        MODEL.shapes, reference, X, Y[0],
    )  # fmt: skip


def waves(count, seed, length=24):
    """Sines of random speed and phase, (T, N, 1), and their speeds (N, 1)."""
    draw = np.random.default_rng(seed)
    speed, phase = draw.uniform(0.2, 0.9, count), draw.uniform(0, 2 * np.pi, count)
    t = np.arange(length)[:, None]
    return np.sin(speed * t + phase)[..., None], speed[:, None]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["TCN", "StateSpace"])
def test_denoising_beats_doing_nothing(name):
    clean, _ = waves(160, 1)
    noisy = clean + 0.5 * rng.normal(size=clean.shape)
    model = MODELS[name](1, 12, 1)
    loss = trace_model(
        lambda p, a, b: tasks.denoising_loss(model, p, a, b), model.shapes, (24, 32, 1), (24, 32, 1)
    )
    stream = batches(noisy[:, :128], clean[:, :128], size=32, axis=1)
    found = train(loss, model.init(0), stream, Adam(0.01), 120, clip=1.0)
    left = tasks.denoising_loss(model, found.parameters, noisy[:, 128:], clean[:, 128:])
    assert left < 0.5 * np.mean((noisy - clean)[:, 128:] ** 2)


def test_a_forecast_feeds_itself():
    model = RNN(1, 3, 1)
    p, x = model.init(1), rng.normal(size=(6, 2, 1))
    three = tasks.forecast(model, p, x, 3)
    assert three.shape == (3, 2, 1)
    np.testing.assert_allclose(three[0], model.apply(p, x)[-1])
    again = tasks.forecast(model, p, np.concatenate([x, three[:1]]), 2)
    np.testing.assert_allclose(again, three[1:], rtol=1e-13)


@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_takes_every_task(name):
    model = MODELS[name](2, 3, 2)
    p = model.init(0)
    for f, data in [
        (tasks.denoising_loss, (X, Y)),
        (tasks.forecasting_loss, (X,)),
        (tasks.classification_loss, (X, np.array([0, 1, 1, 0]))),
        (tasks.regression_loss, (X, Y[0])),
    ]:
        shapes = [d.shape for d in data]
        graph = trace_model(
            {1: lambda p, a, f=f: f(model, p, a), 2: lambda p, a, b, f=f: f(model, p, a, b)}[len(data)],
            model.shapes, *shapes,
        )  # fmt: skip
        value, *slopes = symad.value_and_gradient(graph, list(p))(*p.values(), *data)
        np.testing.assert_allclose(value, f(model, p, *data), rtol=1e-12)
        assert any(np.abs(s).max() > 0 for s in slopes)


def test_bad_input():
    p = MODEL.init()
    with pytest.raises(SymadError, match="readout='first'"):
        tasks.summary(MODEL, p, X, "first")
    with pytest.raises(ShapeError, match="two steps at least"):
        tasks.forecasting_loss(MODEL, p, X[:1])
    with pytest.raises(ShapeError, match=r"T ≥ 1, not \(0, 4, 2\)"):
        tasks.denoising_loss(MODEL, p, X[:0], Y[:0])
