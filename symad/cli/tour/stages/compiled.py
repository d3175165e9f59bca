"""Stages of compiled code: a GRU whose loops are C, and a least-squares fit whose data are given."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import symad
from symad import functions
from symad.cli.tour.stage import Finding, Made, Skip, TourModel, stage
from symad.core.arrays import Array, ArrayLike


def gru(width: int, inputs: int, batch: int, steps: int) -> symad.Graph:
    """Mean squares of the states of a gated recurrent unit (Cho et al. 2014, arXiv:1406.1078)."""

    def loss(W: Array, U: Array, b: Array, xs: Array) -> Array:
        def step(h: Array, x: Array) -> Array:
            gates = functions.sigmoid(x @ U[:, : 2 * width] + h @ W[:, : 2 * width] + b[: 2 * width])
            reset, update = gates[:, :width], gates[:, width:]
            new = np.tanh(x @ U[:, 2 * width :] + (reset * h) @ W[:, 2 * width :] + b[2 * width :])
            return (1 - update) * h + update * new

        return np.mean(functions.scan(step, np.zeros((batch, width)), xs) ** 2)

    sizes = [(width, 3 * width), (inputs, 3 * width), (3 * width,), (steps, batch, inputs)]
    return symad.trace(loss, inputs=sizes)


def numbers(graph: symad.Graph) -> list[np.ndarray]:
    """Fixed values of the inputs."""
    rng = np.random.default_rng(8)
    return [0.3 * rng.normal(size=node.shape) for node in graph.input_nodes]


@stage("compiled", "a gated recurrent unit: NumPy code, and the same with its loops and chains in C")
def compiled() -> TourModel:
    """Two units, three steps."""
    small = gru(2, 1, 2, 3)
    return TourModel(small, point=tuple(numbers(small)), wrt=["W", "b"], check=gru(1, 1, 1, 2), use=both_ways)


def both_ways(made: Made) -> list[Finding]:
    """Loss and gradient of 48 units over 60 steps by both backends."""
    from symad.numeric import lower
    from symad.numeric.compiler.c_compiler import compiler

    if compiler() is None:
        raise Skip("no C compiler: backend 'c' would run in NumPy")
    graph = gru(48, 16, 32, 60)
    gradient = symad.value_and_gradient(graph, wrt=["W", "U", "b"])
    values = numbers(graph)
    kernels = {backend: lower(gradient, backend=backend) for backend in ("numpy", "c")}
    results = {backend: kernel(*values) for backend, kernel in kernels.items()}
    scale = [float(np.abs(a).max()) for a in results["numpy"]]
    worst = max(
        float(np.abs(one - other).max()) / size
        for one, other, size in zip(results["c"], results["numpy"], scale, strict=True)
    )
    seconds = {backend: best(kernel, values) for backend, kernel in kernels.items()}
    source = kernels["c"].c_source
    lines, functions_ = source.count("\n"), source.count("\nint loop_") + source.count("\nvoid kernel_")
    return [
        Finding(f"the gradients differ by {worst:.1e} relative", worst < 1e-11),
        Finding(
            f"loss and gradient take {1e3 * seconds['c']:.1f} ms compiled, {1e3 * seconds['numpy']:.1f} ms "
            f"in NumPy; {lines} lines of C contain {functions_} loops and kernels",
            "loop_2" in source,
        ),
    ]


def best(kernel: Callable[..., ArrayLike], values: Sequence[ArrayLike]) -> float:
    """The shortest of five calls, in seconds."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        kernel(*values)
        times.append(time.perf_counter() - start)
    return min(times)


# ---- a stage of data that stay the same ----------------------------------------------------------


ROWS, COLUMNS = 20_000, 60


def squares(rows: int, columns: int) -> symad.Graph:
    """Half the mean of (X w − y)²."""

    def loss(w: Array, X: Array, y: Array) -> Any:
        return 0.5 * np.mean((X @ w - y) ** 2)

    return symad.trace(loss, inputs=[(columns,), (rows, columns), (rows,)])


@stage("given data", "least squares on data that stay the same: a step no longer reads them")
def given_data() -> TourModel:
    """Three rows, two weights."""
    X, y = np.array([[1.0, 2.0], [0.0, 1.0], [3.0, -1.0]]), np.array([1.0, 0.0, 2.0])
    return TourModel(squares(3, 2), point=(np.array([0.5, -1.0]), X, y), wrt=["w"], use=fitted)


def fitted(made: Made) -> list[Finding]:
    """Conjugate gradients on held data, against numpy.linalg.lstsq."""
    from symad.numeric import given, lower

    rng = np.random.default_rng(4)
    X, truth = rng.normal(size=(ROWS, COLUMNS)), rng.normal(size=COLUMNS)
    y = X @ truth + 0.1 * rng.normal(size=ROWS)
    gradient = symad.gradient(squares(ROWS, COLUMNS), wrt=["w"])
    reading, held = lower(gradient), given(gradient, {"X": X, "y": y})
    w = np.zeros(COLUMNS)
    (start,) = held(w)
    residual = direction = -start
    for _ in range(COLUMNS):
        curved = held(direction)[0] - start
        step = (residual @ residual) / (direction @ curved)
        w, new = w + step * direction, residual - step * curved
        direction, residual = new + (new @ new) / (residual @ residual) * direction, new
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    apart = float(np.abs(w - exact).max())
    one, other = held(truth / 2)[0], reading(truth / 2, X, y)[0]
    same = float(np.abs(one - other).max() / np.abs(other).max())
    with_data, without = best(reading, [w, X, y]), best(held, [w])
    return [
        Finding(f"{COLUMNS} steps of conjugate gradients end {apart:.1e} from least squares", apart < 1e-8),
        Finding(
            f"a gradient takes {1e6 * without:.0f} us, {1e3 * with_data:.2f} ms where it reads {ROWS} rows; "
            f"the two differ by {same:.1e} relative",
            same < 1e-11,
        ),
    ]
