"""Four tasks for sequences and images: denoise, forecast, classify, and read selectively.

A temporal convolutional network removes the noise from chirps. Another forecasts the sunspot numbers a year
ahead (statsmodels, the last 50 years held out). A convolutional network reads handwritten digits
(scikit-learn, 297 held out). A selective state space model adds the two marked numbers of twenty, and learns
to keep its state in between. Each is compared with a simple baseline.
Run: python examples/sequences/13_convolutions_and_state_space.py [--out DIR] for the picture.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products are fastest on one thread

import numpy as np
import statsmodels.api as sm
from sklearn.datasets import load_digits

from symad.functions import softplus
from symad.models.layers.convolutional import Classifier
from symad.models.layers.parameters import trace_model
from symad.models.sequences import ar
from symad.models.sequences.state_space import StateSpace
from symad.models.sequences.tcn import TCN
from symad.models.transformers import tasks
from symad.numeric.training.loop import batches, train, warmup_cosine
from symad.numeric.training.optimizers import Adam


def fit(loss, model, stream, steps, rate):
    """Train a loss; its data have the shapes of the stream's first tuple."""
    first = next(stream)
    graph = trace_model(loss, model.shapes, *(a.shape for a in first))
    schedule = warmup_cosine(20, steps, 0.05)
    return train(
        graph, model.init(1), stream, Adam(rate), steps, clip=1.0, schedule=schedule, dtype="float32"
    )


def chirps(count, rng, length=96):
    """Waves of varying frequency, clean and noisy: (T, N, 1) both."""
    t = np.linspace(0, 1, length)[:, None]
    slow, fast, phase = rng.uniform(5, 15, count), rng.uniform(15, 45, count), rng.uniform(0, 6.3, count)
    clean = np.sin(phase + slow * t + (fast - slow) * t**2 / 2)[..., None]
    return clean, clean + 0.5 * rng.normal(size=clean.shape)


def denoise(rng):
    """A causal network against the best moving average."""
    model = TCN(1, 16, 1, levels=4, taps=3)

    def stream():
        while True:
            clean, noisy = chirps(16, rng)
            yield noisy, clean

    def loss(p, noisy, clean):
        return tasks.denoising_loss(model, p, noisy, clean)

    result = fit(loss, model, stream(), 250, 0.01)
    clean, noisy = chirps(100, np.random.default_rng(99))
    cleaned = model.apply(result.parameters, noisy)
    errors = {"noise": np.mean((noisy - clean) ** 2), "TCN": np.mean((cleaned - clean) ** 2)}
    averages = [
        np.mean((np.apply_along_axis(np.convolve, 0, noisy, np.ones(w) / w)[: len(clean)] - clean) ** 2)
        for w in range(2, 10)
    ]
    errors["moving average"] = min(averages)
    print("denoising, mean squared error: " + ", ".join(f"{k} {v:.3f}" for k, v in errors.items()))
    turns = np.diff(np.sign(clean[..., 0]), axis=0) != 0
    k = np.argmax(turns[64:].sum(0) - turns[:32].sum(0))  # the one whose pitch rises most
    return clean[:, k, 0], noisy[:, k, 0], cleaned[:, k, 0]


def forecast():
    """Sunspots a year ahead, as square roots, scaled by the training years."""
    data = sm.datasets.sunspots.load_pandas().data
    years, series, held, window = data["YEAR"].to_numpy(), data["SUNACTIVITY"].to_numpy(), 50, 44
    roots = np.sqrt(series)
    mean, scale = roots[:-held].mean(), roots[:-held].std()
    z = (roots - mean) / scale
    pieces = ar.seq2col(z[:-held], window)[:, ::-1, None]
    model = TCN(1, 12, 1, levels=3, taps=3)

    def loss(p, x):
        return tasks.forecasting_loss(model, p, x)

    stream = ((a.swapaxes(0, 1),) for (a,) in batches(pieces, size=16))
    result = fit(loss, model, stream, 150, 0.01)
    ahead = model.apply(result.parameters, z[:-1, None])[-held:, 0]
    predicted, actual = np.maximum(ahead * scale + mean, 0) ** 2, series[-held:]
    errors = {
        "TCN": np.sqrt(np.mean((predicted - actual) ** 2)),
        "as last year": np.sqrt(np.mean((series[-held - 1 : -1] - actual) ** 2)),
    }
    print("sunspots, error a year ahead: " + ", ".join(f"{k} {v:.1f}" for k, v in errors.items()))
    return years[-held:], actual, predicted


def classify():
    """Digits: the twelve about which the network is least certain, its answers, and the true classes."""
    table = load_digits()
    order = np.random.default_rng(0).permutation(len(table.target))
    x, y = table.images[order][..., None] / 16, table.target[order]
    model = Classifier(8, 1, 8, 10)
    result = fit(model.loss, model, batches(x[:1500], y[:1500], size=32), 350, 0.01)
    scores = model.scores(result.parameters, x[1500:])
    right = np.mean(scores.argmax(axis=1) == y[1500:])
    ranked = np.sort(scores, axis=1)
    hard = np.argsort(ranked[:, -1] - ranked[:, -2])[:12]
    centers = np.stack([x[:1500][y[:1500] == k].mean(axis=0) for k in range(10)])
    distance = np.sum((x[1500:, None] - centers) ** 2, axis=(2, 3, 4))
    nearest = np.mean(distance.argmin(axis=1) == y[1500:])
    print(f"digits: {right:.1%} right, nearest mean {nearest:.1%}")
    return x[1500:][hard, ..., 0], scores[hard].argmax(axis=1), y[1500:][hard], result.parameters["W1"]


