"""Arguments that are objects, and ``inputs=``, in every function that takes a Python function f."""

import copy
import pathlib
import pickle
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad
from symad.derivatives.memory_plans import memory_plans
from symad.derivatives.remat import remat
from symad.errors import EvaluationError, SavingError
from symad.numeric import given, least_squares, lower, minimize

X = np.array([[1.0, 0.5], [0.2, -1.0], [1.5, 2.0], [-0.3, 0.7]])
T = np.array([1.0, 2.0, -0.5, 0.3])


@dataclass
class Params:
    """Weights and an offset."""

    w: Any
    b: Any


@dataclass
class Other:
    """Other fields."""

    u: Any
    b: Any


Pair = namedtuple("Pair", "w b")
SHAPES = {
    "dict": {"w": (2,), "b": ()},
    "list": [(2,), ()],
    "dataclass": Params((2,), ()),
    "named tuple": Pair((2,), ()),
}


def parts(p: Any) -> tuple[Any, Any]:
    if isinstance(p, dict):
        return p["w"], p["b"]
    return (p[0], p[1]) if isinstance(p, (list, tuple)) else (p.w, p.b)


def like(kind: str, w: Any, b: Any) -> Any:
    return {"dict": {"w": w, "b": b}, "list": [w, b], "dataclass": Params(w, b), "named tuple": Pair(w, b)}[
        kind
    ]


def residuals(p: Any, x: Any, t: Any) -> Any:
    w, b = parts(p)
    return x @ w + b - t


def loss(p: Any, x: Any, t: Any) -> Any:
    return np.sum(residuals(p, x, t) ** 2)


def solution() -> Any:
    return np.linalg.lstsq(np.column_stack([X, np.ones(4)]), T, rcond=None)[0]


@pytest.mark.parametrize("kind", SHAPES)
def test_minima_come_in_the_structure_of_the_start(kind: str) -> None:
    start, best = like(kind, np.zeros(2), 0.0), solution()
    inputs = [SHAPES[kind], (4, 2), (4,)]
    for method in ("newton", "l-bfgs"):
        found = minimize(loss, start, data={"x": X, "t": T}, inputs=inputs, method=method).x
        assert type(found) is type(start)
        np.testing.assert_allclose([*parts(found)[0], parts(found)[1]], best, rtol=1e-6)
    seen: list[Any] = []
    fit = least_squares(residuals, {"p": start}, data={"x": X, "t": T}, inputs=inputs, watch=seen.append)
    assert type(fit.x["p"]) is type(start) and type(seen[0]["p"]) is type(start)
    np.testing.assert_allclose([*parts(fit.x["p"])[0], parts(fit.x["p"])[1]], best, rtol=1e-8)


@pytest.mark.parametrize("kind", SHAPES)
def test_data_may_be_an_object_and_so_may_what_is_left(kind: str) -> None:
    inputs = [SHAPES[kind], (4, 2), (4,)]
    graph = symad.gradient(symad.trace(loss, inputs=inputs))
    point = like(kind, np.array([0.3, -0.2]), 0.1)
    right = graph(point, X, T)
    fast = given(graph, {"x": X, "t": T})
    for made in (fast(point), fast(p=point)):
        for mine, wanted in zip(parts(made[0]), parts(right[0]), strict=True):
            np.testing.assert_allclose(mine, wanted, rtol=1e-13)
        assert type(made[0]) is type(point)
    turned = given(graph, {"p": point})
    np.testing.assert_allclose(turned(X, T)[1], right[1], rtol=1e-13)
    value = given(loss, {"x": X}, inputs=inputs)
    assert value(point, T) == pytest.approx(symad.trace(loss, inputs=inputs)(point, X, T))


def test_wrong_objects_are_refused_by_name() -> None:
    inputs = [{"w": (2,), "b": ()}, (4, 2), (4,)]
    with pytest.raises(EvaluationError, match="p has the keys w, b; the value given lacks b"):
        minimize(loss, {"p": {"w": np.zeros(2)}}, data={"x": X, "t": T}, inputs=inputs)
    with pytest.raises(EvaluationError, match="p has the keys w, b"):
        given(loss, {"p": {"w": np.zeros(2)}}, inputs=inputs)
    with pytest.raises(EvaluationError, match="w, b: no input of loss"):
        minimize(loss, {"w": np.zeros(2), "b": 0.0}, inputs=inputs)


@pytest.mark.parametrize("backend", ["graph", "numpy", "c"])
def test_fields_in_calls(backend: str) -> None:
    """A dict of the fields stands for an object; what lacks one, or has more, is refused by name."""
    graph = symad.value_and_gradient(symad.trace(loss, [Params((2,), ()), X, T]), wrt=0)
    f = graph if backend == "graph" else lower(graph, backend)
    w, b = np.array([0.3, -0.2]), 0.5
    value, slope = f(Params(w, b), X, T)
    again, other = f({"w": w, "b": b}, X, T)
    assert value == again and isinstance(slope, Params) and isinstance(other, Params)
    np.testing.assert_array_equal(slope.w, other.w)
    for wrong in (Other(w, b), {"w": w}, {"w": w, "b": b, "c": b}, w, None):
        with pytest.raises((EvaluationError, TypeError), match=r"fields w, b|the keys w, b"):
            f(wrong, X, T)


