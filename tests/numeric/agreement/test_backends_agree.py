"""Scalar functions have the same values in the graph and on all backends: against mpmath with 50 digits.

Functions are evaluated at ordinary points, near 0, in saturation and where they are not defined. The error of
values is at most 8 units in the last place times the condition number; that of two derivatives at most 64. At
points where a function has no value, nothing is raised and the result is not finite. All functions of a group
are in one graph, so that each backend compiles once.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from math import comb, prod
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from mpmath.libmp import NoConvergence
from sympy.tensor.array.expressions import ArraySymbol

import symad
from symad.core.graph import Graph
from symad.errors import LoweringError
from symad.numeric import lower
from tests.gpu.cupy_agreement import leaves, library, on_device
from tests.numeric.agreement.agreement_cases import CASES, TOGETHER, arity, groups, orders, scalar_graph
from tests.numeric.agreement.function_cases import Case
from tests.numeric.agreement.special_cases import SPECIAL

QUICK = ("sin", "exp", "log", "tanh", "sigmoid", "sinc", "log1p", "Abs", "gamma", "cbrt", "ndtr", "hypot")


@cache
def exact(name: str, dtype: str) -> tuple[Any, Any, Any]:
    """The points, the values and derivatives (orders, points), and the largest |x_i ∂_i| of each."""
    case, count = CASES[name], arity(name)
    points = [p if isinstance(p, tuple) else (p,) for p in case.points]
    points = [tuple(float(np.dtype(dtype).type(v)) for v in p) for p in points]
    rows, moved = [], []
    with mp.workdps(case.digits):
        h = mp.mpf(10) ** -(case.digits // 4)
        for order in orders(count):
            rows.append([_derivative(case, p, order, h) for p in points])
            steps = [tuple(o + (k == i) for k, o in enumerate(order)) for i in range(count)]
            pairs = [[(v, s) for v, s in zip(p, steps, strict=True)] for p in points]
            slopes = [
                [abs(v * _derivative(case, p, s, h)) for v, s in q]
                for p, q in zip(points, pairs, strict=True)
            ]
            moved.append([max(row) for row in slopes])
    return np.array(points).T, np.array(rows, float), np.array(moved, float)


def _derivative(case: Case, point: tuple[float, ...], order: tuple[int, ...], h: Any) -> float:
    """A derivative by central differences; NaN where there is none on the real line."""
    if any(v in case.kinks for v in point) and sum(order):
        return np.nan
    at, total = [mp.mpf(v) for v in point], mp.mpf(0)
    try:
        if mp.im(case.exact(*at)):
            return np.nan
        for step in product(*[range(o + 1) for o in order]):
            moved = [v + (mp.mpf(o) / 2 - k) * h for v, o, k in zip(at, order, step, strict=True)]
            weight = (-1) ** sum(step) * prod(comb(o, k) for o, k in zip(order, step, strict=True))
            total += weight * case.exact(*moved)
    except (ValueError, ZeroDivisionError, OverflowError, NoConvergence, TypeError):
        return np.nan
    value = total / h ** sum(order)
    if mp.im(value) or mp.isnan(value):
        return np.nan
    return float(mp.re(value))


def misses(name: str, made: Any, dtype: str) -> list[str]:
    """What is wrong with computed values (orders, points)."""
    points, right, moved = exact(name, dtype)
    info, found = np.finfo(dtype), []
    for k, order in enumerate(orders(arity(name))):
        ulps = CASES[name].slopes if k else CASES[name].ulps
        for j in range(points.shape[1]):
            got, wanted = float(made[k][j]), right[k, j]
            if np.isnan(wanted):
                if k == 0 and np.isfinite(got):
                    found.append(f"{name}{tuple(points[:, j].tolist())} is {got}, and has no value")
                continue
            if abs(wanted) > info.max:
                good = np.isinf(got)
            else:
                condition = moved[k, j] if np.isfinite(moved[k, j]) else 0.0
                scale = max(abs(wanted), min(condition, float(info.max)))
                if CASES[name].cancels and sum(order) == 2:
                    scale = max(scale, np.nanmax(np.abs(right[1 : 1 + arity(name), j] / points[0, j])))
                good = abs(got - wanted) <= ulps * info.eps / 2 * scale + 64 * float(info.tiny)
            if not good:
                found.append(f"∂{order} {name}{tuple(points[:, j].tolist())} is {got}, not {wanted}")
    return found


def computed(names: list[str], backend: str, dtype: str) -> dict[str, Any]:
    """Values (orders, points) of all functions of one arity, from one kernel at the points of each."""
    graph = symad.join(*[scalar_graph(name) for name in names])
    backend, *lanes = backend.split(" in ")
    kernel = graph if backend == "graph" else lower(graph, backend, dtype=dtype)
    found, first = {}, 0
    results = {}
    for name in names:  # each function at its own points; the others are computed along, wherever that is
        points = exact(name, dtype)[0]
        key = points.tobytes()
        if key not in results:
            some = points.shape[1]
            if lanes:  # so many that several are computed at a time
                points = np.tile(points, 1 + 48 // some)
            with np.errstate(all="ignore"):
                results[key] = [np.asarray(r)[..., :some] for r in leaves(kernel(*points.astype(dtype)))]
        count, shape = len(orders(arity(name))), exact(name, dtype)[0].shape[1:]
        found[name] = [np.broadcast_to(r, shape) for r in results[key][first : first + count]]
        first += count
    return found


ROUTES = [
    ("graph", "float64"),
    ("numpy", "float64"),
    ("c", "float64"),
    ("runs", "float64"),
    ("c in lanes", "float64"),
    ("runs in lanes", "float64"),
    ("numpy", "float32"),
]


def check_scalars(names: list[str], backend: str, dtype: str) -> None:
    found = []
    for group in groups(names, backend):
        for name, made in computed(group, backend, dtype).items():
            found += misses(name, made, dtype)
    assert not found, "\n".join([f"{len(found)} misses", *found])


@pytest.mark.parametrize(("backend", "dtype"), ROUTES)
def test_some_functions(backend: str, dtype: str) -> None:
    check_scalars(list(QUICK), backend, dtype)


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "dtype"), ROUTES)
def test_all_functions(backend: str, dtype: str) -> None:
    check_scalars(list(CASES), backend, dtype)


# ---- arrays -------------------------------------------------------------------------------------------


@cache
def array_graph(names: tuple[str, ...], dtype: str) -> Graph:
    """Values, slopes and second derivatives of functions of one argument, each on an array of its points."""

    def graphs(name: str) -> list[Graph]:
        points, function = exact(name, dtype)[0], CASES[name].function
        given = ArraySymbol(f"p_{names.index(name)}", points.shape[1:])
        made = [symad.trace(lambda p: function(p), inputs=[given])]
        for _ in range(2):
            total = symad.trace(lambda p, f=made[-1]: np.sum(f(p)), inputs=[given])
            made.append(symad.gradient(total, wrt=0))
        return made

    return symad.join(*[graph for name in names for graph in graphs(name)])


ONLY_SCALARS = (*SPECIAL, "sqrt", "trigamma", "besselj", "besseli", "besselk", "bessely", "jn")
"""Written with SymPy alone; arrays have np.sqrt, and SciPy's names."""

