"""`equal` of conditions and truth values: they differ, or not, as 1 and 0 do."""

import numpy as np
import pytest
import sympy as sp

import symad

x, p, q = sp.symbols("x p q")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (sp.true, sp.false),
        ([True], [False]),
        (np.bool_(True), np.bool_(False)),
        (sp.And(x > 0, x < 1), x > 0),
        (x > 0, sp.true),
        (p & q, q),
        (x > 0, x),
    ],
)
def test_different(a, b):
    assert symad.equal(a, b).status == symad.equal(b, a).status == "refuted"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (sp.true, sp.true),
        (True, 1),
        (sp.Not(x > 0), x <= 0),
        (x > 0, sp.Piecewise((1, x > 0), (0, True))),
        (sp.Or(x > 0, x <= 0), sp.true),
    ],
)
def test_equal(a, b):
    assert symad.equal(a, b).status in ("proved", "tested")
