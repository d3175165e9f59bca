"""Identities of inverse functions on regions whose ends are irrational, and neighbours that are wrong."""

from random import Random

import pytest
import sympy as sp

import symad
from symad.verification.budget import Budget, Meter
from symad.verification.rewriting import identity_testing as testing
from symad.verification.rewriting.restated.by_cases import by_regions

x = sp.Symbol("x", real=True)
DOUBLED = sp.asin(2 * x * sp.sqrt(1 - x**2))
HALF = sp.Rational(1, 2)


def wholes(shift, period=sp.pi, way=sp.floor):
    return x - period * way(x / period + shift)


TRUE = {
    "twice an arc sine": (DOUBLED, 2 * sp.asin(x), 2 * x**2 < 1),
    "twice an arc sine, by |x|": (DOUBLED, 2 * sp.asin(x), sp.Abs(x) < 1 / sp.sqrt(2)),
    "beyond the end": (DOUBLED, sp.pi - 2 * sp.asin(x), x > 1 / sp.sqrt(2)),
    "below the other end": (DOUBLED, -sp.pi - 2 * sp.asin(x), x < -1 / sp.sqrt(2)),
    "twice an arc cosine": (sp.acos(2 * x**2 - 1), 2 * sp.acos(x), x > 0),
    "an angle by its tangent": (sp.atan(sp.tan(x)), x, sp.Abs(x) < sp.pi / 2),
    "an angle by its sine": (sp.asin(sp.sin(x)), x, sp.Abs(x) < sp.pi / 2),
    "a branch": (
        sp.Piecewise((sp.atan(sp.tan(x)), sp.Abs(x) < sp.pi / 2), (x**2, True)),
        sp.Piecewise((x, sp.Abs(x) < sp.pi / 2), (x**2, True)),
        None,
    ),
    "whole parts": (sp.atan(sp.tan(x)), wholes(HALF), None),
    "whole parts upwards": (sp.atan(sp.tan(x)), wholes(-HALF, way=sp.ceiling), None),
    "both with x": (sp.atan(sp.tan(x)) + x, x + wholes(HALF), None),
    "Hermite's identity": (sum(sp.floor(x + sp.Rational(k, 30)) for k in range(30)), sp.floor(30 * x), None),
}

FALSE = {
    "the region is too large": (DOUBLED, 2 * sp.asin(x), 5 * x**2 < 3),
    "the region is a little too large": (
        DOUBLED,
        2 * sp.asin(x),
        sp.Abs(x) < 1 / sp.sqrt(2) + HALF / 50,
    ),
    "the branch of the other region": (DOUBLED, 2 * sp.asin(x), x > 1 / sp.sqrt(2)),
    "the sign of a constant": (DOUBLED, -sp.pi - 2 * sp.asin(x), x > 1 / sp.sqrt(2)),
    "a small constant": (DOUBLED, 2 * sp.asin(x) + sp.Rational(1, 10**12), 2 * x**2 < 1),
    "an angle beyond its period": (sp.atan(sp.tan(x)), x, sp.Abs(x) < 2),
    "an angle a little beyond": (sp.atan(sp.tan(x)), x, sp.Abs(x) < sp.pi / 2 + sp.Rational(1, 100)),
    "an angle of a sine": (sp.asin(sp.sin(x)), x, sp.Abs(x) < sp.pi),
    "whole parts from 0": (sp.atan(sp.tan(x)), wholes(0), None),
    "whole parts from a third": (sp.atan(sp.tan(x)), wholes(sp.Rational(1, 3)), None),
    "the period of a sine": (sp.atan(sp.tan(x)), wholes(HALF, 2 * sp.pi), None),
    "other whole parts": (sum(sp.floor(x + sp.Rational(k, 31)) for k in range(30)), sp.floor(30 * x), None),
    "another branch": (
        sp.Piecewise((sp.atan(sp.tan(x)), sp.Abs(x) < sp.pi), (x**2, True)),
        sp.Piecewise((x, sp.Abs(x) < sp.pi), (x**2, True)),
        None,
    ),
}


def judged(left, right, where):
    if where is None:
        return symad.equal(left, right, seed=1)
    return symad.verify(left, x, value=right, where=where, seed=1)


KNOWN = {"Hermite's identity"}
"""What is decided: of regions whose ends are irrational nothing is, and nothing is refuted."""

SLOW = ("below the other end", "twice an arc sine, by |x|", "whole parts upwards", "both with x")


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", [pytest.param(k, marks=pytest.mark.slow) if k in SLOW else k for k in TRUE])
def test_identities_hold_on_regions_with_irrational_ends(name):
    certificate = judged(*TRUE[name])
    known = ("proved", "tested") if name in KNOWN else ("proved", "tested", "undecided")
    assert certificate.status in known, str(certificate)


@pytest.mark.thorough
@pytest.mark.parametrize("name", FALSE)
def test_neighbours_of_identities_are_refuted(name):
    assert judged(*FALSE[name]).status == "refuted"


@pytest.mark.parametrize("name", FALSE)
def test_the_test_on_intervals_alone_does_not_call_neighbours_equal(name):
    """It must not rest on the points that refute them."""
    left, right, where = FALSE[name]
    if where is not None:
        left, right = (sp.Piecewise((side, where), (0, True)) for side in (left, right))
    pair = [symad.trace(side, inputs=[x]).output_nodes[0] for side in (left, right)]
    search, meter = testing._WaySearch(), Meter(Budget())
    cases = by_regions(pair)
    held = [
        any(testing._all_hold(c, box, search, Random(1), meter) for c in testing.by_injective(a, b, box))
        for a, b, box in cases
    ]
    assert not cases or not all(held)
