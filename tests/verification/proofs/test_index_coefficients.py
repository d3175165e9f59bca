"""Sums with coefficients that depend on the index, against sums that SymPy has written out."""

import pytest
import sympy as sp
from sympy import (
    Integer,
    binomial,
    ceiling,
    chebyshevt,
    cos,
    exp,
    factorial,
    fibonacci,
    floor,
    gamma,
    gegenbauer,
    harmonic,
    hermite,
    legendre,
    pi,
    sqrt,
)

import symad

SIZE = 4
i = sp.Symbol("i", integer=True)
t = sp.Symbol("t", real=True)
x = sp.IndexedBase("x", shape=(SIZE,), real=True)

TERMS = {
    "index": lambda k: k * x[k] * t,
    "factorial": lambda k: x[k] * t**k / factorial(k),
    "binomial": lambda k: binomial(SIZE - 1, k) * x[k] * t,
    "Fibonacci": lambda k: fibonacci(k) * x[k] * t,
    "gamma": lambda k: gamma(k + 1) * x[k] * t,
    "floor": lambda k: floor(k / 2) * x[k] * t,
    "ceiling": lambda k: ceiling(k / 2) * x[k] * t,
    "remainder": lambda k: sp.Mod(k, 3) * x[k] * t,
    "of an array": lambda k: exp(-(k + 1) * t * x[k] / factorial(k)),
    "roots": lambda k: sqrt(k + 1) * x[k] * t,
    "Legendre": lambda k: legendre(k, t) * x[k],
    "Chebyshev": lambda k: chebyshevt(k, t) * x[k],
    "Hermite": lambda k: hermite(k, t) * x[k],
    "Gegenbauer": lambda k: gegenbauer(k, 2, t) * x[k],
    "harmonic": lambda k: harmonic(k) * x[k] * t,
    "fifths of a circle": lambda k: cos(2 * pi * k / 5) * x[k] * t,
    "sevenths": lambda k: cos(2 * pi * k / 7) * x[k] * t,
    "thirds": lambda k: ceiling((k - 2) / Integer(3)) * x[k] * t,
}


UNKNOWN = {"Legendre", "Chebyshev", "Hermite", "Gegenbauer", "fifths of a circle", "sevenths", "of an array"}
"""Polynomials whose order is an index, and cosines of fractions of π, are functions without relations."""


@pytest.mark.sample(9, without=("factorial", "Hermite"))
@pytest.mark.parametrize("name", TERMS)
def test_values_and_slopes(name):
    term = TERMS[name]
    whole = symad.trace(sp.Sum(term(i), (i, 0, SIZE - 1)), inputs=[x, t])
    written = sum(term(Integer(k)) for k in range(SIZE))
    expected = ("undecided", "tested") if name in UNKNOWN else ("proved", "tested")
    assert symad.equal(whole, symad.trace(written, inputs=[x, t])).status in expected
    slope = symad.trace(sp.diff(written, t), inputs=[x, t])
    assert symad.verify(whole, t, gradient=slope).status in expected


@pytest.mark.parametrize("name", TERMS)
def test_another_coefficient_is_refuted(name):
    term = TERMS[name]
    whole = symad.trace(sp.Sum(term(i), (i, 0, SIZE - 1)), inputs=[x, t])
    written = sum(term(Integer(k)) for k in range(SIZE)) + x[3] * t / 1000
    assert symad.equal(whole, symad.trace(written, inputs=[x, t])).status == "refuted"


@pytest.mark.parametrize(("of", "status"), [(ceiling, "measured"), (floor, "refuted")])
def test_programs_with_whole_parts_of_indices_are_measured(of, status):
    def slope(t, x):
        return sum(float(of(Integer(k - 2) / 3)) * x[k] for k in range(SIZE))

    whole = sp.Sum(ceiling((i - 2) / Integer(3)) * x[i] * t, (i, 0, SIZE - 1))
    assert symad.verify(whole, t, gradient=slope).status == status
