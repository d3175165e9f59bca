"""Gradients of scalar expressions: symad's forms of code against its peers, at one point and over batches.

The cases are those of `cases`. Contestants that start from the same expression: symad's Python
code, its compiled kernel for all functions (backend "runs"), its compiled C (backend "c"), CasADi (SX, buffer
interface, no copies), SymEngine (LLVM) and SymPy (diff, lambdify with cse). Contestants that start from array
code of the same function (`natural_cases`), which is their best form: JAX's jit, PyTorch's
autograd and HIPS autograd. All gradients are compared first; contestants take turns. The first table gives
medians of process CPU time at one point, the second wall time from expression to callable, including first
call and compilation. --jax adds JAX's jit of the scalar graph itself, in a process that is stopped after
--jax-limit seconds. The last table gives CPU time per point over a batch.

Usage: python benchmarks/scalar/bench_scalar_peers.py [CASE ...] [--rounds 100] [--limit 20] [--jax]
       [--jax-limit 120] [--points 10000] [--json FILE]
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["JAX_ENABLE_X64"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

# ruff: noqa: E402
import argparse
import gc
import json
import multiprocessing
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from queue import Empty
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cases
import natural_cases
import numpy as np
import sympy as sp
from rich.console import Console
from rich.table import Table
from scalar_contestants import CONTESTANTS, FROM_ARRAYS, Run, jax_graph, ours, present

import symad
from benchmarks.machine import loaded, measured_on
from symad.numeric import lower

LIMITED = ("sympy", "symengine")


def limited(make: Run, seconds: float) -> Any:
    """The result; None after the given seconds of wall time."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return make()
    except (TimeoutError, RecursionError, KeyError):
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def point(name: str) -> tuple[Any, Any, Any]:
    """The expression of a case, its symbols, and the point of evaluation."""
    expression, symbols = cases.CASES[name]()
    return expression, symbols, np.random.default_rng(0).uniform(0.4, 1.1, size=len(symbols))


def same(name: str, who: str, got: Any, expected: Any) -> None:
    """Raises AssertionError unless a contestant's gradient is symad's."""
    got = np.asarray(got, float).ravel()
    if not np.allclose(got, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max()):
        raise AssertionError(f"{name}: {who} differs from symad")


def compete(name: str, limit: float, rounds: int) -> dict[str, tuple[float, float]]:
    """CPU seconds of a call and wall seconds of the setup, by contestant."""
    expression, symbols, x = point(name)
    makers: dict[str, Callable[[], Run]] = {
        who: (lambda make=make: make(expression, symbols, x)) for who, make in present(CONTESTANTS).items()
    } | {who: (lambda make=make: make(name, x)) for who, make in present(FROM_ARRAYS).items()}
    runs: dict[str, tuple[Run, float]] = {}
    for who, make in makers.items():
        with empty_cache() if who == "c" else nullcontext():
            start = time.perf_counter()

            def setup(make: Any = make) -> Run:
                run: Run = make()
                run()
                return run

            made = limited(setup, limit if who in LIMITED else 1e4)
        if made is not None:
            runs[who] = made, time.perf_counter() - start
    expected = np.array(runs["numpy"][0](), float).ravel()
    for who, (run, _) in runs.items():
        same(name, who, run(), expected)
    once = {who: cpu(run, 3) for who, (run, _) in runs.items()}
    times: dict[str, list[float]] = {who: [] for who in runs}
    gc.collect()
    gc.freeze()  # existing objects are not visited in each round
    gc.disable()  # the garbage of one contestant must not be collected in the time of the next
    for number in range(rounds):
        for who, (run, _) in runs.items():
            if once[who] < 5e-4 or number < 15:
                times[who].append(cpu(run, 20 if once[who] < 5e-4 else 2))
        gc.collect()
    gc.enable()
    gc.unfreeze()
    return {who: (statistics.median(times[who]), runs[who][1]) for who in runs}


def cpu(run: Run, count: int) -> float:
    """CPU seconds of a call, the mean of several."""
    start = time.process_time()
    for _ in range(count):
        run()
    return (time.process_time() - start) / count


@contextmanager
def empty_cache() -> Iterator[None]:
    """An empty folder for compiled C, so that compilation counts."""
    before = os.environ.get("SYMAD_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SYMAD_CACHE"] = folder
        try:
            yield
        finally:
            del os.environ["SYMAD_CACHE"]
            if before is not None:
                os.environ["SYMAD_CACHE"] = before


def warm_up() -> None:
    """Imports, the start of JAX, and the kernel of runs, which is compiled once per machine."""
    x = sp.symbols("x0:2", real=True)
    for make in present(CONTESTANTS).values():
        limited(lambda make=make: make(x[0] ** 2 + x[1], x, np.ones(2))(), 60)
    for array_code in present(FROM_ARRAYS).values():
        limited(lambda make=array_code: make("rosenbrock 10", np.ones(3))(), 60)


