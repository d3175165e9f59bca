"""Adversarial networks: losses and gradients against torch, the optimum, certificates, modes found."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symad
from symad.models.generative import divergences as dv
from symad.models.generative import gan, measures
from symad.models.generative.gan import GAN
from symad.models.layers.parameters import trace_model
from symad.numeric import lower
from symad.numeric.training.adversarial import Player, train_in_turn
from symad.numeric.training.loop import warmup_cosine
from symad.numeric.training.optimizers import SGD, Adam
from symad.verification.own import SYMPY

N = sp.Symbol("N", integer=True, positive=True)

# What the critic maximizes on data and pays on samples, in torch; signs and forms from the f-GAN paper.
CONTESTS = {
    "GAN": (
        lambda t, v: t.nn.functional.logsigmoid(v),
        lambda t, v: -t.log(1 - t.sigmoid(v)),
    ),
    "Wasserstein": (lambda t, v: v, lambda t, v: v),
    "KL": (lambda t, v: v, lambda t, v: t.exp(v - 1)),
    "reverse KL": (lambda t, v: -t.exp(-v), lambda t, v: -1 - t.log(t.exp(-v))),
    "Pearson": (lambda t, v: v, lambda t, v: v**2 / 4 + v),
    "Neyman": (lambda t, v: 1 - t.exp(-v), lambda t, v: 2 - 2 * t.sqrt(t.exp(-v))),
    "squared Hellinger": (
        lambda t, v: 1 - t.exp(-v),
        lambda t, v: (1 - t.exp(-v)) / (1 - (1 - t.exp(-v))),
    ),
    "Jeffreys": (lambda t, v: v + 1 - t.exp(-v), lambda t, v: v + t.exp(v) - 1),
    "Jensen-Shannon": (
        lambda t, v: np.log(2) - t.log(1 + t.exp(-v)),
        lambda t, v: -t.log(2 - t.exp(np.log(2) - t.log(1 + t.exp(-v)))),
    ),
    "total variation": (lambda t, v: t.tanh(v) / 2, lambda t, v: t.tanh(v) / 2),
}
GAMES = {"Wasserstein": gan.WASSERSTEIN} | {d.name: gan.contest(d) for d in dv.DIVERGENCES}


def network(t, p, prefix, x):
    """Two hidden layers of silu and a last layer with a bias."""
    for k in (1, 2):
        x = t.nn.functional.silu(x @ p[f"{prefix}W{k}"] + p[f"{prefix}b{k}"])
    return x @ p[f"{prefix}W3"] + p[f"{prefix}bias"]


def torch_losses(t, model, p, x, z, s, c):
    """Both losses, the penalty by torch's own second derivatives."""
    worth, cost = CONTESTS[model.game.name]
    both = (lambda a: t.cat([a, c], 1)) if model.classes else (lambda a: a)
    made = network(t, p, "g_", both(z))
    made = t.sigmoid(made) if model.pixels else made
    fake = network(t, p, "c_", both(made))[:, 0]
    critic = cost(t, fake).mean() - worth(t, network(t, p, "c_", both(x))[:, 0]).mean()
    if model.penalty:
        between = s[:, None] * x + (1 - s)[:, None] * made
        total = network(t, p, "c_", both(between)).sum()
        (slope,) = t.autograd.grad(total, between, create_graph=True)
        critic = critic + model.penalty * ((slope.norm(dim=1) - 1) ** 2).mean()
    generator = -(cost if model.saturating else worth)(t, fake).mean()
    return critic, generator


CASES = [GAN(3, 2, (4, 5), (6, 4), game) for game in GAMES.values()] + [
    GAN(3, 2, (4, 5), (6, 4), saturating=True),
    GAN(3, 2, (4, 5), (6, 4), gan.WASSERSTEIN, penalty=10.0),
    GAN(3, 2, (4, 5), (6, 4), penalty=0.5, classes=2, pixels=True),
]


