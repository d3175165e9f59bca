"""Extremes along axes: proved for many elements; ties, wrong ways and orders that decide nothing are not."""

from itertools import product

import numpy as np
import pytest
import sympy

import symad
from symad.verification.checker.rules import Values
from symad.verification.checker.terms import Terms

x, y, z = sympy.symbols("x y z", real=True)

EXTREMES = {
    "the largest of nine, squared": (lambda a: np.max(a) ** 2, (9,)),
    "the smallest of each row": (lambda a: np.sum(np.min(a, axis=1) ** 2), (2, 5)),
    "max-pooling by windows of four": (
        lambda a: np.sum(np.max(a.reshape(2, 2, 2, 2), axis=(1, 3)) ** 3), (4, 4)),
    "a softmax, shifted by hand": (
        lambda a: np.sum(np.exp(a - np.max(a)) ** 2) / np.sum(np.exp(a - np.max(a))) ** 2, (3,)),
    "the range": (lambda a: np.max(a) - np.min(a), (6,)),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("name", EXTREMES)
def test_derivatives_of_extremes_are_proved(name):
    function, shape = EXTREMES[name]
    assert symad.check(symad.trace(function, inputs=[shape]), seed=1).status == "proved"


def hits(a, weights):
    """2 max(a) times weights of the places of the maximum."""
    return 2 * np.max(a) * weights(a)


WRONG = {
    "all elements": lambda a: np.where(a == a, 1.0, 0.0),
    "the smallest": lambda a: np.where(a == np.min(a), 1.0, 0.0),
    "the largest of the first four": lambda a: np.where(a == np.max(a[:4]), 1.0, 0.0),
    "the largest and a little of all": lambda a: np.where(a == np.max(a), 1.0, 1e-6),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", WRONG)
def test_wrong_derivatives_of_extremes_are_refuted(name):
    f = symad.trace(lambda a: np.max(a) ** 2, inputs=[(5,)])
    candidate = symad.trace(lambda a: hits(a, WRONG[name]), inputs=[(5,)])
    assert symad.verify(f, gradient=candidate, seed=1).status == "refuted"


TURNED = {
    "clipped values, equal where both are 0": (sympy.Max(x, 0), sympy.Max(y, 0)),
    "extremes with an argument in common": (sympy.Max(x, y), sympy.Max(x, z)),
    "absolute values of one sum": (sympy.Abs(x) + x, sympy.Abs(y) + y),
}


@pytest.mark.parametrize("name", TURNED)
def test_an_order_is_turned_only_where_both_sides_are_equal_on_no_open_set(name):
    a, b = TURNED[name]
    less = sympy.Piecewise((1, a < b), (0, True))
    turned = 1 - sympy.Piecewise((1, b < a), (0, True))
    assert symad.equal(less, turned, seed=1).status == "refuted"


def test_an_order_of_independent_extremes_is_turned():
    w = sympy.Symbol("w", real=True)
    a, b = sympy.Max(x, y), sympy.Max(z, w)
    less = sympy.Piecewise((1, a < b), (0, True))
    assert symad.equal(less, 1 - sympy.Piecewise((1, b < a), (0, True)), seed=1).status == "proved"


@pytest.mark.parametrize("kind", ["max", "min"])
def test_an_argument_is_the_extreme_where_comparisons_fail_at_ties_too(kind):
    """[a = max(max(a, b), max(c, d))] = Π (1 − [...]) for all orders of four numbers, equal ones included."""
    terms, best = Terms(), max if kind == "max" else min
    leaves = [terms.made("variable", (None, (k,))) for k in range(4)]
    nest = [terms.call(kind, *leaves[:2]), terms.call(kind, *leaves[2:])]
    top = terms.call(kind, *nest)
    for place, leaf in enumerate(leaves):
        smaller = Values({}).smaller(leaf, top, kind)
        assert smaller is not None and len(smaller) == 2
        for numbers in product(range(3), repeat=4):
            values = dict(zip(leaves, numbers, strict=True))
            values |= {t: best(values[t.args[0]], values[t.args[1]]) for t in nest}
            holds = all(not values[t.args[0]] < values[t.args[1]] for t in smaller)
            assert holds == (numbers[place] == best(numbers))
    assert Values({}).smaller(terms.made("variable", (None, (9,))), top, kind) is None


Max, Min, exp = sympy.Max, sympy.Min, sympy.exp
k = sympy.Symbol("k", integer=True, positive=True)
MONOTONE = {
    "an odd power": (Max(x**3, y**3), Max(x, y) ** 3, Min(x, y) ** 3),
    "exponentials": (Max(exp(x), exp(y)), exp(Max(x, y)), exp(Min(x, y))),
    "a falling function": (Max(exp(-x), exp(-y)), exp(-Min(x, y)), exp(-Max(x, y))),
    "a size in an exponent": (exp(-sympy.Abs(x)), Min(exp(x), exp(-x)), Max(exp(x), exp(-x))),
    "angles": (Min(2 * sympy.atan(x), 2 * sympy.atan(y)), 2 * sympy.atan(Min(x, y)), 2 * sympy.atan(x)),
    "an even power": (Max(x**2, y**2), Max(sympy.Abs(x), sympy.Abs(y)) ** 2, Max(x, y) ** 2),
    "powers of 0": (sympy.Pow(0, k, evaluate=False), 0 * x, 1 + 0 * x),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", MONOTONE)
def test_increasing_functions_keep_the_larger_one(name):
    left, same, other = MONOTONE[name]
    assert symad.equal(left, same, seed=1).status == ("undecided" if "even" in name else "tested")
    assert symad.equal(left, other, seed=1).status == "refuted"
