"""Norms of numbers whose powers overflow or underflow: value, gradient and Hessian against 60 digits."""

import re
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions as F
from symad.core.graph import Graph
from symad.derivatives.hessian import MODES
from symad.numeric import lower
from tests.gpu.cupy_agreement import leaves, library, on_device

x, y, z = sp.symbols("x y z", real=True)

ORDERS = (2, 3, 4, 1000, 2.5, 1.5, sp.Rational(7, 3))
POINTS = (
    [1e200, 2e200, -3e200],
    [1e-200, 2e-200, -3e-200],
    [1e160, -3e165, 2e170],
    [1e-300, 1.0, -1e-10],
    [-1e250, 3.0, 1e100],
    [3e-170, 1e-160, 1e-162],
    [0.5, -2.0, 0.25],
)
SINGLE_POINTS = ([1e30, 2e30, -3e30], [1e-30, 2e-30, -3e-30], [1e-28, -1.0, 1e-6], [0.5, -2.0, 0.25])

SPELLINGS: dict[str, Callable[[Any], Any]] = {
    "norm": np.linalg.norm,
    "root of a sum": lambda u: np.sqrt(np.sum(u**2)),
    "root of a product": lambda u: np.sqrt(u @ u),
    "rows": lambda u: np.linalg.norm(np.stack([u, 2 * u]), axis=1) @ np.array([1.0, 0.0]),
    "kept axis": lambda u: np.linalg.norm(u[None], axis=1, keepdims=True)[0, 0],
    "columns": lambda u: np.sqrt(np.sum(np.stack([u, 2 * u], 1) ** 2, axis=0))[0],
    "mean": lambda u: np.sqrt(3 * np.mean(u**2)),
    "terms": lambda u: np.sqrt(u[0] ** 2 + u[1] ** 2 + u[2] ** 2),
    "a number and a sum": lambda u: np.sqrt(u[0] ** 2 + np.sum(u[1:] ** 2)),
    "hypot": lambda u: np.hypot(np.hypot(u[0], u[1]), u[2]),
}
"""Euclidean norms of three numbers."""


def right(point: list[float], order: float) -> list[np.ndarray]:
    """Value, gradient and Hessian of the norm: 0 where all are smaller than the smallest float."""
    with mpmath.workdps(60):
        p = mpmath.mpf(order.p) / order.q if isinstance(order, sp.Rational) else mpmath.mpf(order)
        u = [mpmath.mpf(v) for v in point]
        norm = sum(abs(v) ** p for v in u) ** (1 / p)
        a = [mpmath.sign(v) * (abs(v) / norm) ** (p - 1) for v in u]
        curved = [
            [
                (p - 1) / norm * ((abs(v) / norm) ** (p - 2) * (i == j) - a[i] * a[j])
                for j in range(len(u))
            ]
            for i, v in enumerate(u)
        ]  # fmt: skip
        return [np.array([[float(e) for e in row] for row in rows]) for rows in ([[norm]], [a], curved)]


def close(found: object, expected: np.ndarray, point: list[float], single: bool = False) -> None:
    """To rounding of what is summed: (δ_ij − a_i a_j)/r to that of 1/r, which its diagonal may cancel to."""
    found = np.asarray(found, float).reshape(expected.shape)
    eps, least = (1e-6, 1e-37) if single else (1e-14, 1e-300)
    largest = max(map(abs, point))
    scale = 4 / largest if expected.shape == (len(point), len(point)) else 0
    np.testing.assert_allclose(found, expected, rtol=100 * eps, atol=max(least, 100 * eps * scale))


def check(f: Graph, point: list[float], order: float, backend: str, dtype: str = "float64") -> None:
    given = (np.array(point, dtype),) if len(f.input_nodes) == 1 else tuple(point)
    modes = MODES if backend != "runs" else MODES[:1]  # the others have arrays inside
    derived = [f, symad.gradient(f), *[symad.hessian(f, mode=mode) for mode in modes]]
    value, slope, curved = right(point, order)
    for graph, expected in zip(derived, [value, slope, *[curved] * len(modes)], strict=True):
        close(called(graph, backend, dtype, given), expected, point, dtype == "float32")


def called(graph: Graph, backend: str, dtype: str, given: tuple[Any, ...]) -> object:
    if backend == "graph":
        return graph(*given)
    if backend == "plain":
        return lower(graph, style="plain", dtype=dtype)(*given)
    if backend == "cupy":
        with library() as cp:
            return [r.get() for r in leaves(lower(graph, "cupy", dtype=dtype)(*on_device(cp, given, dtype)))]
    return lower(graph, backend, dtype=dtype)(*given)


