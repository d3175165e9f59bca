"""From SymPy expression to running derivative: symad against SymPy's own diff, cse and lambdify.

For each case of `cases` it gives the process CPU time of trace, differentiate and lower, cold (first
call in a new process) and warm (median of five), and SymPy's time for the same if it ends within the limit;
then the growth of symad's time with the number of distinct nodes over three decades.

Usage: python benchmarks/scalar/bench_scalar.py [--limit 20] [--plot growth.png]
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cases
import sympy as sp
from rich.console import Console
from rich.table import Table

import symad
from benchmarks.machine import measured_on
from symad.numeric import lower


def seconds(function: Any) -> float:
    """Process CPU time of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def warm(function: Any) -> float:
    """The median of five calls, after a first call that does not count."""
    function()
    return statistics.median(seconds(function) for _ in range(5))


def pendulum_ours(n: int) -> Any:
    """Build the case, and return the timed part: from a SymPy matrix to a callable Jacobian."""
    forcing, states = cases.pendulum(n)
    return lambda: lower(symad.jacobian(forcing, states))


def pendulum_sympy(n: int) -> Any:
    """The case of `pendulum_ours` with SymPy, which computes the Jacobian without generating code."""
    forcing, states = cases.pendulum(n)
    return lambda: forcing.jacobian(states)


def ours(name: str, order: int) -> Any:
    """Build the case, and return the timed part: from an expression to a callable gradient (and Hessian)."""
    expression, symbols = cases.CASES[name]()
    packed = len(symbols) > 200

    def run() -> None:
        graph = symad.trace(expression, symbols)
        lower(symad.gradient(graph), packed=packed)
        if order == 2:
            lower(symad.hessian(graph), packed=packed)

    return run


def by_sympy(name: str, order: int) -> Any:
    """The case of `ours` with SymPy: diff, then lambdify with cse."""
    expression, symbols = cases.CASES[name]()

    def run() -> None:
        gradient = [expression.diff(s) for s in symbols]
        sp.lambdify(symbols, gradient, "math", cse=True)
        if order == 2:
            sp.lambdify(symbols, [[g.diff(s) for s in symbols] for g in gradient], "math", cse=True)

    return run


def within(make: Any, arguments: tuple[Any, ...], limit: float) -> float | None:
    """The CPU time of ``make(*arguments)()`` in its own process; None past the limit, of wall time."""
    queue: Any = multiprocessing.Queue()
    process = multiprocessing.Process(target=_report, args=(queue, make, arguments))
    process.start()
    process.join(limit + 5)
    if process.is_alive():
        process.terminate()
        process.join()
        return None
    return queue.get() if not queue.empty() else None


def _report(queue: Any, make: Any, arguments: tuple[Any, ...]) -> None:
    sys.setrecursionlimit(100_000)
    queue.put(seconds(make(*arguments)))


def cold(call: str) -> float:
    """The first call in a new process, without imports and the building of the expression."""
    code = f"import bench_scalar as b; run = b.{call}; print(b.seconds(run))"
    here = Path(__file__).resolve().parent
    return float(
        subprocess.run(
            [sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=True
        ).stdout
    )


def show(value: float | None, limit: float) -> str:
    """Milliseconds, or that the limit was passed."""
    return f"over {limit:.0f} s" if value is None else f"{value * 1e3:.1f} ms"


def table_of_cases(limit: float) -> Table:
    """One row for each case."""
    table = Table(
        "case",
        "result",
        "symad cold",
        "symad warm",
        "SymPy",
        "ratio",
        title="expression to callable",
    )
    rows = [(name, 1) for name in cases.CASES] + [("arm", 2), ("rosenbrock 100", 2)]
    for name, order in rows:
        what = "gradient" if order == 1 else "gradient + Hessian"
        mine, theirs = warm(ours(name, order)), within(by_sympy, (name, order), limit)
        table.add_row(
            name,
            what,
            show(cold(f"ours({name!r}, {order})"), limit),
            show(mine, limit),
            *_against(mine, theirs, limit),
        )
    for n in (2, 4, 6, 8, 10):
        mine, theirs = warm(pendulum_ours(n)), within(pendulum_sympy, (n,), limit)
        first = cold(f"pendulum_ours({n})")
        table.add_row(
            f"pendulum {n}",
            "Jacobian",
            show(first, limit),
            show(mine, limit),
            *_against(mine, theirs, limit),
        )
    return table


def _against(mine: float, theirs: float | None, limit: float) -> tuple[str, str]:
    if theirs is None:
        return show(None, limit), f"> {limit / mine:.0f}x"
    return show(theirs, limit), f"{theirs / mine:.1f}x"


HARD = {
    "f = sin(f) f + f, 30 times": lambda: cases.shared(30),
    "recurrence, 10^4 nodes": lambda: cases.recurrence(1300),
    "chain of 10^5 sines": lambda: cases.chain(100_000),
    "rosenbrock 1000": lambda: cases.rosenbrock(1000),
}


def table_of_hard_expressions() -> Table:
    """Expressions on which SymPy's own diff does not end."""
    table = Table(
        "expression", "distinct nodes", "gradient callable", title="where SymPy's diff does not end"
    )
    for name, make in HARD.items():
        expression, symbols = make()
        packed = len(symbols) > 200
        taken = seconds(
            lambda e=expression, s=symbols, p=packed: lower(symad.gradient(e, s), packed=p)
        )
        table.add_row(name, str(len(symad.trace(expression, symbols).nodes)), f"{taken:.2f} s")
    return table


def growth(path: str | None) -> Table:
    """Time against the number of distinct nodes, over three decades."""
    table = Table(
        "chained Rosenbrock n", "nodes", "gradient callable", "µs per node", title="linear growth"
    )
    points = []
    for n in (12, 40, 125, 400, 1250, 4000, 12500):
        expression, symbols = cases.rosenbrock(n)
        taken = seconds(lambda e=expression, s=symbols: lower(symad.gradient(e, s), packed=True))
        nodes = len(symad.trace(expression, symbols).nodes)
        points.append((nodes, taken))
        table.add_row(str(n), str(nodes), f"{taken:.3f} s", f"{taken / nodes * 1e6:.1f}")
    if path:
        _plot(points, path)
    return table


def _plot(points: list[tuple[int, float]], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    nodes, taken = zip(*points, strict=True)
    axes.loglog(nodes, taken, "o-", label="symad: expression to gradient callable")
    axes.loglog(
        nodes, [taken[-1] * k / nodes[-1] for k in nodes], "--", color="0.6", label="linear"
    )
    axes.set_xlabel("distinct nodes of the expression")
    axes.set_ylabel("seconds")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--limit", type=float, default=20, help="seconds after which SymPy is stopped"
    )
    parser.add_argument("--plot", help="write the growth plot here")
    options = parser.parse_args()
    console = Console(width=110)
    console.print("  ".join(f"{k} {v}" for k, v in measured_on("sympy", "numpy").items()))
    console.print(table_of_cases(options.limit))
    console.print(table_of_hard_expressions())
    console.print(growth(options.plot))


if __name__ == "__main__":
    main()
