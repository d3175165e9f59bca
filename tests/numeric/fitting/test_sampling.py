"""Samplers draw from the right law: moments within standard errors, exact invariance, correct diagnostics."""

import numpy as np
import pytest
import scipy.stats
import sympy as sp
from statsmodels.tsa.stattools import acovf

import symad
from symad import functions
from symad.errors import EvaluationError
from symad.functions import rand, randn
from symad.numeric.sampling.diagnostics import (
    autocovariance,
    effective_sample_size,
    split_r_hat,
    standard_error,
)
from symad.numeric.sampling.markov_chains import Chains, LogDensity, hmc, langevin, metropolis
from symad.numeric.solvers.inversion import invert
from symad.numeric.solvers.solver_variables import Unknowns

x, y = sp.symbols("x y", real=True)
COVARIANCE = np.array([[1.0, 0.8], [0.8, 2.0]])
PRECISION = np.linalg.inv(COVARIANCE)
GAUSS = -sum(
    float(PRECISION[i, j]) * (v - 1) * (w - 1) / 2 for i, v in enumerate((x, y)) for j, w in enumerate((x, y))
)
SAMPLERS = {"metropolis": metropolis, "langevin": langevin, "hmc": hmc}


# ---- the law -------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("name", SAMPLERS)
def test_known_moments(name):
    """Means within four standard errors of their own, variances within five."""
    draws = SAMPLERS[name](symad.trace(GAUSS, (x, y)), [0.0, 0.0], count=1500, seed=1).checked()
    assert np.all(np.abs(draws.mean - 1) < 4 * draws.standard_errors)
    for i, j in ((0, 0), (0, 1), (1, 1)):
        products = (draws.flat[:, :, i] - 1) * (draws.flat[:, :, j] - 1)
        assert abs(products.mean() - COVARIANCE[i, j]) < 5 * standard_error(products)
    assert np.all(draws.standard_errors < 0.2)


@pytest.mark.thorough
def test_a_curved_density():
    """x ~ N(0, 4), y | x ~ N(x²/2, 1): E y = 2, Var y = 1 + (1/4) Var x² = 9. Long tails: many chains."""
    banana = symad.trace(-(x**2) / 8 - (y - x**2 / 2) ** 2 / 2, (x, y))
    draws = hmc(banana, [0.0, 0.0], leaps=15, step=0.15, chains=200, count=300, warmup=300, seed=3)
    first, second = draws.flat[:, :, 0], draws.flat[:, :, 1]
    for values, mean in ((first**2, 4), (second, 2), ((second - 2) ** 2, 9)):
        assert abs(values.mean() - mean) < 4 * standard_error(values)
    assert draws.divergences == 0


def advanced(leaps, step, accept=True):
    """4000 chains that start in a skew law exactly, eight steps later."""
    skew = symad.trace(x - sp.exp(x), [x])  # the law of log of an exponential number
    problem, _ = Unknowns.make(skew, 0.0, None)
    start = np.log(-np.log(rand(5, (4000, 1))))
    chains = Chains(LogDensity(problem, np.ones(1), leaps > 0), start, leaps, 0.0)
    for k in range(8):
        key = functions.fold_in(6, k)
        levels = rand(functions.fold_in(key, 1), 4000) if accept else np.zeros(4000)
        chains.move(randn(key, (4000, 1)), levels, step)
    return scipy.stats.kstest(np.exp(chains.points[:, 0]), "expon").pvalue


@pytest.mark.parametrize(("leaps", "step"), [(0, 1.5), (1, 1.2), (5, 0.8)])
def test_the_law_is_invariant(leaps, step):
    assert advanced(leaps, step) > 1e-3


@pytest.mark.parametrize(("leaps", "step"), [(0, 1.5), (1, 1.2), (5, 0.8)])
def test_the_test_of_invariance_sees_a_wrong_sampler(leaps, step):
    """Without the acceptance the law is another: the test above has the power to say so."""
    assert advanced(leaps, step, accept=False) < 1e-6


def test_energy_error_falls_with_the_square_of_the_step():
    """At a fixed length of the path |ΔH| = O(h²)."""
    graph = symad.trace(-(x**4) / 4 - y**2 / 2 + sp.cos(x * y), (x, y))
    problem, _ = Unknowns.make(graph, [0.0, 0.0], None)
    noise, start = randn(1, (200, 2)), randn(2, (200, 2))
    errors = []
    for leaps in (8, 16, 32):
        chains = Chains(LogDensity(problem, np.ones(2), True), start, leaps, 0.0)
        errors.append(np.abs(chains.propose(noise, 0.8 / leaps)[3]).mean())
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.05)