def of_graph_by_jax(name: str, limit: float) -> tuple[float, float] | None:
    """The times of `compete` for JAX on the scalar graph, in a separate process; None after ``limit`` s."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_jax_graph, args=(name, queue))
    process.start()
    try:
        found: tuple[float, float] | None = queue.get(timeout=limit)
    except Empty:
        found = None
    process.kill()
    process.join()
    return found


def _jax_graph(name: str, queue: Any) -> None:
    import jax.numpy

    jax.block_until_ready(jax.jit(jax.grad(jax.numpy.sin))(1.0))  # JAX's own start does not count
    expression, symbols, x = point(name)
    start = time.perf_counter()
    run = jax_graph(expression, symbols, x)
    value = run()
    taken = time.perf_counter() - start
    same(name, "jax graph", value, np.array(ours("numpy")(expression, symbols, x)(), float))
    queue.put((statistics.median(cpu(run, 10) for _ in range(20)), taken))


def over_batches(name: str, points: int) -> dict[str, float]:
    """CPU seconds per point of a batch, by contestant: rows of points in, gradients out."""
    expression, symbols, x = point(name)
    rows = x[:, None] * np.random.default_rng(1).uniform(0.9, 1.1, size=(len(x), points))
    gradient = symad.gradient(symad.trace(expression, symbols))
    numpy, runs = lower(gradient), lower(gradient, backend="runs")
    contestants: dict[str, Run] = {"numpy": lambda: numpy(*rows), "runs": lambda: runs(*rows)}
    last = [g[-1] for g in contestants["numpy"]()]
    same(name, "runs", [g[-1] for g in contestants["runs"]()], np.array(last))
    if loaded("jax"):
        contestants["jax"] = of_rows_by_jax(name, rows)
        same(name, "jax", np.asarray(contestants["jax"]())[-1], np.array(last))
    times: dict[str, list[float]] = {who: [] for who in contestants}
    for _ in range(7):
        for who, run in contestants.items():
            times[who].append(cpu(run, 1))
    return {who: statistics.median(found) / points for who, found in times.items()}


def of_rows_by_jax(name: str, rows: Any) -> Run:
    """JAX's vmap of array code; it gets the points as rows of the transposed array."""
    import jax

    vmapped = jax.jit(jax.vmap(jax.grad(natural_cases.NATURAL[name](jax.numpy))))
    columns = jax.numpy.asarray(rows.T)
    return lambda: jax.block_until_ready(vmapped(columns))


LIBRARIES = ("numpy", "sympy", "casadi", "symengine", "jax", "torch", "autograd")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="*", default=list(cases.CASES))
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--limit", type=float, default=20, help="seconds of setup for SymPy and SymEngine")
    parser.add_argument("--jax", action="store_true", help="also JAX's jit of the scalar graphs")
    parser.add_argument("--jax-limit", type=float, default=120, help="seconds of --jax for a case")
    parser.add_argument("--points", type=int, default=10_000, help="points of a batch; 0: no table")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    console = Console(width=150)
    machine = measured_on(*LIBRARIES)
    console.print("  ".join(f"{k} {v}" for k, v in machine.items()))
    warm_up()
    names = [*CONTESTANTS, *FROM_ARRAYS, *(["jax graph"] if options.jax else [])]
    calls = Table("gradient, µs", *names, "runs/casadi", "c/casadi", title="one point, one thread, CPU time")
    setups = Table("setup, ms", *names, title="from expression to callable, first call included, wall time")
    batches = Table("gradient, µs a point", "numpy", "runs", "jax", "runs/jax", title="batch, CPU time")
    ratios: dict[str, list[float]] = {"runs": [], "c": []}
    rows: list[dict[str, Any]] = []
    for case in options.cases:
        found = compete(case, options.limit, options.rounds)
        graph = of_graph_by_jax(case, options.jax_limit) if options.jax and loaded("jax") else None
        found |= {"jax graph": graph} if graph else {}
        for ours_, kept in ratios.items():
            if "casadi" in found and ours_ in found:
                kept.append(found[ours_][0] / found["casadi"][0])
        last = [f"{found[k][0] / found['casadi'][0]:.2f}" if "casadi" in found else "" for k in ("runs", "c")]
        calls.add_row(case, *(f"{1e6 * found[n][0]:.2f}" if n in found else "-" for n in names), *last)
        setups.add_row(case, *(f"{1e3 * found[n][1]:.0f}" if n in found else "-" for n in names))
        rows.append({"case": case, **{who: list(pair) for who, pair in found.items()}})
        if options.points:
            batch = over_batches(case, options.points)
            cells = [f"{1e6 * batch[n]:.4f}" if n in batch else "-" for n in ("numpy", "runs", "jax")]
            ratio = f"{batch['runs'] / batch['jax']:.2f}" if "jax" in batch else ""
            batches.add_row(case, *cells, ratio)
            rows[-1]["batch"] = batch
        if options.json:
            made = {"versions": machine, "points": options.points, "rows": rows}
            options.json.write_text(json.dumps(made, indent=1) + "\n")
    means = [f"{statistics.geometric_mean(kept):.2f}" if kept else "" for kept in ratios.values()]
    calls.add_section()
    calls.add_row("geometric mean", *[""] * len(names), *means)
    for table in (calls, setups, *([batches] if options.points else [])):
        console.print(table)
    limits = f"{options.limit:g} s (JAX on graphs: {options.jax_limit:g} s)"
    console.print(f"- : setup not within {limits}, or left out")


if __name__ == "__main__":
    main()
