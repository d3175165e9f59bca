"""A model that spells words, then adapted, judged and steered: low-rank fine-tuning, DPO, GRPO.

The words are those of the Python manual (pydoc_data.topics). A transformer learns to spell them letter by
letter. It is fine-tuned with low-rank adapters on the words in "-ing". A reward model learns from pairs of
words ranked by the preference for vowels. DPO trains the speller on the same pairs. GRPO trains it on the
share of vowels in groups of its own words, with a small and a large weight on staying near the first model.
Run: python examples/sequences/14_alignment.py [--out DIR] for the picture.
"""

import argparse
import os
import re
from pathlib import Path
from pydoc_data.topics import topics

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products are fastest on one thread

import numpy as np
import sympy

from symad import value_and_gradient
from symad.models.layers.parameters import count, trace_model
from symad.models.sequences import alignment
from symad.models.transformers import adaptation
from symad.models.transformers.transformer import Transformer
from symad.numeric import lower
from symad.numeric.training.loop import train, warmup_cosine
from symad.numeric.training.optimizers import Adam, clip_gradients

LETTERS = "·abcdefghijklmnopqrstuvwxyz"  # the dot begins and ends a word
LENGTH, RANK, SCALE = 10, 4, 8.0
MODEL = Transformer(len(LETTERS), LENGTH, 32, 1, 4, hidden=96, norm="rms", block="swiglu", bias=False)
NAMES = list(MODEL.shapes)


def words():
    """The distinct words of three to nine letters, half of them, in random order."""
    found = set(re.findall(r"\b[a-z]{3,9}\b", " ".join(topics.values())))
    return np.random.default_rng(0).permutation(sorted(found))


def encode(chosen):
    """Input letters, next letters, and a mask of those that count: (N, LENGTH) each; dots enclose a word."""
    rows = np.zeros((len(chosen), LENGTH + 1), dtype=int)
    for row, word in zip(rows, chosen, strict=True):
        row[1 : 1 + len(word)] = [LETTERS.index(c) for c in word]
    mask = np.cumsum(rows[:, 1:] == 0, axis=1) <= 1  # up to the first dot
    return rows[:, :-1], rows[:, 1:], mask.astype(float)


def spell(rows):
    """Tokens after the first dot as words."""
    return ["".join(LETTERS[t] for t in row).split("·")[0] for row in rows]


def vowels(rows):
    """The share of vowels in each word (N,); 0 for a word without letters."""
    marks = np.isin(rows, [LETTERS.index(c) for c in "aeiou"])
    inside = np.cumsum(rows == 0, axis=1) == 0
    return (marks & inside).sum(axis=1) / np.maximum(inside.sum(axis=1), 1)


def samples(data, rng, size=64):
    """Endless batches."""
    while True:
        rows = rng.integers(0, len(data[0]), size)
        yield tuple(a[rows] for a in data)


def sft(p, tokens, targets, mask):
    """The loss of fine-tuning, which is also that of learning to spell."""
    return alignment.fine_tuning_loss(MODEL.scores(p, tokens), targets, mask)


def log_p(p, tokens, targets, mask):
    """log π of each word (N,)."""
    return alignment.sequence_log_probability(MODEL.scores(p, tokens), targets, mask)


def learn(data):
    """The first model."""
    shape = (64, LENGTH)
    graph = trace_model(sft, MODEL.shapes, shape, shape, shape)
    stream = samples(data, np.random.default_rng(1))
    options = {"clip": 1.0, "schedule": warmup_cosine(30, 400, 0.05), "dtype": "float32"}
    return train(graph, MODEL.init(0, 0.1), stream, Adam(0.01), 400, **options)


def adapt(p, data):
    """Adapters of all attention and block matrices, trained on words in -ing; parameters and losses."""
    matrices = {k: s for k, s in MODEL.shapes.items() if "_W_" in k}
    shapes = adaptation.adapter_shapes(matrices, RANK)

    def loss(q, tokens, targets, mask):
        return sft(adaptation.adapt({k: q[k] for k in NAMES}, q, SCALE), tokens, targets, mask)

    shape = (64, LENGTH)
    graph = trace_model(loss, shapes | MODEL.shapes, shape, shape, shape)
    stream = ((*p.values(), *batch) for batch in samples(data, np.random.default_rng(2)))
    start = adaptation.init(matrices, RANK, seed=1)
    result = train(graph, start, stream, Adam(0.01), 100, clip=1.0, dtype="float32")
    print(f"low-rank adapters train {count(shapes)} of {count(MODEL.shapes)} numbers")
    return adaptation.adapt(p, result.parameters, SCALE), result.losses


