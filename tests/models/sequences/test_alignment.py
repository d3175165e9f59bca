"""Alignment losses: torch, gradient identities proved, the divergence and the best policy exact."""

import numpy as np
import pytest
import sympy

import symad
from symad.errors import ShapeError, SymadError
from symad.functions import sigmoid, softmax
from symad.models.sequences import alignment as al
from tests.models.reference import agrees_with_torch

rng = np.random.default_rng(0)
PAIRS = {"w": (5,), "l": (5,), "ref_w": (5,), "ref_l": (5,)}
GROUPS = {"p": (2, 4), "old": (2, 4), "ref": (2, 4)}


def same(f, g, *shapes):
    """Two functions are proved or tested equal, for all arguments."""
    certificate = symad.equal(symad.trace(f, shapes), symad.trace(g, shapes))
    assert certificate.status in ("proved", "tested"), str(certificate)


def gradient(f, shapes, wrt):
    return symad.gradient(symad.trace(f, shapes), wrt)


def test_fine_tuning_against_torch():
    targets = rng.integers(0, 6, (2, 4))
    mask = np.array([[0.0, 1, 1, 1], [0, 0, 1, 0]])

    def reference(torch, p, targets, mask):
        each = torch.nn.functional.cross_entropy(p["z"].permute(0, 2, 1), targets, reduction="none")
        return (each * mask).sum() / mask.sum()

    agrees_with_torch(
        lambda p, y, m: al.fine_tuning_loss(p["z"], y, m), {"z": (2, 4, 6)}, reference, targets, mask
    )


def test_slope_of_fine_tuning():
    """∂L/∂z_t = m_t (softmax(z_t) − e_{y_t}) / Σ m, nothing on the prompt."""
    targets, mask = np.array([2, 0, 1]), np.array([0.0, 1, 1])
    slope = gradient(lambda z: al.fine_tuning_loss(z, targets, mask), [(3, 3)], 0)
    same(
        lambda z: (softmax(z, axis=-1) - np.eye(3)[targets]) * mask[:, None] / 2,
        lambda z: slope(z),
        (3, 3),
    )
    np.testing.assert_array_equal(slope(rng.normal(size=(3, 3)))[0], 0)


def test_reward_model_against_torch():
    def reference(torch, p):
        return -torch.nn.functional.logsigmoid(p["w"] - p["l"]).mean()

    agrees_with_torch(lambda p: al.reward_loss(p["w"], p["l"]), {"w": (5,), "l": (5,)}, reference)


def test_slope_of_the_reward_model():
    """∂L/∂r_w = −σ(r_l − r_w) = −∂L/∂r_l, for one pair."""
    slope = symad.gradient(symad.trace(al.reward_loss, [(), ()]))
    same(lambda w, b: slope(w, b)[0], lambda w, b: -sigmoid(b - w), (), ())
    same(lambda w, b: slope(w, b)[1], lambda w, b: sigmoid(b - w), (), ())


def test_dpo_against_torch():
    def reference(torch, p):
        delta = 0.3 * ((p["w"] - p["ref_w"]) - (p["l"] - p["ref_l"]))
        return -torch.nn.functional.logsigmoid(delta).mean()

    agrees_with_torch(lambda p: al.dpo_loss(p["w"], p["l"], p["ref_w"], p["ref_l"], 0.3), PAIRS, reference)


def test_slope_of_dpo():
    """∂L/∂log π(w) = −β σ(−Δ) and ∂L/∂log π(l) = β σ(−Δ), β a symbol too."""
    shapes = [()] * 5
    slope = gradient(al.dpo_loss, shapes, [0, 1])

    def wrong(w, b, rw, rb, beta):
        return sigmoid(-beta * (w - rw - b + rb))

    same(lambda *v: slope(*v)[0], lambda *v: -v[4] * wrong(*v), *shapes)
    same(lambda *v: slope(*v)[1], lambda *v: v[4] * wrong(*v), *shapes)


def test_dpo_is_the_reward_model_of_its_own_reward():
    """With r = β log π/π_ref both losses are the same function."""
    same(
        lambda w, b, rw, rb: al.dpo_loss(w, b, rw, rb, 0.5),
        lambda w, b, rw, rb: al.reward_loss((w - rw) / 2, (b - rb) / 2),
        *[(3,)] * 4,
    )


def test_the_best_policy_solves_dpo():
    """At π ∝ π_ref e^{r/β} the slope of the expected loss is 0, if preferences follow σ(r_w − r_l)."""
    beta, n = 0.7, 4
    rewards, log_ref = rng.normal(size=n), np.log(rng.dirichlet(np.ones(n)))
    best = al.best_policy(log_ref, rewards, beta)
    np.testing.assert_allclose(np.exp(best).sum(), 1, rtol=1e-14)
    w, b = (g.ravel() for g in np.meshgrid(range(n), range(n), indexing="ij"))
    preferred = 1 / (1 + np.exp(rewards[b] - rewards[w]))

    def expected(log_p):
        delta = beta * ((log_p[w] - log_ref[w]) - (log_p[b] - log_ref[b]))
        return np.sum(preferred * np.log1p(np.exp(-delta)))

    slope = gradient(expected, [(n,)], 0)
    np.testing.assert_allclose(slope(best), 0, atol=1e-14)
    assert np.abs(slope(log_ref)).max() > 0.05
    delta = beta * (best - log_ref)
    np.testing.assert_allclose(delta[w] - delta[b], rewards[w] - rewards[b], atol=1e-13)


