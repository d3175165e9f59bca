"""Dense Hessians of scalar expressions: symad's lanes of tangents against CasADi and JAX.

symad pushes all unit vectors through the gradient together (backend "runs"). CasADi (SX) computes the lower
triangle, through buffers without copies. JAX is jit(hessian) of array code (`natural_cases`). All
Hessians are compared first; contestants take turns; medians of process CPU time, one thread.

Usage: python benchmarks/scalar/bench_scalar_hessians.py [CASE ...] [--rounds 60] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import bench_scalar_peers as peers  # first: it sets the number of threads
import natural_cases
import numpy as np
from rich.console import Console
from rich.table import Table
from scalar_contestants import casadi_graph, through_buffers

import symad
from benchmarks.machine import loaded, measured_on
from symad.numeric import lower

CASES = ("mlp", "lstm")


def ours(expression: Any, symbols: Any, x: Any) -> peers.Run:
    """The kernel of runs, called through buffers."""
    kernel = lower(symad.hessian(symad.trace(expression, symbols)), backend="runs", packed=True)
    y = np.zeros(len(x) ** 2)
    call = kernel.bind(np.ascontiguousarray(x), y)

    def run() -> Any:
        call()
        return y

    return run


def casadi(expression: Any, symbols: Any, x: Any) -> tuple[peers.Run, Any]:
    """The lower triangle, and the rows and columns of its entries."""
    import casadi as ca

    inputs, value = casadi_graph(expression, symbols)
    triangle = ca.tril(ca.hessian(value, inputs)[0])
    places = triangle.sparsity().get_triplet()
    return through_buffers(ca.Function("h", [inputs], [triangle]), x), tuple(map(np.array, places))


def by_jax(name: str, x: Any) -> peers.Run:
    """jit(hessian) of array code."""
    import jax

    function = jax.jit(jax.hessian(natural_cases.NATURAL[name](jax.numpy)))
    values = jax.numpy.asarray(x)
    return lambda: jax.block_until_ready(function(values))


def compete(name: str, rounds: int) -> dict[str, tuple[float, float]]:
    """CPU seconds of a call and wall seconds of the setup, by contestant."""
    expression, symbols, x = peers.point(name)
    makers: dict[str, Any] = {
        "symad": lambda: ours(expression, symbols, x),
    }
    if loaded("casadi"):
        makers["casadi"] = lambda: casadi(expression, symbols, x)
    if loaded("jax"):
        makers["jax"] = lambda: by_jax(name, x)
    runs: dict[str, peers.Run] = {}
    setup: dict[str, float] = {}
    places: Any = None
    for who, make in makers.items():
        start = time.perf_counter()
        made = make()
        if who == "casadi":
            made, places = made
        made()
        runs[who], setup[who] = made, time.perf_counter() - start
    h = np.array(runs["symad"]()).reshape(len(x), len(x))
    for who in {*runs} - {"symad"}:
        peers.same(name, who, runs[who](), h[places] if who == "casadi" else h.ravel())
    times: dict[str, list[float]] = {who: [] for who in runs}
    for _ in range(rounds):
        for who, run in runs.items():
            times[who].append(peers.cpu(run, 5))
    return {who: (statistics.median(times[who]), setup[who]) for who in runs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    machine = measured_on(*peers.LIBRARIES)
    peers.warm_up()
    names = ("symad", "casadi", "jax")
    title = "dense Hessian, µs of CPU (setup, ms)"
    table = Table(title, *names, "to CasADi", "to JAX")
    rows = []
    for case in options.cases:
        found = compete(case, options.rounds)
        cells = [f"{1e6 * found[n][0]:.0f} ({1e3 * found[n][1]:.0f})" if n in found else "-" for n in names]
        ratios = [f"{found['symad'][0] / found[n][0]:.2f}" if n in found else "" for n in names[1:]]
        table.add_row(case, *cells, *ratios)
        rows.append({"case": case, **{who: list(pair) for who, pair in found.items()}})
    Console(width=110).print(table)
    if options.json:
        options.json.write_text(json.dumps({"versions": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
