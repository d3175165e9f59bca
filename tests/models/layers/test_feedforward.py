"""Feed-forward networks: both conventions, all activations, against torch."""

import numpy as np
import pytest
import sympy

import symad
from symad.errors import ShapeError, SymadError
from symad.models.layers.feedforward import FeedForward
from symad.models.layers.parameters import count, trace_model
from tests.models.reference import agrees_with_torch

rng = np.random.default_rng(1)
X, Y = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))


def torch_network(torch, p, X, activation, hidden):
    S = X
    for k in range(1, hidden + 1):
        S = activation(S @ p[f"W{k}"] + p[f"b{k}"])
    return S @ p[f"W{hidden + 1}"]


@pytest.mark.parametrize("name", ["tanh", "relu", "sigmoid", "gelu", "silu", "softplus"])
def test_value_and_gradients(name):
    model = FeedForward((3, 4, 6, 2), name)

    def reference(torch, p, X, Y):
        activation = getattr(torch.nn.functional, name)
        return ((torch_network(torch, p, X, activation, 2) - Y) ** 2).mean()

    agrees_with_torch(model.loss, model.shapes, reference, X, Y)


def test_classification():
    model = FeedForward((3, 4, 3))
    labels = np.array([0, 2, 1, 1, 0])

    def reference(torch, p, X, y):
        return torch.nn.functional.cross_entropy(torch_network(torch, p, X, torch.tanh, 1), y)

    agrees_with_torch(model.classification_loss, model.shapes, reference, X, labels)


def test_both_conventions_give_the_same_numbers():
    right, left = FeedForward((3, 4, 4, 2)), FeedForward((3, 4, 4, 2), convention="left")
    p = right.init(3)
    q = {name: value.T for name, value in p.items()}
    assert {k: v.shape for k, v in q.items()} == left.shapes
    np.testing.assert_allclose(left.apply(q, X.T), right.apply(p, X).T, rtol=1e-14)
    a = symad.gradient(right.graph(5), list(p))(*p.values(), X, Y)
    b = symad.gradient(left.graph(5), list(q))(*q.values(), X.T, Y.T)
    for one, other in zip(a, b, strict=True):
        np.testing.assert_allclose(one, other.T, rtol=1e-12)


def test_symbolic_sizes_serve_all_numbers():
    N, d, h = sympy.symbols("N d h", integer=True, positive=True)
    graph = FeedForward((d, h, 2)).graph(N)
    for widths in [(3, 4, 2), (1, 7, 2)]:
        model = FeedForward(widths)
        p, data = model.init(1), (rng.normal(size=(6, widths[0])), rng.normal(size=(6, 2)))
        np.testing.assert_allclose(graph(*p.values(), *data), model.loss(p, *data), rtol=1e-14)
    assert count(FeedForward((d, h, 2)).shapes) - (d * h + 3 * h) == 0


def test_the_loss_prints_as_sympy():
    N, d, h = sympy.symbols("N d h", integer=True, positive=True)
    model = FeedForward((d, h, 1), convention="left")
    text = str(symad.to_sympy(trace_model(model.apply, model.shapes, (d, N))))
    assert "W2*" in text and "tanh" in text and "W1*X" in text


def test_initial_values_keep_the_size_of_signals():
    wide = FeedForward((400, 400, 400, 400), "relu")
    p, x = wide.init(0), np.random.default_rng(2).normal(size=(50, 400))
    assert 0.7 < np.mean(wide.apply(p, x) ** 2) / (2 * np.mean(x**2)) < 1.4


def test_errors():
    with pytest.raises(SymadError, match="'swish' is not one of tanh"):
        FeedForward((3, 2), "swish")
    with pytest.raises(ShapeError, match="'left' or 'right'"):
        FeedForward((3, 2), convention="up")
    with pytest.raises(ShapeError, match="numbers as sizes"):
        FeedForward((sympy.Symbol("d"), 2), "relu").init()
