"""Radicands may be cut out of a graph: this is how derivatives of norms inside norms are compared."""

import numpy as np
import pytest
from sympy import Matrix, Rational, cos, sqrt, symbols

import symad
from symad.core.graph import Graph
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.sources import constant
from symad.verification.budget import Budget, Meter
from symad.verification.measuring.directional import curvatures, directions
from symad.verification.random_fields import runs
from symad.verification.random_fields.identity_testing import compare_nodes

x, y = symbols("x y", real=True)


def normed(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 2.0**-10)


def nested(x, y):
    return (normed(normed(normed(x) * y) + x) * y).sum()


def bends():
    """uᵀ H v of three norms, one in the other, in two modes."""
    f = symad.trace(nested, [(2, 3), (2, 3)])
    nodes, (value,) = f.input_nodes, f.output_nodes
    u, v = directions(nodes, "u", set()), directions(nodes, "v", {"u"})
    made = curvatures(value, nodes, u, v)
    return made["forward-over-reverse"], made["reverse-over-reverse"], (*nodes, *u, *v)


@pytest.mark.thorough
def test_hessians_of_norms_in_norms_agree_without_extensions_of_the_field(monkeypatch):
    monkeypatch.setattr(runs, "MAX_CUT_LEVELS", 0)  # no root is taken exactly
    first, second, inputs = bends()
    assert compare_nodes([(first, second)], 1, Budget(), Meter(Budget())).pairs[0].certain.all()
    changed = [Graph(inputs, (side,)) for side in (first, mul(second, constant(Rational(1000001, 1000000))))]
    assert symad.equal(*changed, seed=1).status == "refuted"


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
def test_a_cut_says_nothing_about_signs(name):
    assert symad.equal(*WRONG[name], seed=1).status in ("refuted", "undecided")


def test_powers_of_a_root_are_powers_of_what_it_is_taken_of():
    sides = sqrt(U) ** 5 / (1 + sqrt(U)), (U**2 * sqrt(U) - U**3) / (1 - U)
    assert symad.equal(*sides, seed=1).status in ("proved", "tested")
