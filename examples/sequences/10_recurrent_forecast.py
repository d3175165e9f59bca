"""Recurrent networks forecast the sunspot numbers a year ahead: a tanh RNN and an LSTM.

Data: yearly sunspot numbers 1700-2008, shipped with statsmodels. The last 50 years are held out, and no
choice was made on them. Both networks read one number per year and predict the next.
Run: python examples/sequences/10_recurrent_forecast.py [--out DIR] for the picture.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products are fastest on one thread

import numpy as np
import statsmodels.api as sm

from symad.models.layers.parameters import trace_model
from symad.models.sequences import ar
from symad.models.sequences.lstm import LSTM
from symad.models.sequences.rnn import RNN, jacobian_norms
from symad.numeric.training.loop import batches, train, warmup_cosine
from symad.numeric.training.optimizers import Adam

WINDOW, BATCH, STEPS, HELD_OUT = 44, 32, 400, 50


def fit(model, series):
    """Train on all windows of the series; every year's number is predicted from those before it."""
    windows = ar.seq2col(series, WINDOW + 1)[:, ::-1]  # oldest first
    x, y = windows[:, :-1, None], windows[:, 1:, None]
    shape = (WINDOW, BATCH, 1)
    loss = trace_model(model.loss, model.shapes, shape, shape)
    data = ((a.swapaxes(0, 1), b.swapaxes(0, 1)) for a, b in batches(x, y, size=BATCH))
    schedule = warmup_cosine(20, STEPS)
    return train(loss, model.init(1), data, Adam(0.01), STEPS, clip=1.0, schedule=schedule)


def main() -> None:
    """Train, compare with the naive forecast and with AR(9), draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    data = sm.datasets.sunspots.load_pandas().data
    years, series = data["YEAR"].to_numpy(), data["SUNACTIVITY"].to_numpy()
    # The square root equalizes the noise; the scale comes from the training years only.
    mean, scale = np.sqrt(series[:-HELD_OUT]).mean(), np.sqrt(series[:-HELD_OUT]).std()
    z = (np.sqrt(series) - mean) / scale
    actual = series[-HELD_OUT:]

    def error(predicted):
        return float(np.sqrt(np.mean((predicted - actual) ** 2)))

    linear = ar.fit(series[:-HELD_OUT], 9)
    windows = ar.seq2col(series[:-1], 9)[-HELD_OUT:]
    forecasts = {
        "as last year": series[-HELD_OUT - 1 : -1],
        "AR(9)": windows @ linear.weights + linear.bias,
    }
    curves = {}
    models = {"RNN": RNN(1, 16, 1), "LSTM": LSTM(1, 16, 1)}
    for name, model in models.items():
        result = fit(model, z[:-HELD_OUT])
        ahead = model.apply(result.parameters, z[:-1, None])[-HELD_OUT:, 0]
        forecasts[name] = np.maximum(ahead * scale + mean, 0) ** 2
        curves[name] = result.losses
        print(f"{name}: loss {result.losses[0]:.3f} -> {np.mean(result.losses[-20:]):.3f}")
        if name == "RNN":
            states = model.states(result.parameters, z[:, None])
            norms = jacobian_norms(result.parameters["W_hh1"], states)
    for name, predicted in forecasts.items():
        print(f"{name:12s} errs by {error(predicted):5.2f} on the held-out {HELD_OUT} years")
    faded = int(np.argmax(norms < 1e-3))
    print(f"RNN: the gradient falls below 1/1000 after about {faded} years")
    if options.out:
        picture(options.out, years, series, forecasts, curves, norms)


def picture(folder, years, series, forecasts, curves, norms) -> None:
    """Held-out forecasts, training curves, and the norm of the product of Jacobians."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, rows = plt.subplot_mosaic("AA;BC", figsize=(9, 6), layout="constrained")
    axes = rows["A"]
    axes.plot(years[-90:], series[-90:], color="0.6", label="sunspot number")
    for name, color in (("RNN", "tab:blue"), ("LSTM", "tab:red")):
        axes.plot(years[-HELD_OUT:], forecasts[name], color=color, lw=1.2, label=f"{name}, a year ahead")
        rows["B"].semilogy(curves[name], color=color, lw=0.8, label=name)
    axes.axvspan(years[-HELD_OUT], years[-1], color="0.5", alpha=0.1)
    axes.set(xlabel="year", title="held-out forecasts")
    axes.legend(frameon=False, loc="upper left")
    rows["B"].set(xlabel="step", title="training loss")
    rows["B"].legend(frameon=False)
    rows["C"].semilogy(np.maximum(norms[:60], 1e-16), color="tab:blue")
    rows["C"].set(xlabel="years", title="RNN: norm of ∂h_t/∂h_1, the vanishing gradient")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "recurrent_forecast.png", dpi=150)


if __name__ == "__main__":
    main()
