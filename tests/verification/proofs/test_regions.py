"""Identities that hold with the signs of a region, decided on each interval; false ones beside them."""

from fractions import Fraction
from math import prod

import mpmath
import numpy as np
import pytest
from sympy import (
    Abs,
    And,
    Eq,
    Max,
    Or,
    Piecewise,
    Rational,
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
from symad.models.layers import margin_losses
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


def triplet(anchor, near, far):
    """The triplet loss with the margin 1, the mean over rows: one sign for each row."""
    gaps = [np.sqrt(np.sum((anchor - other) ** 2, axis=1)) for other in (near, far)]
    return np.mean(np.maximum(0, 1 + gaps[0] - gaps[1]))


def triplet_slope(turn):
    """Its gradient by the anchor, where the loss is positive (1), or where it is 0 (-1)."""

    def slope(anchor, near, far):
        ways = [anchor - other for other in (near, far)]
        sizes = [np.sqrt(np.sum(way**2, axis=1)) for way in ways]
        taken = np.where(turn * (1 + sizes[0] - sizes[1]) > 0, 1, 0)
        return (ways[0] / sizes[0][:, None] - ways[1] / sizes[1][:, None]) * taken[:, None] / len(sizes[0])

    return slope


@pytest.mark.parametrize(
    ("rows", "turn"), [(2, -1), *(pytest.param(rows, 1, marks=pytest.mark.thorough) for rows in (2, 7))]
)
def test_each_lane_may_have_a_region_of_its_own(rows, turn):
    """With a sign for each of 7 rows there are 128 regions."""
    loss = symad.trace(triplet, [(rows, 2)] * 3)
    slope = symad.trace(triplet_slope(turn), [(rows, 2)] * 3)
    certificate = symad.verify(loss, gradient=slope, wrt="anchor", seed=1)
    assert (certificate.status in ("proved", "tested")) == (turn == 1)


@pytest.mark.slow
def test_a_triplet_loss_of_several_rows_is_decided():
    loss = symad.trace(lambda a, p, n: margin_losses.triplet(a, p, n).mean(), [(4, 8)] * 3)
    certificate = symad.check(loss, wrt="a", seed=1)
    assert {entry.status for entry in certificate.entries} <= {"proved", "tested"}


def test_a_sum_of_cubes_of_absolute_values_is_0_at_a_point_alone():
    """The slope of the norm divides by it, and by something else where it is 0."""
    norm = symad.trace((Abs(x) ** 3 + Abs(y) ** 3) ** Fraction(1, 3), inputs=[x, y])
    assert symad.check(norm, wrt="x", seed=1).status == "proved"


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(4))
def test_a_difference_in_one_of_eight_regions_is_found(seed):
    """Where three functions are positive, together; each lane has a region of its own."""
    gaps = [sqrt(x**2 + 1) - 2 * y, sqrt(y**2 + 1) - 2 * p, sqrt(p**2 + 1) - 2 * x]
    total = sum(Max(gap, 0) for gap in gaps)
    there = prod(Piecewise((1, gap > 0), (0, True)) for gap in gaps)
    other = sum((gap + Abs(gap)) / 2 for gap in gaps)
    sides = total, other, total + q * there
    left, right, wrong = (symad.trace(f, inputs=[x, y, p, q]).output_nodes[0] for f in sides)
    found = compare_nodes([(left, right), (left, wrong)], seed, Budget()).pairs
    assert found[0].certain.all() and not found[1].certain.any()


def test_sums_that_are_0_on_a_region_are_not_taken_for_others():
    """max(x, 0)² + max(y, 0)² and [x > 0] + [y > 0] are 0 where both numbers are negative."""
    squares = Max(x, 0) ** 2 + Max(y, 0) ** 2
    truths = Piecewise((1, x > 0), (0, True)) + Piecewise((1, y > 0), (0, True))
    for total in (squares, truths):
        assert symad.equal(Piecewise((1, Eq(total, 0)), (0, True)), 0 * x, seed=1).status == "refuted"
    cubes = Abs(x) ** 3 + Abs(y) ** 3
    assert symad.equal(Piecewise((1, Eq(cubes, 0)), (x, True)), x, seed=1).status == "proved"


BESIDE_EXTREMES = {
    "a < max": (lambda a, b: a < np.maximum(a, b), lambda a, b: a < b),
    "a <= max": (lambda a, b: a <= np.maximum(a, b), lambda a, b: a == a),
    "max < a": (lambda a, b: np.maximum(a, b) < a, lambda a, b: a != a),
    "max <= a": (lambda a, b: np.maximum(a, b) <= a, lambda a, b: b <= a),
    "min < a": (lambda a, b: np.minimum(a, b) < a, lambda a, b: b < a),
    "min <= a": (lambda a, b: np.minimum(a, b) <= a, lambda a, b: a == a),
    "a < min": (lambda a, b: a < np.minimum(a, b), lambda a, b: a != a),
    "a <= min": (lambda a, b: a <= np.minimum(a, b), lambda a, b: a <= b),
}


@pytest.mark.parametrize("name", BESIDE_EXTREMES)
def test_comparisons_with_extremes_say_which_argument_wins(name):
    """Both numbers are 0 on an open set: there they are equal."""

    def of(condition):
        def made(x, y):
            a, b = np.maximum(x, 0), np.maximum(y, 0)
            return np.where(condition(a, b), x, y)

        return symad.trace(made, [(), ()]).output_nodes[0]

    known, plain = map(of, BESIDE_EXTREMES[name])
    other = of(lambda a, b: ~BESIDE_EXTREMES[name][1](a, b))
    right, wrong = compare_nodes([(known, plain), (known, other)], 1, Budget()).pairs
    assert right.certain.all() and not wrong.certain.any()


def test_a_fraction_beside_a_maximum_is_no_infinity() -> None:
    """A rational constant in a branch that a maximum chooses is looked at like any other number."""
    s, t = symbols("s t", real=True)
    distance = (s - Rational(17, 7)) ** 2 + (t - Rational(23, 9)) ** 2
    gate = Max(Rational(1, 10**8) - distance, 0)
    left, right = (Piecewise((v, gate > 0), (x, True)) for v in (Rational(1, 2), x))
    assert symad.equal(left, right, inputs=[s, t, x]).status not in ("proved", "tested")
