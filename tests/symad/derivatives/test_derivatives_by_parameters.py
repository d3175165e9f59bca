"""Derivatives by parameters without a formula, 2F1, Owen's T, Voigt's profile: against mpmath and SciPy."""

import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy import integrate, special

import symad
from symad import functions
from symad.errors import DerivativeError
from symad.numeric import lower

x, h = sp.symbols("x h", real=True)
a, b, c, p, s = sp.symbols("a b c p s", positive=True)


def by_mpmath(function, point, *orders):
    with mpmath.workdps(40):
        return [float(mpmath.re(mpmath.diff(function, point, order))) for order in orders]


CASES = {
    "gammainc": (
        functions.gammainc(a, p), [a, p], (1.75, 2.5), lambda u, v: mpmath.gammainc(u, 0, v, regularized=True)
    ),
    "lowergamma": (sp.lowergamma(a, p), [a, p], (0.75, 1.5), lambda u, v: mpmath.gammainc(u, 0, v)),
    "uppergamma": (sp.uppergamma(a, p), [a, p], (0.75, 1.5), lambda u, v: mpmath.gammainc(u, v)),
    "zeta": (sp.zeta(a, p), [a, p], (2.5, 1.25), mpmath.zeta),
    "polylog": (sp.polylog(a, p), [a, p], (2.5, 0.25), mpmath.polylog),
    "betainc": (
        sp.betainc_regularized(a, b, 0, p), [a, b, p], (1.5, 2.5, 0.25),
        lambda u, v, w: mpmath.betainc(u, v, 0, w, regularized=True),
    ),
    "hyp2f1": (functions.hyp2f1(a, b, c, x), [a, b, c, x], (0.5, 1.25, 2.5, -0.375), mpmath.hyp2f1),
    "hyp1f1": (functions.hyp1f1(a, c, x), [a, c, x], (0.5, 2.5, 0.75), mpmath.hyp1f1),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_gradients_and_hessians_are_those_of_mpmath(name):
    formula, inputs, point, function = CASES[name]
    count = len(inputs)
    unit = np.eye(count, dtype=int)
    first = by_mpmath(function, point, *map(tuple, unit))
    second = by_mpmath(
        function, point, *(tuple(unit[i] + unit[j]) for i in range(count) for j in range(count))
    )
    gradient, hessian = (
        symad.gradient(formula, inputs, inputs=inputs),
        symad.hessian(formula, inputs, inputs=inputs),
    )
    for made in (gradient, lower(gradient)):
        np.testing.assert_allclose(made(*point), first, rtol=1e-10)
    np.testing.assert_allclose(np.ravel(hessian(*point)), second, rtol=1e-9, atol=1e-12)


def test_a_program_is_measured_and_a_wrong_one_refuted():
    box = (a > 1) & (a < 3) & (p < 4)

    def slope(u, v):
        return by_mpmath(lambda t: mpmath.gammainc(t, 0, v, regularized=True), (u,), (1,))[0]

    formula, options = functions.gammainc(a, p), {"where": box, "hostile": False}
    assert symad.verify(formula, a, gradient=slope, **options).status == "measured"
    wrong = symad.verify(formula, a, gradient=lambda u, v: 1.0001 * slope(u, v), **options)
    assert wrong.status == "refuted"


@pytest.mark.thorough
def test_what_rests_on_numerical_differentiation_is_never_more_than_measured():
    made = symad.check(sp.zeta(s))
    assert made.status == "measured" and all(e.status == "measured" for e in made.entries)
    assert "differentiated numerically" in str(made) + "".join(e.reason for e in made.entries)
    closed = symad.check(functions.owens_t(h, x), seed=0)
    assert closed.status in ("proved", "tested")


def test_owens_t_is_its_integral_and_voigt_its_convolution():
    def owens(u, v):
        return integrate.quad(lambda t: np.exp(-u * u * (1 + t * t) / 2) / (1 + t * t), 0, v)[0] / (2 * np.pi)

    def voigt(u, v, w):
        normal = lambda t: np.exp(-t * t / (2 * v * v)) / (v * np.sqrt(2 * np.pi))  # noqa: E731
        return integrate.quad(lambda t: normal(t) * w / (np.pi * ((u - t) ** 2 + w * w)), -40, 40, limit=400)[
            0
        ]

    for u, v in ((0.5, 1.25), (-2.0, 0.5), (1.0, -3.0)):
        for number in (mpmath.mpf, float):
            value = symad.trace(functions.owens_t(h, x), inputs=[h, x])(number(u), number(v))
            assert float(value) == pytest.approx(owens(u, v), rel=1e-9)
    for point in ((0.5, 1.25, 0.75), (-2.0, 0.5, 1.5)):
        for number in (mpmath.mpf, float):
            value = symad.trace(functions.voigt_profile(x, a, b), inputs=[x, a, b])(*map(number, point))
            assert float(value) == pytest.approx(voigt(*point), rel=1e-8)


def test_code_that_calls_scipy_is_read():
    inputs = [a, b, c, x]
    graph = symad.trace(lambda a, b, c, x: special.hyp2f1(a, b, c, x) + special.owens_t(x, a), inputs)
    point = (0.5, 1.25, 2.5, -0.375)
    assert graph(*point) == pytest.approx(special.hyp2f1(*point) + special.owens_t(-0.375, 0.5))
    assert symad.trace(sp.hyper([a, b], [c], x), inputs=inputs)(*point) == pytest.approx(
        special.hyp2f1(*point)
    )


def test_boxes_are_where_points_are_drawn():
    """Few ordinary points lie in a box that is narrow in each of four variables: others are drawn inside."""
    formula = functions.hyp2f1(a, b, c, x)
    box = (a > 5) & (a < 5.25) & (b > 3) & (b < 3.25) & (c > 7) & (c < 7.5) & (x > -0.125) & (x < 0.125)
    seen = []

    def value(*point):
        seen.append(point)
        return special.hyp2f1(*point)

    made = symad.verify(formula, inputs=[a, b, c, x], value=value, where=box, hostile=False)
    assert made.status == "measured" and len(seen) > 5
    assert all(5 < u < 5.25 and 3 < v < 3.25 and 7 < w < 7.5 and abs(t) < 0.125 for u, v, w, t in seen)


def test_orders_of_bessel_functions_still_have_no_derivative():
    with pytest.raises(DerivativeError, match="argument 1 of 2"):
        symad.gradient(sp.besselj(a, x), a)
