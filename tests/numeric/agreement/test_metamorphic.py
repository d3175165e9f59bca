"""Results do not depend on names, the order of inputs, axes, types of arrays, or sizes of batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy.tensor.array.expressions import ArraySymbol

import symad
from symad import functions
from symad.core.graph import Graph
from symad.numeric import lower
from tests.gpu.cupy_agreement import leaves
from tests.numeric.agreement.random_programs import program, shapes_of
from tests.numeric.agreement.taken_names import TAKEN

A = np.arange(12.0).reshape(3, 4) / 10
B = np.cos(A)


def layers(a: Any, b: Any) -> Any:
    """Products, a softmax, a loop and functions with helpers of their own."""
    h = np.tanh(a @ b.T)
    states = functions.scan(lambda s, u: np.tanh(s + u) * 0.5, a[0], b)
    rest = np.sum(1 / (1 + np.exp(-a))) + np.sum(np.log1p(np.exp(b)))
    return np.sum(functions.softmax(h, axis=-1) * h) + np.sum(states**2) + rest


def scalars(x: Any, y: Any) -> Any:
    branches = sp.Piecewise((sp.exp(x), x > y), (x / y, True))
    special = sp.polygamma(1, x) * sp.sin(x * y) + sp.LambertW(x) * sp.Max(x, y)
    return special + sp.sqrt(x + y) + branches + sp.atan2(x, y)


def lowered(graph: Graph, backend: str) -> Callable[..., Any]:
    return lower(graph, style="plain") if backend == "plain" else lower(graph, backend)


def close(found: Any, wanted: Any, digits: float = 1e-12) -> None:
    for one, other in zip(leaves(found), leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=digits, atol=digits)


def of_arrays(first: str, second: str, shape: tuple[Any, ...] = (3, 4)) -> Graph:
    inputs = [ArraySymbol(name, shape) for name in (first, second)]
    return symad.value_and_gradient(symad.trace(layers, inputs=inputs))


# ---- names ------------------------------------------------------------------------------------------


def check_names(names: list[str], backends: list[str]) -> None:
    arrays = of_arrays("alpha", "beta")(A, B)
    symbols = sp.symbols("alpha beta", real=True)
    hessian = symad.hessian(symad.trace(scalars(*symbols), inputs=list(symbols)))(0.7, 1.3)
    for k, first in enumerate(names):
        second = TAKEN[(7 * k + 3) % len(TAKEN)]
        if first == second:
            continue
        for backend in backends:
            if backend != "runs":
                close(lowered(of_arrays(first, second), backend)(A, B), arrays)
            x, y = sp.symbols([first, second], real=True)
            kernel = lowered(symad.hessian(symad.trace(scalars(x, y), inputs=[x, y])), backend)
            close(kernel(0.7, 1.3), hessian, 1e-9)
            close(kernel(np.full(3, 0.7), 1.3)[1], hessian, 1e-9)


@pytest.mark.thorough
def test_names_of_inputs() -> None:
    check_names(TAKEN[::9], ["numpy", "plain", "runs"])


@pytest.mark.slow
def test_all_names_of_inputs() -> None:
    check_names(TAKEN, ["numpy", "plain", "runs"])
    check_names(TAKEN[::5], ["c"])


def windows(x: Any) -> Any:
    """Rows in blocks, triangles and sums over an axis: code with lengths in it."""
    h = np.exp(-(x[:, 1:] ** 2)) + np.sin(x[:, :-1])
    scores = np.tril(h @ h.T)
    return np.sum(h**2, axis=1), np.sum(functions.softmax(scores, axis=-1) @ x)


DIMENSIONS = ["columns", "rows", "n", "T", "t", "block", "start", "stop", "np", "x", "v1", "shape", "k", "i"]


@pytest.mark.parametrize("name", DIMENSIONS)
def test_names_of_dimensions(name: str) -> None:
    n, x = sp.Symbol(name, integer=True, positive=True), np.linspace(-1, 1, 60).reshape(5, 12)
    wanted = symad.trace(windows, inputs=[ArraySymbol("data", (5, 12))])
    slope = symad.gradient(wanted.with_outputs(wanted.outputs[1:], None))
    graph = symad.trace(windows, inputs=[ArraySymbol("data", (n, 12))])
    made = symad.gradient(graph.with_outputs(graph.outputs[1:], None))
    for backend in ("numpy", "plain"):
        close(lowered(graph, backend)(x), wanted(x))
        close(lowered(made, backend)(x), slope(x))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["rows", "columns", "n"])
def test_names_of_inner_dimensions_of_kernels(name: str) -> None:
    n, d = sp.symbols(f"m {name}", integer=True, positive=True)
    points = np.random.default_rng(2).normal(size=(40, 3))

    def total(x: Any, w: Any) -> Any:
        return np.exp(-np.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=-1) / 2) @ w

    weights = np.linspace(-1, 1, 40)
    graph = symad.trace(
        lambda x, w: w @ total(x, w), inputs=[ArraySymbol("X", (n, d)), ArraySymbol("w", (n,))]
    )
    slope = symad.gradient(graph)
    fixed = symad.gradient(symad.trace(lambda x, w: w @ total(x, w), inputs=[(40, 3), (40,)]))
    for backend in ("numpy", "plain", "c"):
        close(lowered(slope, backend)(points, weights), fixed(points, weights), 1e-11)


# ---- inputs, axes, types ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_inputs(seed: int) -> None:
    pytest.importorskip("torch")
    rng, shapes = np.random.default_rng(seed), shapes_of(seed)
    values = [rng.normal(size=s) for s in shapes]
    names = [ArraySymbol(f"in{k}", s) for k, s in enumerate(shapes)]
    order = rng.permutation(len(shapes))
    plain = symad.gradient(symad.trace(lambda *x: program("numpy", seed, x)[1], inputs=names))
    turned = symad.trace(
        lambda *x: program("numpy", seed, [x[list(order).index(k)] for k in range(len(x))])[1],
        inputs=[names[k] for k in order],
    )
    wanted = plain(*values)
    for backend in ("numpy", "plain"):
        found = lowered(symad.gradient(turned), backend)(*[values[k] for k in order])
        close(found, tuple(wanted[k] for k in order), 1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_moved_axes(seed: int) -> None:
    """f of transposed inputs has the transposed gradient."""
    pytest.importorskip("torch")
    rng, shapes = np.random.default_rng(seed), shapes_of(seed)
    values = [rng.normal(size=s) for s in shapes]
    plain = symad.gradient(symad.trace(lambda *x: program("numpy", seed, x)[1], inputs=shapes))
    turned = symad.trace(
        lambda *x: program("numpy", seed, [np.transpose(v) for v in x])[1], inputs=[s[::-1] for s in shapes]
    )
    for backend in ("numpy", "plain"):
        found = lowered(symad.gradient(turned), backend)(*[v.T for v in values])
        close(tuple(v.T for v in found), plain(*values), 1e-9)


KINDS: dict[str, Callable[[Any], Any]] = {
    "lists": lambda a: a.tolist(),
    "integers": lambda a: a.astype(np.int32),
    "single precision": lambda a: a.astype(np.float32),
    "Fortran's order": np.asfortranarray,
    "strides": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    "backwards": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "another byte order": lambda a: a.astype(">f8"),
    "read-only": lambda a: np.broadcast_to(a, (1, *a.shape))[0],
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", KINDS)
def test_types_of_arrays(kind: str) -> None:
    a, b = np.arange(12.0).reshape(3, 4) % 5 - 2, np.arange(12.0).reshape(3, 4) % 3
    graph = of_arrays("alpha", "beta")
    wanted = graph(a, b)
    close(graph(KINDS[kind](a), KINDS[kind](b)), wanted, 1e-6 if kind == "single precision" else 1e-12)
    for backend in ("numpy", "plain", "c"):  # which compute in their own precision, graphs in that of arrays
        close(lowered(graph, backend)(KINDS[kind](a), KINDS[kind](b)), wanted)


# ---- batches ----------------------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("backend", ["graph", "numpy", "plain", "c", "runs"])
def test_sizes_of_batches(backend: str) -> None:
    """0, 1, 2 and 1000 points at once give what they give one by one; numbers broadcast against them."""
    x, y = sp.symbols("x y", real=True)
    f = sp.exp(x) * sp.sin(y) + sp.Piecewise((sp.log(x), x > 1), (x, True))
    matrix = sp.Matrix([[x * y, 1], [f, x]])
    graphs = [symad.value_and_gradient(symad.trace(f, inputs=[x, y])), symad.trace(matrix, inputs=[x, y])]
    graphs.append(symad.hessian(symad.trace(f, inputs=[x, y])))
    for graph in graphs:
        kernel = graph if backend == "graph" else lowered(graph, backend)
        for shape in [(0,), (1,), (2,), (1000,), (2, 3), (0, 3)]:
            xs = np.linspace(0.3, 2.0, int(np.prod(shape))).reshape(shape)
            ys = np.cos(xs)
            found = leaves(kernel(xs, ys))
            for k, made in enumerate(found):
                inner = np.shape(leaves(kernel(0.5, 0.5))[k])
                assert made.shape == shape + inner
                for place in list(np.ndindex(*shape))[:: max(1, xs.size // 7)]:
                    single = leaves(kernel(float(xs[place]), float(ys[place])))[k]
                    np.testing.assert_allclose(made[place], single, rtol=1e-14, atol=1e-15)
            for one, other in zip(
                leaves(kernel(xs, 0.25)), leaves(kernel(xs, np.full(shape, 0.25))), strict=True
            ):
                np.testing.assert_array_equal(one, other)