@pytest.mark.parametrize(
    "model", CASES, ids=lambda m: f"{m.game.name} {m.saturating} {m.penalty} {m.classes}"
)
def test_losses_and_gradients_are_torchs(model: GAN) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    p = {k: a + 0.3 * rng.normal(size=a.shape) for k, a in model.init(1).items()}
    x, z, s = rng.normal(size=(5, 3)), rng.normal(size=(5, 2)), rng.uniform(size=5)
    c = np.eye(2)[rng.integers(0, 2, 5)]
    given = [c] if model.classes else []
    tensors = {k: torch.tensor(a, requires_grad=True) for k, a in p.items()}
    data = [torch.tensor(a) for a in (x, z, s, c)]
    expected = torch_losses(torch, model, tensors, *data)
    graphs = (model.critic_graph(N), model.generator_graph(N))
    inputs = ((x, z, s, *given), (z, *given))
    for graph, wanted, data in zip(graphs, expected, inputs, strict=True):
        slopes = torch.autograd.grad(wanted, list(tensors.values()), retain_graph=True, allow_unused=True)
        both = symad.value_and_gradient(graph, list(p))
        value, *found = lower(both)(*p.values(), *data)
        assert value == pytest.approx(wanted.item(), rel=1e-10)
        for name, ours, theirs in zip(p, found, slopes, strict=True):
            expected_slope = np.zeros_like(ours) if theirs is None else theirs.numpy()
            np.testing.assert_allclose(ours, expected_slope, rtol=1e-10, atol=1e-13, err_msg=name)


def test_slopes_of_the_critic_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    model = GAN(2, 1, (3,), (4,), classes=2)
    rng = np.random.default_rng(0)
    p = {k: a + rng.normal(size=a.shape) for k, a in model.init(0).items()}
    x, c = rng.normal(size=(3, 2)), np.eye(2)[[0, 1, 1]]
    given = torch.tensor(x, requires_grad=True)
    W1, b1, W2 = (torch.tensor(p[f"c_{name}"]) for name in ("W1", "b1", "W2"))
    hidden = torch.nn.functional.silu(torch.cat([given, torch.tensor(c)], 1) @ W1 + b1)
    (hidden @ W2).sum().backward()
    np.testing.assert_allclose(model.slopes(p, x, c), given.grad.numpy(), rtol=1e-12)


