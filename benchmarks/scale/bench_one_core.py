"""Work on one core where peers were faster: batches of Rosenbrock, coloring of the Brusselator, set-up.

- batches: gradients of the chained Rosenbrock function at many points by backends "runs" and "c" against
  JAX's vmap of its gradient, jitted; the goal is at most JAX's time.
- coloring: the Jacobian of the 2-D Brusselator on 32×32 and 100×100; the goal is 30 ms for the first.
- set-up: expression to gradient callable, microseconds a node; the goal is 55.

One thread, process CPU time, rounds interleaved, medians.

Usage: python benchmarks/scale/bench_one_core.py [--small] [--out FOLDER]
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import symad
from benchmarks.machine import loaded, measured_on
from benchmarks.scalar import cases, natural_cases
from benchmarks.sparse.bench_coloring import brusselator
from symad.numeric import lower
from symad.sparsity import color


def medians(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """CPU seconds of each run; one call precedes the measurement."""
    for run in runs.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            gc.collect()
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def batches(size: int, points: int, rounds: int) -> list[dict[str, Any]]:
    """Gradients at points of shape (size, points); JAX gets the transposed layout."""
    expression, symbols = cases.rosenbrock(size)
    gradient = symad.gradient(symad.trace(expression, symbols))
    rows = np.random.default_rng(1).uniform(0.9, 1.1, size=(size, points))
    kernels = {name: lower(gradient, backend=name) for name in ("runs", "c")}
    made: dict[str, Callable[[], Any]] = {name: lambda k=k: k(*rows) for name, k in kernels.items()}
    if loaded("jax"):
        made["JAX vmap"] = by_jax(size, rows)
        # entries are differences of numbers of size 400, some of which cancel
        theirs, ours = np.asarray(made["JAX vmap"]()).T, np.array(made["runs"]())
        np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-10)
    seconds = medians(made, rounds)
    peer = seconds.get("JAX vmap", float("nan"))
    found = []
    for name, value in seconds.items():
        nanoseconds = value / points / size * 1e9
        title = f"Rosenbrock {size}, {points} points"
        found.append({"case": title, "by": name, "seconds": value, "ratio": value / peer})
        row = f"{1e3 * value:9.2f} ms  {nanoseconds:6.2f} ns a number  {value / peer:5.2f}"
        print(f"{title:32}{name:10}{row}")
    return found


def by_jax(size: int, rows: Any) -> Callable[[], Any]:
    """JAX's vmap of the gradient, at the columns of ``rows``."""
    import jax

    jax.config.update("jax_enable_x64", True)
    vmapped = jax.jit(jax.vmap(jax.grad(natural_cases.rosenbrock(jax.numpy))))
    columns = jax.numpy.asarray(rows.T)
    return lambda: jax.block_until_ready(vmapped(columns))


def coloring(rounds: int) -> list[dict[str, Any]]:
    found = []
    for side in (32, 100):
        matrix = brusselator(side)
        seconds = medians({"symad": lambda m=matrix: color(m, "column")}, rounds)["symad"]
        colors = color(matrix, "column").num_colors
        found.append({"case": f"Brusselator {side}", "seconds": seconds, "colors": colors})
        print(f"coloring of the Brusselator {side:4}      {1e3 * seconds:9.2f} ms  {colors} colors")
    return found


def set_up(sizes: tuple[int, ...], rounds: int) -> list[dict[str, Any]]:
    found = []
    for size in sizes:
        expression, symbols = cases.rosenbrock(size)
        nodes = len(symad.trace(expression, symbols).nodes)

        def run(e: Any = expression, s: Any = symbols) -> Any:
            return lower(symad.gradient(e, s), packed=True)

        seconds = medians({"": run}, rounds)[""]
        each = 1e6 * seconds / nodes
        found.append({"case": f"Rosenbrock {size}", "nodes": nodes, "microseconds a node": each})
        print(f"expression to gradient callable, {nodes:6} nodes  {each:6.1f} µs a node")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="fewer points and rounds")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "cpu")
    options = parser.parse_args()
    rounds = 3 if options.small else 9
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f} before the start")
    rows = []
    for size, points in ((10, 1000), (10, 100_000), (100, 1000), (100, 10_000), (1000, 1000)):
        rows += batches(size, points // 10 if options.small else points, rounds)
    results = {
        "versions": measured_on("numpy", "jax"),
        "batches": rows, "coloring": coloring(rounds),
        "set-up": set_up((40, 400) if options.small else (40, 400, 4000), rounds),
    }  # fmt: skip
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "one_core.json").write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
