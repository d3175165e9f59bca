"""Likelihoods and priors, contests, and diffusions of every kind, against torch and closed forms."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import SymadError
from symad.models.generative import diffusion as df
from symad.models.generative import gan
from symad.models.generative.vae import VAE
from symad.numeric import lower
from tests.models.reference import agrees_with_torch

rng = np.random.default_rng(0)
X, NOISE = rng.uniform(size=(5, 3)), rng.normal(size=(5, 2))


# ---- the variational autoencoder --------------------------------------------------------------------


def poisson(x, logits):
    """log p of counts with the rate e^ℓ, up to log x!."""
    return (x * logits - np.exp(logits)).sum(axis=1)


def mixture(z):
    """log ½ N(z; 1, I) + ½ N(z; −1, I)."""
    parts = [-((z - s) ** 2).sum(axis=1) / 2 - z.shape[1] / 2 * np.log(2 * np.pi) for s in (1, -1)]
    return np.logaddexp(*parts) - np.log(2)


@pytest.mark.parametrize(
    "options",
    [
        {"likelihood": "gaussian"},
        {"likelihood": "gaussian", "deviation": 0.3},
        {"likelihood": poisson},
        {"prior": mixture},
    ],
)
def test_likelihoods_and_priors_are_those_of_torch(options):
    model = VAE(3, 4, 2, **options)

    def reference(torch, p, x, noise):
        d = torch.distributions
        both = torch.tanh(x @ p["e_W1"] + p["e_b1"]) @ p["e_W2"] + p["e_bias"]
        mu, sigma = both[:, :2], both[:, 2:].exp()
        z = mu + sigma * noise
        logits = torch.tanh(z @ p["d_W1"] + p["d_b1"]) @ p["d_W2"] + p["d_bias"]
        if "prior" in options:
            made = d.Bernoulli(logits=logits).log_prob(x).sum()
        elif options["likelihood"] == "gaussian":
            made = d.Normal(logits, options.get("deviation", 1.0)).log_prob(x).sum()
        else:
            made = (d.Poisson(logits.exp()).log_prob(x) + torch.lgamma(x + 1)).sum()
        q = d.Normal(mu, sigma)
        if "prior" in options:
            kinds = d.Categorical(torch.ones(2, dtype=torch.float64) / 2)
            means = torch.tensor([[1.0, 1.0], [-1.0, -1.0]], dtype=torch.float64)
            prior = d.MixtureSameFamily(kinds, d.Independent(d.Normal(means, torch.ones_like(means)), 1))
            kl = q.log_prob(z).sum() - prior.log_prob(z).sum()
        else:
            kl = d.kl_divergence(q, d.Normal(torch.zeros_like(mu), torch.ones_like(mu))).sum()
        return (kl - made) / len(x)

    x = (
        np.floor(4 * X)
        if options.get("likelihood") is poisson
        else (X > 0.5) * 1.0
        if "prior" in options
        else X
    )
    agrees_with_torch(model.loss, model.shapes, reference, x, NOISE)


def test_a_gaussian_mean_is_not_forced_through_a_sigmoid():
    model = VAE(3, 4, 2, likelihood="gaussian")
    p = model.init(0) | {"d_bias": np.array([5.0, -7.0, 0.0])}
    assert model.decode(p, np.zeros((1, 2)))[0].tolist() == pytest.approx([5.0, -7.0, 0.0], abs=1e-12)
    with pytest.raises(SymadError, match="likelihood='laplace'"):
        VAE(3, 4, 2, likelihood="laplace")


# ---- contests ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", [gan.LEAST_SQUARES, gan.HINGE, gan.JENSEN_SHANNON, gan.WASSERSTEIN])
def test_contests_are_the_published_losses(game):
    model = gan.GAN(2, 1, (3,), (3,), game=game)
    p, x, z = model.init(0), rng.normal(size=(6, 2)), rng.normal(size=(6, 1))
    real, fake = model.score(p, x), model.score(p, model.generate(p, z))
    softplus = lambda t: np.logaddexp(t, 0)  # noqa: E731
    critic, generator = {
        "least squares": (((real - 1) ** 2 / 2).mean() + (fake**2 / 2).mean(), ((fake - 1) ** 2 / 2).mean()),
        "hinge": (np.maximum(1 - real, 0).mean() + np.maximum(1 + fake, 0).mean(), -fake.mean()),
        "GAN": (softplus(-real).mean() + softplus(fake).mean(), softplus(-fake).mean()),
        "Wasserstein": (fake.mean() - real.mean(), -fake.mean()),
    }[game.name]
    s = rng.uniform(size=6)
    assert lower(model.critic_graph(6))(*p.values(), x, z, s) == pytest.approx(critic, rel=1e-12)
    assert lower(model.generator_graph(6))(*p.values(), z) == pytest.approx(generator, rel=1e-12)


def test_at_the_best_critic_least_squares_is_the_pearson_divergence():
    """The best v is p/(p + q), where ½(v − 1)² p + ½ v² q is ½ pq/(p + q) (Mao et al., theorem 1); proved."""
    p, q = sp.symbols("p q", positive=True)
    v = gan.v
    loss = -p * gan.LEAST_SQUARES.real + q * gan.LEAST_SQUARES.fake
    slope = symad.to_sympy(symad.gradient(loss, v)).subs(v, p / (p + q))
    assert symad.equal(slope, sp.S.Zero).status == "proved"
    assert symad.equal(loss.subs(v, p / (p + q)), p * q / (2 * (p + q))).status == "proved"


# ---- diffusion --------------------------------------------------------------------------------------

BETA, LEVEL = df.schedule(20, 0.01, 0.3)


def test_the_posterior_is_that_of_bayes():
    """q(x_{t−1} | x_t, x_0) ∝ q(x_t | x_{t−1}) q(x_{t−1} | x_0), a product of two Gaussians; proved."""
    x, clean = sp.symbols("x clean", real=True)
    beta, before = sp.symbols("beta before", positive=True)
    level = before * (1 - beta)
    precision = (1 - beta) / beta + 1 / (1 - before)
    mean = (sp.sqrt(1 - beta) * x / beta + sp.sqrt(before) * clean / (1 - before)) / precision
    inputs = [x, clean, beta, before]
    found = symad.trace(lambda x, c, b, a: df.posterior_mean(x, c, a * (1 - b), a), inputs)
    spread = symad.trace(lambda x, c, b, a: df.posterior_variance(a * (1 - b), a) + 0 * x * c, inputs)
    at = [0.3, -0.7, 0.2, 0.6]
    values = dict(zip(inputs, at, strict=True))
    assert found(*at) == pytest.approx(float(mean.subs(values)), rel=1e-14)
    assert symad.equal(symad.to_sympy(spread), 1 / precision).status in ("proved", "tested")
    # By x_0 and by the noise it is one mean.
    x_t, eps = rng.normal(size=(4, 2)), rng.normal(size=(4, 2))
    known = df.denoised(x_t, eps, LEVEL[7])
    one = df.posterior_mean(x_t, known, LEVEL[7], LEVEL[6])
    np.testing.assert_allclose(one, df.ancestral_mean(x_t, eps, BETA[7], LEVEL[7]), rtol=1e-11)
    assert level.has(beta)


@pytest.mark.parametrize("kind", ["noise", "clean", "velocity"])
def test_every_prediction_gives_the_noise_back(kind):
    clean, eps, level = rng.normal(size=(4, 2)), rng.normal(size=(4, 2)), rng.uniform(0.1, 0.9, 4)
    x = df.noised(clean, eps, level)
    said = {"noise": eps, "clean": clean, "velocity": df.velocity(clean, eps, level)}[kind]
    np.testing.assert_allclose(df.noise_from(kind, said, x, level), eps, rtol=1e-11, atol=1e-12)
    model = df.Diffusion(2, (3,), 4, predicts=kind)

    def reference(torch, p, x, eps, level, time):
        a, b = level[:, None].sqrt(), (1 - level)[:, None].sqrt()
        said = torch.cat([a * x + b * eps, time], 1) @ p["W1"] + p["b1"]
        made = torch.nn.functional.silu(said) @ p["W2"]
        return (({"noise": eps, "clean": x, "velocity": a * eps - b * x}[kind] - made) ** 2).mean()

    agrees_with_torch(model.loss, model.shapes, reference, clean, eps, level, rng.normal(size=(4, 4)))


def test_samplers_of_all_kinds_with_exact_networks_find_one_point():
    """Data that are one point c: the exact network of each kind ends there, in two steps as in twenty."""
    c = np.array([1.5, -0.5])
    for kind in ("noise", "clean", "velocity"):
        model = df.Diffusion(2, (3,), 4, predicts=kind)
        level_of = dict(zip(map(tuple, df.time_features(np.arange(21), 4, 20).round(9)), LEVEL, strict=True))

        def exact(p, x, time, label=None, kind=kind, level_of=level_of):
            level = level_of[tuple(time[0].round(9))]
            eps = (x - np.sqrt(level) * c) / np.sqrt(1 - level)
            return {"noise": eps, "clean": c + 0 * x, "velocity": df.velocity(c + 0 * x, eps, level)}[kind]

        object.__setattr__(model, "predict", exact)
        for steps in (2, 20):
            found = model.sample_ddim({}, 3, BETA, steps)
            np.testing.assert_allclose(found, np.tile(c, (3, 1)), rtol=1e-10)


def test_the_cosine_schedule():
    """Nichol and Dhariwal's ᾱ, in closed form below the limit of β."""
    beta, level = df.cosine_schedule(100)
    t = np.arange(101) / 100
    exact = np.cos((t + 0.008) / 1.008 * np.pi / 2) ** 2 / np.cos(0.008 / 1.008 * np.pi / 2) ** 2
    np.testing.assert_allclose(level[:-1], exact[:-1], rtol=1e-12)
    assert beta[-1] == 0.999
    with pytest.raises(SymadError, match="cosine"):
        df.cosine_schedule(0)
    with pytest.raises(SymadError, match="predicts='x0'"):
        df.Diffusion(2, (3,), predicts="x0")


def test_denoising_score_matching_learns_the_score():
    """E[∇ log q(x | x_0) | x] = ∇ log q(x), for data of two points; proved.

    Hence E (s(x) − ∇ log q(x | x_0))² and E (s(x) − ∇ log q(x))² differ by what does not depend on s (Vincent
    2011, equation 11): the terms with s are E s² − 2 E s ∇ log q(x | x_0) in both.
    """
    x, a, b = sp.symbols("x a b", real=True)
    w, u, level = sp.symbols("w u level", positive=True)
    spread = 1 - level
    one, two = (sp.exp(-((x - sp.sqrt(level) * c) ** 2) / (2 * spread)) for c in (a, b))
    marginal = w * one + u * two
    score = symad.to_sympy(symad.gradient(sp.log(marginal), x))
    conditional = [-(x - sp.sqrt(level) * c) / spread for c in (a, b)]
    expected = (w * one * conditional[0] + u * two * conditional[1]) / marginal
    assert symad.equal(score, expected).status in ("proved", "tested")
