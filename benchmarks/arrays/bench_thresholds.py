"""What thresholds of the passes for arrays are worth (`benchmarks.thresholds` says how it is measured).

    python benchmarks/arrays/bench_thresholds.py [NAME ...] [--rounds 15]

The numbers beside the thresholds in numeric/ are from one thread of an Intel Xeon with 2 MiB of
second-level cache, NumPy 2.4 with OpenBLAS 0.3, 27 November 2026, medians of 15 and 21 rounds on a machine
with other load.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.thresholds import NEVER, Case, Made, main  # first: it sets the number of threads

# isort: split
import numpy as np

from symad import functions

# ---- functions ----------------------------------------------------------------------------------


def chain(size: int) -> Made:
    """Eight elementwise operations on an array with ``size`` elements."""

    def f(x: Any, y: Any) -> Any:
        return np.exp(-x * y) * np.sin(x + y) + np.tanh(x - y) * y

    return f, [(size // 64, 64)] * 2, None


def two(size: int) -> Made:
    """x y + x on vectors."""
    return lambda x, y: (x + y) * (x - y), [(size,)] * 2, None


def pairs(size: int) -> Made:
    """Σ_j exp(−|x_i − y_j|²) a_j for all i, with ``size`` pairs."""
    n = int(size**0.5)

    def f(x: Any, y: Any, a: Any) -> Any:
        distance = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)[None, :] - 2 * x @ y.T
        return np.sum((np.exp(-distance) @ a) ** 2)

    return f, [(n, 3), (n, 3), (n,)], [0, 1, 2]


def block_of_pairs(size: int) -> Made:
    """The same with 2**22 pairs; the size is that of a block."""
    return pairs(2**22)


def long_chain(size: int) -> Made:
    """The chain with 2**21 elements; the size is that of a block."""
    return chain(2**21)


def lstm(batch: int, width: int = 64, steps: int = 40) -> Made:
    """The gradient of an LSTM's weights."""

    def f(W: Any, U: Any, b: Any, x: Any) -> Any:
        def step(state: Any, x_t: Any) -> Any:
            h, c = state
            gates = h @ W + x_t @ U + b
            i, f, o = (functions.sigmoid(gates[:, k * width : (k + 1) * width]) for k in range(3))
            c = f * c + i * np.tanh(gates[:, 3 * width :])
            return o * np.tanh(c), c

        first = np.zeros((batch, width))
        return np.sum(functions.scan(step, (first, first), x)[0] ** 2)

    return f, [(width, 4 * width), (16, 4 * width), (4 * width,), (steps, batch, 16)], [0, 1, 2]


