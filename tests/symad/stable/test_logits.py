"""Probabilities of logits and their likelihoods are right from −10⁴ to 10⁴, however they are spelled."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions as F
from symad.numeric import lower

X = sp.Symbol("x", real=True)
SPELLED = {
    "1/(1 + exp(-x))": 1 / (1 + sp.exp(-X)),
    "exp/(1 + exp)": sp.exp(X) / (1 + sp.exp(X)),
    "sigmoid": F.sigmoid(X),
    "tanh": (1 + sp.tanh(X / 2)) / 2,
    "tanh by exponentials": (1 + (sp.exp(X / 2) - sp.exp(-X / 2)) / (sp.exp(X / 2) + sp.exp(-X / 2))) / 2,
    "tanh by exp(x)": (1 + (sp.exp(X) - 1) / (sp.exp(X) + 1)) / 2,
    "tanh by exp(-x)": (1 + (1 - sp.exp(-X)) / (1 + sp.exp(-X))) / 2,
    "sinh/cosh": (1 + sp.sinh(X / 2) / sp.cosh(X / 2)) / 2,
    "1 - p": 1 - 1 / (1 + sp.exp(X)),
}


def plus(v: Any) -> Any:
    """log(1 + exp(v))."""
    return max(v, 0) + mpmath.log1p(mpmath.exp(-abs(v)))


def p(v: Any) -> Any:
    return mpmath.exp(-plus(-v))


USES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "log(1 - p)": (lambda q: sp.log(1 - q), lambda v: -plus(v)),
    "log p": (sp.log, lambda v: -plus(-v)),
    "p/(1 - p)": (lambda q: q / (1 - q), mpmath.exp),
    "log odds": (lambda q: sp.log(q / (1 - q)), lambda v: v),
    "1 - p": (lambda q: 1 - q, lambda v: p(-v)),
    "p (1 - p)": (lambda q: q * (1 - q), lambda v: p(v) * p(-v)),
    "Bernoulli": (
        lambda q: -(3 * sp.log(q) + 7 * sp.log(1 - q)) / 10,
        lambda v: (3 * plus(-v) + 7 * plus(v)) / 10,
    ),
    "binomial": (lambda q: sp.log(q**3 * (1 - q) ** 4), lambda v: -3 * plus(-v) - 4 * plus(v)),
    "entropy": (
        lambda q: -q * sp.log(q) - (1 - q) * sp.log(1 - q),
        lambda v: p(v) * plus(-v) + p(-v) * plus(v),
    ),
}
POINTS = (-1e4, -800.0, -710.0, -40.0, -3.0, 1e-9, 2.0, 40.0, 300.0, 710.0, 800.0, 1e4)


@cache
def right(use: str) -> list[list[Any]]:
    """Value and two derivatives at all points, by differences of numbers with 1000 digits."""
    f, h, rows = USES[use][1], mpmath.mpf(10) ** -200, []
    with mpmath.workdps(1000):
        for v in map(mpmath.mpf, POINTS):
            low, here, high = f(v - h), f(v), f(v + h)
            rows.append([+here, (high - low) / (2 * h), (high - 2 * here + low) / h**2])
    return rows


def agrees(made: float, value: Any, point: float) -> bool:
    if abs(value) > 1.7e308:
        return bool(np.isinf(made))
    return bool(abs(made - value) <= 1e-13 * max(1, abs(point)) * abs(value) + 1e-300)


def is_right(use: str, spelling: str) -> None:
    graph = symad.trace(USES[use][0](SPELLED[spelling]))
    overflows = use == "p/(1 - p)"
    for order in range(3):
        kernel = lower(graph)
        for point, values in zip(POINTS, right(use), strict=True):
            if overflows and point > 700:
                continue  # inf, or inf - inf
            assert agrees(float(kernel(point)), values[order], point), (order, point, kernel.source)
        graph = symad.gradient(graph, X)


SAMPLE = [
    (use, s) for k, use in enumerate(USES) for j, s in enumerate(SPELLED) if (j - k) % len(SPELLED) == 0
]


@pytest.mark.parametrize(("use", "spelling"), SAMPLE)
def test_likelihoods(use: str, spelling: str) -> None:
    is_right(use, spelling)


@pytest.mark.thorough
@pytest.mark.parametrize("use", USES)
def test_all_spellings(use: str) -> None:
    for spelling in SPELLED:
        is_right(use, spelling)


LAYERS: dict[str, Callable[[Any, Any], Any]] = {
    "log": lambda u, t: t * np.log(F.sigmoid(u)) + (1 - t) * np.log(1 - F.sigmoid(u)),
    "log1p": lambda u, t: t * np.log(F.sigmoid(u)) + (1 - t) * np.log1p(-F.sigmoid(u)),
    "xlogy": lambda u, t: F.xlogy(t, F.sigmoid(u)) + F.xlogy(1 - t, 1 - F.sigmoid(u)),
    "tanh": lambda u, t: t * np.log((1 + np.tanh(u / 2)) / 2) + (1 - t) * np.log((1 - np.tanh(u / 2)) / 2),
    "exp": lambda u, t: t * np.log(1 / (1 + np.exp(-u))) + (1 - t) * np.log(1 - 1 / (1 + np.exp(-u))),
}


@pytest.mark.parametrize("name", LAYERS)
def test_the_loss_of_a_layer(name: str) -> None:
    """Bernoulli's loss of a network's logits, from −2000 to 2000."""
    w, t = np.array([3.0, 2.0, 4.0]), np.array([0.0, 1.0, 0.0, 1.0])
    data = np.array([[100.0, 250.0, 300.0], [-10.0, 5.0, -500.0], [0.1, -0.2, 0.05], [200.0, -80.0, 70.0]])
    loss = symad.trace(lambda w: -np.sum(LAYERS[name](data @ w, t)), [(3,)])
    value, slope = lower(symad.value_and_gradient(loss))(w)
    u = data @ w
    assert value == pytest.approx(np.sum(np.logaddexp(0, u) - t * u), rel=1e-14)
    np.testing.assert_allclose(slope, data.T @ (1 / (1 + np.exp(-u)) - t), rtol=1e-13)


def test_tails_of_the_normal_distribution() -> None:
    """log(erfc(−x/√2)/2) at −40: the value of 60 digits, and its slope."""
    f = sp.log(sp.erfc(-X / sp.sqrt(2)) / 2)
    with mpmath.workdps(60):
        phi = mpmath.erfc(40 / mpmath.sqrt(2)) / 2
        slope = mpmath.exp(-800) / mpmath.sqrt(2 * mpmath.pi) / phi
        value = mpmath.log(phi)
    assert float(lower(f)(-40.0)) == pytest.approx(float(value), rel=1e-15)
    assert float(lower(symad.gradient(f, X))(-40.0)) == pytest.approx(float(slope), rel=1e-14)


def test_a_quotient_of_gamma_functions() -> None:
    a, y = sp.symbols("a y", real=True)
    f = sp.lowergamma(a, y) / sp.gamma(a)
    with mpmath.workdps(60):
        right = [
            mpmath.diff(lambda a, u=u: mpmath.gammainc(a, 0, u, regularized=True), at)
            for at, u in ((3, 36), (200, 230))
        ]
    kernel = lower(symad.gradient(f, a, inputs=[a, y]))
    made = [float(kernel(3.0, 36.0)), float(kernel(200.0, 230.0))]
    assert made == pytest.approx([float(r) for r in right], rel=1e-10)


def test_arrays_without_functions_of_numbers() -> None:
    """A graph that holds sums of exponentials alone: the slope by the likeliest class is no difference."""
    graph = symad.gradient(symad.trace(lambda z: F.logsumexp(z) - z[0], [(3,)]))
    small = math.exp(-40.0)
    right = np.array([-2 * small, small, small]) / (1 + 2 * small)
    np.testing.assert_allclose(lower(graph)(np.array([40.0, 0.0, 0.0])), right, rtol=1e-13)


def test_weights_that_are_inputs() -> None:
    """log(u exp(x) + v exp(y)), and its slopes p, q, p/u, q/v, where exp overflows or is 0."""
    u, v, x, y = inputs = (*sp.symbols("u v", positive=True), *sp.symbols("x y", real=True))
    kernel = lower(symad.value_and_gradient(sp.log(u * sp.exp(x) + v * sp.exp(y)), inputs))
    for at in ((800.0, 790.0), (800.0, -800.0), (-800.0, -790.0), (-800.0, -800.0)):
        odds = 0.25 / 0.75 * math.exp(at[0] - at[1]) if at[0] - at[1] < 700 else math.inf
        p, q = (1.0, 0.0) if odds == math.inf else (odds / (1 + odds), 1 / (1 + odds))
        highest = max(at)
        value = highest + math.log(0.25 * math.exp(at[0] - highest) + 0.75 * math.exp(at[1] - highest))
        made = [float(part) for part in kernel(0.25, 0.75, *at)]
        assert made == pytest.approx([value, p / 0.25, q / 0.75, p, q], rel=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("weight", [sp.Rational(1, 10), sp.Float(0.1)], ids=str)
def test_weights_of_exponentials(weight, backend):
    """A mixture of two densities: any positive weights, however they are written."""
    x = sp.Symbol("x", real=True)
    f = sp.log(weight * sp.exp(-(x**2) / 2) + (1 - weight) * sp.exp(-((x - 3) ** 2) / 2))
    value, slope = lower(symad.value_and_gradient(f), backend=backend)(-40.0)
    with mpmath.workdps(60):
        exact, derivative = (sp.lambdify(x, g, "mpmath")(mpmath.mpf(-40)) for g in (f, f.diff(x)))
    assert value == pytest.approx(float(exact), rel=1e-14)
    assert slope == pytest.approx(float(derivative), rel=1e-13)


def test_weights_of_exponentials_in_arrays():
    def f(a):
        return np.sum(np.log(0.1 * np.exp(-(a**2) / 2) + 0.9 * np.exp(-((a - 3) ** 2) / 2)))

    value, slope = lower(symad.value_and_gradient(symad.trace(f, [(2,)])))(np.array([-40.0, 1.0]))
    with mpmath.workdps(60):
        first, second = mpmath.mpf(0.1), mpmath.mpf(0.9)
        terms = [
            mpmath.log(first * mpmath.exp(-a * a / 2) + second * mpmath.exp(-((a - 3) ** 2) / 2))
            for a in map(mpmath.mpf, (-40, 1))
        ]
        assert value == pytest.approx(float(mpmath.fsum(terms)), rel=1e-14)
    assert slope[0] == pytest.approx(40, rel=1e-14)


def test_sums_of_more_terms_than_are_listed():
    xs = sp.symbols("x:60", real=True)
    total = sum(xs)
    slopes = lower(symad.gradient(total**2 * sp.exp(total) * (total + 1), xs))(*[0.01] * 60)
    s = 0.6
    assert np.allclose(slopes, np.exp(s) * (s**3 + s**2 + 3 * s**2 + 2 * s), rtol=1e-14)


def test_weights_of_unknown_sign_keep_proofs() -> None:
    """A loss of squares times exp(s): no selection by the sign of a weight stands in its derivatives."""
    x, s = sp.symbols("x s", real=True)
    loss = sp.Add(*[sp.log(1 + (sp.Rational(3 * k - 4, 10) - x) ** 2 * sp.exp(s)) for k in range(4)])
    assert symad.check(loss, [x, s]).status == "proved"
