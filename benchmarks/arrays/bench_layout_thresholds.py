"""What thresholds of layouts, fusion, data and sparse results are worth (`benchmarks.thresholds` says how).

    python benchmarks/arrays/bench_layout_thresholds.py [NAME ...] [--rounds 15]

The numbers beside the thresholds in numeric/ are from one thread of an Intel Xeon with 2 MiB of
second-level cache, NumPy 2.4 with OpenBLAS 0.3, 28 November 2026, medians of 15 rounds on a machine with
other load.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.thresholds import NEVER, Case, Made, Timed, main  # first: it sets the number of threads

# isort: split
import numpy as np
import sympy

import symad
from symad import functions
from symad.numeric import given, lower, minimize
from symad.numeric.solvers.newton_directions import Directions
from symad.numeric.solvers.solver_variables import Unknowns


def of_kernel(kernel: Any, *values: Any) -> Timed:
    """A kernel with its arguments."""
    return Timed(partial(kernel, *values), (kernel.source, kernel.c_source))


# ---- layouts and fusion --------------------------------------------------------------------------


def stretched(width: int) -> Made:
    """The gradient of Rosenbrock's function in rows of ``width`` + 1; slices span 1 + 1/width of that."""

    def f(x: Any) -> Any:
        low, high = x[:, :-1], x[:, 1:]
        return np.sum(100 * (high - low**2) ** 2 + (1 - low) ** 2)

    return f, [(2**18 // width, width + 1)], [0]


def stretched_entries(width: int) -> Timed:
    """The sparse Hessian of an area over a grid of 2**12 points with rows of ``width`` + 1."""

    def f(x: Any) -> Any:
        corner = x[:-1, :-1]
        across, down = x[:-1, 1:] - corner, x[1:, :-1] - corner
        return np.sum(np.sqrt(1 + across * across + down * down))

    shape = (2**12 // (width + 1), width + 1)
    kernel = lower(symad.hessian(symad.trace(f, [shape]), sparse=True))
    return of_kernel(kernel, np.random.default_rng(0).uniform(size=shape))


def along_batch(count: int) -> Timed:
    """``count`` elementwise operations on 2**18 rows of eight elements, for a batch of any length."""

    def f(x: Any, y: Any) -> Any:
        for k in range(count):
            x = x * y if k % 2 else x + y
        return x

    batch = sympy.Symbol("B", integer=True, positive=True)
    kernel = lower(symad.trace(f, [(batch, 8)] * 2))
    return of_kernel(kernel, *np.random.default_rng(0).uniform(size=(2, 2**18, 8)))


def along_numbers(count: int) -> Made:
    """The same on 2**20 numbers."""

    def f(x: Any, y: Any) -> Any:
        for k in range(count):
            x = x * y if k % 2 else x + y
        return x

    return f, [(2**20,)] * 2, None


def stored(count: int) -> Made:
    """A product with a pair array; ``count`` large arrays, of which the last is stored."""

    def f(x: Any, y: Any, a: Any) -> Any:
        z = x[:, None] - y[None, :]
        for k in range(count - 1):
            z = np.tanh(z) if k % 2 else z * y[None, :]
        return z, z @ a

    return f, [(2048,)] * 3, None


def contraction_in_a_loop(terms: int) -> Made:
    """h_t = tanh(Σ_j A_bij h_bj): products of 16 matrices in every step, ``terms`` terms in all."""
    n = round((terms / 16) ** 0.5)

    def f(A: Any, x: Any) -> Any:
        def step(h: Any, x_t: Any) -> Any:
            return np.tanh(np.einsum("bij,bj->bi", A, h) + x_t)

        return functions.scan(step, np.zeros((16, n)), x)[-1]

    return f, [(16, n, n), (50, 16, n)], None


# ---- data ----------------------------------------------------------------------------------------


def fixed(function: Any, live: tuple[int, ...], data: Any) -> Timed:
    """The value and gradient of a loss with its data given, at one parameter vector."""
    inputs = [live, *(np.shape(d) for d in data)]
    graph = symad.value_and_gradient(symad.trace(function, inputs), wrt=[0])
    kernel = given(graph, dict(enumerate(data, 1)))
    return Timed(partial(kernel, np.full(live, 0.3)), kernel.source)


def sum_of_features(terms: int, count: int) -> Timed:
    """½|Σ_k w_k X_k − y|² for ``count`` separate vectors of 4096 data; at most ``terms`` terms are kept."""
    rng = np.random.default_rng(0)
    data = list(rng.normal(size=(count + 1, 4096)))

    def loss(w: Any, y: Any, *xs: Any) -> Any:
        return 0.5 * np.sum((sum(w[k] * x for k, x in enumerate(xs)) - y) ** 2)

    return fixed(loss, (count,), data)


def deep_linear(factors: int, rows: int) -> Timed:
    """½|X W_1 W_2 W_3 − y|²; at most ``factors`` live factors are kept in a term."""
    rng = np.random.default_rng(0)

    def loss(w: Any, x: Any, y: Any) -> Any:
        return 0.5 * np.sum((x @ w[0] @ w[1] @ w[2] - y) ** 2)

    return fixed(loss, (3, 8, 8), list(rng.normal(size=(2, rows, 8))))


def least_squares(rows: int, weights: int) -> Timed:
    """½|X w − y|² for the given number of rows of data."""
    rng = np.random.default_rng(0)

    def loss(w: Any, x: Any, y: Any) -> Any:
        return 0.5 * np.sum((x @ w - y) ** 2)

    return fixed(loss, (weights, 1), [rng.normal(size=(rows, weights)), rng.normal(size=(rows, 1))])


# ---- Hessians and sparse results -----------------------------------------------------------------


def normalized(terms: int) -> Timed:
    """The Hessian of a layer with a layer norm; sums of more than ``terms`` terms are merged."""

    def loss(W: Any, x: Any) -> Any:
        h = x @ W
        far = h - h.mean(axis=1)[:, None]
        return np.sum(np.tanh(far / np.sqrt((far**2).mean(axis=1)[:, None] + 1e-5)) ** 2)

    return hessian_of(loss, [(16, 24), (64, 16)], [0])


def attending(terms: int) -> Timed:
    """The Hessian of attention, by the weights of queries and keys."""

    def loss(Q: Any, K: Any, x: Any) -> Any:
        p = np.exp((x @ Q) @ (x @ K).T)
        return np.sum((p / p.sum(axis=1)[:, None] @ x) ** 2)

    return hessian_of(loss, [(8, 6), (8, 6), (24, 8)], [0, 1])


def hessian_of(loss: Any, shapes: Any, wrt: list[int]) -> Timed:
    """A dense Hessian at one point."""
    kernel, rng = lower(symad.hessian(symad.trace(loss, shapes), wrt=wrt)), np.random.default_rng(0)
    return of_kernel(kernel, *(rng.normal(size=shape) / 3 for shape in shapes))


def sparse_jacobian(parts: int) -> Timed:
    """The Jacobian of ``parts`` functions of neighbors in a vector of 2**12 numbers, in C."""

    def f(x: Any) -> Any:
        return sum(np.sin(x[k : k - parts]) * x[k + 1 : 2**12 - parts + k + 1] for k in range(parts))

    kernel = lower(symad.jacobian(symad.trace(f, [(2**12,)]), sparse=True), backend="c")
    return of_kernel(kernel, np.linspace(0.1, 0.9, 2**12))


def newton_step(f: Any, start: Any) -> Timed:
    """The Hessian and Newton's direction, as `minimize` computes them in each step."""
    problem, x = Unknowns.make(symad.trace(f, [start.shape]), start, None)
    directions, gradient = Directions(), problem.value_and_gradient(x)[1]
    return Timed(lambda: directions(problem.curvature(x), gradient))


def whole_valley(unknowns: int) -> Timed:
    """The minimum of Rosenbrock's function, derivatives and code included."""

    def f(x: Any) -> Any:
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    graph = symad.trace(f, [(unknowns,)])
    return Timed(lambda: minimize(graph, np.full(unknowns, 0.9), method="newton"))


def valley(unknowns: int) -> Timed:
    """A step on Rosenbrock's function: three entries in a row of the Hessian."""

    def f(x: Any) -> Any:
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    return newton_step(f, np.full(unknowns, 0.9))


def band(percent: int) -> Timed:
    """A step in 400 unknowns, with ``percent`` of the Hessian's entries in a band."""
    n, reach = 400, 2 * percent

    def f(x: Any) -> Any:
        return sum(np.sum(np.cosh(x[k:] - x[: n - k])) for k in range(1, reach + 1)) + np.sum(x**2)

    return newton_step(f, np.linspace(0, 1, n))


def scattered(percent: int) -> Timed:
    """The same with entries far from the diagonal: no band."""
    n, others = 400, 2 * percent
    rng = np.random.default_rng(0)
    places = [rng.permutation(n) for _ in range(others)]

    def f(x: Any) -> Any:
        return sum(np.sum(np.cosh(x - x[place])) for place in places) + np.sum(x**2)

    return newton_step(f, np.linspace(0, 1, n))


STRETCH = ("passes.memory_layout.memory_spans.MAX_STRETCH",)
CASES = {
    "stretch": Case(STRETCH, (1, 2, 3, 4, 6, 10, 30, 100), stretched, 100.0, 1.0),
    "stretch of entries": Case(STRETCH, (1, 2, 3, 4, 6, 10, 30, 100), stretched_entries, 100.0, 1.0),
    "functions along a batch": Case(
        ("passes.blocking.batches.MIN_FUNCTIONS",), (1, 2, 3, 4, 6, 8), along_batch
    ),
    "functions along a batch of numbers": Case(
        ("passes.blocking.batches.MIN_FUNCTIONS",), (1, 2, 3), along_numbers
    ),
    "stored pairs": Case(
        ("passes.blocking.row_blocks.MIN_LARGE_PER_STORED",), (1, 2, 3, 4, 6, 8), stored
    ),
    "loops for contractions": Case(
        ("compiled_arrays.c.blas_calls.MAX_LOOP_TERMS",), [2**k for k in range(10, 21, 2)],
        contraction_in_a_loop, NEVER, 0, "c",
    ),
    **{
        f"terms of data, {count}": Case(
            ("passes.fixed_data.MAX_TERMS",), (1, 8, 16, 64, 128),
            partial(sum_of_features, count=count), None, 32,
        )
        for count in (3, 6, 12)
    },
    **{
        f"live factors, {rows} rows": Case(
            ("passes.fixed_data.MAX_LIVE_FACTORS",), (1, 2, 3, 4, 5, 6, 8),
            partial(deep_linear, rows=rows), None, 1,
        )
        for rows in (4096, 20_000, 200_000)
    },
    **{
        f"statements, {weights} weights": Case(
            ("passes.fixed_data.STATEMENT_COST",), (64, 128, 256, 1024, 4096),
            partial(least_squares, weights=weights), 0, NEVER,
        )
        for weights in (8, 32)
    },
    "terms of seeds": Case(
        ("passes.algebra.unit_seeds.MAX_TERMS",), (1, 2, 3, 5, 6, 64), normalized, None, 4
    ),
    "terms of seeds, attention": Case(
        ("passes.algebra.unit_seeds.MAX_TERMS",), (1, 2, 3, 5, 6, 64), attending, None, 4
    ),
    "arrays side by side": Case(
        ("program_passes.memory.sparse_plan.MAX_ARRAYS",), (4, 8, 16, 24, 32, 48, 96),
        sparse_jacobian, NEVER, 0,
    ),
    "sparse Newton": Case(
        ("solvers.solver_variables.MIN_SPARSE",), (10, 20, 30, 50, 100, 200, 400), valley
    ),
    "Newton as a whole": Case(
        ("solvers.solver_variables.MIN_SPARSE",), (10, 20, 30, 50, 70, 100, 200), whole_valley
    ),
    "density of Newton": Case(
        ("solvers.solver_variables.MAX_DENSITY",), (1, 2, 5, 10, 20), band, 2.0, 0.0
    ),
    "density of Newton, no band": Case(
        ("solvers.solver_variables.MAX_DENSITY",), (1, 2, 5, 10, 20), scattered, 2.0, 0.0
    ),
}  # fmt: skip


if __name__ == "__main__":
    main(CASES)
