"""What one value and gradient of each model costs on the stand-in: launches, copies, waits, calls of cuBLAS.

The table may only fall. A rise is a regression: find the pass that no longer fires.
"""

from __future__ import annotations

import numpy as np
import pytest

import symad
from symad.models.layers.convolutional import Classifier
from symad.models.layers.feedforward import FeedForward
from symad.models.layers.parameters import trace_model
from symad.models.sequences.lstm import LSTM
from symad.models.sequences.rnn import RNN
from symad.models.transformers.transformer import Transformer
from symad.numeric import lower
from tests.gpu.cupy_agreement import library, on_device
from tests.gpu.cupy_standin import cuda

RNG = np.random.default_rng(2)
STEPS = 100


def language(layers, **switches):
    tokens = RNG.integers(0, 50, (2, 2, 6))
    return Transformer(50, 6, 16, layers, 2, **switches), "loss", (tokens[0], tokens[1])


MODELS = {
    "lstm, 100 steps": (
        LSTM(3, 8, 2, 1),
        "loss",
        (RNG.normal(size=(STEPS, 4, 3)), RNG.normal(size=(STEPS, 4, 2))),
    ),
    "rnn, 100 steps": (RNN(3, 8, 2), "loss", (RNG.normal(size=(STEPS, 3)), RNG.normal(size=(STEPS, 2)))),
    "feedforward": (
        FeedForward((3, 16, 16, 2), "gelu"),
        "loss",
        (RNG.normal(size=(5, 3)), RNG.normal(size=(5, 2))),
    ),
    "classifier": (
        FeedForward((3, 16, 4)),
        "classification_loss",
        (RNG.normal(size=(5, 3)), RNG.integers(0, 4, 5)),
    ),
    "images": (Classifier(8, 1, 2, 3), "loss", (RNG.normal(size=(2, 8, 8, 1)), np.array([0, 2]))),
    "language model, 1 layer": language(1),
    "language model, 2 layers": language(2),
    "language model, rotary": language(1, position="rotary", norm="rms", block="swiglu"),
    "language model, alibi": language(1, position="alibi"),
}
TABLE = {
    "lstm, 100 steps": (846, 213, 0),
    "rnn, 100 steps": (617, 206, 0),
    "feedforward": (17, 8, 0),
    "classifier": (27, 5, 1),
    "images": (80, 8, 1),
    "language model, 1 layer": (129, 21, 1),
    "language model, 2 layers": (218, 39, 1),
    "language model, rotary": (109, 24, 1),
    "language model, alibi": (117, 21, 1),
}
"""Launches, calls of cuBLAS among them, and waits for the device, once constants are there."""


def counted(name):
    """What one call of the value and gradient costs."""
    model, loss, data = MODELS[name]
    graph = trace_model(getattr(model, loss), model.shapes, *data)
    both = symad.value_and_gradient(graph, list(model.shapes))
    with library() as cp:
        kernel = lower(both, backend="cupy", dtype="float32")
        values = on_device(cp, [0.3 * RNG.normal(size=s) for s in model.shapes.values()], "float32")
        values += [cp.asarray(d if d.dtype.kind in "iu" else d.astype("float32")) for d in data]
        kernel(*values)
        cuda.counts.clear()
        kernel(*values)
    return cuda.counts


@pytest.mark.parametrize("name", MODELS)
def test_counts_only_fall(name):
    found = counted(name)
    assert (found["launches"], found["products"], found["synchronisations"]) == TABLE[name]
    assert found["copies"] == 0


@pytest.mark.parametrize("count", [2, 3, 8, 16, 17])
def test_arrays_side_by_side_are_one_kernel(count):
    shapes = [(2, k % 3 + 1, 4) for k in range(count)]
    arrays = [RNG.normal(size=s) for s in shapes]
    for f in (lambda *a: np.concatenate(a, axis=1), lambda *a: np.stack([x[:, 0].T for x in a], axis=1)):
        with library() as cp:
            kernel = lower(symad.trace(f, shapes), backend="cupy")
            values = on_device(cp, arrays)
            cuda.counts.clear()
            got = kernel(*values)
            assert cuda.counts["launches"] == 1
            np.testing.assert_array_equal(got.get(), f(*arrays))
