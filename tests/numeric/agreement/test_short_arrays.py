"""Arrays that are empty, or shorter than a function's slices: NumPy's values, or the same error everywhere.

NumPy silently shortens a slice that goes beyond the array; with a symbolic length the result would be wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy.tensor.array.expressions import ArraySymbol

import symad
from symad import functions
from symad.numeric import lower
from tests.gpu.cupy_agreement import leaves

N = sp.Symbol("n", integer=True, positive=True)
M = sp.Symbol("m", integer=True, nonnegative=True)
BACKENDS = ["graph", "numpy", "plain", "c"]


def lowered(graph: Any, backend: str) -> Any:
    if backend == "graph":
        return graph
    return lower(graph, style="plain") if backend == "plain" else lower(graph, backend)


def traced(f: Callable[..., Any], size: Any) -> Any:
    return symad.trace(f, inputs=[ArraySymbol("v", (size,))])


EMPTY: dict[str, Callable[[Any], Any]] = {
    "sum": np.sum,
    "product": np.prod,
    "running sum": np.cumsum,
    "running product": np.cumprod,
    "reversed": lambda v: v[::-1] * 2,
    "every second": lambda v: v[::2] * 2,
    "joined": lambda v: np.concatenate([v, v, np.ones(2)]),
    "stacked": lambda v: np.stack([v, v]),
    "outer": lambda v: np.outer(v, v) + np.triu(np.outer(v, v)),
    "inner": lambda v: v @ v,
    "sorted": np.sort,
    "padded": lambda v: np.pad(v, 2),
    "repeated": lambda v: np.tile(v, 3),
    "chosen": lambda v: np.where(v > 0, v, 0.0).sum(),
    "any": lambda v: np.where(np.any(v > 0), 1.0, 2.0),
    "all": lambda v: np.where(np.all(v > 0), 1.0, 2.0),
    "norm": np.linalg.norm,
    "column": lambda v: v.reshape(-1, 1),
}


@pytest.mark.parametrize("size", [0, N], ids=str)
@pytest.mark.parametrize("name", EMPTY)
def test_empty_arrays(name: str, size: Any) -> None:
    f, nothing = EMPTY[name], np.zeros(0)
    graph = traced(f, size)
    for backend in BACKENDS:
        found = lowered(graph, backend)(nothing)
        assert np.shape(found) == np.shape(f(nothing))
        np.testing.assert_array_equal(found, f(nothing))


@pytest.mark.parametrize("name", [n for n in EMPTY if n not in ("running sum", "running product")])
def test_gradients_at_empty_arrays(name: str) -> None:
    slope = symad.gradient(traced(lambda v: np.sum(EMPTY[name](v)), N), wrt="v")
    for backend in ("graph", "numpy", "plain"):
        assert leaves(lowered(slope, backend)(np.zeros(0)))[0].shape == (0,)


NORMALIZED = {
    "softmax": (lambda v: functions.softmax(v, axis=-1), (0,)),
    "log_softmax": (lambda v: functions.log_softmax(v, axis=-1), (0,)),
    "logsumexp": (functions.logsumexp, ()),
    "v - log Σ exp v": (lambda v: v - np.log(np.sum(np.exp(v))), (0,)),
}


@pytest.mark.parametrize("size", [0, M, N], ids=str)
@pytest.mark.parametrize("name", NORMALIZED)
def test_normalized_empty_arrays(name: str, size: Any) -> None:
    f, shape = NORMALIZED[name]
    graph = traced(f, size)
    for backend in BACKENDS:
        with np.errstate(divide="ignore"):
            found = lowered(graph, backend)(np.zeros(0))
        assert np.shape(found) == shape
        assert shape or found == -np.inf


def test_loops_and_parts_without_elements() -> None:
    """Of arrays that are known to be empty when they are traced."""
    nothing = np.zeros(0)
    step = lambda h, u: np.tanh(h + u)  # noqa: E731
    cases = [
        (lambda v: functions.fold(step, 0.5, v), np.float64(0.5)),
        (lambda v: functions.scan(step, 0.5, v), nothing),
        (np.diff, nothing),
        (lambda v: np.roll(v, 1), nothing),
        (lambda v: np.max(v, initial=2.0), np.float64(2.0)),
    ]
    for f, wanted in cases:
        graph = traced(f, 0)
        slope = symad.gradient(traced(lambda v, f=f: np.sum(f(v)), 0), wrt="v")
        for backend in BACKENDS:
            found = lowered(graph, backend)(nothing)
            assert np.shape(found) == wanted.shape
            np.testing.assert_array_equal(found, wanted)
            assert backend == "c" or leaves(lowered(slope, backend)(nothing))[0].shape == (0,)


PARTS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "v[5]": (lambda v: np.sin(v[5]), 6),
    "v[1:3]": (lambda v: np.sum(v[1:3] ** 2), 3),
    "v[-4:] v[:4]": (lambda v: np.sin(v[-4:]) * v[:4], 4),
    "v[2:]": (lambda v: v[2:] - v[:-2], 2),
    "v[5:2:-1]": (lambda v: np.sum(v[5:2:-1] ** 2), 6),
    "differences": (lambda v: np.sum(np.diff(v) ** 2), 1),
    "moved": (lambda v: np.roll(v, 3) * v, 3),
    "last state": (lambda v: functions.fold(lambda h, u: np.tanh(h + u), 0.5, v), 1),
}
"""Functions, and the smallest length that they take."""


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", PARTS)
def test_lengths(name: str) -> None:
    f, least = PARTS[name]
    size = M if name in ("v[2:]", "last state") else N
    graph = traced(f, size)
    slope = symad.gradient(traced(lambda v: np.sum(f(v)), size), wrt="v")
    for backend in BACKENDS:
        value, gradient = lowered(graph, backend), lowered(slope, backend)
        for length in (least, least + 3):
            v = np.linspace(0.3, 1.1, length)
            np.testing.assert_allclose(value(v), traced(f, length)(v), rtol=1e-13)
            fixed = symad.gradient(traced(lambda v: np.sum(f(v)), length), wrt="v")
            np.testing.assert_allclose(leaves(gradient(v)), leaves(fixed(v)), rtol=1e-12, atol=1e-15)
        for kernel in (value, gradient):
            with pytest.raises(ValueError, match=r"too short|were asked for, but"):
                kernel(np.ones(least - 1))


def test_parts_of_numpy() -> None:
    """The fixed lengths above are right themselves."""
    v = np.linspace(0.3, 1.1, 7)
    for name in ("v[5]", "v[1:3]", "v[-4:] v[:4]", "v[2:]", "v[5:2:-1]", "differences", "moved"):
        f, _ = PARTS[name]
        np.testing.assert_allclose(traced(f, 7)(v), f(v), rtol=1e-14)
