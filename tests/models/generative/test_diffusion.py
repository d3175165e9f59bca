"""Diffusion: the forward closed form, both samplers, the score and Tweedie's formula proved; gradients."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symad
from symad.models.generative import diffusion as df
from symad.models.generative.diffusion import Diffusion
from symad.numeric import lower

x, y, x0, noise = sp.symbols("x y x0 epsilon", real=True)
r, s = sp.symbols("r s", positive=True)  # √ᾱ and √(1 − ᾱ)
k = sp.Symbol("k", positive=True)  # √(1 − β)


def formula(f, *values):
    """What a function of the model says about SymPy expressions."""
    names = sp.symbols(f"a0:{len(values)}", real=True)
    return symad.to_sympy(symad.trace(f, list(names))).subs(dict(zip(names, values, strict=True)))


def proved(left, right) -> bool:
    certificate = symad.equal(left, right)
    assert certificate.status == "proved", str(certificate)
    return True


def log_normal(point, mean, variance):
    return -((point - mean) ** 2) / (2 * variance) - sp.log(variance) / 2


def test_forward_closed_form_by_induction() -> None:
    """x_{t+1} = √(1 − β) x_t + √β n keeps x_t = √ᾱ x_0 + √(1 − ᾱ) ε with ᾱ_{t+1} = (1 − β) ᾱ_t."""
    mean, variance = r * x0, 1 - r**2  # the hypothesis at t, with ᾱ = r²
    assert mean.subs(r, 1) == x0  # the start: x_0 itself,
    assert variance.subs(r, 1) == 0  # without noise
    assert proved(k * mean, (k * r) * x0)  # the step, with 1 − β = k²
    assert proved(k**2 * variance + (1 - k**2), 1 - (k * r) ** 2)
    beta, alpha_bar = df.schedule(50)
    m, v = 1.0, 0.0
    for b, a in zip(beta[1:], alpha_bar[1:], strict=True):
        m, v = np.sqrt(1 - b) * m, (1 - b) * v + b
        assert m == pytest.approx(np.sqrt(a), rel=1e-13)
        assert v == pytest.approx(1 - a, rel=1e-12)


def test_ancestral_mean_is_that_of_the_posterior() -> None:
    """log q(x_t | x_{t−1}) + log q(x_{t−1} | x_0) has its maximum, in x_{t−1}, at the ancestral mean."""
    beta, before = 1 - k**2, r**2  # ᾱ_{t−1} = r², ᾱ_t = k² r²
    alpha_bar = k**2 * r**2
    log_p = log_normal(x, k * y, beta) + log_normal(y, r * x0, 1 - before)
    epsilon = (x - k * r * x0) / sp.sqrt(1 - alpha_bar)
    mean = formula(df.ancestral_mean, x, epsilon, beta, alpha_bar)
    slope = symad.to_sympy(symad.gradient(log_p, y))
    assert proved(sp.simplify(slope.subs(y, mean)), sp.Integer(0))
    curve = symad.to_sympy(symad.gradient(slope, y))
    assert proved(-1 / curve, beta * (1 - before) / (1 - alpha_bar))  # β̃, its variance


def test_implicit_steps_keep_the_clean_point_and_the_noise() -> None:
    """From √ᾱ x_0 + √(1 − ᾱ) ε a DDIM step leads to the same x_0 and ε at the level before."""
    a, b = sp.symbols("a b", positive=True)

    def at(level):
        return sp.sqrt(level) * x0 + sp.sqrt(1 - level) * noise

    assert proved(formula(df.denoised, at(a), noise, a), x0)
    assert proved(formula(df.implicit_step, at(a), noise, a, b), at(b))


def test_score_is_the_scaled_noise() -> None:
    """∇_x log q(x | x_0) = −ε/√(1 − ᾱ)."""
    log_p = log_normal(x, r * x0, s**2)
    slope = symad.to_sympy(symad.gradient(log_p, x)).subs(x, r * x0 + s * noise)
    assert proved(slope, formula(df.score_of, noise, 1 - s**2))


def test_tweedies_formula() -> None:
    """E[x_0 | x_t] for x_0 = a or b with chances w and 1 − w, and for a Gaussian x_0."""
    a, b, m = sp.symbols("a b m", real=True)
    w, tau = sp.symbols("w tau", positive=True)
    first, second = (sp.exp(-((x - r * c) ** 2) / (2 * (1 - r**2))) for c in (a, b))
    q = w * first + (1 - w) * second
    score = symad.to_sympy(symad.gradient(sp.log(q), x))
    expected = (w * a * first + (1 - w) * b * second) / q
    assert proved(formula(df.tweedie, x, score, r**2), expected)
    total = r**2 * tau**2 + 1 - r**2  # the variance of x_t
    score = symad.to_sympy(symad.gradient(log_normal(x, r * m, total), x))
    assert proved(formula(df.tweedie, x, score, r**2), m + r * tau**2 / total * (x - r * m))


@pytest.mark.parametrize("classes", [0, 3])
def test_loss_and_gradients_are_torchs(classes: int) -> None:
    torch = pytest.importorskip("torch")
    model = Diffusion(4, (6, 5), 4, classes)
    rng = np.random.default_rng(0)
    p = {n: a + 0.1 * rng.normal(size=a.shape) for n, a in model.init(1).items()}
    _, alpha_bar = df.schedule(9)
    c = np.eye(3)[rng.integers(0, 3, 7)]
    data = model.draw(rng.normal(size=(7, 4)), 9, alpha_bar, rng, c)
    both = symad.value_and_gradient(model.graph(sp.Symbol("N", integer=True, positive=True)), list(p))
    value, *slopes = lower(both)(*p.values(), *data)
    tensors = {n: torch.tensor(a, requires_grad=True) for n, a in p.items()}
    clean, eps, level, time, *rest = (torch.tensor(d) for d in data)
    inputs = torch.cat([level.sqrt()[:, None] * clean + (1 - level).sqrt()[:, None] * eps, time, *rest], 1)
    hidden = torch.nn.functional.silu(inputs @ tensors["W1"] + tensors["b1"])
    hidden = torch.nn.functional.silu(hidden @ tensors["W2"] + tensors["b2"])
    expected = torch.nn.functional.mse_loss(hidden @ tensors["W3"], eps)
    expected.backward()
    assert value == pytest.approx(expected.item(), rel=1e-12)
    for ours, theirs in zip(slopes, tensors.values(), strict=True):
        np.testing.assert_allclose(ours, theirs.grad.numpy(), rtol=1e-10, atol=1e-14)


def test_guidance() -> None:
    """Hidden classes are zero rows, about as many as asked for; the noise is extrapolated from theirs."""
    model = Diffusion(2, (5,), 4, classes=3)
    rng = np.random.default_rng(0)
    p, c = model.init(0), np.eye(3)[rng.integers(0, 3, 4000)]
    _, alpha_bar = df.schedule(9)
    *_, shown = model.draw(rng.normal(size=(4000, 2)), 9, alpha_bar, rng, c, hidden=0.25)
    gone = shown.sum(axis=1) == 0
    assert gone.mean() == pytest.approx(0.25, abs=0.03)
    assert np.array_equal(shown[~gone], c[~gone])
    points, time = rng.normal(size=(4, 2)), df.time_features([1, 2, 5, 9], 4, 9)
    with_class, without = model.predict(p, points, time, c[:4]), model.predict(p, points, time, 0 * c[:4])
    assert np.allclose(model.guided(p, points, time, c[:4], 2.0), 3 * with_class - 2 * without, rtol=1e-14)
    assert np.array_equal(model.guided(p, points, time, c[:4], 0.0), with_class)


def test_levels_of_samples_are_columns_also_where_there_are_as_many_samples_as_features() -> None:
    rng = np.random.default_rng(3)
    x, noise, level = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), np.array([0.9, 0.5, 0.1])
    assert np.allclose(df.denoised(df.noised(x, noise, level), noise, level), x)
    by_row = [df.implicit_step(x[k], noise[k], level[k], 0.95) for k in range(3)]
    assert np.allclose(df.implicit_step(x, noise, level, np.full(3, 0.95)), by_row)
    assert np.allclose(df.score_of(noise, level), -noise / np.sqrt(1 - level)[:, None])
