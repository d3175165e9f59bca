"""Two-layer networks: torch, and the error as one over the root of the width."""

import numpy as np
import pytest
import sympy
from scipy.integrate import quad

import symad
from symad.errors import ShapeError
from symad.models.layers.parameters import trace_model
from symad.models.layers.two_layer import TwoLayer, errors, sample
from tests.models.reference import agrees_with_torch

rng = np.random.default_rng(0)


def target(x):
    """f*(−1) = f*'(−1) = 0."""
    return 1 + np.cos(np.pi * x)


def curvature(x):
    return -(np.pi**2) * np.cos(np.pi * x)


@pytest.mark.parametrize("name", ["tanh", "relu"])
def test_torch(name):
    model = TwoLayer(3, 5, name)
    x, y = rng.normal(size=(6, 3)), rng.normal(size=6)

    def reference(torch, p, x, y):
        hidden = getattr(torch, name)(x @ p["v"].T + p["b"])
        return ((hidden @ p["u"] / 5 - y) ** 2).mean()

    agrees_with_torch(model.loss, model.shapes, reference, x, y)


@pytest.mark.thorough
def test_error_falls_with_the_root_of_the_width():
    """E (f − f*)² = V/n, where V is the variance of one neuron, here by quadrature."""
    points = np.linspace(-1, 1, 201)

    def variance(x):
        second = quad(lambda s: (2 * curvature(s) * (x - s)) ** 2 / 2, -1, x)[0]
        return second - target(x) ** 2

    V = np.mean([variance(x) for x in points])
    widths = [4, 16, 64, 256, 1024]
    found = errors(target, curvature, widths, draws=400)
    np.testing.assert_allclose(found, np.sqrt(V / np.array(widths)), rtol=0.1)
    slope = np.polyfit(np.log(widths), np.log(found), 1)[0]
    assert abs(slope + 0.5) < 0.03


def test_the_mean_of_neurons_is_the_target():
    x = np.array([[-0.5], [0.2], [1.0]])
    exact = [quad(lambda s, v=v: curvature(s) * (v - s), -1, v)[0] for v in x[:, 0]]
    np.testing.assert_allclose(exact, target(x[:, 0]), rtol=1e-9, atol=1e-12)
    f = TwoLayer(1, 200_000).apply(sample(curvature, 200_000, rng), x)
    np.testing.assert_allclose(f, target(x[:, 0]), atol=0.1)


def test_sizes_may_be_symbols():
    N, d, n = sympy.symbols("N d n", integer=True, positive=True)
    graph = trace_model(TwoLayer(d, n).loss, TwoLayer(d, n).shapes, (N, d), (N,))
    small = TwoLayer(2, 7)
    p, x, y = small.init(0), rng.normal(size=(5, 2)), rng.normal(size=5)
    np.testing.assert_allclose(graph(*p.values(), x, y), small.loss(p, x, y), rtol=1e-13)
    tanh = TwoLayer(d, n, "tanh")
    assert "tanh" in str(symad.to_sympy(trace_model(tanh.apply, tanh.shapes, (N, d))))


@pytest.mark.thorough
def test_certificate_and_errors():
    model = TwoLayer(1, 2, "tanh")
    assert symad.check(trace_model(model.loss, model.shapes, (1, 1), (1,))).status in ("proved", "tested")
    with pytest.raises(ShapeError, match=r"shape \(N, 1\), not \(3, 2\)"):
        model.apply(model.init(), np.zeros((3, 2)))
