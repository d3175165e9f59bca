"""Chains of elementwise operations on large arrays in blocks of rows."""

from typing import Any

import numpy as np
import pytest

import symad
from symad import functions
from symad.numeric import lower
from symad.numeric.passes.blocking import batches


@pytest.fixture
def small_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MIN_ELEMENTS", 60)
    monkeypatch.setattr("symad.numeric.program_passes.loops.open_bodies.CHAIN_BLOCK_ELEMENTS", 32)


def chain(x: Any, b: Any, s: Any) -> Any:
    z = (x - b) / s
    return np.exp(-z * z / 2) / (s * 2.5) + np.tanh(z) * x - z**2


PROGRAMS = {
    "vector": (chain, [(101,), (), ()]),
    "rows": (chain, [(21, 5), (5,), (21, 5)]),
    "columns": (lambda x, b, s: chain(x, b[:, None], s[None, :]), [(21, 5), (21,), (5,)]),
    "three axes": (lambda x, b, s: chain(x, b, np.exp(s)) @ x.transpose(0, 2, 1), [(9, 4, 5), (4, 5), (5,)]),
    "used twice": (lambda x, b, s: (chain(x, b, s), np.tanh(x) * chain(x, s, b)), [(101,), (), ()]),
    "argument of both": (lambda x, b, s: chain(chain(x @ x, b, s) @ x, s, b), [(11, 11), (11,), (11,)]),
    "choice": (lambda x, b, s: np.where(x > b, chain(x, b, s), np.sqrt(x * x + 1)) * x, [(101,), (101,), ()]),
    "same": (lambda x, b, s: (x * x + x) * (x - 1) / (x * x + 2) + 0 * b * s, [(101,), (), ()]),
}


@pytest.mark.usefixtures("small_chains")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_chains_against_the_graph(name: str, dtype: str) -> None:
    program, shapes = PROGRAMS[name]
    graph = symad.trace(program, inputs=shapes)
    rng = np.random.default_rng(0)
    values = [rng.normal(size=s).astype(dtype) / 2 + (k == 2) * 3 for k, s in enumerate(shapes)]
    before = [v.copy() for v in values]
    kernel = lower(graph, dtype=dtype)
    assert ("for start" in kernel.source) == (name != "argument of both")  # products of matrices mix rows
    got, expected = kernel(*values), graph(*[v.astype(float) for v in values])
    several = isinstance(expected, tuple)
    for one, other in zip(got if several else [got], expected if several else [expected], strict=True):
        assert one.dtype == dtype
        tolerance = 1e-12 if dtype == "float64" else 2e-5
        assert np.allclose(one, other, rtol=tolerance, atol=tolerance / 2)
    assert all(np.array_equal(a, b) for a, b in zip(before, values, strict=True))


@pytest.mark.usefixtures("small_chains")
def test_gradients_of_chains() -> None:
    def loss(W: Any, b: Any, x: Any) -> Any:
        h = functions.gelu(x @ W + b)
        return np.sum(np.tanh(h @ W) ** 2 * functions.softplus(x))

    rng = np.random.default_rng(1)
    values = [rng.normal(size=s) for s in ((8, 8), (8,), (12, 8))]
    graph = symad.value_and_gradient(symad.trace(loss, inputs=[v.shape for v in values]), wrt=[0, 1, 2])
    kernel = lower(graph)
    for one, other in zip(kernel(*values), graph(*values), strict=True):
        assert np.allclose(one, other, rtol=1e-11, atol=1e-12)


def test_short_chains_and_small_arrays_stay() -> None:
    small = lower(symad.trace(chain, inputs=[(1000,), (), ()]))
    short = lower(symad.trace(lambda x: np.exp(x), inputs=[(2**20,)]))
    long = lower(symad.trace(chain, inputs=[(2**20,), (), ()]))
    assert "for start" not in small.source and "for start" not in short.source
    assert "for start" in long.source
