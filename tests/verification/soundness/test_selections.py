"""Derivatives of np.where: each element depends on its own condition, whatever the number of elements."""

import random

import numpy as np
import pytest

import symad
from symad.verification.budget import Budget, Meter
from symad.verification.rewriting.identity_testing import compare_nodes

LOSSES = {
    "leaky": lambda x: np.where(x > 0, x, 0.2 * x).sum(),
    "ELU": lambda x: np.where(x > 0, x, np.exp(x) - 1).sum(),
    "Huber": lambda x: np.where(np.abs(x) < 1, 0.5 * x**2, np.abs(x) - 0.5).sum(),
    "clipped": lambda x: (np.clip(x, -1, 1) ** 3).sum(),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_of_many_elements(name):
    certificate = symad.check(symad.trace(LOSSES[name], [(24,)]))
    assert certificate.status in ("proved", "tested"), str(certificate)
    assert certificate.steps < 4_000_000  # 20 million and undecided, region by region


def _apart(rng, n):
    """A sum over elements with branches, and the same with a change that shows in one region only.

    There are more regions than are visited one after the other, and so each lane draws its own.
    """
    i, j = rng.sample(range(n), 2)
    region = rng.choice([
        lambda x: (x[i] > 0) & (x[j] > 0), lambda x: x[i] * x[j] > 0, lambda x: (x[i] > 0) & (x[i] < 1),
        lambda x: (x[i] > x[j]) & (x[j] > 0), lambda x: np.where(x[i] > 0, x[j], 1) < 0,
        lambda x: (x[i] > 0) & (x[i] > 1) & (x[i] > 2), lambda x: np.where(x[i] > 0, 1 / x[j], x[j]) > 2,
    ])  # fmt: skip
    scale = rng.choice([1.0, 0.5, 2.0])
    inner = rng.choice([np.exp, np.sin, lambda u: u * u, lambda u: 1 / (1 + u * u)])

    def f(x):
        return np.where(x > 0, scale * x, inner(x)).sum()

    return f, lambda x: f(x) + np.where(region(x), x[i] ** 2 + 1, 0), region


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(20))
def test_a_change_in_one_region_of_many_is_seen(seed):
    rng = random.Random(seed)
    n = rng.choice([7, 8, 12])
    f, changed, region = _apart(rng, n)
    sides = [symad.trace(g, [(n,)]) for g in (f, changed)]
    assert symad.equal(*sides, seed=seed).status in ("refuted", "undecided")
    other = symad.trace(lambda x: np.where(region(x), f(x), f(x) + 0 * x[0]), [(n,)])
    assert symad.equal(sides[0], other, seed=seed).status != "refuted"
    pair = [(sides[0].output_nodes[0], sides[1].output_nodes[0])]
    assert not compare_nodes(pair, seed, Budget(), Meter(Budget())).pairs[0].certain.any()


def test_a_selection_inside_of_its_own_branch_is_resolved():
    both = symad.trace(
        lambda a, b: np.where(a > 0, np.where(a > 0, a, b) * 2, np.where(~(a > 0), b, a)), [(3,), (3,)]
    )
    plain = symad.trace(lambda a, b: np.where(a > 0, 2 * a, b), [(3,), (3,)])
    assert symad.equal(both, plain).status in ("proved", "tested")


def test_another_condition_is_left():
    one = symad.trace(lambda a, b: np.where(a > 0, np.where(a > b, a, b), b), [(3,), (3,)])
    other = symad.trace(lambda a, b: np.where(a > 0, a, b), [(3,), (3,)])
    assert symad.equal(one, other).status == "refuted"


def test_a_condition_that_is_moved_is_another():
    one = symad.trace(lambda a: np.where((a > 0)[:, None], np.where((a > 0)[None, :], 1.0, 2.0), 3.0), [(2,)])
    other = symad.trace(lambda a: np.where((a > 0)[:, None], 1.0, 3.0) * np.ones((2, 2)), [(2,)])
    assert symad.equal(one, other).status == "refuted"


def network(ramp):
    """A network with two hidden layers."""
    return lambda x, W, b, V, c, u: (u * ramp(V @ ramp(W @ x + b) + c)).sum()


@pytest.mark.parametrize(("width", "hidden"), [(2, 6), pytest.param(64, 200, marks=pytest.mark.thorough)])
def test_ramps_of_networks_are_written_in_two_ways(width, hidden):
    """Biases keep the arguments of ramps from being 0, however many ramps there are."""
    shapes = [(width,), (hidden, width), (hidden,), (2, hidden), (2,), (2,)]
    one = symad.trace(network(lambda z: np.maximum(z, 0)), shapes)
    two = symad.trace(network(lambda z: np.where(z > 0, z, 0)), shapes)
    assert symad.equal(one, two, seed=1).status in ("proved", "tested")
    wrong = symad.trace(network(lambda z: np.where(z > -1, z, 0)), shapes)
    assert symad.equal(one, wrong, seed=1).status == "refuted"
