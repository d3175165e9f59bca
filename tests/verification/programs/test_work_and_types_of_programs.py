"""Programs that take long, or compute in float32 and return float64: when measuring ends, what is a tie."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.graph import topological
from symad.verification import Budget
from symad.verification.measuring.precisions import DOUBLE
from symad.verification.measuring.rounding_errors import Errors
from symad.verification.values.regions import region_around

x = sp.Symbol("x", real=True)


def in_single(function):
    """The function of float32 arguments, with results of float64."""
    return lambda v: np.asarray(function(np.asarray(v, np.float32)), np.float64)


def largest(v):
    return (v == v.max()) / (v == v.max()).sum()


def sorting(v):
    rows = np.zeros((4, 4), np.float32)
    rows[np.arange(4), np.argsort(v, kind="stable")] = np.arange(1, 5)
    return rows


TIES = {
    "max": (lambda v: np.max(v), "gradient", largest),
    "clip": (lambda v: np.sum(np.clip(v, -1, 1) * v), "gradient",
             lambda v: np.where(np.abs(v) < 1, 2 * v, np.sign(v))),
    "sort": (lambda v: np.sort(v) * np.arange(1.0, 5.0), "jacobian", sorting),
}  # fmt: skip


@pytest.mark.parametrize("name", ["max", "clip", pytest.param("sort", marks=pytest.mark.thorough)])
def test_arguments_that_float32_cannot_tell_are_ties(name):
    f, kind, derivative = TIES[name]
    graph = symad.trace(f, [(4,)])
    assert symad.verify(graph, **{kind: in_single(derivative)}, seed=1).status == "measured"
    for wrong in (lambda v: 1.01 * derivative(v), lambda v: derivative(-v)):
        assert symad.verify(graph, **{kind: in_single(wrong)}, seed=1).status == "refuted"


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", TIES)
def test_ties_of_float32_at_the_points_of_each_seed(name, seed):
    f, kind, derivative = TIES[name]
    graph = symad.trace(f, [(4,)])
    assert symad.verify(graph, **{kind: in_single(derivative)}, seed=seed).status == "measured"


@pytest.mark.parametrize("wrong", [False, True])
def test_masks_in_half_precision_round_none(wrong):
    """The Jacobian of a clip is 0 or 1 in each element, which every type has exactly."""
    clip = symad.trace(lambda v: np.clip(v, -1, 1), [(4,)])

    def jacobian(v):
        inside = np.abs(np.asarray(v, np.float16)) <= (0.5 if wrong else 1)
        return np.diag(inside).astype(np.float16)

    made = symad.verify(clip, jacobian=jacobian, computed_in="bfloat16", seed=1)
    assert made.status == ("refuted" if wrong else "measured")


rng = np.random.default_rng(0)
DATA, COUNTS = rng.normal(size=(60, 3)), rng.integers(0, 5, size=60).astype(float)


def poisson(b):
    return np.sum(np.exp(DATA @ b) - COUNTS * (DATA @ b))


def score(b):
    return DATA.T @ (np.exp(DATA @ b) - COUNTS)


def test_a_long_measurement_ends_with_what_agrees():
    graph, few = symad.trace(poisson, [(3,)]), Budget(steps=500_000)
    made = symad.verify(graph, gradient=score, seed=1, budget=few)
    assert made.status == "measured"
    (entry,) = made.entries
    assert 4 <= entry.measured["points"] < 24
    assert f"after {entry.measured['points']} points" in entry.reason
    assert entry.reason in repr(made)


def test_what_floats_show_is_looked_at_all_the_same():
    """Wrong where the first element is large alone, which the first points are not."""

    def wrong(b):
        return score(b) * (1 + 1e-3 * (abs(b[0]) > 5))

    graph = symad.trace(poisson, [(3,)])
    assert symad.verify(graph, gradient=wrong, seed=1, budget=Budget(steps=500_000)).status == "refuted"


def test_without_enough_points_it_is_undecided():
    graph = symad.trace(poisson, [(3,)])
    assert symad.verify(graph, gradient=score, seed=1, budget=Budget(steps=20_000)).status == "undecided"


def test_errors_of_arrays():
    exact = np.array([mpmath.mpf(1), mpmath.mpf(3), mpmath.mpf("1e-400"), mpmath.mpf("1e400")], dtype=object)
    got = np.array([1 + 2.0**-52, np.inf, 0.0, np.inf])
    made = Errors.of(got, exact, np.array([1.0, 3.0, 0.0, 1e308]), 0.0, DOUBLE)
    assert made.relative[0] == 2.0**-52
    assert made.ulps[0] == 1
    assert np.isinf(made.excess[1])
    assert made.at((1,)).word == "overflow"
    assert np.isinf(made.resolution[2])
    assert made.excess[2] < 1
    assert made.excess[3] == 0


def region(formula, at):
    graph = symad.trace(formula, [x])
    return region_around(topological(graph.output_nodes), {graph.input_nodes[0]: Fraction(at)}, ())


def test_points_inside_of_regions():
    step = sp.Piecewise((1, x > 1), (0, True))
    assert region(step, 2) is not None
    assert region(step, 2) != region(step, 0)
    assert region(step, Fraction(1)) is None
    assert region(step, Fraction(1) + Fraction(1, 10**14)) is None
    assert region(sp.floor(x), Fraction(5, 2)) == region(sp.floor(x), Fraction(7, 2))
    assert region(sp.floor(x), 3) is None


def test_ties_on_an_open_set_are_no_boundary():
    tie = symad.trace(lambda v: np.maximum(v - v, 0) + np.sign(0 * v), [()])
    assert region_around(topological(tie.output_nodes), {tie.input_nodes[0]: Fraction(1)}) is not None
    hidden = sp.sin(x) ** 2 + sp.cos(x) ** 2 - 1
    assert region(sp.Max(hidden, 0), 1) is not None  # continuous, whichever is the larger one
    assert region(sp.sign(hidden), 1) is None
