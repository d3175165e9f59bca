"""Extremes, medians and clips against flat lists of pieces, with And and Or; near misses beside them."""

import numpy as np
import pytest
from sympy import Abs, And, Max, Min, Not, Or, Piecewise, diff, exp, symbols

import symad
from symad.verification.rewriting.restated.by_elements import by_one_element

a, b, c, d = symbols("a b c d", real=True)


def between(u, v, w):
    """Whether v is between u and w."""
    return Or(And(u <= v, v <= w), And(w <= v, v <= u))


LARGEST = [(a, And(a >= b, a >= c)), (b, b >= c), (c, True)]
MEDIAN = [(a, between(b, a, c)), (b, between(a, b, c)), (c, True)]

TRUE = {
    "largest of three": (Max(a, b, c), LARGEST),
    "smallest of three": (Min(a, b, c), [(a, And(a <= b, a <= c)), (b, b <= c), (c, True)]),
    "not": (Max(a, b, c), [(c, Not(Or(a >= c, b >= c))), (a, a >= b), (b, True)]),
    "of sums": (Max(-b, 2 * b, a), [(a, And(a >= -b, a >= 2 * b)), (-b, b < 0), (2 * b, True)]),
    "median": (Max(Min(a, b), Min(Max(a, b), c)), MEDIAN),
    "clip": (Min(Max(a, b), b + 1), [(a, And(a > b, a < b + 1)), (b, a <= b), (b + 1, True)]),
    "shrinkage": (Max(Abs(a) - 1, 0), [(a - 1, a > 1), (0, And(a < 1, a > -1)), (-a - 1, True)]),
    "exponential": (exp(Max(a, b - c)), [(exp(a), a + c > b), (exp(b - c), True)]),
}

FALSE = {
    "one condition less": (Max(a, b, c), [(a, a >= b), (b, b >= c), (c, True)]),
    "or for and": (Max(a, b, c), [(a, Or(a >= b, a >= c)), (b, b >= c), (c, True)]),
    "another order": (Max(a, b, c), [(a, And(a >= b, a >= c)), (b, b <= c), (c, True)]),
    "a threshold": (Max(a, b, c), [(a, And(a >= b, a >= c + 1)), (b, b >= c), (c, True)]),
    "exponential": (exp(Max(3 * a, b - c)), [(exp(3 * a), 3 * a > b), (exp(b - c), True)]),
}


def slopes(pieces, variables):
    """The derivatives of each piece by hand: its condition is kept."""
    return [Piecewise(*[(diff(e, v), condition) for e, condition in pieces]) for v in variables]


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", TRUE)
def test_values_and_gradients_are_decided(name):
    function, pieces = TRUE[name]
    variables = sorted(function.free_symbols, key=str)
    assert symad.equal(function, Piecewise(*pieces)).status in ("proved", "tested")
    certificate = symad.verify(function, variables, gradient=slopes(pieces, variables))
    assert certificate.status in ("proved", "tested"), str(certificate)


@pytest.mark.parametrize("name", FALSE)
def test_near_misses_are_refuted(name):
    function, pieces = FALSE[name]
    assert symad.equal(function, Piecewise(*pieces)).status == "refuted"


@pytest.mark.thorough
def test_four_arguments():
    """The difference of a and the largest of the others comes as a multiple of 4."""
    flat = Piecewise((a, And(a >= b, a >= c, a >= d)), (b, And(b >= c, b >= d)), (c, c >= d), (d, True))
    assert symad.equal(Max(a, b, c, d), flat).status == "tested"
    wrong = Piecewise((a, And(a >= b, a >= d)), (b, And(b >= c, b >= d)), (c, c >= d), (d, True))
    assert symad.equal(Max(a, b, c, d), wrong).status == "refuted"


ARRAYS = {
    "largest of three": (
        lambda u, v, w: np.maximum(np.maximum(u, v), w).sum(),
        lambda u, v, w: np.select([(u >= v) & (u >= w), v >= w], [u, v], w).sum(),
        lambda u, v, w: np.select([(u >= v) & (u >= w), v <= w], [u, v], w).sum(),
    ),
    "shrinkage": (
        lambda u, v, w: (np.sign(u) * np.maximum(np.abs(u) - 1, 0)).sum() * v.sum(),
        lambda u, v, w: np.where(u > 1, u - 1, np.where(u < -1, u + 1, 0)).sum() * v.sum(),
        lambda u, v, w: np.where(u > 1, u - 1, np.where(u < 1, u + 1, 0)).sum() * v.sum(),
    ),
    "a scalar": (
        lambda u, v, w: np.maximum(u * v[0], w[1]),
        lambda u, v, w: np.where(u * v[0] > w[1], u * v[0], w[1]),
        lambda u, v, w: np.where(u * v[1] > w[1], u * v[0], w[1]),
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_many_elements(name):
    """The signs of one element are few; those of 24 together were too many."""
    function, same, other = [symad.trace(f, [(24,)] * 3) for f in ARRAYS[name]]
    certificate = symad.equal(function, same)
    assert certificate.status in ("proved", "tested"), str(certificate)
    assert certificate.steps < 4_000_000
    assert symad.equal(function, other).status == "refuted"


@pytest.mark.thorough
def test_elements_that_differ_are_not_taken_for_one():
    one = symad.trace(lambda u, v: np.maximum(u, v * np.arange(5)).sum(), [(5,)] * 2)
    two = symad.trace(lambda u, v: np.maximum(u, v * (np.arange(5) % 4)).sum(), [(5,)] * 2)
    assert symad.equal(one, two).status == "refuted"
    flipped = symad.trace(lambda u, v: np.maximum(u, v[::-1]), [(5,)] * 2)
    plain = symad.trace(lambda u, v: np.maximum(u, v), [(5,)] * 2)
    assert symad.equal(flipped, plain).status == "refuted"
    assert by_one_element((flipped.output_nodes[0], plain.output_nodes[0])) is None


def test_sums_of_no_elements_are_decided():
    f = symad.trace(lambda x: np.maximum(x, 0).sum(), [(0,)])
    g = symad.trace(lambda x: (x + abs(x)).sum() / 2, [(0,)])
    assert symad.equal(f, g, seed=1).status in ("proved", "tested")
