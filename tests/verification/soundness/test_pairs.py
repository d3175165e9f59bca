"""Pairs made to be equal, or to differ on an open set: no verdict on them may be wrong.

The pairs and their answers come from tests/pairs, without symad; `benchmarks/verification/pairs.py` checks
any number of them.
"""

from __future__ import annotations

import random
from itertools import islice

import numpy as np
import pytest
import sympy as sp
from sympy import (
    Abs,
    Eq,
    Heaviside,
    Matrix,
    Max,
    Piecewise,
    Rational,
    acosh,
    cos,
    exp,
    log,
    sin,
    sqrt,
)

import symad
from symad import functions
from symad.verification.budget import Budget
from tests.pairs.generate import Tally, pairs
from tests.pairs.values import apart, compare

x, y, z = sp.symbols("x y z", real=True)
SMALL = 120
"""Pairs of longer text are left to the benchmark."""

COUNTS = {"roots": 240, "domains": 80, "branches": 120, "moved": 100, "steps": 460, "zeros": 60, "users": 24}


@pytest.mark.thorough
@pytest.mark.parametrize("family", COUNTS)
def test_no_verdict_on_a_pair_is_wrong(family):
    tally = Tally()
    small = (pair for pair in pairs(40 * COUNTS[family], 20, (family,)) if len(pair.text) <= SMALL)
    asked = list(islice(small, COUNTS[family]))
    for k, pair in enumerate(asked):
        tally.judge(pair, k)
    assert len(asked) == COUNTS[family]
    assert not tally.false_certificates
    assert not tally.false_refutations
    assert not tally.crashes
    assert tally.decided >= 0.85, tally.undecided


def _asked(count, seed, families):
    tally, texts = Tally(), []
    for k, pair in enumerate(pairs(count, seed, families)):
        tally.judge(pair, k)
        texts.append(pair.text)
    assert len(texts) == count
    return tally


def test_no_claim_that_is_wrong_on_a_region_is_certified():
    tally = _asked(10, 11, ("mechanisms",))
    assert not (tally.false_certificates or tally.false_refutations or tally.crashes)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(20))
def test_no_claim_of_many_that_is_wrong_on_a_region_is_certified(seed):
    tally = _asked(50, 100 + seed, ("mechanisms",))
    assert not (tally.false_certificates or tally.false_refutations or tally.crashes)


