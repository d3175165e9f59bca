"""Gradients of scalar expressions at one point: symad's four forms of code against its peers.

The cases of benchmarks/cases.py (and the Jacobian of a 10-link pendulum). Contestants: symad's NumPy code,
its compiled kernel for all functions (backend "runs"), its compiled C (backend "c"), CasADi (SX, buffer
interface, no copies), SymEngine (LLVM), SymPy's lambdify with cse, and JAX's jit of the same scalar graph
(with --jax; its compilation takes up to a minute). All gradients are compared first; contestants take
turns; the table holds medians of process CPU time, and wall time from expression to callable.

Usage: python benchmarks/bench_scalar_peers.py [CASE ...] [--rounds 300] [--jax] [--limit 20] [--json FILE]
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["JAX_ENABLE_X64"] = "1"

# ruff: noqa: E402
import argparse
import json
import math
import platform
import signal
import statistics
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import cases
import numpy as np
import sympy as sp
from rich.console import Console
from rich.table import Table

import symad
from symad.numeric import lower

Run = Callable[[], Any]


def ours(backend: str) -> Callable[[Any, Any, Any], Run]:
    """One backend of symad, packed."""

    def make(expression: Any, symbols: Any, x: Any) -> Run:
        gradient = symad.gradient(symad.trace(expression, symbols))
        if backend == "numpy":  # as SymPy's: Python floats in, a tuple of floats out
            values, plain = x.tolist(), lower(gradient).function
            return lambda: plain(*values)
        kernel = lower(gradient, backend=backend, packed=True)
        y = np.zeros(len(symbols))  # as for CasADi: through buffers, without copies
        call = kernel.bind(np.ascontiguousarray(x), y)

        def run() -> Any:
            call()
            return y

        return run

    return make


def casadi_sx(expression: Any, symbols: Any, x: Any) -> Run:
    """CasADi: the graph built node by node, its gradient evaluated through buffers."""
    import casadi as ca

    values: dict[Any, Any] = {s: ca.SX.sym(s.name) for s in symbols}
    functions = {
        sp.sin: ca.sin, sp.cos: ca.cos, sp.exp: ca.exp, sp.tanh: ca.tanh, sp.log: ca.log,
        symad.functions.sigmoid: lambda a: 1 / (1 + ca.exp(-a)),
    }  # fmt: skip
    for node in _order(expression):
        if node in values:
            continue
        args = [values[a] for a in node.args]
        if isinstance(node, sp.Add):
            values[node] = sum(args[1:], args[0])
        elif isinstance(node, sp.Mul):
            values[node] = math.prod(args[1:], start=args[0])
        elif isinstance(node, sp.Pow):
            values[node] = ca.sqrt(args[0]) if node.exp == sp.Rational(1, 2) else args[0] ** float(node.exp)
        elif node.is_number:
            values[node] = float(node)
        else:
            values[node] = functions[node.func](*args)
    inputs = ca.vertcat(*(values[s] for s in symbols))
    function = ca.Function("f", [inputs], [ca.gradient(values[expression], inputs)])
    buffer, call = function.buffer()
    result = np.zeros(len(symbols))
    views = memoryview(np.ascontiguousarray(x)), memoryview(result)
    buffer.set_arg(0, views[0])
    buffer.set_res(0, views[1])
    alive = function, buffer, views  # the buffer holds addresses only

    def run() -> Any:
        call()
        return result if alive else None

    return run


def _order(expression: Any) -> list[Any]:
    """Distinct subexpressions, arguments first."""
    seen: dict[Any, None] = {}
    stack = [(expression, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            seen[node] = None
        elif node not in seen:
            stack.append((node, True))
            stack.extend((a, False) for a in node.args if a not in seen)
    return list(seen)


def by_symengine(expression: Any, symbols: Any, x: Any) -> Run:
    """SymEngine: its own derivative, cse, LLVM."""
    import symengine as se

    if len(_order(expression)) > 1000:  # the call into LLVM cannot be interrupted
        raise TimeoutError
    e, s = se.sympify(expression.doit()), [se.Symbol(v.name) for v in symbols]
    function = se.Lambdify(s, [e.diff(v) for v in s], cse=True, backend="llvm")
    return lambda: function(x)


def by_sympy(expression: Any, symbols: Any, x: Any) -> Run:
    """SymPy: diff, then lambdify with cse."""
    function = sp.lambdify(symbols, [expression.diff(s) for s in symbols], "math", cse=True)
    values = x.tolist()
    return lambda: function(*values)


def by_jax(expression: Any, symbols: Any, x: Any) -> Run:
    """JAX: jit of the gradient of the same scalar graph."""
    import jax

    modules = [{"sigmoid": jax.nn.sigmoid}, jax.numpy]
    plain = sp.lambdify(symbols, expression, modules, cse=True)
    function = jax.jit(jax.grad(lambda v: plain(*v)))
    values = jax.numpy.asarray(x)
    return lambda: jax.block_until_ready(function(values))


CONTESTANTS: dict[str, Callable[[Any, Any, Any], Run]] = {
    "numpy": ours("numpy"),
    "runs": ours("runs"),
    "c": ours("c"),
    "casadi": casadi_sx,
    "symengine": by_symengine,
    "sympy": by_sympy,
}


def limited(make: Run, seconds: float) -> Any:
    """The result, or None after so many seconds of wall time."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return make()
    except (TimeoutError, RecursionError, ImportError, KeyError):
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def compete(name: str, limit: float, rounds: int, with_jax: bool) -> dict[str, tuple[float, float]]:
    """CPU seconds of a call and wall seconds of the setup, by contestant."""
    expression, symbols = cases.CASES[name]()
    x = np.random.default_rng(0).uniform(0.4, 1.1, size=len(symbols))
    runs: dict[str, tuple[Run, float]] = {}
    for who, make in {**CONTESTANTS, **({"jax": by_jax} if with_jax else {})}.items():
        start = time.perf_counter()

        def setup(make: Any = make) -> Run:
            run: Run = make(expression, symbols, x)
            run()
            return run

        made = limited(setup, limit if who in ("sympy", "symengine", "jax") else 1e4)
        if made is not None:
            runs[who] = made, time.perf_counter() - start
    expected = np.array(runs["numpy"][0](), float).ravel()
    for who, (run, _) in runs.items():
        if not np.allclose(np.asarray(run(), float).ravel(), expected, rtol=1e-9, atol=1e-9):
            raise AssertionError(f"{name}: {who} differs from symad")
    times: dict[str, list[float]] = {who: [] for who in runs}
    for _ in range(rounds):
        for who, (run, _) in runs.items():
            start = time.process_time()
            for _ in range(20):
                run()
            times[who].append((time.process_time() - start) / 20)
    return {who: (statistics.median(times[who]), runs[who][1]) for who in runs}


