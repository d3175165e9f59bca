"""Sums over pairs in C, against whole matrices in NumPy and their gradients by hand."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.numeric import lower
from symad.numeric.compiler.c_compiler import compiler

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")

n, m = sp.symbols("n m", integer=True, positive=True)
RNG = np.random.default_rng(8)


def points(name, length, width):
    return sp.IndexedBase(name, shape=(length, width))


def gaussian(p, q, ell):
    return sp.exp(-sum((p[k] - q[k]) ** 2 for k in range(3)) / (2 * ell**2))


def gaussian_by_hand(x, y, b, ell, bar):
    """The value, and the cotangents of x, y, b and the length."""
    gaps = x[:, None] - y[None]
    squares = (gaps**2).sum(-1)
    k = np.exp(-squares / (2 * ell**2))
    w = k * (bar @ b.T)
    slope = -gaps * w[:, :, None] / ell**2
    return k @ b, slope.sum(1), -slope.sum(0), k.T @ bar, (w * squares).sum() / ell**3


def value_and_bars(kernel, width, columns, params, backend="c", dtype="float64"):
    """The lowered sums, and their cotangents."""
    x, y, b = points("x", n, width), points("y", m, width), points("b", m, columns)
    symbols = [x, y, b, *params.values()]
    graph = symad.trace(
        lambda x, y, b, *p: functions.pairwise(kernel, x, y, b, params=dict(zip(params, p, strict=True))),
        symbols,
    )
    value, back = symad.trace(graph), symad.pullback(graph)
    return lower(value, backend=backend, dtype=dtype), lower(back, backend=backend, dtype=dtype)


def assert_close(found, expected, digits=1e-12):
    np.testing.assert_allclose(found, expected, rtol=digits, atol=digits * np.abs(expected).max(initial=0))


@pytest.mark.sample(2)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (7, 40), (600, 30), (20, 4096), (5, 9001)])
@pytest.mark.parametrize("weights", [1, 2])
def test_the_gaussian_kernel(rows, columns, weights):
    value, back = value_and_bars(gaussian, 3, weights, {"ell": sp.Symbol("ell", positive=True)})
    assert "_pair_sum(" not in value.source and "_over_pairs(" in value.source
    x, y = RNG.standard_normal((rows, 3)), RNG.standard_normal((columns, 3))
    b, bar = RNG.standard_normal((columns, weights)), RNG.standard_normal((rows, weights))
    expected = gaussian_by_hand(x, y, b, 0.8, bar)
    found = back(x, y, b, 0.8, bar)
    assert_close(value(x, y, b, 0.8), expected[0])
    assert len(found) == 5
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other)


def test_no_rows_and_no_columns():
    value, back = value_and_bars(gaussian, 3, 2, {"ell": sp.Symbol("ell", positive=True)})
    for rows, columns in ((0, 4), (4, 0), (0, 0)):
        x, y, b, bar = (np.ones(s) for s in ((rows, 3), (columns, 3), (columns, 2), (rows, 2)))
        assert np.array_equal(value(x, y, b, 1.0), np.full((rows, 2), float(columns)))
        shapes = [np.shape(v) for v in back(x, y, b, 1.0, bar)]
        assert shapes == [(rows, 2), (rows, 3), (columns, 3), (columns, 2), ()]


@pytest.mark.thorough
def test_components_of_their_own_vectors_of_parameters_and_sines():
    def kernel(p, q, v):
        return v[0] * p[0] * sp.sin(q[1]) + sp.exp(-sum(v[k] * sp.Abs(p[k] - q[k]) for k in range(2)))

    value, back = value_and_bars(kernel, 2, 1, {"v": sp.IndexedBase("v", shape=(2,))})
    x, y, b = RNG.standard_normal((30, 2)), 3e9 * RNG.standard_normal((50, 2)), RNG.standard_normal((50, 1))
    y[::2] /= 3e9  # far arguments of the sine among near ones
    v, bar = np.array([0.7, 1.9]), RNG.standard_normal((30, 1))
    gaps = x[:, None] - y[None]
    e = np.exp(-np.abs(gaps) @ v)
    k = v[0] * np.outer(x[:, 0], np.sin(y[:, 1])) + e
    assert_close(value(x, y, b, v), k @ b)
    w = bar @ b.T
    signs = np.sign(gaps) * (w * e)[:, :, None] * v
    x_bar = -signs.sum(1)
    x_bar[:, 0] += v[0] * (w @ np.sin(y[:, 1]))
    y_bar = signs.sum(0)
    y_bar[:, 1] += v[0] * np.cos(y[:, 1]) * (w.T @ x[:, 0])
    v_bar = -(np.abs(gaps) * (w * e)[:, :, None]).sum((0, 1))
    v_bar[0] += (w * np.outer(x[:, 0], np.sin(y[:, 1]))).sum()
    _, *found = back(x, y, b, v, bar)
    for one, other in zip(found, (x_bar, y_bar, k.T @ bar, v_bar), strict=True):
        assert_close(one, other)


@pytest.mark.thorough
def test_float32():
    value, back = value_and_bars(gaussian, 3, 1, {"ell": sp.Symbol("ell", positive=True)}, dtype="float32")
    x, y, b, bar = (
        RNG.uniform(0.5, 1.5, s).astype(np.float32) for s in ((9, 3), (5000, 3), (5000, 1), (9, 1))
    )
    expected = gaussian_by_hand(*(a.astype(float) for a in (x, y, b)), 0.8, bar.astype(float))
    found = back(x, y, b, np.float32(0.8), bar)
    assert all(f.dtype == np.float32 for f in found)
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, 2e-5)
    assert value(x, y, b, np.float32(0.8)).dtype == np.float32


@pytest.mark.parametrize(("reduce", "width"), [("logsumexp", 3), ("softmax", 3), ("sum", 12)])
def test_what_has_no_kernel_goes_by_blocks_in_numpy(reduce, width):
    x, y, b = points("x", n, width), points("y", m, width), points("b", m, 1)
    graph = symad.trace(
        lambda x, y, b: functions.pairwise(
            lambda p, q: -sum((p[k] - q[k]) ** 2 for k in range(width)), x, y, b, reduce=reduce
        ),
        [x, y, b],
    )
    kernel = lower(graph, backend="c")
    assert "_pair_sum(" in kernel.source
    data = RNG.standard_normal((6, width)), RNG.standard_normal((9, width)), RNG.uniform(1, 2, (9, 1))
    k = -((data[0][:, None] - data[1][None]) ** 2).sum(-1)
    e = np.exp(k)
    expected = {
        "sum": k @ data[2],
        "logsumexp": np.log(e @ data[2]),
        "softmax": e @ data[2] / e.sum(1, keepdims=True),
    }
    np.testing.assert_allclose(kernel(*data), expected[reduce], rtol=1e-12)
