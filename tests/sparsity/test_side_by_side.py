"""Sparse derivatives of stencils as generated code: parts side by side, gathered, without copies."""

import re
import threading
import warnings

import numpy as np
import pytest
import sympy

import symad
from symad.numeric import lower
from tests.sparsity.stencils import STENCILS, film, quartic, valley

BACKENDS = ["numpy", "c"]


def dense_hessian(of_symbols, point):
    """The Hessian by SymPy, at a point."""
    u = np.array([sympy.Symbol(f"u{k}", real=True) for k in range(point.size)]).reshape(point.shape)
    f = of_symbols(u)
    values = dict(zip(u.ravel(), point.ravel().tolist(), strict=True))
    dense = np.zeros((point.size, point.size))
    for i, a in enumerate(u.ravel()):
        slope = sympy.diff(f, a)
        for j, b in enumerate(u.ravel()[: i + 1]):
            if b in slope.free_symbols:
                dense[i, j] = dense[j, i] = sympy.diff(slope, b).evalf(30, subs=values)
    return dense


@pytest.fixture(scope="module")
def wanted():
    """Points, and the Hessians there by SymPy."""
    found = {}
    for name, (_, of_symbols, shape) in STENCILS.items():
        steps = np.random.default_rng(len(name)).uniform(0.1, 0.5, shape)
        point = np.cumsum(steps, axis=-1)
        found[name] = point, dense_hessian(of_symbols, point)
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", STENCILS)
def test_hessians_of_stencils(name, backend, wanted):
    f, _, shape = STENCILS[name]
    point, dense = wanted[name]
    kernel = lower(symad.hessian(symad.trace(f, [shape]), sparse=True), backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # elements between rows must not be heard of
        value = kernel(point)
    np.testing.assert_allclose(value.toarray(), dense, rtol=1e-13, atol=1e-13 * abs(dense).max())
    in_columns = kernel(np.asfortranarray(point))
    np.testing.assert_allclose(in_columns.toarray(), dense, rtol=1e-13, atol=1e-13 * abs(dense).max())
    single = lower(symad.hessian(symad.trace(f, [shape]), sparse=True), backend=backend, dtype="float32")
    assert single(point).dtype == np.float32
    np.testing.assert_allclose(single(point).toarray(), dense, rtol=2e-6, atol=1e-6 * abs(dense).max())


@pytest.mark.sample(2)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["film", "quartic"])
def test_several_outputs_that_share_parts(name, backend, wanted):
    f, _, shape = STENCILS[name]
    point, dense = wanted[name]
    g = symad.trace(f, [shape])
    slope = symad.gradient(g)
    twice = symad.join(g, slope, symad.jacobian(slope, sparse=True), symad.hessian(g, sparse=True))
    value, gradient, jacobian, hessian = lower(twice, backend=backend)(point)
    np.testing.assert_allclose(value, f(point), rtol=1e-13)
    np.testing.assert_allclose(np.ravel(gradient), np.ravel(slope(point)), rtol=1e-12, atol=1e-13)
    for matrix in (jacobian, hessian):
        np.testing.assert_allclose(matrix.toarray(), dense, rtol=1e-12, atol=1e-13 * abs(dense).max())


def reaction(w):
    """A reaction with diffusion on a periodic grid, two fields: (u', v')."""
    u, v = w[0], w[1]
    spread = [sum(np.roll(a, s, k) for s in (1, -1) for k in (0, 1)) - 4 * a for a in (u, v)]
    return np.stack([1 + u**2 * v - 4.4 * u + spread[0], 3.4 * u - u**2 * v + spread[1]])


@pytest.mark.parametrize("backend", BACKENDS)
def test_jacobian_by_the_complex_step(backend):
    point = np.random.default_rng(0).uniform(size=(2, 4, 5))
    value = lower(symad.jacobian(symad.trace(reaction, [(2, 4, 5)]), sparse=True), backend=backend)(point)
    step = 1e-30
    columns = [
        np.ravel(reaction(point + 1j * step * unit.reshape(point.shape)).imag / step) for unit in np.eye(40)
    ]
    np.testing.assert_allclose(value.toarray(), np.stack(columns, axis=1), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_that_are_kept_do_not_change(backend):
    shape = (64, 65)  # large enough for memory that is used again
    kernel = lower(symad.hessian(symad.trace(film, [shape]), sparse=True), backend=backend)
    points = np.random.default_rng(1).normal(size=(6, *shape))
    first = [kernel(point) for point in points]
    copies = [matrix.data.copy() for matrix in first]
    assert first[0].nnz * 8 > 1 << 16
    made = {}

    def work(k):
        for _ in range(5):
            made[k] = [kernel(point) for point in points[k::2]]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for matrix, copy in zip(first, copies, strict=True):
        assert np.array_equal(matrix.data, copy)
    for k in range(2):
        for matrix, copy in zip(made[k], copies[k::2], strict=True):
            assert np.array_equal(matrix.data, copy)
    first[0].data[:] = 0  # results own their entries
    assert np.array_equal(kernel(points[0]).data, copies[0])
    assert np.array_equal(first[1].data, copies[1])


@pytest.mark.parametrize("f", [film, quartic], ids=["film", "quartic"])
def test_both_backends_agree_on_large_grids(f):
    shape = (40, 70)
    graph = symad.hessian(symad.trace(f, [shape]), sparse=True)
    point = np.random.default_rng(2).normal(size=shape)
    plain, compiled = (lower(graph, backend=backend)(point) for backend in BACKENDS)
    scale = abs(plain.data).max()
    np.testing.assert_allclose(compiled.data, plain.data, rtol=1e-13, atol=1e-14 * scale)


def body(kernel):
    return kernel.source.split('"""')[-1]


def test_parts_are_not_copied():
    graph = symad.hessian(symad.trace(film, [(40, 40)]), sparse=True)
    plain, compiled = (body(lower(graph, backend=backend)) for backend in BACKENDS)
    for text in (plain, compiled):
        assert not {"np.concatenate", "np.ravel"} & set(re.findall(r"[\w.]+", text))
        assert not re.search(r"\[[^\]]*:[^\]]*,", text.partition(".reshape(")[2])  # ranges, no cut rows
    assert plain.count(".take(") == 1
    chain = body(lower(symad.hessian(symad.trace(valley, [(50,)]), sparse=True)))
    assert not re.search(r"entries\w*\[.*\] \+=", chain)  # sums are made where arrays are whole
    assert len(re.findall(r"entries\w*\[.*\] = ", chain)) == 2  # one of three diagonals is computed there
    assert len(re.findall(r"_kernel_\d+\(", compiled)) == 3  # two for the stencil, one to gather
