"""Parts of data on several cores: threads, workers, the overhead of a task, logistic regression.

- threads: batches of scalar kernels, row blocks, pair sums and colors with one thread and with two. Each is
  compared with the best gain of two threads on this machine, in the same rounds: arithmetic in the cache, and
  copies from memory to memory. Work that is limited by memory gains about as much as copies do.
- workers: the value and gradient of a logistic loss on a LocalCluster with one worker process and with
  two, for data of one size (strong scaling) and of a size that grows with the workers (weak scaling).
- overhead: the cost of a chunk without work.
- logistic regression: time and coefficients against scikit-learn on one core, and dask-glm if installed.

All BLAS libraries have one thread. Times are wall time, medians; data are on the workers before the clock
starts. The time on 64 workers is a model fitted to the measurements, t(p) = b/p + c·p, and labeled as such.

Usage: python benchmarks/scale/bench_scale.py [--small] [--json FILE]
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import symad
from benchmarks.machine import loaded, measured_on
from symad import functions
from symad.numeric.scale import distribute, glm, sparse_jacobian
from symad.numeric.scale.engines import cores, in_order

n, d, m = sp.symbols("n d m", integer=True, positive=True)


BUSY = 0.5
"""The load above which another process may use one of two cores."""


def array(name: str, *shape: Any) -> Any:
    return sp.IndexedBase(name, shape=shape)


def counted(count: int, thing: str) -> str:
    return f"{count} {thing}{'s' * (count != 1)}"


def medians(runs: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    """Seconds of each run; the rounds of all are interleaved, so that a busy moment affects all."""
    for run in runs:
        run()
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, found in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            found.append(time.perf_counter() - start)
    return [statistics.median(found) for found in times]


def median(run: Callable[[], Any], rounds: int) -> float:
    (found,) = medians([run], rounds)
    return found


def logistic() -> Any:
    inputs = [array("X", n, d), array("y", n), array("w", d)]
    loss = symad.trace(lambda X, y, w: np.logaddexp(0, -y * (X @ w)).mean(), inputs)
    return symad.value_and_gradient(loss, "w")


def rosenbrock(size: int) -> tuple[Any, Any]:
    """The chained function: few operations for each number that is read and written."""
    v = sp.symbols(f"v0:{size}", real=True)
    return sum(100 * (v[k + 1] - v[k] ** 2) ** 2 + (1 - v[k]) ** 2 for k in range(size - 1)), v


def arm(joints: int) -> tuple[Any, Any]:
    """The squared distance of a planar arm's hand from a point: sines and cosines for each number."""
    q = sp.symbols(f"q0:{joints}", real=True)
    angles = [sum(q[: k + 1]) for k in range(joints)]
    return (sum(map(sp.cos, angles)) - 1) ** 2 + (sum(map(sp.sin, angles)) - 2) ** 2, q


def nine_points(u: Any) -> Any:
    """Reaction and diffusion with the nine-point stencil: its Jacobian has nine colors."""
    sides = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    corners = u[2:, 2:] + u[2:, :-2] + u[:-2, 2:] + u[:-2, :-2]
    inner = u[1:-1, 1:-1]
    return (4 * sides + corners - 20 * inner) / 6 + np.tanh(inner) * np.exp(-(inner**2))


