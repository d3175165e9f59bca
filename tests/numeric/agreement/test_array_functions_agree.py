"""NumPy's functions of arrays: values and two derivatives by every backend, against NumPy and complex steps.

The slope of Σ c f(x) by complex steps (Squire and Trapp 1998), Im f(x + ih)/h with h = 1e-100, has all
digits and knows nothing of symad; second derivatives are differences of such slopes. Points are ordinary,
with ties, of very different sizes, or empty.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import symad
from symad.core.graph import Graph
from symad.numeric import lower
from symad.numeric.entries.in_scalars import in_scalars
from tests.gpu.cupy_agreement import leaves, library, on_device

rng = np.random.default_rng(5)
A, B = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
S = A @ A.T + np.eye(3)
V, U = rng.normal(size=3), rng.normal(size=3)
C = rng.normal(size=(2, 3, 4))
SPREAD = A * 10.0 ** rng.integers(-6, 6, size=A.shape)
TIES = np.round(A)
KEEP = rng.uniform(size=A.shape) > 0.4

Function = Callable[..., Any]

ANALYTIC: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "sum": (np.sum, (SPREAD,)),
    "sum over an axis": (lambda a: np.sum(a, axis=1, keepdims=True), (A,)),
    "sum of some": (lambda a: np.sum(a**2, axis=0, where=KEEP, initial=2.0), (A,)),
    "sum of nothing": (lambda a: np.sum(a[:, :0] ** 2, axis=1), (A,)),
    "mean": (lambda a: np.mean(a**3, axis=(0, 1)), (A,)),
    "var": (lambda a: np.mean((a - np.mean(a, axis=0)) ** 2, axis=0), (A,)),
    "prod": (lambda a: np.prod(a, axis=1), (A,)),
    "prod with zeros": (lambda a: np.prod(a), (TIES,)),
    "cumsum": (lambda a: np.cumsum(a**2, axis=0), (SPREAD,)),
    "cumprod": (lambda a: np.cumprod(a, axis=1), (A,)),
    "diff": (lambda a: np.diff(a**2, n=2, axis=1), (A,)),
    "average": (lambda a, w: np.average(a, axis=0, weights=w**2), (A, B)),
    "dot": (np.dot, (A, B.T)),
    "matmul": (lambda a, b: a @ b, (C, B.T)),
    "inner": (np.inner, (A, B)),
    "outer": (np.outer, (V, U)),
    "vdot of reals": (lambda a, b: np.sum(a * b), (V, U)),
    "tensordot": (lambda a, b: np.tensordot(a, b, axes=([0, 1], [1, 0])), (A, B.T)),
    "kron": (np.kron, (A[:2], B[:2, :2])),
    "cross": (np.cross, (V, U)),
    "einsum": (lambda a, b, c: np.einsum("ij,kj,kl->il", a, b, c), (A, B, C[0])),
    "trace": (lambda a: np.trace(a @ a), (S,)),
    "matrix_power": (lambda a: np.linalg.matrix_power(a, 3), (S,)),
    "reshape": (lambda a: np.reshape(a**2, (2, 6)), (A,)),
    "transpose": (lambda a: np.transpose(a**2, (2, 0, 1)), (C,)),
    "moveaxis": (lambda a: np.moveaxis(a**2, 0, 2), (C,)),
    "flip": (lambda a: np.flip(a**2, 1), (A,)),
    "roll": (lambda a: np.roll(a, 2, axis=1) * a, (A,)),
    "rot90": (lambda a: np.rot90(a**2), (A,)),
    "tile": (lambda a: np.tile(a**2, (2, 3)), (A,)),
    "repeat": (lambda a: np.repeat(a**2, 2, axis=0), (A,)),
    "concatenate": (lambda a, b: np.concatenate([a * b, b], axis=0), (A, B)),
    "stack": (lambda a, b: np.stack([a * b, b], axis=1), (A, B)),
    "split": (lambda a: np.split(a**2, 2, axis=1)[1], (A,)),
    "pad": (lambda a: np.pad(a**2, ((1, 0), (0, 2))), (A,)),
    "pad with edges": (lambda a: np.pad(a**2, 2, mode="edge"), (A,)),
    "take": (lambda a: np.take(a**2, [2, 0, 2], axis=1), (A,)),
    "slices": (lambda a: a[1:, ::-2] * a[:-1, 1::2], (A,)),
    "positions": (lambda a: a[[0, 2, 2], [1, 1, 3]] ** 2, (A,)),
    "diagonal": (lambda a: np.diagonal(a @ a), (S,)),
    "diag": (lambda a: np.diag(a**2), (V,)),
    "tril": (lambda a: np.tril(a**2, -1), (S,)),
    "triu": (lambda a: np.triu(a**2, 1), (S,)),
    "where": (lambda a, b: np.where(KEEP, a * b, b**2), (A, B)),
    "broadcast": (lambda a, b: np.broadcast_to(a[:, :1], (3, 4)) * b, (A, B)),
    "convolve": (lambda a, b: np.convolve(a, b, mode="full"), (V, A[0])),
    "vander": (lambda a: np.vander(a, 4), (V,)),
    "polyval": (lambda p, v: np.polyval(p, v), (A[0], V)),
    "solve": (np.linalg.solve, (S, A)),
    "inv": (np.linalg.inv, (S,)),
    "det": (np.linalg.det, (S,)),
    "multi_dot": (lambda a, b: np.linalg.multi_dot([a, b.T, a]), (A, B)),
    "exp of products": (lambda a, b: np.exp(np.tanh(a @ b.T)), (A, B)),
    "log of sums": (lambda a: np.log(np.sum(np.exp(a), axis=1)), (A,)),
    "root of sums": (lambda a: np.sqrt(np.sum(a**2, axis=0)), (A,)),
    "quotients": (lambda a, b: a / (1 + b * b) / (2 + np.sin(a)), (A, B)),
}
"""Functions that NumPy computes of complex arrays too, as the same formulas."""

BY_ORDER: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "max": (lambda a: np.max(a, axis=1) ** 2, (A,)),
    "min": (lambda a: np.min(a**3), (A,)),
    "ptp": (lambda a: np.max(a, axis=0) - np.min(a, axis=0), (A,)),
    "sort": (lambda a: np.sort(a, axis=1) ** 2 * np.arange(4.0), (A,)),
    "median": (lambda a: np.median(a, axis=1), (A,)),
    "std": (lambda a: np.std(a, axis=1, ddof=1), (A,)),
    "norm": (lambda a: np.linalg.norm(a, axis=0), (A,)),
    "abs": (lambda a: np.abs(a) * a, (A,)),
    "clip": (lambda a: np.clip(a, -0.5, 0.5) * a, (A,)),
    "maximum": (lambda a, b: np.maximum(a, b) ** 2, (A, B)),
    "nansum": (lambda a: np.nansum(a**2, axis=0), (A,)),
    "interp": (lambda v, f: np.interp(v, np.array([-2.0, 0.0, 2.0]), f), (V, U)),
    "slogdet": (lambda a: np.linalg.slogdet(a)[1], (S,)),
    "cholesky": (lambda a: np.linalg.cholesky(a @ a.T + np.eye(3)), (S,)),
    "eigvalsh": (lambda a: np.linalg.eigvalsh(a + a.T), (S,)),
    "logaddexp": (lambda a: np.logaddexp.reduce(a, axis=1), (A,)),
    "hypot": (lambda a, b: np.hypot(a, b), (A, B)),
}
"""Functions that NumPy has of real arrays only: slopes by differences, of fewer digits."""


def graphs(f: Function, values: tuple[Any, ...], weights: Any) -> tuple[Graph, Graph, Graph]:
    """The value, and gradient and Hessian-vector product of Σ c f."""
    inputs = [np.zeros(np.shape(v)) for v in values]
    value = symad.trace(lambda *x: f(*x), inputs=_named(inputs))
    total = symad.trace(lambda *x: np.sum(f(*x) * weights), inputs=_named(inputs))
    return value, symad.gradient(total), symad.hvp(total)


def _named(arrays: list[Any]) -> list[Any]:
    from sympy.tensor.array.expressions import ArraySymbol

    return [ArraySymbol(f"x{k}", a.shape) for k, a in enumerate(arrays)]


def slopes(f: Function, values: tuple[Any, ...], weights: Any) -> list[Any]:
    """∂Σ c f/∂x by complex steps, or by Richardson's differences where f is not analytic."""
    made = []
    for k, v in enumerate(values):
        slope = np.zeros(v.shape)
        for place in np.ndindex(*v.shape):
            if f in FORMULAS:
                moved = [np.array(w, dtype=complex) for w in values]
                moved[k][place] += 1e-100j
                slope[place] = np.imag(np.sum(f(*moved) * weights)) / 1e-100
            else:
                slope[place] = _difference(f, values, weights, k, place)
        made.append(slope)
    return made


