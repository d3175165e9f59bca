"""Optimizers: five paths down one valley, and a curve fitted to real data with certified results.

Data: Meyer's thermistor (resistance against temperature), problem MGH10 of NIST's Statistical Reference
Datasets, of higher difficulty; the fit is compared with its certified parameters and standard errors.
Run: python examples/first_steps/23_optimizers.py [--out DIR] for the picture.
"""

import argparse
from pathlib import Path

import numpy as np
import sympy as sp

import symad
from symad.numeric import least_squares, minimize
from symad.numeric.training.optimizers import SGD

x, y = sp.symbols("x y", real=True)
ROWS = [3 * (y - x**2), 1 - x]  # Rosenbrock's valley, wide enough to tell the paths apart
VALLEY = ROWS[0] ** 2 + ROWS[1] ** 2
START = {x: -1.2, y: 1.0}

TEMPERATURES = np.arange(50, 126, 5)
RESISTANCES = [
    34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147, 4427, 3820, 3307, 2872,
]  # fmt: skip
CERTIFIED = np.array([5.6096364710e-03, 6.1813463463e03, 3.4522363462e02])
CERTIFIED_ERRORS = np.array([1.5687892471e-04, 2.3309021107e01, 7.8486103508e-01])


def descend(steps: int = 300, rate: float = 0.012) -> list:
    """Gradient descent; returns the points."""
    slope = symad.gradient(VALLEY, (x, y))
    optimizer, seen = SGD(rate), [START]
    state = optimizer.start(START)
    for _ in range(steps):
        gradients = dict(zip((x, y), slope(*seen[-1].values()), strict=True))
        moved, state = optimizer.step(seen[-1], gradients, state, 1.0)
        seen.append(moved)
    return seen


def paths() -> dict:
    """All points of every method."""
    found = {"gradient descent": descend()}
    for method in ("newton", "newton-cg", "l-bfgs"):
        seen: list = []
        minimize(VALLEY, START, method=method, watch=seen.append).checked()
        found[method] = seen
    seen = []
    least_squares(ROWS, START, watch=seen.append).checked()
    found["Levenberg–Marquardt"] = seen
    return found


def fit() -> tuple:
    """Levenberg–Marquardt on a exp(b/(T + c)) from NIST's harder start; returns the fit and its points."""
    a, b, c = sp.symbols("a b c", real=True)
    rows = [a * sp.exp(b / (int(t) + c)) - r for t, r in zip(TEMPERATURES, RESISTANCES, strict=True)]
    seen: list = []
    found = least_squares(
        symad.trace(rows, (a, b, c)), [0.02, 4000.0, 250.0], watch=seen.append
    ).checked()
    print(f"\nthermistor: {found.iterations} steps, sum of squares {2 * found.value:.8f} (NIST 87.945855171)")
    for name, value, error, known in zip("abc", found.x, found.standard_errors(), CERTIFIED, strict=True):
        print(f"  {name} = {value:.10g} ± {error:.4g}   NIST {known:.10g}")
    assert np.allclose(found.x, CERTIFIED, rtol=1e-7)
    assert np.allclose(found.standard_errors(), CERTIFIED_ERRORS, rtol=1e-5)
    return found, seen


def main() -> None:
    """Minimize, fit, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    walked = paths()
    print("a valley (1 − x)² + 9 (y − x²)² from (−1.2, 1)")
    for name, seen in walked.items():
        distance = np.hypot(seen[-1][x] - 1, seen[-1][y] - 1)
        print(f"  {name:20} {len(seen) - 1:5} steps, {distance:.1e} from the minimum")
    for name, seen in walked.items():
        if name != "gradient descent":
            assert np.hypot(seen[-1][x] - 1, seen[-1][y] - 1) < 1e-6
    found, seen = fit()
    if options.out:
        picture(options.out, walked, found, seen)


def picture(folder: Path, walked: dict, found: object, fits: list) -> None:
    """The paths, the decrease of f along them, and the fitted curve."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(10, 7.4), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=(3, 2))
    plane, values, curve, rest = (figure.add_subplot(cell) for cell in grid)
    value = symad.trace(VALLEY, (x, y))
    xs, ys = np.meshgrid(np.linspace(-1.5, 1.4, 300), np.linspace(-0.6, 2.4, 300))
    plane.contour(xs, ys, np.log10(value(xs, ys) + 1e-2), 16, cmap="Greys_r", linewidths=0.6)
    for name, seen in walked.items():
        points = np.array([[p[x], p[y]] for p in seen])
        plane.plot(*points.T, ".-", ms=5, lw=1.2, label=name)
        values.semilogy([max(float(value(*p)), 1e-32) for p in points], lw=1.5)
    plane.plot(1, 1, "k*", ms=11)
    plane.set(xlim=(-1.5, 1.4), ylim=(-0.6, 2.4), xlabel="x", ylabel="y", title="paths down a valley")
    plane.legend(frameon=False, fontsize=9, loc="upper center")
    values.set(xlim=(0, 60), ylim=(1e-26, 1e2), xlabel="steps", ylabel="f(x, y)", title="f after each step")
    line = np.linspace(48, 127, 200)
    for k in (0, len(fits) - 1):
        a, b, c = fits[k]
        curve.plot(line, a * np.exp(b / (line + c)), lw=1.3, label=f"after {k} steps")
    curve.plot(TEMPERATURES, RESISTANCES, "k.", ms=6)
    curve.set(xlabel="temperature in °C", ylabel="resistance in Ω", ylim=(0, 40_000))
    curve.set_title("a thermistor by Levenberg–Marquardt")
    curve.legend(frameon=False, fontsize=9)
    for k in (60, 110, len(fits) - 1):
        a, b, c = fits[k]
        rest.plot(TEMPERATURES, a * np.exp(b / (TEMPERATURES + c)) - RESISTANCES, ".-", label=f"after {k}")
    rest.axhline(0, color="0.8", lw=0.8, zorder=0)
    rest.set(xlabel="temperature in °C", ylabel="residual in Ω", ylim=(-45, 65), title="its residuals")
    rest.legend(frameon=False, fontsize=9, ncols=3)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "optimizers.png", dpi=140)


if __name__ == "__main__":
    main()
