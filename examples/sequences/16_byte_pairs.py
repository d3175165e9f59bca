"""Byte pairs are learned from the Python manual, and a neural model reads the tokens.

Data: the help texts that ship with Python (pydoc_data.topics), in lower case; paragraphs that occur twice are
used once, and every tenth is held out. The most frequent pair of neighbors becomes a new token, again and
again. A neural model of the last six tokens (shared embedding, one hidden layer) then competes with n-grams
of the same context and of shorter ones, smoothed by still shorter ones. Both are measured in bits per letter,
which can be compared between tokens of different lengths.
Run: python examples/sequences/16_byte_pairs.py [--out DIR] for the picture.
"""

import argparse
import os
import re
from pathlib import Path
from pydoc_data.topics import topics

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products are fastest on one thread

import numpy as np

from symad.models.layers.losses import log_likelihoods
from symad.models.layers.parameters import count, trace_model
from symad.models.sequences import ngram, tokenization
from symad.models.sequences.neural_ar import NeuralAR, contexts
from symad.numeric.training.loop import batches, train, warmup_cosine
from symad.numeric.training.optimizers import Adam

LETTERS, SIZE, CONTEXT, BATCH, STEPS = 120_000, 160, 6, 128, 1500


def manual():
    """The text to read and the held-out text: letters and full stops; everything else becomes one space."""
    whole = "\n\n".join(topics[name] for name in sorted(topics)).lower()
    paragraphs = [re.sub(r"[^a-z.,]+", " ", part) for part in re.split(r"\n\s*\n", whole)]
    distinct = list(dict.fromkeys(part for part in paragraphs if len(part) > 100))
    return " ".join(p for k, p in enumerate(distinct) if k % 10)[:LETTERS], " ".join(distinct[::10])[:20_000]


def shortened(tokenizer, text):
    """Letters per token after each merge."""
    tokens = tokenization.Tokenizer(tokenizer.characters, ()).encode(text)
    found = [1.0]
    for number, pair in enumerate(tokenizer.merges):
        tokens = tokenization.merge(tokens, pair, len(tokenizer.characters) + number)
        found.append(len(text) / len(tokens))
    return found


def neural(vocabulary, tokens, test):
    """The losses of a model's training, and −Σ log₂ p̂ of the held-out tokens."""
    model = NeuralAR(vocabulary, CONTEXT, 24, 200)
    loss = trace_model(model.loss, model.shapes, (BATCH, CONTEXT), (BATCH,))
    start = model.init(0)
    start["W2"] *= 0.3  # so that all tokens are about equally likely at first
    stream = batches(*contexts(tokens, CONTEXT), size=BATCH)
    pace = warmup_cosine(30, STEPS, 0.02)
    trained = train(loss, start, stream, Adam(0.006, beta2=0.99), STEPS, schedule=pace, dtype="float32")
    before, targets = contexts(test, CONTEXT)
    logs = log_likelihoods(model.scores(trained.parameters, before), targets)
    first, last = trained.losses[0], np.mean(trained.losses[-50:])
    print(f"{count(model.shapes)} parameters: loss {first:.2f} -> {last:.2f} nats a token")
    return trained.losses, -float(logs.sum()) / np.log(2)


def main() -> None:
    """Learn the tokens, count, train, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    text, held_out = manual()
    tokenizer = tokenization.learn(text[:30_000], SIZE)
    texts, first = tokenizer.texts, len(tokenizer.characters)
    print("first merges: " + ", ".join(map(repr, texts[first : first + 12])))
    print("longest tokens: " + ", ".join(map(repr, sorted(texts, key=len)[:-8:-1])))
    tokens, test = (np.array(tokenizer.encode(t)) for t in (text, held_out))
    assert tokenizer.decode(test) == held_out
    print(f"{len(text)} letters are {len(tokens)} tokens: {len(text) / len(tokens):.2f} letters a token")

    losses, found = neural(tokenizer.size, tokens, test)
    found /= len(held_out)
    counts = ngram.fit(tokens, CONTEXT + 1, tokenizer.size, 2.0)
    scale = (len(test) - CONTEXT) / len(held_out)  # for both models the first tokens are context only
    counted = {
        n: np.log2(counts.shorter(n).perplexity(test, CONTEXT)) * scale for n in range(2, CONTEXT + 2)
    }
    same, best = counted[CONTEXT + 1], min(counted, key=counted.get)
    print(f"held-out bits per letter: neural {found:.3f}, {CONTEXT + 1}-grams (same context) {same:.3f}")
    print(f"the best n-grams here are {best}-grams with {counted[best]:.3f}")
    if options.out:
        picture(options.out, shortened(tokenizer, text[:30_000]), losses, found, counted)


def picture(folder, lengths, losses, found, counted) -> None:
    """The effect of merges, the training loss, and the bits per letter of both models."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplot_mosaic("AB;CC", figsize=(9, 7), layout="constrained")
    left, middle, right = (axes[name] for name in "ABC")
    left.plot(np.arange(len(lengths)) + SIZE - len(lengths) + 1, lengths, color="tab:green")
    left.set(xlabel="tokens in the vocabulary", title="letters in a token, on average")
    middle.plot(losses, color="0.8", lw=0.6)
    middle.plot(np.arange(49, len(losses)), np.convolve(losses, np.ones(50) / 50, "valid"), color="tab:red")
    middle.set(xlabel="step", title="training loss (nats a token)")
    right.bar([f"{n - 1}" for n in counted], counted.values(), color="0.7", label="n-grams")
    right.axhline(found, color="tab:red", label=f"neural, {CONTEXT} tokens of context")
    right.set(xlabel="tokens of context", title="held-out bits a letter")
    right.set_ylim(0, 1.35 * max(*counted.values(), found))
    right.legend(frameon=False, loc="upper center")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "byte_pairs.png", dpi=150)


if __name__ == "__main__":
    main()
