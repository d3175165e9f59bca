"""Fixed data: an autoregression on 10⁵ samples, fitted by L-BFGS with the Gram matrix computed once.

A training set does not change from step to step. `given` computes once everything that depends on the data
alone. For a least-squares loss on n samples with p weights this is a p×p matrix and a vector, so that a step
no longer reads the data. The fit is compared with numpy.linalg.lstsq on the same lagged columns.
Run: python examples/speed/34_given_data.py [--samples 100000] [--order 16]
"""

import argparse
import time

import numpy as np
from scipy.optimize import minimize

import symad
from symad.numeric import given, lower


def series(samples: int) -> np.ndarray:
    """A damped oscillation driven by noise: x_t = 1.6 x_{t−1} − 0.8 x_{t−2} + e_t."""
    rng = np.random.default_rng(0)
    x = np.zeros(samples)
    noise = rng.normal(size=samples)
    for t in range(2, samples):
        x[t] = 1.6 * x[t - 1] - 0.8 * x[t - 2] + noise[t]
    return x


def loss(order: int):
    """The mean of (x_t − Σ_k w_k x_{t−k} − b)²."""

    def f(w, b, x):
        m = x.shape[0] - order
        predicted = b
        for k in range(order):
            predicted = predicted + w[k] * x[order - 1 - k : order - 1 - k + m]
        return np.mean((x[order:] - predicted) ** 2)

    return f


def microseconds(function, *values) -> float:
    """The shortest of twenty calls."""
    times = []
    for _ in range(20):
        start = time.perf_counter()
        function(*values)
        times.append(time.perf_counter() - start)
    return 1e6 * min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--order", type=int, default=16)
    options = parser.parse_args()
    p, x = options.order, series(options.samples)

    graph = symad.trace(loss(p), [(p,), (), x.shape])
    step = symad.value_and_gradient(graph, wrt=[0, 1])
    every_call, start = lower(step), time.perf_counter()
    fast = given(step, {2: x})
    setup = time.perf_counter() - start

    w, b = np.full(p, 0.1), 0.5
    print(f"AR({p}) on {len(x)} samples: loss and gradient")
    print(f"  reading the data in each call {microseconds(every_call, w, b, x):9.0f} us")
    print(f"  with the data given           {microseconds(fast, w, b):9.0f} us, {setup:.2f} s before")
    for one, other in zip(fast(w, b), every_call(w, b, x), strict=True):
        assert np.allclose(one, other, rtol=1e-9)

    def objective(z):
        value, by_w, by_b = fast(z[:p], z[p])
        return float(value), np.append(by_w, by_b)

    start = time.perf_counter()
    options = {"ftol": 0, "gtol": 1e-10}
    fit = minimize(objective, np.zeros(p + 1), jac=True, method="L-BFGS-B", options=options)
    print(f"L-BFGS: {fit.nfev} evaluations in {time.perf_counter() - start:.3f} s")

    columns = [x[p - 1 - k : len(x) - 1 - k] for k in range(p)]
    exact, *_ = np.linalg.lstsq(np.column_stack([*columns, np.ones(len(x) - p)]), x[p:], rcond=None)
    apart = np.abs(fit.x - exact).max()
    print(f"weights {np.round(fit.x[:3], 4)} ..., {apart:.1e} from numpy.linalg.lstsq")
    assert apart < 1e-5


if __name__ == "__main__":
    main()