def versions() -> dict[str, str]:
    """What ran, and on what."""
    found = {"python": platform.python_version(), "machine": platform.processor() or platform.machine()}
    for package in ("numpy", "sympy", "casadi", "symengine", "jax"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="*", default=list(cases.CASES))
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--limit", type=float, default=20, help="seconds of setup for SymPy, SymEngine, JAX")
    parser.add_argument("--jax", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    console = Console()
    console.print("  ".join(f"{k} {v}" for k, v in versions().items()))
    names = [*CONTESTANTS, *(["jax"] if options.jax else [])]
    calls = Table("gradient, µs", *names, "runs/casadi", "c/casadi", title="one point, one thread, CPU time")
    setups = Table("setup, ms", *names, title="from expression to callable, first call included, wall time")
    ratios: dict[str, list[float]] = {"runs": [], "c": []}
    rows = []
    for case in options.cases:
        found = compete(case, options.limit, options.rounds, options.jax)
        for ours_, kept in ratios.items():
            if "casadi" in found and ours_ in found:
                kept.append(found[ours_][0] / found["casadi"][0])
        last = [f"{found[k][0] / found['casadi'][0]:.2f}" if "casadi" in found else "" for k in ("runs", "c")]
        calls.add_row(case, *(f"{1e6 * found[n][0]:.2f}" if n in found else "-" for n in names), *last)
        setups.add_row(case, *(f"{1e3 * found[n][1]:.0f}" if n in found else "-" for n in names))
        rows.append({"case": case, **{who: list(pair) for who, pair in found.items()}})
    means = [f"{statistics.geometric_mean(kept):.2f}" if kept else "" for kept in ratios.values()]
    calls.add_section()
    calls.add_row("geometric mean", *[""] * len(names), *means)
    console.print(calls)
    console.print(setups)
    console.print(f"- : not within {options.limit:g} s of setup, or not installed")
    if options.json:
        options.json.write_text(json.dumps({"versions": versions(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
