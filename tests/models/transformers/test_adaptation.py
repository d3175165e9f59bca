"""Low-rank adaptation: nothing changes at the start, A has no slope there, merging changes nothing."""

import numpy as np
import pytest
import sympy

import symad
from symad.errors import ShapeError
from symad.models.layers.feedforward import FeedForward
from symad.models.layers.parameters import count, trace_model
from symad.models.transformers import adaptation
from tests.models.reference import agrees_with_torch

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(5, 4)), rng.normal(size=(5, 3))


def symbols(name, rows, columns):
    return np.array(sympy.symbols(f"{name}:{rows}:{columns}", real=True), dtype=object).reshape(rows, columns)


def test_merged_weights_give_the_same_output_proved():
    """As polynomials in all entries, at d_out = 3, d_in = 4, r = 2."""
    x, W = symbols("x", 2, 4), symbols("W", 3, 4)
    A, B = symbols("A", 2, 4), symbols("B", 3, 2)
    apart = symad.trace(lambda *v: adaptation.apply(*v, alpha=8), [(2, 4), (3, 4), (2, 4), (3, 2)])
    whole = symad.trace(
        lambda x, W, A, B: x @ adaptation.merged(W, A, B, 8).T, [(2, 4), (3, 4), (2, 4), (3, 2)]
    )
    for a, b in zip(apart(x, W, A, B).ravel(), whole(x, W, A, B).ravel(), strict=True):
        assert sympy.expand(a - b) == 0


def test_at_the_start_the_slope_of_A_is_zero_proved():
    """With B = 0 and all else symbols, ∂L/∂A is 0 and ∂L/∂B is not."""

    def loss(x, W, A, B, y):
        return np.sum((adaptation.apply(x, W, A, B, alpha=2) - y) ** 2)

    graph = symad.gradient(symad.trace(loss, [(2, 4), (3, 4), (2, 4), (3, 2), (2, 3)]), ["A", "B"])
    zero = np.full((3, 2), sympy.S.Zero, dtype=object)
    values = symbols("x", 2, 4), symbols("W", 3, 4), symbols("A", 2, 4), zero, symbols("y", 2, 3)
    A_bar, B_bar = graph(*values)
    assert all(sympy.expand(e) == 0 for e in np.ravel(A_bar))
    assert any(sympy.expand(e) != 0 for e in np.ravel(B_bar))


def test_adapted_network_against_torch():
    model = FeedForward((4, 6, 3), convention="left")
    frozen = model.init(1)
    matrices = {k: s for k, s in model.shapes.items() if k[0] == "W"}
    shapes = adaptation.adapter_shapes(matrices, 2)

    def loss(p, X, Y):
        return model.loss(adaptation.adapt(frozen, p, 4.0), X.T, Y.T)

    def reference(torch, p, X, Y):
        W1, W2 = (torch.tensor(frozen[k]) + 2.0 * p[f"{k}_B"] @ p[f"{k}_A"] for k in ("W1", "W2"))
        hidden = torch.tanh(W1 @ X.T + torch.tensor(frozen["b1"])[:, None])
        return ((W2 @ hidden - Y.T) ** 2).mean()

    agrees_with_torch(loss, shapes, reference, X, Y)
    start = adaptation.init(matrices, 2, seed=3)
    np.testing.assert_array_equal(loss(start, X, Y), model.loss(frozen, X.T, Y.T))
    slopes = symad.gradient(trace_model(loss, shapes, X.shape, Y.shape), list(shapes))
    for name, slope in zip(shapes, slopes(*start.values(), X, Y), strict=True):
        assert (np.abs(slope).max() == 0) == name.endswith("_A")


def test_stacks_of_matrices_and_the_number_of_parameters():
    d, r, H = 8, 2, 3
    shapes = adaptation.adapter_shapes({"W_Q": (H, d, d)}, r)
    assert shapes == {"W_Q_A": (H, r, d), "W_Q_B": (H, d, r)}
    assert count(shapes) == 2 * H * r * d
    with pytest.raises(ShapeError, match="b of shape"):
        adaptation.adapter_shapes({"b": (3,)}, 2)
