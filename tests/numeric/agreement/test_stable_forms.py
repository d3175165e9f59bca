"""Numerically stable forms are found whichever way a function is written, also in derivatives."""

from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from sympy.codegen import cfunctions

import symad
from symad import functions
from symad.numeric import lower

POINTS = [-900.0, -89.0, -40.0, -1.5, 0.0, 1e-9, 0.7, 20.0, 90.0, 900.0]
EXP = mpmath.exp

# what users write, and the same in mpmath
FORMS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "log1p(exp)": (lambda u: np.log1p(np.exp(u)), lambda u: mpmath.log(1 + EXP(u))),
    "log(1 + exp)": (lambda u: np.log(1 + np.exp(u)), lambda u: mpmath.log(1 + EXP(u))),
    "1/(1 + exp(-u))": (lambda u: 1 / (1 + np.exp(-u)), lambda u: 1 / (1 + EXP(-u))),
    "exp/(exp + 1)": (lambda u: np.exp(u) / (np.exp(u) + 1), lambda u: 1 / (1 + EXP(-u))),
    "u/(1 + exp(-u))": (lambda u: u / (1 + np.exp(-u)), lambda u: u / (1 + EXP(-u))),
    "log cosh": (lambda u: np.log(np.cosh(u)), lambda u: mpmath.log(mpmath.cosh(u))),
    "log of a sigmoid": (lambda u: np.log(functions.sigmoid(u)), lambda u: -mpmath.log(1 + EXP(-u))),
    "log of a square": (
        lambda u: np.log((1 + np.exp(u)) ** 2 * 3),
        lambda u: mpmath.log(3 * (1 + EXP(u)) ** 2),
    ),
    "three terms": (
        lambda u: np.log(np.exp(u) + 2 * np.exp(3 - u) + np.exp(u / 2)),
        lambda u: mpmath.log(EXP(u) + 2 * EXP(3 - u) + EXP(u / 2)),
    ),
    "logaddexp chain": (
        lambda u: np.logaddexp(np.logaddexp(u, -u), 3 + u),
        lambda u: mpmath.log(EXP(u) + EXP(-u) + EXP(3 + u)),
    ),
    "quotient of sums": (
        lambda u: np.exp(2 * u) / (np.exp(u) + np.exp(2 * u) + 3),
        lambda u: EXP(2 * u) / (EXP(u) + EXP(2 * u) + 3),
    ),
}
POSITIVE = {
    "log(exp - 1)": (lambda u: np.log(np.exp(u) - 1), lambda u: mpmath.log(mpmath.expm1(u))),
    "log expm1": (lambda u: np.log(np.expm1(u)), lambda u: mpmath.log(mpmath.expm1(u))),
}


def agree(made: Any, right: Any, inner: Any, ulps: float) -> None:
    """Within ulps times the condition number |u f'/f| ≥ 1, or below the normal numbers."""
    bound = ulps * np.finfo(float).eps / 2 * np.maximum(np.abs(right), np.abs(inner)) + 1e-307
    assert np.all(np.abs(made - right) <= bound), (made, right)


@cache
def exactly(name: str) -> Any:
    """Value and two derivatives at all points, by finite differences of numbers with 450 digits."""
    exact, h = (FORMS | POSITIVE)[name][1], mpmath.mpf(10) ** -20
    rows = []
    with mpmath.workdps(450):  # so that nothing is lost beside exp(1000)
        for p in points_of(name):
            low, here, high = (exact(mpmath.mpf(p) + k * h) for k in (-1, 0, 1))
            rows.append([float(here), float((high - low) / (2 * h)), float((high - 2 * here + low) / h**2)])
    return np.array(rows)


def points_of(name: str) -> list[float]:
    return [p for p in POINTS if name in FORMS or p > 0]


@pytest.mark.sample(6)
@pytest.mark.parametrize("backend", ["graph", "numpy", "c"])
@pytest.mark.parametrize("shape", ["scalar", "array"])
@pytest.mark.parametrize("name", [*FORMS, *POSITIVE])
def test_elementwise_forms(name: str, shape: str, backend: str) -> None:
    write, points = (FORMS | POSITIVE)[name][0], np.array(points_of(name))
    if shape == "array":
        graphs = [symad.trace(write, [points.shape])]
        graphs.append(symad.gradient(symad.trace(lambda u: np.sum(write(u)), [points.shape])))
    else:
        graphs = [symad.trace(write, [()])]
        graphs += [symad.gradient(graphs[0], wrt=graphs[0].inputs[0])]
        graphs += [symad.gradient(graphs[1], wrt=graphs[0].inputs[0])]
    values = exactly(name)
    slopes = np.abs(values)
    for k, graph in enumerate(graphs):
        made = (graph if backend == "graph" else lower(graph, backend))(points)
        made = np.asarray(made[0] if isinstance(made, tuple) else made)
        if k == 1 and shape == "array":  # σ' of arrays is y(1 − y): right to an ulp of its largest value
            assert np.allclose(made, values[:, 1], rtol=1e-13, atol=2e-16), name
            continue
        after = slopes[:, k + 1] if k < 2 else slopes[:, 2]
        if k and name in ("three terms", "logaddexp chain", "quotient of sums"):  # several σ: exact beside 1
            assert np.allclose(made, values[:, k], rtol=1e-13, atol=1e-15), name
            continue
        agree(made, values[:, k], np.abs(points) * after, 64)


