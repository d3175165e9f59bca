"""A transformer reads the Python manual letter by letter, then writes.

Data: the help texts that ship with Python (pydoc_data.topics), in lower case. Topics repeat each other, so
that paragraphs which occur twice are used once; every tenth is held out. The baseline is counting: n-grams
with the same context of 16 letters, and with shorter contexts, smoothed by still shorter ones. In a few
seconds of training, counts of short contexts are hard to beat; those of all 16 letters are not.
Run: python examples/sequences/11_character_transformer.py [--out DIR] [--steps N]
"""

import argparse
import os
import re
from pathlib import Path
from pydoc_data.topics import topics

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products are fastest on one thread

import numpy as np
import sympy

from symad.models.layers.losses import log_likelihoods
from symad.models.layers.parameters import count, trace_model
from symad.models.sequences import ngram
from symad.models.transformers.generation import sample
from symad.models.transformers.transformer import Transformer
from symad.numeric import lower
from symad.numeric.training.loop import train, warmup_cosine
from symad.numeric.training.optimizers import Adam

CONTEXT, BATCH, LETTERS = 16, 32, 120_000


def manual():
    """The text to read and the held-out text: letters and full stops; everything else becomes one space."""
    whole = "\n\n".join(topics[name] for name in sorted(topics)).lower()
    paragraphs = [re.sub(r"[^a-z.,]+", " ", part) for part in re.split(r"\n\s*\n", whole)]
    distinct = list(dict.fromkeys(part for part in paragraphs if len(part) > 100))
    return " ".join(p for k, p in enumerate(distinct) if k % 10)[:LETTERS], " ".join(distinct[::10])


def samples(tokens, rng):
    """Batches of random pieces of the text: letters, and the letters that follow them."""
    while True:
        starts = rng.integers(0, len(tokens) - CONTEXT - 1, BATCH)
        pieces = tokens[starts[:, None] + np.arange(CONTEXT + 1)]
        yield pieces[:, :-1], pieces[:, 1:]


def perplexity(model, p, tokens):
    """exp of the mean of −log p(letter | the 16 before it)."""
    windows = np.lib.stride_tricks.sliding_window_view(tokens[:-1], CONTEXT)
    n = sympy.Symbol("n", integer=True, positive=True)
    scores = lower(trace_model(model.scores, model.shapes, (n, CONTEXT)))
    logs = [
        log_likelihoods(scores(*p.values(), windows[k : k + 500])[:, -1], tokens[CONTEXT:][k : k + 500])
        for k in range(0, len(windows), 500)
    ]
    return float(np.exp(-np.concatenate(logs).mean()))


def write(model, p, prompt, length, temperature):
    """The prompt, followed by letters drawn one by one, each from the 16 before it."""
    tokens, rng = list(prompt), np.random.default_rng(0)
    for _ in range(length):
        scores = model.scores(p, np.array(tokens[-CONTEXT:]))[-1]
        tokens.append(sample(scores, rng, temperature, top=10))
    return tokens


def main() -> None:
    """Train, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    parser.add_argument("--steps", type=int, default=700)
    options = parser.parse_args()
    text, held_out = manual()
    alphabet = sorted(set(text))
    tokens, test = (np.array([alphabet.index(c) for c in t]) for t in (text, held_out[:3000]))

    switches = {"position": "rotary", "norm": "rms", "block": "swiglu", "bias": False}
    model = Transformer(len(alphabet), CONTEXT, 64, 1, 4, hidden=192, **switches)
    loss = trace_model(model.loss, model.shapes, (BATCH, CONTEXT), (BATCH, CONTEXT))
    print(f"{len(text)} letters to read, {len(held_out)} held out; {count(model.shapes)} parameters")
    result = train(
        loss,
        model.init(0, 0.1),
        samples(tokens, np.random.default_rng(0)),
        Adam(0.01, beta2=0.99),
        options.steps,
        clip=1.0,
        schedule=warmup_cosine(30, options.steps, 0.1),
        dtype="float32",
    )
    print(f"loss {result.losses[0]:.2f} -> {np.mean(result.losses[-30:]):.2f} nats a letter")

    found = perplexity(model, result.parameters, test)
    counts = ngram.fit(tokens, CONTEXT + 1, len(alphabet), 2.0)
    orders = (2, 3, 4, 5, CONTEXT + 1)
    counted = {n: counts.shorter(n).perplexity(test, CONTEXT) for n in orders}
    same, best = counted[CONTEXT + 1], min(counted, key=counted.get)
    print(f"held-out perplexity: transformer {found:.2f}, {CONTEXT + 1}-grams (same context) {same:.2f}")
    print(f"the best n-grams here are {best}-grams with {counted[best]:.2f}")
    prompt = [alphabet.index(c) for c in "the value of the"]
    for temperature in (0.0, 0.7):
        written = write(model, result.parameters, prompt, 90, temperature)
        print(f"temperature {temperature}: " + "".join(alphabet[t] for t in written))
    if options.out:
        picture(options.out, result.losses, found, counted)


def picture(folder, losses, found, counted) -> None:
    """The falling loss, and perplexities of both."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    smooth = np.convolve(losses, np.ones(20) / 20, "valid")
    left.plot(losses, color="0.8", lw=0.6)
    left.plot(np.arange(len(smooth)) + 19, smooth, color="tab:red")
    left.set(xlabel="step", ylabel="nats a letter", title="training loss")
    names = [f"{n - 1}" for n in counted]
    right.bar(names, counted.values(), color="0.7", label="n-grams")
    right.axhline(found, color="tab:red", label=f"transformer, {CONTEXT} letters")
    right.set(xlabel="letters of context", title="held-out perplexity", ylim=(0, 1.3 * max(counted.values())))
    right.legend(frameon=False, loc="upper right")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "character_transformer.png", dpi=150)


if __name__ == "__main__":
    main()
