"""Powers with exponents of many binary digits: right derivatives are decided, those off by one digit are not.

The exponent 0.3 is a fraction over 2^54, and no root of that order has a value in a field.
"""

import math
from fractions import Fraction

import pytest
from sympy import Rational, Symbol, diff, exp, log, sin, sqrt, symbols

import symad
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.sources import constant
from symad.ops.elementwise.powers import power
from symad.verification.budget import Budget
from symad.verification.rewriting.identity_testing import compare_nodes

x, y = symbols("x y", positive=True)
t = Symbol("t", real=True)

EXPONENTS = (0.3, 1 / 3, 2.7, 1.1, 0.7, -0.4)

FORMS = {
    "x": lambda q: x**q,
    "square": lambda q: (x**2 + 1) ** q,
    "exponential over x": lambda q: (1 + exp(x)) ** q / x,
    "root": lambda q: sqrt(1 + x) ** q * x,
    "sum": lambda q: (x + y) ** q * y,
    "logarithm": lambda q: log(1 + x**q),
    "sine": lambda q: (2 + sin(t)) ** q * t,
    "norm": lambda q: (x**q + y**q) ** (1 / q),
    "Weibull": lambda q: exp(-(x**q)),
    "saturation": lambda q: (x * y) ** q / (1 + x**q),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("form", FORMS)
def test_derivatives_of_all_modes_are_decided(form: str, exponent: float) -> None:
    expression = FORMS[form](exponent)
    certificate = symad.check(symad.trace(expression), wrt="t" if form == "sine" else "x", seed=1)
    assert {entry.status for entry in certificate.entries} <= {"proved", "tested"}


def claims_about(base, exponent: float) -> dict[str, tuple]:
    """Of u^q y, by SymPy, the second derivative, and others that are wrong."""
    q, near = Rational(exponent), Rational(math.nextafter(exponent, 9))
    first, second = diff(base, x), diff(base, x, 2)
    slope = q * base ** (q - 1) * y
    bent = y * first**2
    claims = {
        "right": q * (q - 1) * base ** (q - 2) * bent,
        "an exponent that is off by one digit": q * (q - 1) * base ** (near - 2) * bent,
        "a factor that is off by one digit": q * (near - 1) * base ** (q - 2) * bent,
        "q - 2 for q - 1": q * (q - 2) * base ** (q - 2) * bent,
        "another sign": -q * (q - 1) * base ** (q - 2) * bent,
        "another term": q * (q - 1) * base ** (q - 2) * bent + slope,
        "an exponent that is off by 1": q * (q - 1) * base ** (q - 1) * bent,
        "the exponent 1 - q": q * (q - 1) * base ** (1 - q) * bent,
    }
    return {name: claim + slope * second for name, claim in claims.items()}


@pytest.mark.sample(2)
@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("base", [x, x**2 + 1, 1 + exp(x)], ids=str)
def test_only_the_right_second_derivative_is_decided(base, exponent: float) -> None:
    function = symad.trace(base ** Rational(exponent) * y)
    for name, claim in claims_about(base, exponent).items():
        status = symad.verify(function, hessian=claim, wrt="x", seed=1).status
        assert status in (("proved", "tested") if name == "right" else ("undecided", "refuted")), name


@pytest.mark.parametrize(
    ("exponent", "whole"),
    [(Rational(100, 3), 33), (Rational(-133, 2), -67), (Rational(3, 100), 1), (Rational(0.3) * 7, 2),
     (Rational(0.3) / 8, -1), (Rational(2.7) + Rational(1, 2), 3)],
)  # fmt: skip
def test_powers_of_one_base_are_whole_powers_of_each_other(exponent: Rational, whole: int) -> None:
    """u^q = u^n u^(q - n), for fractions with a large numerator or denominator."""
    base = symad.trace(x + y).output_nodes[0]
    split, near, left = (power(base, constant(Fraction(int(e.p), int(e.q))))
                         for e in (exponent, exponent + 1, exponent - whole))  # fmt: skip
    product = mul(power(base, constant(whole)), left)
    right, wrong = compare_nodes([(split, product), (near, product)], 1, Budget()).pairs
    assert right.certain.all() and not wrong.certain.any()
