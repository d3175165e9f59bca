"""A stage of compiled code: a GRU whose loops, forwards and back, are C."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

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
