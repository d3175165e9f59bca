"""A right derivative given as a program is measured; doubled, or changed by 1e-6, it is refuted.

This holds for numbers of every size in the formula: the tolerance for a program follows from the roundings
that matter for its result, and a point at which no difference could be seen counts as no measurement.
"""

import math

import numpy as np
import pytest
import sympy as sp
from sympy import (
    Abs,
    Max,
    Piecewise,
    Rational,
    acos,
    asin,
    atan,
    cosh,
    erf,
    exp,
    gamma,
    log,
    sin,
    sqrt,
    symbols,
    tan,
    tanh,
    zeta,
)

import symad
from symad.models.layers import normalization
from symad.models.layers.feedforward import FeedForward
from symad.models.transformers import attention
from symad.numeric import lower

x = symbols("x", real=True)
p = symbols("p", positive=True)
c = 299792458

SCALARS = {
    "a literal with a denominator of 2**54": Rational(0.3) * p**2,
    "a literal of 1e200": 10**200 * x**3,
    "a literal of 1e-200": sin(x) / sp.Integer(10) ** 200,
    "the energy of relativity": sqrt(x**2 * c**2 + c**4) - c**2,
    "an exponential and its inverse": exp(x + 40) * exp(-40),
    "a large shift": sin(x + 10**6),
    "a large number cancels": (x + 10**9) ** 2 - 10**18 - 2 * 10**9 * x,
    "tanh": tanh(x),
    "log(1 + exp)": log(1 + exp(x)),
    "a ratio": x / (1 + x**2),
    "a power": p ** Rational(7, 3),
    "erf": erf(x),
    "gamma": gamma(p),
    "atan": atan(3 * x),
    "branches far out": Piecewise((x**2, x < 1000), (3 * x, True)),
    "a maximum": Max(x, x**2 / 4),
    "an absolute value": Abs(x) * x**2,
    "cosh": cosh(x),
    "tan": tan(x),
    "Gauss": exp(-(x**2) / 2) / sqrt(2 * sp.pi),
}
"""By what is special about it."""


def program(f, s):
    """The derivative as SymPy's lambdify writes it: a program of its own."""
    return sp.lambdify(s, sp.diff(f, s), modules=["math", "scipy"])


def changed(g, factor):
    return lambda v: g(v) * factor


@pytest.mark.sample(13)
@pytest.mark.parametrize("name", SCALARS)
def test_a_right_program_is_measured_and_a_changed_one_refuted(name):
    f = SCALARS[name]
    (s,) = f.free_symbols
    g = program(f, s)
    if "cancels" in name:  # SymPy's derivative has the same cancellation: 2 (x + 10⁹) − 2·10⁹
        g = lambda v: 2 * v  # noqa: E731
    right = symad.verify(f, s, gradient=g, hostile=False)
    assert right.status == "measured", str(right)
    assert right.entries[0].measured["would have seen"] <= 1e-6
    for factor in (2, 1 + 1e-6, 1 - 1e-6, 0, -1):
        wrong = symad.verify(f, s, gradient=changed(g, factor), hostile=False)
        assert wrong.status == "refuted", (factor, str(wrong))


def masked(S):
    return np.sum(symad.functions.softmax(S + np.triu(np.full((3, 3), -1e9), 1), axis=-1) ** 2)


ARRAYS = {
    "a mask of -1e9": lambda: symad.trace(masked, [(3, 3)]),
    "attention": lambda: symad.trace(lambda *a: np.sum(attention.attention(*a) ** 2), [(2, 2)] * 3),
    "layer norm": lambda: symad.trace(
        lambda *a: np.sum(normalization.layer_norm(*a) ** 3), [(2, 3), (3,), (3,)]
    ),
    "a network of ramps": lambda: symad.trace(lambda W, v: np.sum(np.maximum(W @ v, 0) ** 2), [(3, 2), (2,)]),
    "log det": lambda: symad.trace(lambda A: np.linalg.slogdet(A @ A.T + np.eye(2))[1], [(2, 2)]),
    "a network": lambda: FeedForward((1, 2, 1)).graph(2),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ARRAYS)
