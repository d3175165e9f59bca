"""Sparse derivatives as generated code: the same matrices, from a file that needs no symad."""

import re
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import sympy

import symad
from symad.numeric import lower
from symad.numeric.modules.module_text import Names
from symad.numeric.targets.constants import integers_text
from symad.numeric.targets.scalar_module import BodyWriter
from symad.sparsity import sparse_hessian, sparse_jacobian


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def grid_energy(u):
    padded = np.pad(u, 1)
    dx, dy = padded[1:, :-1] - padded[:-1, :-1], padded[:-1, 1:] - padded[:-1, :-1]
    return np.sum(np.sqrt(1 + dx**2 + dy**2)) + np.sum(np.exp(u))


@pytest.mark.parametrize("mode", ["forward-over-reverse", "reverse-over-reverse"])
@pytest.mark.parametrize(("f", "shape"), [(rosenbrock, (9,)), (grid_energy, (4, 6))])
def test_hessians(f, shape, mode):
    sparse = sparse_hessian(symad.trace(f, [shape]), mode=mode)
    kernel = lower(sparse)
    point = np.random.default_rng(0).uniform(0.1, 0.9, shape)
    wanted, value = sparse(point), kernel(point)
    assert np.array_equal(value.indices, wanted.indices)
    assert np.array_equal(value.indptr, wanted.indptr)
    np.testing.assert_allclose(value.data, wanted.data, rtol=1e-13)


@pytest.mark.parametrize("mode", ["forward", "reverse", "mixed"])
def test_jacobians(mode):
    def arrow(x):
        return np.concatenate([np.sum(x**2)[None], x[0] * np.exp(x[1:])])

    sparse = sparse_jacobian(symad.trace(arrow, [(30,)]), mode=mode)
    point = np.linspace(0.1, 0.9, 30)
    np.testing.assert_allclose(lower(sparse)(point).toarray(), sparse(point).toarray(), rtol=1e-13)


def test_hessians_of_scalars():
    x = sympy.symbols("x:5", real=True)
    sparse = sparse_hessian(sum(sympy.exp(a * b) for a, b in pairwise(x)), list(x))
    point = np.linspace(0.1, 0.9, 5)
    np.testing.assert_allclose(lower(sparse)(*point).toarray(), sparse(*point).toarray(), rtol=1e-13)


