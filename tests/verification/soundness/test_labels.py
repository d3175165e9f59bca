"""Branches that are chosen by labels: a derivative that is wrong for one label is refuted."""

import numpy as np
import pytest
import sympy as sp

import symad

x, y, z = sp.symbols("x y z", real=True)
whole = sp.Symbol("y", integer=True)


def chosen(value, other, condition=None):
    return sp.Piecewise((value, sp.Eq(y, 1) if condition is None else condition), (other, True))


FORMULAS = {
    "one label": (chosen(z**2, z), chosen(2 * z, 1), chosen(5 * z, 1)),
    "all but one": (chosen(z**2, z, sp.Ne(y, 3)), chosen(2 * z, 1, sp.Ne(y, 3)), 2 * z),
    "an integer": (chosen(z**2, z, sp.Eq(whole, 7)), chosen(2 * z, 1, sp.Eq(whole, 7)), 1),
    "two labels": (chosen(z**2, z, sp.Eq(x, y)), chosen(2 * z, 1, sp.Eq(x, y)), 1),
    "Kronecker's": (z**2 * sp.KroneckerDelta(y, 3) + z, 2 * z * sp.KroneckerDelta(y, 3) + 1, 1),
    "a label beside one of two": (
        chosen(chosen(z**2, z**3, sp.Eq(x, y)), z, sp.Eq(y, 3)),
        chosen(chosen(2 * z, 3 * z**2, sp.Eq(x, y)), 1, sp.Eq(y, 3)),
        chosen(chosen(4 * z, 3 * z**2, sp.Eq(x, y)), 1, sp.Eq(y, 3)),
    ),
    "where a power has another form": (chosen(z**y, z**2), chosen(1, 2 * z), chosen(2, 2 * z)),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name):
    function, right, wrong = FORMULAS[name]
    assert symad.verify(function, z, gradient=right).status == "proved"
    assert symad.verify(function, z, gradient=wrong).status == "refuted"


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def cross_entropy(z, y):
    return np.log(np.exp(z).sum(axis=1)).sum() - (z * (y[:, None] == np.arange(4))).sum()


def cross_entropy_slope(z, y, of_three=1.0):
    return (softmax(z) - (y[:, None] == np.arange(4))) * np.where(y == 3, of_three, 1.0)[:, None]


def with_boolean_index(z, y, factor=2.0):
    slope, at = np.ones_like(z), y != 0
    slope[at] = factor * z[at]
    return slope


PROGRAMS = {  # function, shapes, the right slope by z, a wrong one
    "a number": (
        lambda z, y: np.where(y == 1, z**2, z), [(), ()],
        lambda z, y: np.where(y == 1, 2 * z, 1.0), lambda z, y: np.where(y == 1, 5 * z, 1.0),
    ),
    "classes": (
        lambda z, y: np.log(np.where(y == 1, sigmoid(z), sigmoid(-z))).sum(), [(3,), (3,)],
        lambda z, y: np.where(y == 1, sigmoid(-z), -sigmoid(z)),
        lambda z, y: np.where(y == 1, 3 * sigmoid(-z), -sigmoid(z)),
    ),
    "one of four classes": (
        cross_entropy, [(3, 4), (3,)], cross_entropy_slope, lambda z, y: cross_entropy_slope(z, y, 2.0),
    ),
    "the last of a hundred classes": (
        lambda z, y: (z * (y[:, None] == np.arange(100))).sum(), [(3, 100), (3,)],
        lambda z, y: 1.0 * (y[:, None] == np.arange(100)),
        lambda z, y: np.where(y == 99, 2.0, 1.0)[:, None] * (y[:, None] == np.arange(100)),
    ),
    "padding": (
        lambda z, y: np.where(y != -100, z**2, 0).sum(), [(3,), (3,)],
        lambda z, y: np.where(y != -100, 2 * z, 0), lambda z, y: 2 * z,
    ),
    "a mask": (
        lambda z, m: np.where(m, z**2, z).sum(), [(3,), np.array([True, False, True])],
        with_boolean_index, lambda z, m: with_boolean_index(z, m, 5.0),
    ),
    "even labels": (
        lambda z, y: np.where(y % 2 == 0, z**2, z), [(), ()],
        lambda z, y: np.where(y % 2 == 0, 2 * z, 1.0), lambda z, y: np.where(y % 2 == 0, 5 * z, 1.0),
    ),
    "pairs of one class": (
        lambda z, y: ((y[:, None] == y) * np.outer(z, z)).sum(), [(3,), (3,)],
        lambda z, y: 2 * (y[:, None] == y) @ z, lambda z, y: 2 * z,
    ),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    function, shapes, right, wrong = PROGRAMS[name]
    graph = symad.trace(function, shapes)
    assert symad.verify(graph, wrt=[0], gradient=right, hostile=False).status == "measured"
    assert symad.verify(graph, wrt=[0], gradient=wrong, hostile=False).status == "refuted"


def beside_its_largest(z, y):
    return np.where(y == 2, z, 0).sum() + z.max()


@pytest.mark.parametrize(("slope", "status"), [(1, "proved"), (7, "refuted")])
def test_what_the_checker_derives_itself_is_looked_at_for_labels(slope, status):
    graph = symad.trace(beside_its_largest, [(3,), ()])
    claimed = symad.trace(lambda z, y: 1.0 * (z == z.max()) + np.where(y == 2, slope, 0), [(3,), ()])
    assert symad.verify(graph, wrt=[0], gradient=claimed).status == status


def test_what_is_differentiated_is_no_label():
    """A function of y that jumps at one y has no derivative there: nothing is claimed of that point."""
    assert symad.verify(chosen(z, y), y, gradient=chosen(7, 1)).status == "proved"