def test_the_best_policy_is_the_maximum():
    """The slope of E r − β KL(softmax(z) ‖ π_ref) in z vanishes there, and any other policy has less."""
    beta, rewards, log_ref = 0.7, rng.normal(size=4), np.log(rng.dirichlet(np.ones(4)))

    def objective(z):
        p = softmax(z, axis=0)
        return np.sum(p * rewards) - beta * np.sum(p * (np.log(p) - log_ref))

    best = al.best_policy(log_ref, rewards, beta)
    np.testing.assert_allclose(gradient(objective, [(4,)], 0)(best), 0, atol=1e-14)
    others = [objective(best + 0.3 * rng.normal(size=4)) for _ in range(50)]
    assert max(others) < objective(best)


@pytest.mark.parametrize("against", ["reference", "old"])
def test_grpo_against_torch(against):
    rewards = rng.normal(size=(2, 4))

    def reference(torch, p, r):
        A = (r - r.mean(-1, keepdim=True)) / r.std(-1, keepdim=True, unbiased=False)
        ratio = torch.exp(p["p"] - p["old"])
        clipped = torch.minimum(ratio * A, ratio.clamp(0.8, 1.2) * A).mean()
        d = p["ref" if against == "reference" else "old"] - p["p"]
        return clipped - 0.04 * (torch.exp(d) - d - 1).mean()

    agrees_with_torch(
        lambda p, r: al.grpo_objective(p["p"], p["old"], p["ref"], r, against=against),
        GROUPS, reference, rewards,
    )  # fmt: skip


def test_at_the_old_policy_the_slope_is_the_advantage():
    """∂/∂log π of the mean of the clipped objective at π = π_old is A / N: the policy gradient."""
    slope = gradient(al.clipped_objective, [(5,)] * 3, 0)
    log_p, A = rng.normal(size=5), rng.normal(size=5)
    np.testing.assert_allclose(slope(log_p, log_p, A), A / 5, rtol=1e-15)


def test_the_clip_stops_only_what_has_gone_too_far():
    """ρ = e or 1/e, A = ±1: the slope is 0 where ρ has left the interval in the direction of A."""
    slope = gradient(lambda p, A: al.clipped_objective(p, 0 * p, A), [(4,)] * 2, 0)
    found = slope(np.array([1.0, 1, -1, -1]), np.array([1.0, -1, 1, -1]))
    np.testing.assert_allclose(found, np.array([0, -np.e, 1 / np.e, 0]) / 4, rtol=1e-14)


def test_slope_of_the_divergence_estimate():
    """∂(u − log u − 1)/∂log π = 1 − u."""
    slope = gradient(al.kl_estimate, [(), ()], 0)
    same(lambda p, q: slope(p, q), lambda p, q: 1 - np.exp(q - p), (), ())


def test_the_mean_of_the_estimate_is_the_divergence_proved():
    """Σ_y π(y) (u − log u − 1) = KL(π ‖ π_ref) for all π, π_ref on three answers, summing to 1."""
    p = sympy.symbols("p1:3", positive=True)
    q = sympy.symbols("q1:3", positive=True)
    p, q = ([*v, 1 - sum(v)] for v in (p, q))
    P, Q = sympy.symbols("P Q", real=True)
    estimate = symad.to_sympy(symad.trace(al.kl_estimate, [P, Q]))
    logs = [{P: sympy.log(a), Q: sympy.log(b)} for a, b in zip(p, q, strict=True)]
    mean = sum(a * estimate.subs(log) for a, log in zip(p, logs, strict=True))
    divergence = sum(a * (log[P] - log[Q]) for a, log in zip(p, logs, strict=True))
    difference = sympy.expand(sympy.powsimp((mean - divergence).rewrite(sympy.exp)))
    assert sympy.simplify(difference) == 0


def test_advantages():
    A = al.group_advantages(np.array([[1.0, 2, 3], [5, 5, 5]]))
    np.testing.assert_allclose(A, [np.array([-1, 0, 1]) * 1.5**0.5, [0, 0, 0]], rtol=1e-15)
    slope = gradient(lambda r: np.sum(al.group_advantages(r) ** 3), [(2, 3)], 0)
    assert np.isfinite(slope(np.array([[1.0, 2, 3], [5, 5, 5]]))).all()


def test_certificates():
    for f, count in [(al.reward_loss, 2), (al.dpo_loss, 5), (al.kl_estimate, 2)]:
        assert symad.check(symad.trace(f, [()] * count)).status in ("proved", "tested")


def test_bad_input():
    with pytest.raises(ShapeError, match=r"the rewards have the shapes \(3,\), \(2,\)"):
        al.reward_loss(np.zeros(3), np.zeros(2))
    with pytest.raises(ShapeError, match=r"targets \(4,\) and mask \(3,\)"):
        al.fine_tuning_loss(np.zeros((4, 3)), np.zeros(4, dtype=int), np.zeros(3))
    with pytest.raises(SymadError, match="against='new'"):
        al.grpo_objective(*[np.zeros(3)] * 4, against="new")
    with pytest.raises(ShapeError, match="log-probabilities and rewards"):
        al.grpo_objective(*[np.zeros(3)] * 3, np.zeros(2))
