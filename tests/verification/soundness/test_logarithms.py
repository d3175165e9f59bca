"""Logarithms and roots of sums and quotients of exponentials: true claims are certified, false ones never."""

from fractions import Fraction

import numpy as np
import pytest
from sympy import Abs, Max, Rational, acosh, asinh, atanh, cosh, exp, log, sinh, sqrt, symbols, tanh

import symad
from symad import functions

x, y, z = symbols("x y z", real=True)
p, q = symbols("p q", positive=True)
sigmoid = 1 / (1 + exp(-x))

PROVED = {
    "the complement of a sigmoid": (log(1 - sigmoid), -log(1 + exp(x))),
    "a logit": (log(sigmoid / (1 - sigmoid)), x),
    "cross entropy": (-y * log(sigmoid) - (1 - y) * log(1 - sigmoid), log(1 + exp(x)) - y * x),
    "the complement of a softmax": (log(1 - exp(x) / (exp(x) + exp(y))), y - log(exp(x) + exp(y))),
    "the slope of tanh": (log(1 - tanh(x) ** 2), -2 * log(cosh(x))),
    "a root of the slope of tanh": (sqrt(1 - tanh(x) ** 2), 1 / cosh(x)),
    "the sign of a slope": (sqrt((y * (1 - tanh(x) ** 2)) ** 2), Abs(y) * Abs(tanh(x) ** 2 - 1)),
    "a square": (log(1 + 2 * exp(x) + exp(2 * x)), 2 * log(1 + exp(x))),
    "a quadratic with two roots": (log(p**2 + 3 * p + 2), log(p + 1) + log(p + 2)),
    "a quotient of positive sums": (log((1 + p) * (2 + q) / (p + q)), log(1 + p) + log(2 + q) - log(p + q)),
    "an even power of an unknown sign": (log(1 - 1 / (1 + x**2)), log(x**2) - log(1 + x**2)),
    "softplus of softplus": (log(1 - 1 / (1 + exp(-log(1 + exp(x))))), -log(2 + exp(x))),
    "atanh of tanh": (atanh(tanh(x)), x),
    "asinh of sinh": (asinh(sinh(x)), x),
    "asinh is odd": (asinh(Rational(2, 3) - x), -asinh(x - Rational(2, 3))),
    "asinh by a logarithm": (asinh(x), log(x + sqrt(x**2 + 1))),
}

TESTED = {
    "a stable softplus": (log(1 + exp(x)), Max(x, 0) + log(1 + exp(-Abs(x)))),
    "a stable logaddexp": (log(exp(x) + exp(y)), Max(x, y) + log(1 + exp(-Abs(x - y)))),
    "atanh by a logarithm": (atanh(x), log((1 + x) / (1 - x)) / 2),
    "acosh by a logarithm": (acosh(x), log(x + sqrt(x**2 - 1))),
}

FALSE = {
    "the sign of a softplus": (log(1 - sigmoid), log(1 + exp(x)), 0.3),
    "a softplus turned": (log(1 - sigmoid), -log(1 + exp(-x)), 0.3),
    "a root without its sign": (sqrt(1 + 2 * x + x**2), 1 + x, -3.0),
    "a sign that changes": (Abs(exp(2 * x) - exp(x)), exp(2 * x) - exp(x), -0.5),
    "a small term": (log(1 + 2 * exp(x) + exp(2 * x)), 2 * log(1 + exp(x)) + x**2 / 10**9, 0.5),
    "the wrong side of a maximum": (log(1 + exp(x)), Max(x, 0) + log(1 + exp(Abs(x))), 0.5),
    "asinh for acosh": (asinh(x), log(x + sqrt(x**2 - 1)), 2.0),
}


@pytest.mark.parametrize("name", PROVED)
def test_identities_of_logarithms_are_proved(name):
    certificate = symad.equal(*PROVED[name], seed=1)
    assert certificate.status == "proved", str(certificate)


@pytest.mark.parametrize("name", TESTED)
def test_identities_with_branches_or_domains_are_tested(name):
    certificate = symad.equal(*TESTED[name], seed=1)
    assert certificate.status in ("proved", "tested"), str(certificate)
    assert certificate.bound < 2.0**-64


@pytest.mark.parametrize("name", FALSE)
def test_what_looks_alike_is_refuted(name):
    left, right, at = FALSE[name]
    values = [float(side.subs(x, at)) for side in (left, right)]
    assert abs(values[0] - values[1]) > 1e-12
    assert symad.equal(left, right, seed=1).status == "refuted"


def test_a_logarithm_of_what_is_never_positive_has_no_value():
    """log(−E) is no log E: nothing is claimed where nothing is defined."""
    certificate = symad.equal(log(1 / (1 + exp(x)) - 1), log(exp(x) / (1 + exp(x))), seed=1)
    assert certificate.status == "undecided"


def test_a_cross_entropy_of_arrays_equals_its_stable_form():
    def plain(s, t):
        chance = 1 / (1 + np.exp(-s))
        return np.sum(-t * np.log(chance) - (1 - t) * np.log(1 - chance))

    def stable(s, t):
        return np.sum(np.maximum(s, 0) - s * t + np.log(1 + np.exp(-np.abs(s))))

    sides = [symad.trace(f, [(2,), (2,)]) for f in (plain, stable)]
    assert symad.equal(*sides, seed=1).status in ("proved", "tested")
    named = symad.equal(log(1 - functions.sigmoid(x)), -functions.softplus(x), seed=1)
    assert named.status == "proved"


@pytest.mark.thorough
@pytest.mark.parametrize("n", [2, 3])
def test_a_log_determinant_is_that_of_the_cholesky_factor(n):
    """log det(A Aᵀ + I) = 2 Σ log L_kk; not Σ log L_kk, and not for A itself, of which L reads one half."""

    def gram(A):
        return A @ A.T + np.eye(n)

    def by_factor(scale, of):
        return symad.trace(lambda A: scale * np.sum(np.log(np.diag(np.linalg.cholesky(of(A))))), [(n, n)])

    determinant = symad.trace(lambda A: np.log(np.linalg.det(gram(A))), [(n, n)])
    certificate = symad.equal(by_factor(2, gram), determinant, seed=1)
    assert certificate.status in ("proved", "tested"), str(certificate)
    assert certificate.bound < 2.0**-64
    slopes = [symad.gradient(f) for f in (by_factor(2, gram), determinant)]
    assert symad.equal(*slopes, seed=1).status in ("proved", "tested")
    assert symad.equal(by_factor(1, gram), determinant, seed=1).status == "refuted"
    raw = symad.trace(lambda A: np.log(np.linalg.det(A)), [(n, n)])
    for seed in range(3):
        wrong = symad.equal(by_factor(2, lambda A: A), raw, seed=seed)
        assert wrong.status == "refuted"
        at = np.array(wrong.witness.point["A"], dtype=object)
        A = np.array([float(Fraction(v)) for v in at.ravel()]).reshape(n, n)
        lower = np.tril(A) + np.tril(A, -1).T  # of which the factor is
        assert abs(np.linalg.slogdet(lower)[1] - np.linalg.slogdet(A)[1]) > 1e-9
