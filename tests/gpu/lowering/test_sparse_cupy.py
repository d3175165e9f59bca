"""Sparse derivatives in CuPy code: run on the stand-in, or on a GPU, and compared with NumPy code."""

from itertools import pairwise

import numpy as np
import pytest
import sympy

import symad
from symad.errors import LoweringError
from symad.numeric import lower
from tests.gpu.cupy_agreement import WHERE, library, on_device


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def grid_energy(u):
    padded = np.pad(u, 1)
    dx, dy = padded[1:, :-1] - padded[:-1, :-1], padded[:-1, 1:] - padded[:-1, :-1]
    return np.sum(np.sqrt(1 + dx**2 + dy**2)) + np.sum(np.exp(u))


def brusselator(w):
    u, v = w[0], w[1]
    near = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(v, 1, 1) - 3 * u
    return np.stack([1 + u**2 * v - 4.4 * u + near, 3.4 * u - u**2 * v])


def scalars():
    x = sympy.symbols("x:6", real=True)
    return symad.hessian(sum(sympy.exp(a * b) for a, b in pairwise(x)), list(x), sparse=True)


GRAPHS = {
    "Rosenbrock": lambda: symad.hessian(symad.trace(rosenbrock, [(50,)]), sparse=True),
    "grid energy": lambda: symad.hessian(symad.trace(grid_energy, [(7, 9)]), sparse=True),
    "products": lambda: symad.hessian(
        symad.trace(rosenbrock, [(30,)]), mode="reverse-over-reverse", sparse=True
    ),
    "Brusselator": lambda: symad.jacobian(symad.trace(brusselator, [(2, 5, 5)]), sparse=True),
    "scalars": scalars,
    "no entries": lambda: symad.hessian(symad.trace(lambda x: np.sum(x), [(4,)]), sparse=True),
}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", GRAPHS)
def test_the_matrix_is_that_of_numpy_code(name, dtype, where):
    graph = GRAPHS[name]()
    point = [np.random.default_rng(0).uniform(0.2, 0.9, node.shape) for node in graph.input_nodes]
    wanted = lower(graph)(*point)
    with library(where) as cp:
        made = lower(graph, backend="cupy", dtype=dtype)(*on_device(cp, point, dtype))
        value = made.get()
    assert value.dtype == dtype
    assert np.array_equal(value.indices, wanted.indices)
    assert np.array_equal(value.indptr, wanted.indptr)
    rtol = 1e-12 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(value.toarray(), wanted.toarray(), rtol=rtol, atol=rtol)


def test_there_are_no_sparse_matrices_of_half_precision():
    with pytest.raises(LoweringError, match="float32 or float64, not float16"):
        lower(GRAPHS["Rosenbrock"](), backend="cupy", dtype="float16")
