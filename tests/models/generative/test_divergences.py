"""Divergences: published numbers, both sides of each duality, bounds that hold."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import sympy as sp

import symad
from symad.models.generative import divergences as dv

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


ALPHAS = tuple(dv.alpha(a) for a in (sp.Rational(1, 2), 2, 3, -1))
ALL = pytest.mark.parametrize("divergence", dv.DIVERGENCES + ALPHAS, ids=lambda d: d.name)


@ALL
def test_the_variational_bound_is_tight_at_the_best_critic(divergence: dv.Divergence) -> None:
    value = dv.f_divergence(divergence, P, Q)
    critic = dv.best_critic(divergence, P, Q)
    assert dv.variational_bound(divergence, P, Q, critic) == pytest.approx(value, rel=1e-13)
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = critic + rng.normal(size=3) * 0.1
        low, high = (float(e) for e in (divergence.domain.inf, divergence.domain.sup))
        other = np.clip(other, low, high)
        assert dv.variational_bound(divergence, P, Q, other) <= value


@ALL
def test_f_is_convex(divergence: dv.Divergence) -> None:
    second = sp.diff(divergence.f, dv.u, 2)
    if divergence is dv.TOTAL_VARIATION:  # two straight lines
        assert [second.subs(dv.u, k) for k in (sp.Rational(1, 2), 2)] == [0, 0]
    else:
        assert sp.factor(sp.simplify(second)).is_positive


@ALL
def test_conjugates_are_proved(divergence: dv.Divergence) -> None:
    """f*(t) = u t − f(u) where t = f'(u): for convex f that is the supremum."""
    slope = sp.expand(sp.simplify(divergence.slope))
    assert symad.equal(slope, divergence.slope).status == "proved"
    conjugate = divergence.conjugate
    if divergence is dv.JEFFREYS:  # W(exp(1 − t)) is the positive w with w eʷ = exp(1 − t): it is 1/u
        w = 1 / dv.u
        assert symad.equal(w * sp.exp(w), sp.exp(1 - slope)).status in ("proved", "tested")
        conjugate = conjugate.subs(sp.LambertW(sp.exp(1 - dv.t)), w)
    certificate = symad.equal(conjugate.subs(dv.t, slope), dv.u * slope - divergence.f)
    assert certificate.status in ("proved", "tested"), str(certificate)


@ALL
def test_scores_reach_the_domain_of_the_conjugate(divergence: dv.Divergence) -> None:
    """The output map increases from one end of the domain to the other; the penalty is f* of it."""
    ends = [sp.limit(divergence.output.rewrite(sp.exp), dv.v, e) for e in (-sp.oo, sp.oo)]
    assert ends == [divergence.domain.inf, divergence.domain.sup]
    rise = symad.trace(symad.gradient(divergence.output, dv.v))
    assert (np.asarray(rise(np.linspace(-9, 9, 101))) > 0).all()
    assert all(divergence.slope.subs(dv.u, k) in divergence.domain for k in (sp.Rational(1, 9), 1, 7))
    if divergence is dv.JEFFREYS:  # the positive w with w eʷ = exp(1 − g(v)) is e⁻ᵛ
        w = sp.exp(-dv.v)
        assert symad.equal(w * sp.exp(w), sp.exp(1 - divergence.output)).status in ("proved", "tested")
        conjugate = divergence.conjugate.subs(sp.LambertW(sp.exp(1 - dv.t)), w)
    else:
        conjugate = divergence.conjugate
    certificate = symad.equal(conjugate.subs(dv.t, divergence.output), divergence.penalty)
    assert certificate.status == "proved", str(certificate)


def test_known_divergences() -> None:
    """The f-divergences against their textbook sums."""
    expected = {
        dv.KL: dv.kl(P, Q),
        dv.REVERSE_KL: dv.kl(Q, P),
        dv.PEARSON: ((P - Q) ** 2 / Q).sum(),
        dv.NEYMAN: ((P - Q) ** 2 / P).sum(),
        dv.HELLINGER: ((np.sqrt(P) - np.sqrt(Q)) ** 2).sum(),
        dv.JEFFREYS: dv.kl(P, Q) + dv.kl(Q, P),
        dv.JENSEN_SHANNON: 2 * dv.jensen_shannon(P, Q),
        dv.TOTAL_VARIATION: np.abs(P - Q).sum() / 2,
    }
    expected |= {
        dv.alpha(2): ((P - Q) ** 2 / Q).sum() / 2,
        dv.alpha(-1): ((P - Q) ** 2 / P).sum() / 2,
        dv.alpha(sp.Rational(1, 2)): 2 * ((np.sqrt(P) - np.sqrt(Q)) ** 2).sum(),
    }
    for divergence, value in expected.items():
        assert dv.f_divergence(divergence, P, Q) == pytest.approx(value, rel=1e-13), divergence.name