def _difference(f: Function, values: tuple[Any, ...], weights: Any, k: int, place: Any) -> float:
    def at(h: float) -> float:
        moved = [np.array(w) for w in values]
        moved[k][place] += h
        return float(np.sum(f(*moved) * weights))

    h = 1e-3
    steps = [(at(h / 2**j) - at(-h / 2**j)) / (2 * h / 2**j) for j in range(3)]
    first = [(4 * b - a) / 3 for a, b in pairwise(steps)]
    return (16 * first[1] - first[0]) / 15


FORMULAS = {f for f, _ in ANALYTIC.values()}


def curvature(f: Function, values: tuple[Any, ...], weights: Any, v: list[Any]) -> list[Any]:
    """The Hessian times v: differences of slopes along v."""
    h = 1e-4
    sides = []
    for step in (h, -h, h / 2, -h / 2):
        sides.append(slopes(f, tuple(x + step * d for x, d in zip(values, v, strict=True)), weights))
    coarse = [(a - b) / (2 * h) for a, b in zip(sides[0], sides[1], strict=True)]
    fine = [(a - b) / h for a, b in zip(sides[2], sides[3], strict=True)]
    return [(4 * b - a) / 3 for a, b in zip(coarse, fine, strict=True)]


def check(name: str, backends: list[tuple[str, str]], second: bool) -> None:
    f, values = (ANALYTIC | BY_ORDER)[name]
    analytic = name in ANALYTIC
    with np.errstate(all="ignore"):
        right = np.asarray(f(*values))
        weights = np.random.default_rng(3).uniform(0.5, 1.5, right.shape)
        directions = [np.random.default_rng(4).normal(size=np.shape(v)) for v in values]
        wanted = [[right], slopes(f, values, weights)]
        if second:
            wanted.append(curvature(f, values, weights, directions))
    made = graphs(f, values, weights)
    digits = [1e-13, 1e-12 if analytic else 1e-8, 1e-7 if analytic else 1e-4]
    for backend, dtype in backends:
        for k, (graph, numbers) in enumerate(zip(made, wanted, strict=False)):
            given = [np.asarray(x).astype(dtype) for x in (*values, *(directions if k == 2 else ()))]
            found = compute(graph, backend, dtype, given)
            close = digits[k] if dtype == "float64" else 3e-4
            for mine, number in zip(found, numbers, strict=True):
                scale = max(1.0, float(np.max(np.abs(number), initial=0.0)))
                np.testing.assert_allclose(
                    mine, number, rtol=close, atol=close * scale, err_msg=f"{name} {backend} {dtype} {k}"
                )