@pytest.mark.thorough
def test_a_saved_file_runs_without_symad(tmp_path):
    kernel = lower(sparse_hessian(symad.trace(rosenbrock, [(6,)])))
    kernel.save(tmp_path / "model.py")
    assert "symad" not in kernel.source.split('"""')[2]
    code = (
        "import sys, numpy, model; h = model.rosenbrock_hessian(numpy.arange(6.0));"
        "print(h.format, h.nnz, float(h.toarray().trace()), 'symad' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    trace = sum(1200.0 * k**2 - 400.0 * (k + 1) + 2 for k in range(5)) + 200.0 * 5
    assert done.stdout.split() == ["csr", "16", str(trace), "False"]


def test_results_share_their_structure_safely():
    kernel = lower(sparse_hessian(symad.trace(rosenbrock, [(6,)])))
    first = kernel(np.arange(6.0))
    with pytest.raises(ValueError, match="read-only"):
        first.indices[0] = 3
    first.data[:] = 0
    assert kernel(np.arange(6.0)).data.any()


# Scalar graphs: straight-line code, in Python and in C


def valley(n):
    """The chained Rosenbrock function of n scalars, and its Hessian by hand."""
    x = sympy.symbols(f"x:{n}", real=True)
    f = sum(100 * (b - a**2) ** 2 + (1 - a) ** 2 for a, b in pairwise(x))

    def by_hand(p):
        dense = np.zeros((n, n))
        for i in range(n - 1):
            dense[i, i] += 1200 * p[i] ** 2 - 400 * p[i + 1] + 2
            dense[i + 1, i + 1] += 200
            dense[i, i + 1] = dense[i + 1, i] = -400 * p[i]
        return dense

    return f, list(x), by_hand


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("n", [3, 40])
def test_scalar_code_fills_the_structure(n, backend):
    f, x, by_hand = valley(n)
    kernel = lower(symad.hessian(f, x, sparse=True), backend=backend)
    assert "np.stack([" not in kernel.source
    point = np.linspace(-1, 2, n)
    value = kernel(*point.tolist())
    assert (value.format, value.nnz) == ("csr", 3 * n - 2)
    np.testing.assert_allclose(value.toarray(), by_hand(point), rtol=1e-13)
    assert value.has_canonical_format
    with pytest.raises(ValueError, match="read-only"):
        value.indices[0] = 3


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_batches_of_points_give_dense_matrices(backend):
    f, x, by_hand = valley(4)
    kernel = lower(symad.hessian(f, x, sparse=True), backend=backend)
    points = np.random.default_rng(0).normal(size=(2, 3, 4))
    value = kernel(*np.moveaxis(points, -1, 0))
    assert value.shape == (2, 3, 4, 4)
    np.testing.assert_allclose(value[1, 2], by_hand(points[1, 2]), rtol=1e-13)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_exceptional_points_and_constant_matrices(backend):
    x, y = sympy.symbols("x y", real=True)
    kernel = lower(symad.hessian(sympy.log(x) + y**2, [x, y], sparse=True), backend=backend)
    value = kernel(0.0, 1.0)
    assert value.format == "csr"
    assert value.toarray().tolist() == [[-np.inf, 0], [0, 2]]
    constant = lower(symad.hessian(x**2 + 3 * y**2, [x, y], sparse=True), backend=backend)
    assert constant(1.0, 2.0).toarray().tolist() == [[2, 0], [0, 6]]
    assert constant(np.ones(3), np.ones(3))[2].tolist() == [[2, 0], [0, 6]]
    empty = lower(symad.hessian(x + y, [x, y], sparse=True), backend=backend)
    assert (empty(1.0, 2.0).nnz, empty(1.0, 2.0).shape) == (0, (2, 2))
    assert not empty(np.ones(3), np.ones(3)).any()


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_packed_results_stay_sparse(backend):
    f, x, by_hand = valley(5)
    point = np.linspace(0, 1, 5)
    packed = lower(symad.hessian(f, x, sparse=True), backend=backend, packed=True)
    np.testing.assert_allclose(packed(point).toarray(), by_hand(point), rtol=1e-13)
    arrays = lower(sparse_hessian(symad.trace(rosenbrock, [(5,)])), packed=True)
    np.testing.assert_allclose(arrays(point).toarray(), by_hand(point), rtol=1e-13)
    slope = lower(symad.gradient(f, x), backend=backend, packed=True)(point)
    g = symad.trace(rosenbrock, [(5,)])
    for both in (
        lower(symad.join(symad.gradient(f, x), symad.hessian(f, x, sparse=True)), backend, packed=True),
        lower(symad.join(symad.gradient(g), sparse_hessian(g)), backend, packed=True),
    ):
        np.testing.assert_allclose(both(point)[0], slope, rtol=1e-13)
        np.testing.assert_allclose(both(point)[1].toarray(), by_hand(point), rtol=1e-13)


def test_value_gradient_and_sparse_hessian_in_one_function():
    g = symad.trace(rosenbrock, [(6,)])
    kernel = lower(symad.join(g, symad.gradient(g), sparse_hessian(g)))
    point = np.linspace(-1, 1, 6)
    value, gradient, hessian = kernel(point)
    np.testing.assert_allclose(value, rosenbrock(point), rtol=1e-13)
    np.testing.assert_allclose(np.ravel(gradient), np.ravel(symad.gradient(g)(point)), rtol=1e-13)
    np.testing.assert_allclose(hessian.toarray(), symad.hessian(g)(point), rtol=1e-13)


# The text


def test_index_arrays_are_short():
    kernel = lower(sparse_hessian(symad.trace(grid_energy, [(60, 60)])))
    assert len(kernel.source) < 10_000
    rosenbrocks = lower(sparse_hessian(symad.trace(rosenbrock, [(20_000,)])))
    assert len(rosenbrocks.source) < 5_000
    body = rosenbrocks.source.split('"""')[-1]
    assert "entries[" in re.sub(r"entries\d+", "entries", body)
    assert not {"_pad", "np.full", "np.where"} & set(re.findall(r"[\w.]+", body))


@pytest.mark.parametrize("library", ["np", "cp"])
@pytest.mark.parametrize(
    "array",
    [
        np.arange(100),
        np.arange(5, 505, 5),
        np.arange(300)[::-1],
        np.repeat(7, 99),
        np.array([1, 5] * 50),
        np.random.default_rng(0).integers(-1000, 1000, 500),
        np.arange(120).reshape(10, 12),
        (np.arange(90) % 3 == 0).astype(float).reshape(3, 30),
        np.zeros(70),
        np.arange(61.0),
    ],
    ids=str,
)
def test_arrays_of_integers_come_back(array, library):
    writer = BodyWriter(Names())
    writer.np = library
    dtype = f"{library}.float64" if array.dtype.kind == "f" else f"{library}.int32"
    text = integers_text(array, dtype, writer)
    scope = {library: np}
    exec("\n\n".join([*writer.imports, *writer.helpers.values()]), scope)
    made = eval(text, scope)
    assert np.array_equal(made, array)
    assert made.dtype == dtype.partition(".")[2]


@pytest.mark.parametrize(
    "array",
    [
        np.arange(10),
        np.linspace(0, 1, 100),
        np.full(100, -0.0),
        np.full(100, np.nan),
        np.full(100, 2**31),
    ],
    ids=str,
)
def test_other_arrays_are_displayed(array):
    assert integers_text(array, "np.float64", None) is None