ROUTES = [("graph", "float64"), *((b, d) for b in ("numpy", "c") for d in ("float64", "float32"))]


def of_order(order: float) -> Graph:
    p = float(order) if isinstance(order, sp.Rational) else order
    return symad.trace(lambda u: np.linalg.norm(u, p), [(3,)])


@pytest.mark.parametrize(("backend", "dtype"), ROUTES)
def test_of_orders_2_and_3(backend: str, dtype: str) -> None:
    for order in (2,) if dtype == "float32" else (2, 3):
        for point in POINTS[:2] if dtype == "float64" else SINGLE_POINTS[:2]:
            check(of_order(order), point, order, backend, dtype)


@pytest.mark.thorough
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("backend", "dtype"), [*ROUTES, ("plain", "float64"), ("cupy", "float64")])
def test_of_all_orders(backend: str, dtype: str, order: float) -> None:
    for point in POINTS if dtype == "float64" else SINGLE_POINTS:
        check(of_order(order), point, order, backend, dtype)


@pytest.mark.parametrize("name", ["root of a product", "rows", "terms"])
def test_spellings(name: str) -> None:
    for point in POINTS[:2]:
        check(symad.trace(SPELLINGS[name], [(3,)]), point, 2, "numpy")


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["graph", "numpy", "plain", "c", "cupy"])
@pytest.mark.parametrize("name", SPELLINGS)
def test_all_spellings(name: str, backend: str) -> None:
    for point in POINTS:
        check(symad.trace(SPELLINGS[name], [(3,)]), point, 2, backend)


@pytest.mark.parametrize("backend", ["graph", "numpy", "c", "runs"])
def test_of_numbers(backend: str) -> None:
    two, three = sp.sqrt(x**2 + y**2), sp.sqrt(x**2 + y**2 + z**2)
    for f, inputs in ((two, [x, y]), (three, [x, y, z]), (F.hypot(x, y), [x, y])):
        for point in POINTS[:2]:
            check(symad.trace(f, inputs), point[: len(inputs)], 2, backend)


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["graph", "numpy", "plain", "c", "runs"])
def test_of_many_numbers(backend: str) -> None:
    many = sp.symbols("a:5", real=True)
    weighted = sp.sqrt(4 * x**2 + 9 * y**2 / 4)
    cubes = sp.cbrt(sp.Abs(x) ** 3 + sp.Abs(y) ** 3 + sp.Abs(z) ** 3)
    for point in POINTS:
        long = [*point, point[0] / 2, -point[1]]
        check(symad.trace(sp.sqrt(sum(a**2 for a in many)), many), long, 2, backend)
        check(symad.trace(weighted.subs({x: x / 2, y: 2 * y / 3}), [x, y]), point[:2], 2, backend)
        check(symad.trace(cubes, [x, y, z]), point, 3, backend)


def test_infinite_empty_and_undefined_elements() -> None:
    for order in (2, 3):
        f = of_order(order)
        for kernel in (f, lower(f), lower(f, "c")):
            assert kernel(np.array([np.inf, 1.0, -np.inf])) == np.inf
            assert np.isnan(kernel(np.array([np.nan, 1.0, 2.0])))
            assert kernel(np.zeros(3)) == 0
        n = sp.Symbol("n", integer=True)
        sized = symad.trace(lambda u, order=order: np.linalg.norm(u, order), [(n,)])
        for kernel in (sized, lower(sized), lower(sized, "c")):
            assert kernel(np.zeros(0)) == 0
            assert kernel(np.array([3e200, 4e200])) == pytest.approx(np.linalg.norm([3, 4], order) * 1e200)


@pytest.mark.parametrize("scale", [1e100, 1e-100])
def test_even_functions_of_small_and_large_norms(scale: float) -> None:
    """cosh(r/s) has the Hessian of cosh at u/s, divided by s²; that of r² is 2."""
    at = np.array([0.5, -0.25])
    g = symad.trace(lambda u: np.cosh(np.linalg.norm(u)), [(2,)])
    f = symad.trace(lambda u: np.cosh(np.linalg.norm(u) / scale) * scale, [(2,)])
    for mode in MODES:
        np.testing.assert_allclose(
            lower(symad.hessian(f, mode=mode))(at * scale) * scale, symad.hessian(g)(at), rtol=1e-13
        )
        square = symad.trace(lambda u: np.linalg.norm(u) ** 2, [(2,)])
        found = symad.hessian(square, mode=mode)(at * scale**2)
        np.testing.assert_allclose(found, 2 * np.eye(2), rtol=1e-15)


