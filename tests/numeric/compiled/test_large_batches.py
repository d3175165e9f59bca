"""Large batches of scalar kernels in C, compiled as array code: against NumPy at the same points."""

from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp

import symad
from symad.numeric import lower
from symad.numeric.compiler.c_compiler import compiler
from symad.numeric.scalars import lower_c

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")

a, b, c = sp.symbols("a b c", real=True)
F = sp.exp(-(a**2)) * sp.sin(b * c) + sp.log(1 + b**2) * sp.Piecewise((c, c > 0), (c**2, True))
F += a * sp.atan(b)
POINTS = np.random.default_rng(3).standard_normal((3, 600))


@pytest.fixture(autouse=True)
def all_batches_are_large(monkeypatch):
    monkeypatch.setattr(lower_c, "WORTH_COMPILING", 1)


def by_numpy(x, y, z):
    """The gradient of F by hand."""
    e = np.exp(-(x**2))
    return (
        -2 * x * e * np.sin(y * z) + np.arctan(y),
        z * e * np.cos(y * z) + 2 * y / (1 + y**2) * np.where(z > 0, z, z**2) + x / (1 + y**2),
        y * e * np.cos(y * z) + np.log(1 + y**2) * np.where(z > 0, 1.0, 2 * z),
    )


def kernel_of(what):
    return lower(what, backend="c")


@pytest.mark.sample(2)
@pytest.mark.parametrize("count", [1, 2, 600, 2500])
def test_gradients_at_many_points(count):
    kernel = kernel_of(symad.gradient(F, (a, b, c)))
    points = np.resize(POINTS, (3, count)) + 0.25
    for found, expected in zip(kernel(*points), by_numpy(*points), strict=True):
        assert found.shape == (count,)
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("shape", [(2500,), (50, 60), (5, 1, 600)])
def test_any_shape_of_a_batch(shape):
    kernel = kernel_of(symad.gradient(F, (a, b, c)))
    points = np.random.default_rng(1).standard_normal((3, *shape))
    for found, expected in zip(kernel(*points), by_numpy(*points), strict=True):
        assert found.shape == shape
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


def test_numbers_beside_vectors():
    kernel = kernel_of(symad.gradient(F, (a, b, c)))
    line = np.linspace(-2, 2, 3001)
    expected = by_numpy(0.5, line, np.full(3001, -1.5))
    for found, e in zip(kernel(0.5, line, -1.5), expected, strict=True):
        np.testing.assert_allclose(found, e, rtol=1e-13, atol=1e-14)


def test_outputs_that_are_arrays_or_do_not_depend_on_the_points():
    matrix = symad.trace(sp.Matrix([[a * b, 2], [sp.tan(a), b]]), (a, b))
    kernel = lower(matrix, backend="c")
    x, y = np.random.default_rng(2).standard_normal((2, 2500))
    found = kernel(x, y)
    assert found.shape == (2500, 2, 2)
    expected = np.stack([x * y, np.full(2500, 2.0), np.tan(x), y], axis=1).reshape(2500, 2, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_results_are_the_callers():
    kernel = kernel_of(symad.gradient(a * b + b * sp.atan(a), (a, b)))
    x, y = np.random.default_rng(2).standard_normal((2, 20_000))
    first = kernel(x, y)
    assert not any(np.shares_memory(r, v) for r in first for v in (x, y))
    kept = [r.copy() for r in first]
    for k in range(4):
        kernel(x + k, y - k)
    assert all(np.array_equal(r, k) for r, k in zip(first, kept, strict=True))
    first[0][:] = -1.0  # writing into a result changes neither the inputs nor the next result
    again = kernel(x, y)
    assert all(np.array_equal(r, k) for r, k in zip(again, kept, strict=True))


def test_the_bits_of_a_call_do_not_depend_on_calls_before_it(monkeypatch):
    monkeypatch.setattr(lower_c, "WORTH_COMPILING", 50_000)
    points = np.random.default_rng(5).standard_normal((3, 9000))
    fresh = kernel_of(symad.gradient(F, (a, b, c)))
    few = [r.copy() for r in fresh(*points[:, :2100])]
    large = [r.copy() for r in fresh(*points)]
    for _ in range(2):
        assert all(np.array_equal(x, y) for x, y in zip(fresh(*points[:, :2100]), few, strict=True))
        assert all(np.array_equal(x, y) for x, y in zip(fresh(*points), large, strict=True))


@pytest.mark.thorough
def test_array_code_is_compiled_for_slow_functions_alone(monkeypatch):
    """What runs compute several values at a time is not worth a compilation, however many the points."""

    class Compiled(Exception):
        pass

    def lower_arrays(*given):
        raise Compiled

    monkeypatch.setattr(lower_c, "lower_arrays", SimpleNamespace(lower=lower_arrays))
    points = np.random.default_rng(6).uniform(1, 2, (2, 3000))
    for fast in (sp.exp(a) * sp.sin(b), a**3 / sp.sqrt(b) + sp.Abs(a), 1 / (1 + sp.exp(-a)) + sp.Max(a, b)):
        np.testing.assert_allclose(
            kernel_of(symad.trace(fast, (a, b)))(*points), sp.lambdify((a, b), fast)(*points), rtol=1e-13
        )
    for slow in (sp.atan(a) * b, a**b, a ** sp.Float(2.5) * b):
        with pytest.raises(Compiled):
            kernel_of(symad.trace(slow, (a, b)))(*points)
