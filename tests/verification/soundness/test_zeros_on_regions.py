"""A value that is 0 on a region, or everywhere, is no factor by which others may be divided.

√u √v = √(uv) and log u + log v = log(uv) express a root or a logarithm by two earlier ones. If u and v were
0, the equations would hold for any root or logarithm.
"""

import pytest
from sympy import Abs, Heaviside, Matrix, Max, Piecewise, log, sqrt, symbols

import symad

x, y, z = symbols("x y z", real=True)

HALF, NOTHING = x + Abs(x), (x + 1) ** 2 - x**2 - 2 * x - 1
"""0 for x < 0, and 0 for all x."""

FAR = Max(y - 10**12, 0)


def on_the_left(a):
    """A branch, where the other one has a logarithm of 0."""
    return Piecewise((log(HALF), x > 0), (a, True))


DIFFERENT = {
    "a root that is 0 for x < 0": (sqrt(HALF), sqrt(2) * sqrt(Abs(x))),
    "a root beside one that is 0": (
        sqrt(NOTHING) + FAR * sqrt(z**2 + 1),
        sqrt(NOTHING) + FAR * sqrt(z**2 + 2),
    ),
    "two elements": (
        Matrix([sqrt(HALF), FAR * sqrt(z**2 + 1) * Heaviside(-x)]),
        Matrix([sqrt(HALF), FAR * sqrt(z**2 + 2) * Heaviside(-x)]),
    ),
    "a logarithm of 0 in the other branch": (
        on_the_left(FAR * log(z**2 + 1)),
        on_the_left(FAR * log(z**2 + 2)),
    ),
}

EQUAL = {
    "a root that is 0 for x < 0": (sqrt(HALF), sqrt(2) * sqrt(Max(x, 0))),
    "squared": (sqrt(HALF) ** 2, 2 * Max(x, 0)),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_follows_from_what_is_zero(name, seed):
    assert symad.equal(*DIFFERENT[name], seed=seed).status == "refuted"


@pytest.mark.parametrize("name", EQUAL)
def test_a_root_of_zero_is_zero(name):
    assert symad.equal(*EQUAL[name], seed=1).status in ("proved", "tested")