def test_certificates_of_norms() -> None:
    n = sp.Symbol("n", integer=True)
    assert symad.check(symad.trace(lambda u: np.linalg.norm(u), [(n,)])).status == "proved"


@pytest.mark.thorough
def test_more_certificates_of_norms() -> None:
    n = sp.Symbol("n", integer=True)
    for f in (lambda u: np.exp(-np.linalg.norm(u)), lambda u: u / np.linalg.norm(u)):
        assert symad.check(symad.trace(f, [(n,)])).status == "proved"
    rows = symad.check(symad.trace(lambda u: np.linalg.norm(u, axis=1).sum(), [(n, 3)]))
    assert rows.status in ("proved", "tested")


@pytest.mark.parametrize("backend", ["graph", "numpy", "plain", "c", "runs"])
def test_slopes_of_angles(backend: str) -> None:
    """x/(x² + y²), where the squares overflow or underflow."""
    f = symad.gradient(sp.atan2(y, x), (x, y))
    kernel = {"graph": lambda: f, "plain": lambda: lower(f, style="plain")}.get(
        backend, lambda: lower(f, backend=backend)
    )()
    for a, b in ((1e200, 2e200), (-3e200, 1e160), (1e-200, -2e-200), (1e-160, 3e-161), (0.3, -4.0)):
        with mpmath.workdps(60):
            q = mpmath.mpf(a) ** 2 + mpmath.mpf(b) ** 2
            expected = [float(-b / q), float(a / q)]
        np.testing.assert_allclose(kernel(a, b), expected, rtol=1e-15)


def test_roots_of_large_arrays_are_no_hypot() -> None:
    """NumPy's hypot is an order slower than a root of a sum of squares."""
    f = symad.trace(lambda u, v: np.sum(np.sqrt(u**2 + v**2)), [(100_000,)] * 2)
    kernel = lower(f)
    assert "hypot" not in kernel.source
    assert kernel(np.full(100_000, 3.0), np.full(100_000, 4.0)) == 500_000


@pytest.mark.parametrize("backend", ["graph", "numpy", "c"])
@pytest.mark.parametrize("rows", [6, 1000])
def test_rows_of_which_some_overflow(backend: str, rows: int) -> None:
    """Rows of all magnitudes beside each other: their norms, and unit vectors; that of zeros is 0/0."""
    at = np.random.default_rng(0).uniform(1, 2, (rows, 8))
    scale = np.array([1e160, 1.0, 1e-100, 1e300, 0.0, -1e120])
    at[:6] *= scale[:, None]
    with mpmath.workdps(40):
        right = [float(mpmath.sqrt(sum(mpmath.mpf(v) ** 2 for v in row))) for row in at]
    norms = symad.trace(lambda u: np.linalg.norm(u, axis=1), [(rows, 8)])
    units = symad.trace(lambda u: u / np.linalg.norm(u, axis=1, keepdims=True), [(rows, 8)])
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(called(norms, backend, "float64", (at,)), right, rtol=1e-14)
        expected = at / np.array(right)[:, None]
    np.testing.assert_allclose(called(units, backend, "float64", (at,)), expected, rtol=1e-14)


def test_norms_are_scaled_where_that_is_needed() -> None:
    """Code for ordinary numbers has one sum of squares; the others are in a branch or in a function."""
    n = sp.Symbol("n", integer=True)
    norm = symad.trace(lambda u: np.linalg.norm(u), [(n,)])
    lines = lower(norm).source.splitlines()
    start = lines.index(next(line for line in lines if line.startswith("def f(")))
    own = [line for line in lines[start:] if line.startswith("    ") and not line.startswith("     ")]
    assert sum("vdot" in line for line in own) == 1
    units = symad.trace(lambda u: u / np.linalg.norm(u, axis=1, keepdims=True), [(n, 8)])
    assert re.findall(r"if \((\w+)\) \{\n#pragma omp simd reduction", lower(units, "c").c_source)


# ---- other powers, and a number among the terms ---------------------------------------------------

