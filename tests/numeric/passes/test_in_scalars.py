"""Array graphs written out in scalars: every op against its evaluation on arrays and against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad
from symad.cli.tour.stages import all_stages
from symad.core.dims import solve_dims
from symad.core.graph import Graph, Node, topological
from symad.errors import LoweringError
from symad.numeric.entries.in_scalars import in_scalars
from symad.numeric.passes.memory_layout.packed_entries import is_scalar
from symad.numeric.targets.sizes import symbolic_sizes
from symad.op_examples import EXAMPLES
from symad.ops.basic.sources import Input

NODES = {f"{cls.__name__} {k}": n for cls, make in EXAMPLES.items() for k, n in enumerate(make())}
REFUSED = {"Uniform", "FoldIn", "EigenSystem", "EigenValues", "EigenVectors", "Root"}


def graph_of(node: Node) -> Graph:
    inputs = tuple(n for n in topological([node]) if isinstance(n.op, Input))
    graph = Graph(inputs, (node,))
    return graph.at({size: 3 + k for k, size in enumerate(symbolic_sizes(graph))})


def values_for(graph: Graph) -> list[Any]:
    rng = np.random.default_rng(3)
    drawn = [rng.uniform(0.1, 0.9, node.shape) for node in graph.input_nodes]
    whole = [getattr(symbol, "is_integer", False) for symbol in graph.inputs]
    return [np.ones_like(v)[()] if w else v for v, w in zip(drawn, whole, strict=True)]


def scalars_at(graph: Graph, *values: Any) -> Any:
    """The value of the graph written out, which is checked to hold scalars alone."""
    made = in_scalars(graph)
    assert is_scalar(made)
    return made(*np.concatenate([np.ravel(v) for v in values] or [[]]).tolist())


def dense(value: Any) -> Any:
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value, dtype=float)


@pytest.mark.sample(109)
@pytest.mark.parametrize("name", NODES)
def test_every_op(name: str) -> None:
    graph = graph_of(NODES[name])
    values = values_for(graph)
    if name.split()[0] in REFUSED:
        with pytest.raises(LoweringError, match=r"the op \w+\) cannot be written out in scalars; the Python"):
            in_scalars(graph)
        return
    found = dense(scalars_at(graph, *values))
    expected = dense(graph(*values))
    assert found.shape == expected.shape
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-13)


def traced(f: Any, *shapes: Any) -> Graph:
    return symad.trace(f, inputs=list(shapes))


SWAPPED = np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 1.0], [1e-20, 1.0, 0.0]])


def test_pivots_are_chosen_when_the_code_runs() -> None:
    b = np.array([1.0, -2.0, 0.5])
    solve = traced(lambda a, b: np.linalg.solve(a, b), (3, 3), (3,))
    assert np.allclose(scalars_at(solve, SWAPPED, b), np.linalg.solve(SWAPPED, b), rtol=1e-14)
    small = np.array([[1e-18, 1.0], [1.0, 1.0]])  # without pivots: (1, 0)... and all digits are lost
    two = traced(lambda a, b: np.linalg.solve(a, b), (2, 2), (2,))
    assert np.allclose(scalars_at(two, small, [1.0, 2.0]), [1.0, 1.0], rtol=1e-15)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_determinants_and_their_logarithms(sign: float) -> None:
    a = np.diag([sign, 1.0, 1.0]) @ SWAPPED
    det = traced(lambda a: np.linalg.det(a), (3, 3))
    assert scalars_at(det, a) == pytest.approx(np.linalg.det(a), rel=1e-14)
    both = traced(lambda a: np.linalg.slogdet(a), (3, 3))
    assert np.allclose(scalars_at(both, a), np.linalg.slogdet(a), rtol=1e-14)
    assert scalars_at(det, np.ones((3, 3))) == 0.0  # a pivot is 0


def test_a_determinant_beyond_the_floats_has_a_logarithm() -> None:
    both = traced(lambda a: np.linalg.slogdet(a), (3, 3))
    large = SWAPPED * 1e200
    assert np.allclose(scalars_at(both, large), np.linalg.slogdet(large), rtol=1e-14)


def test_what_is_sorted_is_known_when_the_code_runs() -> None:
    x = np.array([3.0, -1.0, np.nan, 3.0, -1.0, np.inf, 0.0])
    assert np.array_equal(scalars_at(traced(np.sort, (7,)), x), np.sort(x), equal_nan=True)
    places = traced(np.argsort, (7,))
    assert np.array_equal(scalars_at(places, x), np.argsort(x, kind="stable"))


def test_indices_that_are_inputs() -> None:
    table = np.arange(12.0).reshape(4, 3) ** 2
    rows = traced(lambda t, k: t[k], (4, 3), (2,))
    assert np.array_equal(scalars_at(rows, table, [2, 0]), table[[2, 0]])
    for outside in (4, 1.5, np.nan):
        assert np.isnan(scalars_at(rows, table, [1, outside])[1]).all()
    pair = traced(lambda t, i, j: t[i, j], (4, 3), (2,), (2,))
    assert np.array_equal(scalars_at(pair, table, [-1, 1], [2, -3]), [table[3, 2], table[1, 0]])
    assert np.isnan(scalars_at(pair, table, [0, 1], [3, -4])).all()  # in no row, though in the table
    counted = symad.gradient(traced(lambda t, k: np.sum(t[k] ** 2), (4, 3), (2,)), wrt="t")
    expected = np.zeros((4, 3))
    np.add.at(expected, [2, 2], 2 * table[[2, 2]])
    assert np.array_equal(scalars_at(counted, table, [2, 2]), expected)


def test_known_zeros_cost_nothing() -> None:
    identity = np.eye(20, dtype=int)
    graph = traced(lambda x: identity @ x, (20,))
    assert not [node for node in in_scalars(graph).nodes if node.args and not node.shape]
    triangle = traced(lambda a, b: np.linalg.solve(np.triu(a), b), (6, 6), (6,))
    operations = [n for n in in_scalars(triangle).nodes if n.args and not n.shape]
    full = [n for n in in_scalars(traced(np.linalg.solve, (6, 6), (6,))).nodes if n.args and not n.shape]
    assert len(operations) < len(full) / 2


def test_sparse_results_stay_sparse() -> None:
    x = sp.IndexedBase("x", shape=(6,))
    k = sp.Symbol("k", integer=True)
    chain = symad.trace(sp.Sum((x[k + 1] - x[k] ** 2) ** 2, (k, 0, 4)))
    hessian = symad.hessian(chain, sparse=True)
    point = np.linspace(-1, 1, 6)
    found, expected = scalars_at(hessian, point), hessian(point)
    assert found.nnz == expected.nnz == 16
    assert np.allclose(found.toarray(), expected.toarray(), rtol=1e-13)


def test_the_limit_is_named_and_can_be_raised() -> None:
    graph = traced(lambda a, b: a @ b, (20, 20), (20, 20))  # 400 sums of 20 products
    with pytest.raises(LoweringError, match=r"has 8,400 operations, and the limit is 5,000; give small"):
        in_scalars(graph, limit=5000)
    with pytest.raises(LoweringError, match=r"has more than 400 operations, and the limit is 100"):
        in_scalars(graph, limit=100)
    assert len(in_scalars(graph, limit=8400).nodes) > 8400
    with pytest.raises(LoweringError, match="more than 400,000 operations, and the limit is 100,000"):
        in_scalars(traced(lambda x: np.sum(np.sin(x)), (10**9,)))


def test_long_loops_are_refused_before_they_are_written() -> None:
    def walk(x: Any) -> Any:
        return symad.functions.fold(lambda h, u: np.tanh(h + u), 0.0, x)

    assert scalars_at(traced(walk, (4,)), [0.1, 0.2, 0.3, 0.4]) == pytest.approx(
        np.tanh(0.4 + np.tanh(0.3 + np.tanh(0.2 + np.tanh(0.1)))), rel=1e-15
    )
    with pytest.raises(LoweringError, match="the limit is 100,000"):
        in_scalars(traced(walk, (10**6,)))


def flat(results: Any) -> Any:
    """All numbers of some results."""
    if isinstance(results, dict):
        results = tuple(results.values())
    if isinstance(results, (tuple, list)):
        return np.concatenate([flat(r) for r in results])
    return np.ravel(dense(results))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in all_stages() if name != "random numbers"])
def test_the_models_of_the_tour(name: str) -> None:
    model = all_stages()[name].model()
    graph = model.graph("f").ungrouped()
    declared = [node.shape for node in graph.input_nodes]
    shapes = zip(map(str, graph.inputs), declared, map(np.shape, model.point), strict=True)
    graph = graph.at(solve_dims(list(shapes)))
    scalar = len(graph.output_nodes) == 1 and not graph.output_nodes[0].shape
    for derived in (graph, symad.gradient(graph)) if scalar else (graph,):
        found, expected = flat(scalars_at(derived, *model.point)), flat(derived(*model.point))
        assert np.allclose(found, expected, rtol=1e-11, atol=1e-12 * max(1, np.abs(expected).max()))
