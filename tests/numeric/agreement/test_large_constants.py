"""Exact factors that are no floats, such as 1/180!, and quotients of gamma functions that are none.

In the graph and in all generated code, against 30 digits of the same formula.
"""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.numeric import lower

x, y = sp.symbols("x y", real=True)
HUGE = sp.Integer(10) ** 400

CASES = {
    "a term of a series": (x**180 / sp.factorial(180), 10.0, 2.0),
    "its logarithm": (sp.log(x**180 / sp.factorial(180)), 40.0, 2.0),
    "both large, the quotient not": (x * (HUGE / (HUGE / 10 + 1)), 0.7, 2.0),
    "a binomial": (x**180 * sp.binomial(1200, 600), 0.1, 2.0),
    "an exponential's factor": (sp.exp(-x * (HUGE / (HUGE / 3 + 1))), 0.7, 2.0),
    "a small number": (x * y * sp.Rational(1, 10**310), 3e3, 2e3),
    "with divisors": (sp.exp(x) / (x**2 * y * sp.Integer(10) ** 320), 300.0, 1e-50),
    "negative": (-(x**180) / sp.factorial(180) + y, 40.0, 2.0),
    "a quotient of two sums": (HUGE / (HUGE / 10 * (1 + x**2)), 2.0),
    "birthdays": (sp.factorial(365) / sp.factorial(365 - x) / 365**x, 23.0),
    "beside a small exponential": (HUGE * sp.exp(-x), 920.0),
    "beside a small exponential, negative": (-HUGE * y * sp.exp(-x), 920.0, -3.0),
    "beside a small power": (HUGE * x**-3 / (1 + x), 1e100),
    "beside a large power": (x**1000 / sp.factorial(1000), -400.0),
    "a product of exponentials": (sp.exp(1000) * sp.exp(-x), 1000.0),
    "a logarithm of it": (sp.log(HUGE * x), 2.0),
    "gamma functions": (sp.gamma(x + 1) / sp.gamma(x), 300.0),
    "small gamma functions": (sp.gamma(x + 1) / sp.gamma(x), 2.5),
    "negative gamma functions": (sp.gamma(x + 1) / sp.gamma(x), -2.5),
    "a gamma function": (sp.gamma(x) * 10 ** (-x * 2), 200.0),
    "a binomial distribution": (sp.binomial(x, 600) / 2**x, 1210.0),
    "a Poisson distribution": (y**x * sp.exp(-y) / sp.factorial(x), 800.0, 790.0),
    "a beta function": (sp.beta(x, y) * 4**x, 600.0, 590.0),
}


@pytest.mark.parametrize("backend", ["graph", "numpy", "plain", "c", "runs"])
@pytest.mark.parametrize("name", CASES)
def test_a_factor_that_is_no_float_is_not_0_or_infinite(name, backend):
    f, *point = CASES[name]
    symbols = [s for s in (x, y) if s in f.free_symbols]
    exact = {s: sp.Rational(v) for s, v in zip(symbols, point, strict=False)}
    pairs = (symad.trace(f, symbols), [f]), (symad.gradient(f, symbols), [f.diff(s) for s in symbols])
    for graph, formulas in pairs:
        made = {"graph": lambda g: g, "plain": lambda g: lower(g, style="plain")}.get(
            backend, lambda g: lower(g, backend=backend)
        )(graph)
        expected = [float(e.subs(exact).evalf(30)) for e in formulas]
        np.testing.assert_allclose(
            np.ravel(made(*point[: len(symbols)])), expected, rtol=1e-11, err_msg=str(formulas)
        )


GAMMA, HALF = sp.gamma, sp.Rational(1, 2)