def test_symbols_in_an_order_of_ones_own() -> None:
    a, b, c = sp.symbols("a b c", real=True)
    f = (a - 2) ** 2 + (b - c) ** 2
    assert minimize(f, [0.0, 0.0], data={"c": 3.0}, inputs=[b, a, c]).x == pytest.approx((3.0, 2.0))
    np.testing.assert_allclose(minimize(f, np.zeros(2), data={"c": 3.0}, inputs=[[b, a], c]).x, [3.0, 2.0])
    assert given(f, {c: 3.0}, inputs=[b, a, c])(1.0, 2.0) == 4.0
    assert given(f, {0: [1.0, 2.0]}, inputs=[[b, a], c])(3.0) == 4.0


@pytest.mark.parametrize("kind", SHAPES)
def test_implicit_solutions_and_parameters_in_structures(kind: str) -> None:
    def equations(s: Any, q: Any) -> Any:
        w, b = parts(s)
        return [w * w - q["c"], b - q["d"] * np.sum(w)]

    inputs = [SHAPES[kind], {"c": (2,), "d": ()}]
    graph = symad.implicit(equations, "s", inputs=inputs)
    assert [a.name for a in graph.arguments] == ["q", "s_guess"]
    q, guess = {"c": np.array([4.0, 9.0]), "d": 0.5}, like(kind, np.ones(2), 1.0)
    found = graph(q, guess)
    assert type(found) is type(guess)
    np.testing.assert_allclose([*parts(found)[0], parts(found)[1]], [2.0, 3.0, 2.5])
    total = symad.trace(lambda q, g: parts(graph(q, g))[1], inputs=[inputs[1], SHAPES[kind]])
    slopes = symad.gradient(total, "q")(q, guess)
    np.testing.assert_allclose(slopes["c"], [0.5 / 4, 0.5 / 6])
    assert slopes["d"] == pytest.approx(5.0)


def test_implicit_takes_parameters_in_an_order() -> None:
    x, a, b = sp.symbols("x a b", real=True)
    graph = symad.implicit(x**2 - a * b, x, inputs=[x, b, a])
    assert list(graph.inputs)[:2] == [b, a]
    assert graph(2.0, 8.0, 1.0) == pytest.approx(4.0)


def test_recomputed_parts_take_inputs_and_dataclasses() -> None:
    graph = remat(loss, inputs=[Params((2,), ()), (4, 2), (4,)])
    point = Params(np.array([0.3, -0.2]), 0.1)
    assert graph(point, X, T) == pytest.approx(loss(point, X, T))
    inner = remat(lambda p: Params(np.sin(p.w), p.b * p.w[0]))
    whole = symad.trace(lambda p: np.sum(inner(p).w) * inner(p).b, inputs=[Params((2,), ())])
    slope = symad.gradient(whole, 0)(point)
    s, (u, v) = np.sin(point.w).sum(), point.w
    np.testing.assert_allclose(slope.w, [np.cos(u) * 0.1 * u + s * 0.1, np.cos(v) * 0.1 * u])
    assert slope.b == pytest.approx(s * u)


def test_memory_plans_take_inputs() -> None:
    assert memory_plans(loss, inputs=[Params((2,), ()), (4, 2), (4,)]) == []


# ---- files and processes ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SHAPES)
def test_saved_graphs_keep_their_structures(tmp_path: pathlib.Path, kind: str) -> None:
    path = tmp_path / "g.json"
    symad.save(loss, path, inputs=[SHAPES[kind], (4, 2), (4,)])
    graph = symad.gradient(symad.load(path, classes=[Params, Pair]), 0)
    symad.save(graph, path)
    back = symad.load(path, classes=[Params, Pair])
    assert back is graph
    point = like(kind, np.array([0.3, -0.2]), 0.1)
    assert type(back(point, X, T)) is type(point)


def test_a_class_that_is_not_given_is_refused_by_name(tmp_path: pathlib.Path) -> None:
    path = symad.save(loss, tmp_path / "g.json", inputs=[Params((2,), ()), (4, 2), (4,)])
    with pytest.raises(SavingError, match=r"g\.json: .* a Params, .* fields w, b; .*classes=\[Params\]"):
        symad.load(path)
    changed = type("Params", (Other,), {"__qualname__": "Params"})
    with pytest.raises(
        SavingError, match="Params of the file has the fields w, b, but the class given has u, b"
    ):
        symad.load(path, classes=[changed])
    text = path.read_text().replace('"Params"', '"<script>"')
    path.write_text(text)
    with pytest.raises(SavingError, match="a structure of inputs or outputs is damaged"):
        symad.load(path, classes=[Params])


@pytest.mark.parametrize("kind", SHAPES)
def test_graphs_and_kernels_of_objects_are_pickled(kind: str) -> None:
    graph = symad.gradient(symad.trace(loss, inputs=[SHAPES[kind], (4, 2), (4,)]), 0)
    point = like(kind, np.array([0.3, -0.2]), 0.1)
    for f in (graph, lower(graph)):
        for made in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f)):
            found = made(point, X, T)
            assert type(found) is type(point)
            np.testing.assert_allclose(parts(found)[0], parts(graph(point, X, T))[0])
