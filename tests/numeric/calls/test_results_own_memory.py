"""No result shares memory with an input, a constant or another result: all may be changed in place."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.cli.tour.stage import Skip
from symad.cli.tour.stages import all_stages
from symad.errors import LoweringError
from symad.numeric import lower
from tests.example_files import EXAMPLES, ROOT, SMALLER, needs
from tests.gpu.cupy_agreement import library, on_device
from tests.gpu.lowering.op_cases import example_graphs, example_values
from tests.numeric.calls import programs_of_views
from tests.numeric.calls.mutating_calls import twice

x, y = sp.symbols("x y", real=True)
BACKENDS = ["graph", "numpy", "plain", "c"]


def leaves(result: Any) -> list[Any]:
    if isinstance(result, dict):
        result = tuple(result.values())
    return [a for part in result for a in leaves(part)] if isinstance(result, tuple) else [result]


def made(graph: Any, backend: str) -> Any:
    if backend == "graph":
        return graph
    return lower(graph, style="plain") if backend == "plain" else lower(graph, backend)


def check_ownership(f: Any, values: list[Any]) -> None:
    """Results and inputs are overwritten; the next call sees nothing of it."""
    given = [np.array(v, dtype=float) for v in values]
    first = leaves(f(*given))
    before = [np.array(r.toarray() if hasattr(r, "toarray") else r) for r in first]
    arrays = [r.data if hasattr(r, "indptr") else r for r in first if np.ndim(r) or hasattr(r, "indptr")]
    for k, array in enumerate(arrays):
        assert not any(np.shares_memory(array, other) for other in [*given, *arrays[:k]]), k
        array[...] = array + 77 if array.dtype != bool else ~array
    assert all(np.array_equal(g, v) for g, v in zip(given, values, strict=True))
    for g in given:
        g[...] = -5.0
    again = leaves(f(*[np.array(v, dtype=float) for v in values]))
    for found, right in zip(again, before, strict=True):
        np.testing.assert_array_equal(found.toarray() if hasattr(found, "toarray") else found, right)


ARRAYS = {
    "identity": lambda a: a,
    "twice": lambda a: (a, a),
    "transpose": lambda a: (a.T, a),
    "slices": lambda a: (a[1:], a[::-1], a[:, 0]),
    "reshaped": lambda a: (a.reshape(-1), a.ravel()[2:]),
    "repeated": lambda a: np.broadcast_to(a[0], (3, 3)),
    "computed twice": lambda a: (np.exp(a), np.exp(a), np.exp(a).T, np.exp(a)[1:]),
    "constants": lambda a: (a * 1, np.arange(9.0).reshape(3, 3), np.ones((3, 3)), np.zeros(2)),
    "sums": lambda a: (a + 0, np.sum(a[:, :1], axis=1), np.diagonal(a)),
    "states": lambda a: tuple(f(lambda h, u: h + u, a[0], a) for f in (functions.scan, functions.fold)),
    "last state": lambda a: (lambda s: (s, s[-1], s[:-1]))(functions.scan(lambda h, u: h * u, a[0], a)),
    "parts of one array": lambda a: (lambda b: (b[0], b[1], b.T[1], b[2:, :1], b[:2, 1:]))(np.exp(a)),
    "stop_gradient": lambda a: (functions.stop_gradient(a), a),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name: str, backend: str) -> None:
    graph = symad.trace(ARRAYS[name], [(3, 3)])
    values = [np.arange(9.0).reshape(3, 3) + 1]
    check_ownership(made(graph, backend), values)


@pytest.mark.parametrize("backend", BACKENDS)
def test_functions_that_may_return_what_they_are_given(backend: str) -> None:
    """The first power of a matrix, a recurrence of one step, parts of one eigensystem."""
    a, n = sp.MatrixSymbol("A", 3, 3), sp.Symbol("n", integer=True, positive=True)
    matrix = np.arange(9.0).reshape(3, 3) + np.eye(3)
    check_ownership(made(symad.trace(a**n, inputs=[a, n]), backend), [matrix, np.array(1.0)])
    step = symad.trace(lambda a, b: functions.affine_scan(a, b), [(1, 3), (1, 3)])
    check_ownership(made(step, backend), [np.ones((1, 3)), np.ones((1, 3))])
    eigen = symad.trace(lambda a: (lambda s: (s[0], s[1]))(np.linalg.eigh(a + a.T)), [(3, 3)])
    check_ownership(made(eigen, backend), [matrix])


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_that_are_inputs_or_each_other(backend: str) -> None:
    product = symad.gradient(symad.trace(lambda a, c: np.sum(a * c), [(3,), (3,)]))
    alike = symad.gradient(symad.trace(lambda a, b, t: np.sum((a + b - t) ** 2), [(3,)] * 3))
    for graph in (product, alike):
        values = [np.arange(3.0) + k for k in range(len(graph.inputs))]
        check_ownership(made(graph, backend), values)


@pytest.mark.parametrize("backend", [*BACKENDS, "runs"])
def test_batches_of_scalar_graphs(backend: str) -> None:
    graph = symad.trace([x, x, x * y, sp.Matrix([x, y]), sp.Integer(3)])
    f = made(graph, backend)
    for shape in [(), (1,), (4,), (2, 3)]:
        check_ownership(f, [np.full(shape, 2.0), np.full(shape, 3.0)])


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_packed_kernels(backend: str) -> None:
    for f in (lambda a: a, lambda a: np.sum(a * a) / 2):
        graph = symad.trace(f, [(3,)])
        graph = graph if graph.output_nodes[0].shape else symad.gradient(graph)
        check_ownership(lower(graph, backend, packed=True), [np.arange(3.0)])


@pytest.mark.parametrize("backend", BACKENDS)
def test_sparse_matrices(backend: str) -> None:
    graph = symad.jacobian(symad.trace(lambda a: a[1:] * a[:-1], [(6,)]), sparse=True)
    f = made(graph, backend)
    check_ownership(f, [np.arange(6.0)])
    check_ownership(f, [np.arange(6.0)])


@pytest.mark.parametrize(("graph", "dims"), example_graphs())
def test_every_op(graph: Any, dims: Any) -> None:
    if any(type(node.op).__name__ == "Dimension" for node in graph.nodes):
        pytest.skip("nothing binds its dimensions")
    values = example_values(graph, dims)
    check_ownership(graph, values)
    for backend in ("numpy", "c"):
        check_ownership(lower(graph, backend), values)
    try:
        kernel = lower(graph, style="plain")
    except LoweringError:
        return  # ops that the plain printer has no form for
    check_ownership(kernel, values)


def check_random_program(seed: int) -> None:
    """Values, slopes and batches in each style and precision: of the right type, and memory of their own."""
    values = [np.random.default_rng(seed).normal(size=s) for s in programs_of_views.SHAPES]
    graph = symad.trace(lambda *u: programs_of_views.program(seed, *u), programs_of_views.SHAPES)
    scalar = symad.trace(lambda *u: programs_of_views.total(seed, *u), programs_of_views.SHAPES)
    several = [np.stack([v] * 2) for v in values]
    cases = [(graph, values), (symad.value_and_gradient(scalar), values)]
    cases += [(symad.hvp(scalar), [*values, *values])] if seed % 3 == 0 else []
    cases += [(symad.vmap(graph, (None, 0, 0)), [values[0], *several[1:]])] if seed % 3 == 1 else []
    for g, given in cases:
        right = leaves(g(*given))
        for options in ({}, {"style": "plain"}, {"dtype": "float32"}):
            number = options.get("dtype", "float64")
            kernel = lower(g, **options)
            found = leaves(twice(f"{seed} {options}", kernel, [v.astype(number) for v in given], {}))
            for one, wanted in zip(found, right, strict=True):
                assert one.dtype == number and np.shape(one) == np.shape(wanted)
                error = 1e-4 if number == "float32" else 1e-11
                np.testing.assert_allclose(one, wanted, rtol=error, atol=error * (1 + np.max(np.abs(wanted))))


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed: int) -> None:
    check_random_program(seed)


@pytest.mark.thorough
@pytest.mark.parametrize("start", [8, 48, 88, 128])
def test_more_random_programs(start: int) -> None:
    for seed in range(start, start + 40):
        check_random_program(seed)


@dataclasses.dataclass
class Layer:
    """Parameters of a layer."""

    w: Any
    b: Any


STRUCTURES = {
    "dicts and lists": (
        lambda a, b: {"w": a, "deep": [{"b": b}, (b, a)]},
        lambda p: (p["w"], p["deep"][0]["b"]),
    ),
    "dataclasses": (lambda a, b: [Layer(a, b), {"last": Layer(b, a)}], lambda p: (p[0].w, p[1]["last"].w)),
}
"""How parameters are built of two arrays, and two of their arrays."""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", STRUCTURES)
def test_gradients_in_structures(kind: str, backend: str) -> None:
    """The slope of a product by each factor is the other factor."""
    make, pair = STRUCTURES[kind]
    inputs = [make(np.ones(3), np.ones(3)), np.ones(3)]
    graph = symad.gradient(symad.trace(lambda p, a: np.sum(pair(p)[0] * pair(p)[1] + a * a / 2), inputs))
    values = [make(np.arange(3.0), np.arange(3.0) + 7), np.arange(3.0) + 20]
    slopes, slope = twice(kind, made(graph, backend), values, {})
    assert [g.tolist() for g in pair(slopes)] == [[7, 8, 9], [0, 1, 2]] and slope.tolist() == [20, 21, 22]


@pytest.mark.parametrize("backend", BACKENDS)
def test_structures_that_come_back(backend: str) -> None:
    make, _ = STRUCTURES["dicts and lists"]
    inputs = [make(np.ones(3), np.ones(3)), np.ones(3)]
    graph = symad.trace(lambda p, a: {"first": p, "again": p, "other": a}, inputs)
    found = twice("same", made(graph, backend), [make(np.zeros(3), np.ones(3)), np.arange(3.0)], {})
    assert found["again"]["deep"][1][0].tolist() == [1, 1, 1] and found["other"].tolist() == [0, 1, 2]


# ---- models -------------------------------------------------------------------------------------------


def check_model(name: str, backends: list[str]) -> None:
    """The values and gradients of a stage of the tour, at its point."""
    model = all_stages()[name].model()
    graph = model.graph(name)
    assert not graph.grouping, "the point of a model with structured arguments is not one of arrays"
    graphs = [graph]
    if len(graph.outputs) == 1 and not graph.outputs[0].shape:
        graphs.append(symad.value_and_gradient(graph, model.wrt))
    for backend in backends:
        for g in graphs:
            if backend == "cupy":
                check_on_device(g, model.point)
            else:
                check_ownership(made(g, backend), [np.array(v, dtype=float) for v in model.point])


def check_on_device(graph: Any, point: Any) -> None:
    """Results on the device are overwritten; inputs stay, and the next call sees nothing of it."""
    with library() as cp:
        kernel = lower(graph, "cupy")
        values = [np.array(v, dtype=float) for v in point]
        given = on_device(cp, values, "float64")
        first = [r for r in leaves(kernel(*given)) if r.shape]
        before = [r.get() for r in first]
        for r in first:
            r[...] = 77.0
        for g, v in zip(given, values, strict=True):
            np.testing.assert_array_equal(g.get(), v)
        again = [r for r in leaves(kernel(*on_device(cp, values, "float64"))) if r.shape]
        for one, right in zip(again, before, strict=True):
            np.testing.assert_array_equal(one.get(), right)


QUICK = ["rosenbrock", "alignment"]


@pytest.mark.parametrize("name", QUICK)
def test_some_models(name: str) -> None:
    check_model(name, ["graph", "numpy", "plain"])


@pytest.mark.slow
@pytest.mark.parametrize("name", list(all_stages()))
def test_all_models(name: str) -> None:
    try:
        check_model(name, ["graph", "numpy", "plain", "c"])
    except Skip:
        pytest.skip("no data")


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_on_a_device(name: str) -> None:
    check_on_device(symad.trace(ARRAYS[name], [(3, 3)]), [np.arange(9.0).reshape(3, 3) + 1])


# ---- examples -----------------------------------------------------------------------------------------


QUICK_EXAMPLES = ["first_steps/02_sunspots", "first_steps/03_logistic_regression"]


def check_example(path: Path, folder: Path) -> None:
    """An example with the first calls of all kernels and graphs made twice, see `mutating_calls`."""
    needs(path)
    env = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "MPLBACKEND": "agg"}
    script = [str(ROOT / "tests/numeric/calls/mutating_calls.py"), str(path), *SMALLER.get(path.stem, [])]
    done = subprocess.run(
        [sys.executable, *script], cwd=folder, env=env, capture_output=True, encoding="utf-8", timeout=600
    )
    assert done.returncode == 0, f"\n{done.stdout}\n{done.stderr}"
    assert "calls made twice: " in done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("name", QUICK_EXAMPLES)
def test_some_examples(name: str, tmp_path: Path) -> None:
    check_example(ROOT / "examples" / f"{name}.py", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_all_examples(path: Path, tmp_path: Path) -> None:
    check_example(path, tmp_path)


@pytest.mark.thorough
def test_the_script_sees_shared_memory(tmp_path: Path) -> None:
    """A kernel that returns its argument ends it."""
    script = tmp_path / "shares.py"
    script.write_text(
        "import numpy as np, symad\n"
        "from symad.numeric import kernel, lower\n"
        "made = kernel.CheckedCall.__call__\n"
        "kernel.CheckedCall.__call__ = lambda self, *v: (made(self, *v), v[0])[1]\n"
        "lower(symad.trace(lambda a: a * 2, [(3,)]))(np.ones(3))\n"
    )
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/numeric/calls/mutating_calls.py"), str(script)],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert "shares memory" in done.stderr