@pytest.mark.thorough
def test_unknowns_data_and_scales():
    """A regression: the posterior is a normal law that is known exactly."""
    rng = np.random.default_rng(0)
    X, target = rng.normal(size=(40, 3)) * [1, 100, 0.01], rng.normal(size=40)
    n, d = sp.symbols("n d", integer=True, positive=True)
    graph = symad.trace(
        lambda w, s, X, y: -((y - X @ w) ** 2).sum() / 2 - (s**2).sum() / 2, [(d,), (), (n, d), (n,)]
    )
    sizes = {"w": 1 / np.linalg.norm(X, axis=0), "s": 1.0}
    draws = hmc(
        graph, {"w": np.zeros(3), "s": 0.0}, data={"X": X, "y": target}, scale=sizes, count=1500
    ).checked()
    covariance = np.linalg.inv(X.T @ X)
    assert draws.values["w"].shape == (4, 1500, 3)
    assert draws.values["s"].shape == (4, 1500)
    assert draws.names == ("w[0]", "w[1]", "w[2]", "s")
    assert np.all(np.abs(draws.mean[:3] - covariance @ X.T @ target) < 4 * draws.standard_errors[:3])
    spread = draws.flat[:, :, :3].std(axis=(0, 1))
    assert np.allclose(spread, np.sqrt(np.diag(covariance)), rtol=0.08)
    assert "eff. size" in draws.summary()


@pytest.mark.thorough
def test_a_run_can_be_repeated():
    graph = symad.trace(GAUSS, (x, y))
    first, again, other = (hmc(graph, [0, 0], count=50, seed=s) for s in (1, 1, 2))
    assert np.array_equal(first.flat, again.flat)
    assert not np.array_equal(first.flat, other.flat)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "goal"), [("metropolis", 0.234), ("langevin", 0.574), ("hmc", 0.8)])
def test_the_step_is_tuned(name, goal):
    draws = SAMPLERS[name](symad.trace(GAUSS, (x, y)), [0.0, 0.0], warmup=500, count=300, seed=4)
    assert draws.acceptance.mean() == pytest.approx(goal, abs=0.09)


# ---- diagnostics ---------------------------------------------------------------------------------


def autoregression(rho, chains, count, seed):
    noise = randn(seed, (count, chains))
    states = [noise[0]]
    for z in noise[1:]:
        states.append(rho * states[-1] + np.sqrt(1 - rho**2) * z)
    return np.array(states).T


def test_autocovariance_against_statsmodels():
    chain = autoregression(0.5, 2, 300, 1)
    expected = [acovf(c, fft=False) for c in chain]
    assert np.allclose(autocovariance(chain), expected, atol=1e-12)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, -0.3])
def test_effective_size_of_autoregressions(rho):
    """N (1 − ρ)/(1 + ρ), exactly known."""
    draws = autoregression(rho, 4, 10_000, 2)
    assert effective_sample_size(draws) == pytest.approx(40_000 * (1 - rho) / (1 + rho), rel=0.1)


@pytest.mark.thorough
def test_standard_errors_cover():
    """|mean| < 2 standard errors in about 95 of 100 runs of a correlated chain."""
    covered = [
        abs(draws.mean()) < 2 * standard_error(draws)
        for draws in (autoregression(0.7, 2, 1000, 100 + k) for k in range(100))
    ]
    assert 88 <= sum(covered) <= 100


def test_r_hat_by_hand():
    draws = np.array([[1.0, 2.0, 4.0, 3.0], [2.0, 6.0, 5.0, 3.0]])
    halves = np.array([[1.0, 2.0], [2.0, 6.0], [4.0, 3.0], [5.0, 3.0]])
    within = halves.var(axis=1, ddof=1).mean()
    between = 2 * halves.mean(axis=1).var(ddof=1)
    assert split_r_hat(draws) == pytest.approx(np.sqrt((within / 2 + between / 2) / within))


def test_r_hat_sees_chains_that_disagree_and_chains_that_drift():
    good = randn(1, (4, 500))
    assert split_r_hat(good) == pytest.approx(1, abs=0.01)
    assert split_r_hat(good + np.arange(4)[:, None]) > 1.3
    assert split_r_hat(good + np.linspace(0, 4, 500)) > 1.3


