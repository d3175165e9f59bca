"""Roots of what may be negative: powers of a root are known, and nothing is said about signs."""

import pytest
from sympy import Matrix, cos, sqrt, symbols

import symad

x, y = symbols("x y", real=True)


U, V = x**2 * y + 1, x + y**3

WRONG = {
    "a root of a product of negative factors": (sqrt(U * V), -sqrt(-U) * sqrt(-V)),
    "a root of another element": (Matrix([sqrt(V), sqrt(V**3 + V**2)]), Matrix([sqrt(V), V * sqrt(V + 1)])),
    "the other root": (sqrt(U) ** 3, -U * sqrt(U)),
    "a root of a square": (sqrt(V**2), V),
    "three roots of products": (sqrt(U * V) * sqrt(U * (x - 1)) * sqrt(V * (x - 1)), U * V * (x - 1)),
    "a root for its argument": (cos(sqrt(U)) * sqrt(U), cos(U) * sqrt(U)),
}


@pytest.mark.parametrize("name", WRONG)
def test_nothing_is_said_about_signs_of_roots(name):
    assert symad.equal(*WRONG[name], seed=1).status in ("refuted", "undecided")


def test_powers_of_a_root_are_powers_of_what_it_is_taken_of():
    sides = sqrt(U) ** 5 / (1 + sqrt(U)), (U**2 * sqrt(U) - U**3) / (1 - U)
    assert symad.equal(*sides, seed=1).status in ("proved", "tested")
