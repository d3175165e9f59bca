"""The cost of one value and gradient of each model on the stand-in: launches, copies, waits, calls of cuBLAS.

The counts of the table may only fall. A count that rises is a regression: a pass no longer applies.
"""

from __future__ import annotations

import numpy as np
import pytest

import symad
from symad.models.layers.parameters import trace_model
from symad.numeric import lower
from tests.gpu.cupy_agreement import leaves, library, on_device
from tests.gpu.cupy_standin import cuda
from tests.gpu.launch_cases import CASES, RNG

TABLE = {
    "lstm, 100 steps": (13, 6, 0),
    "lstm of PyTorch": (11, 3, 0),
    "gru of PyTorch": (10, 3, 0),
    "rnn of PyTorch": (11, 3, 0),
    "rnn, 100 steps": (13, 6, 0),
    "feedforward": (6, 3, 0),
    "classifier": (14, 3, 0),
    "images": (64, 7, 0),
    "transformer block": (30, 12, 0),
    "language model, 1 layer": (49, 15, 0),
    "language model, 2 layers": (78, 27, 0),
    "language model, rotary": (57, 18, 0),
    "language model, alibi": (49, 15, 0),
    "vae": (12, 5, 0),
    "gan, critic": (13, 6, 0),
    "gan, generator": (7, 4, 0),
    "ddpm": (6, 3, 0),
}
"""Launches, calls of cuBLAS among them, and waits for the device, once constants are there."""


def counted(name):
    """What one call of the value and gradient costs."""
    function, shapes, data = CASES[name]
    both = symad.value_and_gradient(trace_model(function, shapes, *data), list(shapes))
    values = [0.3 * RNG.normal(size=s) for s in shapes.values()]
    expected = leaves(lower(both)(*values, *data))
    with library() as cp:
        kernel = lower(both, backend="cupy", dtype="float32")
        given = on_device(cp, values, "float32")
        given += [cp.asarray(d if d.dtype.kind in "iu" else d.astype("float32")) for d in data]
        kernel(*given)
        cuda.counts.clear()
        got = leaves(kernel(*given))
        found = dict(cuda.counts)
        for e, g in zip(expected, got, strict=True):
            scale = max(1.0, np.abs(e).max())
            np.testing.assert_allclose(g.get(), e, rtol=0, atol=1e-5 * scale)
    return cuda.Counter(found)


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_counts_only_fall(name):
    found = counted(name)
    assert (found["launches"], found["products"], found["synchronizations"]) == TABLE[name]
    assert found["copies"] == 0


def test_no_model_waits_for_the_device():
    assert {waits for _, _, waits in TABLE.values()} == {0}


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