def test_two_modes_that_the_chains_do_not_join_are_reported():
    far = symad.trace(sp.log(sp.exp(-((x - 8) ** 2) / 2) + sp.exp(-((x + 8) ** 2) / 2)), [x])
    draws = metropolis(far, 0.0, spread=8.0, step=0.5, count=500, seed=2)
    with pytest.raises(ArithmeticError, match=r"cannot be trusted: R-hat of x"):
        draws.checked()


# ---- inversion -----------------------------------------------------------------------------------

rate = sp.Symbol("rate", positive=True)
LAWS = {
    "normal": (sp.erf(x / sp.sqrt(2)) / 2 + sp.Rational(1, 2), scipy.stats.norm(), (-np.inf, np.inf)),
    "Cauchy": (sp.atan(x) / sp.pi + sp.Rational(1, 2), scipy.stats.cauchy(), (-np.inf, np.inf)),
    "gamma": (1 - sp.exp(-x) * (1 + x + x**2 / 2), scipy.stats.gamma(3), (0, np.inf)),
    "beta": (3 * x**2 - 2 * x**3, scipy.stats.beta(2, 2), (0, 1)),
    "logistic": (1 / (1 + sp.exp(-x)), scipy.stats.logistic(), (-np.inf, np.inf)),
}


@pytest.mark.parametrize("name", LAWS)
def test_inversion_against_scipy(name):
    cdf, law, support = LAWS[name]
    levels = np.concatenate([[1e-5, 1e-3, 0.5, 1 - 1e-5], rand(1, 500)])
    expected = law.ppf(levels)  # far in the tail 1/2 + erf(...)/2 itself has few digits
    assert np.allclose(invert(cdf, x, levels, support=support), expected, rtol=1e-9, atol=1e-12)
    assert scipy.stats.kstest(invert(cdf, x, rand(2, 5000), support=support), law.cdf).pvalue > 1e-3


def test_inversion_with_parameters():
    rates = np.array([0.5, 2.0, 50.0])
    found = invert(1 - sp.exp(-rate * x), x, 0.75, {rate: rates}, support=(0, np.inf))
    assert np.allclose(found, np.log(4) / rates, rtol=1e-13)
    assert isinstance(invert(1 - sp.exp(-x), x, 0.5, support=(0, np.inf)), float)


# ---- bad input -----------------------------------------------------------------------------------


def test_bad_calls():
    graph = symad.trace(GAUSS, (x, y))
    for options, message in (
        ({"count": 0}, "count ≥ 1"),
        ({"chains": 0}, "chains ≥ 1"),
        ({"jitter": 1.0}, "jitter < 1"),
        ({"step": 0.0}, "step must be positive"),
        ({"step": -1.0}, "step must be positive"),
        ({"scale": 0.0}, "scale of every unknown must be positive"),
        ({"warmup": 3}, "warmup of at least 50"),
        ({"leaps": 0}, "leaps ≥ 1"),
    ):
        with pytest.raises(EvaluationError, match=message):
            hmc(graph, [0, 0], **options)
    with pytest.raises(EvaluationError, match="scale is of x, but the unknowns are x, y"):
        hmc(graph, {x: 0, y: 0}, scale={x: 1.0})
    with pytest.raises(EvaluationError, match="not finite at the start of chain 0"):
        hmc(symad.trace(sp.log(x), [x]), -1.0)
    with pytest.raises(EvaluationError, match="one output, a scalar"):
        hmc(symad.trace([x, y], (x, y)), [0, 0])
    with pytest.raises(EvaluationError, match=r"at least 4\), not \(2, 3\)"):
        split_r_hat(np.zeros((2, 3)))
    with pytest.raises(EvaluationError, match="chains never moved"):
        effective_sample_size(np.ones((2, 30)))
    with pytest.raises(EvaluationError, match="not finite"):
        effective_sample_size(np.full((2, 30), np.nan))
    for level in (0.0, 1.0, -0.5, 1.5, np.nan):
        with pytest.raises(EvaluationError, match=r"lie in \(0, 1\)"):
            invert(LAWS["normal"][0], x, level)
    with pytest.raises(EvaluationError, match="needs values for rate"):
        invert(1 - sp.exp(-rate * x), x, 0.5)
    with pytest.raises(EvaluationError, match="does not rise"):
        invert(sp.exp(-(x**2)) / 2, x, 0.9)