SECOND = {
    "gamma functions": (GAMMA(x + 500) / GAMMA(x + 498), 3.0),
    "halves": (GAMMA(x + HALF) / GAMMA(x), 500.0),
    "birthdays": CASES["birthdays"],
    "Poisson": (y**x * sp.exp(-y) / sp.factorial(x), 1000.0, 990.0),
    "beta": (GAMMA(x + y) / GAMMA(x) / GAMMA(y) * (HALF - 1 / x) ** x * HALF**y, 300.0, 290.0),
    "binomial": (sp.binomial(x, 300) / 2**x, 700.0),
    "hypergeometric": (sp.binomial(400, x) * sp.binomial(600, y) / sp.binomial(1000, x + y), 100.0, 140.0),
    "gamma": (x**y * sp.exp(-x) / GAMMA(y), 300.0, 310.0),
    "chi squared": (x ** (y / 2 - 1) * sp.exp(-x / 2) / 2 ** (y / 2) / GAMMA(y / 2), 640.0, 610.0),
    "Student": (GAMMA(x / 2 + HALF) / GAMMA(x / 2) * (1 + y**2 / x) ** (-(x + 1) / 2), 400.0, 1.5),
    "inside of a logarithm": (sp.log(1 + x**y * sp.exp(-x) / GAMMA(y + 1)), 300.0, 310.0),
    "beside polynomials": ((1 + y**2) * x * (x - 3) * GAMMA(x + 300) / GAMMA(x + 299 + HALF), 2.0, 3.0),
    "a square": ((x**y * sp.exp(-x) / GAMMA(y + 1)) ** 2, 300.0, 310.0),
    "small": (GAMMA(x + 1) * GAMMA(y) / GAMMA(x + y + 1), 2.5, 3.25),
}
MODES = [f"{a}-over-{b}" for a in ("forward", "reverse") for b in ("forward", "reverse")]


def second(name):
    """The arguments, the point, and the second derivatives to 60 digits by SymPy and mpmath."""
    f, *point = SECOND[name]
    symbols = [s for s in (x, y) if s in f.free_symbols]
    exact = dict(zip(symbols, map(sp.Rational, point), strict=False))
    found = [f.diff(s, t) for s in symbols for t in symbols]
    return symbols, point[: len(symbols)], [float(e.subs(exact).evalf(60)) for e in found]


@pytest.mark.sample(12)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_of_quotients_of_gamma_functions(name, mode):
    symbols, point, expected = second(name)
    made = symad.hessian(SECOND[name][0], symbols, mode=mode)(*point)
    np.testing.assert_allclose(np.ravel(made), expected, rtol=3e-10)


@pytest.mark.parametrize("mode", MODES)
def test_second_derivatives_where_a_power_is_0(mode):
    """Of x^y/Γ(y) and y^x/x!: no slope is a value that is 0 times one of its logarithm."""
    made = symad.hessian(x**y * sp.exp(-x) / GAMMA(y), [x, y], mode=mode)
    np.testing.assert_allclose(made(0.0, 2.0), [[2, 0], [0, 0]])
    made = symad.hessian(y**x * sp.exp(-y) / sp.factorial(x), [x, y], mode=mode)
    np.testing.assert_allclose(made(2.0, 0.0), [[0, 0], [0, 1]])


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["numpy", "c", "runs"])
@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_in_generated_code(name, backend):
    symbols, point, expected = second(name)
    for mode in MODES[1:3]:
        kernel = lower(symad.hessian(SECOND[name][0], symbols, mode=mode), backend=backend)
        np.testing.assert_allclose(np.ravel(kernel(*point)), expected, rtol=3e-10, err_msg=mode)


def test_a_quotient_of_two_large_integers_in_single_precision():
    kernel = lower(x * sp.Rational(10**60, 10**59 + 1) + y, dtype="float32")
    assert abs(kernel(0.75, 0.5) - 8) < 1e-5


def test_such_a_factor_stays_exact():
    f = symad.trace(x * (HUGE / (HUGE / 10 + 1)))
    for e in (x * (HUGE / (HUGE / 10 + 1)), x / HUGE**7, HUGE**3 * x):
        assert symad.to_sympy(symad.trace(e)).doit() == e
    assert f(3) == 3 * (HUGE / (HUGE / 10 + 1))
    assert symad.check(x**180 / sp.factorial(180)).status == "proved"
    wrong = symad.verify(x**180 / sp.factorial(180), x, gradient=x**179 / sp.factorial(179) * (1 - 1 / HUGE))
    assert wrong.status in ("refuted", "undecided")


def test_slopes_of_binomials_of_equal_arguments():
    """C(y, y) = 1: the difference of ψ(y + 1) and ψ(y − y + 1) is one of functions, also at an argument 1."""
    y = sp.Symbol("y", real=True)
    assert lower(symad.gradient(sp.binomial(y, y), y))(2.5) == pytest.approx(0.0, abs=1e-15)
    assert lower(symad.gradient(y * sp.binomial(y, y), y))(3.0) == pytest.approx(1.0, rel=1e-15)
