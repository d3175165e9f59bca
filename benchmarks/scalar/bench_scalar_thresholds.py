"""What thresholds of scalar code are worth (`benchmarks.thresholds` says how it is measured).

    python benchmarks/scalar/bench_scalar_thresholds.py [NAME ...] [--rounds 15]

The numbers beside the thresholds in numeric/ are from one thread of an Intel Xeon, Python 3.11, 28 November
2026, medians of 15 rounds on a machine with other load.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.thresholds import Case, Timed, main  # first: it sets the number of threads

# isort: split
import numpy as np
import sympy

import symad
from symad.numeric import lower


def at_a_point(graph: symad.Graph, backend: str = "numpy") -> Timed:
    """The code of a graph, called at one point of floats."""
    kernel = lower(graph, backend)
    call = partial(kernel, *(1.0 + k for k in range(len(graph.inputs))))
    return Timed(call, (kernel.source, kernel.c_source) if backend == "numpy" else None)


def at_points(graph: symad.Graph, points: int, backend: str) -> Timed:
    """The code of a graph, called at several points."""
    rng = np.random.default_rng(0)
    return Timed(partial(lower(graph, backend), *rng.uniform(0.5, 1, (len(graph.inputs), points))))


def array_with_zeros(size: int, zeros_in_16: int) -> symad.Graph:
    """An array of linear functions of two numbers, some of which are 0."""
    x, y = sympy.symbols("x y", real=True)
    entries = [0 if k * 7 % 16 < zeros_in_16 else x + k * y for k in range(size)]
    return symad.trace(sympy.Array(entries), [x, y])


def levels(count: int, width: int, operation: Callable[..., Any]) -> symad.Graph:
    """``count`` levels of ``width`` numbers, each from the numbers of the level before."""
    inputs = sympy.symbols(f"x:{width}", real=True)

    def f(*x: Any) -> Any:
        for _ in range(count):
            x = tuple(operation(x, k) for k in range(width))
        return sum(x)

    return symad.trace(f, list(inputs))


def products(x: Any, k: int) -> Any:
    """x_k (1 − x_k): two runs over slices a level."""
    return x[k] * (x[k] - x[k] * x[k])


def constants(x: Any, k: int) -> Any:
    """0.7 x_k + 1.3 x_{k+1}, and a number of its own: equal constants for all of a level."""
    return 0.7 * x[k] + (0.25 + 0.001 * k) * x[(k + 1) % len(x)]


def chain(operations: int) -> symad.Graph:
    """A function of eight numbers with about the given number of operations."""
    return levels(max(1, operations // 32), 8, products)


def in_runs_of(width: int) -> Timed:
    """Thirty levels of runs with ``width`` operations, at a point, without the cost of arguments."""
    kernel = lower(levels(30, width, products), "runs", packed=True)
    x, y = np.full(width, 0.5), np.zeros(1)
    return Timed(kernel.bind(x, y))


def with_constants(width: int, backend: str) -> Timed:
    """Ten levels of ``width`` numbers with equal constants."""
    kernel = lower(levels(10, width, constants), backend, packed=True)
    x, y = np.full(width, 0.5), np.zeros(1)
    return Timed(kernel.bind(x, y)) if backend == "runs" else Timed(partial(kernel, x), kernel.source)


def locked(operations: int) -> Timed:
    """A bound call."""
    kernel = lower(chain(operations), "c", packed=True)
    x, y = np.full(8, 0.5), np.zeros(1)
    return Timed(kernel.bind(x, y))


def many_results(points: int) -> Timed:
    """Ten results at each of the given number of points: 80 bytes a point."""
    x, y = sympy.symbols("x y", real=True)
    graph = symad.trace([x + k * y for k in range(10)], [x, y])
    return at_points(graph, points, "c")


def one_by_one(points: int) -> Timed:
    """A function of 3200 operations at the given number of points, in C that computes one point at a time."""
    return at_points(chain(3200), points, "c")


LANES = "scalars.lower_runs.MIN_POINTS"
POINTS = (4, 8, 12, 16, 24, 32, 64)

CASES: dict[str, Case] = {
    "places": Case(
        ("targets.scalar_module.MIN_ENTRIES_FOR_PLACES",), (8, 16, 32, 64, 128, 256),
        lambda size: at_a_point(array_with_zeros(size, 12)),
    ),
    "half": Case(
        ("targets.scalar_module.MIN_ENTRIES_FOR_PLACES",), (16, 32, 64, 128, 256),
        lambda size: at_a_point(array_with_zeros(size, 9)),
    ),
    "slices": Case(("scalars.c_interpreter.MIN_SLICED_RUN",), (2, 3, 4, 6, 8, 12, 16, 32), in_runs_of, 2),
    "constants, runs": Case(
        ("numpy_arrays.scalars.level_runs.MIN_SAME_CONSTANT",), (4, 8, 16, 32, 64, 128),
        lambda width: with_constants(width, "runs"), None,
    ),
    "constants, numpy": Case(
        ("numpy_arrays.scalars.level_runs.MIN_SAME_CONSTANT",), (8, 16, 32, 64, 128, 256),
        lambda width: with_constants(width, "numpy"), None,
    ),
    "lanes, 64": Case((LANES,), POINTS, lambda points: at_points(chain(64), points, "runs")),
    "lanes, 1000": Case((LANES,), POINTS, lambda points: at_points(chain(1000), points, "runs")),
    "lanes, 4000": Case((LANES,), POINTS, lambda points: at_points(chain(4000), points, "runs")),
    "block": Case(
        ("scalars.quick_calls.MIN_BLOCK_BYTES",), [2**k for k in range(8, 18)], many_results
    ),
    "lock": Case(("compiler.c_calls.MAX_LOCKED",), (64, 320, 1280, 5120, 20_480), locked),
}  # fmt: skip


if __name__ == "__main__":
    main(CASES)
