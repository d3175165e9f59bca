"""LSTM: the worked example to its last digit, gate derivatives, torch."""

import numpy as np
import pytest

import symad
from symad.models.layers.parameters import trace_model
from symad.models.sequences.lstm import LSTM, step
from tests.models.reference import agrees_with_torch

X, H, C = np.array([0.5, -0.1]), np.array([0, 0.1]), np.array([0.2, -0.2])
W_H = np.array([
    [[0.1, 0.2], [-0.2, 0.05]],
    [[0.05, -0.1], [0.2, 0.1]],
    [[0.15, 0.05], [0.1, -0.2]],
    [[0.2, 0.1], [-0.1, 0.05]],
])  # fmt: skip
W_X = np.array([
    [[0.5, -0.3], [0.4, 0.1]],
    [[-0.4, 0.2], [0.3, 0.1]],
    [[0.3, 0.25], [-0.2, 0.2]],
    [[-0.5, 0.4], [0.2, -0.3]],
])  # fmt: skip
rng = np.random.default_rng(0)


def worked(h, c):
    return step(h, c, W_X @ X, W_H)


def test_worked_example():
    z = W_X @ X + W_H @ H
    i, f, o = 1 / (1 + np.exp(-z[:3]))
    assert i.round(6).tolist() == [0.574443, 0.548596]
    assert f.round(6).tolist() == [0.442752, 0.537430]
    assert o.round(6).tolist() == [0.532454, 0.465057]
    assert np.tanh(z[3]).round(6).tolist() == [-0.272905, 0.134186]
    h, c = worked(H, C)
    assert c.round(5).tolist() == [-0.06822, -0.03387]
    assert h.round(5).tolist() == [-0.03627, -0.01575]


def test_worked_derivatives():
    jacobian = symad.jacobian(symad.trace(worked, [(2,), (2,)]))(H, C).round(6)
    np.testing.assert_array_equal(jacobian[:2, :2], [[0.051583, 0.017643], [-0.033573, 0.012659]])
    np.testing.assert_array_equal(jacobian[2:, :2], [[0.102128, 0.034889], [-0.070462, 0.023625]])
    np.testing.assert_array_equal(jacobian[:2, 2:], np.diag([0.234652, 0.249649]))
    # The additive path: ∂c/∂c is the forget gate itself.
    np.testing.assert_array_equal(jacobian[2:, 2:], np.diag([0.442752, 0.537430]))


def test_the_additive_path_is_the_product_of_forget_gates():
    """With W_h = 0 the gates do not see h: ∂c_T/∂c_0 = Π_t diag(f_t), and no matrix comes in.

    The tanh network with the same weights multiplies by diag(1 − h²) W_hh, here 0, at once.
    """
    x = rng.normal(size=(6, 2))

    def last_cell(c):
        h = np.zeros(2)
        for x_t in x:
            h, c = step(h, c, W_X @ x_t, 0 * W_H)
        return c

    forget = 1 / (1 + np.exp(-(x @ W_X[1].T)))
    jacobian = symad.jacobian(symad.trace(last_cell, [(2,)]))(C)
    np.testing.assert_allclose(jacobian, np.diag(np.prod(forget, axis=0)), rtol=1e-12)


@pytest.mark.parametrize("layers", [1, 2])
def test_torch(layers):
    """torch's own LSTM, whose gates come in the order i, f, g, o, batched."""
    model = LSTM(3, 4, 2, layers)
    x, y = rng.normal(size=(5, 6, 3)), rng.normal(size=(5, 6, 2))

    def reference(torch, p, x, y):
        weights = []
        for k in range(1, layers + 1):
            for name in (f"W_x{k}", f"W_h{k}", f"b{k}"):
                weights.append(p[name][[0, 1, 3, 2]].reshape(16, *p[name].shape[2:]))
            weights.append(torch.zeros(16, dtype=torch.float64))
        start = [torch.zeros(layers, 6, 4, dtype=torch.float64)] * 2
        h, _, _ = torch.lstm(x, start, weights, True, layers, 0.0, False, False, False)
        return ((h @ p["W_hy"].T + p["c_y"] - y) ** 2).mean()

    agrees_with_torch(model.loss, model.shapes, reference, x, y)


def test_last_step_of_one_sequence_against_torch():
    model = LSTM(2, 3, 1)
    x, y = rng.normal(size=(4, 2)), rng.normal(size=1)

    def reference(torch, p, x, y):
        h, c = torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
        for t in range(4):
            z = p["W_x1"] @ x[t] + p["W_h1"] @ h + p["b1"]
            c = torch.sigmoid(z[1]) * c + torch.sigmoid(z[0]) * torch.tanh(z[3])
            h = torch.sigmoid(z[2]) * torch.tanh(c)
        return ((p["W_hy"] @ h + p["c_y"] - y) ** 2).mean()

    agrees_with_torch(model.last_loss, model.shapes, reference, x, y)


def test_states_of_a_batch_are_those_of_its_members():
    model = LSTM(2, 3, 1)
    p, x = model.init(1), rng.normal(size=(5, 4, 2))
    together = model.states(p, x)
    for n in range(4):
        for whole, one in zip(together, model.states(p, x[:, n]), strict=True):
            np.testing.assert_allclose(whole[:, n], one, rtol=1e-14)


def test_long_sequences_trace_at_once():
    model = LSTM(1, 2, 1)
    graph = symad.gradient(trace_model(model.loss, model.shapes, (3000, 1), (3000, 1)), "W_h1")
    assert len(graph.nodes) < 300
