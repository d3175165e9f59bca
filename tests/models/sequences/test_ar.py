"""The autoregressive model: Fibonacci, sunspots, windows, and the recurrent unit that equals an AR model."""

import numpy as np
import pytest
import sympy

import symad
from symad.errors import ShapeError
from symad.models.layers import linear_unit
from symad.models.layers.parameters import trace_model
from symad.models.sequences import ar
from symad.numeric import lower
from tests.models.reference import agrees_with_torch

FIBONACCI = [1, 1, 2, 3, 5, 8, 13, 21, 34, 55]


def test_seq2col_holds_the_windows_newest_first():
    expected = [[2, 1, 1], [3, 2, 1], [5, 3, 2]]
    np.testing.assert_array_equal(ar.seq2col(FIBONACCI[:5], 3), expected)
    with pytest.raises(ShapeError, match="at least 4 numbers"):
        ar.seq2col([1, 2, 3], 4)
    with pytest.raises(ShapeError, match=r"shape \(0,\)"):
        ar.seq2col([], 1)


def test_missing_numbers_are_named():
    series = np.array([1.0, 2, np.nan, 4, 5])
    with pytest.raises(ShapeError, match="contains nan at 2"):
        ar.fit(series, 2)
    with pytest.raises(ShapeError, match="windows of 5"):
        ar.fit(FIBONACCI[:4], 5)


def test_fibonacci_is_singular_with_the_least_solution():
    fit = ar.fit(FIBONACCI, 3)
    assert (fit.rank, fit.deficient) == (3, True)
    np.testing.assert_allclose(fit.weights[::-1], [0, 1, 1], atol=1e-12)  # oldest lag first
    assert abs(fit.bias) < 1e-11
    assert "rank 3 of 4" in str(fit)
    # All solutions, oldest lag first: (α, 1 + α, 1 − α) with bias 0.
    (direction,) = fit.directions
    np.testing.assert_allclose(direction / direction[2], [-1, 1, 1, 0], atol=1e-11)


def test_every_solution_of_fibonacci_has_zero_loss_and_slope():
    alpha = sympy.Symbol("alpha", real=True)
    loss = symad.trace(ar.loss(), [ar.w, ar.b, ar.x])
    weights = np.array([1 - alpha, 1 + alpha, alpha])
    assert sympy.expand(loss(weights, sympy.S.Zero, np.array(FIBONACCI, dtype=object))) == 0
    for a in (-2.0, 0.5):
        slopes = symad.gradient(loss, [ar.w, ar.b])(np.array([1 - a, 1 + a, a]), 0.0, FIBONACCI)
        np.testing.assert_allclose(np.hstack(slopes), 0, atol=1e-9)


def test_loss_and_gradient_are_those_of_the_windows():
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=20), rng.normal(size=4), 0.3
    residual = ar.seq2col(x[:-1], 4) @ w + b - x[4:]
    graph = symad.trace(ar.loss(), [ar.w, ar.b, ar.x])
    value, w_bar, b_bar = lower(symad.value_and_gradient(graph, [ar.w, ar.b]))(w, b, x)
    np.testing.assert_allclose(value, np.mean(residual**2), rtol=1e-13)
    np.testing.assert_allclose(w_bar, 2 * ar.seq2col(x[:-1], 4).T @ residual / 16, rtol=1e-12)
    np.testing.assert_allclose(b_bar, 2 * residual.mean(), rtol=1e-12)


def test_the_loss_against_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    w, b, x = rng.normal(size=3), np.array(0.4), rng.normal(size=12)
    leaves = [torch.tensor(v, requires_grad=True) for v in (w, b, x)]
    windows = leaves[2].unfold(0, 3, 1)[:-1].flip(1)
    loss = ((windows @ leaves[0] + leaves[1] - leaves[2][3:]) ** 2).mean()
    loss.backward()
    graph = symad.value_and_gradient(symad.trace(ar.loss(), [ar.w, ar.b, ar.x]))
    for found in (graph(w, b, x), lower(graph)(w, b, x)):
        np.testing.assert_allclose(found[0], loss.item(), rtol=1e-10)
        for one, leaf in zip(found[1:], leaves, strict=True):
            np.testing.assert_allclose(one, leaf.grad.numpy(), rtol=1e-10, atol=1e-13)


def test_the_linear_unit_against_torch():
    x, y = np.random.default_rng(2).normal(size=(2, 6))

    def reference(torch, p, x, y):
        h, total = torch.zeros(3, dtype=torch.float64), 0
        for t in range(6):
            h = p["W_rec"] @ h + p["w_in"] * x[t]
            total = total + (h @ p["w_out"] - y[t]) ** 2 / 6
        return total

    shapes = {"W_rec": (3, 3), "w_in": (3,), "w_out": (3,)}
    agrees_with_torch(lambda p, x, y: np.mean((linear_unit.apply(p, x) - y) ** 2), shapes, reference, x, y)


def test_sunspots_beat_the_naive_forecast():
    datasets = pytest.importorskip("statsmodels.api").datasets
    series = datasets.sunspots.load_pandas().data["SUNACTIVITY"].to_numpy()
    fit = ar.fit(series[:-50], 9)
    assert not fit.deficient
    windows, actual = ar.seq2col(series[:-1], 9)[-50:], series[-50:]
    error = np.sqrt(np.mean((windows @ fit.weights + fit.bias - actual) ** 2))
    naive = np.sqrt(np.mean((windows[:, 0] - actual) ** 2))
    assert error < 0.7 * naive


def test_a_linear_recurrent_unit_is_an_ar_model():
    """Proved: with the shift matrix the unit's outputs are the AR(4) predictions, as polynomials."""
    w = sympy.symbols("w0:4", real=True)
    x = sympy.symbols("x0:7", real=True)
    shapes = {"W_rec": (4, 4), "w_in": (4,), "w_out": (4,)}
    graph = trace_model(linear_unit.apply, shapes, (7,))
    unit = linear_unit.from_ar(np.array(w, dtype=object))
    exact = [np.vectorize(sympy.nsimplify, otypes=[object])(v) for v in unit.values()]
    outputs = graph(*exact, np.array(x, dtype=object))
    for t, y in enumerate(outputs):
        expected = sum(w[k] * x[t - k] for k in range(4) if t - k >= 0)
        assert sympy.expand(y - expected) == 0


def test_the_unit_with_fibonacci_weights_continues_the_sequence():
    y = linear_unit.apply(linear_unit.from_ar([1.0, 1.0]), np.array(FIBONACCI, dtype=float))
    np.testing.assert_array_equal(y[1:], [*FIBONACCI[2:], 89])
