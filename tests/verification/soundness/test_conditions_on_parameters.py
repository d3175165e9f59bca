"""Conditions on inputs that a derivative is not taken by: what is wrong where one holds is not called right.

Each case is a function z² where a condition on y holds, and z elsewhere, and a claim about its slope. Which
verdicts are right follows from the condition alone: a factor that is wrong where it holds is refuted or
undecided, and the right slope is decided, whether points meet the condition or not.
"""

import numpy as np
import pytest
import sympy as sp

import symad

x, y, z = sp.symbols("x y z", real=True)
whole = sp.Symbol("y", integer=True)
DECIDED = ("proved", "tested")

MET = {  # points are drawn there
    "a square": sp.Eq(y**2, 9),
    "a cubic": sp.Eq(y**3 - y, 6),
    "a large number": sp.Eq(y, 10**20),
    "a large integer": sp.Eq(whole, 5000),
    "a distance": sp.Abs(y - 1) <= 0,
    "no distance": ~(sp.Abs(y - 1) > 0),
    "a product": sp.Eq(x * y, 0),
    "a quotient": sp.Eq(y / 3, 1),
    "a sum": sp.Eq(x + y, 1),
    "a remainder": sp.Eq(sp.Mod(y, 3), 2),
    "two at once": sp.And(sp.Eq(x, 3), sp.Eq(y, 2)),
}
UNMET = {  # no float is there, or none is found
    "a fraction": sp.Eq(y, sp.Rational(1, 3)),
    "all but a fraction": sp.Ne(y, sp.Rational(1, 3)),
    "a root": sp.Eq(y, sp.sqrt(2)),
    "a logarithm": sp.Eq(sp.exp(y), 2),
    "two sides of one number": sp.And(y <= 1, y >= 1),
}


def chosen(there, elsewhere, condition):
    if isinstance(condition, sp.Ne):
        return sp.Piecewise((elsewhere, condition), (there, True))
    return sp.Piecewise((there, condition), (elsewhere, True))


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", [*MET, *UNMET])
def test_formulas(name):
    condition = {**MET, **UNMET}[name]
    function = chosen(z**2, z, condition)
    assert symad.verify(function, z, gradient=chosen(2 * z, 1, condition)).status in DECIDED
    for wrong in (chosen(5 * z, 1, condition), sp.Integer(1)):
        found = symad.verify(function, z, gradient=wrong)
        assert found.status == ("refuted" if name in MET else "undecided")
        assert name in MET or "no point was found" in found.entries[0].reason


def test_equal_branches_need_no_point():
    condition = sp.Eq(y, sp.Rational(1, 3))
    function = chosen(sp.sin(z) ** 2, 1 - sp.cos(z) ** 2, condition)
    assert symad.verify(function, z, gradient=sp.sin(2 * z)).status in DECIDED


@pytest.mark.thorough
def test_the_condition_may_be_written_in_another_way():
    third = sp.Rational(1, 3)
    function = chosen(z**2, z, sp.Eq(y, third))
    claim = sp.Piecewise((1, sp.Ne(y, third)), (2 * z, True))
    assert symad.verify(function, z, gradient=claim).status in DECIDED


def test_a_step_of_a_parameter_is_no_free_condition():
    """⌈3y⌉ − 1 is ⌊3y⌋ but where 3y is an integer, as at y = 1/3."""
    condition = sp.Eq(y, sp.Rational(1, 3))
    function = chosen(z**2 * sp.floor(3 * y), z, condition)
    claim = chosen(2 * z * (sp.ceiling(3 * y) - 1), 1, condition)
    assert symad.verify(function, z, gradient=claim).status not in DECIDED


@pytest.mark.parametrize(("slope", "status"), [(2 * z, DECIDED), (3 * z, ("refuted",))])
def test_a_domain_may_be_one_number_of_a_parameter(slope, status):
    assert symad.verify(z**y, z, gradient=slope, where=sp.Eq(y, 2)).status in status


def test_a_domain_of_one_number_of_what_is_differentiated_is_empty():
    found = symad.verify(z**2, z, gradient=2 * z, where=sp.Eq(z, 2))
    assert found.status == "undecided"


