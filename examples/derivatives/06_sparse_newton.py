"""Newton's method with sparse Hessians: a soap film on a 100x100 grid, Rosenbrock's valley in 10000 unknowns.

A soap film spans a wire frame with the least area. On a grid its area is a sum over small triangles, a NumPy
function of one line. symad computes the gradient and the sparse Hessian; the pattern, the coefficients and
the places of all entries are computed in advance. SuperLU solves for the steps. For the frame of Scherk's
surface u = log(cos y / cos x) the exact film is known.
Run: python examples/derivatives/06_sparse_newton.py [--out DIR]
"""

import argparse
import time
from pathlib import Path

import numpy as np
from scipy.sparse.linalg import splu

import symad
from symad.numeric import lower


def scherk(n: int) -> tuple[np.ndarray, float]:
    """Scherk's surface at (n+2)x(n+2) points of [-1, 1]^2, including the frame, and the points' distance."""
    x = np.linspace(-1, 1, n + 2)
    return np.log(np.cos(x)[None, :] / np.cos(x)[:, None]), float(x[1] - x[0])


def film_area(exact: np.ndarray, h: float):
    """The area of a film as a function of its inner heights; each cell is cut into two triangles."""
    frame = exact.copy()
    frame[1:-1, 1:-1] = 0

    def area(u):
        z = np.pad(u, 1) + frame
        along, across = z[1:] - z[:-1], z[:, 1:] - z[:, :-1]
        lower_left = np.sqrt(h**2 + along[:, :-1] ** 2 + across[:-1] ** 2)
        upper_right = np.sqrt(h**2 + along[:, 1:] ** 2 + across[1:] ** 2)
        return h / 2 * np.sum(lower_left + upper_right)

    return area


def rosenbrock(x):
    """Σ 100(x_{i+1} − x_i²)² + (1 − x_i)²."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def newton(f, start: np.ndarray, most: int = 60) -> np.ndarray:
    """Newton's method; steps are halved until the value does not increase."""
    begin = time.perf_counter()
    graph = symad.trace(f, [start.shape])
    hessian = symad.hessian(graph, sparse=True)
    value_and_gradient, second = lower(symad.value_and_gradient(graph)), lower(hessian)
    print(f"  built in {time.perf_counter() - begin:.2f} s: {hessian.report}")
    begin, in_hessian, x = time.perf_counter(), 0.0, start
    value, gradient = value_and_gradient(x)
    for k in range(most + 1):
        size = np.abs(gradient).max()
        if k < 4 or size < 1e-9:
            print(f"  step {k}: value {value:.10f}, largest slope {size:.1e}")
        if size < 1e-9:
            break
        clock = time.perf_counter()
        matrix = second(x)
        in_hessian += time.perf_counter() - clock
        step = splu(matrix.tocsc()).solve(gradient.ravel()).reshape(x.shape)
        length = 1.0
        while length > 1e-8:
            moved, slope = value_and_gradient(x - length * step)
            if moved <= value + 1e-12 * abs(value):
                break
            length /= 2
        x, value, gradient = x - length * step, moved, slope
    total = time.perf_counter() - begin
    print(f"  {k} steps in {total:.2f} s, of which {in_hessian * 1e3:.1f} ms computing Hessians")
    return x


def main() -> None:
    """Solve both problems; compare the film with Scherk's surface."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100, help="inner points along each side")
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()

    errors = {}
    for n in (options.n // 4, options.n // 2, options.n):
        exact, h = scherk(n)
        print(f"soap film, {n}x{n} unknowns")
        film = newton(film_area(exact, h), np.zeros((n, n)))
        errors[n] = np.abs(film - exact[1:-1, 1:-1]).max()
        print(f"  largest distance from Scherk's surface: {errors[n]:.1e}")
    coarse, fine = errors[options.n // 2], errors[options.n]
    assert 3 < coarse / fine < 5, "the error of a second-order method falls by 4 when h is halved"

    print("Rosenbrock's valley, 10000 unknowns")
    x = newton(rosenbrock, 1 + 0.3 * np.sin(np.arange(10_000.0)))
    print(f"  largest distance from the minimum at 1: {np.abs(x - 1).max():.1e}")
    assert np.abs(x - 1).max() < 1e-6
    if options.out:
        picture(options.out, film, exact)


def picture(folder: Path, film: np.ndarray, exact: np.ndarray) -> None:
    """The film, and its distance from the exact one."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    side = np.linspace(-1, 1, exact.shape[0])
    whole = exact.copy()
    whole[1:-1, 1:-1] = film
    figure = plt.figure(figsize=(9, 4), layout="constrained")
    surface = figure.add_subplot(1, 2, 1, projection="3d")
    surface.plot_surface(*np.meshgrid(side, side), whole, cmap="viridis", rcount=60, ccount=60, lw=0)
    surface.set_title("the film")
    error = figure.add_subplot(1, 2, 2)
    shown = error.pcolormesh(side, side, np.abs(whole - exact), cmap="magma", shading="nearest")
    error.set_aspect("equal")
    error.set_title("distance from Scherk's surface")
    figure.colorbar(shown, ax=error, shrink=0.8)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "soap_film.png", dpi=150)


if __name__ == "__main__":
    main()
