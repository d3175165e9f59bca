"""What is not used at a point does not count there: in conditions, below radii, in all modes and orders."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.derivatives.hessian import MODES
from symad.numeric import lower

x, y = sp.symbols("x y", real=True)


@pytest.mark.parametrize(
    "condition", [sp.exp(sp.sqrt(x)) > 1, 2 * sp.sqrt(x) + x > 0, sp.Abs(sp.sqrt(x) - 1) < 1, sp.sqrt(x) > 0]
)
def test_a_condition_may_read_what_is_made_of_a_shared_node(condition):
    """At 0 the root has no slope; that of the other branch is y."""
    f = sp.Piecewise((sp.exp(-sp.sqrt(x)), condition), (x * y, True))
    for mode in ("reverse", "forward"):
        np.testing.assert_array_equal(symad.gradient(f, [x, y], mode=mode)(0.0, 3.0), [3, 0])
    for mode in MODES:
        np.testing.assert_array_equal(symad.hessian(f, [x, y], mode=mode)(0.0, 3.0), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(lower(symad.hessian(f, [x, y]))(0.0, 3.0), [[0, 1], [1, 0]])


u = sp.log(x) - y
INSIDE = {
    "size": sp.Abs(u),
    "sum of functions of a size": sp.sin(sp.Abs(u)) + sp.Abs(u),
    "root": sp.sqrt(u**2 + y**2),
    "exponential of a root": sp.exp(-sp.sqrt(u**2 + y**2)),
    "power of a root": sp.sqrt(u**2 + y**2) ** 3,
    "norm of order 4": (u**4 + y**4) ** sp.Rational(1, 4),
}


@pytest.mark.parametrize("name", INSIDE)
def test_a_radius_in_a_branch_that_is_not_taken(name):
    """log x has no value at −1, and is infinite at 0; the slopes of a radius of it are NaN there."""
    f = symad.trace(sp.Piecewise((INSIDE[name], x > 0), (sp.exp(y), True)), [x, y])
    right = np.exp(2)
    for point in ((-1.0, 2.0), (0.0, 2.0)):
        for mode in ("reverse", "forward"):
            np.testing.assert_allclose(symad.gradient(f, mode=mode)(*point), [0, right], rtol=1e-15)
        for mode in MODES:
            np.testing.assert_allclose(symad.hessian(f, mode=mode)(*point), [[0, 0], [0, right]], rtol=1e-15)
    used = INSIDE[name].subs(sp.Abs(u), -u).subs({x: 3, y: sp.Rational(5, 2)})
    assert f(3.0, 2.5) == pytest.approx(float(used), rel=1e-14)


@pytest.mark.parametrize("mode", MODES)
def test_norms_of_rows_that_are_not_used(mode):
    """Rows with −∞ and NaN in an array."""

    def f(a, b):
        rows = np.stack([np.log(a) - b, b], 1)
        return np.sum(np.where(a > 0, np.linalg.norm(rows, axis=1), np.exp(b)))

    graph = symad.trace(f, [(2,), (2,)])
    a, b = np.array([-1.0, 0.0]), np.array([2.0, 0.5])
    np.testing.assert_allclose(symad.gradient(graph, mode="forward")(a, b), [[0, 0], np.exp(b)], rtol=1e-15)
    for hessian in (symad.hessian(graph, mode=mode), lower(symad.hessian(graph, mode=mode))):
        np.testing.assert_allclose(hessian(a, b), np.diag([0, 0, *np.exp(b)]), rtol=1e-15)
