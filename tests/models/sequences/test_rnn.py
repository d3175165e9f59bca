"""Recurrent networks: the worked example to its last digit, backpropagation through time, torch."""

import numpy as np
import pytest
import sympy

import symad
from symad.errors import ShapeError
from symad.models.layers.parameters import trace_model
from symad.models.sequences.rnn import RNN, jacobian_norms
from symad.numeric import lower
from tests.models.reference import agrees_with_torch

W_XH = np.array([[0.5, -0.3], [0.8, 0.2], [0.1, 0.4]])
W_HH = np.array([[0.1, 0.4, 0], [-0.2, 0.3, 0.1], [0.05, -0.1, 0.2]])
W_HY = np.array([[1, -1, 0.5], [0.5, 0.5, -0.5]])
XS = np.array([[1.0, 2], [-1, 1]])
WORKED = {"W_xh1": W_XH, "W_hh1": W_HH, "W_hy": W_HY}
MODEL = RNN(2, 3, 2, bias=False)
rng = np.random.default_rng(0)


def test_worked_example_forward():
    h = MODEL.states(WORKED, XS)
    y = MODEL.apply(WORKED, XS)
    np.testing.assert_allclose(np.arctanh(h[0]), [-0.1, 1.2, 0.9], rtol=1e-14)
    np.testing.assert_array_equal(h.round(5), [[-0.09967, 0.83365, 0.71630], [-0.44344, -0.25274, 0.34072]])
    np.testing.assert_array_equal(y.round(5), [[-0.57517, 0.00884], [-0.02034, -0.51845]])


def test_worked_example_gradient():
    def total(p, x):
        return np.sum(MODEL.last(p, x))

    graph = symad.gradient(trace_model(total, MODEL.shapes, (2, 2)), "W_hh1")
    expected = [
        [-0.120104, 1.004588, 0.863168],
        [0.046651, -0.390201, -0.335271],
        [0, 0, 0],
    ]
    np.testing.assert_array_equal(graph(*WORKED.values(), XS).round(6) + 0.0, expected)


def test_worked_example_jacobian_norm():
    norms = jacobian_norms(W_HH, MODEL.states(WORKED, XS))
    assert norms.round(6).tolist() == [1.0, 0.443940]


@pytest.mark.parametrize("size", [0.5, 1.0, 1.5])
def test_the_product_of_jacobians_vanishes_or_explodes(size):
    """At h = 0 with W_hh = size · rotation it is size^(t−1): fading, staying or growing."""
    turn = size * np.array([[0.6, -0.8], [0.8, 0.6]])
    np.testing.assert_allclose(jacobian_norms(turn, np.zeros((30, 2))), size ** np.arange(30.0), rtol=1e-12)


def test_backpropagation_through_time_is_the_double_sum():
    """The gradient of the scan against Σ_t Σ_{k≤t} ∂L_t/∂h_t (Π ∂h_j/∂h_{j−1}) ∂⁺h_k/∂W, literally."""
    x, target = rng.normal(size=(6, 2)), rng.normal(size=(6, 2))
    graph = symad.gradient(trace_model(MODEL.loss, MODEL.shapes, (6, 2), (6, 2)), "W_hh1")
    h, y = MODEL.states(WORKED, x), MODEL.apply(WORKED, x)
    before = np.vstack([np.zeros(3), h[:-1]])
    total = np.zeros((3, 3))
    for t in range(6):
        row = 2 * (y[t] - target[t]) / 12 @ W_HY
        for k in range(t, -1, -1):
            total += np.outer(row * (1 - h[k] ** 2), before[k])
            row = row * (1 - h[k] ** 2) @ W_HH
    np.testing.assert_allclose(graph(*WORKED.values(), x, target), total, rtol=1e-12)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("layers", [1, 2])
def test_torch(activation, layers):
    """torch's own RNN, in its layout, batched; its second bias is zero."""
    model = RNN(3, 4, 2, layers, activation)
    x, y = rng.normal(size=(5, 6, 3)), rng.normal(size=(5, 6, 2))

    def reference(torch, p, x, y):
        weights = []
        for k in range(1, layers + 1):
            zero = torch.zeros(4, dtype=torch.float64)
            weights += [p[f"W_xh{k}"], p[f"W_hh{k}"], p[f"b{k}"], zero]
        run = torch.rnn_tanh if activation == "tanh" else torch.rnn_relu
        start = torch.zeros(layers, 6, 4, dtype=torch.float64)
        h, _ = run(x, start, weights, True, layers, 0.0, False, False, False)
        return ((h @ p["W_hy"].T + p["c"] - y) ** 2).mean()

    agrees_with_torch(model.loss, model.shapes, reference, x, y)


def test_language_model_with_skip_against_torch():
    model = RNN(3, 4, 5, skip=True)
    x, targets = rng.normal(size=(4, 2, 3)), rng.integers(0, 5, (4, 2))

    def reference(torch, p, x, targets):
        h, total = torch.zeros(2, 4, dtype=torch.float64), 0
        for t in range(4):
            h = torch.tanh(h @ p["W_hh1"].T + x[t] @ p["W_xh1"].T + p["b1"])
            z = h @ p["W_hy"].T + x[t] @ p["W_xy"].T + p["c"]
            total = total + torch.nn.functional.cross_entropy(z, targets[t]) / 4
        return total

    agrees_with_torch(model.language_loss, model.shapes, reference, x, targets)


def test_any_length_with_one_graph():
    T, d, h = sympy.symbols("T d h", integer=True, positive=True)
    model = RNN(d, h, 1)
    kernel = lower(symad.value_and_gradient(trace_model(model.last_loss, model.shapes, (T, d), (1,))))
    for length in (1, 2, 300):
        small = RNN(2, 3, 1)
        p, x, y = small.init(4), rng.normal(size=(length, 2)), np.ones(1)
        np.testing.assert_allclose(kernel(*p.values(), x, y)[0], small.last_loss(p, x, y), rtol=1e-13)


def test_every_layer_starts_at_zero():
    """A second layer sees h_1 of the first at t = 1 and has no earlier state."""
    model = RNN(2, 3, 1, layers=2, bias=False)
    p, x = model.init(0), rng.normal(size=(1, 2))
    first = np.tanh(x[0] @ p["W_xh1"].T)
    np.testing.assert_allclose(model.states(p, x)[0], np.tanh(first @ p["W_xh2"].T), rtol=1e-14)


def test_empty_sequences_are_refused():
    with pytest.raises(ShapeError, match=r"T ≥ 1, not \(0, 2\)"):
        MODEL.apply(WORKED, np.zeros((0, 2)))
