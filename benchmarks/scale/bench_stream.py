"""Logistic regression on data larger than memory: seconds, gigabytes per second, peak memory.

The rows are generated chunk by chunk from Philox streams whenever they are read, so that no disk is measured.
The process may hold 2 GiB of data (RLIMIT_DATA). The coefficients are compared with those from which the data
were drawn, in standard errors, and at 200 MB with scikit-learn's on the same data.

Usage: python benchmarks/scale/bench_stream.py [--size 200MB | 2GB | 20GB] [--threads 2] [--out FOLDER]
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import loaded, measured_on
from symad.numeric.scale import glm

COLUMNS, ROWS = 25, 200_000
"""Columns of X, and rows of a chunk: 40 MB."""

SIZES = {"20MB": 2 * 10**7, "200MB": 2 * 10**8, "2GB": 2 * 10**9, "20GB": 2 * 10**10}
LIMIT = 2 * 2**30
TRUE = np.linspace(-1, 1, COLUMNS)


def features(block: Any, block_info: Any = None) -> Any:
    """Independent uniform columns of variance 1; only the shape of ``block`` is used."""
    number = block_info[None]["chunk-location"][0]
    rng = np.random.Generator(np.random.Philox(key=number))
    x = rng.random((len(block), COLUMNS))
    x -= 0.5
    x *= np.sqrt(12)
    return x


def outcomes(x: Any, block_info: Any = None) -> Any:
    """0 or 1, with probability σ(x·β)."""
    if block_info is None or not len(x):
        return np.zeros(len(x))
    number = block_info[None]["chunk-location"][0]
    rng = np.random.Generator(np.random.Philox(key=2**32 + number))
    return (rng.random(len(x)) < 1 / (1 + np.exp(-x @ TRUE))).astype(float)


def data(size: int) -> tuple[Any, Any]:
    """X (n, 25) and y (n,) of about ``size`` bytes, not computed."""
    rows = size // (8 * (COLUMNS + 1))
    shape = da.zeros((rows, COLUMNS), chunks=(min(ROWS, rows), -1))
    x = shape.map_blocks(features, dtype=float, meta=np.zeros((0, 0)))
    return x, x.map_blocks(outcomes, drop_axis=1, dtype=float, meta=np.zeros(0))


def peak() -> float:
    """The largest memory of the process so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)


def measured(size: str, threads: int) -> dict[str, Any]:
    """The fit, its cost and its error."""
    x, y = data(SIZES[size])
    before = peak()
    with dask.config.set(scheduler="threads", num_workers=threads):
        start = time.perf_counter()
        model = glm(x, y, penalty=0.0)
        seconds = time.perf_counter() - start
    errors = np.abs(model.coefficients - TRUE) / model.standard_errors[:COLUMNS]
    row = {
        "size": size, "rows": int(x.shape[0]), "chunks": x.numblocks[0], "threads": threads,
        "seconds": seconds, "steps": model.fit.iterations, "converged": model.converged,
        "peak GiB": peak(), "before GiB": before, "largest error in standard errors": float(errors.max()),
    }  # fmt: skip
    if SIZES[size] <= SIZES["200MB"] and loaded("sklearn"):
        row["difference to scikit-learn"] = against_sklearn(x, y, model)
    return row


def against_sklearn(x: Any, y: Any, model: Any) -> float:
    """The largest difference of coefficients, on the same data in memory."""
    from sklearn.linear_model import LogisticRegression

    peer = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12, max_iter=200)
    peer.fit(*dask.compute(x, y, scheduler="synchronous"))
    return float(np.abs(peer.coef_[0] - model.coefficients).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="200MB")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "cpu")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f} before; at most {LIMIT / 2**30:.0f} GiB of data")
    row = measured(options.size, options.threads)
    for name, value in row.items():
        print(f"{name:36}{value:.4g}" if isinstance(value, float) else f"{name:36}{value}")
    options.out.mkdir(parents=True, exist_ok=True)
    made = {"versions": measured_on("numpy", "dask", "scikit-learn")}
    path = options.out / f"stream_{options.size}.json"
    path.write_text(json.dumps(made | row, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