def additions(count, rng, length=20):
    """Numbers and marks (T, N, 2), two marks per sequence, and the sums of the marked numbers (N, 1)."""
    values, marks = rng.uniform(0, 1, (length, count)), np.zeros((length, count))
    for half in (0, length // 2):
        marks[half + rng.integers(0, length // 2, count), np.arange(count)] = 1
    return np.stack([values, marks], axis=-1), np.sum(values * marks, axis=0)[:, None]


def add(rng):
    """The adding problem, and the steps Δ_t that the model chose for one sequence."""
    model = StateSpace(2, 8, 1, state=4)

    def loss(p, x, y):
        return tasks.regression_loss(model, p, x, y)

    stream = (additions(32, rng) for _ in iter(int, 1))
    result = fit(loss, model, stream, 400, 0.01)
    p = {name: np.asarray(value, dtype=float) for name, value in result.parameters.items()}
    x, y = additions(300, np.random.default_rng(99))
    found = tasks.summary(model, p, x)
    error, always = np.mean((found - y) ** 2), np.var(y)
    print(f"adding problem: squared error {error:.4f}, the mean as answer {always:.4f}")
    steps = steps_of(model, p, x[:, 0])
    return x[:, 0], steps, found[:, 0], y[:, 0]


def steps_of(model, p, x):
    """Δ_t of every inner feature of the first block: (T, features)."""
    inner = p["block1_D"].shape[0]
    z = x @ p["W_in"] + p["c_in"]
    z = z / np.sqrt(np.mean(z**2, axis=-1, keepdims=True) + 1e-5) * p["block1_gamma"]
    u = (z @ p["block1_W_i"])[:, :inner]
    padded = np.vstack([np.zeros((model.taps - 1, inner)), u])
    u = sum(padded[k : len(u) + k] * p["block1_w"][k] for k in range(model.taps)) + p["block1_c"]
    u = u / (1 + np.exp(-u))
    return softplus(u @ p["block1_W_delta"] + p["block1_b_delta"])


def main() -> None:
    """Run all four tasks, and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    results = denoise(rng), forecast(), classify(), add(rng)
    if options.out:
        picture(options.out, *results)


def picture(folder, denoised, forecasts, digits, sums) -> None:
    """A panel for each task."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplot_mosaic("AB;CD", figsize=(10, 7), layout="constrained")
    clean, noisy, cleaned = denoised
    axes["A"].plot(noisy, ".", color="0.7", ms=4, label="noisy")
    axes["A"].plot(clean, color="k", lw=0.8, label="clean")
    axes["A"].plot(cleaned, color="tab:red", label="temporal convolution, causal")
    axes["A"].set(title="denoising: a chirp it has not seen", xlabel="t", ylim=(-2.2, 2.6))
    axes["A"].legend(frameon=False, ncols=3, loc="upper center", fontsize=9)
    years, actual, predicted = forecasts
    axes["B"].plot(years, actual, color="0.5", label="sunspot number")
    axes["B"].plot(years, predicted, color="tab:red", label="temporal convolution, a year ahead")
    axes["B"].set(title="forecasting: held-out years", xlabel="year", ylim=(0, 240))
    axes["B"].legend(frameon=False, loc="upper center", ncols=2, fontsize=9)
    draw_digits(axes["C"], *digits)
    draw_steps(axes["D"], *sums)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "convolutions_and_state_space.png", dpi=150)


def draw_digits(axes, images, answers, truths, filters) -> None:
    """The learned filters in a row, and the hardest digits; wrong answers are red."""
    axes.axis("off")
    axes.set_title("classification: eight filters, twelve hardest digits")
    for k in range(8):
        at = axes.inset_axes((k / 8 + 0.01, 0.74, 0.105, 0.22))
        at.imshow(filters[:, :, 0, k], cmap="RdBu", vmin=-1.2, vmax=1.2)
        at.set(xticks=[], yticks=[])
    for k, (image, answer, truth) in enumerate(zip(images, answers, truths, strict=True)):
        at = axes.inset_axes((k % 6 / 6 + 0.02, 0.36 - 0.36 * (k // 6), 0.13, 0.24))
        at.imshow(image, cmap="Greys")
        at.set(xticks=[], yticks=[])
        color = "k" if answer == truth else "tab:red"
        at.set_title(f"{truth} read as {answer}", fontsize=7, pad=2, color=color)


def draw_steps(axes, x, steps, found, wanted) -> None:
    """The steps Δ_t of one sequence with its marks, and answers against sums as an inset."""
    t, marked = np.arange(len(x)), x[:, 1] == 1
    axes.plot(t, steps, color="tab:blue", alpha=0.35, lw=0.9)
    axes.plot(
        t, steps.max(axis=1), color="tab:blue", lw=1.5, label="steps Δ_t, 16 features"
    )
    for k, place in enumerate(t[marked]):
        axes.axvline(place, color="tab:red", lw=6, alpha=0.25, label="marked numbers" if k == 0 else None)
    top = steps.max()
    axes.set(
        title="a state space model adds the two marked numbers",
        xlabel="t",
        ylim=(0, 2.2 * top),
        xticks=t[::2],
    )
    axes.legend(loc="upper left", fontsize=9)
    inset = axes.inset_axes((0.72, 0.56, 0.26, 0.34))
    inset.plot([0, 2], [0, 2], color="0.7", lw=0.8)
    inset.plot(wanted, found, ".", ms=2, color="tab:red")
    inset.set(xticks=[0, 1, 2], yticks=[0, 1, 2])
    inset.set_title("answers against sums", fontsize=9)


if __name__ == "__main__":
    main()
