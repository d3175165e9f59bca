"""Zeros and integers that no known relation shows, values that are rounding noise, and integer inputs."""

import numpy as np
import pytest
import sympy as sp
from sympy import (
    Heaviside,
    Matrix,
    Max,
    Piecewise,
    Rational,
    acosh,
    asinh,
    atan,
    ceiling,
    cos,
    erf,
    erfc,
    exp,
    floor,
    gamma,
    log,
    pi,
    sign,
    sin,
    sqrt,
    symbols,
    tanh,
)

import symad

x = symbols("x", real=True)
p = symbols("p", positive=True)

HIDDEN = {
    "atan": atan(p) + atan(1 / p) - pi / 2,
    "a root of a root": sqrt(p + 1 + 2 * sqrt(p)) - 1 - sqrt(p),
    "erf": erf(p) + erfc(p) - 1,
    "gamma": gamma(p + 1) - p * gamma(p),
    "asinh": asinh(p) - log(p + sqrt(1 + p**2)),
    "sin of a triple": sin(3 * p) - 3 * sin(p) + 4 * sin(p) ** 3,
}
"""Zero everywhere, by identities of very different kinds."""


@pytest.mark.thorough
@pytest.mark.parametrize("name", HIDDEN)
def test_a_hidden_zero_is_never_taken_for_something_else(name):
    """With h = 0: [h ≥ 0] is 1 and [h > 0] is 0, and sign(h)² is 0."""
    h = HIDDEN[name]
    at_least, more = (Piecewise((1, c), (0, True)) for c in (h >= 0, h > 0))
    assert symad.equal(at_least, more).status in ("undecided", "refuted")
    assert symad.equal(sign(h) ** 2, sp.Integer(1)).status in ("undecided", "refuted")
    assert symad.equal(ceiling(h + 2), floor(h + 2) + 1).status in ("undecided", "refuted")


@pytest.mark.thorough
@pytest.mark.parametrize("name", HIDDEN)
def test_rounding_noise_refutes_nothing(name):
    """Each pair is equal, because h = 0; a sign of rounding noise would tell them apart."""
    h = HIDDEN[name]
    for left, right in (
        (sign(h) * x, sp.Integer(0)),
        (Heaviside(h) + x, x + Rational(1, 2)),
        (Piecewise((x, h >= 0), (x**2, True)), x),
        (floor(h + 2), sp.Integer(2)),
        (Max(h, 0) * x, sp.Integer(0)),
    ):
        assert symad.equal(left, right).status != "refuted", (left, right)


def test_integers_that_nobody_sees():
    ratio = log(p**3) / log(p)
    assert symad.equal(ceiling(ratio), floor(ratio) + 1).status in ("undecided", "refuted")
    squares = sin(x) ** 2 + cos(x) ** 2 + 1
    assert symad.equal(ceiling(squares), floor(squares) + 1).status in ("undecided", "refuted")


@pytest.mark.parametrize(
    "h", [x, x**2 - 2, exp(x) - 2, tanh(x) - Rational(1, 3), sin(x) + x / 2, acosh(p + 1) - 1]
)
def test_what_is_zero_at_points_only_keeps_its_relations(h):
    assert symad.equal(sign(h) ** 2, sp.Integer(1)).status in ("proved", "tested")
    at_least, more = (Piecewise((1, c), (0, True)) for c in (h >= 0, h > 0))
    assert symad.equal(at_least, more).status in ("proved", "tested")
    assert symad.equal(ceiling(h), floor(h) + 1).status in ("proved", "tested")


