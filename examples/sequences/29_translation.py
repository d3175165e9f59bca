"""Numbers translated into words by two transformers, hidden letters filled in by one.

347 becomes "three hundred and forty seven": an encoder reads digits, a decoder writes words. They learn from
half of the numbers below 1000 and are asked for the others. An encoder learns the words of the Python manual
(pydoc_data.topics) with some letters hidden, and is asked for one hidden letter of words it has not read;
it sees both sides, so it should beat guesses from the letter before.
Run: python examples/sequences/29_translation.py [--out DIR] for the picture.
"""

import argparse
import os
import re
from pathlib import Path
from pydoc_data.topics import topics

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # products this small run fastest on one thread

import numpy as np

from symad import jacobian, trace
from symad.models.layers.parameters import trace_model
from symad.models.sequences import ngram
from symad.models.transformers.encoder_decoder_transformer import EncoderDecoderTransformer
from symad.models.transformers.encoder_only import Encoder, corrupt
from symad.models.transformers.transformer import Transformer
from symad.numeric.training.loop import batches, train, warmup_cosine
from symad.numeric.training.optimizers import Adam

ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"]
ONES += ["twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
WORDS = ["·", *ONES, *TENS, "hundred", "and"]  # the dot begins and ends a number
LENGTH = 6
READER = EncoderDecoderTransformer(10, len(WORDS), LENGTH, 32, 1, 4, hidden=64)
LETTERS, LONGEST, HIDDEN = "·abcdefghijklmnopqrstuvwxyz", 10, 27


def spelled(n):
    """The words of a number below 1000."""
    found = []
    if n >= 100:
        found += [ONES[n // 100], "hundred"]
        n %= 100
        if n:
            found.append("and")
        else:
            return found
    if n >= 20:
        found.append(TENS[n // 10 - 2])
        n %= 10
        return [*found, ONES[n]] if n else found
    return [*found, ONES[n]]


def number_data(numbers):
    """Digits (N, 3), the words before each word, and the words (N, 6), dots at the end."""
    rows = np.zeros((len(numbers), LENGTH + 1), dtype=int)
    for row, n in zip(rows, numbers, strict=True):
        words = [WORDS.index(w) for w in spelled(n)]
        row[1 : 1 + len(words)] = words
    digits = np.array([[n // 100, n // 10 % 10, n % 10] for n in numbers])
    return digits, rows[:, :-1], rows[:, 1:]


def translate(rng):
    """Train on half of the numbers; the share of the others that is right in all words."""
    order = rng.permutation(1000)
    data, asked = number_data(order[:500]), order[500:]
    shapes = (64, 3), (64, LENGTH), (64, LENGTH)
    graph = trace_model(READER.loss, READER.shapes, *shapes)
    options = {"clip": 1.0, "schedule": warmup_cosine(20, 350, 0.05), "dtype": "float32"}
    result = train(graph, READER.init(0, 0.2), batches(*data, size=64), Adam(0.008), 350, **options)
    digits, _, wanted = number_data(asked)
    found = READER.translate(result.parameters, digits, LENGTH)
    right = (found == wanted).all(axis=1)
    print(f"numbers it has not read: {right.mean():.1%} right in all words")
    for n, row in list(zip(asked, found, strict=True))[:3]:
        print(f"  {n}: {' '.join(WORDS[t] for t in row if t)}")
    if not right.all():
        wrong = np.flatnonzero(~right)[0]
        print(f"  a wrong one, {asked[wrong]}: {' '.join(WORDS[t] for t in found[wrong] if t)}")
    return result.parameters


def depends(p, n):
    """|∂(score of each word)/∂(vector of each digit)|, every row divided by its sum: (words, digits)."""
    digits, before, after = number_data([n])
    count = len(spelled(n))
    chosen = np.eye(len(WORDS))[after[0, :count]]

    rows = p["encoder_E"][digits[0]]  # the vectors of the three digits, in a table of their own
    rest = np.zeros((10 - len(rows), rows.shape[1]))

    def scores(rows):
        table = p | {"encoder_E": np.concatenate([rows, rest])}
        return np.sum(READER.scores(table, np.arange(3), before[0])[:count] * chosen, axis=1)

    slopes = jacobian(trace(scores, [rows.shape]))(rows).reshape(count, 3, -1)
    sizes = np.linalg.norm(slopes, axis=2)
    return sizes / sizes.sum(axis=1, keepdims=True), spelled(n), digits[0]


def fill(rng):
    """A masked letter model: accuracy on one hidden letter of each new word, by its place; a bigram's too."""
    found = sorted(set(re.findall(r"\b[a-z]{4,9}\b", " ".join(topics.values()))))
    rows = np.zeros((len(found), LONGEST), dtype=int)
    for row, word in zip(rows, rng.permutation(found), strict=True):
        row[: len(word)] = [LETTERS.index(c) for c in word]
    read, asked = rows[:-300], rows[-300:]
    body = Transformer(28, LONGEST, 48, 1, 4, hidden=128, mask="none", tied=False)
    model = Encoder(body)

    def stream():
        while True:
            batch = read[rng.integers(0, len(read), 64)]
            corrupted, chosen = corrupt(batch, 27, HIDDEN, rng, rate=0.2)
            yield corrupted, batch, chosen * (batch > 0) + 1e-3 * chosen  # the ends of words count little

    graph = trace_model(model.masked_loss, model.shapes, *[(64, LONGEST)] * 3)
    options = {"clip": 1.0, "schedule": warmup_cosine(20, 500, 0.05), "dtype": "float32"}
    result = train(graph, model.init(0, 0.1), stream(), Adam(0.005), 500, **options)
    lengths = (asked > 0).sum(axis=1)
    places = rng.integers(0, lengths)
    hidden, each = asked.copy(), np.arange(len(asked))
    hidden[each, places] = HIDDEN
    guess = model.scores(result.parameters, hidden)[each, places, :27].argmax(axis=1)
    truth = asked[each, places]
    counts = ngram.fit(np.hstack([np.zeros((len(read), 1), int), read]).ravel(), 2, 27, 1.0)
    before = [asked[k, place - 1] if place else 0 for k, place in enumerate(places)]
    pairs = np.array([counts.probabilities([t])[1:].argmax() + 1 for t in before])
    own, baseline = np.mean(guess == truth), np.mean(pairs == truth)
    print(f"one hidden letter: {own:.1%} right, by the letter before {baseline:.1%}")
    return hidden, guess, truth, places, result.losses


def main() -> None:
    """Train both models, and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    p = translate(rng)
    filled = fill(rng)
    if options.out:
        picture(options.out, p, filled)


def picture(folder, p, filled) -> None:
    """Which digits the words of four numbers depend on, and words with the letter that was filled in."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplot_mosaic(
        "abcd;eeee", figsize=(11, 6), layout="constrained", height_ratios=[1.3, 1]
    )
    for key, n in zip("abcd", (347, 819, 560, 72), strict=True):
        map_, words, digits = depends(p, n)
        axes[key].imshow(map_, cmap="Reds", vmin=0, vmax=1)
        axes[key].set_xticks(range(3), digits, fontsize=13)
        axes[key].set_yticks(range(len(words)), words)
        axes[key].set_title(f"{n}: |∂ word / ∂ digit|", fontsize=10)
    hidden, guess, truth, places, _ = filled
    at = axes["e"]
    at.axis("off")
    at.set_title(
        "hidden letters of words it has not read: filled in right (green) or wrong (red, the truth below)"
    )
    for k in range(32):
        x, y = k % 8 / 8, 0.86 - 0.25 * (k // 8)
        word = "".join(LETTERS[t] if t != HIDDEN else LETTERS[guess[k]] for t in hidden[k] if t)
        for j, letter in enumerate(word):
            here = j == places[k]
            color = ("tab:green" if guess[k] == truth[k] else "tab:red") if here else "0.45"
            at.text(x + 0.0115 * j, y, letter, color=color, family="monospace", fontsize=12,
                    weight="bold" if here else "normal")  # fmt: skip
            if here and guess[k] != truth[k]:
                at.text(
                    x + 0.0115 * j, y - 0.1, LETTERS[truth[k]], color="0.6", family="monospace", fontsize=9
                )
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "translation.png", dpi=150)


if __name__ == "__main__":
    main()
