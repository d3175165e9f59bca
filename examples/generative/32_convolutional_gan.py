"""A convolutional generator learns to write digits against a convolutional discriminator.

Data: scikit-learn's 1797 digits of 8×8 pixels. The generator consists of transposed convolutions, the
pullbacks of the discriminator's. Its images are compared with the data by pixel, and with the nearest digit
of the data: they should be neither far from all digits nor copies of one.
Run: python examples/generative/32_convolutional_gan.py [--out DIR] for the picture.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products are fastest on one thread

import numpy as np
from sklearn.datasets import load_digits

from symad.models.layers.convolutional import Adversaries
from symad.models.layers.parameters import count, trace_model
from symad.numeric.training.adversarial import Player, train_in_turn
from symad.numeric.training.optimizers import Adam

CODE, BATCH = 10, 32
PAIR = Adversaries(8, 1, 16, CODE)


def judge(p, real, z):
    """The discriminator's loss."""
    return PAIR.discriminator_loss(p, real, PAIR.generate(p, z))


def deceive(p, z):
    """The generator's loss."""
    return PAIR.generator_loss(p, p, z)


def play(p, x, rounds, seed):
    """Some rounds of the game; returns smoothed parameters, parameters, and both losses."""
    rng = np.random.default_rng(seed)

    def images():
        while True:
            yield x[rng.integers(0, len(x), BATCH)], rng.normal(size=(BATCH, CODE))

    def codes():
        while True:
            yield (rng.normal(size=(BATCH, CODE)),)

    losses = (
        trace_model(judge, PAIR.shapes, (BATCH, 8, 8, 1), (BATCH, CODE)),
        trace_model(deceive, PAIR.shapes, (BATCH, CODE)),
    )
    sides = PAIR.discriminator_shapes, PAIR.generator_shapes
    players = [Player(g, list(s), Adam(0.004, beta1=0.5)) for g, s in zip(losses, sides, strict=True)]
    played = train_in_turn(players, p, [images(), codes()], rounds, average=0.97, dtype="float32")
    return played.averages, played.parameters, played.losses


def main() -> None:
    """Play, compare, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    parser.add_argument("--rounds", type=int, default=500)
    options = parser.parse_args()
    x = load_digits().images[..., None] / 16
    sizes = [count(s) for s in (PAIR.generator_shapes, PAIR.discriminator_shapes)]
    print(f"{sizes[0]} parameters write, {sizes[1]} judge")
    z = np.random.default_rng(7).normal(size=(500, CODE))
    start = PAIR.init(0)
    early, p, first = play(start, x, 100, 1)
    late, _, second = play(p, x, options.rounds - 100, 2)
    stages = {"at the start": start, "after 100 rounds": early, f"after {options.rounds}": late}
    made = {name: PAIR.generate(q, z) for name, q in stages.items()}
    for name, images in made.items():
        mean = np.abs(images.mean(axis=0) - x.mean(axis=0)).mean()
        spread = images.std(axis=0).mean() / x.std(axis=0).mean()
        print(f"{name:16s} mean differs by {mean:.3f} a pixel, spread {spread:.2f} of the data's")
    last = list(made.values())[-1].reshape(500, 64)
    data = x.reshape(-1, 64)
    distance = np.sqrt(((last[:, None] - data) ** 2).sum(axis=-1).min(axis=1))
    own = np.sqrt(((data[:500, None] - data[500:]) ** 2).sum(axis=-1).min(axis=1))
    print(
        f"distance to the nearest digit: {np.median(distance):.2f}; from digit to digit {np.median(own):.2f}"
    )
    if options.out:
        losses = [a + b for a, b in zip(first, second, strict=True)]
        picture(options.out, x, made, late, losses)


def picture(folder, x, made, p, losses) -> None:
    """Samples of each stage from the same codes, a path between two codes, and the losses."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(6, 1, figsize=(9, 6.6), layout="constrained", height_ratios=[1] * 5 + [2.2])
    rng = np.random.default_rng(5)
    ends = rng.normal(size=(2, CODE))
    steps = np.linspace(0, 1, 18)[:, None]
    # The path is on a sphere, so that its codes are as likely as its ends.
    angle = np.arccos(ends[0] @ ends[1] / np.prod(np.linalg.norm(ends, axis=1)))
    between = (np.sin((1 - steps) * angle) * ends[0] + np.sin(steps * angle) * ends[1]) / np.sin(angle)
    rows = {"data": x[rng.integers(0, len(x), 18)]} | {k: v[:18] for k, v in made.items()}
    rows["from one code to another"] = PAIR.generate(p, between)
    for at, (name, images) in zip(axes, rows.items(), strict=False):
        strip = np.hstack([np.pad(image[..., 0], 1, constant_values=0.15) for image in images])
        at.imshow(strip, cmap="Greys", vmin=0, vmax=1)
        at.axis("off")
        at.set_title(name, fontsize=9, loc="left", pad=2)
    for values, name, color in zip(
        losses, ["discriminator", "generator"], ["tab:blue", "tab:red"], strict=True
    ):
        smooth = np.convolve(values, np.ones(10) / 10, "valid")
        axes[5].plot(np.arange(9, len(values)), smooth, color=color, label=name)
    axes[5].axhline(2 * np.log(2), color="tab:blue", lw=0.6, ls=":")
    axes[5].axhline(np.log(2), color="tab:red", lw=0.6, ls=":")
    axes[5].set(xlabel="round", ylabel="loss, mean of 10 rounds", ylim=(0, 4.5))
    axes[5].legend(
        frameon=False, ncols=2, title="dotted: where the two cannot be told apart", title_fontsize=8
    )
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "convolutional_gan.png", dpi=150)


if __name__ == "__main__":
    main()