class Speller:
    """Draws words: the model's scores as generated code, one letter after another."""

    def __init__(self):
        n, B = sympy.symbols("n B", integer=True, positive=True)
        self.scores = lower(trace_model(MODEL.scores, MODEL.shapes, (B, n)), dtype="float32")

    def draw(self, p, size, rng):
        """(size, LENGTH) tokens after the dot."""
        rows = np.zeros((size, 1), dtype=int)
        for _ in range(LENGTH):
            z = self.scores(*p.values(), rows)[:, -1]
            noise = rng.gumbel(size=z.shape)  # the largest of z + noise is a draw from softmax(z)
            rows = np.hstack([rows, (z + noise).argmax(axis=1)[:, None]])
        return rows[:, 1:]


def pairs_of(rows, rng, steepness=12.0):
    """Pairs of rows, the preferred one first: w is preferred with probability σ(steepness (v_w − v_l))."""
    share = vowels(rows)
    first, second = rng.integers(0, len(rows), (2, 3000))
    swap = rng.uniform(size=3000) > 1 / (1 + np.exp(-steepness * (share[first] - share[second])))
    return np.where(swap, second, first), np.where(swap, first, second)


def reward_model(data, winners, losers):
    """A score for each letter, summed over the word: the reward that explains the choices best."""
    counts = np.stack([((data[1] == t) & (data[2] == 1)).sum(axis=1) for t in range(len(LETTERS))], axis=1)
    shares = counts[:, 1:] / np.maximum(counts[:, 1:].sum(axis=1, keepdims=True), 1)

    def loss(p, a, b):
        return alignment.reward_loss(a @ p["w"], b @ p["w"]) + 1e-4 * np.sum(p["w"] ** 2)

    shapes = {"w": (len(LETTERS) - 1,)}
    size = (3000, len(LETTERS) - 1)
    batch = shares[winners], shares[losers]
    stream = iter(lambda: batch, None)
    result = train(trace_model(loss, shapes, size, size), {"w": np.zeros(26)}, stream, Adam(0.3), 120)
    return result.parameters["w"]


def prefer(p, data, winners, losers, beta=0.1):
    """DPO on all parameters; returns parameters and losses."""
    shape, size = (32, LENGTH), 32

    def loss(q, x_w, y_w, m_w, x_l, y_l, m_l, ref_w, ref_l):
        return alignment.dpo_loss(log_p(q, x_w, y_w, m_w), log_p(q, x_l, y_l, m_l), ref_w, ref_l, beta)

    n = sympy.Symbol("n", integer=True, positive=True)
    before = lower(trace_model(log_p, MODEL.shapes, *[(n, LENGTH)] * 3), dtype="float32")(*p.values(), *data)
    graph = trace_model(loss, MODEL.shapes, *[shape] * 6, (size,), (size,))

    def stream(rng):
        while True:
            k = rng.integers(0, len(winners), size)
            w, b = winners[k], losers[k]
            yield (*(a[w] for a in data), *(a[b] for a in data), before[w], before[b])

    return train(graph, p, stream(np.random.default_rng(3)), Adam(0.002), 100, clip=1.0, dtype="float32")


