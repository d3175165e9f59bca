"""Values, slopes and second derivatives of scalar functions at hostile points, against mpmath.

All functions of `agreement_cases`, in the graph and in all generated code: at zero, at tiny and huge
arguments, on both sides of the ends of their domains, and where exponentials saturate.
"""

from __future__ import annotations

from functools import cache
from math import isfinite, isnan
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy.tensor.array.expressions import ArraySymbol

import symad
from symad.core.graph import Graph
from symad.errors import LoweringError
from symad.numeric import lower
from tests.gpu.cupy_agreement import leaves, library, on_device
from tests.numeric.agreement.agreement_cases import CASES, arity, groups, orders, scalar_graph, written
from tests.numeric.agreement.function_cases import FEW, SYMPY
from tests.numeric.agreement.hostile_cases import (
    PAIRS,
    POINTS,
    SINGLE_PAIRS,
    SINGLE_POINTS,
    condition,
    reference,
)

SAMPLE = ("asinh", "acsch", "log1p", "tanh", "sigmoid", "besseli", "hypot")

POSITIVE = ("jn", "yn")
"""Their references are only right for positive arguments."""

STEPS = ("floor_divide", "sign", "floor", "ceiling", "frac", "trunc", "rint", "signbit",
         "Heaviside")  # fmt: skip
"""The difference quotients of their references step over jumps."""

WAVES = ("fresnels", "fresnelc", "airyai", "airybi", "airyaiprime", "airybiprime", "besselj", "bessely", "jn",
         "yn", "j0", "j1", "y0", "y1")  # fmt: skip
"""At huge arguments SciPy's functions have lost the phase: only that they are finite is compared there."""

EXPONENTS = {"power": 5 / 3, "cbrt": 1 / 3, "Cbrt": 1 / 3}
"""Powers whose exponent is no binary fraction: it is rounded, by up to 2⁻⁵³."""

HUGE = 1e10

SQUARES = ("norm", "atan2", "arctan2")
"""The sums of squares in them, or in their slopes, overflow and underflow where squares do."""

RATIOS = ("Mod", "fmod", "remainder", "floor_divide", "rel_entr", "kl_div")
"""Their quotients of arguments overflow, or have no digit after the point, where one is far larger."""

WIDE = ("airyai", "airybi", "airyaiprime", "airybiprime", "besseli", "E1", "Si", "LambertW", "loggamma")
"""Special functions that are asked at all points; others where mpmath and SciPy have all digits."""

LEFT_OUT = ("powm1",)
"""exp(y log x) − 1, which has no value at x ≤ 0, and no slope where it is almost −1."""

TAKES_LONG = ("trigamma", "besselk", "k0", "k1", "elliptic_pi", "lowergamma", "gammainc", "chdtr")
"""mpmath takes seconds for one of their references."""

SCIPYS = ("ive", "i1", "i1e", "j1", "bessely", "beta", "sc.beta", "betaln", "stdtr")
"""SciPy's values are some ten units off at tiny arguments, or at moderate ones of an order of 1/2."""

SINGULAR_DEGREES = ("chebyshevt", "chebyshevu", "legendre")
"""Of degree 5/2, they have a branch point at −1; SciPy's are infinite on both sides of it."""

CANCEL = ("harmonic", "harmonic of order 2", "i0e", "ndtri", "gammaincc", "chdtrc", "gdtr", "pdtr",
          "binomial", "li", "Li")  # fmt: skip
"""Differences, or exponentials of logarithms or squares: a digit or two are lost."""


def points_of(name: str, dtype: str) -> np.ndarray:
    """The points (arguments, points)."""
    single = dtype == "float32"
    if arity(name) == 2:
        points: Any = SINGLE_PAIRS if single else PAIRS
    else:
        points = [(p,) for p in (SINGLE_POINTS if single else POINTS)]
    return np.array(points, dtype).T.astype(float)


def misses(name: str, made: list[np.ndarray], dtype: str) -> list[str]:
    """What is wrong with computed values (orders, points)."""
    found = []
    for j, point in enumerate(points_of(name, dtype).T.tolist()):
        for k, order in enumerate(orders(arity(name))):
            if _is_left_out(name, point, order):
                continue
            wanted, got = reference(name, tuple(point), order), float(np.dtype(dtype).type(made[k][j]))
            if not isnan(wanted) and not _is_right(name, tuple(point), order, got, wanted, dtype):
                found.append(f"∂{order} {name}{tuple(point)} is {got}, not {wanted}")
    return found


def _is_left_out(name: str, point: list[float], order: tuple[int, ...]) -> bool:
    sizes = [abs(v) for v in point]
    if name in (*LEFT_OUT, *TAKES_LONG, *CANCEL, *SCIPYS):
        return True
    if name in SINGULAR_DEGREES and point[0] < -0.9:
        return True
    if (name in POSITIVE and point[0] <= 0) or (name == "heaviside" and not point[0]):
        return True
    special = CASES[name].digits == FEW and name not in WIDE
    if special and any(size and not 1e-30 < size < 30 for size in sizes):
        return True
    if name in SQUARES and not 1 / HUGE < max(sizes) < HUGE:
        return True
    if name in RATIOS and max(sizes) > HUGE * min(sizes):
        return True
    return bool(sum(order)) and (name in STEPS or any(v in CASES[name].kinks for v in point))


