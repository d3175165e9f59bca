"""Kernel sums and attention in NumPy by blocks, against forming the whole matrix.

Time and peak memory of symad.numeric.pairwise and symad.numeric.attention, and of the same by
whole matrices, for growing lengths.

Usage: python benchmarks/bench_pairwise.py [--largest 8000]
"""

from __future__ import annotations

import argparse
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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from symad.numeric.attention import attention
from symad.numeric.pairwise import pairwise


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


def main() -> int:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=8000)
    largest = parser.parse_args().largest
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
