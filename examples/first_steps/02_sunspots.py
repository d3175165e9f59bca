"""An autoregressive model of the sunspot numbers, fitted twice: by least squares and by Newton.

Data: yearly sunspot numbers 1700-2008, shipped with statsmodels. The last 50 years are held out.
Run: python examples/first_steps/02_sunspots.py [--out DIR] for the picture.
"""

import argparse
from pathlib import Path

import numpy as np
import statsmodels.api as sm

import symad
from symad.models.sequences import ar
from symad.numeric import lower

LAGS, HELD_OUT = 9, 50


def newton(series: np.ndarray) -> tuple[np.ndarray, float]:
    """The weights by Newton's method on the traced loss; it is quadratic, so that one step is enough."""
    loss = symad.trace(ar.loss(), [ar.w, ar.b, ar.x])
    gradient = lower(symad.gradient(loss, [ar.w, ar.b]))
    hessian = lower(symad.hessian(loss, [ar.w, ar.b]))
    w, b = np.zeros(LAGS), 0.0
    for step in range(2):
        g_w, g_b = gradient(w, b, series)
        g = np.append(g_w, g_b)
        print(f"Newton step {step}: largest slope {np.abs(g).max():.2e}")
        move = np.linalg.solve(hessian(w, b, series), -g)
        w, b = w + move[:-1], b + move[-1]
    return w, float(b)


def main() -> None:
    """Fit, compare, predict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    data = sm.datasets.sunspots.load_pandas().data
    years, series = data["YEAR"].to_numpy(), data["SUNACTIVITY"].to_numpy()
    train = series[:-HELD_OUT]

    fit = ar.fit(train, LAGS)
    w, b = newton(train)
    print(fit)
    print(f"Newton and least squares differ by {np.abs(w - fit.weights).max():.1e}")

    windows = ar.seq2col(series[:-1], LAGS)[-HELD_OUT:]
    predicted, actual = windows @ w + b, series[-HELD_OUT:]
    rmse = float(np.sqrt(np.mean((predicted - actual) ** 2)))
    naive = float(np.sqrt(np.mean((windows[:, 0] - actual) ** 2)))
    print(f"one-year-ahead error on the held-out {HELD_OUT} years: {rmse:.2f}; 'as last year': {naive:.2f}")

    if options.out:
        picture(options.out, years, series, predicted)


def picture(folder: Path, years: np.ndarray, series: np.ndarray, predicted: np.ndarray) -> None:
    """The series with the held-out predictions."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 3.5), layout="constrained")
    axes.plot(years[-150:], series[-150:], color="0.5", label="sunspot number")
    axes.plot(years[-HELD_OUT:], predicted, color="tab:red", label=f"AR({LAGS}), one year ahead")
    axes.axvspan(years[-HELD_OUT], years[-1], color="tab:red", alpha=0.06)
    axes.set_xlabel("year")
    axes.legend(frameon=False, loc="upper left")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "sunspots.png", dpi=150)


if __name__ == "__main__":
    main()
