"""Minimizers on the problems of Moré, Garbow and Hillstrom: the steps to the published minima.

Each row is a problem, each column a method: the number of steps, or – if no printed minimum was reached.

Usage: python benchmarks/bench_optimizers.py
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import symad
from symad.numeric import least_squares, minimize
from tests.known.more_garbow_hillstrom import PROBLEMS
from tests.numeric.fitting.reached import reached

METHODS = ("levenberg-marquardt", "newton", "trust-exact", "newton-cg", "l-bfgs")


def steps(method: str, problem: Any) -> int | None:
    """The steps of a method; None if it reached none of the printed minima."""
    objective = symad.trace(problem.objective, problem.unknowns)
    if method == METHODS[0]:
        fit = least_squares(symad.trace(problem.residuals, problem.unknowns), problem.start)
        value, count = 2 * fit.value, fit.iterations
    else:
        found = minimize(objective, problem.start, method=method, tolerance=1e-11, iterations=2000)
        value, count = found.value, found.iterations
    return count if reached(value, problem, objective(*problem.start)) else None


def main() -> int:
    """Run everything and print one table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    table = Table("problem", *METHODS, title="steps")
    total: Counter[str] = Counter()
    solved: Counter[str] = Counter()
    for problem in PROBLEMS:
        row = []
        for method in METHODS:
            begin = time.perf_counter()
            found = steps(method, problem)
            total[method] += time.perf_counter() - begin  # type: ignore[assignment]
            solved[method] += found is not None
            row.append("–" if found is None else str(found))
        table.add_row(str(problem), *row)
    table.add_row("reached", *(f"{solved[m]} of {len(PROBLEMS)}" for m in METHODS))
    table.add_row("seconds, tracing included", *(f"{total[m]:.1f}" for m in METHODS))
    Console(width=110).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