@pytest.mark.parametrize("backend", ["graph", "numpy", "c"])
@pytest.mark.parametrize(
    "write",
    [
        lambda z: np.log(functions.softmax(z, axis=-1)),
        lambda z: z - np.log(np.sum(np.exp(z), axis=-1, keepdims=True)),
        lambda z: np.log(np.exp(z) / np.sum(np.exp(z), axis=-1, keepdims=True)),
        lambda z: functions.log_softmax(z, axis=-1),
    ],
)
def test_log_softmax_however_it_is_written(write: Any, backend: str) -> None:
    from scipy.special import log_softmax, softmax

    z = np.array([[-1000.0, 0.0, 1000.0], [3.0, -800.0, 2.0], [0.0, 0.0, 0.0]])
    picks = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    graph = symad.value_and_gradient(symad.trace(lambda z: np.sum(write(z) * picks), [z.shape]))
    value, slope = (graph if backend == "graph" else lower(graph, backend))(z)
    assert np.isclose(value, (log_softmax(z, axis=-1) * picks).sum(), rtol=1e-14)
    np.testing.assert_allclose(slope, picks - softmax(z, axis=-1), atol=1e-15)


@pytest.mark.sample(2)
@pytest.mark.parametrize("backend", ["graph", "numpy", "c", "runs"])
def test_sinc_at_zero(backend: str) -> None:
    import sympy as sp

    x = sp.Symbol("x", real=True)
    points = np.array([0.0, 1e-5, -1e-3, 0.5, -2.0, 30.0])
    with mpmath.workdps(60):
        right = [[float(mpmath.diff(mpmath.sinc, mpmath.mpf(p), k)) for p in points] for k in range(4)]
    graph = symad.trace(sp.sinc(x))
    for k in range(4):
        made = graph(points) if backend == "graph" else lower(graph, backend)(points)
        np.testing.assert_allclose(made, right[k], rtol=1e-12, atol=1e-17)
        graph = symad.gradient(graph, x)


@pytest.mark.sample(2)
@pytest.mark.parametrize("backend", ["graph", "numpy", "c"])
def test_distances_at_equal_points(backend: str) -> None:
    """The slope of a distance at the origin is 0, as that of |x|; a second derivative does not exist."""

    def matern(x: Any, y: Any) -> Any:
        r = np.sqrt(3 * np.sum((x[:, None] - y[None]) ** 2, axis=-1))
        return np.sum((1 + r) * np.exp(-r))

    x = np.array([[0.0, 1.0], [2.0, -1.0]])
    graph = symad.value_and_gradient(symad.trace(matern, [(2, 2), (2, 2)]))
    value, slope, _ = (graph if backend == "graph" else lower(graph, backend))(x, x)
    apart = x[0] - x[1]
    r = np.sqrt(3 * apart @ apart)
    assert np.isclose(value, 2 + 2 * (1 + r) * np.exp(-r), rtol=1e-14)
    np.testing.assert_allclose(slope[0], -3 * apart * np.exp(-r), rtol=1e-13)  # one of two: y is held
    norm = symad.trace(lambda z: np.sqrt(z @ z), [(3,)])
    for f, right in ((symad.gradient(norm), np.zeros(3)), (symad.hessian(norm), np.full((3, 3), np.nan))):
        made = (f if backend == "graph" else lower(f, backend))(np.zeros(3))
        np.testing.assert_array_equal(made[0] if isinstance(made, tuple) else made, right)


@pytest.mark.parametrize("backend", ["graph", "numpy", "c", "runs"])
@pytest.mark.parametrize("zero", [0, 0.0])
def test_the_power_zero(zero: float, backend: str) -> None:
    graph = symad.value_and_gradient(symad.trace(lambda a: a**zero, [()]))
    assert (graph if backend == "graph" else lower(graph, backend))(0.0) == (1.0, 0.0)


def signed_forms() -> dict[str, Any]:
    """Sums, products, powers and quotients of differences of exponentials, which change their sign."""
    u = sp.Symbol("u", real=True)
    e = sp.exp(u)
    differences = [e - 1, 1 - e, e - 2, sp.exp(2 * u) - 3 * e, cfunctions.expm1(u), e - sp.cosh(u)]
    made = {}
    for k, d in enumerate(differences):
        other = differences[(k + 1) % len(differences)]
        made |= {
            f"log(1 + d²) {k}": sp.log(1 + d**2),
            f"1/(1 + d²) {k}": 1 / (1 + d**2),
            f"e/(2 + d²) {k}": e / (2 + d**2),
            f"log(40 + d) {k}": sp.log(40 + d),
            f"log1p(d/40) {k}": cfunctions.log1p(d / 40),
            f"1/(40 + d) {k}": 1 / (40 + d),
            f"log(d² + o²) {k}": sp.log(d**2 + other**2),
            f"log(100 + d o) {k}": sp.log(100 + d * other),
            f"1/(1 + d⁴)^½ {k}": 1 / sp.sqrt(1 + d**4),
            f"d/(1 + e) {k}": d / (1 + e),
            f"log(d) {k}": sp.log(d),
            f"log(d e) {k}": sp.log(d * e / (1 + e)),
        }
    return made


SIGNED = signed_forms()


@pytest.mark.parametrize("name", SIGNED)
def test_differences_of_exponentials_may_be_negative(name: str) -> None:
    """No form takes the logarithm of a part that is negative where the whole is not."""
    (u,), form = SIGNED[name].free_symbols, SIGNED[name]
    slope = sp.diff(form, u)
    kernels = [lower(form), lower(symad.gradient(form, u)), symad.trace(form)]
    for point in (-1.3, -0.7, 0.4, 0.7, 1.9):
        exact = [complex(f.evalf(40, subs={u: sp.Rational(str(point))})) for f in (form, slope, form)]
        if exact[0].imag:  # the logarithm of a negative value
            assert np.isnan(kernels[0](point))
            continue
        for kernel, value in zip(kernels, exact, strict=True):
            np.testing.assert_allclose(kernel(point), value.real, rtol=1e-12)