def machine() -> dict[str, Callable[[int], Any]]:
    """Work that two threads share as well as possible: arithmetic in the cache, and copies in memory."""
    cached = np.linspace(-1, 1, 32_000)  # few calls, so that passing Python's lock takes no time
    made = [np.empty_like(cached) for _ in range(cores())]
    source = np.ones(8_000_000)
    target = np.empty_like(source)

    def exponentials(k: int, times: int) -> None:
        for _ in range(times):
            np.exp(cached, out=made[k])

    def copied(k: int, parts: int) -> None:
        size = len(source) // parts
        target[k * size : (k + 1) * size] = source[k * size : (k + 1) * size]

    def shared(work: Callable[[int, int], None], second: Callable[[int], int]) -> Callable[[int], Any]:
        return lambda t: list(in_order(lambda k: work(k, second(t)), [(k,) for k in range(t)], t))

    return {
        "in the cache": shared(exponentials, lambda t: 500 // t),
        "copies": shared(copied, lambda t: t),
    }


def on_threads(kernel: Any, points: Any, threads: int) -> Any:
    """A distributed kernel at points (inputs, points)."""
    return kernel.on(threads=threads)(*points)


def thread_cases(small: bool) -> dict[str, Callable[[int], Any]]:
    """For each kind of work, a function that runs it with a given number of threads."""
    rng = np.random.default_rng(0)
    count = 10**5 if small else 10**6
    batches = {}
    for title, (f, v) in {"Rosenbrock": rosenbrock(20), "a robot arm": arm(6)}.items():
        batch = symad.vmap(symad.gradient(f, v))
        every = dict.fromkeys(map(str, batch.inputs), 0)
        points = rng.standard_normal((len(v), count // 5))
        for backend, name in (("numpy", "NumPy"), ("c", "C")):
            kernel = distribute(batch, every, backend=backend)
            batches[f"batch of {title}, {name}"] = partial(on_threads, kernel, points)
    x, w = rng.standard_normal((count, 30)), rng.standard_normal(30)
    y = np.sign(x @ w)
    rows = distribute(logistic(), {"X": 0, "y": 0})
    size = 2000 if small else 10_000
    a, b = rng.standard_normal((size, 3)), rng.standard_normal((size, 3))

    def kernel(p: Any, q: Any) -> Any:
        return sp.exp(-sum((p[k] - q[k]) ** 2 for k in range(3)))

    pairs = symad.trace(lambda x, y: functions.pairwise(kernel, x, y), [array("x", n, 3), array("y", m, 3)])
    sums = distribute(pairs, {"x": 0}, rows=1000, backend="c")
    side = 60 if small else 600
    stencil = symad.trace(nine_points, [(side, side)])
    colored, at = sparse_jacobian(stencil), rng.standard_normal((side, side))
    return {
        **batches,
        "row blocks": lambda t: rows.on(threads=t)(x, y, w),
        "pair sums, C": lambda t: sums.on(threads=t)(a, b),
        "colored products": lambda t: colored.kernel.on(threads=t)(at, *colored.directions),
    }


def threads(small: bool, rounds: int) -> list[dict[str, Any]]:
    """For each case, the times and the speed-up, with the speed-up of the machine in the same rounds."""
    found = []
    bounds = machine()
    for name, run in thread_cases(small).items():
        runs = [partial(work, t) for work in (run, *bounds.values()) for t in (1, 2)]
        one, two, *others = medians(runs, rounds)
        best = {kind: others[2 * k] / others[2 * k + 1] for k, kind in enumerate(bounds)}
        found.append({"case": name, "one": one, "two": two, "speed-up": one / two, "machine": best})
        beside = ", ".join(f"{gain:.2f} {kind}" for kind, gain in best.items())
        times = f"{1e3 * one:8.1f} ms, 2 threads{1e3 * two:8.1f} ms"
        print(f"{name:29}{times}: {one / two:.2f} (machine: {beside})")
    return found


def cluster(workers: int) -> Any:
    from distributed import LocalCluster

    return LocalCluster(n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0",
                        silence_logs=50)  # fmt: skip


def on_workers(small: bool, rounds: int) -> list[dict[str, Any]]:
    import dask.array as da
    from distributed import Client, wait

    rows = 200_000 if small else 2_000_000
    found = []
    for workers in (1, 2):
        with cluster(workers) as made, Client(made) as client:
            kernel = distribute(logistic(), {"X": 0, "y": 0}, client)
            for kind, count in (("strong", rows), ("weak", rows * workers // 2)):
                rng = da.random.default_rng(0)
                x = rng.standard_normal((count, 30), chunks=(count // 20, -1)).persist()
                y = da.sign(x[:, 0]).persist()
                wait([x, y])
                seconds = median(lambda k=kernel, x=x, y=y: k(x, y, np.zeros(30)), rounds)
                found.append({"kind": kind, "workers": workers, "rows": count, "seconds": seconds})
                print(f"{kind} scaling, {counted(workers, 'worker')}, {count} rows: {1e3 * seconds:.1f} ms")
            if workers == 1:
                tiny = da.ones((500, 30), chunks=(1, -1)).persist()
                ones = da.ones(500, chunks=1).persist()
                wait([tiny, ones])
                each = median(lambda k=kernel, x=tiny, y=ones: k(x, y, np.zeros(30)), 3) / 500
                found.append({"kind": "overhead", "workers": 1, "rows": 500, "seconds": each})
                print(f"overhead of a chunk: {1e3 * each:.2f} ms")
    return found


def model(found: list[dict[str, Any]]) -> dict[str, float]:
    """t(p) = b/p + c·p through the two measurements of strong scaling, and its prediction for 64 workers."""
    t1, t2 = (row["seconds"] for row in found if row["kind"] == "strong")
    b, c = np.linalg.solve([[1.0, 1.0], [0.5, 2.0]], [t1, t2])
    best = float(np.sqrt(b / c)) if b > 0 and c > 0 else float("inf")
    at_64 = float(b / 64 + max(c, 0.0) * 64)
    print(
        f"a model of the two measurements of strong scaling, which nothing checks: {1e3 * at_64:.1f} ms on "
        f"64 workers, fastest with {best:.0f}"
    )
    return {"parallel": float(b), "per worker": float(c), "64 workers": at_64, "best": best}


def regression(small: bool, rounds: int) -> list[dict[str, Any]]:
    if not loaded("sklearn"):  # all coefficients are compared with its
        return []
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(1)
    x = rng.standard_normal((100_000 if small else 1_000_000, 20))
    y = (rng.uniform(size=len(x)) < 1 / (1 + np.exp(-x @ np.linspace(-1, 1, 20)))).astype(float)
    peer = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-10)
    found = [
        {"library": "scikit-learn", "seconds": median(lambda: peer.fit(x, y), rounds), "difference": 0.0}
    ]
    for count in (1, 2):
        seconds = median(lambda t=count: glm(x, y, penalty=1.0, threads=t), rounds)
        ours = glm(x, y, penalty=1.0, threads=count).coefficients
        gap = float(np.abs(ours - peer.coef_[0]).max())
        found.append({"library": f"symad, {counted(count, 'thread')}", "seconds": seconds, "difference": gap})
    try:
        if loaded("dask_glm"):
            found.append(by_dask_glm(x, y, peer.coef_[0], rounds))
    except Exception as error:  # released versions fail with today's dask
        print(f"dask-glm is left out: {type(error).__name__}: {error}")
    for row in found:
        print(
            f"{row['library']:18} {1e3 * row['seconds']:9.1f} ms, coefficients off by {row['difference']:.1e}"
        )
    return found


def by_dask_glm(x: Any, y: Any, expected: Any, rounds: int) -> dict[str, Any]:
    import dask.array as da
    from dask_glm.estimators import LogisticRegression

    lazy = da.from_array(x, chunks=(50_000, -1)), da.from_array(y, chunks=50_000)
    theirs = LogisticRegression(regularizer="l2", lamduh=1.0, solver="newton", fit_intercept=True)
    seconds = median(lambda: theirs.fit(*lazy), rounds)
    gap = float(np.abs(theirs.coef_ - expected).max())
    return {"library": "dask-glm", "seconds": seconds, "difference": gap}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a tenth of the sizes")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rounds = 3 if options.small else 7
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    busy = ": the machine is busy, and speed-ups mean nothing" if load > BUSY else ""
    print(f"{os.cpu_count()} cores, load {load:.1f} before the start{busy}")
    results: dict[str, Any] = {"versions": measured_on("numpy", "dask", "scikit-learn")}
    results["threads"] = threads(options.small, rounds)
    results["workers"] = on_workers(options.small, rounds)
    results["model"] = model(results["workers"])
    results["logistic regression"] = regression(options.small, rounds)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
