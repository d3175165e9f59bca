"""Quotients of exponentials written out, in generated code: all digits, and no NaN where exp overflows."""

import mpmath
import numpy as np
import pytest
import sympy as sp
from sympy.abc import x

import symad
from symad.numeric import lower
from symad.numeric.compiler.c_compiler import compiler

with sp.evaluate(False):
    VALUES = {
        "a logistic function": 1 / (1 + sp.exp(-x)),
        "its square": (1 + sp.exp(-x)) ** -2,
        "its logarithm": sp.log(1 / (1 + sp.exp(-x))),
        "its slope": sp.exp(-x) / (1 + sp.exp(-x)) ** 2,
        "by the exponential": sp.exp(x) / (1 + sp.exp(x)),
        "a tanh by exp(2x)": (sp.exp(2 * x) - 1) / (sp.exp(2 * x) + 1),
        "a tanh by exp(x) and exp(-x)": (sp.exp(x) - sp.exp(-x)) / (sp.exp(x) + sp.exp(-x)),
        "a tanh by sinh and cosh": sp.sinh(x) / sp.cosh(x),
        "x logistic": x / (1 + sp.exp(-x)),
    }
SLOPES = {
    "a logistic function": VALUES["a logistic function"],
    "x logistic": VALUES["x logistic"],
    "softplus": sp.log(1 + sp.exp(x)),
    "by the exponential": VALUES["by the exponential"],
    "1/cosh": 1 / sp.cosh(x),
    "log cosh": sp.log(sp.cosh(x)),
    "a tanh by a logistic function": 2 / (1 + sp.exp(-2 * x)) - 1,
}
POINTS = (-1000.0, -40.0, -3.0, -0.1, 0.7, 5.0, 40.0, 300.0)
BACKENDS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(compiler() is None, reason="no C compiler"))]


def exact(expression: sp.Expr, point: float) -> float:
    with mpmath.workdps(1000):
        return float(sp.lambdify(x, expression, "mpmath")(mpmath.mpf(point)))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", VALUES)
def test_values_have_all_digits(name: str, backend: str) -> None:
    kernel = lower(VALUES[name], backend=backend)
    expected = np.array([exact(VALUES[name], p) for p in POINTS])
    for values in (np.array([kernel(p) for p in POINTS]), kernel(np.array(POINTS))):
        assert np.all(np.abs(values - expected) <= 1e-14 * np.abs(expected) + 1e-300), values


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", SLOPES)
def test_slopes_are_finite_where_exponentials_overflow(name: str, backend: str) -> None:
    kernel = lower(symad.gradient(SLOPES[name], x), backend=backend)
    expected = np.array([exact(SLOPES[name].diff(x), p) for p in POINTS])
    for values in (np.array([kernel(p) for p in POINTS]), kernel(np.array(POINTS))):
        assert np.all(np.abs(values - expected) <= 2e-14 * np.abs(expected) + 1e-16), values


def test_a_logistic_function_of_arrays_keeps_small_values() -> None:
    kernel = lower(symad.trace(lambda v: np.log(1 / (1 + np.exp(-v))), [(3,)]))
    expected = [-1000, -np.log(2), -4.248354255291589e-18]
    assert np.allclose(kernel(np.array([-1000.0, 0.0, 40.0])), expected, 1e-14, 0)
