"""Results of all models of the tour do not depend on names, order, layouts, types, or batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy.tensor.array.expressions import ArraySymbol

import symad
from symad import functions
from symad.cli.tour.stage import Skip
from symad.cli.tour.stages import all_stages
from symad.core.graph import Graph, rebuild
from symad.errors import LoweringError
from symad.numeric import lower
from symad.ops.basic.sources import input_node
from tests.gpu.cupy_agreement import leaves
from tests.numeric.agreement.taken_names import TAKEN

QUICK = ["rosenbrock", "alignment", "parallel recurrence", "grid energy", "embedding"]
SMALL = 400
"""Elements of a model's inputs up to which 1000 points are computed at once."""


def dense(result: Any) -> list[Any]:
    return [r.toarray() if hasattr(r, "toarray") else np.asarray(r) for r in leaves(result)]


def largest(values: Any) -> float:
    finite = np.abs(values[np.isfinite(values)]) if values.dtype.kind == "f" else np.zeros(0)
    return float(finite.max()) if finite.size else 1.0


def close(found: list[Any], wanted: list[Any], digits: float, near: Sequence[list[Any]] = ()) -> None:
    """Elementwise beside the largest element: orders of sums may differ.

    ``near`` has the results at points that differ by one rounding: no order of sums is closer than these,
    where a gradient is the small difference of large numbers.
    """
    assert len(found) == len(wanted)
    for k, (one, other) in enumerate(zip(found, wanted, strict=True)):
        assert one.shape == other.shape
        allowed = max([digits * largest(other), *(largest(each[k] - other) for each in near)])
        np.testing.assert_allclose(one, other, rtol=digits, atol=allowed)


def moved(point: list[Any], seed: int) -> list[Any]:
    """The point with every number that is no integer moved to its neighbour, up or down."""
    rng = np.random.default_rng(seed)
    beside = [np.nextafter(v, rng.choice([-np.inf, np.inf], size=v.shape)) for v in point]
    return [np.where(v == np.round(v), v, near) for v, near in zip(point, beside, strict=True)]


def lowered(graph: Graph, backend: str) -> Any:
    return lower(graph, style="plain") if backend == "plain" else lower(graph, backend)


def derived(graph: Graph, wrt: Any) -> Graph:
    """Value and gradient of a scalar model; a model of arrays is itself."""
    scalar = len(graph.outputs) == 1 and not graph.outputs[0].shape
    return symad.value_and_gradient(graph, wrt) if scalar else graph


def renamed(graph: Graph) -> Graph:
    """The graph with inputs and dimensions of names that generated code uses itself."""
    symbols = [s for s in sorted(graph.dims, key=str)]
    taken = [name for name in TAKEN if name.isidentifier()]
    names = iter(taken[len(graph.inputs) % 7 :] + [f"v{k}" for k in range(200)])
    dims = {s: sp.Symbol(next(names), integer=True, positive=True) for s in symbols}
    graph = graph.at(dims) if dims else graph
    new = {}
    for node in graph.input_nodes:
        name = next(names)
        old = node.op.symbol
        if node.shape:
            symbol: Any = ArraySymbol(name, node.shape)
        else:
            kinds = {k: v for k, v in old.assumptions0.items() if k in ("integer", "real")}
            symbol = sp.Symbol(name, **kinds)
        new[node] = input_node(symbol, node.shape)
    return Graph(tuple(new[n] for n in graph.input_nodes), rebuild(graph.output_nodes, new), graph.structure)


