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