def steer(p, speller, beta, rounds=30, groups=8, size=16):
    """GRPO on the share of vowels: parameters, and for each round the mean reward and KL(π ‖ π_ref)."""
    shape, grouped = (groups * size, LENGTH), (groups, size)

    def objective(q, tokens, targets, mask, old, ref, rewards):
        new = log_p(q, tokens, targets, mask).reshape(*grouped)
        return -alignment.grpo_objective(new, old, ref, rewards, beta=beta)

    graph = trace_model(objective, MODEL.shapes, *[shape] * 3, *[grouped] * 3)
    kernel = lower(value_and_gradient(graph, NAMES), dtype="float32")
    score = lower(trace_model(log_p, MODEL.shapes, *[shape] * 3), dtype="float32")
    rng, optimizer, first, curve = np.random.default_rng(4), Adam(0.002), p, []
    state = optimizer.start(p)
    for _ in range(rounds):
        rows = speller.draw(p, groups * size, rng)
        rewards = vowels(rows).reshape(grouped)
        batch = encode(spell(rows[:, :-1]))
        old, ref = (score(*q.values(), *batch).reshape(grouped) for q in (p, first))
        curve.append((rewards.mean(), np.mean(alignment.kl_estimate(old, ref))))
        for _ in range(2):  # only in the second step does π differ from π_old, so that the clip can act
            _, *slopes = kernel(*p.values(), *batch, old, ref, rewards)
            gradients = clip_gradients(dict(zip(NAMES, slopes, strict=True)), 1.0)
            p, state = optimizer.step(p, gradients, state, 1.0)
    return p, np.array(curve)


def main() -> None:
    """Run all parts, and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    known = words()
    data, rng, speller = encode(known), np.random.default_rng(5), Speller()
    first = learn(data)
    p, models = first.parameters, {}
    print(
        f"{len(known)} words; loss {first.losses[0]:.2f} -> {np.mean(first.losses[-30:]):.2f} nats a letter"
    )
    models["first"] = p

    ending = encode([w for w in known if w.endswith("ing")])
    models["low-rank, -ing"], adapted = adapt(p, ending)
    winners, losers = pairs_of(data[1], rng)
    w = reward_model(data, winners, losers)
    best = "".join(LETTERS[1:][k] for k in np.argsort(w)[::-1][:5])
    print(f"reward model: the five letters with the largest reward are {', '.join(sorted(best))}")
    steered = prefer(p, data, winners, losers)
    models["DPO"] = steered.parameters
    curves = {}
    for beta in (0.02, 1.0):
        models[f"GRPO, β = {beta:g}"], curves[beta] = steer(p, speller, beta)
    drawn = {name: speller.draw(q, 400, np.random.default_rng(6)) for name, q in models.items()}
    for name, rows in drawn.items():
        texts = spell(rows)
        ing = np.mean([t.endswith("ing") for t in texts])
        print(f"{name:16s} vowels {vowels(rows).mean():.2f}, -ing {ing:.2f}: {' '.join(texts[:6])}")
    if options.out:
        picture(options.out, adapted, w, drawn, curves)


def picture(folder, adapted, w, drawn, curves) -> None:
    """The adapters' loss, the learned rewards, the vowels in words, and reward against divergence."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplot_mosaic("AB;CD", figsize=(11, 7), layout="constrained")
    axes["A"].plot(adapted, color="tab:blue")
    axes["A"].set(title="low-rank fine-tuning on words in -ing", xlabel="step", ylabel="nats a letter")
    order = np.argsort(w)[::-1]
    letters = [LETTERS[1:][k] for k in order]
    colors = ["tab:red" if c in "aeiou" else "0.7" for c in letters]
    axes["B"].bar(letters, w[order], color=colors)
    axes["B"].set(title="reward model: what each letter is worth (vowels red)", ylabel="reward")
    edges = np.arange(-0.05, 1.06, 0.1)
    shown = [name for name in drawn if "-ing" not in name]
    for name, color in zip(shown, ["0.3", "tab:red", "tab:blue", "tab:green"], strict=True):
        shares = np.histogram(vowels(drawn[name]), edges)[0] / len(drawn[name])
        axes["C"].plot(edges[:-1] + 0.05, shares, "o-", color=color, label=name)
    axes["C"].set(title="vowels in 400 words of each model")
    axes["C"].set(xlabel="share of vowels", ylabel="share of words")
    axes["C"].legend(frameon=False)
    for (beta, curve), color in zip(curves.items(), ["tab:blue", "tab:green"], strict=True):
        axes["D"].plot(curve[:, 1], curve[:, 0], "o-", ms=3, lw=0.8, color=color, label=f"β = {beta:g}")
    axes["D"].set(
        title="GRPO: reward against distance from the first model", xlabel="KL(π ‖ π_ref), nats a word"
    )
    axes["D"].set_ylabel("share of vowels")
    axes["D"].legend(frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "alignment.png", dpi=150)


if __name__ == "__main__":
    main()
