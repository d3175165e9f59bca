"""Kernel sums and attention in NumPy by blocks, against code that forms the whole matrix.

It gives time and peak memory of symad.numeric.pairwise and symad.numeric.attention, and of the same functions
by whole matrices, for growing lengths.

With --points N it runs the three reductions over N × N pairs, and the cotangents of x, y, b and the length,
where no matrix would fit: CPU time, growth of the process, and the error at some rows that are computed
directly. Plain sums are compiled if there is a C compiler.

Usage: python benchmarks/arrays/bench_pairwise.py [--largest 8000]
       python benchmarks/arrays/bench_pairwise.py --points 100000 [--reduce sum]
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp
from rich.console import Console
from rich.table import Table
from scipy.spatial.distance import cdist

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from symad.numeric.eager.attention import attention
from symad.numeric.eager.pairwise import pairwise, pairwise_vjp


def gaussian(x: Any, y: Any, ell: Any) -> Any:
    return sp.exp(-(x - y).dot(x - y) / (2 * ell**2))


def whole_sum(x: Any, y: Any, b: Any) -> Any:
    return np.exp(-cdist(x, y, "sqeuclidean") / 2) @ b


def whole_attention(q: Any, k: Any, v: Any) -> Any:
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p @ v / p.sum(axis=-1, keepdims=True)


def measured(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """(result, seconds, peak MB beyond what lived before)."""
    begin = time.perf_counter()
    result = call()
    elapsed = time.perf_counter() - begin
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return result, elapsed, peak


def row(table: Table, name: str, n: int, blocked: Any, whole: Any) -> None:
    found, time_b, peak_b = measured(blocked)
    expected, time_w, peak_w = measured(whole)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    cells = (f"{time_b:.3f}", f"{time_w:.3f}", f"{peak_b:.1f}", f"{peak_w:.1f}", f"{error:.0e}")
    table.add_row(name, str(n), *cells)


def exponent(x: Any, y: Any, ell: Any) -> Any:
    return -(x - y).dot(x - y) / (2 * ell**2)


def directly(reduce: str, rows: Any, y: Any, b: Any) -> tuple[Any, Any]:
    """Results and x̄ of some rows x, at length 1 and cotangents 1, from whole rows of the matrix."""
    logits = -cdist(rows, y, "sqeuclidean") / 2
    if reduce == "sum":
        out, weights = np.exp(logits) @ b, np.exp(logits) * b
    elif reduce == "logsumexp":
        out = np.log(np.exp(logits) @ b)
        weights = np.exp(logits - out[:, None]) * b
    else:
        p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        out = p @ b
        weights = p * (b - out[:, None])
    return out, weights @ y - weights.sum(axis=1, keepdims=True) * rows


def large(n: int, reductions: list[str]) -> None:
    """N × N pairs, forward and backward."""
    rng = np.random.default_rng(0)
    x, y, b = rng.normal(size=(n, 3)), rng.normal(size=(n, 3)), rng.uniform(0.1, 1, size=n)
    titles = ("result CPU s", "cotangents CPU s", "process grew MB", "error", "error of x̄")
    table = Table("reduction", "pairs", *titles)
    chosen, params = rng.integers(0, n, 20), {"ell": 1.0}
    for reduce in reductions:
        f = gaussian if reduce == "sum" else exponent
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begin = time.process_time()
        result = pairwise(f, x, y, b, reduce=reduce, params=params, return_lse=True)
        out, lse = result if isinstance(result, tuple) else (result, None)
        middle = time.process_time()
        bars = pairwise_vjp(f, x, y, b, out, np.ones_like(out), lse=lse, reduce=reduce, params=params)
        end = time.process_time()
        grew = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
        expected, x_bar = directly(reduce, x[chosen], y, b)
        errors = [
            np.abs(found - right).max() / np.abs(right).max()
            for found, right in ((out[chosen], expected), (bars.x[chosen], x_bar))
        ]
        times = f"{middle - begin:.1f}", f"{end - middle:.1f}", f"{grew:.0f}"
        table.add_row(reduce, f"{n * n:.0e}", *times, *(f"{e:.0e}" for e in errors))
    Console().print(table)


def main() -> int:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=8000)
    parser.add_argument("--points", type=int)
    parser.add_argument("--reduce", choices=["sum", "logsumexp", "softmax"], action="append")
    options = parser.parse_args()
    if options.points:
        large(options.points, options.reduce or ["sum", "logsumexp", "softmax"])
        return 0
    largest = options.largest
    headers = ("what", "N", "blocked s", "whole s", "blocked MB", "whole MB", "error")
    table = Table(*headers, title="float64; errors relative to the largest entry")
    rng = np.random.default_rng(0)
    for n in (largest // 8, largest // 4, largest // 2, largest):
        x, b = rng.normal(size=(n, 3)), rng.normal(size=(n, 1))
        row(table, "Gaussian sum, D = 3", n,
            lambda x=x, b=b: pairwise(gaussian, x, x, b, params={"ell": 1.0}),
            lambda x=x, b=b: whole_sum(x, x, b))  # fmt: skip
    for n in (largest // 8, largest // 4, largest // 2):
        q, k, v = rng.normal(size=(3, 1, 2, n, 32))
        row(table, "causal attention, d = 32", n,
            lambda q=q, k=k, v=v: attention(q, k, v, causal=True),
            lambda q=q, k=k, v=v: whole_attention(q, k, v))  # fmt: skip
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