def softplus_steps(width: int) -> Made:
    """h_t = tanh(h_{t-1} + exp(−x_t) x_t²): work for all steps that a step can do, on ``width`` elements."""

    def f(x: Any) -> Any:
        first = np.zeros(width)
        return functions.scan(lambda h, x_t: np.tanh(h + x_t), first, np.exp(-x) * x**2 + np.sin(x))[-1]

    return f, [(max(4, 2**21 // width), width)], None


def all_steps(size: int) -> Made:
    """The same with steps of 2**12 elements; the size is the number of elements of all steps."""

    def f(x: Any) -> Any:
        first = np.zeros(2**12)
        return functions.scan(lambda h, x_t: np.tanh(h + x_t), first, np.exp(-x) * x**2 + np.sin(x))[-1]

    return f, [(size // 2**12, 2**12)], None


def gram(rows: int) -> Made:
    """s XᵀX for a number s and 32 columns: a Gram product of ``rows`` terms."""
    return lambda s, X: (s * X).T @ X, [(), (rows, 32)], None


def narrow(rows: int) -> Made:
    """Xᵀ diag(σ(1 − σ)) X for 8 columns, the Hessian of a logistic loss: a Gram product of ``rows`` terms."""

    def f(w: Any, X: Any) -> Any:
        p = functions.sigmoid(X @ w)
        return (X * (p * (1 - p))[:, None]).T @ X

    return f, [(8,), (rows, 8)], None


def row_sums(length: int) -> Made:
    """Sums of rows with ``length`` elements."""
    return lambda x: np.sum(np.tanh(x), axis=1), [(2**18 // length, length)], None


def quotients(count: int) -> Made:
    """``count`` quotients by one array."""

    def f(y: Any, *xs: Any) -> Any:
        return tuple(np.sin(x) / y for x in xs)

    return f, [(2**14,)] * (count + 1), None


def halves(length: int) -> Made:
    """A chain on the two halves of rows, each with ``length`` elements."""

    def f(x: Any) -> Any:
        one, other = x[:, :length], x[:, length:]
        return np.exp(-one) * other + np.tanh(other)

    return f, [(max(4, 2**17 // length), 2 * length)], None


def long_halves(size: int) -> Made:
    """The chain on halves with 2**14 elements; the size is that of a piece."""
    return halves(2**14)


def wide_pairs(growth: int) -> Made:
    """Pairs of 2,048 and 512 points; their array has ``growth`` times the elements of the larger input."""

    def f(x: Any, y: Any, a: Any) -> Any:
        distance = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)[None, :] - 2 * x @ y.T
        return np.sum((np.exp(-distance) @ a) ** 2)

    return f, [(2048, 512 // growth), (512, 512 // growth), (512,)], [0, 1, 2]


def freed(size: int) -> Made:
    """Σ of products of sines: several arrays of ``size`` elements, each read once or twice."""

    def f(x: Any, y: Any) -> Any:
        return np.sum(np.sin(x @ y) * np.cos(x) + np.tanh(y @ x) * np.exp(-y))

    n = int(size**0.5)
    return f, [(n, n)] * 2, [0, 1]


def pieces(count: int) -> Made:
    """The gradient of a loop with ``count`` gates of 64 numbers each, for 32 sequences."""

    def f(W: Any, U: Any, x: Any) -> Any:
        def step(h: Any, x_t: Any) -> Any:
            gates = h @ W + x_t @ U
            parts = [gates[:, k * 64 : (k + 1) * 64] for k in range(count)]
            new = np.tanh(parts[0])
            for part in parts[1:]:
                new = new * functions.sigmoid(part)
            return new

        return np.sum(functions.scan(step, np.zeros((32, 64)), x) ** 2)

    return f, [(64, 64 * count), (16, 64 * count), (40, 32, 16)], [0, 1]


def columns(count: int) -> Made:
    """Xᵀ diag(σ(1 − σ)) X for ``count`` columns and 8,192 rows."""

    def f(w: Any, X: Any) -> Any:
        p = functions.sigmoid(X @ w)
        return (X * (p * (1 - p))[:, None]).T @ X

    return f, [(count,), (8192, count)], None


def equal_functions(count: int) -> Made:
    """Σ sin(x_k) of numbers, in C."""
    return lambda *xs: sum(np.sin(x) * x for x in xs), [()] * count, list(range(count))


def equal_exponentials(count: int) -> Made:
    """Σ x_k e^(x_k) of numbers, in C."""
    return lambda *xs: sum(np.exp(x) * x for x in xs), [()] * count, list(range(count))


CASES = {
    "kept": Case(("program_passes.memory.reuse.MIN_KEPT_BYTES",), [2**k for k in range(9, 20)], two),
    "row blocks": Case(("passes.blocking.row_blocks.MIN_ELEMENTS",), [2**k for k in range(14, 24, 2)], pairs),
    "block of rows": Case(
        ("passes.blocking.row_blocks.BLOCK", "program_passes.loops.open_bodies.BLOCK"),
        [2**k for k in range(13, 21)], block_of_pairs, None, 2**17,
    ),
    "chains": Case(
        ("passes.blocking.batches.MIN_ELEMENTS",), [2**k for k in range(13, 23)], chain,
    ),
    "block of a chain": Case(
        ("program_passes.loops.open_bodies.CHAIN_BLOCK_ELEMENTS",), [2**k for k in range(11, 20)],
        long_chain, None, 2**15,
    ),
    "feature major": Case(("passes.loops.feature_major.MIN_BATCH",), [1, 2, 4, 8, 16, 32], lstm),
    "sink, a step": Case(
        ("passes.loops.sink_into_loop.MIN_STEP",), [2**k for k in range(6, 15, 2)], softplus_steps
    ),
    "sink, all steps": Case(
        ("passes.loops.sink_into_loop.MIN_TOTAL",), [2**k for k in range(16, 23)], all_steps
    ),
    "gram": Case(("passes.algebra.syrk_products.MIN_TERMS",), [8, 16, 32, 64, 128, 512, 2048], gram),
    "narrow": Case(
        ("passes.algebra.syrk_products.MAX_NARROW",), [2**k for k in range(2, 15)], narrow, NEVER, 0
    ),
    "narrow in C": Case(
        ("passes.algebra.syrk_products.MAX_NARROW",), [2**k for k in range(6, 15)], narrow, NEVER, 0, "c"
    ),
    "row sums": Case(
        ("numpy_arrays.lower.MAX_ROW_ELEMENTS",), [2**k for k in range(4, 17, 2)], row_sums,
        NEVER, 0,
    ),
    "quotients": Case(("passes.algebra.factors.MIN_QUOTIENTS",), [2, 3, 4, 6], quotients),
    "pieces in C": Case(
        ("compiled_arrays.c.drivers.PIECE_LENGTH",), [2**k for k in range(6, 15, 2)], long_halves,
        None, 1024, "c",
    ),
    "gram in C": Case(("passes.algebra.syrk_products.MIN_TERMS",), [64, 256, 512, 1024], gram, 0, NEVER, "c"),
    "growth": Case(("passes.blocking.row_blocks.MIN_GROWTH",), [1, 2, 4, 8, 16], wide_pairs, 1),
    "freed": Case(("numpy_arrays.lower.MIN_FREED_ELEMENTS",), [2**k for k in range(10, 21, 2)], freed),
    "gates": Case(("passes.loops.feature_major.MIN_PIECES",), [1, 2, 3, 4], pieces),
    "columns": Case(
        ("passes.algebra.syrk_products.MAX_NARROW",), [2, 4, 8, 16, 32, 64, 128], columns, 0, NEVER
    ),
    "equal exponentials in C": Case(
        ("program_passes.lines.scalar_lines.MIN_TOGETHER",),
        [2, 3, 4, 6, 8], equal_exponentials, 0, NEVER, "c"
    ),
    "equal functions in C": Case(
        ("program_passes.lines.scalar_lines.MIN_TOGETHER",),
        [2, 3, 4, 6, 8, 16], equal_functions, 0, NEVER, "c"
    ),
    "rows in C": Case(
        ("compiled_arrays.lower.MIN_CHEAP_ROW",), [2**k for k in range(5, 16, 2)], halves, NEVER, 0, "c"
    ),
}  # fmt: skip


if __name__ == "__main__":
    main(CASES)
