"""Programs whose exact values are too small or too large for floats, or have no elements."""

import numpy as np
import pytest
import sympy as sp

import symad

x = sp.Symbol("x", real=True)


@pytest.mark.parametrize(
    ("scale", "slope"),
    [("1e-320", 2.1e-320), ("1e-320", 2e-320), ("1e-400", 0.0), ("1e400", np.inf)],
    ids=["wrong", "subnormal", "underflow", "overflow"],
)
def test_what_floats_cannot_tell_is_undecided(scale, slope):
    """2.1e-320 x for 2e-320 x was measured, with "an error of 5e-07 would have been seen"."""
    certificate = symad.verify(sp.Float(scale) * x**2, x, gradient=lambda v: slope * v)
    assert certificate.status == "undecided"
    assert "at no point tried would a relative error of 1e-06 have been seen" in certificate.entries[0].reason


def test_small_normal_numbers_are_measured():
    right = symad.verify(sp.Float("1e-300") * x**2, x, gradient=lambda v: 2e-300 * v)
    assert right.status == "measured"
    wrong = symad.verify(sp.Float("1e-300") * x**2, x, gradient=lambda v: 2.00001e-300 * v)
    assert wrong.status == "refuted"


def test_elements_that_underflow_beside_others_are_no_obstacle():
    def masked(s):
        return symad.functions.softmax(np.where(np.arange(3) < 2, s, -1e9))

    def program(s):
        e = np.exp(np.where(np.arange(3) < 2, s, -1e9) - s[:2].max())
        return e / e.sum()

    assert symad.verify(symad.trace(masked, [(3,)]), value=program).status == "measured"


def test_arrays_without_elements_are_measured():
    f = symad.trace(lambda a: a.sum(), [(0,)])
    assert symad.verify(f, "a", gradient=lambda a: np.zeros(0)).status == "measured"
    with pytest.raises(TypeError, match=r"returned shape \(1,\) instead of \(0,\)"):
        symad.verify(f, "a", gradient=lambda a: np.zeros(1))
