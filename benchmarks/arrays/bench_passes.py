"""What each pass on array code gains: CPU time of calls of code lowered without it, over the time with it.

    python benchmarks/arrays/bench_passes.py [ROW ...] [--passes "sink,fill"] [--rounds 9]

The rows are gradients of the models, products with their Hessians, dense Hessians, sparse derivatives,
stencils, recurrences, batches, in NumPy and in C. Where a pass changes no text, nothing is measured. The
kernels take turns, on one thread. The state of the allocator changes the ratios of passes on memory: measure
these with one row in a process. `GAINS` in numeric/pipelines.py holds the largest ratios.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import bench_hessians
import model_cases
import numpy as np

import symad
from symad.numeric import lower, pipelines

SLICE = 0.03
"""Seconds of one turn."""

Row = tuple[symad.Graph, list[Any]]
OFF: set[str] = set()
"""The passes that are left out."""


@contextmanager
def without(name: str) -> Iterator[None]:
    """Lower without a pass."""
    OFF.add(name)
    yield
    OFF.clear()


def make_optional() -> None:
    """Let each pass look whether it is left out."""

    def optional(step: Any) -> None:
        run, name = step.run, step.name
        object.__setattr__(step, "run", lambda made: made if name in OFF else run(made))

    for passes in {id(step): step for each in pipelines.GRAPH_PIPELINES.values() for step in each}.values():
        optional(passes)
    kind: Any = pipelines.ProgramPass
    begin = kind.__init__

    def init(self: Any, *args: Any, **named: Any) -> None:
        begin(self, *args, **named)
        optional(self)

    kind.__init__ = init
    for step in (pipelines.REPEATS, pipelines.DROP, pipelines.JOIN_SLICES):
        optional(step)


def of_case(case: Any, derivative: Callable[..., Any]) -> Row:
    """A derivative of a model of the benchmarks by its weights."""
    named = isinstance(case.weights, dict)
    weights = list(case.weights.values()) if named else list(case.weights)
    arrays = [np.asarray(a) for a in (*weights, *(case.data.values() if named else case.data))]
    xp = model_cases.for_symad()
    graph = symad.trace(lambda *a: case.loss(xp, *a), inputs=[a.shape for a in arrays])
    more = [0.1 * np.ones_like(a) for a in arrays[: len(weights)]] if derivative is symad.hvp else []
    return derivative(graph, list(graph.inputs[: len(weights)])), [*arrays, *more]


def of_function(f: Callable[..., Any], derivative: Callable[..., Any], *shapes: tuple[int, ...]) -> Row:
    """A derivative of a function at random arrays."""
    rng = np.random.default_rng(0)
    return derivative(symad.trace(f, inputs=list(shapes))), [rng.uniform(-0.5, 0.5, s) for s in shapes]


def last_state(W: Any, U: Any, x: Any) -> Any:
    """|h_T|² of a small RNN."""
    states = symad.functions.scan(lambda h, x_t: np.tanh(h @ W + x_t @ U), np.zeros((1, 16)), x)
    return np.sum(states[-1] ** 2)


def stencils(x: Any) -> Any:
    """Overlapping terms of neighbors."""
    return np.sum(np.tanh(x[2:] + x[:-2] * x[1:-1])) + np.sum(x[1:] ** 3 * x[:-1])


def energy(u: Any) -> Any:
    """Σ √(1 + |∇u|²) + Σ exp(u)."""
    p = np.pad(u, 1)
    dx, dy = p[1:, :-1] - p[:-1, :-1], p[:-1, 1:] - p[:-1, :-1]
    return np.sum(np.sqrt(1 + dx**2 + dy**2)) + np.sum(np.exp(u))


def functions_of_batches(x: Any, y: Any) -> Any:
    """Slow functions of many numbers."""
    return np.sum(np.sin(x) * np.exp(y) + np.tanh(x * y) * np.cos(x - y) + np.log(1 + x * x))


def pairs(x: Any) -> Any:
    """Σ exp(−(x_i − x_j)²)."""
    return np.sum(np.exp(-((x[:, None] - x[None, :]) ** 2)))


def rows() -> dict[str, Callable[[], Row]]:
    """All rows, by name."""
    made: dict[str, Callable[[], Row]] = {}
    for name, case in model_cases.CASES.items():
        made[f"{name}, gradient"] = lambda case=case: of_case(case(), symad.value_and_gradient)
        made[f"{name}, hvp"] = lambda case=case: of_case(case(), symad.hvp)
    for name, dense in bench_hessians.CASES.items():
        made[f"{name}, Hessian"] = lambda dense=dense: of_case(dense(), symad.hessian)
    sparse = lambda f: symad.hessian(f, sparse=True)  # noqa: E731
    cell = (16, 16), (8, 16), (100, 1, 8)
    return made | {
        "last state, gradient": lambda: of_function(last_state, symad.gradient, *cell),
        "stencils, gradient": lambda: of_function(stencils, symad.gradient, (200_000,)),
        "energy, sparse Hessian": lambda: of_function(energy, sparse, (100, 100)),
        "functions, gradient": lambda: of_function(functions_of_batches, symad.gradient, *[(4_000_000,)] * 2),
        "pairs, gradient": lambda: of_function(pairs, symad.gradient, (800,)),
    }


def seconds(kernel: Callable[..., Any], arrays: list[Any], calls: int) -> float:
    """CPU seconds of a call."""
    start = time.process_time()
    for _ in range(calls):
        kernel(*arrays)
    return (time.process_time() - start) / calls


def main() -> None:
    """Measure, and print a line for each row and pass."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--passes", default=",".join(pipelines.GAINS))
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    make_optional()
    for name, row in rows().items():
        if options.rows and not any(part in name for part in options.rows):
            continue
        graph, arrays = row()
        for backend in ("numpy", "c"):
            kernel = lower(graph, backend)
            kernel(*arrays)
            calls = max(1, int(SLICE / max(seconds(kernel, arrays, 1), 1e-7)))
            for left_out in options.passes.split(","):
                with without(left_out):
                    other = lower(graph, backend)
                if (other.source, other.c_source) == (kernel.source, kernel.c_source):
                    continue
                other(*arrays)
                turns = range(options.rounds)
                times = [(seconds(other, arrays, calls), seconds(kernel, arrays, calls)) for _ in turns]
                ratio = statistics.median(a / b for a, b in times)
                print(f"{name}, {backend}: without {left_out} {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
