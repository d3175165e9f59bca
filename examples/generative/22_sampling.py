"""Sampling: noise from a key, inversion, and two Markov chains on a curved density and on real data.

Data: scikit-learn's breast cancer table, four measurements of 569 tumours. Hamiltonian Monte Carlo samples
the posterior of a logistic regression, which is compared with the mode and its curvature.
Run: python examples/generative/22_sampling.py [--out DIR] for the picture.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products are fastest on one thread

import numpy as np
import sympy as sp
from sklearn.datasets import load_breast_cancer

import symad
from symad import functions
from symad.functions import rand, randn
from symad.models.generative.sampling import quantile
from symad.numeric import minimize
from symad.numeric.sampling.diagnostics import autocovariance, standard_error
from symad.numeric.sampling.markov_chains import hmc, metropolis
from symad.numeric.solvers.inversion import invert

x, y = sp.symbols("x y", real=True)
u = sp.Symbol("u", positive=True)


def noise() -> None:
    """Random numbers are functions of a key, so that a gradient treats them as constants."""
    key = functions.key(2026)
    graph = symad.trace(lambda w, k: np.cos(w * randn(k, 1000)).mean(), [(), (4,)])
    slope = symad.gradient(graph, "w")(1.0, key)
    again = symad.gradient(graph, "w")(1.0, key)
    print(f"d/dw of the mean of cos(w z): {slope:.4f}, the same again: {again == slope}")
    print(f"of the expectation exp(-w²/2): {-np.exp(-0.5):.4f}")


def normal_cdf(z: sp.Expr) -> sp.Expr:
    """The standard normal distribution function."""
    return sp.erf(z / sp.sqrt(2)) / 2 + sp.Rational(1, 2)


def mixture() -> tuple[np.ndarray, sp.Expr]:
    """Samples of a mixture, whose distribution function has no closed inverse, by inversion; its density."""
    print("the exponential law inverted:", quantile(1 - sp.exp(-x), x, u))
    cdf = normal_cdf(x + 2) / 3 + 2 * normal_cdf(2 * (x - 1)) / 3
    samples = invert(cdf, x, rand(1, 20_000))
    exact = -2 / 3 + 2 / 3  # one third around −2, two thirds around 1
    error = samples.std() / np.sqrt(samples.size)
    print(f"a mixture by inversion: mean {samples.mean():.3f} ± {error:.3f}, exact mean {exact:.0f}")
    assert abs(samples.mean() - exact) < 4 * error
    return samples, cdf.diff(x)


def curved() -> tuple[sp.Expr, dict]:
    """x ~ N(0, 4), y | x ~ N(x²/4, 1/2), so E y = 1."""
    log_density = -(x**2) / 8 - (y - x**2 / 4) ** 2
    graph = symad.trace(log_density, (x, y))
    options = {"count": 2000, "warmup": 500, "seed": 1, "chains": 20}
    draws = {
        "Metropolis": metropolis(graph, [0.0, 0.0], **options),
        "Hamiltonian": hmc(graph, [0.0, 0.0], leaps=12, step=0.2, **options),
    }
    for name, found in draws.items():
        error = standard_error(found.flat[:, :, 1])
        print(
            f"{name:12} E y = {found.mean[1]:.3f} ± {error:.3f} (exactly 1), "
            f"{found.effective_sizes[1]:.0f} effective draws of {found.flat[:, :, 1].size}"
        )
        assert abs(found.mean[1] - 1) < 4 * error
    return log_density, draws


def posterior() -> None:
    """A logistic regression with prior N(0, 9): the chains, and Newton's mode with its curvature."""
    table = load_breast_cancer()
    columns = [0, 1, 4, 6]  # radius, texture, smoothness, concavity
    X = (table.data[:, columns] - table.data[:, columns].mean(0)) / table.data[:, columns].std(0)
    X, target = np.column_stack([np.ones(len(X)), X]), 1.0 - table.target
    n, d = sp.symbols("n d", integer=True, positive=True)

    def log_density(w, X, y):
        scores = X @ w
        return (y * scores - functions.softplus(scores)).sum() - (w**2).sum() / 18

    graph = symad.trace(log_density, [(d,), (n, d), (n,)])
    data = {"X": X, "y": target}
    minus = symad.trace(lambda w, X, y: -log_density(w, X, y), [(d,), (n, d), (n,)])
    mode = minimize(minus, {"w": np.zeros(5)}, data=data).checked()
    curvature = symad.hessian(minus, "w")(mode.x["w"], X, target)
    spread = np.sqrt(np.diag(np.linalg.inv(curvature)))
    draws = hmc(graph, {"w": mode.x["w"]}, data=data, scale={"w": spread}, count=800, warmup=200, leaps=6)
    print("\nmalignant or benign, by radius, texture, smoothness and concavity")
    print(draws.checked().summary())
    print("mode         ", np.round(mode.x["w"], 3), " by its curvature ±", np.round(spread, 3))
    assert np.all(np.abs(draws.mean - mode.x["w"]) < spread)


def picture(folder: Path, log_density: sp.Expr, draws: dict, samples: np.ndarray, density: sp.Expr) -> None:
    """Paths over the density, correlations along the chains, and the mixture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 7.6), layout="constrained")
    axes = axes.ravel()
    xs, ys = np.meshgrid(np.linspace(-6, 6, 200), np.linspace(-2.5, 7, 200))
    heights = np.exp(symad.trace(log_density, (x, y))(xs, ys))
    for axis, (name, found) in zip(axes, draws.items(), strict=False):
        axis.contour(xs, ys, heights, levels=[0.01, 0.1, 0.4, 0.8], colors="0.75", linewidths=0.8)
        axis.plot(*found.flat[2, :120].T, "-", lw=0.5, color="C1", alpha=0.7)
        axis.plot(*found.flat[2, :120].T, ".", ms=4, color="C0")
        axis.set(xlim=(-6, 6), ylim=(-2.5, 7), xlabel="x", ylabel="y")
        axis.set_title(f"{name}: 120 steps of one chain", fontsize=12)
    for name, found in draws.items():
        covariance = autocovariance(found.flat[:, :, 0]).mean(axis=0)
        axes[2].plot(covariance[:80] / covariance[0], label=name)
    axes[2].axhline(0, color="0.8", lw=0.8)
    axes[2].set(xlabel="steps t", ylabel="correlation")
    axes[2].set_title("correlation of x after t steps", fontsize=12)
    axes[2].legend(frameon=False)
    grid = np.linspace(-5.5, 4, 300)
    axes[3].hist(samples, 80, density=True, color="0.8", label="samples")
    axes[3].plot(grid, symad.trace(density, (x,))(grid), label="density")
    axes[3].legend(frameon=False, loc="upper left")
    axes[3].set(xlabel="x", ylabel="density")
    axes[3].set_title("a mixture by inversion", fontsize=12)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "sampling.png", dpi=140)


def main() -> None:
    """Run noise, inversion, chains and a posterior."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    noise()
    samples, density = mixture()
    log_density, draws = curved()
    posterior()
    if options.out:
        picture(options.out, log_density, draws, samples, density)


if __name__ == "__main__":
    main()
