"""Slopes of softmax where one class is almost certain, in the graph and in all generated code.

The slope of the likeliest class is p − 1, of which nothing is left at a margin of 40; the references are sums
of the other probabilities, with 400 digits.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions as F
from symad.numeric import lower
from tests.gpu.cupy_agreement import leaves, library, on_device

SHARES = np.array([0.0, -0.75, 0.5, -2.0, 0.25])
"""The scores of all classes; a margin is added to one of them, exactly."""

MARGINS = {"float64": (0.0, 3.0, 20.0, 40.0, 100.0, 300.0, 700.0), "float32": (0.0, 3.0, 20.0, 40.0, 80.0)}
LIKELIEST, OTHER = 2, 4


def by_hand(z: Any) -> Any:
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def logarithm_by_hand(z: Any) -> Any:
    moved = z - z.max(axis=-1, keepdims=True)
    return moved - np.log(np.exp(moved).sum(axis=-1, keepdims=True))


def log_sum_by_hand(z: Any) -> Any:
    highest = z.max(axis=-1, keepdims=True)
    return (np.log(np.exp(z - highest).sum(axis=-1, keepdims=True)) + highest)[:, 0]


def labelled(z: Any, k: int) -> Any:
    return z[np.arange(z.shape[0]), np.full(z.shape[0], k)]


PROBABILITIES = {
    "softmax": lambda z, k: F.softmax(z, axis=-1)[:, k],
    "softmax by hand": lambda z, k: by_hand(z)[:, k],
    "an element over the sum": lambda z, k: np.exp(z[:, k]) / np.exp(z).sum(axis=-1),
    "an element of exp over the sum": lambda z, k: np.exp(z)[:, k] / np.exp(z).sum(axis=-1),
    "a shifted element over the sum": lambda z, k: (
        np.exp(z[:, k] - z.max(axis=-1)) / np.exp(z - z.max(axis=-1, keepdims=True)).sum(axis=-1)
    ),
    "softmax of the first axis": lambda z, k: F.softmax(z.T, axis=0)[k],
    "shifted softmax": lambda z, k: F.softmax(z - z[:, 1:2], axis=-1)[:, k],
}
LOGARITHMS = {
    "log_softmax": lambda z, k: F.log_softmax(z, axis=-1)[:, k],
    "log_softmax by hand": lambda z, k: logarithm_by_hand(z)[:, k],
    "logarithm of softmax": lambda z, k: np.log(F.softmax(z, axis=-1))[:, k],
    "less logsumexp": lambda z, k: z[:, k] - F.logsumexp(z, axis=-1),
    "less logsumexp by hand": lambda z, k: z[:, k] - log_sum_by_hand(z),
    "a label less logsumexp": lambda z, k: labelled(z, k) - F.logsumexp(z, axis=-1),
    "cross-entropy": lambda z, k: np.sum(np.eye(5)[k] * F.log_softmax(z, axis=-1), axis=-1),
}
FUNCTIONS = PROBABILITIES | LOGARITHMS


def points(dtype: str) -> np.ndarray:
    made = np.tile(SHARES, (len(MARGINS[dtype]), 1))
    made[:, LIKELIEST] += MARGINS[dtype]
    return made


@cache
def exact(logarithm: bool, k: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """The slopes of p_k or log p_k (margins, 5), and the second derivatives (margins, 5, 5)."""
    with mp.workdps(400):
        slopes, seconds = [], []
        for row in points(dtype):
            e = [mp.exp(mp.mpf(v)) for v in row]
            total = sum(e)
            p = [v / total for v in e]
            rest = [sum(e[:i] + e[i + 1 :]) / total for i in range(5)]
            d = [[p[i] * (rest[i] if i == j else -p[j]) for j in range(5)] for i in range(5)]  # ∂p_i/∂z_j
            a = [rest[k] if k == i else -p[i] for i in range(5)]  # ∂ log p_k/∂z_i
            slopes.append([v if logarithm else v * p[k] for v in a])
            second = [[-d[i][j] for j in range(5)] for i in range(5)]
            if not logarithm:
                second = [[d[k][j] * a[i] - p[k] * d[i][j] for j in range(5)] for i in range(5)]
            seconds.append(second)
        return np.array(slopes, float), np.array(seconds, float)


def computed(graph: Any, backend: str, dtype: str) -> np.ndarray:
    z = points(dtype).astype(dtype)
    if backend == "cupy":
        with library() as cp:
            return leaves(lower(graph, backend, dtype=dtype)(*on_device(cp, [z], dtype)))[0].get()
    if backend == "graph":
        return np.asarray(leaves(graph(z))[0])
    name, *style = backend.split()
    kernel = lower(graph, name, dtype=dtype, **({"style": "plain"} if style else {}))
    return np.asarray(leaves(kernel(z))[0])


ROUTES = [
    ("graph", "float64"),
    *((b, d) for b in ("numpy", "numpy plain", "c", "cupy") for d in ("float64", "float32")),
]


@pytest.mark.parametrize(("backend", "dtype"), ROUTES)
@pytest.mark.parametrize("k", [LIKELIEST, OTHER])
def test_slopes(backend: str, dtype: str, k: int) -> None:
    names = list(FUNCTIONS)
    graphs = []
    for name in names:
        total = symad.trace(lambda z, f=FUNCTIONS[name]: np.sum(f(z, k)), [points(dtype).shape])
        graphs.append(symad.gradient(total))
    for name, graph in zip(names, graphs, strict=True):
        check(name, computed(graph, backend, dtype), exact(name in LOGARITHMS, k, dtype)[0], dtype)


def check(name: str, got: np.ndarray, right: np.ndarray, dtype: str) -> None:
    info = np.finfo(dtype)
    error = np.abs(got.astype(float) - right)
    assert np.all(error <= 450 * info.eps * np.abs(right) + 16 * float(info.tiny)), (name, got, right)
    sums = np.abs(got.astype(float).sum(axis=-1))
    assert np.all(sums <= 4 * info.eps * np.abs(right).max(axis=-1) + 16 * float(info.tiny)), (name, sums)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_jacobians(name: str, mode: str) -> None:
    f = {"softmax": F.softmax, "log_softmax": F.log_softmax}[name]
    jacobian = symad.jacobian(symad.trace(lambda z: f(z, axis=-1), [(5,)]), mode=mode)
    for given, kernel in enumerate((jacobian, lower(jacobian), lower(jacobian, "c"))):
        for z, row in zip(points("float64"), range(7), strict=True):
            made = np.asarray(kernel(z))
            for k in (LIKELIEST, OTHER):
                right = exact(name == "log_softmax", k, "float64")[0][row]
                assert np.all(np.abs(made[k] - right) <= 1e-13 * np.abs(right) + 1e-307), (given, row, k)


@pytest.mark.parametrize("mode", ["forward-over-reverse", "reverse-over-reverse"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_second_derivatives(name: str, mode: str) -> None:
    f = {"softmax": F.softmax, "log_softmax": F.log_softmax}[name]
    for k in (LIKELIEST, OTHER):
        hessian = symad.hessian(symad.trace(lambda z, k=k: f(z, axis=-1)[k], [(5,)]), mode=mode)
        for kernel in (hessian, lower(hessian))[: 2 if mode == "forward-over-reverse" else 1]:
            for z, row in zip(points("float64"), range(7), strict=True):
                right = exact(name == "log_softmax", k, "float64")[1][row]
                made = np.asarray(kernel(z))
                assert np.all(np.abs(made - right) <= 2e-13 * np.abs(right) + 1e-307), (k, row, made, right)


def test_scores_that_are_numbers() -> None:
    z = sp.symbols("z0:5", real=True)
    total = sum(map(sp.exp, z))
    for k in (LIKELIEST, OTHER):
        forms = {False: sp.exp(z[k]) / total, True: z[k] - sp.log(total)}
        for logarithm, form in forms.items():
            slopes = symad.gradient(form, z)
            for backend in ("graph", "numpy", "c", "runs"):
                kernel = slopes if backend == "graph" else lower(slopes, backend)
                made = np.array([kernel(*row) for row in points("float64")])
                check(backend, made, exact(logarithm, k, "float64")[0], "float64")


ELEMENTS = {
    "an axis of length 1 more": ((2,), lambda z: np.exp(z)[-1] / np.exp(z).sum(keepdims=True)[..., None]),
    "an element of all rows": ((2, 2), lambda z: np.exp(z).reshape(-1)[1] / np.exp(z).sum(axis=0)),
    "its logarithm": ((2, 2), lambda z: z.reshape(-1)[1] - np.log(np.exp(z).sum(axis=0))),
    "two axes": ((2, 3, 2), lambda z: np.exp(z).reshape(-1)[2] / np.exp(z).sum(axis=(0, 2))),
}


@pytest.mark.parametrize("name", ELEMENTS)
def test_elements_beside_sums_of_other_elements(name):
    shape, function = ELEMENTS[name]
    z = np.random.default_rng(0).normal(size=shape)
    value, expected = symad.numeric.lower(symad.trace(function, [shape]))(z), function(z)
    assert np.shape(value) == np.shape(expected)
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    slope = symad.gradient(symad.trace(lambda z: (function(z) ** 2).sum(), [shape]))(z)
    for at in np.ndindex(shape):
        step = np.zeros(shape)
        step[at] = 1e-6
        quotient = ((function(z + step) ** 2).sum() - (function(z - step) ** 2).sum()) / 2e-6
        assert slope[at] == pytest.approx(quotient, rel=1e-6, abs=1e-9)
