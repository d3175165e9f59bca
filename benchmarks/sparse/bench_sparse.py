"""Sparse derivatives, step by step: detection, coloring and evaluation, symad against its peers.

Three cases, all in float64 on one thread:

- the Hessian of the chained Rosenbrock function, n = 10⁴ (tridiagonal, 3 colors);
- the Hessian of the area of a surface plus exp(u) on a 100×100 grid with zero boundary (7 points);
- the Jacobian of the 2-D Brusselator on a periodic 32×32 grid (6 entries a row).

Detection and coloring are wall time, medians. Evaluation is process CPU time in one process, with the
competitors taking turns; medians over the rounds, after every result has been compared with symad's.
symad returns a scipy csr_array. JAX, with colors given by hand, and asdex return the array of the entries
(for JAX also the time with a csr_array made from it). CasADi writes the entries into a buffer. Peers that
cannot be loaded are left out and named.

Usage: python benchmarks/sparse/bench_sparse.py [--rounds 15] [--json FILE] [--check]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
)
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_ENABLE_X64"] = "1"

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from scipy.sparse import csr_array

import symad
from benchmarks.machine import loaded, measured_on
from symad.numeric import lower
from symad.sparsity import color

LIBRARIES = ("numpy", "scipy", "networkx", "jax", "asdex", "casadi")


def rosenbrock(x: Any, np: Any = np) -> Any:
    """Σ 100(x_{i+1} − x_i²)² + (1 − x_i)²."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def grid_energy(u: Any, np: Any = np) -> Any:
    """Σ √(1 + |∇u|²) + Σ exp(u), u zero outside the grid."""
    padded = np.pad(u, 1)
    dx, dy = padded[1:, :-1] - padded[:-1, :-1], padded[:-1, 1:] - padded[:-1, :-1]
    return np.sum(np.sqrt(1 + dx**2 + dy**2)) + np.sum(np.exp(u))


def brusselator(w: Any, np: Any = np) -> Any:
    """(u', v') for w = (u, v) on a periodic grid: u' = 1 + u²v − 4.4u + αΔu, v' = 3.4u − u²v + αΔv."""
    u, v = w[0], w[1]
    scale = 10.0 * u.shape[0] ** 2

    def laplacian(a: Any) -> Any:
        return scale * (
            np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a
        )

    return np.stack([1 + u**2 * v - 4.4 * u + laplacian(u), 3.4 * u - u**2 * v + laplacian(v)])


@dataclass
class Case:
    """A function, its input, and the times of each step with each library."""

    name: str
    function: Callable[..., Any]
    shape: tuple[int, ...]
    hessian: bool
    point: Any
    colors: Callable[[], Any]
    """Colors of the columns, found by hand, for JAX."""
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    evaluate: dict[str, Callable[[], Any]] = field(default_factory=dict)

    def add(self, step: str, who: str, seconds: float, note: str = "") -> None:
        """Note a time."""
        self.steps.setdefault(step, {})[who] = {"seconds": seconds, "note": note}


def brusselator_colors() -> Any:
    """Eight colors of the periodic 32×32 grid with two fields: (3i + 2j) mod 8, and 4 more for v."""
    i, j = np.indices((32, 32))
    u = (3 * i + 2 * j) % 8
    return np.stack([u, (u + 4) % 8])


def cases() -> list[Case]:
    """The three cases, at fixed random points."""
    rng = np.random.default_rng(0)
    i, j = np.indices((100, 100))
    return [
        Case("Rosenbrock Hessian, n = 10000", rosenbrock, (10_000,), True, rng.normal(size=10_000),
             lambda: np.arange(10_000) % 3),
        Case("grid energy Hessian, 100x100", grid_energy, (100, 100), True, rng.normal(size=(100, 100)),
             lambda: (i + 3 * j) % 7),
        Case("Brusselator Jacobian, 32x32", brusselator, (2, 32, 32), False, rng.uniform(size=(2, 32, 32)),
             brusselator_colors),
    ]  # fmt: skip


