"""Programs that are wrong in one place alone: the place is met, or the certificate names it as not tried."""

import math
import re

import numpy as np
import pytest
import sympy

import symad
from symad.verification.values.point_set import PointSet
from symad.verification.values.strata import FORMULAS, HOSTILE, PLAIN, PROGRAMS, STRATA

x, y, z = sympy.symbols("x y z", real=True)
A_SUM = sympy.exp(-(x**2) / 9) + x * y**2 + sympy.sin(z)


def is_power(v):
    return v != 0 and math.log2(abs(v)) == round(math.log2(abs(v)))


PLACES = {
    "all zeros": lambda v: not np.any(v),
    "one zero": lambda v: np.any(v == 0),
    "equal entries": lambda v: len(set(np.abs(v))) < 3,
    "a power of two": lambda v: any(map(is_power, v)),
    "whole numbers": lambda v: np.all(v == np.round(v)),
    "positive numbers": lambda v: np.all(v > 0),
    "negative numbers": lambda v: np.all(v < 0),
    "beyond 1e8": lambda v: np.max(np.abs(v)) > 1e8,
    "below 1e-9": lambda v: 0 < np.min(np.abs(v)) < 1e-9,
    "all of them below 1e-9": lambda v: np.max(np.abs(v)) < 1e-9,
    "between 4 and 5": lambda v: 4 < abs(v[0]) < 5,
}  # fmt: skip


def gradient(a, b, c):
    return np.array([-2 * a / 9 * np.exp(-(a**2) / 9) + b**2, 2 * a * b, np.cos(c)])


def met_or_named(name, seed):
    """Whether a gradient that is wrong in one place is refuted, or the place is named."""
    wrong = PLACES[name]

    def candidate(*at):
        here = 0.01 * bool(wrong(np.array(at)))
        return gradient(*at) * (1 + here) + here

    made = symad.verify(A_SUM, gradient=candidate, seed=seed, hostile=True)
    windows = re.findall(r"(-?[\d.e+-]+) < ([xyz]) < (-?[\d.e+-]+)", str(made))
    ends = [sorted((abs(float(a)), abs(float(b)))) for a, name, b in windows if name == "x"]
    ratios = [high / low for low, high in ends]
    named = max(ratios, default=1.0) >= 5 / 4  # as wide at least: the note speaks of narrower intervals, too
    return made.status == "refuted" or (name == "between 4 and 5" and named)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", PLACES)
def test_a_place_is_met_or_named(name):
    assert met_or_named(name, 1)


@pytest.mark.thorough
@pytest.mark.parametrize("seeds", [range(0, 6), range(6, 12)], ids=str)
@pytest.mark.parametrize("name", PLACES)
def test_a_place_is_met_or_named_for_every_seed(name, seeds):
    missed = [seed for seed in seeds if not met_or_named(name, seed)]
    assert not missed


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(6))
def test_right_programs_are_measured(seed):
    assert symad.verify(A_SUM, gradient=gradient, seed=seed).status == "measured"


def test_strata_are_what_their_names_say():
    graph = symad.trace(lambda u, v: np.sum(u * v), [(3,), (3,)])
    points = PointSet(graph.output_nodes, 5)

    def rows(kind):
        columns = points.drawn(40, [kind])
        return np.concatenate([c.reshape(40, -1) for c in columns.values()], axis=1)

    assert not rows("zeros").any()
    assert ((rows("one zero") == 0).sum(axis=1) == 1).all()
    assert (np.ptp(rows("equal"), axis=1) == 0).all()
    assert all(is_power(v) for v in rows("powers of two").ravel())
    assert (rows("whole") == np.round(rows("whole"))).all()
    assert (np.abs(rows("minute")).max(axis=1) < 1e-5).all()
    assert (np.abs(rows("huge")).max(axis=1) > 1e5).any()
    assert {*FORMULAS, *PROGRAMS, *PLAIN, "zeros"} == {*STRATA}
    assert len(list(points.hostile())) == 2 * len(HOSTILE)


def test_points_keep_what_symbols_promise():
    p, n = sympy.Symbol("p", positive=True), sympy.Symbol("n", negative=True)
    k, r = sympy.Symbol("k", integer=True, nonnegative=True), sympy.Symbol("r", nonnegative=True)
    points = PointSet(symad.trace(p * n + k * r).output_nodes, 7)
    for kind in STRATA:
        found = {str(node.op.symbol): column for node, column in points.drawn(16, [kind]).items()}
        assert (found["p"] > 0).all() and (found["n"] < 0).all() and (found["r"] >= 0).all(), kind
        assert (found["k"] >= 0).all() and (found["k"] == np.round(found["k"])).all(), kind