ARRAYS = [name for name in CASES if arity(name) == 1 and name not in ONLY_SCALARS]
ARRAY_ROUTES = [
    ("graph", "float64"),
    *((b, d) for b in ("numpy", "c", "cupy") for d in ("float64", "float32")),
]


def check_arrays(names: tuple[str, ...], backend: str, dtype: str) -> None:
    graph = array_graph(names, dtype)
    points = [exact(name, dtype)[0][0].astype(dtype) for name in names]
    with np.errstate(all="ignore"):
        if backend == "cupy":
            with library() as cp:
                kernel = lower(graph, backend=backend, dtype=dtype)
                made = [leaf.get() for leaf in leaves(kernel(*on_device(cp, points, dtype)))]
        else:
            made = leaves((graph if backend == "graph" else lower(graph, backend, dtype=dtype))(*points))
    found = []
    for k, name in enumerate(names):
        found += misses(name, made[3 * k : 3 * k + 3], dtype)
    assert not found, "\n".join([f"{len(found)} misses", *found])


@pytest.mark.thorough
@pytest.mark.parametrize(("backend", "dtype"), ARRAY_ROUTES)
def test_some_functions_of_arrays(backend: str, dtype: str) -> None:
    check_arrays(tuple(name for name in QUICK if name in ARRAYS), backend, dtype)


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "dtype"), [route for route in ARRAY_ROUTES if route[0] != "cupy"])
def test_all_functions_of_arrays(backend: str, dtype: str) -> None:
    for k in range(0, len(ARRAYS), TOGETHER):
        check_arrays(tuple(ARRAYS[k : k + TOGETHER]), backend, dtype)


REFUSED = {
    "erfi",
    "Ei",
    "E1",
    "Si",
    "Ci",
    "Shi",
    "Chi",
    "fresnels",
    "fresnelc",
    "airyai",
    "airybi",
    "LambertW",
    "i0e",
}
REFUSED |= {"elliptic_k", "elliptic_e", "ellipk", "ellipe", "expn", "ive", "i1e", "sc.betainc", "betaincc"}
REFUSED |= {"stdtr", "i0", "i1", "j0", "j1", "k0", "k1", "y0", "y1"}
"""Functions that neither CUDA nor CuPy has."""


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_all_functions_of_arrays_on_the_gpu(dtype: str) -> None:
    for name in ARRAYS:
        if name in REFUSED:
            with pytest.raises(LoweringError, match="has no CUDA or CuPy form"):
                check_arrays((name,), "cupy", dtype)
        else:
            check_arrays((name,), "cupy", dtype)