def compute(graph: Graph, backend: str, dtype: str, given: list[Any]) -> list[Any]:
    with np.errstate(all="ignore"):
        if backend == "graph":
            return leaves(graph(*given))
        if backend == "scalars":
            return leaves(in_scalars(graph)(*np.concatenate([np.ravel(v) for v in given]).tolist()))
        if backend == "plain":
            return leaves(lower(graph, dtype=dtype, style="plain")(*given))
        if backend == "cupy":
            with library() as cp:
                return [
                    r.get() for r in leaves(lower(graph, "cupy", dtype=dtype)(*on_device(cp, given, dtype)))
                ]
        return leaves(lower(graph, backend, dtype=dtype)(*given))


NAMES = [*ANALYTIC, *BY_ORDER]


@pytest.mark.parametrize("name", NAMES)
def test_graph_and_numpy(name: str) -> None:
    check(name, [("graph", "float64"), ("numpy", "float64")], second=False)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "eigvalsh"])
def test_written_out_in_scalars(name: str) -> None:
    check(name, [("scalars", "float64")], second=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_backends(name: str) -> None:
    routes = [(b, d) for b in ("graph", "numpy", "plain", "c", "cupy") for d in ("float64", "float32")]
    check(name, [r for r in routes if r != ("graph", "float32")], second=True)
