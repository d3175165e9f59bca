"""Identities that hold with the signs of a region, decided on each interval; false ones beside them."""

from fractions import Fraction

import mpmath
import pytest
from sympy import (
    Abs,
    And,
    Or,
    Piecewise,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    cos,
    floor,
    pi,
    sign,
    sin,
    sqrt,
    symbols,
)

import symad
from symad.evaluation.intervals import INTERVALS, ZERO, above, below, both
from symad.verification.budget import Budget
from symad.verification.rewriting.identity_testing import compare_nodes
from symad.verification.terms.signs import known_signs

x, y = symbols("x y", real=True)
p, q = symbols("p q", positive=True)


def on(condition, value, other=0):
    """A value where a condition holds, and another one elsewhere."""
    return Piecewise((value, condition), (other, True))


TRUE = {
    "arcsine of sine": (on(Abs(x) < 1, asin(sin(x))), on(Abs(x) < 1, x)),
    "beyond the peak": (on(And(x > 2, x < 4), asin(sin(x))), on(And(x > 2, x < 4), pi - x)),
    "cosine without its sign": (on(Abs(x) < 1, sqrt(1 - sin(x) ** 2)), on(Abs(x) < 1, cos(x))),
    "cosine with the other sign": (on(And(x > 2, x < 4), Abs(cos(x))), on(And(x > 2, x < 4), -cos(x))),
    "a polynomial": (on(x > 3, Abs(x**2 - 5)), on(x > 3, x**2 - 5)),
    "of one sign alone": (on(p < 1, acos(cos(p))), on(p < 1, p)),
    "half an angle": (atan2(y, x), 2 * atan(y / (sqrt(x**2 + y**2) + x))),
    "cosh of both": (asinh(x), sign(x) * acosh(sqrt(x**2 + 1))),
}

FALSE = {
    "arcsine of sine": (on(Abs(x) < 2, asin(sin(x))), on(Abs(x) < 2, x)),
    "a little too far": (on(x < Fraction(11, 7), asin(sin(x))), on(x < Fraction(11, 7), x)),
    "beyond the peak": (on(And(x > 1, x < 4), asin(sin(x))), on(And(x > 1, x < 4), pi - x)),
    "cosine without its sign": (on(Abs(x) < 5, sqrt(1 - sin(x) ** 2)), on(Abs(x) < 5, cos(x))),
    "two intervals": (on(Or(x < -1, x > 6), Abs(cos(x))), on(Or(x < -1, x > 6), cos(x))),
    "a polynomial": (on(x > 2, Abs(x**2 - 5)), on(x > 2, x**2 - 5)),
    "outside": (on(Abs(x) < 1, asin(sin(x)), x), on(Abs(x) < 1, x, Abs(x))),
    "half an angle": (atan2(y, x), 2 * atan(y / (sqrt(x**2 + y**2) - x))),
    "cosh of both": (asinh(x), acosh(sqrt(x**2 + 1))),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", TRUE)
def test_what_holds_on_a_region_is_decided(name):
    assert symad.equal(*TRUE[name], seed=1).status in ("proved", "tested")


@pytest.mark.thorough
@pytest.mark.parametrize("name", FALSE)
def test_what_does_not_hold_is_refuted(name):
    assert symad.equal(*FALSE[name], seed=1).status == "refuted"


def test_a_whole_part_is_not_taken_for_a_positive_number():
    """The angles of (u + 1, u) and (u, u + 1) add up to π/2 for u > 0, and to −3π/2 for u < −1."""
    u = floor(x) + 10**15
    angles = atan2(u, u + 1) + atan2(u + 1, u), pi / 2 + 0 * x
    left, right = (symad.trace(f, inputs=[x]).output_nodes[0] for f in angles)
    (found,) = compare_nodes([(left, right)], 1, Budget()).pairs
    assert not found.equal.any()


@pytest.mark.parametrize("head", [sin, cos])
def test_intervals_of_waves_enclose_all_values(head):
    """The extremes of values at 400 points, by mpmath; ends that are left out are passed."""
    f = {sin: mpmath.sin, cos: mpmath.cos}[head]
    for low in (Fraction(-25, 7), Fraction(0), Fraction(3, 2), Fraction(11, 7), Fraction(1000, 3)):
        for width in (Fraction(1, 50), Fraction(1), Fraction(22, 7), Fraction(7)):
            found = INTERVALS.apply(head, both(above(low, True), below(low + width, True)))
            values = [float(f(float(low) + float(width) * k / 400)) for k in range(401)]
            assert float(found.low) - 1e-12 <= min(values) and max(values) <= float(found.high) + 1e-12
            assert float(found.high) - max(values) < 1e-3 and min(values) - float(found.low) < 1e-3
    assert ZERO.below(INTERVALS.apply(sin, both(above(0, True), below(3, True))))
    assert not ZERO.below(INTERVALS.apply(sin, both(above(0, False), below(3, True))))
    assert not ZERO.below(INTERVALS.apply(cos, both(above(0, True), below(Fraction(11, 7), True))))


@pytest.mark.parametrize(
    ("f", "known"),
    [
        (sqrt(x**2 + p) + x, 1), (sqrt(x**2 + p) - x, 1), (x - sqrt(x**2 + p * q), -1),
        (sqrt(p + x**2 + q) - x, 1),
        (sqrt(x**2 + y) + x, 0), (sqrt(x**2 - p) + x, 0), (sqrt(x**2 + p) + 2 * x, 0),
        (sqrt(x**4 + p) + x, 0), (sqrt(x**2 + p) + y, 0), ((x**2 + p) ** Fraction(1, 4) + x, 0),
    ],
)  # fmt: skip
def test_a_root_is_larger_than_the_root_of_a_part(f, known):
    (node,) = symad.trace(f).output_nodes
    assert known_signs([node])[node] == known
