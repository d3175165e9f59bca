"""Divergences: published numbers, both sides of each duality, bounds that hold."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symad
from symad.models import divergences as dv

P = np.array([0.36, 0.48, 0.16])  # Binomial(2, 0.4)
Q = np.full(3, 1 / 3)


def test_worked_numbers() -> None:
    assert round(float(dv.kl(P, Q)), 6) == 0.085300
    assert round(float(dv.kl(Q, P)), 6) == 0.097455
    assert round(float(dv.jensen_shannon(P, Q)), 6) == 0.022460
    assert dv.best_discriminator(P, Q).round(6).tolist() == [0.519231, 0.590164, 0.324324]
    assert round(dv.f_divergence(dv.GAN, P, Q), 6) == -1.341375
    assert dv.wasserstein([0, 1, 2], P, Q) == pytest.approx(0.2, abs=1e-15)


def test_gan_divergence_is_jensen_shannon() -> None:
    expected = 2 * dv.jensen_shannon(P, Q) - 2 * np.log(2)
    assert dv.f_divergence(dv.GAN, P, Q) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("divergence", [dv.KL, dv.REVERSE_KL, dv.PEARSON, dv.GAN], ids=lambda d: d.name)
def test_the_variational_bound_is_tight_at_the_best_critic(divergence: dv.Divergence) -> None:
    value = dv.f_divergence(divergence, P, Q)
    critic = dv.best_critic(divergence, P, Q)
    assert dv.variational_bound(divergence, P, Q, critic) == pytest.approx(value, rel=1e-13)
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = critic + rng.normal(size=3) * 0.1
        assert dv.variational_bound(divergence, P, Q, other) < value


@pytest.mark.parametrize("divergence", [dv.KL, dv.REVERSE_KL, dv.PEARSON, dv.GAN], ids=lambda d: d.name)
def test_conjugates(divergence: dv.Divergence) -> None:
    """Fenchel: f*(f'(u)) = u f'(u) − f(u)."""
    left = divergence.conjugate.subs(dv.t, divergence.slope)
    right = dv.u * divergence.slope - divergence.f
    for number in (0.3, 1.0, 2.7):
        assert float(left.subs(dv.u, number)) == pytest.approx(
            float(right.subs(dv.u, number)), rel=1e-12, abs=1e-14
        )


def test_wasserstein_both_ways() -> None:
    rng = np.random.default_rng(1)
    for count in (2, 5, 12):
        xs = rng.normal(size=count)
        p, q = (v / v.sum() for v in rng.uniform(size=(2, count)))
        assert dv.wasserstein(xs, p, q) == pytest.approx(dv.wasserstein_dual(xs, p, q), rel=1e-9)


def test_maximum_likelihood_is_kl_minimisation() -> None:
    """The gradients of −E_data log q_θ and of KL(data‖q_θ) are one."""
    theta = sp.IndexedBase("theta", shape=(3,))
    likelihood = symad.trace(lambda a: -(P * np.log(symad.functions.softmax(a))).sum(), [theta])
    divergence = symad.trace(lambda a: dv.kl(P, symad.functions.softmax(a)), [theta])
    point = np.array([0.3, -0.2, 0.9])
    slopes = [symad.gradient(g)(point)[0] for g in (likelihood, divergence)]
    assert np.allclose(slopes[0], slopes[1], rtol=1e-13)
    assert np.allclose(slopes[0], np.exp(point) / np.exp(point).sum() - P, rtol=1e-12)


def test_gaussian_kl_is_proved() -> None:
    assert symad.equal(dv.gaussian_kl(), dv.gaussian_kl_by_moments()).status == "proved"


def test_gaussian_kl_is_the_integral() -> None:
    x = sp.Symbol("x", real=True)
    m, s = sp.Rational(1, 2), sp.Rational(3, 4)
    density = sp.exp(-((x - m) ** 2) / (2 * s**2)) / (s * sp.sqrt(2 * sp.pi))
    ratio = -((x - m) ** 2) / (2 * s**2) - sp.log(s) + x**2 / 2
    integral = sp.integrate(density * ratio, (x, -sp.oo, sp.oo))
    assert float(integral) == pytest.approx(float(dv.gaussian_kl().subs({dv.mu: m, dv.sigma: s})), rel=1e-12)


def test_what_is_no_distribution_is_refused() -> None:
    with pytest.raises(symad.errors.SymadError, match=r"p = .* is no probability vector"):
        dv.wasserstein([0, 1], [0.5, 0.6], [0.5, 0.5])
