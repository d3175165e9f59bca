"""Softmax by its maximum, with masks: equal whatever the maximum is; no order of elements is looked at."""

import numpy as np
import pytest

import symad

ROWS, WIDTH = 3, 2


def by_maximum(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def masked(q, k, v):
    lower = np.tril(np.ones((ROWS, ROWS))) > 0
    return by_maximum(np.where(lower, q @ k.T / np.sqrt(WIDTH), -np.inf)) @ v


def masked_by_an_input(q, k, v, m):
    return by_maximum(np.where(m > 0, q @ k.T, -np.inf)) @ v


SHAPES = [(ROWS, WIDTH)] * 3


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("f", "shapes"), [(masked, SHAPES), (masked_by_an_input, [*SHAPES, (ROWS, ROWS)])], ids=["mask", "input"]
)
def test_attention_with_a_mask_is_decided(f, shapes):
    made = symad.check(symad.trace(f, shapes))
    assert made.status in ("proved", "tested"), made
    assert made.steps < 5_000_000


def plain(z):
    return (by_maximum(z) * np.arange(3)).sum()


def slope(z, factor=1.0, chosen=0.0):
    p = by_maximum(z)
    return factor * p * (np.arange(3) - (p * np.arange(3)).sum()) + chosen * (z - z.max())


def test_a_gradient_of_a_softmax_by_its_maximum():
    f = symad.trace(plain, [(3,)])
    assert symad.verify(f, gradient=symad.trace(slope, [(3,)])).status in ("proved", "tested")
    for options in ({"factor": 1.001}, {"chosen": 1e-3}):
        wrong = symad.trace(lambda z, o=options: slope(z, **o), [(3,)])
        assert symad.verify(f, gradient=wrong).status == "refuted"


DIFFERENT = {
    "weights": (
        lambda z: np.where(z == z.max(), z, 0.0).sum(),
        lambda z: np.where(z == z.max(), 0.0, z).sum(),
    ),
    "maximum": (lambda z: z.max() - z[0], lambda z: z.max() - z[1]),
    "infinite branch": (
        lambda z: np.exp(np.where(z >= z.max(), z, -np.inf)).sum(),
        lambda z: np.exp(np.where(z >= z.max(), -np.inf, z)).sum(),
    ),
    "minimum": (lambda z: z.max(), lambda z: z.min()),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_by_its_choice_is_refuted(name):
    left, right = (symad.trace(f, [(3,)]) for f in DIFFERENT[name])
    assert symad.equal(left, right).status == "refuted"
