"""The cost of a call of a compiled scalar function: at one point, for small batches, with packed vectors.

Backends "c" and "runs" are interleaved with the NumPy form and with SymPy's lambdify (cse=True). Times are
process CPU time, the best of several rounds.

    python benchmarks/scalar/bench_small_batches.py
"""

from __future__ import annotations

import argparse
import platform
import time
import timeit
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import sympy as sp

import symad
from symad.numeric import lower
from symad.numeric.compiler.c_compiler import compiler

ROUNDS, CALLS = 7, 500
SIZES = (1, 20, 200, 2000)


def measured(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Microseconds of each call; the rounds of all are interleaved, and the best round counts."""
    best = dict.fromkeys(calls, float("inf"))
    for run in calls.values():
        run()
    for _ in range(ROUNDS):
        for name, run in calls.items():
            best[name] = min(best[name], spent(run))
    return best


def spent(run: Callable[[], Any]) -> float:
    """Mean microseconds of a call."""
    return timeit.timeit(run, number=CALLS, timer=time.process_time) / CALLS * 1e6


def row(title: str, calls: dict[str, Callable[[], Any]]) -> None:
    """Print one row of the table."""
    times = "".join(f"{value:12.2f}" for value in measured(calls).values())
    print(f"{title:44s}{times}")


def main() -> None:
    """The table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, SymPy {sp.__version__}"
    print(f"{versions}, compiler {compiler()}; microseconds of a call")
    print(f"{'':44s}{'c':>12s}{'runs':>12s}{'numpy':>12s}{'lambdify':>12s}")
    for count in (2, 6, 12):
        xs = sp.symbols(f"x0:{count}")
        f = sum(sp.sin(a) * b for a, b in pairwise(xs)) + xs[0] ** 2
        for title, made, theirs in (
            ("value", f, f),
            ("gradient", symad.gradient(f, xs), [sp.diff(f, x) for x in xs]),
        ):
            compiled, runs, plain = lower(made, "c"), lower(made, "runs"), lower(made)
            other = sp.lambdify(xs, theirs, cse=True, modules="numpy")
            point = [0.1 * k + 0.2 for k in range(count)]
            for points in (None, *SIZES):
                values = point if points is None else [np.full(points, v) for v in point]
                row(
                    f"{title} of {count} inputs, {'floats' if points is None else f'{points} points'}",
                    {
                        "c": lambda v=values, g=compiled: g(*v),
                        "runs": lambda v=values, g=runs: g(*v),
                        "numpy": lambda v=values, g=plain: g(*v),
                        "lambdify": lambda v=values, g=other: g(*v),
                    },
                )
            packed = {b: lower(made, b, packed=True) for b in ("c", "runs", "numpy")}
            vector = np.array(point)
            row(
                f"{title} of {count} inputs, packed",
                {b: lambda g=k, v=vector: g(v) for b, k in packed.items()},
            )


if __name__ == "__main__":
    main()
