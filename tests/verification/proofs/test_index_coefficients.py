"""Sums with coefficients that depend on the index, against sums that SymPy has written out."""

import pytest
import sympy as sp
from sympy import Integer, binomial, ceiling, exp, factorial, fibonacci, floor, gamma, sqrt

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
}


@pytest.mark.parametrize("name", TERMS)
def test_values_and_slopes(name):
    term = TERMS[name]
    whole = symad.trace(sp.Sum(term(i), (i, 0, SIZE - 1)), inputs=[x, t])
    written = sum(term(Integer(k)) for k in range(SIZE))
    assert symad.equal(whole, symad.trace(written, inputs=[x, t])).status in ("proved", "tested")
    slope = symad.trace(sp.diff(written, t), inputs=[x, t])
    assert symad.verify(whole, t, gradient=slope).status in ("proved", "tested")


@pytest.mark.parametrize("name", TERMS)
def test_another_coefficient_is_refuted(name):
    term = TERMS[name]
    whole = symad.trace(sp.Sum(term(i), (i, 0, SIZE - 1)), inputs=[x, t])
    written = sum(term(Integer(k)) for k in range(SIZE)) + x[3] * t / 1000
    assert symad.equal(whole, symad.trace(written, inputs=[x, t])).status == "refuted"