def _is_right(
    name: str, point: tuple[float, ...], order: tuple[int, ...], got: float, wanted: float, dtype: str
) -> bool:
    info = np.finfo(dtype)
    if abs(wanted) > float(info.max):
        return not isfinite(got)
    if name in WAVES and abs(point[-1]) > HUGE:
        return isfinite(got)
    ulps = CASES[name].slopes if sum(order) else CASES[name].ulps
    unit, least = float(ulps * info.eps / 2), 64 * float(info.tiny)
    size = abs(wanted)
    if CASES[name].cancels and sum(order) == 2:
        size = max(size, *(abs(reference(name, point, o) / (point[0] or 1)) for o in orders(len(point))[1:3]))
    if name in EXPONENTS and point[0]:
        size *= 1 + abs(EXPONENTS[name] * np.log(abs(point[0])))
    if abs(got - wanted) <= unit * size + least:
        return True
    return abs(got - wanted) <= unit * max(size, min(condition(name, point, order), float(info.max))) + least


# ---- scalars ----------------------------------------------------------------------------------------

ROUTES = [*((backend, "float64") for backend in ("graph", "numpy", "c", "runs")), ("numpy", "float32")]


def check_scalars(names: list[str], backend: str, dtype: str) -> None:
    found = []
    for group in groups(names, backend):
        graph = symad.join(*[scalar_graph(name) for name in group])
        kernel = graph if backend == "graph" else lower(graph, backend, dtype=dtype)
        points = points_of(group[0], dtype)
        with np.errstate(all="ignore"):
            made = [np.broadcast_to(r, points.shape[1:]) for r in leaves(kernel(*points.astype(dtype)))]
        count = len(orders(len(points)))
        for k, name in enumerate(group):
            found += misses(name, made[k * count : (k + 1) * count], dtype)
    assert not found, "\n".join([f"{len(found)} misses", *found])


@pytest.mark.sample(without=("runs-float64",))
@pytest.mark.parametrize(("backend", "dtype"), ROUTES)
def test_some_functions(backend: str, dtype: str) -> None:
    check_scalars(list(SAMPLE), backend, dtype)


GROUPS = [list(CASES)[k : k + 6] for k in range(0, len(CASES), 6)]


@pytest.mark.thorough
@pytest.mark.parametrize("names", GROUPS, ids=lambda names: names[0])
def test_all_functions(names: list[str]) -> None:
    for backend, dtype in ROUTES:
        check_scalars(names, backend, dtype)


# ---- SymPy ------------------------------------------------------------------------------------------

AGAINST_SYMPY = [name for name in SYMPY if CASES[name].digits != FEW and name not in (*STEPS, "relu")]


@pytest.mark.thorough
@pytest.mark.parametrize("name", AGAINST_SYMPY)
def test_no_derivative_loses_more_digits_than_sympys(name: str) -> None:
    """SymPy's ``diff`` with ``lambdify(cse=True)``, at the points where ours is not right by the table."""
    x = sp.Symbol("x", real=True)
    for k, order in enumerate(orders(1)):
        formula = SYMPY[name].function(x).diff(x, k) if k else SYMPY[name].function(x)
        theirs = sp.lambdify(x, formula, ["scipy", "numpy"], cse=True)
        for (point,) in points_of(name, "float64").T.tolist():
            wanted = reference(name, (point,), order)
            if isnan(wanted) or abs(wanted) > 1e308 or point in CASES[name].kinks:
                continue
            with np.errstate(all="ignore"):
                ours = float(leaves(scalar_graph(name)(point))[k])
                if _is_right(name, (point,), order, ours, wanted, "float64"):
                    continue
                error = abs(float(np.real(theirs(np.float64(point)))) - wanted)
            assert abs(ours - wanted) <= 2 * error or not isfinite(error), (order, point, ours, wanted)


# ---- arrays on the GPU ------------------------------------------------------------------------------


@cache
def array_graph(name: str, dtype: str) -> Graph:
    """The value, slopes and second derivatives of a function of one argument, on an array of the points."""
    given = ArraySymbol("p", points_of(name, dtype).shape[1:])
    made = [symad.trace(lambda p: symad.vmap(written(name))(p), inputs=[given])]
    for _ in range(2):
        total = symad.trace(lambda p, f=made[-1]: np.sum(f(p)), inputs=[given])
        made.append(symad.gradient(total, wrt=0))
    return symad.join(*made)


def check_arrays(name: str, dtype: str) -> None:
    points = points_of(name, dtype)[0].astype(dtype)
    with library() as cp, np.errstate(all="ignore"):
        kernel = lower(array_graph(name, dtype), "cupy", dtype=dtype)
        made = [leaf.get() for leaf in leaves(kernel(*on_device(cp, [points], dtype)))]
    found = misses(name, made, dtype)
    assert not found, "\n".join([f"{len(found)} misses", *found])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [name for name in SAMPLE if arity(name) == 1 and name != "besseli"])
def test_some_functions_of_arrays(name: str, dtype: str) -> None:
    check_arrays(name, dtype)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [name for name in CASES if arity(name) == 1])
def test_all_functions_of_arrays(name: str, dtype: str) -> None:
    try:
        check_arrays(name, dtype)
    except LoweringError as error:
        assert "has no CUDA or CuPy form" in str(error)
