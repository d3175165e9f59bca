"""Logistic regression on one machine: symad against dask-ml, dask-glm, scikit-learn and JAX's pmap.

It compares the coefficients at the same penalty with scikit-learn's Newton method at its tightest tolerance,
and one value with gradient of the loss, by two threads here and by JAX's pmap on two CPU devices. Peers that
are not installed are left out, with a message. All BLAS libraries have one thread; times are medians.

    pip install dask-ml dask-glm jax scikit-learn
    python benchmarks/scale/bench_scale_peers.py [--small] [--out FOLDER]
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2 --xla_cpu_multi_thread_eigen=false"
os.environ["JAX_PLATFORMS"] = "cpu"

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import symad
from benchmarks.machine import loaded, measured_on
from symad.numeric.scale import distribute, glm

COLUMNS = 20
Fit = Callable[[], Any]


def medians(runs: dict[str, Fit], rounds: int) -> dict[str, float]:
    """Seconds of each run; the rounds of all are interleaved, so that a busy moment affects all."""
    for run in runs.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def data(rows: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((rows, COLUMNS))
    return x, (rng.uniform(size=rows) < 1 / (1 + np.exp(-x @ np.linspace(-1, 1, COLUMNS)))).astype(float)


def fits(x: Any, y: Any) -> dict[str, Fit]:
    """For each library, a function that fits and returns the slopes; λ = 1 for all."""
    found: dict[str, Fit] = {
        f"symad, {t} threads": lambda t=t: glm(x, y, penalty=1.0, threads=t).coefficients for t in (1, 2)
    }
    for peer, make in (("sklearn", by_sklearn), ("dask_ml", by_dask_ml), ("dask_glm", by_dask_glm)):
        if loaded(peer):
            found |= make(x, y)
    return found


def by_sklearn(x: Any, y: Any) -> dict[str, Fit]:
    from sklearn.linear_model import LogisticRegression

    made = {}
    for solver in ("newton-cholesky", "lbfgs"):
        peer = LogisticRegression(C=1.0, solver=solver, tol=1e-10, max_iter=1000)
        made[f"scikit-learn {solver}"] = lambda peer=peer: peer.fit(x, y).coef_[0]
    return made


def by_dask_ml(x: Any, y: Any) -> dict[str, Fit]:
    import dask.array as da
    from dask_ml.linear_model import LogisticRegression

    lazy = da.from_array(x, chunks=(len(x) // 8, -1)), da.from_array(y, chunks=len(x) // 8)
    made = {}
    for solver in ("newton", "lbfgs"):  # the constant is penalized too, so that slopes differ a little
        peer = LogisticRegression(penalty="l2", C=1.0, solver=solver, tol=1e-10, max_iter=100)
        made[f"dask-ml {solver}"] = lambda peer=peer: np.asarray(peer.fit(*lazy).coef_).ravel()
    return made


def by_dask_glm(x: Any, y: Any) -> dict[str, Fit]:
    import dask.array as da
    from dask_glm.estimators import LogisticRegression

    lazy = da.from_array(x, chunks=(len(x) // 8, -1)), da.from_array(y, chunks=len(x) // 8)
    peer = LogisticRegression(regularizer="l2", lamduh=1.0, solver="lbfgs", tol=1e-10, fit_intercept=True)
    return {"dask-glm lbfgs": lambda: np.asarray(peer.fit(*lazy).coef_)[:COLUMNS]}


def regression(rows: int, rounds: int) -> list[dict[str, Any]]:
    x, y = data(rows)
    runs, found = fits(x, y), []
    working: dict[str, Fit] = {}
    for name, run in runs.items():
        try:
            run()
            working[name] = run
        except Exception as error:
            print(f"{name} is left out: {type(error).__name__}: {str(error)[:200]}")
    seconds = medians(working, rounds)
    reference = working.get("scikit-learn newton-cholesky", working["symad, 1 threads"])()
    for name, run in working.items():
        gap = float(np.abs(np.asarray(run()) - reference).max())
        found.append({"library": name, "seconds": seconds[name], "difference": gap})
        print(f"{name:30}{1e3 * seconds[name]:10.1f} ms   coefficients off by {gap:.1e}")
    return found


def value_and_gradient(rows: int, rounds: int) -> list[dict[str, Any]]:
    """One value with gradient: row blocks in threads here, JAX's pmap on two devices and jit on one."""
    x, y = data(rows - rows % 2)
    y = 2 * y - 1
    n, d = sp.symbols("n d", integer=True, positive=True)
    inputs = [sp.IndexedBase(name, shape=s) for name, s in (("X", (n, d)), ("y", (n,)), ("w", (d,)))]
    loss = symad.trace(lambda X, y, w: np.logaddexp(0, -y * (X @ w)).mean(), inputs)
    kernel = distribute(symad.value_and_gradient(loss, "w"), {"X": 0, "y": 0})
    w = np.linspace(-1, 1, COLUMNS)
    runs: dict[str, Fit] = {
        f"symad, {t} threads": lambda t=t: kernel.on(threads=t)(x, y, w) for t in (1, 2)
    }
    if loaded("jax"):
        runs |= by_jax(x, y, w)
    reference = kernel.on(threads=1)(x, y, w)[1]
    seconds, found = medians(runs, rounds), []
    for name, run in runs.items():
        gap = float(np.abs(np.asarray(run()[1]) - reference).max())
        found.append({"library": name, "seconds": seconds[name], "difference": gap})
        print(f"{name:30}{1e3 * seconds[name]:10.2f} ms   gradients off by {gap:.1e}")
    return found


def by_jax(x: Any, y: Any, w: Any) -> dict[str, Fit]:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def loss(w: Any, x: Any, y: Any) -> Any:
        return jnp.logaddexp(0.0, -y * (x @ w)).mean()

    def mean_over_devices(w: Any, x: Any, y: Any) -> Any:
        return jax.lax.pmean(jax.value_and_grad(loss)(w, x, y), "devices")

    whole = jax.jit(jax.value_and_grad(loss))
    there = jnp.asarray(x), jnp.asarray(y)
    made: dict[str, Fit] = {"JAX jit, one device": lambda: jax.block_until_ready(whole(w, *there))}
    devices = jax.local_device_count()
    if devices == 2:
        split = jax.pmap(mean_over_devices, axis_name="devices", in_axes=(None, 0, 0))
        half = len(x) // 2
        parts = jnp.stack([x[:half], x[half:]]), jnp.stack([y[:half], y[half:]])
        parts = jax.block_until_ready(jax.pmap(lambda a, b: (a, b))(*parts))  # moves each half to its device

        def run() -> Any:
            value, slope = jax.block_until_ready(split(w, *parts))
            return value[0], slope[0]

        made["JAX pmap, two devices"] = run
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a tenth of the rows, fewer rounds")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "cpu")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=FutureWarning, module="dask")  # dask-ml uses old settings
    rows, rounds = (50_000, 3) if options.small else (500_000, 5)
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f} before the start; {rows} rows, {COLUMNS} columns")
    results = {
        "versions": measured_on("numpy", "dask", "dask-ml", "dask-glm", "scikit-learn", "jax"),
        "rows": rows, "regression": regression(rows, rounds),
        "value and gradient": value_and_gradient(rows, 4 * rounds),
    }  # fmt: skip
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "scale_peers.json").write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
