"""Value and gradient for fixed data: symad's `given` against calls that pass the data.

The cases are AR(16) on 10⁵ samples, and least squares with 100 weights on 20000 rows. `given` forms the Gram
matrix of the data once. JAX and PyTorch read the data in each call, as `lower` does; making the data
constants of JAX's compiled function does not help. Results are compared first; then medians of process CPU
time, one thread, contestants in turns. "before" is the wall time of `given` itself, including printing.

Usage: python benchmarks/arrays/bench_given.py [CASE ...] [--dtype float64] [--rounds 30]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import bench_models  # sets the number of threads, before NumPy is imported
import model_cases
import numpy as np
from rich.console import Console
from rich.table import Table

import symad
from symad.numeric import given

REPEATS = 100
"""Calls of `given` in one measurement, since a single call is too short for the clock."""


def squares() -> model_cases.Case:
    """Half the mean of (X w − y)²."""
    n, p = 20_000, 100

    def loss(xp: Any, w: Any, X: Any, y: Any) -> Any:
        return 0.5 * xp.np.mean((X @ w - y) ** 2)

    def natural(torch: Any, w: Any, X: Any, y: Any) -> Any:
        return 0.5 * torch.mean((X @ w - y) ** 2)

    rng = np.random.default_rng(3)
    data = {"X": rng.normal(size=(n, p)), "y": rng.normal(size=n)}
    return model_cases.Case("squares", loss, {"w": rng.normal(size=p)}, data, {"natural": natural})


CASES: dict[str, Callable[[], model_cases.Case]] = {"ar": model_cases.CASES["ar"], "squares": squares}


def with_data(case: model_cases.Case, dtype: str) -> bench_models.Run:
    """symad with the data given."""
    arrays = {**case.weights, **case.data}
    space, count = model_cases.for_symad(), len(case.weights)
    graph = symad.trace(lambda *a: case.loss(space, *a), inputs=[a.shape for a in arrays.values()])
    step = symad.value_and_gradient(graph, wrt=list(range(count)))
    fast = given(step, {count + k: a for k, a in enumerate(case.data.values())}, dtype=dtype)
    values = [np.asarray(a, dtype) for a in case.weights.values()]
    return lambda: fast(*values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float64")
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    table = Table("case", "contestant", "ms", "ratio", "before, s", title=f"data given, {options.dtype}")
    for name in options.cases:
        case = CASES[name]()
        runs = bench_models.contestants(case, options.dtype, False)
        start = time.perf_counter()
        fast = with_data(case, options.dtype)
        before = time.perf_counter() - start
        bench_models.compare({**runs, "given": (fast, before)}, options.dtype)

        def many(fast: bench_models.Run = fast) -> None:
            for _ in range(REPEATS):
                fast()

        took = bench_models.medians({**runs, "symad, data given": (many, before)}, options.rounds)
        took["symad, data given"] /= REPEATS
        best = min(t for k, t in took.items() if not k.startswith("symad"))
        for k, (contestant, seconds) in enumerate(took.items()):
            table.add_row(
                name if k == 0 else "", contestant, f"{1e3 * seconds:.4f}", f"{seconds / best:.4f}",
                f"{before:.2f}" if "given" in contestant else "", end_section=k == len(took) - 1,
            )  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    main()
