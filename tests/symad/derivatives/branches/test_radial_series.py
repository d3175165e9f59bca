"""Higher derivatives of functions of norms and absolute values at 0: those of their series, or NaN."""

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad.derivatives.hessian import MODES
from symad.numeric import lower
from tests.symad.derivatives.branches.radial import SPELLINGS, Case, along, cases, nested, t

LINES = {1: [1], 2: [3, 4], 3: [1, 2, 2]}
TURNS = {
    "reverse": ["reverse"],
    "forward": ["forward"],
    "forward first": ["forward", "reverse"],
    "reverse first": ["reverse", "forward"],
}
x, y = sp.symbols("x y", real=True)


def check(case: Case, orders: int, turns: str) -> None:
    """A derivative that exists is right, or NaN above the second; others are NaN or 0.

    Those of |u| are sums of what its slope of 0 at 0 leaves of each term, in whatever form it is written.
    """
    line = LINES[case.size]
    found, known = nested(case, line, orders, TURNS[turns]), along(case.function, line)
    for k, (value, (right, exists)) in enumerate(zip(found, known, strict=False), 1):
        if not exists:
            assert case.size == 1 or value == 0 or np.isnan(value), (k, value)
        elif not np.isnan(value):
            assert value == pytest.approx(right, rel=1e-11, abs=1e-11), k
        else:
            assert k > 2 or (case.norm == "norms of rows" and case.square != "none"), k


@pytest.mark.sample(10)
@pytest.mark.parametrize("seed", range(120))
def test_four_derivatives(seed: int) -> None:
    (case,) = cases(1, seed)
    check(case, 3 + (seed % 2), list(TURNS)[seed % 4])


@pytest.mark.thorough
@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("seed", range(200, 230))
def test_four_derivatives_in_all_modes(seed: int, turns: str) -> None:
    check(cases(1, seed)[0], 4, turns)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("spelling", ["norm", "root of a product", "root of terms"])
@pytest.mark.parametrize(
    "function", [t**4 * sp.exp(-(t**2)), t**4 * sp.cos(t), t**6 * sp.cos(t), sp.cosh(t) / (1 + t**2)]
)
@pytest.mark.thorough
def test_six_derivatives(function: sp.Expr, spelling: str, size: int) -> None:
    """The series of products go on at all orders: t⁴ exp(−t²) has −720 as its sixth."""
    line = LINES[size]
    found = nested(Case(function, size, spelling, "none"), line, 6, ["reverse"])
    np.testing.assert_allclose(found, [right for right, _ in along(function, line)], rtol=1e-12, atol=1e-9)


def test_derivatives_beyond_the_series_are_missing() -> None:
    """The fourth of ‖u‖³ + ‖u‖⁴ does not exist, and the third of ‖u‖³ neither."""
    found = nested(Case(t**3 + t**4, 2, "norm", "none"), [3, 4], 4, ["reverse"])
    np.testing.assert_equal(found, [0, 0, np.nan, np.nan])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", [sp.exp(-t), sp.sqrt(1 + t)])
def test_a_number_times_a_cone_has_no_second_derivative(function: sp.Expr, mode: str) -> None:
    """x F(r) = F(0) x + F'(0) x r + …, and x r has slopes of second order that depend on the direction."""
    f = x * function.subs(t, sp.sqrt(x**2 + y**2))
    assert np.isnan(symad.hessian(f, [x, y], mode=mode)(0.0, 0.0)).any()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("at", [0.0, 1e-160, 1e-9, 1e-3])
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.sample(6)
def test_hessians_at_0_and_near(spelling: str, at: float, mode: str) -> None:
    """Against 50 digits: F'' v vᵀ + (F'/r)(1 − v vᵀ) for the unit vector v."""
    function, v = t**4 * sp.cos(t) + sp.cosh(t), np.array([0.6, 0.8])
    with mpmath.workdps(50):
        r = sp.Float(repr(at), 50)
        curved, slope = [sp.diff(function, t, k).subs(t, r) for k in (2, 1)]
        along_v, across = float(curved), float(slope / r) if at else float(curved)
    right = across * np.eye(2) + (along_v - across) * np.outer(v, v)
    f = symad.hessian(Case(function, 2, spelling, "none").graph(), mode=mode)
    np.testing.assert_allclose(f(at * v), right, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("style", ["plain", "fast"])
def test_limits_of_quotients_raise_no_errors_in_code(style: str) -> None:
    """A quotient by |y| divides by 0 at y = 0; the result is not finite, as NumPy's is."""
    f = sp.sqrt(2) * (sp.sin(x + 3) - sp.sin(x)) / sp.Abs(y)
    for g in (symad.hessian(f, [x, y]), symad.gradient(f, [x, y])):
        with np.errstate(all="ignore"):
            assert not np.isfinite(lower(g, style=style)(0.0, 0.0)).all()
            at = lower(g, style=style)(-3.0, -3.0)
        right = sp.hessian(f, (x, y)) if np.ndim(at) == 2 else sp.Matrix([f.diff(x), f.diff(y)])
        right = right.subs(sp.Derivative(sp.sign(y), y), 0).subs({x: -3, y: -3}).doit()
        np.testing.assert_allclose(np.ravel(at), np.array(right, float).ravel(), rtol=1e-13, atol=1e-15)
