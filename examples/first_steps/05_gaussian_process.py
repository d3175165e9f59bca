"""A Gaussian process for the CO₂ record: trend, season, and honest error bars beyond the data.

Data: Mauna Loa CO₂, shipped with statsmodels, as monthly means; the last eight years are held out. The
kernel is a SymPy expression; its hyperparameters are fitted by L-BFGS on symad's gradient.
Run: python examples/first_steps/05_gaussian_process.py [--out DIR]
"""

import argparse
import time
from pathlib import Path

import numpy as np
import statsmodels.api as sm
import sympy as sp

from symad.models.generative import gaussian_process as gp
from symad.models.generative import kernels

HELD_OUT = 96


def kernel() -> sp.Expr:
    """Growth, a yearly season whose shape may drift, and irregularities."""
    b, c, d, lb, lc, ls = sp.symbols("b c d l_b l_c l_s", positive=True)
    season = sp.exp(-2 * sp.sin(sp.pi * sp.sqrt(kernels.r2)) ** 2 / ls**2)
    irregular = (1 + kernels.r2 / (2 * lc**2)) ** -1
    season = b * season * sp.exp(-kernels.r2 / (2 * lb**2))
    return d * kernels.inner + season + c * irregular


def main() -> None:
    """Fit, predict, and compare with the value a year ago plus the mean growth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    monthly = sm.datasets.co2.load_pandas().data["co2"].resample("MS").mean().interpolate()
    years = (monthly.index.year + (monthly.index.month - 0.5) / 12).to_numpy(dtype=float)
    values = monthly.to_numpy()
    keep = years > 1979
    years, values = years[keep], values[keep]
    origin = years[:-HELD_OUT].mean()
    train_x, train_y = years[:-HELD_OUT, None] - origin, values[:-HELD_OUT]
    mean = train_y.mean()

    k = kernel()
    print(f"k = {k}")
    start = time.perf_counter()
    #        b    c    d    l_b   l_c  l_s  noise
    first = [6.0, 0.5, 2.0, 60.0, 1.0, 1.3, 0.05]
    fitted = gp.fit(k, train_x, train_y - mean, start=first)
    print(
        f"fitted {len(first)} hyperparameters on {len(train_y)} months in {time.perf_counter() - start:.1f} s"
    )
    print({str(s): round(v, 3) for s, v in fitted.values.items()}, f"noise {fitted.noise:.3g}")
    print(f"log likelihood {fitted.log_likelihood:.3f}")

    predicted, variance = fitted.predict(years[:, None] - origin)
    predicted = predicted + mean
    band = 2 * np.sqrt(variance + fitted.noise)
    error = values[-HELD_OUT:] - predicted[-HELD_OUT:]
    inside = np.mean(np.abs(error) < band[-HELD_OUT:])
    growth = (train_y[-12:].mean() - train_y[-120:-108].mean()) / 9
    naive = np.tile(train_y[-12:], HELD_OUT // 12) + growth * np.repeat(np.arange(1, HELD_OUT // 12 + 1), 12)
    rmse, rmse_naive = (float(np.sqrt(np.mean(e**2))) for e in (error, values[-HELD_OUT:] - naive))
    print(f"eight years ahead: error {rmse:.2f} ppm (last year plus mean growth: {rmse_naive:.2f} ppm)")
    print(f"{inside:.0%} of the held-out months lie within two standard deviations")
    if options.out:
        picture(options.out, years, values, predicted, band)


def picture(
    folder: Path, years: np.ndarray, values: np.ndarray, predicted: np.ndarray, band: np.ndarray
) -> None:
    """Data, prediction and error bars."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 3.8), layout="constrained")
    axes.fill_between(
        years, predicted - band, predicted + band, color="tab:blue", alpha=0.25, lw=0, label="two sigma"
    )
    axes.plot(years, predicted, color="tab:blue", lw=1, label="Gaussian process")
    axes.plot(years[:-HELD_OUT], values[:-HELD_OUT], "k.", ms=2, label="data")
    axes.plot(years[-HELD_OUT:], values[-HELD_OUT:], ".", color="tab:red", ms=3, label="held out")
    axes.set_xlabel("year")
    axes.set_ylabel("CO₂, ppm")
    axes.legend(frameon=False, loc="upper left")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "co2.png", dpi=150)


if __name__ == "__main__":
    main()
