"""What attention looks at: causality proved from the graph, and the maps of a model that reverses letters.

The graph of a derivative shows which inputs an output depends on, without any numbers. With −∞ added before
the softmax no position depends on a later one; with a mask multiplied after the softmax all do, through the
denominator.

A transformer of one layer then learns to read eight letters and to write them backwards. It is not told where
to look: the maps of its two heads show the diagonal that it found. The same model writes with a cache of keys
and values, letter by letter.
Run: python examples/sequences/18_attention_maps.py [--out DIR] for the picture.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products are fastest on one thread

import numpy as np

import symad
from symad.models.layers.losses import cross_entropy
from symad.models.layers.parameters import part, trace_model
from symad.models.transformers import attention
from symad.models.transformers.generation import generate
from symad.models.transformers.transformer import Transformer
from symad.numeric.training.loop import train, warmup_cosine
from symad.numeric.training.optimizers import Adam

LETTERS, LENGTH, BATCH, STEPS = 8, 8, 32, 400
TURN = LETTERS
"""The token that asks for the letters backwards."""

MODEL = Transformer(LETTERS + 1, 2 * LENGTH, 32, 1, 2, bias=False)


def patterns(n=12):
    """For three masks: which output positions (rows) depend on which input positions (columns)."""
    mask = attention.causal_mask(n)
    kinds = {
        "no mask": lambda X: attention.attention(X, X, X),
        "−∞ before the softmax": lambda X: attention.attention(X, X, X, mask),
        "zeros after the softmax": lambda X: attention.multiplicative_mask(X, X, mask),
    }
    found = {}
    for name, f in kinds.items():
        pattern = symad.jacobian_sparsity(symad.trace(f, [(n, 2)])).toarray()
        found[name] = seen = pattern.reshape(n, -1, n, 2).any(axis=(1, 3))
        later = int(np.triu(seen, 1).sum())
        print(f"{name}: in {later} of {n * (n - 1) // 2} pairs a position depends on a later one")
    return found


def sequences(rng):
    """Letters, the turn, and the letters backwards: tokens (B, 2·LENGTH) and their successors."""
    while True:
        letters = rng.integers(0, LETTERS, (BATCH, LENGTH))
        turn = np.full((BATCH, 1), TURN)
        whole = np.concatenate([letters, turn, letters[:, ::-1]], axis=1)
        yield whole[:, :-1], whole[:, 1:]


def backwards_loss(p, tokens, targets):
    """The cross-entropy after the turn only, since the letters before it are random."""
    return cross_entropy(MODEL.scores(p, tokens)[:, LENGTH:], targets[:, LENGTH:])


def maps(p, tokens):
    """The attention weights (heads, n, n) of the one layer."""
    layer = part(p, "layer1_")
    x = MODEL.embed(p, tokens, np.arange(len(tokens)))
    x = MODEL.normed(part(layer, "norm1_"), x)
    Q, K = (MODEL.heads_of.project(layer, name, x) for name in "QK")
    return attention.weights(Q, K, MODEL.visible(len(tokens)))


def main() -> None:
    """Prove, train, write, and look at the maps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    seen = patterns()
    shape = (BATCH, 2 * LENGTH)
    loss = trace_model(backwards_loss, MODEL.shapes, shape, shape)
    rng, pace = np.random.default_rng(0), warmup_cosine(20, STEPS, 0.05)
    trained = train(
        loss, MODEL.init(0, 0.1), sequences(rng), Adam(0.005), STEPS, clip=1.0, schedule=pace,
        dtype="float32",
    )  # fmt: skip
    print(f"loss {trained.losses[0]:.3f} -> {np.mean(trained.losses[-20:]):.4f} nats a letter")

    p = trained.parameters
    tokens, targets = next(sequences(np.random.default_rng(1)))
    right = np.argmax(MODEL.scores(p, tokens), axis=-1)[:, LENGTH:] == targets[:, LENGTH:]
    print(f"{right.mean():.1%} of the letters of {BATCH} new sequences are right")
    prompt = tokens[0, : LENGTH + 1]
    written = generate(MODEL, p, prompt, LENGTH, temperature=0)
    names = "abcdefgh|"
    print("".join(names[t] for t in prompt) + " -> " + "".join(names[t] for t in written))
    weights = maps(p, tokens[0])
    where = [int(row.argmax()) for row in weights.sum(axis=0)[LENGTH:]]
    print(f"the eight written letters look at the positions {where}")
    if options.out:
        picture(options.out, seen, weights, [names[t] for t in tokens[0]])


def picture(folder, seen, weights, labels) -> None:
    """Patterns of the Jacobian above, maps of the trained heads below."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplot_mosaic(
        "AABBCC;DDDEEE", figsize=(9, 8.6), height_ratios=(2, 3), layout="constrained"
    )
    for spot, (name, pattern) in zip("ABC", seen.items(), strict=True):
        axes[spot].imshow(np.where(pattern, 0.35, 1.0), cmap="gray", vmin=0, vmax=1)
        axes[spot].set(title=name, xlabel="input", xticks=[], yticks=[])
    axes["A"].set(ylabel="output (gray: sees the input)")
    for spot, head in zip("DE", weights, strict=True):
        axes[spot].imshow(head, cmap="Blues", vmin=0, vmax=1)
        axes[spot].axhline(LENGTH - 0.5, color="tab:red", lw=0.8)
        axes[spot].set(xticks=range(len(labels)), yticks=range(len(labels)), xlabel="looks at")
        axes[spot].set_xticklabels(labels)
        axes[spot].set_yticklabels(labels)
    axes["D"].set(title="what head 1 looks at")
    axes["D"].set(ylabel="read above the line, written below")
    axes["E"].set(title="what head 2 looks at")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "attention_maps.png", dpi=150)


if __name__ == "__main__":
    main()