def check_model(name: str, backends: list[str]) -> None:
    model = all_stages()[name].model()
    graph = model.graph(name)
    if graph.grouping:
        return
    point = [np.array(v, dtype=float) for v in model.point]
    whole = derived(graph, model.wrt)
    for backend in backends:
        kernel = lowered(whole, backend)
        wanted = dense(kernel(*point))
        close(dense(lowered(renamed(whole), backend)(*point)), wanted, 1e-11)
        order = np.random.default_rng(len(point)).permutation(len(point))
        turned = Graph(tuple(whole.input_nodes[k] for k in order), whole.output_nodes, whole.structure)
        close(dense(lowered(turned, backend)(*[point[k] for k in order])), wanted, 1e-11)
        near = [dense(kernel(*moved(point, seed))) for seed in range(8)]
        layouts = [np.asfortranarray(v) if v.ndim else v for v in point]
        close(dense(kernel(*layouts)), wanted, 1e-12, near)
        spread = [np.repeat(v, 2, axis=-1)[..., ::2] if v.ndim else v for v in point]
        close(dense(kernel(*spread)), wanted, 1e-12, near)
        single = [v.astype(np.float32) for v in point]
        close(dense(kernel(*single)), dense(kernel(*[v.astype(float) for v in single])), 1e-12)
        check_batches(graph, kernel, point, wanted, backend, model.wrt)


def check_batches(
    graph: Graph, kernel: Any, point: list[Any], wanted: list[Any], backend: str, wrt: Any
) -> None:
    """Values at 0, 1, 2 and 1000 points at once, all inputs with a leading axis."""
    if any(hasattr(r, "toarray") for r in leaves(kernel(*point))) or not point:
        return
    batched = symad.vmap(derived(graph, wrt))
    many = lowered(batched, backend)
    sizes = (0, 1, 2, 1000) if sum(v.size for v in point) <= SMALL else (0, 1, 2)
    for size in sizes:
        found = dense(many(*[np.broadcast_to(v, (size, *v.shape)) for v in point]))
        for one, right in zip(found, wanted, strict=True):
            assert one.shape == (size, *right.shape)
            for k in {0, size // 2, size - 1} if size else ():
                close([one[k]], [right], 1e-10)


@pytest.mark.parametrize("name", QUICK)
def test_some_models(name: str) -> None:
    check_model(name, ["numpy", "plain"])


@pytest.mark.slow
@pytest.mark.parametrize("name", list(all_stages()))
def test_all_models(name: str) -> None:
    try:
        check_model(name, ["numpy", "c"])
    except Skip:
        pytest.skip("no data")
    except LoweringError as error:
        pytest.fail(str(error))


PROGRAMS: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "attention": (lambda q, k, v: np.sum(functions.attention(q, k, v, causal=True) ** 2), [(4, 2)] * 3),
    "grid": (lambda u: np.sum((u[1:, 1:] - u[:-1, :-1]) ** 2 * np.exp(u[1:, :-1])), [(5, 5)]),
    "affine scan": (lambda a, b: np.sum(functions.affine_scan(a, b, b[0]) ** 2), [(5,), (5,)]),
    "rows by number": (lambda v: np.sum(v[np.array([0, 2, 2, 5])] ** 3), [(6,)]),
    "padded": (lambda v: np.sum(np.pad(v, 2)[1:5] * v[:4]), [(6,)]),
    "sorted": (lambda v: np.sum(np.sort(v) * np.arange(6.0)), [(6,)]),
    "Cholesky": (lambda a: np.sum(np.linalg.cholesky(a @ a.T + 3 * np.eye(3))), [(3, 3)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_batches_of_programs(name: str) -> None:
    """Gradients of 0, 1 and 3 points at once are those of each."""
    f, shapes = PROGRAMS[name]
    slope = symad.gradient(symad.trace(f, shapes))
    single, rng = lower(slope, style="plain"), np.random.default_rng(len(name))
    for backend in ("graph", "numpy", "plain"):
        many = symad.vmap(slope) if backend == "graph" else lowered(symad.vmap(slope), backend)
        for size in (0, 1, 3):
            values = [rng.normal(size=(size, *shape)) for shape in shapes]
            found = dense(many(*values))
            assert [r.shape for r in found] == [(size, *shape) for shape in shapes]
            for k in range(size):
                close([r[k] for r in found], dense(single(*[v[k] for v in values])), 1e-11)
