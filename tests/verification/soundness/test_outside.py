"""Input that is no function of real numbers: undecided, with the reason; wrong use is an error."""

import pytest
import sympy as sp
from sympy import I, Integral, Limit, Product, Sum, exp, factorial, oo, pi, sin, symbols
from sympy.physics.units import meter
from sympy.stats import Normal

import symad
from symad.errors import DerivativeError

x, y = symbols("x y", real=True)
k = symbols("k", integer=True)

OUTSIDE = {
    "an integral": (Integral(sin(x * y), (y, 0, 1)), (1 - sp.cos(x)) / x, "Integral"),
    "an infinite sum": (Sum(x**k / factorial(k), (k, 0, oo)), exp(x), "no finite bounds"),
    "an infinite product": (
        Product(1 - x**2 / k**2, (k, 1, oo)), sin(pi * x) / (pi * x), "no finite bounds",
    ),
    "a limit": (Limit(sin(y * x) / y, y, 0), x, "Limit"),
    "a derivative": (sp.Derivative(sin(x), x), sp.cos(x), "Derivative"),
    "an order term": (x + sp.O(x**2), x, "order"),
    "a complex number": (I * x, x, "imaginary unit"),
    "a random symbol": (Normal("X", 0, 1) * x, x, "NormalDistribution"),
    "an infinity": (x + oo, x, "oo"),
    "no number": (x * sp.nan, x, "nan"),
    "a root of a polynomial": (sp.CRootOf(y**5 - y - 1, 0) * x, x, "CRootOf"),
    "a unit": (meter * x, x, "meter"),
    "a hypergeometric function": (sp.hyper([1, 1], [2, 2], x), (exp(x) - 1) / x, "hyper"),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTSIDE)
def test_undecided_with_the_reason(name):
    made, other, word = OUTSIDE[name]
    questions = (
        symad.equal(made, other),
        symad.equal(other, made),
        symad.equal(made, made),
        symad.check(made),
        symad.verify(x**2, x, gradient=made),
        symad.verify(made, x, gradient=other),
    )
    for certificate in questions:
        assert certificate.status == "undecided"
        assert word in certificate.entries[0].reason
        assert symad.Certificate.from_json(certificate.to_json()) == certificate


@pytest.mark.parametrize("condition", [sp.Eq(x, y), x < y, (x < 1) & (y < 1)])
def test_truth_values_are_compared_and_have_no_derivative(condition):
    assert symad.verify(condition, value=condition).status == "proved"
    with pytest.raises(DerivativeError, match="is a condition"):
        symad.check(condition)


@pytest.mark.parametrize("constant", [sp.Integer(3), sp.true, sp.pi])
def test_no_inputs_are_a_mistake_in_use(constant):
    with pytest.raises(DerivativeError, match="has no inputs"):
        symad.check(constant)