PIECED = {
    "the inverse sine of a sine": sp.asin(sin(x)) - x,
    "the inverse tangent of a tangent": sp.atan(sp.tan(x)) - x,
    "the inverse cosine of a cosine": sp.acos(cos(x)) - x,
    "many narrow pieces": sp.asin(sin(40 * x)) - 40 * x,
    "a root of a square": sp.sqrt((1 - cos(2 * x)) / 2) - sin(x),
    "a double angle": sp.asin(2 * x / (1 + x**2)) - 2 * sp.atan(x),
    "a half line": sp.acos((1 - x**2) / (1 + x**2)) - 2 * sp.atan(x),
    "an argument with a pole": sp.atan(x) + sp.atan(2) - sp.atan((x + 2) / (1 - 2 * x)),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", PIECED)
def test_what_is_zero_on_one_piece_of_the_line_and_not_on_others(name):
    """Inverse functions and roots have branch points: one point at which they differ is not enough."""
    h = PIECED[name]
    by_piece = Piecewise((1, sp.Eq(h, 0)), (2, True))
    assert symad.equal(by_piece, sp.Integer(1) + 0 * x).status not in ("proved", "tested")
    assert symad.equal(by_piece, sp.Integer(2) + 0 * x).status not in ("proved", "tested")
    assert symad.equal(sign(h) ** 2, sp.Integer(1) + 0 * x).status not in ("proved", "tested")


# ---- integer inputs -----------------------------------------------------------------------------


def picked(extra, size):
    def f(a, i):
        return symad.functions.lookup(a, i) + (np.where(i == 37, 1.0, 0.0) if extra else 0.0)

    return symad.trace(f, [(size,), ()])


def test_one_row_of_a_hundred_that_differs_is_found():
    certificate = symad.equal(picked(False, 100), picked(True, 100))
    assert certificate.status == "refuted" or certificate.status == "undecided"
    small = symad.equal(picked(False, 30), picked(True, 30))  # 37 is no row
    assert small.status in ("proved", "tested", "measured", "undecided")


def test_few_indices_are_all_tried_and_many_are_measured():
    def twice(a, i):
        return 2 * symad.functions.lookup(a, i)

    def summed(a, i):
        row = symad.functions.lookup(a, i)
        return row + row * np.cos(row) ** 2 + row * np.sin(row) ** 2

    few = [symad.trace(f, [(5,), ()]) for f in (twice, summed)]
    many = [symad.trace(f, [(1000,), ()]) for f in (twice, summed)]
    assert symad.equal(*few).status in ("tested", "proved")
    certificate = symad.equal(*many)
    assert certificate.status in ("measured", "proved"), str(certificate)


def test_exponents_that_were_not_tried():
    n = sp.Symbol("N", integer=True, positive=True)
    A = sp.MatrixSymbol("A", 2, 2)
    power = sp.Trace(A**n)
    wrong = symad.equal(power, power * (1 + (n - 2) * (n - 3) * (n - 4)))
    assert wrong.status == "refuted"
    far = symad.equal(power, power * (1 + sp.prod([n - k for k in range(1, 40)])))
    assert far.status not in ("proved", "tested"), str(far)


def test_a_number_beyond_the_floats_is_no_crash():
    certificate = symad.equal(x * (1 + Rational(1, 10**400)), x)
    assert certificate.status in ("refuted", "undecided")
    assert symad.equal(x * 10**400 / 10**399, 10 * x).status == "proved"


def test_elements_are_looked_at_one_by_one():
    h = HIDDEN["atan"]
    certificate = symad.equal(Matrix([sign(h) ** 2, sign(x) ** 2]), Matrix([1, 1]))
    assert [e.status for e in certificate.entries][1] in ("proved", "tested")
    assert certificate.entries[0].status in ("undecided", "refuted")


def test_lambert_w_and_spherical_bessel_functions_have_their_relations():
    """W e^W = x (DLMF 4.13.1), and j₂ by sin and cos (DLMF 10.49.3); the wrong signs are refuted."""
    p, x = sp.Symbol("p", positive=True), sp.Symbol("x", real=True)
    w, tail = sp.LambertW(p), 3 * sp.cos(x) / x**2
    assert symad.equal(sp.exp(2 * w), (p / w) ** 2).status == "tested"  # W e^W = p is no rule of the checker
    assert symad.equal(sp.exp(w), p * w).status == "refuted"
    assert symad.equal(sp.jn(2, x), (3 / x**3 - 1 / x) * sp.sin(x) - tail).status == "tested"
    assert symad.equal(sp.jn(2, x), (3 / x**3 + 1 / x) * sp.sin(x) - tail).status == "refuted"


def test_signs_of_elements_are_not_all_the_same():
    """Σ sign(x) is 0 for one negative element of two; sign(x)·x − 1 is 0 nowhere on an open set."""
    total = symad.trace(lambda v: np.sign(np.sum(np.sign(v))) ** 2 + v.sum(), [(2,)])
    assert symad.equal(total, symad.trace(lambda v: 1 + v.sum(), [(2,)])).status == "refuted"
    apart = symad.trace(lambda v: np.sign(np.abs(v) - 1) ** 2 + v, [(2,)])
    assert symad.equal(apart, symad.trace(lambda v: 1 + v, [(2,)])).status in ("proved", "tested")
