"""Generated array code stays in the precision that was asked for, and holds pieces of repeated arrays."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.numeric import lower
from symad.numeric.compiling import compiler

n = sp.Symbol("n", integer=True, positive=True)
needs_compiler = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
BACKENDS = ["numpy", pytest.param("c", marks=needs_compiler)]


def first_mean(x):
    return np.mean(np.sin(x)[0]) + x.shape[0] * np.mean(x)


def doubled_mean(x):
    return np.mean(2 * np.sin(np.stack([x[0], x[0, 0] * x[1], x[0]])))


def kept(x):
    return np.maximum(x[0, 0, 0], 0) * np.where(x[0, 0, 1] > 0.5, 2, 3)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [first_mean, doubled_mean, kept])
def test_quotients_and_selections_of_numbers_keep_single_precision(f, backend):
    """NumPy's quotients of Python's numbers are in double precision, and make that of arrays."""
    x = np.random.default_rng(0).uniform(size=(3, 3, 3))
    graph = symad.value_and_gradient(symad.trace(f, [(n, n, n)]))
    value, slope = lower(graph, backend=backend, dtype="float32")(x)
    assert np.asarray(value).dtype == np.asarray(slope).dtype == np.float32
    np.testing.assert_allclose(value, f(x), rtol=1e-6)
    step = 1e-6 * np.ones_like(x)
    np.testing.assert_allclose(np.sum(slope * step), (f(x + step) - f(x - step)) / 2, rtol=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_single_positions_of_a_repeated_array(backend):
    mean = symad.trace(lambda x: np.mean(np.sum(np.stack([x, x]), axis=1)), [(3, 3)])
    value, slope = lower(symad.value_and_gradient(mean), backend=backend)(np.eye(3))
    assert value == 1
    np.testing.assert_allclose(slope, np.full((3, 3), 1 / 3), rtol=1e-15)


@pytest.mark.parametrize("backend", BACKENDS)
def test_conditions_alone_in_a_kernel(backend):
    def f(x, y):
        inside = np.logical_and(np.logical_or(x > 0, y > 0), np.logical_not(np.logical_and(x > 1, y > 1)))
        return np.stack([np.where(inside, x, y), np.where(np.logical_not(inside), x, y)])

    x, y = np.random.default_rng(1).normal(size=(2, 5, 4))
    np.testing.assert_array_equal(lower(symad.trace(f, [(5, 4)] * 2), backend=backend)(x, y), f(x, y))