def test_sizes_may_be_symbols() -> None:
    """One graph for all sizes, penalty and its gradients included; bound by the arrays that come."""
    d, k, h = sp.symbols("d k h", integer=True, positive=True)
    any_size = GAN(d, k, (h,), (h,), gan.WASSERSTEIN, penalty=10.0, activation="tanh")
    general = symad.value_and_gradient(any_size.critic_graph(N), any_size.critic_names)
    assert general.dims == {N, d, k, h}
    model = GAN(3, 2, (4,), (4,), gan.WASSERSTEIN, penalty=10.0, activation="tanh")
    special = symad.value_and_gradient(model.critic_graph(5), model.critic_names)
    rng = np.random.default_rng(0)
    inputs = (*model.init(0).values(), *model.draw(rng.normal(size=(5, 3)), rng))
    for ours, theirs in zip(general(*inputs), special(*inputs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-15)


def test_the_game_of_a_gan_is_goodfellows() -> None:
    """a(v) = log D and b(v) = −log(1 − D) with D = σ(v)."""
    d, rest = 1 / (1 + sp.exp(-dv.v)), 1 / (1 + sp.exp(dv.v))
    assert symad.equal(gan.JENSEN_SHANNON.real, sp.log(d)).status == "proved"
    assert symad.equal(1 - d, rest).status == "proved"
    assert symad.equal(gan.JENSEN_SHANNON.fake, -sp.log(rest)).status == "proved"


@pytest.mark.thorough
@pytest.mark.parametrize("game", [gan.JENSEN_SHANNON, gan.WASSERSTEIN], ids=lambda g: g.name)
def test_derivatives_are_certified(game: gan.Contest) -> None:
    """Of the critic's and the generator's loss, at the smallest sizes."""
    model = GAN(1, 1, (), (1,), game, activation="tanh")
    for graph in (model.critic_graph(1), model.generator_graph(1)):
        certificate = symad.check(graph)
        assert certificate.status in ("proved", "tested"), str(certificate)


@pytest.mark.thorough
def test_derivatives_of_the_penalty_are_certified() -> None:
    """Of Σ |∇_x v|² in the critic's parameters, with second derivatives in it; then of (|s| − 1)²."""
    model = GAN(2, 1, (), (1,), gan.WASSERSTEIN, activation="tanh")
    shapes = {name: model.shapes[name] for name in model.critic_names}
    squares = trace_model(lambda p, x: (model.slopes(p, x) ** 2).sum(), shapes, (1, 2))
    s = sp.symbols("s1 s2", real=True)
    for certificate in (symad.check(squares), symad.check((sp.sqrt(s[0] ** 2 + s[1] ** 2) - 1) ** 2)):
        assert certificate.status in ("proved", "tested"), str(certificate)


@pytest.mark.thorough
@pytest.mark.parametrize("width", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_the_whole_penalized_loss_is_certified(width: int) -> None:
    """By one bias, against SymPy and Dual numbers: exponents are sums of products, norms roots of squares."""
    model = GAN(width, 1, (), (1,), gan.WASSERSTEIN, penalty=1.0, activation="tanh")
    certificate = symad.check(model.critic_graph(1), "c_b1")
    assert certificate.status in ("proved", "tested"), str(certificate)
    assert any(SYMPY in c.left_name for c in certificate.comparisons)


@pytest.mark.slow
def test_all_derivatives_of_the_penalized_loss_are_certified() -> None:
    model = GAN(2, 1, (), (1,), gan.WASSERSTEIN, penalty=1.0, activation="tanh")
    certificate = symad.check(model.critic_graph(1), model.critic_names)
    assert certificate.status in ("proved", "tested"), str(certificate)


def test_a_critic_learns_the_divergence() -> None:
    """With a table as critic: gradient ascent on the scores reaches D* and −log 4 + 2 JS."""
    p, q = np.array([0.36, 0.48, 0.16]), np.full(3, 1 / 3)
    worth, cost = symad.trace(gan.JENSEN_SHANNON.real), symad.trace(gan.JENSEN_SHANNON.fake)
    gain = symad.trace(lambda v: (p * worth(v)).sum() - (q * cost(v)).sum(), [(3,)])
    scores = np.zeros(3)
    slope, curve = symad.gradient(gain, "v"), symad.hessian(gain, "v")
    for _ in range(12):
        scores = scores - np.linalg.solve(curve(scores), slope(scores))
    assert gain(scores) == pytest.approx(-np.log(4) + 2 * dv.jensen_shannon(p, q), rel=1e-13)
    assert np.allclose(1 / (1 + np.exp(-scores)), dv.best_discriminator(p, q), rtol=1e-12)


# ---- the game -------------------------------------------------------------------------------------


def test_players_move_in_turn_and_only_their_own() -> None:
    """x y by two players, by hand: x ← x − η y, then y ← y + η x with the new x."""
    x, y = sp.symbols("x y", real=True)
    losses = [symad.trace(f, [x, y]) for f in (x * y, -x * y)]
    players = [Player(losses[0], ["x"], SGD(0.5)), Player(losses[1], ["y"], SGD(0.5), steps=2, bound=2.0)]
    start = {"x": np.array(1.0), "y": np.array(1.0)}
    made = train_in_turn(players, start, [iter([()] * 2), iter([()] * 4)], rounds=2, average=0.5)
    # round 1: x = 1 − 0.5 = 0.5, y = 1.25, 1.5; round 2: x = 0.5 − 0.75 = −0.25, y = 1.375, 1.25
    assert made.parameters == {"x": -0.25, "y": 1.25}
    assert made.averages == {
        "x": 0.25 * 1 + 0.25 * 0.5 + 0.5 * -0.25,
        "y": 0.25 * 1 + 0.25 * 1.5 + 0.5 * 1.25,
    }
    assert made.losses == [[1.0, 0.75], [-0.5, -0.625, 0.375, 0.34375]]
    assert start == {"x": 1.0, "y": 1.0}


def test_weights_are_clipped() -> None:
    model = GAN(2, 2, (4,), (4,), gan.WASSERSTEIN)
    rng = np.random.default_rng(0)
    critic = Player(model.critic_graph(8), model.critic_names, Adam(0.1), bound=0.05)
    stream = (model.draw(rng.normal(size=(8, 2)), rng) for _ in range(5))
    made = train_in_turn([critic], model.init(0), [stream], rounds=5)
    assert max(np.abs(made.parameters[n]).max() for n in model.critic_names) == 0.05
    assert all(np.array_equal(made.parameters[n], model.init(0)[n]) for n in model.generator_names)


def test_bad_games_are_refused() -> None:
    x, y = sp.symbols("x y", real=True)
    loss, start = symad.trace(x * y, [x, y]), {"x": np.array(1.0), "y": np.array(1.0)}
    with pytest.raises(symad.errors.EvaluationError, match="player 0 chooses w"):
        train_in_turn([Player(loss, ["w"], SGD(0.1))], start, [iter([()])], 1)
    with pytest.raises(symad.errors.EvaluationError, match="loss of player 0 begin with x, y"):
        train_in_turn([Player(loss, ["x"], SGD(0.1))], {"x": start["x"], "z": start["y"]}, [iter([()])], 1)
    with pytest.raises(symad.errors.EvaluationError, match="player 0 end in round 1"):
        train_in_turn([Player(loss, ["x"], SGD(0.1))], start, [iter([()])], 2)
    with pytest.raises(symad.errors.EvaluationError, match=r"player 0 is -inf in round"):
        wild = Player(symad.trace(-(x**4) * y, [x, y]), ["x"], SGD(1e80))
        train_in_turn([wild], start, [iter([()] * 5)], 5)
    with pytest.raises(symad.errors.SymadError, match="penalty"):
        GAN(2, 2, (), (), penalty=-1.0)


@pytest.mark.thorough
def test_all_eight_modes_of_a_ring_are_found() -> None:
    """By Wasserstein's game with the gradient penalty; the baseline is a Gaussian of the same moments."""
    angles = np.arange(8) * np.pi / 4
    centers = 2 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    rng = np.random.default_rng(0)

    def ring(count: int) -> np.ndarray:
        return centers[rng.integers(0, 8, count)] + 0.1 * rng.standard_normal((count, 2))

    size, rounds = 128, 500
    model = GAN(2, 8, (64, 64), (64, 64), gan.WASSERSTEIN, penalty=0.1, activation="tanh")
    players = [
        Player(model.critic_graph(size), model.critic_names, Adam(4e-3, 0.5), steps=2),
        Player(model.generator_graph(size), model.generator_names, Adam(4e-3, 0.5)),
    ]
    streams = [
        (model.draw(ring(size), rng) for _ in range(2 * rounds)),
        (model.draw_codes(size, rng) for _ in range(rounds)),
    ]
    rate = warmup_cosine(50, rounds, 0.05)
    made = train_in_turn(players, model.init(0), streams, rounds, rate, average=0.98)
    samples, held = model.sample(made.averages, 1000, seed=1), ring(1000)
    gaussian = rng.multivariate_normal(held.mean(0), np.cov(held.T), 1000)
    modes, near = measures.mode_coverage(samples, centers, 0.3)
    assert modes == 8
    assert near > 4 * measures.mode_coverage(gaussian, centers, 0.3)[1]
    assert measures.energy_distance(samples, held) < 0.3 * measures.energy_distance(gaussian, held)