def test_alpha_divergences_end_in_kl() -> None:
    assert dv.f_divergence(dv.alpha(0.999999), P, Q) == pytest.approx(dv.kl(P, Q), rel=1e-5)
    with pytest.raises(symad.errors.SymadError, match="use REVERSE_KL"):
        dv.alpha(0)


def test_the_best_discriminator_is_proved() -> None:
    """The slope in D vanishes at p/(p + q), and the curve −p/D² − q/(1 − D)² is negative."""
    p, q = sp.symbols("p q", positive=True)
    d = sp.Symbol("D", positive=True)
    objective = p * sp.log(d) + q * sp.log(1 - d)
    slope = symad.to_sympy(symad.gradient(objective, d))
    assert symad.equal(slope.subs(d, p / (p + q)), sp.Integer(0)).status == "proved"
    curve = symad.to_sympy(symad.gradient(slope, d))
    assert symad.equal(curve, -p / d**2 - q / (1 - d) ** 2).status == "proved"


def test_its_value_is_proved() -> None:
    """Atom by atom p log D* + q log(1 − D*) = −(p + q) log 2 + p log(p/m) + q log(q/m), m = (p + q)/2.

    Summed over all atoms, where p and q sum to 1, that is −log 4 + 2 JS.
    """
    p, q = sp.symbols("p q", positive=True)
    best, middle = p / (p + q), (p + q) / 2
    left = p * sp.log(best) + q * sp.log(1 - best)
    right = -(p + q) * sp.log(2) + p * sp.log(p / middle) + q * sp.log(q / middle)
    assert symad.equal(left, right).status in ("proved", "tested")
    value = dv.discriminator_objective(P, Q, dv.best_discriminator(P, Q)).sum()
    assert value == pytest.approx(-np.log(4) + 2 * dv.jensen_shannon(P, Q), rel=1e-14)


@pytest.mark.parametrize("count", [1, 2, 5, 12])
def test_wasserstein_every_way(count: int) -> None:
    """By distribution functions, by quantiles, by the dual program, and by SciPy."""
    rng = np.random.default_rng(count)
    xs = rng.normal(size=count)
    p, q = (w / w.sum() for w in rng.uniform(size=(2, count)))
    expected = scipy.stats.wasserstein_distance(xs, xs, p, q)
    assert dv.wasserstein(xs, p, q) == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert dv.wasserstein_quantiles(xs, p, xs, q) == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert dv.wasserstein_dual(xs, p, q) == pytest.approx(expected, rel=1e-10, abs=1e-15)


def test_wasserstein_of_different_points() -> None:
    rng = np.random.default_rng(3)
    xs, ys = rng.normal(size=7), rng.normal(size=4)
    p, q = rng.dirichlet(np.ones(7)), rng.dirichlet(np.ones(4))
    expected = scipy.stats.wasserstein_distance(xs, ys, p, q)
    assert dv.wasserstein_quantiles(xs, p, ys, q) == pytest.approx(expected, rel=1e-12)


def test_maximum_likelihood_is_kl_minimization() -> None:
    """The gradients of −E_data log q_θ and of KL(data‖q_θ) are one."""
    theta = sp.IndexedBase("theta", shape=(3,))
    likelihood = symad.trace(lambda a: -(P * np.log(symad.functions.softmax(a))).sum(), [theta])
    divergence = symad.trace(lambda a: dv.kl(P, symad.functions.softmax(a)), [theta])
    point = np.array([0.3, -0.2, 0.9])
    slopes = [symad.gradient(g)(point) for g in (likelihood, divergence)]
    assert np.allclose(slopes[0], slopes[1], rtol=1e-13)
    assert np.allclose(slopes[0], np.exp(point) / np.exp(point).sum() - P, rtol=1e-12)


def test_gaussian_kl_is_proved() -> None:
    assert symad.equal(dv.gaussian_kl(), dv.gaussian_kl_by_moments()).status == "proved"


@pytest.mark.thorough
def test_gaussian_kl_is_the_integral() -> None:
    x = sp.Symbol("x", real=True)
    m, s = sp.Rational(1, 2), sp.Rational(3, 4)
    density = sp.exp(-((x - m) ** 2) / (2 * s**2)) / (s * sp.sqrt(2 * sp.pi))
    ratio = -((x - m) ** 2) / (2 * s**2) - sp.log(s) + x**2 / 2
    integral = sp.integrate(density * ratio, (x, -sp.oo, sp.oo))
    assert float(integral) == pytest.approx(float(dv.gaussian_kl().subs({dv.mu: m, dv.sigma: s})), rel=1e-12)


def test_what_is_no_distribution_is_refused() -> None:
    with pytest.raises(symad.errors.SymadError, match=r"p = .* is not a probability vector"):
        dv.wasserstein([0, 1], [0.5, 0.6], [0.5, 0.5])
