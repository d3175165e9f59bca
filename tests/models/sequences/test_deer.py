"""DEER against the recurrence run step by step: states, derivatives, iterations."""

from __future__ import annotations

import numpy as np
import pytest

import symad
from symad import functions
from symad.errors import EvaluationError
from symad.models.sequences.deer import deer
from symad.numeric import lower

N, D = 4, 3
RNG = np.random.default_rng(0)
W, U, FIRST = 0.9 * np.linalg.qr(RNG.normal(size=(N, N)))[0], RNG.normal(size=(N, D)), RNG.normal(size=N)


def cell(h, x, W, U):
    return np.tanh(W @ h + U @ x)


def gated(h, x, W, U):
    keep = functions.sigmoid(W @ h)
    return keep * h + (1 - keep) * np.tanh(U @ x)


def made(step, compiled=None):
    return deer(step, [(N,), (D,), (N, N), (N, D)], compiled)


def one_by_one(step, xs):
    h, found = FIRST, []
    for x in xs:
        h = step(h, x, W, U)
        found.append(h)
    return np.stack(found)


@pytest.mark.parametrize("step", [cell, gated])
@pytest.mark.parametrize("compiled", [None, lower])
@pytest.mark.parametrize("length", [1, 2, 50, 1000])
def test_states_equal_the_loop_to_rounding(step, compiled, length):
    xs = RNG.normal(size=(length, D))
    h, iterations = made(step, compiled).solve(FIRST, xs, W, U)
    np.testing.assert_allclose(h, one_by_one(step, xs), rtol=0, atol=1e-13)
    assert iterations <= 15


def test_a_linear_recurrence_takes_one_iteration():
    """And one to see that nothing changes."""
    linear = made(lambda h, x, W, U: W @ h + U @ x)
    assert linear.solve(FIRST, RNG.normal(size=(200, D)), W, U)[1] == 2


def test_derivatives_are_those_of_the_scan():
    length = 30
    xs = RNG.normal(size=(length, D))
    states = made(cell).graph(length)

    def parallel(first, x, W, U, guess):
        return np.sum(states(first, x, W, U, guess) ** 3)

    def sequential(first, x, W, U):
        return np.sum(functions.scan(lambda h, x: cell(h, x, W, U), first, x) ** 3)

    shapes = [(N,), (length, D), (N, N), (N, D)]
    ours = symad.gradient(symad.trace(parallel, [*shapes, (length, N)]), wrt=["first", "x", "W", "U"])
    theirs = symad.gradient(symad.trace(sequential, shapes))
    found = ours(FIRST, xs, W, U, np.zeros((length, N)))
    for f, e in zip(found, theirs(FIRST, xs, W, U), strict=True):
        np.testing.assert_allclose(f, e, rtol=1e-10, atol=1e-12)


def test_a_guess_saves_iterations():
    xs = RNG.normal(size=(100, D))
    runs = made(cell)
    h, cold = runs.solve(FIRST, xs, W, U)
    warm = runs.solve(FIRST, xs + 1e-6, W, U, guess=h)[1]
    assert warm < cold


def test_failures_are_told():
    chaos = deer(lambda h, x: 3.99 * h * (1 - h) + x, [(1,), (1,)])
    with pytest.raises(EvaluationError, match="DEER: "):
        chaos.solve(np.array([0.3]), np.zeros((400, 1)))
    with pytest.raises(EvaluationError, match=r"maps a state \(n,\)"):
        deer(lambda h, x: h[:2], [(3,), (3,)])
