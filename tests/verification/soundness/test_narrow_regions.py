"""Differences between two close boundaries, or only near one point, are searched for and found."""

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.graph import topological
from symad.verification.values.point_set import PointSet
from symad.verification.values.regions import region_around

x = sp.Symbol("x", real=True)

NARROW = {
    "a branch of width 1": (sp.Piecewise((x**2, (x > 100) & (x < 101)), (x, True)), lambda v: 1.0),
    "a bump": (sp.exp(-1000 * (x - 5) ** 2), lambda v: 0.0),
    "a bump on a slope": (x + sp.exp(-1000 * (x - 5) ** 2), lambda v: 1.0),
    "a steep step": (sp.tanh(1000 * (x - 5)), lambda v: 0.0),
}


@pytest.mark.parametrize("name", NARROW)
def test_a_program_that_forgets_it_is_refuted(name):
    f, g = NARROW[name]
    assert symad.verify(f, x, gradient=g, hostile=False).status == "refuted"
    right = sp.lambdify(x, sp.diff(f, x), modules=["scipy", "numpy"])
    assert symad.verify(f, x, gradient=lambda v: float(right(v)), hostile=False).status == "measured"


def inside(low, high):
    return lambda a: np.where((a > low) & (a < high), a, 0).sum()


DIFFERENT = {
    "far out": (sp.Piecewise((x + 1, (x > 10**9) & (x < 10**9 + 1)), (x, True)), x),
    "one floor": (sp.Piecewise((1, sp.Eq(sp.floor(x), 123456)), (0, True)), sp.Integer(0)),
    "an element": tuple(
        symad.trace(f, [(5,)]) for f in (inside(123.1234567, 123.1234568), lambda a: 0 * a.sum())
    ),
    "a determinant": tuple(
        symad.trace(f, [(2, 2)])
        for f in (lambda A: np.where(np.abs(np.linalg.det(A) - 50) < 1e-3, 1, 0), lambda A: 0 * A.sum())
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_formulas_that_differ_there_are_refuted(name):
    assert symad.equal(*DIFFERENT[name]).status == "refuted"


def test_turning_points_lie_on_both_sides_of_each_boundary():
    f = symad.trace(lambda v: np.where((v > 7.25) & (v < 7.5), v, -v), [()])
    found = sorted(next(iter(p.values())) for p in PointSet(f.output_nodes).turning())
    assert any(7.25 < v < 7.5 for v in found)
    assert any(7 < v < 7.25 for v in found)
    assert any(7.5 < v < 8 for v in found)


def test_a_number_is_not_close_to_infinity():
    """np.round asks whether its argument is finite."""
    f = symad.trace(lambda v: np.where(np.abs(v) < np.inf, v, 0), [()])
    (v,) = f.input_nodes
    assert region_around(topological(f.output_nodes), {v: Fraction(7, 3)}) is not None
    wrong = symad.equal(symad.trace(np.round, [()]), symad.trace(np.floor, [()]))
    assert wrong.status == "refuted"
