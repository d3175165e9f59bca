"""Autoencoders, variational autoencoders, diffusion: worked numbers, torch, closed forms, samples."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from sklearn.datasets import load_digits, make_moons

import symad
from symad.models.generative.autoencoder import Autoencoder, LinearAutoencoder
from symad.models.generative.diffusion import Diffusion, noised, schedule
from symad.models.generative.gan import GAN
from symad.models.generative.vae import VAE
from symad.numeric.training.loop import train, warmup_cosine
from symad.numeric.training.optimizers import Adam

N = sp.Symbol("N", integer=True, positive=True)


def test_worked_loss_and_gradients_of_an_autoencoder() -> None:
    model = LinearAutoencoder(2, 1)
    graph = symad.value_and_gradient(model.graph(N), ["W_e", "W_d"])
    value, encoder, decoder = graph(np.array([[0.5, -1.0]]), np.array([[1.0], [0.5]]), np.array([[2.0, 0.0]]))
    assert value == 0.625
    assert decoder.ravel().tolist() == [-1.0, 0.5]
    assert encoder.ravel().tolist() == [-1.5, 0.0]


def test_the_linear_autoencoder_is_pca() -> None:
    """At the principal axes the gradient vanishes, and the loss is the variance of the rest."""
    x = load_digits().data[:200, :30]
    x = x - x.mean(axis=0)
    _, singular, axes = np.linalg.svd(x, full_matrices=False)
    model = LinearAutoencoder(30, 4)
    value, *slopes = symad.value_and_gradient(model.graph(N), ["W_e", "W_d"])(axes[:4], axes[:4].T, x)
    assert value == pytest.approx((singular[4:] ** 2).sum() / 400, rel=1e-12)
    assert max(np.abs(s).max() for s in slopes) < 1e-10
    other = np.random.default_rng(0).normal(size=(4, 30)) * 0.1
    worse, *_ = symad.value_and_gradient(model.graph(N), ["W_e", "W_d"])(axes[:4] + other, axes[:4].T, x)
    assert worse > value


def torch_loss(p: dict, x: object, noise: object, c: object, code: int, deviation: float | None) -> object:
    """The loss of the variational autoencoder, by torch."""
    import torch as t

    inputs = x if c is None else t.cat([x, c], 1)
    hidden = t.tanh(inputs @ p["e_W1"] + p["e_b1"])
    both = hidden @ p["e_W2"] + p["e_bias"]
    mu, log_sigma = both[:, :code], both[:, code:]
    z = mu + log_sigma.exp() * noise
    z = z if c is None else t.cat([z, c], 1)
    logits = t.tanh(z @ p["d_W1"] + p["d_b1"]) @ p["d_W2"] + p["d_bias"]
    if deviation is None:
        pixels = t.nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    else:
        pixels = -t.distributions.Normal(t.sigmoid(logits), deviation).log_prob(x).sum()
    posterior = t.distributions.Normal(mu, log_sigma.exp())
    kl = t.distributions.kl_divergence(posterior, t.distributions.Normal(0.0, 1.0)).sum()
    return (pixels + kl) / len(x)


@pytest.mark.parametrize(("classes", "deviation"), [(0, None), (3, None), (3, 0.2)])
def test_vae_loss_and_gradients_are_torchs(classes: int, deviation: float | None) -> None:
    torch = pytest.importorskip("torch")
    model = VAE(7, 5, 2, classes, deviation=deviation)
    rng = np.random.default_rng(0)
    p = {k: v + 0.1 * rng.normal(size=v.shape) for k, v in model.init(1).items()}
    data = [rng.uniform(size=(6, 7)), rng.normal(size=(6, 2))]
    if classes:
        data.append(np.eye(3)[rng.integers(0, 3, 6)])
    value, *slopes = symad.value_and_gradient(model.graph(N), list(p))(*p.values(), *data)
    tensors = {k: torch.tensor(v, requires_grad=True) for k, v in p.items()}
    x, noise, *rest = (torch.tensor(d) for d in data)
    expected = torch_loss(tensors, x, noise, rest[0] if rest else None, 2, deviation)
    expected.backward()
    assert value == pytest.approx(expected.item(), rel=1e-12)
    for ours, theirs in zip(slopes, tensors.values(), strict=True):
        assert np.allclose(ours, theirs.grad.numpy(), rtol=1e-10, atol=1e-13)


@pytest.mark.thorough
def test_derivatives_are_certified() -> None:
    """Of the variational bound and of the loss of diffusion, at the smallest sizes."""
    network = Diffusion(1, (1,), 2, activation="tanh")
    for model, wrt in ((VAE(1, 1, 1), ["e_W1", "e_W2"]), (network, list(network.shapes))):
        certificate = symad.check(model.graph(1), wrt=wrt)
        assert certificate.status in ("proved", "tested"), str(certificate)


def test_pixels_without_spread_are_refused() -> None:
    with pytest.raises(symad.errors.SymadError, match="deviation of the pixels is positive, not 0"):
        VAE(7, 5, 2, deviation=0.0)


@pytest.mark.parametrize(
    ("classes", "c", "message"),
    [
        (3, None, r"conditional on 3 classes; give c, one-hot of shape \(N, 3\)"),
        (3, np.eye(2), r"need the shape \(2, 3\), one row for each of x"),
        (3, np.eye(3), r"need the shape \(2, 3\), one row for each of x"),
        (0, np.eye(2), "has no classes, but one of shape"),
    ],
)
def test_classes_that_do_not_fit(classes: int, c: np.ndarray | None, message: str) -> None:
    z, points, time = np.zeros((2, 1)), np.zeros((2, 4)), np.zeros((2, 6))
    vae, net = VAE(4, 5, 1, classes), GAN(4, 1, (5,), (5,), classes=classes)
    noise = Diffusion(4, (5,), 6, classes)
    for call in (
        lambda: vae.decode(vae.init(), z, c),
        lambda: net.generate(net.init(), z, c),
        lambda: net.score(net.init(), points, c),
        lambda: noise.predict(noise.init(), points, time, c),
    ):
        with pytest.raises(symad.errors.ShapeError, match=message):
            call()


def test_deep_autoencoder_interpolates_between_its_reconstructions() -> None:
    model = Autoencoder((6, 4, 2))
    p = model.init(0)
    a, b = np.random.default_rng(0).normal(size=(2, 6))
    path = model.between(p, a, b, 5)
    assert path.shape == (5, 6)
    ends = model.decode(p, model.encode(p, np.stack([a, b])))
    assert np.allclose(path[[0, -1]], ends, rtol=1e-13)


# ---- diffusion ------------------------------------------------------------------------------------


def test_forward_noising_has_the_stated_moments() -> None:
    _, alpha_bar = schedule(100)
    rng = np.random.default_rng(0)
    x = np.full((200_000, 1), 3.0)
    level = alpha_bar[60]
    made = noised(x, rng.standard_normal(x.shape), np.full(len(x), level))
    assert made.mean() == pytest.approx(3 * np.sqrt(level), abs=4 * np.sqrt((1 - level) / len(x)))
    assert made.var() == pytest.approx(1 - level, rel=0.02)


@pytest.mark.parametrize("arguments", [(0,), (10, 0.0), (10, 0.5, 0.1), (10, 0.1, 1.0)])
def test_schedules_out_of_range(arguments: tuple[float, ...]) -> None:
    with pytest.raises(symad.errors.SymadError, match="diffusion schedule"):
        schedule(*arguments)


class Exact(Diffusion):
    """The best prediction of the noise for x_0 ~ N(M, S²), on the schedule `LEVELS`."""

    def predict(self, p: object, x: np.ndarray, time: np.ndarray, c: object = None) -> np.ndarray:
        t = round(float(np.arctan2(time[0, 7], time[0, -1])) * (len(LEVELS[1]) - 1))
        level = LEVELS[1][t]
        return np.sqrt(1 - level) * (x - np.sqrt(level) * M) / (level * S**2 + 1 - level)


M, S, LEVELS = 1.5, 0.4, schedule(200, 1e-4, 0.12)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["ancestral", "posterior", "DDIM", "by the score"])
def test_samplers_with_the_exact_noise_of_a_gaussian(name: str) -> None:
    """They must return the law of the data."""
    model, beta = Exact(1, (4,)), LEVELS[0]
    made = {
        "ancestral": lambda: model.sample({}, 6_000, beta),
        "posterior": lambda: model.sample({}, 6_000, beta, posterior=True),
        "DDIM": lambda: model.sample_ddim({}, 6_000, beta, 100),
        "by the score": lambda: model.sample_corrected({}, 6_000, beta),
    }[name]()
    assert made.mean() == pytest.approx(M, abs=0.02)
    assert made.std() == pytest.approx(S, rel=0.06)


@pytest.mark.thorough
def test_bound_with_the_exact_noise_of_a_gaussian() -> None:
    """Its expectation is known, with E (ε − ε_θ)² = ᾱ S²/(ᾱ S² + 1 − ᾱ), and lies below −½ log 2πeS²."""
    beta, level = LEVELS[0][1:], LEVELS[1][1:]
    missed = level * S**2 / (level * S**2 + 1 - level)
    square = beta**2 / ((1 - level) * (1 - beta)) * missed
    ratio = (1 - LEVELS[1][1:-1]) / (1 - level[1:])
    last = (level[-1] * (M**2 + S**2) - level[-1] - np.log(1 - level[-1])) / 2
    steps = (square[1:] / beta[1:] + ratio - 1 - np.log(ratio)) / 2
    expected = -square[0] / (2 * beta[0]) - np.log(2 * np.pi * beta[0]) / 2 - steps.sum() - last
    exact = -np.log(2 * np.pi * np.e * S**2) / 2
    assert exact - 0.02 < expected < exact
    rng = np.random.default_rng(0)
    found = [
        Exact(1, (4,)).bound({}, M + S * rng.standard_normal((2000, 1)), LEVELS[0], seed)
        for seed in range(16)
    ]
    assert np.mean(found) == pytest.approx(expected, abs=4 * np.std(found) / 4)
    assert Exact(1, (4,)).bound({}, M + 0.5 + S * rng.standard_normal((2000, 1)), LEVELS[0]) < exact - 0.3


@pytest.mark.thorough
def test_training_learns_two_moons() -> None:
    """Energy distance of samples to held-out data, against a Gaussian of the same moments."""
    x = (make_moons(3000, noise=0.06, random_state=0)[0] - [0.5, 0.25]) * 1.5
    model, steps, count = Diffusion(2, (64, 64, 64)), 40, 1500
    beta, alpha_bar = schedule(steps, 1e-3, 0.25)
    rng = np.random.default_rng(0)
    stream = (model.draw(x[rng.integers(0, 2000, 128)], steps, alpha_bar, rng) for _ in range(count))
    made = train(
        model.graph(128), model.init(0), stream, Adam(5e-3), count, schedule=warmup_cosine(50, count)
    )
    assert np.mean(made.losses[-50:]) < 0.4 * np.mean(made.losses[:10])
    gaussian = rng.multivariate_normal(x.mean(0), np.cov(x.T), 1000)
    baseline = energy_distance(gaussian, x[2000:])
    assert energy_distance(model.sample(made.parameters, 1000, beta, seed=1), x[2000:]) < 0.5 * baseline
    assert (
        energy_distance(model.sample_ddim(made.parameters, 1000, beta, 20, seed=1), x[2000:]) < 0.5 * baseline
    )


def energy_distance(a: np.ndarray, b: np.ndarray) -> float:
    from scipy.spatial.distance import cdist

    return float(2 * cdist(a, b).mean() - cdist(a, a).mean() - cdist(b, b).mean())
