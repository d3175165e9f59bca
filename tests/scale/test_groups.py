"""Parameters and data as dicts, lists, dataclasses and named tuples, in calls, fits and forecasts."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import EvaluationError, ShapeError
from symad.numeric.scale import distribute, least_squares, minimize, plan

n = sp.Symbol("n", integer=True, positive=True)
RNG = np.random.default_rng(0)
A, T, W = RNG.standard_normal((50, 3)), RNG.standard_normal(50), RNG.standard_normal(3)
OVER = {"x": 0, "t": 0}


@dataclass
class Deep:
    layers: Any
    offset: Any


class Pair(NamedTuple):
    weights: Any
    offset: Any


GROUPS = {
    "nested dict": (lambda w, b: {"w": w, "deep": {"b": [b]}}, lambda p: (p["w"], p["deep"]["b"][0])),
    "dataclass": (lambda w, b: Deep([{"w": w}], b), lambda p: (p.layers[0]["w"], p.offset)),
    "named tuple": (Pair, lambda p: (p.weights, p.offset)),
    "tuple": (lambda w, b: (w, b), lambda p: p),
}


def residuals(group):
    made, parts = GROUPS[group]

    def f(x, t, p):
        w, b = parts(p)
        return x @ w + b - t

    return symad.trace(f, [(n, 3), (n,), made((3,), ())])


def mean_square(group):
    made, parts = GROUPS[group]

    def f(x, t, p):
        w, b = parts(p)
        return ((x @ w + b - t) ** 2).mean()

    return symad.trace(f, [(n, 3), (n,), made((3,), ())])


@pytest.mark.parametrize("group", GROUPS)
def test_calls_and_gradients_keep_the_group(group):
    made, parts = GROUPS[group]
    kernel = distribute(symad.value_and_gradient(mean_square(group), "p"), OVER, rows=16)
    value, slope = kernel(A, T, made(W, 0.5))
    r = A @ W + 0.5 - T
    assert type(slope) is type(made(W, 0.5))
    w_bar, b_bar = parts(slope)
    np.testing.assert_allclose(value, np.mean(r**2), rtol=1e-13)
    np.testing.assert_allclose(w_bar, 2 * A.T @ r / 50, rtol=1e-12)
    np.testing.assert_allclose(b_bar, 2 * np.mean(r), rtol=1e-12)


@pytest.mark.parametrize("group", ["nested dict", "dataclass"])
def test_fits_give_the_group(group):
    made, parts = GROUPS[group]
    expected = np.linalg.lstsq(np.column_stack([A, np.ones(50)]), T, rcond=None)[0]
    start, data = made(np.zeros(3), 0.0), {"x": A, "t": T}
    for found in (
        minimize(mean_square(group), start, data=data, over=OVER).x,
        least_squares(residuals(group), start, data=data, over=OVER).x,
    ):
        w, b = parts(found)
        np.testing.assert_allclose([*w, b], expected, rtol=1e-6, atol=1e-8)


def test_forecasts_take_groups_as_the_call_does():
    made, _ = GROUPS["dataclass"]
    kernel = distribute(mean_square("dataclass"), OVER, rows=16, threads=1)
    shapes = plan(kernel, x=(50, 3), t=(50,), p=made((3,), ()))
    assert shapes == plan(kernel, x=A, t=T, p=made(W, 0.5))
    assert (shapes.chunks, shapes.shared) == (4, 8 * 4)


def test_data_in_a_group_are_cut_by_the_names_of_its_leaves():
    f = symad.trace(lambda d, w: ((d["x"] @ w - d["t"]) ** 2).sum(), [{"x": (n, 3), "t": (n,)}, (3,)])
    kernel = distribute(f, {"d['x']": 0, "d['t']": 0}, rows=16)
    np.testing.assert_allclose(kernel({"x": A, "t": T}, W), np.sum((A @ W - T) ** 2), rtol=1e-13)
    with pytest.raises(ShapeError, match=r"names d, which is not an input of f: it has d\['x'\], d\['t'\]"):
        distribute(f, {"d": 0})


def test_groups_that_do_not_fit_are_named():
    kernel = distribute(mean_square("nested dict"), OVER, rows=16)
    with pytest.raises(EvaluationError, match="p has the keys w, deep; the value given lacks deep"):
        kernel(A, T, {"w": W})
    with pytest.raises(EvaluationError, match=r"p is a dict with the keys w, deep, but was given a ndarray"):
        kernel(A, T, W)
