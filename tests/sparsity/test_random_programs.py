"""Random array programs: sparse derivatives, evaluated and lowered, against the dense ones."""

import numpy as np
import pytest

import symad
from symad.numeric import lower
from tests.sparsity.random_programs import SHAPES, program


@pytest.mark.parametrize("seed", range(40))
def test_jacobians(seed):
    shapes = SHAPES[seed % len(SHAPES)]
    graph = symad.trace(lambda *arrays: program(seed, *arrays), shapes)
    dense, sparse = symad.jacobian(graph), symad.jacobian(graph, sparse=True)
    point = [np.random.default_rng(seed + 1).uniform(-1, 1, s) for s in shapes]
    wanted = np.asarray(dense(*point))
    np.testing.assert_allclose(sparse(*point).toarray(), wanted, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(lower(sparse)(*point).toarray(), wanted, rtol=1e-11, atol=1e-12)
    single = lower(sparse, dtype="float32")(*point)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single.toarray(), wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("seed", range(30))
def test_hessians(seed):
    shapes = SHAPES[seed % len(SHAPES)]

    def total(*arrays):
        values = program(seed + 100, *arrays)
        return np.sum(values * values) + np.sum(np.cos(arrays[0]))

    graph = symad.trace(total, shapes)
    dense, sparse = symad.hessian(graph), symad.hessian(graph, sparse=True)
    point = [np.random.default_rng(seed + 1).uniform(-1, 1, s) for s in shapes]
    wanted = np.asarray(dense(*point))
    np.testing.assert_allclose(sparse(*point).toarray(), wanted, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(lower(sparse)(*point).toarray(), wanted, rtol=1e-10, atol=1e-11)
    again = symad.hessian(graph, mode="reverse-over-reverse", sparse=True, chunk=3)
    np.testing.assert_allclose(lower(again)(*point).toarray(), wanted, rtol=1e-10, atol=1e-11)