def test_a_right_kernel_is_measured_and_a_changed_one_refuted(name):
    f = ARRAYS[name]()
    kernel = lower(symad.gradient(f, list(f.inputs)))

    def parts(*values):
        returned = kernel(*values)
        return list(returned) if isinstance(returned, (tuple, list)) else [returned]

    right = symad.verify(f, list(f.inputs), gradient=lambda *v: parts(*v), hostile=False)
    assert right.status == "measured", str(right)
    for factor in (2, 1 + 1e-6):
        wrong = symad.verify(
            f, list(f.inputs), gradient=lambda *v, by=factor: [by * g for g in parts(*v)], hostile=False
        )
        assert wrong.status == "refuted", (factor, str(wrong))


@pytest.mark.slow
@pytest.mark.parametrize("size", [10.0**k for k in range(-18, 19, 3)])
@pytest.mark.parametrize("shape", [sin, exp, tanh, atan, asin, acos, lambda v: v**3, lambda v: 1 / (1 + v)])
def test_literals_of_any_size(shape, size):
    f = Rational(size) * shape(x) + Rational(size) ** 2 * x
    g = program(f, x)
    assert symad.verify(f, x, gradient=g, hostile=False).status == "measured"
    for factor in (2, 1 + 1e-6):
        assert symad.verify(f, x, gradient=changed(g, factor), hostile=False).status == "refuted"


def test_a_point_that_shows_nothing_is_no_measurement():
    """(x + 10³⁰) − 10³⁰ has no digit of x in floating point, at any ordinary point."""
    f = symad.trace(lambda v: (np.sin(v) + 1e30) - 1e30, [()])
    certificate = symad.verify(f, value=lambda v: 2 * math.sin(v), hostile=False)
    assert certificate.status == "undecided"
    assert "at no point tried would a relative error of 1e-06 have been seen" in certificate.entries[0].reason


def test_every_region_found_needs_a_point_that_shows_something():
    f = symad.trace(lambda v: np.where(v > 0, v**2, (np.sin(v) + 1e30) - 1e30), [()])
    certificate = symad.verify(f, value=lambda v: v**2 if v > 0 else 0.0, hostile=False)
    assert certificate.status == "undecided"
    assert "1 of 2 regions" in str(certificate)


def test_a_sampled_program_is_never_more_than_measured():
    """Wrong on an interval that no point hits: nothing on earth could tell from samples."""
    g = lambda v: 2 * v + (abs(v - 37.123) < 0.01)  # noqa: E731
    certificate = symad.verify(x**2, x, gradient=g)
    assert certificate.status == "measured"
    assert not certificate
    assert "wherever it was tried" in repr(certificate)


def test_a_slow_function_is_measured_too():
    assert (
        symad.verify(zeta(p + 2), p, value=lambda v: float(sp.zeta(sp.Float(v + 2, 30)))).status == "measured"
    )


def test_what_underflows_in_a_right_program_is_a_loss_of_digits():
    """σ (1 − σ) is 0 at 400, where the slope of σ is 2e-174."""

    def slope(v):
        s = 1 / (1 + np.exp(-v))
        return s * (1 - s)

    x = sp.Symbol("x", real=True)
    sigmoid = 1 / (1 + sp.exp(-x))
    assert symad.verify(sigmoid, x, gradient=slope, hostile=False).status == "measured"
    for wrong in (lambda v: 2 * slope(v), lambda v: slope(v) * (1 + 1e-6)):
        assert symad.verify(sigmoid, x, gradient=wrong, hostile=False).status == "refuted"


def test_a_small_branch_is_measured_by_its_own_scale():
    x = sp.Symbol("x", real=True)
    bent = sp.Piecewise((x / 10**20, x < 0), (x, True))
    right = symad.verify(bent, x, gradient=lambda v: np.where(v < 0, 1e-20, 1.0), hostile=False)
    wrong = symad.verify(bent, x, gradient=lambda v: np.where(v < 0, 2e-20, 1.0), hostile=False)
    assert (right.status, wrong.status) == ("measured", "refuted")


def test_orders_of_special_functions_round_none():
    from scipy.special import polygamma

    x = sp.Symbol("x", positive=True)
    certificate = symad.verify(sp.loggamma(x), x, hessian=lambda v: polygamma(1, v), hostile=False)
    assert certificate.status == "measured"


def test_the_element_at_fault_is_told():
    f = symad.trace(lambda q: (q**2).sum(), [(6,)])

    def gradient(q):
        return np.where(np.arange(6) == 3, 0, 2 * q)

    assert "∂f/∂q[3] is wrong" in str(symad.verify(f, gradient=gradient, hostile=False))
