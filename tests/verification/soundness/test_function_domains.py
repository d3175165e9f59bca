"""A claim about a derivative is made where the function has values; scans and arrays without elements."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.core.graph import Graph
from symad.verification.claimed_domain import implied_domain

x, y = sp.symbols("x y", real=True)

RIGHT = {
    "log": (sp.log(x), sp.Piecewise((1 / x, x > 0), (7, True))),
    "log, by a size": (sp.log(x), 1 / sp.Abs(x)),
    "atanh": (sp.atanh(x), sp.Piecewise((1 / (1 - x**2), sp.Abs(x) < 1), (7, True))),
    "a root": (x ** sp.Rational(3, 2) + x, sp.Rational(3, 2) * sp.sqrt(sp.Abs(x)) + 1),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_a_derivative_is_outside_of_the_domain_refutes_nothing(name):
    f, candidate = RIGHT[name]
    assert symad.verify(f, x, gradient=candidate).status != "refuted"
    assert symad.verify(f, x, gradient=2 * candidate).status == "refuted"
    program = sp.lambdify(x, candidate, "numpy")
    assert symad.verify(f, x, gradient=program, hostile=False).status == "measured"
    doubled = symad.verify(f, x, gradient=lambda v: 2 * program(v), hostile=False)
    assert doubled.status == "refuted"


def test_rows_of_a_jacobian_have_domains_of_their_own():
    f = [sp.log(x), x]
    wrong = sp.Matrix([[1 / x], [sp.sign(x)]])
    assert symad.verify(f, x, jacobian=wrong).status == "refuted"
    outside = symad.verify(f, x, jacobian=sp.Matrix([[1 / sp.Abs(x)], [1]]))
    assert {e.status for e in outside.entries} <= {"undecided", "proved", "tested"}


def test_formulas_without_kinks_are_looked_at_outside_as_well():
    """Ten coordinates: hardly any point lies inside, and a wrong formula is wrong everywhere."""
    v = sp.symbols("v0:10", real=True)
    f = sp.log(1 - sum(a**2 for a in v))
    right = [-2 * a / (1 - sum(b**2 for b in v)) for a in v]
    assert symad.verify(f, v, gradient=right).status in ("proved", "tested")
    assert symad.verify(f, v, gradient=[*right[:-1], 2 * right[-1]]).status == "refuted"


def states(count, factor=1):
    return symad.trace(
        lambda h, xs: factor * np.sum(functions.scan(lambda c, u: np.tanh(c + u), h, xs)), [(), (count,)]
    )


def test_a_scan_of_no_steps_has_no_states():
    assert symad.check(states(0)).status == "proved"
    assert symad.equal(states(0), states(0, 2)).status == "proved"  # a sum of nothing
    assert states(0)(0.5, np.zeros(0)) == 0
    value, h_bar, xs_bar = symad.value_and_gradient(states(0))(0.5, np.zeros(0))
    assert value == 0 and h_bar == 0 and xs_bar.shape == (0,)


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_nothing_is_claimed_of_no_elements(shape):
    f = symad.trace(lambda a: (a**2).sum(), [shape])
    for made in (symad.check(f), symad.equal(symad.gradient(f), symad.gradient(f))):
        assert made.status == "undecided" and made.entries[0].reason.startswith("nothing is claimed: ")
    both = symad.trace(lambda a, y: (a**2).sum() + y**3, [shape, ()])
    for made in (symad.check(both), symad.equal(symad.gradient(both), symad.gradient(both, mode="forward"))):
        assert made.status == "proved" and "nothing is claimed of what has no elements" in str(made)
        assert symad.Certificate.from_json(made.to_json()).recheck().status == "proved"


def test_a_scan_of_any_number_of_steps_is_no_other():
    steps = sp.Symbol("T", integer=True, positive=True)
    assert symad.equal(states(steps), states(steps)).status == "proved"
    assert symad.equal(states(steps), states(steps, 2)).status == "refuted"
    few = symad.trace(lambda xs: xs.sum() * (1 + (xs.shape[0] - 2) * (xs.shape[0] - 3)), [(steps,)])
    total = symad.trace(lambda xs: functions.fold(lambda c, u: c + u, np.zeros(()), xs), [(steps,)])
    assert symad.equal(few, total).status == "refuted"


INSIDE = {
    "a logarithm": (sp.log(x), 1 / sp.Abs(x)),
    "of a difference": (sp.log(1 - x) + sp.sqrt(x + 5), 1 / (2 * sp.sqrt(sp.Abs(x + 5))) - 1 / sp.Abs(1 - x)),
    "an inverse sine": (sp.asin(x) + sp.log(x), 1 / sp.Abs(x) + 1 / sp.sqrt(sp.Abs(1 - x**2))),
}


@pytest.mark.parametrize("name", INSIDE)
def test_a_claim_is_decided_on_the_domain_of_its_function(name):
    f, candidate = INSIDE[name]
    certificate = symad.verify(f, x, gradient=candidate, seed=1)
    assert certificate.status == "tested"
    assert certificate.entries[0].claim.endswith(": elsewhere the function has no value")
    (claim,) = certificate.comparisons
    assert claim.domain is None  # it is the claim that was made
    wrong = candidate + sp.Piecewise((1, (x > sp.Rational(1, 4)) & (x < sp.Rational(1, 2))), (0, True))
    assert symad.verify(f, x, gradient=wrong, seed=1).status == "refuted"


@pytest.mark.parametrize("f", [sp.sqrt(sp.Max(x, 0)), sp.atan(sp.log(sp.Max(x, 0))), sp.Max(x, 0) ** 1.5 + x])
def test_the_boundary_of_a_domain_may_be_an_open_set(f):
    """On x < 0 the argument is 0, where the function has a value, or -∞ from which it returns."""
    domain, _ = implied_domain(symad.trace(f, [x]).output_nodes)
    holds = Graph(symad.trace(f, [x]).input_nodes, (domain,))
    assert [float(holds(v)) for v in (-2.0, 0.5)] == [1, 1]
    domain, words = implied_domain(symad.trace(sp.log(x) * f, [x]).output_nodes)
    assert float(Graph(symad.trace(f, [x]).input_nodes, (domain,))(-2.0)) == 0 and words.endswith("x > 0")


def test_the_domain_of_a_part_is_not_that_of_the_function():
    """A branch, another output or an element that is not read: values outside of x > 0 count."""
    branch = sp.Piecewise((sp.log(x), x > 0), (-x, True))
    assert symad.verify(branch, x, gradient=1 / sp.Abs(x), seed=1).status == "refuted"
    outputs = [sp.log(x), x]
    assert symad.verify(outputs, x, jacobian=[[1 / sp.Abs(x)], [x / sp.Abs(x)]], seed=1).status == "refuted"
    element = symad.trace(lambda v: np.log(v)[0], [(2,)])
    wrong = symad.trace(lambda v: np.stack([1 / np.abs(v[0]), np.where(v[1] < 0, 7.0, 0.0)]), [(2,)])
    assert symad.verify(element, gradient=wrong, seed=1).status in ("refuted", "undecided")


def test_the_domain_of_a_sum_of_logarithms():
    likelihood = symad.trace(lambda a: np.sum(np.log(a)), [(2, 2)])
    score = symad.trace(lambda a: 1 / np.abs(a), [(2, 2)])
    assert symad.verify(likelihood, gradient=score, seed=1).status == "tested"
    wrong = symad.trace(lambda a: 1 / np.abs(a) + np.where(a > 3, 1e-3, 0.0), [(2, 2)])
    assert symad.verify(likelihood, gradient=wrong, seed=1).status == "refuted"


@pytest.mark.thorough
def test_the_domain_of_a_function_of_any_size():
    """One element stands for all, where all are positive."""
    n = sp.Symbol("n", integer=True, positive=True)
    likelihood = symad.trace(lambda a: np.sum(np.log(a)), [(n,)])
    certificate = symad.verify(likelihood, gradient=symad.trace(lambda a: 1 / np.abs(a), [(n,)]), seed=1)
    assert certificate.status == certificate.recheck().status == "tested"
    assert ", where a > 0: elsewhere the function has no value" in certificate.entries[0].claim
    wrong = symad.trace(lambda a: 1 / np.abs(a) + np.where(a > 3, 1e-3, 0.0), [(n,)])
    assert symad.verify(likelihood, gradient=wrong, seed=1).status == "refuted"
