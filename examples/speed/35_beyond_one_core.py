"""Fits on two worker processes: proved splits, equal bits, a worker that dies, and the coefficients.

Data: the RAND health insurance experiment (20 190 person-years, statsmodels' copy): visits to a doctor, by
coinsurance, income and health. The coefficients of the Poisson model are compared with statsmodels' fit. All
processes are on this machine and communicate over its loopback.
Run: python examples/speed/35_beyond_one_core.py
"""

import os
import tempfile
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import statsmodels.api as sm
import sympy as sp
from distributed import Client, LocalCluster

import symad
from symad.numeric.scale import distribute, glm, monte_carlo, plan, sweep

n, d = sp.symbols("n d", integer=True, positive=True)
X, y, beta = (sp.IndexedBase(name, shape=s) for name, s in (("X", (n, d)), ("y", (n,)), ("beta", (d,))))
OVER = {"X": 0, "y": 0}


def loss(X, y, beta):
    """−log L/n of Poisson counts, without a constant."""
    return (np.exp(X @ beta) - y * (X @ beta)).mean()


def normalized(X, y, beta):
    """The loss after batch normalization, which needs the mean over all rows."""
    return loss((X - X.mean(axis=0)) / X.std(axis=0), y, beta)


def read_data():
    """Standardized columns and the counts."""
    data = sm.datasets.randhie.load_pandas()
    x = data.exog.to_numpy(float)
    return (x - x.mean(axis=0)) / x.std(axis=0), data.endog.to_numpy(float), list(data.exog.columns)


def dies_once(block, flag, block_info=None):
    """A block of data that kills the worker when it is read for the first time."""
    if block_info and block_info[0]["chunk-location"][0] == 2 and not os.path.exists(flag):
        Path(flag).touch()
        os._exit(1)
    return block


def certificates(g):
    """Certificates of a loss that can be split, and of one that cannot."""
    print(symad.splits(g, OVER))
    refuted = symad.splits(symad.trace(normalized, [X, y, beta]), OVER)
    print(refuted.status, "-", refuted.entries[0].claim)
    assert refuted.status == "refuted"


def threads(g, x, counts):
    """One thread and two give the same bits."""
    kernel = distribute(g, OVER, rows=2000)
    start = np.zeros(x.shape[1])
    print(plan(kernel, X=x, y=counts, beta=start))
    one, two = (kernel.on(threads=k)(x, counts, start) for k in (1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    print("one thread and two give the same bits")
    return one


def cluster(g, x, counts, names, expected):
    """The loss on two workers, one of which dies during the computation; then the fit."""
    lazy_x, lazy_y = da.from_array(x, chunks=(2000, -1)), da.from_array(counts, chunks=2000)
    settings = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": ":0"}
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(**settings, silence_logs=50) as workers,
        Client(workers) as client,
    ):
        kernel = distribute(g, OVER, client)
        deadly = lazy_x.map_blocks(dies_once, flag=str(Path(folder) / "died"), dtype=float)
        found = kernel(deadly, lazy_y, np.zeros(x.shape[1]))
        assert (Path(folder) / "died").exists()
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
        print("two workers, one of which died during the computation, give the same bits")
        model = glm(lazy_x, lazy_y, "poisson", client=client)
        # Ensembles: the growth of a population at 1000 rates; an integral over Gaussian paths.
        r, z = sp.symbols("r z", real=True)
        grown = sweep(sp.exp(r) / (1 + sp.exp(r)), {"r": np.linspace(-2, 2, 1000)}, client=client)
        price = monte_carlo(sp.Max(sp.exp(sp.Rational(1, 5) * z - 0.02) - 1, 0), {"z": "normal"}, 100_000,
                            seed=1, client=client)  # fmt: skip
    theirs = sm.GLM(counts, sm.add_constant(x, prepend=False), family=sm.families.Poisson()).fit(tol=1e-14)
    for k, name in enumerate([*names, "constant"]):
        ours = [*model.coefficients, model.intercept][k]
        print(f"{name:10} {ours:+.8f} ± {model.standard_errors[k]:.8f}   statsmodels {theirs.params[k]:+.8f}")
    assert np.allclose([*model.coefficients, model.intercept], theirs.params, rtol=1e-7, atol=1e-9)
    assert np.allclose(model.standard_errors, theirs.bse, rtol=1e-6)
    assert np.allclose(grown, 1 / (1 + np.exp(-np.linspace(-2, 2, 1000))), rtol=1e-12)
    exact = float(sp.erf(0.1 / sp.sqrt(2)).evalf())  # Black and Scholes: 2 Φ(σ/2) − 1 with σ = 0.2
    print(f"an option at the money: {price}, exact {exact:.6f}")
    assert abs(price.mean - exact) < 4 * price.error


def main() -> None:
    """Run all parts."""
    dask.config.set({"distributed.scheduler.allowed-failures": 3})
    x, counts, names = read_data()
    g = symad.value_and_gradient(symad.trace(loss, [X, y, beta]), "beta")
    certificates(g)
    cluster(g, x, counts, names, threads(g, x, counts))


if __name__ == "__main__":
    main()