THIRD = sp.Rational(1, 3)
OTHER_POWERS = {
    "root": (sp.sqrt(x**2 + 1), 2),
    "root with weights": (sp.sqrt(3 * x**2 + 2), 2),
    "quotient of a root": (x / sp.sqrt(x**2 + 1), 2),
    "reciprocal": (1 / sp.sqrt(x**2 + 7), 2),
    "two numbers": (sp.sqrt(x**2 + y**2 + 3), 2),
    "four numbers": (sp.sqrt(x**2 + y**2 + z**2 + 5), 1),
    "third power": ((x**2 + 1) ** THIRD, 1),
    "two thirds": ((x**2 + y**2 + 1) ** (2 * THIRD), 1),
    "third power without a number": ((x**2 + y**2) ** THIRD, 1),
    "fourth powers": (sp.sqrt(x**4 + y**2 + 1), 0),
    "cubes": (sp.cbrt(sp.Abs(x) ** 3 + sp.Abs(y) ** 3 + 1), 0),
    "small number": (sp.sqrt(x**2 + sp.Rational(1, 10**20)), 2),
}
"""Functions, and how many derivatives are right; others multiply what overflows by what underflows."""

AT = {"float64": (1e200, -1e160, 3e-200, 0.75, -3.0), "float32": (1e25, -1e20, 3e-25, 0.75, -3.0)}


def with_derivatives(name: str) -> tuple[list[Graph], list[list[sp.Expr]]]:
    """The function and its derivatives, as symad makes them and by SymPy."""
    f, most = OTHER_POWERS[name]
    inputs = sorted(f.free_symbols, key=str)
    gradient = [f.diff(v).replace(sp.DiracDelta, lambda *_: sp.S.Zero) for v in inputs]
    expected = [[f], gradient, [g.diff(v) for g in gradient for v in inputs] if most == 2 else []]
    derived = [symad.trace(f, inputs), symad.gradient(f, inputs), symad.hessian(f, inputs)]
    return derived[: most + 1], expected[: most + 1]


def check_powers(name: str, backend: str, dtype: str) -> None:
    graphs, expected = with_derivatives(name)
    inputs = sorted(OTHER_POWERS[name][0].free_symbols, key=str)
    eps, least = (1e-14, 1e-300) if dtype == "float64" else (1e-6, 1e-37)
    for at in AT[dtype]:
        point = [float(np.dtype(dtype).type(v)) for v in (at, 2 * at, -at / 3)[: len(inputs)]]
        for graph, formulas in zip(graphs, expected, strict=True):
            with mpmath.workdps(1300), np.errstate(over="ignore"):
                values = [mpmath.mpf(v) for v in point]
                exact = [float(sp.lambdify(inputs, f, "mpmath")(*values)) for f in formulas]
                right = np.array(exact).astype(dtype)
            found = np.concatenate([np.ravel(r) for r in leaves(called(graph, backend, dtype, tuple(point)))])
            curved = graph is graphs[-1] and len(graphs) == 3
            beside = min(1, 4 / max(map(abs, point))) if curved else 0  # 1/r − x²/r³ beside 1/r
            np.testing.assert_allclose(
                found, right, rtol=100 * eps, atol=max(least, 100 * eps * beside), err_msg=f"{name} {point}"
            )


@pytest.mark.parametrize("name", ["root", "two numbers", "third power"])
def test_powers_of_sums_with_a_number(name: str) -> None:
    check_powers(name, "graph", "float64")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("backend", "dtype"),
    [
        *[(b, "float64") for b in ("graph", "numpy", "plain", "c", "runs")],
        *[(b, "float32") for b in ("numpy", "plain")],
    ],
)
def test_all_powers_of_sums(backend: str, dtype: str) -> None:
    for name in OTHER_POWERS:
        check_powers(name, backend, dtype)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_many_points_of_all_magnitudes(backend: str) -> None:
    """Compiled and NumPy code for many points at once has ways of its own to compute hypot(x, y)."""
    points = np.array([1e200, -1e-200, 0.75, 1e10, 0.0, -np.inf] * 50)
    for f, right in ((sp.sqrt(x**2 + 1), [1e200, 1, 1.25, 1e10, 1, np.inf]),
                     (sp.sqrt(x**2 + 4) / 2, [5e199, 1, np.sqrt(4.5625) / 2, 5e9, 1, np.inf])):  # fmt: skip
        kernel = lower(f, backend)
        np.testing.assert_allclose(kernel(points), right * 50, rtol=1e-15)
        np.testing.assert_allclose(kernel(points[:3]), right[:3], rtol=1e-15)
        assert np.isnan(kernel(np.array([np.nan] * 300))).all()
    two = lower(sp.sqrt(x**2 + y**2), backend)
    for scale in (1.0, 1e200, 1e-200):
        many = [np.full(300, side * scale) for side in (3, 4)]
        np.testing.assert_allclose(two(*many), 5 * scale, rtol=1e-15)
