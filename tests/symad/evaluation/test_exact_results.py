"""Graphs at Python integers: exact where every output is a rational function of them, floats elsewhere."""

import copy
import math
import pickle
import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import sympy as sp

import symad

x, y = sp.symbols("x y", real=True)


def as_fraction(number):
    return Fraction(int(number.p), int(number.q))


def rational_expression(rng, depth):
    if depth == 0:
        return rng.choice([x, y, sp.Rational(rng.randint(-5, 5), rng.randint(1, 7))])
    a, b = rational_expression(rng, depth - 1), rational_expression(rng, depth - 1)
    made = {
        "sum": lambda: a + b,
        "product": lambda: a * b,
        "quotient": lambda: a / (1 + b**2),
        "power": lambda: (a**2 + 1) ** rng.randint(-3, 3),
        "maximum": lambda: sp.Max(a, b),
        "minimum": lambda: sp.Min(a, b),
        "size": lambda: sp.Abs(a),
        "floor": lambda: sp.floor(a),
        "pieces": lambda: sp.Piecewise((a, x > y), (b, True)),
    }
    return made[rng.choice(sorted(made))]()


@pytest.mark.parametrize("seed", range(40))
def test_rational_functions_at_integers_are_sympys_numbers(seed):
    rng = random.Random(seed)
    f = rational_expression(rng, 4)
    at = {x: rng.randint(-10**12, 10**12), y: rng.randint(-10, 10)}
    value = symad.trace(f, inputs=[x, y])(*at.values())
    assert isinstance(value, (int, Fraction)) and not isinstance(value, bool)
    assert value == as_fraction(sp.Rational(sp.sympify(f).subs(at)))


@pytest.mark.parametrize(
    "f", [x**3 / y + sp.Rational(1, 3), (x - y) / (x**2 + y**4), x**-3 * y, (x / 7) ** 9 - y / 3]
)
def test_derivatives_at_integers_are_sympys_numbers(f):
    at = {x: 2, y: 3}
    for found, symbol in zip(symad.gradient(f, (x, y))(2, 3), (x, y), strict=True):
        assert isinstance(found, (int, Fraction))
        assert found == as_fraction(f.diff(symbol).subs(at))


@pytest.mark.thorough
def test_long_sums_stay_exact():
    variables = sp.symbols("v:300")
    f = sum(100 * (b - a**2) ** 2 + (1 - a) ** 2 for a, b in pairwise(variables))
    at = [10**9 + k for k in range(300)]
    value = symad.trace(f, inputs=variables)(*at)
    assert value == sum(100 * (b - a**2) ** 2 + (1 - a) ** 2 for a, b in pairwise(at))


@pytest.mark.parametrize(("f", "at", "value"), [
    (sp.sqrt(x) + x / 3, 2, math.sqrt(2) + 2 / 3),
    (sp.exp(x) / 3, 0, 1 / 3),
    (x * 0.1, 3, 3 * 0.1),  # a float is rounded
    (1 / (x - 2), 2, math.inf),  # no fraction
    (x**100000 / 3, 2, math.inf),  # too long to be computed exactly
])  # fmt: skip
def test_other_values_at_integers_are_floats(f, at, value):
    found = symad.trace(f, inputs=[x])(at)
    assert isinstance(found, float) and found == pytest.approx(value, rel=1e-15)


def test_a_branch_that_is_not_taken_may_divide_by_zero():
    f = sp.Piecewise((1 / x, sp.Ne(x, 0)), (y / 3, True))
    assert symad.trace(f, inputs=[x, y])(0, 2) == Fraction(2, 3)


def test_exact_results_enter_numpy_and_graphs():
    quotient = symad.trace(x / y)
    third = quotient(1, 3)
    assert third == Fraction(1, 3) and repr(third) == "Fraction(1, 3)"
    assert quotient(third, 5) == Fraction(1, 15)
    assert np.sin(third) == math.sin(1 / 3)
    assert np.array([third, 2.0]).dtype == np.float64
    np.testing.assert_allclose(third * np.ones(2), [1 / 3, 1 / 3], rtol=1e-15)
    assert float(np.asarray(quotient(10**400, 3))) == math.inf
    assert pickle.loads(pickle.dumps(third)) == copy.deepcopy(third) == third