def timed(function: Callable[[], Any], runs: int = 5) -> tuple[Any, float]:
    """A value, and the median wall time of computing it."""
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        value = function()
        taken.append(time.perf_counter() - start)
    return value, statistics.median(taken)


def with_symad(case: Case) -> Any:
    """symad's patterns, colors and code; returns the value with which the others are compared."""
    graph = symad.trace(case.function, [case.shape])
    detect = symad.hessian_sparsity if case.hessian else symad.jacobian_sparsity
    pattern, seconds = timed(lambda: detect(graph))
    case.add("detection", "symad", seconds, f"{pattern.nnz} entries")
    kinds = ("column", "star", "acyclic") if case.hessian else ("column", "row", "bidirectional")
    for kind in kinds:
        found, seconds = timed(lambda kind=kind: color(pattern, kind), 3)
        note = f"{found.num_colors} colors, at least {found.lower_bound}; {found.method}"
        case.add("coloring", f"symad, {kind}", seconds, note)
    derivative = symad.hessian if case.hessian else symad.jacobian
    sparse, seconds = timed(lambda: derivative(graph, sparse=True), 1)
    case.add("construction", "symad, derivative", seconds, sparse.report)
    kernel, seconds = timed(lambda: lower(sparse), 1)
    case.add("construction", "symad, code", seconds, f"{len(kernel.source)} characters")
    case.evaluate["symad"] = lambda: kernel(case.point)
    compiled, seconds = timed(lambda: lower(sparse, backend="c"), 1)
    case.add("construction", "symad, compiled", seconds, f"{len(compiled.c_source)} characters of C")
    case.evaluate["symad compiled"] = lambda: compiled(case.point)
    return kernel(case.point)


def with_scipy_and_networkx(case: Case, pattern: Any) -> None:
    """Greedy colorings of the columns; NetworkX also needs the graph."""
    import networkx
    from scipy.optimize._numdiff import group_columns

    for name, order in (("default order", 0), ("natural order", np.arange(pattern.shape[1]))):
        groups, seconds = timed(lambda order=order: group_columns(pattern, order))
        case.add("coloring", f"SciPy group_columns, {name}", seconds, f"{groups.max() + 1} colors")
    ones = csr_array((np.ones(pattern.nnz, np.int32), pattern.indices, pattern.indptr), shape=pattern.shape)

    def intersection() -> Any:
        meeting = (ones.T @ ones).tocoo()
        graph = networkx.empty_graph(pattern.shape[1])
        above = meeting.coords[0] < meeting.coords[1]
        graph.add_edges_from(zip(*(c[above].tolist() for c in meeting.coords), strict=True))
        return graph

    graph, seconds = timed(intersection, 1)
    case.add("coloring", "NetworkX, the graph", seconds, f"{graph.number_of_edges()} edges")
    for strategy in ("largest_first", "smallest_last"):
        colors, seconds = timed(lambda s=strategy: networkx.greedy_color(graph, s), 1)
        case.add("coloring", f"NetworkX, {strategy}", seconds, f"{max(colors.values()) + 1} colors")


def with_jax(case: Case, reference: Any) -> None:
    """One jitted function: products with hand-colored seeds, then one gather of the entries."""
    import jax

    numpy = jax.numpy
    colors = np.ravel(case.colors())
    p, n = int(colors.max()) + 1, colors.size
    seeds = np.zeros((p, n))
    seeds[colors, np.arange(n)] = 1
    blocks = numpy.asarray(seeds.reshape(p, *case.shape))
    rows = np.repeat(np.arange(reference.shape[0]), np.diff(reference.indptr))
    places = numpy.asarray(colors[reference.indices] * reference.shape[0] + rows)

    def f(x: Any) -> Any:
        return case.function(x, numpy)

    @jax.jit
    def entries(x: Any) -> Any:
        _, linear = jax.linearize(jax.grad(f) if case.hessian else f, x)
        return jax.vmap(linear)(blocks).ravel()[places]

    point = numpy.asarray(case.point)
    _, seconds = timed(lambda: entries(point).block_until_ready(), 1)
    case.add("construction", "JAX, trace and compile", seconds)
    np.testing.assert_allclose(entries(point), reference.data, rtol=1e-8, atol=1e-8)
    index = reference.indices, reference.indptr
    who = f"JAX, {p} products colored by hand"
    case.evaluate[who] = lambda: entries(point).block_until_ready()
    case.evaluate[f"{who}, csr_array"] = lambda: csr_array(
        (np.asarray(entries(point)), *index), shape=reference.shape
    )