FALSE = {
    "a root beside": (Matrix([sqrt(x), sqrt(x * (x**2 + x))]), Matrix([sqrt(x), x * sqrt(x + 1)])),
    "roots of products": (
        [sqrt(x) + sqrt(y) + sqrt(z), sqrt(x * y) * sqrt(y * z) * sqrt(x * z)],
        [sqrt(x) + sqrt(y) + sqrt(z), x * y * z],
    ),
    "a logarithm beside": (
        [log(x + y), exp(z + log(x**2 + 2 * x * y + y**2) / 2)],
        [log(x + y), exp(z) * (x + y)],
    ),
    "winners of a maximum": (
        Piecewise((3, Eq(x, Max(x, y))), (1, True))
        / (Piecewise((3, Eq(x, Max(x, y))), (1, True)) + Piecewise((3, Eq(y, Max(x, y))), (1, True))),
        Piecewise((1, x > y), (0, True)),
    ),
    "far below a neighbour's domain": (Matrix([acosh(x), Max(x, -(10**9))]), Matrix([acosh(x), x])),
    "a power of a hidden integer": (
        sp.Pow(x, 1 + sin(y) ** 2 + cos(y) ** 2, evaluate=False),
        x * Abs(x),
    ),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_region_serves_its_own_element_alone(name):
    assert symad.equal(*FALSE[name]).status in ("refuted", "undecided")


@pytest.mark.parametrize("place", [0, 37, 99])
def test_a_difference_at_one_index_of_a_hundred_is_found(place):
    index = sp.Symbol("i", integer=True, nonnegative=True)
    table = sp.tensor.array.expressions.ArraySymbol("a", (100,))
    taken = symad.trace(lambda a, i: a[i], [table, index])
    changed = symad.trace(lambda a, i: a[i] + np.where(i == place, 1, 0), [table, index])
    certificate = symad.equal(taken, changed)
    assert certificate.status == "refuted" and certificate.witness.point["i"] == str(place)
    assert symad.equal(taken, taken).status == "proved"


def test_a_wrong_jacobian_is_not_certified_by_a_root_in_another_row():
    f = [2 * x ** Rational(3, 2) / 3, y * sqrt(x * (x**2 + x))]
    wrong = Matrix([[sqrt(x), 0], [sp.diff(f[1], x), x * sqrt(x + 1)]])
    assert symad.verify(f, [x, y], jacobian=wrong).status == "refuted"


TRUE = {
    "its own domain": (sqrt(x) + Abs(x), sqrt(x) + x),
    "its own product": (sqrt(x) * sqrt(x * (x**2 + x)), x ** Rational(3, 2) * sqrt(x + 1)),
    "a branch's own condition": (
        Piecewise((sqrt(x**2 + x**4), x > 0), (y, True)),
        Piecewise((x * sqrt(1 + x**2), x > 0), (y, True)),
    ),
    "a step and its root": (sqrt(x) * Heaviside(x, 1), sqrt(x)),
    "roots of products by sizes": (sqrt(x * y) * sqrt(x * z), Abs(x) * sqrt(y * z)),
}


@pytest.mark.parametrize("name", TRUE)
def test_a_region_serves_its_own_element(name):
    assert compare(*TRUE[name], random.Random(0)) is True
    assert symad.equal(*TRUE[name]).status in ("proved", "tested")


# ---- what crashed, or was given up ---------------------------------------------------------------


def test_rows_of_many_signs_are_decided_one_by_one():
    ramp = symad.trace(lambda a: np.where(a > 0, a, 0.2 * a).sum(), [(7,)])
    assert symad.check(ramp).status in ("proved", "tested")


def test_remainders_that_agree_close_to_zero_are_told_apart():
    assert symad.equal(sp.Mod(x, 3), sp.Mod(x, 2)).status == "refuted"


def test_a_number_beyond_the_floats_is_no_crash():
    assert symad.equal(x * (1 + Rational(1, 10**400)), x).status in ("refuted", "undecided")


@pytest.mark.thorough
def test_positions_of_a_sort_are_no_crash():
    f = symad.trace(lambda a: np.sum(np.sort(a) * np.arange(12.0) ** 2), [(12,)])
    small = Budget(steps=300_000, proof_steps=100_000)
    assert symad.check(f, budget=small).status in ("proved", "tested", "undecided")


@pytest.mark.thorough
def test_a_mask_inside_of_fused_attention_is_no_crash():
    f = symad.trace(lambda q, k, v: (functions.attention(q, k, v, causal=True) ** 2).sum(), [(2, 1)] * 3)
    small = Budget(steps=300_000, proof_steps=100_000)
    assert symad.check(f, budget=small).status in ("proved", "tested", "undecided")


@pytest.mark.thorough
def test_a_high_power_is_no_deep_recursion():
    small = Budget(steps=300_000, proof_steps=100_000)
    assert symad.check((x + 1) ** 1000, budget=small).status in ("proved", "tested", "undecided")


def test_a_cancellation_under_a_root_refutes_nothing():
    u = exp(x)
    hidden = log(sqrt(sp.cosh(u) ** 2 - 1) + sp.cosh(u))
    assert symad.equal(hidden, u).status != "refuted"
    assert symad.equal(hidden, 2 * u).status == "refuted"


def test_a_step_of_a_hidden_zero_is_not_refuted_by_its_rounding():
    p = sp.Symbol("p", positive=True)
    zero = sp.atan(p) + sp.atan(1 / p) - sp.pi / 2
    assert symad.equal(Piecewise((1, zero > 0), (0, True)), 0 * p).status != "refuted"


def test_sides_are_compared_away_from_ties():
    """Numbers are drawn from a few thousand: two symbols would meet the same one now and then."""
    x, y, z = sp.symbols("x y z", real=True)
    rng = random.Random(0)
    assert all(len({abs(v) for v in apart([x, y, z], rng).values()}) == 3 for _ in range(5000))
