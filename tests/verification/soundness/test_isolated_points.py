"""Values at isolated points refute nothing: for x < 0 and real y, x^y is real at integers y only."""

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad.ops.elementwise.apply import apply
from symad.verification.values.fifty_digits import is_manageable

x, y = sp.symbols("x y", real=True)
v = sp.Symbol("v", negative=True)
k = sp.Symbol("k", integer=True)

ISOLATED = {
    "power": (v**y, (-v) ** y),
    "its own base": (sp.Piecewise((y**y, y < 0), (y, True)), sp.Piecewise(((-y) ** y, y < 0), (y, True))),
    "Bessel": (sp.besselj(y, v), sp.Integer(3)),
    "Bessel of the second kind": (sp.besseli(y, v), sp.besseli(y, -v)),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ISOLATED)
def test_isolated_points_refute_nothing(name):
    sides = [sp.Piecewise((side, y < -2), (1, True)) for side in ISOLATED[name]]
    for seed in range(2):
        assert symad.equal(*sides, seed=seed).status != "refuted"


@pytest.mark.parametrize(
    "sides",
    [
        (v**k, (-v) ** k),
        (sp.Pow(v, sp.floor(y)), sp.Pow(-v, sp.floor(y))),
        (sp.besselj(k, v), sp.besselj(k, -v)),
        (sp.Piecewise((sp.Abs(v) ** y, y < -2), (1, True)), sp.Piecewise((2 - v**0, y < -2), (1, True))),
    ],
)
def test_integer_exponents_are_no_isolated_points(sides):
    assert symad.equal(*sides).status == "refuted"


def test_a_narrow_domain_is_none():
    inside = sp.sqrt(sp.Rational(1, 10**40) - (x - 1) ** 2)
    assert symad.equal(inside + 1, inside + 2).status in ("refuted", "undecided")
    assert symad.equal(sp.sqrt(x - 1) + x, sp.sqrt(x - 1) - x).status == "refuted"


@pytest.mark.parametrize("head", [sp.besselj, sp.bessely, sp.besseli])
@pytest.mark.parametrize("at", ["inf", "-inf", "nan"])
def test_bessel_functions_at_infinities_raise_nothing(head, at):
    found = symad.trace(head(sp.Rational(1, 2), x))(mpmath.mpf(at))
    assert isinstance(found, mpmath.mpf)


def test_long_series_are_not_summed():
    order, at = symad.trace(x * y, inputs=[y, x]).input_nodes
    for node, point in (
        (apply(sp.besselj, order, at), (-1250000.0, -1666666.7)),
        (apply(sp.polygamma, order, at), (1.0, -1234567.25)),
    ):
        assert not is_manageable((node,), dict(zip((order, at), point, strict=True)))
    fixed = symad.trace(sp.besselj(2, x))
    assert is_manageable(fixed.output_nodes, {fixed.input_nodes[0]: 1e8})


@pytest.mark.thorough
def test_a_program_of_bessel_functions_of_any_order_ends():
    from scipy import special

    f = sp.Piecewise((sp.besselj(y, v), y < -2), (1, True))
    found = symad.verify(f, (v, y), value=lambda v, y: np.where(y < -2, special.jv(y, v), 1.0), inputs=[v, y])
    assert found.status != "refuted"


def test_points_satisfy_the_assumptions_about_integers():
    for kind, excluded in (("even", 1), ("odd", 2), ("prime", 4), ("composite", 3)):
        e = sp.Symbol("e", positive=True, **{kind: True})
        left = x * sp.Piecewise((3, sp.Eq(e, excluded, evaluate=False)), (2, True), evaluate=False)
        assert symad.equal(left, 2 * x).status != "refuted", kind
        assert symad.equal(x**e, x ** (e + 2)).status == "refuted", kind
    e = sp.Symbol("e", even=True)
    above = [sp.Piecewise((e, c), (2, True)) for c in (e > 1, e >= 1)]
    assert symad.equal(*above).status != "refuted"


@pytest.mark.parametrize("f, candidate", [
    (sp.sqrt(sp.Abs(x * y)), y * sp.sign(x * y) / (2 * sp.sqrt(sp.Abs(x * y)))),
    (sp.Abs(x * y) ** sp.Rational(1, 3), y * sp.sign(x * y) * sp.Abs(x * y) ** sp.Rational(-2, 3) / 3),
])  # fmt: skip
def test_a_line_without_a_formula_weakens_no_proof(f, candidate):
    """Of y = 0 the quotients know the slope 0, the formula none; next to it both have values."""
    assert symad.verify(f, x, gradient=candidate).status == "proved"


def test_norms_stay_proved_when_they_are_checked_again():
    """The Hessian of ‖u‖ has no value at 0, wherever the points of a seed lie."""
    certificate = symad.check(symad.trace(lambda u: np.linalg.norm(u), [(2,)]))
    assert certificate.status == "proved"
    assert certificate.recheck().status == "proved"


@pytest.mark.parametrize("f, inside", [
    (sp.log(1 - x**2), sp.Abs(x) < 1),
    (sp.log(1 - x**2), sp.And(x < 1, x > -1)),
    (sp.sqrt(4 - x**2), sp.Abs(x) < 2),
    (sp.log(x**2 - 1), sp.Abs(x) > 1),
    (sp.log(sp.sqrt(x) - 1), x > 1),
])  # fmt: skip
def test_what_a_candidate_says_outside_of_a_domain_is_not_asked(f, inside):
    """A branch for points at which the function has no value; √max(x, 0) has values where its bound is 0."""
    right = symad.verify(f, x, gradient=sp.Piecewise((f.diff(x), inside), (17, True)))
    assert right.status in ("proved", "tested")
    wrong = symad.verify(f, x, gradient=sp.Piecewise((2 * f.diff(x), inside), (17, True)))
    assert wrong.status == "refuted"


def test_a_boundary_that_holds_an_open_set_is_asked():
    """√max(x, 0) has the slope 0 for x < 0, where the bound of the root is 0."""
    wrong = sp.Piecewise((1 / (2 * sp.sqrt(x)), x > 0), (17, True))
    assert symad.verify(sp.sqrt(sp.Max(x, 0)), x, gradient=wrong).status == "refuted"