def with_asdex(case: Case, reference: Any) -> None:
    """asdex detects and colors itself; evaluation is jitted."""
    import asdex
    import jax

    def f(x: Any) -> Any:
        return case.function(x, jax.numpy)

    kind = "hessian" if case.hessian else "jacobian"
    point = jax.numpy.asarray(case.point)
    pattern, seconds = timed(lambda: getattr(asdex, f"{kind}_sparsity")(f, point), 3)
    case.add("detection", "asdex", seconds, f"{pattern.nnz} entries")
    make = getattr(asdex, f"{kind}_coloring_from_sparsity")
    make(pattern)  # Numba compiles once
    coloring, seconds = timed(lambda: make(pattern), 3)
    case.add("coloring", "asdex", seconds, f"{coloring.num_colors} colors")
    entries = jax.jit(getattr(asdex, f"{kind}_from_coloring")(f, coloring))
    value, seconds = timed(lambda: entries(point).data.block_until_ready(), 1)
    case.add("construction", "asdex, trace and compile", seconds)
    np.testing.assert_allclose(np.sort(value), np.sort(reference.data), rtol=1e-8, atol=1e-8)
    case.evaluate["asdex"] = lambda: entries(point).data.block_until_ready()


def in_casadi(case: Case, x: Any, ca: Any) -> Any:
    """The function of a CasADi column vector, written with CasADi's slices."""
    if case.function is rosenbrock:
        return ca.sum1(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    n = case.shape[-1]
    if case.function is grid_energy:
        u = ca.reshape(x, n, n).T
        padded = ca.vertcat(type(x).zeros(1, n), u, type(x).zeros(1, n))
        padded = ca.horzcat(type(x).zeros(n + 2, 1), padded, type(x).zeros(n + 2, 1))
        corner = padded[:-1, :-1]
        dx, dy = padded[1:, :-1] - corner, padded[:-1, 1:] - corner
        return ca.sum1(ca.sum2(ca.sqrt(1 + dx**2 + dy**2))) + ca.sum1(ca.exp(x))
    u, v = (ca.reshape(part, n, n) for part in (x[: n * n], x[n * n :]))

    def laplacian(a: Any) -> Any:
        rows = ca.vertcat(a[-1, :], a[:-1, :]) + ca.vertcat(a[1:, :], a[0, :])
        columns = ca.horzcat(a[:, -1], a[:, :-1]) + ca.horzcat(a[:, 1:], a[:, 0])
        return 10.0 * n**2 * (rows + columns - 4 * a)

    du = 1 + u**2 * v - 4.4 * u + laplacian(u)
    dv = 3.4 * u - u**2 * v + laplacian(v)
    return ca.vertcat(ca.vec(du), ca.vec(dv))


def with_casadi(case: Case, reference: Any) -> None:
    """SX (scalars in a virtual machine) and MX (matrix nodes), both through zero-copy buffers."""
    import casadi as ca

    size = int(np.prod(case.shape))
    for name in ("SX", "MX"):

        def build(name: str = name) -> Any:
            x = getattr(ca, name).sym("x", size)
            y = in_casadi(case, x, ca)
            matrix = ca.hessian(y, x)[0] if case.hessian else ca.jacobian(y, x)
            return ca.Function("f", [x], [matrix])

        function, seconds = timed(build, 1)
        note = f"{function.n_instructions()} instructions"
        case.add("construction", f"CasADi {name}, derivative", seconds, note)
        if name == "SX":
            x = ca.SX.sym("x", size)
            y = in_casadi(case, x, ca)
            inner = ca.Function("g", [x], [ca.gradient(y, x) if case.hessian else y])
            pattern, seconds = timed(lambda inner=inner: inner.jac_sparsity(0, 0), 1)
            case.add("detection", "CasADi SX", seconds, f"{pattern.nnz()} entries")
            colors, seconds = timed(lambda p=pattern: p.star_coloring() if case.hessian else p.uni_coloring())
            case.add("coloring", "CasADi", seconds, f"{colors.size2()} colors")
        buffers, run = function.buffer()
        argument = np.ascontiguousarray(np.ravel(case.point))
        entries = np.zeros(function.nnz_out(0))
        buffers.set_arg(0, memoryview(argument))
        buffers.set_res(0, memoryview(entries))
        run()
        np.testing.assert_allclose(np.sort(entries), np.sort(reference.data), rtol=1e-8, atol=1e-8)
        # the buffers belong to the function, so that it must be kept alive
        case.evaluate[f"CasADi {name}"] = lambda run=run, kept=(function, buffers, argument, entries): run()


def take_turns(case: Case, rounds: int) -> dict[str, float]:
    """The median CPU seconds of one evaluation by each competitor; the rounds are interleaved."""
    counts = {}
    for who, function in case.evaluate.items():
        function()
        start = time.process_time()
        for _ in range(3):
            function()
        counts[who] = max(1, int(0.03 / max((time.process_time() - start) / 3, 1e-7)))
    taken: dict[str, list[float]] = {who: [] for who in case.evaluate}
    for _ in range(rounds):
        for who, function in case.evaluate.items():
            start = time.process_time()
            for _ in range(counts[who]):
                function()
            taken[who].append((time.process_time() - start) / counts[who])
    return {who: statistics.median(values) for who, values in taken.items()}


def report(case: Case, times: dict[str, float]) -> dict[str, Any]:
    """Print a case, and return its numbers for the JSON file."""
    print(f"\n{case.name}")
    for step in ("detection", "coloring", "construction"):
        print(f"  {step}, wall")
        for who, told in case.steps.get(step, {}).items():
            print(f"    {who:<38} {told['seconds'] * 1e3:10.2f} ms   {told['note']}")
    print("  evaluation, CPU")
    for who, seconds in times.items():
        print(f"    {who:<38} {seconds * 1e6:10.1f} us   {seconds / times['symad']:6.2f} x symad")
    return {"case": case.name, "steps": case.steps, "evaluation": times}


TARGETS = {
    "Rosenbrock Hessian, n = 10000": {"symad": ("JAX", 0.25), "symad compiled": ("CasADi SX", 0.12)},
    "grid energy Hessian, 100x100": {"symad": ("JAX", 0.25), "symad compiled": ("CasADi SX", 0.12)},
}
"""For each form, the competitor and the largest allowed share of its time."""


def fell_short(results: list[dict[str, Any]]) -> list[str]:
    """The targets that were missed."""
    missed = []
    for result in results:
        times = result["evaluation"]
        if result["steps"]["detection"]["symad"]["seconds"] > 0.05:
            missed.append(f"{result['case']}: detection takes over 50 ms")
        for form, (peer, part) in TARGETS.get(result["case"], {}).items():
            for who, seconds in times.items():
                if who.startswith(peer) and times[form] > part * seconds:
                    missed.append(f"{result['case']}: {form} takes over {part} of the time of {who}")
    return missed


def main() -> None:
    """Run every case with every installed library."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    parser.add_argument("--check", action="store_true", help="fail if a target is missed")
    options = parser.parse_args()
    machine = measured_on(*LIBRARIES)
    print("  ".join(f"{k} {v}" for k, v in machine.items()))
    results = []
    for case in cases():
        reference = with_symad(case)
        with_scipy_and_networkx(case, reference)
        for name, run in (("jax", with_jax), ("asdex", with_asdex), ("casadi", with_casadi)):
            if loaded(name):
                run(case, reference)
        results.append(report(case, take_turns(case, options.rounds)))
    if options.json:
        told = {"versions": machine, "results": results}
        options.json.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    missed = fell_short(results)
    print("\n" + ("\n".join(missed) or "every target is reached"))
    if options.check and missed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
