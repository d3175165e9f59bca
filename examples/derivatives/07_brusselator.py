"""A stiff reaction with diffusion: the 2-D Brusselator, implicit steps with a sparse Jacobian.

u' = 1 + u²v − 4.4u + αΔu + f(x, y, t),  v' = 3.4u − u²v + αΔv  on a periodic square, α = 1. From
t = 1.1 the source f is 5 in a disc around (0.3, 0.6). The Laplacian makes the system stiff: explicit methods
take tiny steps, implicit ones solve with the Jacobian. SciPy's BDF takes symad's Jacobian, a csr matrix of
fixed structure; or it takes the pattern alone, and estimates the entries by differences.
(Problem: E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, 2nd ed., section IV.10.)
Run: python examples/derivatives/07_brusselator.py [--n 32] [--out DIR]
"""

import argparse
import time
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

import symad
from symad.numeric import lower
from symad.sparsity import color

ALPHA, END = 1.0, 8.0


def start(n: int) -> np.ndarray:
    """u = 22 (y(1−y))^1.5, v = 27 (x(1−x))^1.5, as one array (2, n, n)."""
    side = np.arange(n) / n
    y, x = np.meshgrid(side, side, indexing="ij")
    return np.stack([22 * (y * (1 - y)) ** 1.5, 27 * (x * (1 - x)) ** 1.5])


def rates(w, source):
    """(u', v') for w = (u, v), shape (2, n, n)."""
    u, v = w[0], w[1]
    n = u.shape[0]

    def laplacian(a):
        near = np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1)
        return n**2 * (near - 4 * a)

    return np.stack(
        [
            1 + u**2 * v - 4.4 * u + ALPHA * laplacian(u) + source,
            3.4 * u - u**2 * v + ALPHA * laplacian(v),
        ]
    )


def main() -> None:
    """Integrate with three Jacobians and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=32)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    n, shape = options.n, (2, options.n, options.n)

    clock = time.perf_counter()
    graph = symad.trace(rates, [shape, (n, n)])
    derivative = symad.jacobian(graph, 0, sparse=True)
    right_side, jacobian = lower(graph), lower(derivative)
    print(f"built in {time.perf_counter() - clock:.2f} s: {derivative.report}")
    pattern = symad.jacobian_sparsity(graph, 0)
    print(f"by colored products the Jacobian takes {color(pattern).num_colors} of them: {color(pattern)}")

    side = np.arange(n) / n
    y, x = np.meshgrid(side, side, indexing="ij")
    disc = 5.0 * ((x - 0.3) ** 2 + (y - 0.6) ** 2 <= 0.1**2)
    quiet = np.zeros((n, n))

    def f(t, w):
        return right_side(w.reshape(shape), disc if t >= 1.1 else quiet).ravel()

    def slope(t, w):
        return jacobian(w.reshape(shape), quiet)

    # Both Jacobians at one point: symad's, and differences of the right-hand side.
    w, direction = start(n), np.random.default_rng(0).normal(size=shape)
    step = 1e-6
    difference = (f(0, (w + step * direction).ravel()) - f(0, (w - step * direction).ravel())) / (2 * step)
    error = np.abs(slope(0, w.ravel()) @ direction.ravel() - difference).max() / np.abs(difference).max()
    print(f"largest relative distance from differences along a direction: {error:.0e}")
    assert error < 1e-7

    times = np.linspace(0, END, 161)
    results = {}
    jacobians = {
        "symad's Jacobian": {"jac": slope},
        "differences with our pattern": {"jac_sparsity": pattern},
    }
    for name, given in jacobians.items():
        clock = time.process_time()
        run = solve_ivp(f, (0, END), w.ravel(), "BDF", t_eval=times, rtol=1e-5, atol=1e-7, **given)
        seconds = time.process_time() - clock
        results[name] = run.y
        print(
            f"BDF, {name}: {seconds:.2f} s, {run.nfev} right sides, {run.njev} Jacobians, "
            f"{run.nlu} factorizations"
        )
        assert run.success
    ours, theirs = results.values()
    print(f"largest distance between the two solutions: {np.abs(ours - theirs).max():.1e}")
    assert np.abs(ours - theirs).max() < 1e-2

    # An explicit method pays for stiffness: the largest eigenvalue, 8αn², bounds its step.
    clock = time.process_time()
    explicit = solve_ivp(f, (0, 0.1), w.ravel(), "RK45", rtol=1e-6, atol=1e-8)
    seconds = time.process_time() - clock
    print(
        f"RK45, only to t = 0.1: {seconds:.2f} s, {explicit.t.size - 1} steps, "
        f"that is {(explicit.t.size - 1) * END / 0.1:.0f} to t = {END}"
    )
    if options.out:
        picture(options.out, ours.reshape(2, n, n, -1), times)


def picture(folder: Path, history: np.ndarray, times: np.ndarray) -> None:
    """The means of u and v over time, and u minus its mean at three moments."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 7.4), layout="constrained")
    axes = axes.ravel()
    for name, field in zip("uv", history, strict=True):
        axes[0].plot(times, field.mean(axis=(0, 1)), label=f"mean of {name}")
    axes[0].axvline(1.1, color="gray", lw=1, ls=":", label="source on")
    axes[0].set(xlabel="t", title="means over the square", ylim=(0, 7))
    axes[0].legend(frameon=False, loc="upper left")
    for axis, t in zip(axes[1:], (0.05, 1.5, END), strict=True):
        moment = history[0, :, :, np.searchsorted(times, t)]
        deviation = moment - moment.mean()
        top = np.abs(deviation).max()
        colors = {"cmap": "RdBu_r", "vmin": -top, "vmax": top}  # white is the mean
        shown = axis.imshow(deviation, origin="lower", extent=(0, 1, 0, 1), **colors)
        axis.set(title=f"u minus its mean, t = {t:g}", xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        figure.colorbar(shown, ax=axis, shrink=0.9)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "brusselator.png", dpi=150)


if __name__ == "__main__":
    main()
