"""The maximum of a sequence: exact weights, their gradient, and what training finds."""

import itertools

import numpy as np

import symad
from symad.models.layers import maximum
from symad.models.layers.parameters import trace_model
from tests.models.reference import agrees_with_torch

rng = np.random.default_rng(0)


def test_exact_weights_on_every_sequence_of_small_integers():
    x = np.array(list(itertools.product(range(-3, 4), repeat=5)), dtype=float).T
    np.testing.assert_array_equal(maximum.apply(maximum.exact_parameters(), x), x.max(axis=0))


def test_exact_weights_on_large_integers():
    x = rng.integers(-(10**6), 10**6, (5, 10000)).astype(float)
    np.testing.assert_array_equal(maximum.apply(maximum.exact_parameters(), x), x.max(axis=0))


def test_exact_weights_are_a_minimum():
    p, x = maximum.exact_parameters(), maximum.batch(rng)
    graph = symad.value_and_gradient(trace_model(maximum.squared_loss, maximum.SHAPES, x.shape), list(p))
    value, *slopes = graph(*p.values(), x)
    assert value < 1e-30
    assert max(np.abs(s).max() for s in slopes) < 1e-14


def test_torch():
    def states(torch, p, x):
        h = torch.zeros(x.shape[1], 6, dtype=torch.float64)
        for row in x:
            h = torch.relu(h @ p["W_rec"].T + row[:, None] * p["W_in"])
        return h @ p["W_out"] - x.max(dim=0).values

    x = maximum.batch(rng, 7)
    agrees_with_torch(maximum.squared_loss, maximum.SHAPES, lambda t, p, x: (states(t, p, x) ** 2).mean(), x)
    agrees_with_torch(maximum.absolute_loss, maximum.SHAPES, lambda t, p, x: states(t, p, x).abs().mean(), x)
