"""Functions recorded as CUDA graphs, whose calls are one launch each: values, gradients and errors."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import EvaluationError, ShapeError
from symad.gpu.compile import GpuError
from symad.gpu.printers import recurrences as printing
from symad.numeric import lower
from tests.gpu.attention_calls import device
from tests.gpu.cupy_agreement import WHERE, leaves, library, on_device
from tests.gpu.cupy_standin import cuda
from tests.gpu.lowering.layers_of_states import layer

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
RNG = np.random.default_rng(11)


@pytest.mark.thorough
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("each_step", [False, True])
@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
def test_a_loop_is_one_replay_a_call(kind, each_step, where, monkeypatch):
    """Value and gradients, also where the matrices are so large that each step is a launch of its own."""
    if each_step:
        monkeypatch.setattr(printing, "MAX_MATRIX_BYTES", -1)
    graph, values = layer(kind)
    graph = symad.value_and_gradient(graph)
    with library(where) as cp:
        kernel = symad.gpu.recorded(graph, dtype="float64")
        for call in range(4):
            values = [v + 0.1 for v in values]
            arrays = on_device(cp, values)
            cuda.counts.clear()
            found = leaves(kernel(*arrays))
            counts = dict(cuda.counts)
            for got, wanted in zip(found, leaves(lower(graph)(*values)), strict=True):
                np.testing.assert_allclose(got.get(), wanted, rtol=1e-9, atol=1e-9)
            if where == "device":
                continue
            assert counts.get("graphs", 0) == (call > 0)
            if call > 1:
                assert counts["launches"] == len(values) + len(found)  # copies in and out
                assert not {"synchronizations", "products", "copies"} & {k for k, n in counts.items() if n}


def test_results_are_copies_in_their_structure():
    graph = symad.trace(lambda x: {"twice": 2 * x, "sum": (x.sum(), x[0])}, [(3,)])
    with library() as cp:
        kernel = symad.gpu.recorded(graph, dtype="float32")
        results = [kernel(cp.asarray(np.full(3, k, "f4"))) for k in range(4)]
        for k, found in enumerate(results):
            assert found["twice"].get().tolist() == [2 * k] * 3
            assert [a.get().item() for a in found["sum"]] == [3 * k, k]


def test_bad_calls_are_named():
    def product(a, b):
        return a @ b

    n = sp.Symbol("n", integer=True, positive=True)
    graph = symad.trace(product, [(n, 3), (3, 2)])
    with library() as cp:
        kernel = symad.gpu.recorded(graph)
        a, b = (cp.asarray(RNG.normal(size=s).astype("f4")) for s in ((4, 3), (3, 2)))
        kernel(a, b)
        with pytest.raises(ShapeError, match=r"a has shape \(2, 3\), but product is recorded for \(4, 3\)"):
            kernel(a[:2], b)
        with pytest.raises(EvaluationError, match="1 arrays for product, whose data are a, b"):
            kernel(a)
        with pytest.raises(TypeError, match=r"a is a numpy\.ndarray; give arrays on the device"):
            kernel(a.get(), b)
    needed = r"needs compute capability 8\.0, not 7\.5"
    with device(capability=(7, 5)), library(), pytest.raises(GpuError, match=needed):
        symad.gpu.recorded(graph)

