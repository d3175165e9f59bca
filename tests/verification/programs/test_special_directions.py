"""Products that are wrong only at special directions (zeros, ones, large), or a large input, are refuted."""

import numpy as np
import pytest

import symad

CUBE = symad.trace(lambda x: x**3, [(3,)])
TANH = symad.trace(np.tanh, [(3,)])
BELL = symad.trace(lambda x: np.exp(-x * x / 2), [(2,)])
TWO = symad.trace(lambda x: (np.sin(x), x * x), [(2,)])


def right(x, dy):
    return 3 * x**2 * dy


WRONG = {
    "divided by y_bar": lambda x, dy: right(x, dy) * dy / dy,
    "another value at 0": lambda x, dy: np.where(dy == 0, 1.0, right(x, dy)),
    "y_bar ignored if it is 0": lambda x, dy: right(x, dy if np.any(dy) else dy + 1),
    "y_bar is all ones": lambda x, dy: right(x, dy) + 0.1 * bool(np.all(dy == 1)),
    "a single element": lambda x, dy: right(x, dy) * (2 if np.count_nonzero(dy) == 1 else 1),
    "none is positive": lambda x, dy: right(x, dy) * (2 if np.all(dy < 0) else 1),
    "clipped": lambda x, dy: right(x, np.clip(dy, -100, 100)),
    "clipped by norm": lambda x, dy: right(x, dy * min(1, 1000 / (1e-9 + np.linalg.norm(dy)))),
    "large x": lambda x, dy: np.where(np.abs(x) > 1e4, 1.0, right(x, dy)),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_vjp_that_is_wrong_at_special_directions_is_refuted(name):
    certificate = symad.verify(CUBE, "x", vjp=WRONG[name], hostile=False)
    assert certificate.status == "refuted", str(certificate)
    assert certificate.entries[0].witness is not None


RIGHT = {
    "cube": (CUBE, right),
    "scaled and back": (CUBE, lambda x, dy: right(x, dy * 8) / 8),
    "tanh by exponentials": (TANH, lambda x, dy: dy / np.cosh(np.clip(x, -300, 300)) ** 2),
    "bell": (BELL, lambda x, dy: -x * np.exp(-x * x / 2) * dy),
    "skips zeros": (CUBE, lambda x, dy: right(x, dy) if np.any(dy) else np.zeros(3)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_vjp_is_measured(name):
    f, vjp = RIGHT[name]
    assert symad.verify(f, "x", vjp=vjp, hostile=False).status == "measured"


@pytest.mark.parametrize(("f", "slope"), [(TANH, lambda x: 1 - np.tanh(x) ** 2), (BELL, RIGHT["bell"][1])])
def test_a_slope_where_the_right_one_underflows_is_refuted(f, slope):
    """At |x| > 10⁴ the derivative of tanh is less than the smallest float: a slope of 1 there is wrong."""

    def vjp(x, dy):
        inner = slope(x, dy) if f is BELL else slope(x) * dy
        return np.where(np.abs(x) > 1e4, dy, inner)

    assert symad.verify(f, "x", vjp=vjp, hostile=False).status == "refuted"


def test_one_of_two_directions_is_zero():
    def vjp(x, a, b):
        return np.cos(x) * a + 2 * x * b

    assert symad.verify(TWO, "x", vjp=vjp, hostile=False).status == "measured"
    wrong = symad.verify(TWO, "x", vjp=lambda x, a, b: vjp(x, a, b) * (1 + (not a.any())), hostile=False)
    assert wrong.status == "refuted"


def test_a_tangent_program_at_zeros():
    wrong = symad.verify(CUBE, "x", jvp=lambda x, v: right(x, v) * v / v, hostile=False)
    assert wrong.status == "refuted" and "nan" in str(wrong)
    assert symad.verify(CUBE, "x", jvp=right, hostile=False).status == "measured"


def test_a_program_that_raises_at_zero_is_undecided():
    def vjp(x, dy):
        if not dy.any():
            raise ValueError("no cotangent")
        return right(x, dy)

    certificate = symad.verify(CUBE, "x", vjp=vjp, hostile=False)
    assert certificate.status == "undecided" and "no cotangent" in certificate.entries[0].reason


def test_a_program_without_a_value_anywhere_is_undecided_still():
    certificate = symad.verify(CUBE, "x", vjp=lambda x, dy: right(x, dy) * np.nan, hostile=False)
    assert certificate.status == "undecided"
