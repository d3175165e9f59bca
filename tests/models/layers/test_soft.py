"""Smooth maxima: torch, the limit of temperature 0, the gradient identity."""

import numpy as np
import pytest
import sympy

import symad
from symad.errors import SymadError
from symad.models.layers import soft
from symad.models.layers.losses import cross_entropy
from tests.models.reference import agrees_with_torch

rng = np.random.default_rng(0)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_torch(alpha):
    Y = rng.normal(size=(4, 5))

    def reference(torch, p, Y):
        p_i = torch.softmax(p["z"] / alpha, -1)
        places = (p_i * torch.arange(5)).sum(-1)
        top = alpha * torch.logsumexp(p["z"] / alpha, -1)
        logs = torch.log_softmax(p["z"] / alpha, -1)
        return ((p_i + logs) * Y).sum() + (places**2).sum() + torch.sin(top).sum()

    def loss(p, Y):
        z = p["z"]
        weighted = np.sum((soft.weights(z, alpha) + soft.log_weights(z, alpha)) * Y)
        return weighted + np.sum(soft.argmax(z, alpha) ** 2) + np.sum(np.sin(soft.maximum(z, alpha)))

    agrees_with_torch(loss, {"z": (4, 5)}, reference, Y)


def test_temperature_zero_is_a_dirac_at_the_largest():
    z = np.array([0.3, 1.1, -0.4, 1.0])
    np.testing.assert_allclose(soft.weights(z, 1e-3), [0, 1, 0, 0], atol=1e-40)
    assert soft.argmax(z, 1e-3) == 1
    assert soft.maximum(z, 1e-3) == 1.1
    hot = soft.weights(z, 1e6)
    np.testing.assert_allclose(hot, 0.25, rtol=1e-5)
    for alpha in (0.1, 1.0, 10.0):
        assert 1.1 <= soft.maximum(z, alpha) <= 1.1 + alpha * np.log(4)


def test_the_limit_by_sympy():
    """p_1 → 1 and p_2 → 0 for z_1 > z_2, and both → 1/2 as α → ∞."""
    alpha, gap = sympy.symbols("alpha gap", positive=True)
    z = sympy.Symbol("z", real=True)
    graph = symad.trace(lambda a, b, alpha: soft.weights(np.stack([a, b]), alpha), [(), (), ()])
    first, second = (sympy.simplify(e) for e in graph(z + gap, z, alpha))
    assert sympy.limit(first, alpha, 0, "+") == 1
    assert sympy.limit(second, alpha, 0, "+") == 0
    assert sympy.limit(first, alpha, sympy.oo) == sympy.Rational(1, 2)


def test_the_gradient_of_the_maximum_is_the_weights():
    slope = symad.gradient(symad.trace(soft.maximum, [(3,), ()]), 0)
    weights = symad.trace(soft.weights, [(3,), ()])
    certificate = symad.equal(symad.trace(lambda z, alpha: slope(z, alpha), [(3,), ()]), weights)
    assert certificate.status in ("proved", "tested"), str(certificate)


def test_cross_entropy_is_minus_the_log_of_a_weight():
    z, y = rng.normal(size=(4, 5)), np.array([0, 4, 2, 2])
    expected = -np.mean(np.log(soft.weights(z)[np.arange(4), y]))
    np.testing.assert_allclose(cross_entropy(z, y), expected, rtol=1e-14)


def test_certificate_and_errors():
    assert symad.check(symad.trace(soft.maximum, [(2,), ()])).status in ("proved", "tested")
    with pytest.raises(SymadError, match="alpha=0 must be > 0"):
        soft.weights(np.zeros(2), 0)
