"""Rows picked by arrays of integers: positions in several axes are joined; each index stays in its own."""

import numpy as np
import pytest

import symad

LABELS = np.array([1, 0, 2])
ROWS = np.arange(3)


def one_hot(z, t):
    return (z * (np.arange(z.shape[1]) == t[:, None])).sum(-1)


def entropy(z, t):
    return (symad.functions.logsumexp(z, axis=-1) - np.take_along_axis(z, t[:, None], -1)[:, 0]).mean()


def program(z, t):
    p = np.exp(z - z.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    p[ROWS, t] -= 1
    return p / 3


@pytest.mark.parametrize(
    "picked",
    [
        lambda z, t: z[ROWS, t],
        lambda z, t: np.take_along_axis(z, t[:, None], -1)[:, 0],
    ],
)
def test_rows_are_those_of_one_hot_vectors(picked):
    """z[rows, t] was refuted at t = [10, 4, 1], where it has no value: joined, 4 i + 10 is in another row."""
    made = symad.equal(*(symad.trace(f, [(3, 4), LABELS]) for f in (picked, one_hot)))
    assert made.status == "tested"
    assert "for every t from 0 to 3" in made.entries[0].claim


@pytest.mark.thorough
@pytest.mark.parametrize("index", [lambda t: t + 1, lambda t: 2 * t, lambda t: 3 - t])
def test_expressions_of_indices_stay_in_their_axis(index):
    picked = symad.trace(lambda z, t: z[ROWS, index(t)], [(3, 4), 0 * LABELS])
    known = symad.trace(lambda z, t: one_hot(z, index(t)), [(3, 4), 0 * LABELS])
    assert symad.equal(picked, known).status == "tested"
    assert symad.verify(picked, value=lambda z, t: z[ROWS, index(t)]).status == "measured"
    assert symad.equal(picked, symad.trace(lambda z, t: one_hot(z, t), [(3, 4), LABELS])).status == "refuted"


@pytest.mark.thorough
def test_cross_entropy_of_labels():
    """All of these were undecided: labels were tried up to the number of all elements."""
    loss = symad.trace(entropy, [(3, 4), LABELS])
    assert symad.check(symad.trace(entropy, [(2, 3), LABELS[:2]])).status == "tested"
    assert symad.verify(loss, "z", gradient=program).status == "measured"
    assert symad.verify(loss, "z", gradient=lambda z, t: 3 * program(z, t)).status == "refuted"
    for label in range(4):
        wrong = lambda z, t, k=label: program(z, t) * (1 + 1e-3 * (t == k))[:, None]  # noqa: E731
        assert symad.verify(loss, "z", gradient=wrong).status == "refuted"


def test_single_positions_in_three_axes():
    scalars = [np.array(0)] * 3
    picked = symad.trace(lambda z, i, j, k: z[i, j, k], [(2, 3, 2), *scalars])
    known = symad.trace(
        lambda z, i, j, k: np.einsum(
            "abc,a,b,c->", z, 1.0 * (np.arange(2) == i), 1.0 * (np.arange(3) == j), 1.0 * (np.arange(2) == k)
        ),
        [(2, 3, 2), *scalars],
    )
    assert symad.equal(picked, known).status == "tested"


def test_elements_that_are_set_are_those_of_the_row():
    def written(z, i):
        y = z * 1
        y[0, i] = 5.0
        return y

    def known(z, i):
        return np.where((np.arange(2) == 0)[:, None] & (np.arange(3) == i)[None], 5.0, z)

    sides = (symad.trace(f, [(2, 3), np.array(0)]) for f in (written, known))
    assert symad.equal(*sides).status == "tested"
