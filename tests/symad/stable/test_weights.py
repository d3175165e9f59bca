"""Logarithms of products and sums of exponentials with weights of any sign, against mpmath."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special
import sympy as sp
from sympy.codegen.cfunctions import log1p

import symad
from symad.numeric import lower
from tests.gpu.cupy_agreement import leaves, library, on_device

x, y, a, b = sp.symbols("x y a b", real=True)
FORMULAS: dict[str, tuple[sp.Expr, tuple[sp.Symbol, ...], list[tuple[float, ...]]]] = {
    "a mixture": (
        sp.log(a * sp.exp(-(x**2) / 2) + (1 - a) * sp.exp(-((x - y) ** 2) / 2)),
        (a, x, y),
        [(0.25, 60.0, 3.0), (0.25, 1.0, 2.0), (0.0, 60.0, 90.0), (1.0, 60.0, 3.0), (0.0, 1.0, 2.0)],
    ),
    "two signs": (
        sp.log(a * sp.exp(x) + b * sp.exp(y)),
        (a, b, x, y),
        [(2.0, -0.5, 1000.0, 999.0), (-1.0, 2.0, -2000.0, -1990.0), (0.0, 2.0, 600.0, 1.0)],
    ),
    "three": (
        sp.log(a * sp.exp(x) + b * sp.exp(y) + (1 - a - b) * sp.exp(x / 2)),
        (a, b, x, y),
        [(0.25, 0.5, -900.0, -901.0), (0.25, 0.5, 400.0, 399.0)],
    ),
    "zeros beside a rate": (
        sp.log(a + (1 - a) * sp.exp(x)),
        (a, x),
        [(0.0, -600.0), (0.125, -3.0), (0.25, 900.0)],
    ),
    "one and more": (sp.log(1 + a * sp.exp(x)), (a, x), [(2.0, 800.0), (0.5, -60.0), (-0.5, 0.125)]),
    "log1p": (log1p(a * sp.exp(x)), (a, x), [(2.0, 800.0), (0.5, -60.0), (-0.5, 0.125)]),
    "two factors": (sp.log(x * y * sp.exp(a)), (a, x, y), [(-900.0, -2.0, -3.0), (900.0, 2.0, 3.0)]),
    "a factor and sinh": (sp.log(a * sp.sinh(x)), (a, x), [(2.0, 1000.0), (-2.0, -1000.0), (3.0, 0.5)]),
    "sinh over x": (sp.log(sp.sinh(x) / x), (x,), [(1000.0,), (-1000.0,), (0.5,)]),
    "a factor and a difference": (
        sp.log(a * (sp.exp(x) - sp.exp(y))),
        (a, x, y),
        [(2.0, 1000.0, 999.0), (-2.0, -1000.0, -999.0), (2.0, 1.0, 0.5)],
    ),
}


FIRST = ("zeros beside a rate", "two factors", "a factor and sinh", "sinh over x")
BACKENDS = ["numpy", *[pytest.param(n, marks=pytest.mark.thorough) for n in ("c", "graph")]]
NAMES = [pytest.param(n, marks=() if n in FIRST else pytest.mark.thorough) for n in FORMULAS]


@cache
def exact(name: str) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """Value, gradient and Hessian at each point, with 900 digits."""
    f, given, points = FORMULAS[name]
    slopes = [f.diff(v) for v in given]
    asked = [f, *slopes, *[s.diff(v) for s, v in product(slopes, given)]]
    functions = [sp.lambdify(given, e, "mpmath") for e in asked]
    n = len(given)
    made = []
    with mpmath.workdps(900):
        for point in points:
            found = [float(mpmath.re(g(*map(mpmath.mpf, point)))) for g in functions]
            made.append((found[0], np.array(found[1 : n + 1]), np.array(found[n + 1 :]).reshape(n, n)))
    return made


def assert_close(found: Any, right: Any, rounding: float) -> None:
    """Near the values; a derivative that cancels has the rounding of the largest one beside it."""
    right = np.asarray(right)
    finite = np.abs(right[np.isfinite(right)])
    found = np.asarray(found, float)
    assert np.all(found[~np.isfinite(right)] == right[~np.isfinite(right)]), (found, right)
    size = max(1.0, finite.max(initial=0.0))
    np.testing.assert_allclose(found, right, rtol=rounding, atol=rounding * size)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_values_slopes_and_curvatures(name: str, backend: str) -> None:
    f, given, points = FORMULAS[name]
    made = [
        symad.trace(f, given),
        symad.gradient(f, given),
        symad.gradient(f, given, mode="forward"),
        symad.hessian(f, given),
        symad.hessian(f, given, mode="reverse-over-reverse"),
    ]
    value, *slopes = made if backend == "graph" else [lower(g, backend=backend) for g in made]
    for point, (right, gradient, hessian) in zip(points, exact(name), strict=True):
        with np.errstate(all="ignore"):
            assert_close(value(*point), right, 1e-14)
            for slope in slopes[:2]:
                assert_close(slope(*point), gradient, 4e-14)
            for curvature in slopes[2:]:
                assert_close(np.reshape(curvature(*point), hessian.shape), hessian, 1e-12)


ARRAYS: dict[str, Callable[[Any, Any], Any]] = {
    "a sum": lambda w, u: np.log(np.sum(w * np.exp(u))),
    "rows": lambda w, u: np.sum(np.log(np.sum(w * np.exp(np.stack([u, u - 1])), axis=1))) / 2,
    "SciPy's": lambda w, u: scipy.special.logsumexp(u, b=w),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("backend", [*BACKENDS[:2], pytest.param("cupy", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", ARRAYS)
def test_sums_over_axes(name: str, backend: str, dtype: str) -> None:
    """The largest exponent has the weight 0: it counts in the slope of its weight alone."""
    weights, exponents = np.array([0.5, -0.25, 0.0], dtype), np.array([-400.0, -401.0, -10.0], dtype)
    total = mpmath.mpf("0.5") - mpmath.mpf("0.25") * mpmath.exp(-1)
    shares = np.array([float(0.5 / total), float(1 - 0.5 / total), 0.0])
    right = float(mpmath.log(total)) - 400 - (0.5 if name == "rows" else 0)
    graph = symad.value_and_gradient(symad.trace(ARRAYS[name], [(3,), (3,)]))
    rounding = 1e-13 if dtype == "float64" else 1e-5
    with np.errstate(all="ignore"):
        if backend == "cupy":
            with library() as cp:
                kernel = lower(graph, "cupy", dtype=dtype)
                found = [v.get() for v in leaves(kernel(*on_device(cp, [weights, exponents], dtype)))]
        else:
            found = leaves(lower(graph, backend, dtype=dtype)(weights, exponents))
    value, by_weights, by_exponents = [np.asarray(each) for each in found]
    np.testing.assert_allclose(value, right, rtol=rounding)
    np.testing.assert_allclose(by_exponents, shares, rtol=rounding, atol=1e-30)
    np.testing.assert_allclose(by_weights[:2], shares[:2] / weights[:2], rtol=rounding)
    assert by_weights[2] > 1e30


@pytest.mark.thorough
def test_the_proofs_stay() -> None:
    for name in ("a mixture", "zeros beside a rate", "sinh over x"):
        f, given, _ = FORMULAS[name]
        assert symad.check(f, list(given)).status == "proved"
