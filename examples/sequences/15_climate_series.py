"""CO₂ and El Niño a month ahead: a linear model, a tanh RNN and an LSTM against a naive forecast.

Data: CO₂ at Mauna Loa 1958-2001 (weekly, with gaps) and the sea surface temperature of the Niño region
1950-2010 (monthly), both shipped with statsmodels. The last ten years are held out: nothing is fitted, scaled
or chosen on them (sizes and steps were chosen on the ten years before). All models forecast the change
against the same month of the previous year. The naive forecast is that this change stays as it was last
month; the networks learn a correction to that.

The linear model is a recurrent network too: in a linear recurrent unit its weights give the same forecasts,
and the example proves this for all weights.
Run: python examples/sequences/15_climate_series.py [--out DIR] for the picture.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products are fastest on one thread

import numpy as np
import statsmodels.api as sm

import symad
from symad.errors import EvaluationError
from symad.models.layers import linear_unit
from symad.models.layers.parameters import trace_model
from symad.models.sequences import ar
from symad.models.sequences.lstm import LSTM
from symad.models.sequences.rnn import RNN
from symad.numeric.training.loop import batches, refuse_nan, train, warmup_cosine
from symad.numeric.training.optimizers import adamw

YEAR, HELD_OUT, LAGS = 12, 120, 13
WINDOW, BATCH, STEPS = 36, 32, 150


def carbon_dioxide():
    """Monthly means in ppm; months without a measurement are interpolated."""
    weekly = sm.datasets.co2.load_pandas().data["co2"]
    try:
        refuse_nan("the weekly CO₂", weekly.to_numpy())
    except EvaluationError as error:
        print(f"rejected because of the gaps: {error}")
    monthly = weekly.resample("MS").mean().interpolate()
    return monthly.index.year + (monthly.index.month - 1) / YEAR, monthly.to_numpy()


def sea_temperature():
    """Monthly temperatures in °C."""
    table = sm.datasets.elnino.load_pandas().data
    years = np.repeat(table["YEAR"].to_numpy(), YEAR) + np.tile(np.arange(YEAR) / YEAR, len(table))
    return years, table.drop(columns="YEAR").to_numpy().ravel()


def fit(model, series):
    """Train on all windows of a series; at each step the next number is predicted from those before it."""
    windows = ar.seq2col(series, WINDOW + 1)[:, ::-1]  # oldest first
    loss = trace_model(model.loss, model.shapes, (WINDOW, BATCH, 1), (WINDOW, BATCH, 1))
    pairs = batches(windows[:, :-1, None], np.diff(windows)[:, :, None], size=BATCH, seed=0)
    stream = ((x.swapaxes(0, 1), y.swapaxes(0, 1)) for x, y in pairs)
    return train(loss, model.init(0), stream, adamw(0.01, 0.3), STEPS, 1.0, warmup_cosine(20, STEPS))


def forecasts(series):
    """Forecasts of the yearly change, one month ahead in the held-out months, by each model."""
    change = series[YEAR:] - series[:-YEAR]
    past = change[:-HELD_OUT]
    mean, scale = past.mean(), past.std()
    z = (change - mean) / scale
    linear = ar.fit(z[:-HELD_OUT], LAGS)
    unit = linear_unit.apply(linear_unit.from_ar(linear.weights), z[:-1]) + linear.bias
    made = {
        "naive": z[-HELD_OUT - 1 : -1],
        f"AR({LAGS})": ar.seq2col(z[:-1], LAGS)[-HELD_OUT:] @ linear.weights + linear.bias,
    }
    apart = np.abs(made[f"AR({LAGS})"] - unit[-HELD_OUT:]).max()
    print(f"AR({LAGS}) as a recurrent unit: forecasts differ by {apart:.0e}")
    for name, model in {"RNN": RNN(1, 12, 1), "LSTM": LSTM(1, 6, 1)}.items():
        trained = fit(model, z[:-HELD_OUT])
        made[name] = made["naive"] + model.apply(trained.parameters, z[:-1, None])[-HELD_OUT:, 0]
        print(f"{name}: loss {trained.losses[0]:.3f} -> {np.mean(trained.losses[-20:]):.3f}")
    before = series[-HELD_OUT - YEAR : -YEAR]
    return {name: before + mean + scale * values for name, values in made.items()}


def prove(lags=4):
    """AR(s) and the linear unit with its weights are one function of all weights and all inputs."""

    def written_out(w, x):
        padded = np.concatenate([np.zeros(lags - 1), x])
        return np.stack([w @ padded[t : t + lags][::-1] for t in range(6)])

    direct = symad.trace(written_out, [(lags,), (6,)])
    unit = symad.trace(lambda w, x: linear_unit.apply(linear_unit.from_ar(w), x), [(lags,), (6,)])
    print(f"AR({lags}) is a linear recurrent unit: {symad.equal(direct, unit).status}")


def main() -> None:
    """Both series: fit, forecast the held-out years, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    prove()
    results = {}
    for name, load, unit in (("CO₂", carbon_dioxide, "ppm"), ("El Niño", sea_temperature, "°C")):
        years, series = load()
        predicted, actual = forecasts(series), series[-HELD_OUT:]
        errors = {k: float(np.sqrt(np.mean((v - actual) ** 2))) for k, v in predicted.items()}
        results[name] = years[-HELD_OUT:], actual, predicted, errors, unit
        told = ", ".join(f"{k} {v:.3f}" for k, v in errors.items())
        print(f"{name}: error on the held-out {HELD_OUT} months in {unit}: {told}")
    if options.out:
        picture(options.out, results)


def picture(folder, results) -> None:
    """The last five years with the LSTM's forecasts, and the errors of all."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, rows = plt.subplots(2, 2, figsize=(10, 6.4), width_ratios=(2.4, 1), layout="constrained")
    for (left, right), (name, (years, actual, predicted, errors, unit)) in zip(
        rows, results.items(), strict=True
    ):
        left.plot(years[-60:], actual[-60:], color="0.6", lw=3, label="measured")
        left.plot(years[-60:], predicted["LSTM"][-60:], color="tab:red", lw=1.2, label="LSTM, a month ahead")
        left.legend(frameon=False, loc="upper left", ncols=2)
        left.margins(y=0.25)
        left.set(title=f"{name} in {unit}, the last five years")
        colors = ["0.7", "tab:green", "tab:blue", "tab:red"]
        right.bar(list(errors), list(errors.values()), color=colors)
        right.set(title=f"error in {unit}, ten years held out")
        right.tick_params(axis="x", labelrotation=30)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "climate_series.png", dpi=150)


if __name__ == "__main__":
    main()