@pytest.mark.parametrize("bound", [12, 100])
def test_the_boundary_of_an_inequality_refutes_nothing(bound):
    function = sp.Piecewise((z**2, y >= bound), (z, True))
    claim = sp.Piecewise((2 * z, y > bound), (1, True))
    assert symad.verify(function, z, gradient=claim).status in DECIDED


# ---- arrays and programs -------------------------------------------------------------------------

VECTORS = {  # the condition of each element, and whether programs meet it
    "each its own number": (lambda y: y == np.arange(3), True),
    "all at once": (lambda y: (y == np.arange(3)).all(), True),
    "a remainder": (lambda y: y % 3 == 2, True),
    "a quotient": (lambda y: y / 3 == 1, True),
    "the sum": (lambda y: y.sum() == 3, True),
    "no length": (lambda y: (y**2).sum() == 0, True),
    "no size": (lambda y: np.abs(y).max() <= 0, True),
    "an irrational number": (lambda y: np.exp(y) == 2, False),
}


def selected(condition, there, elsewhere):
    return lambda z, y: np.where(condition(y), there(z), elsewhere(z)) + 0 * z


@pytest.mark.thorough
@pytest.mark.parametrize("name", VECTORS)
def test_vectors_and_programs(name):
    condition, met = VECTORS[name]
    one = np.ones_like
    function = symad.trace(
        lambda z, y: selected(condition, lambda z: z**2, lambda z: z)(z, y).sum(), [(3,), (3,)]
    )
    right, wrong = (
        selected(condition, lambda z, k=k: k * z, lambda z: one(z) if isinstance(z, np.ndarray) else 1.0)
        for k in (2, 5)
    )
    shapes = [(3,), (3,)]
    assert symad.verify(function, wrt=[0], gradient=symad.trace(right, shapes)).status in DECIDED
    assert symad.verify(function, wrt=[0], gradient=symad.trace(wrong, shapes)).status not in DECIDED
    for program, status in ((right, "measured"), (wrong, "refuted")):
        found = symad.verify(function, wrt=[0], gradient=program, hostile=False)
        assert found.status == (status if met else "undecided")


@pytest.mark.thorough
def test_one_class_of_very_many():
    count = 1500
    shapes = [(1, count), (1,)]
    function = symad.trace(lambda z, y: (z * (y[:, None] == np.arange(count))).sum(), shapes)

    def slope(factor):
        return lambda z, y: np.where(y == 1200, factor, 1.0)[:, None] * (y[:, None] == np.arange(count))

    right, wrong = (
        symad.verify(function, wrt=[0], gradient=symad.trace(slope(k), shapes)).status for k in (1.0, 2.0)
    )
    assert right in DECIDED
    assert wrong not in (*DECIDED, "measured")


p = sp.Symbol("p", positive=True)


@pytest.mark.parametrize("base, where", [(p, None), (y, y > 0), (y, y >= sp.Rational(1, 8))])
def test_what_no_point_of_the_domain_meets_leaves_nothing_open(base, where):
    """The slope of b^z by z has a branch at b = 0, which a positive b does not have."""
    options = {} if where is None else {"where": where}
    assert symad.verify(base**z, z, gradient=base**z * sp.log(base), **options).status in DECIDED
    wrong = symad.verify(base**z, z, gradient=base**z * sp.log(base + 1), **options)
    assert wrong.status == "refuted"


def test_what_the_domain_has_is_not_left_out():
    """1/3 is in the domain, but no point is there; so it is with another input in the condition."""
    third = sp.Rational(1, 3)
    function = chosen(z**2, z, sp.Eq(y, third))
    assert symad.verify(function, z, gradient=1, where=y > 0).status not in DECIDED
    assert symad.verify(function, z, gradient=1, where=y >= third).status not in DECIDED
    assert symad.verify(function, z, gradient=1, where=2 * y > 1).status in DECIDED
    assert symad.verify(chosen(z**2, z, sp.Eq(y, x)), z, gradient=1, where=y > 0).status not in DECIDED
