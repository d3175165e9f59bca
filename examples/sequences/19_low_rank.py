"""Low-rank adaptation: a small language model is adapted to another text by few parameters.

A transformer reads the Python manual (pydoc_data.topics) letter by letter. It is then adapted to the
descriptions of scikit-learn's data sets: all parameters, or only the factors B A of rank 2 that are added to
its matrices. At the start B = 0, so that nothing changes and A has zero gradient. At the end B A is merged
into W, and the model is as fast as before. A fifth of the descriptions is held out.
Run: python examples/sequences/19_low_rank.py [--out DIR] for the picture.
"""

import argparse
import os
import re
from pathlib import Path
from pydoc_data.topics import topics

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products are fastest on one thread

import numpy as np
import sympy
from sklearn import datasets

import symad
from symad.models.layers.losses import log_likelihoods
from symad.models.layers.parameters import count, trace_model
from symad.models.transformers import adaptation
from symad.models.transformers.transformer import Transformer
from symad.numeric import lower
from symad.numeric.training.loop import train, warmup_cosine
from symad.numeric.training.optimizers import Adam

ALPHABET = " ,.abcdefghijklmnopqrstuvwxyz"
CONTEXT, BATCH, RANK, ALPHA = 16, 32, 2, 4.0
READ, ADAPT = 400, 150
MODEL = Transformer(len(ALPHABET), CONTEXT, 48, 1, 4, hidden=128, position="rotary", norm="rms", bias=False)
ADAPTED = {name: shape for name, shape in MODEL.shapes.items() if name.startswith("layer1_W")}
SHAPE = (BATCH, CONTEXT)


def letters(text):
    """Letters and full stops; everything else becomes one space."""
    return np.array([ALPHABET.index(c) for c in re.sub(r"[^a-z.,]+", " ", text.lower())])


def texts():
    """The manual; the descriptions to adapt to; and those held out."""
    manual = letters("\n".join(topics[name] for name in sorted(topics)))[:120_000]
    loaders = ("breast_cancer", "diabetes", "digits", "iris", "linnerud", "wine")
    described = [getattr(datasets, f"load_{name}")().DESCR.splitlines() for name in loaders]
    kept = [line for lines in described for line in lines[: 4 * len(lines) // 5]]
    rest = [line for lines in described for line in lines[4 * len(lines) // 5 :]]
    return manual, letters("\n".join(kept)), letters("\n".join(rest))


def samples(tokens, *before):
    """Random pieces of a text: letters and those that follow them, after the loss's other arguments."""
    rng = np.random.default_rng(0)
    while True:
        starts = rng.integers(0, len(tokens) - CONTEXT - 1, BATCH)
        pieces = tokens[starts[:, None] + np.arange(CONTEXT + 1)]
        yield *before, pieces[:, :-1], pieces[:, 1:]


def unpack(flat):
    """The parameters of the model from one vector, in the order of their shapes."""
    found, place = {}, 0
    for name, shape in MODEL.shapes.items():
        size = int(np.prod(shape))
        found[name] = flat[place : place + size].reshape(shape)
        place += size
    return found


def adapted_loss(adapters, frozen, tokens, targets):
    """The loss of the model with W + (α/r) B A, as a function of the factors."""
    return MODEL.loss(adaptation.adapt(unpack(frozen), adapters, ALPHA), tokens, targets)


def perplexity(scores, p, tokens):
    """exp of the mean of −log p(letter | the 16 before it)."""
    windows = np.lib.stride_tricks.sliding_window_view(tokens[:-1], CONTEXT)
    logs = log_likelihoods(scores(*p.values(), windows)[:, -1], tokens[CONTEXT:])
    return float(np.exp(-logs.mean()))


def learn(loss, start, stream, rate, steps):
    """Adam with a warm-up and a cosine schedule."""
    pace = warmup_cosine(20, steps, 0.1)
    return train(loss, start, stream, Adam(rate, beta2=0.99), steps, 1.0, pace, dtype="float32")


def main() -> None:
    """Read the manual, adapt in both ways, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    manual, described, held_out = texts()
    loss = trace_model(MODEL.loss, MODEL.shapes, SHAPE, SHAPE)
    read = learn(loss, MODEL.init(0, 0.1), samples(manual), 0.01, READ)
    frozen = np.concatenate([v.ravel() for v in read.parameters.values()])

    factors = adaptation.init(ADAPTED, RANK)
    low = trace_model(adapted_loss, adaptation.adapter_shapes(ADAPTED, RANK), frozen.shape, SHAPE, SHAPE)
    batch = next(samples(described, frozen))
    slopes = lower(symad.gradient(low, list(factors)))(*factors.values(), *batch)
    of_A, of_B = (
        max(np.abs(g).max() for name, g in zip(factors, slopes, strict=True) if name.endswith(kind))
        for kind in ("_A", "_B")
    )
    print(f"at the start, with B = 0, the slopes of A are {of_A:g}, those of B up to {of_B:.2f}")

    adapted = learn(low, factors, samples(described, frozen), 0.02, ADAPT)
    whole = learn(loss, read.parameters, samples(described), 0.003, ADAPT)
    merged = adaptation.adapt(read.parameters, adapted.parameters, ALPHA)
    apart = low(*adapted.parameters.values(), *batch) - loss(*merged.values(), *batch[1:])
    print(f"merged into W, the loss changes by {abs(apart):.0e}")
    n = sympy.Symbol("n", integer=True, positive=True)
    scores = lower(trace_model(MODEL.scores, MODEL.shapes, (n, CONTEXT)))
    results = {
        "not adapted": (0, perplexity(scores, read.parameters, held_out)),
        f"rank {RANK}": (sum(v.size for v in factors.values()), perplexity(scores, merged, held_out)),
        "all parameters": (count(MODEL.shapes), perplexity(scores, whole.parameters, held_out)),
    }
    for name, (size, found) in results.items():
        print(f"{name:15s} {size:6d} numbers trained, held-out perplexity {found:.2f}")
    if options.out:
        picture(options.out, adapted.losses, whole.losses, results)


def picture(folder, adapted, whole, results) -> None:
    """The losses during adaptation, and its result."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    colors = ["0.7", "tab:blue", "tab:red"]
    for losses, color, name in zip((adapted, whole), colors[1:], list(results)[1:], strict=True):
        left.plot(losses, color=color, lw=0.5, alpha=0.4)
        smooth = np.convolve(losses, np.ones(20) / 20, "valid")
        left.plot(np.arange(19, ADAPT), smooth, color=color, label=f"{name}, mean of 20 steps")
    left.set(xlabel="step", ylabel="nats a letter", title="loss while adapting")
    left.legend(frameon=False)
    bars = right.bar(list(results), [found for _, found in results.values()], color=colors)
    right.bar_label(bars, [f"{size:,} numbers" for size, _ in results.values()])
    right.set(title="held-out text", ylabel="perplexity a letter")
    right.margins(y=0.15)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "low_rank.png", dpi=150)


if __name__ == "__main__":
    main()
