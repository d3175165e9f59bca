"""A variational autoencoder of handwritten digits: the bound, samples, and a path between two digits.

Data: scikit-learn's 1797 digits of 8×8 pixels; 297 are held out. The bound is compared with the best
model of independent pixels.
Run: python examples/generative/20_vae_digits.py [--out DIR] for the pictures.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products are fastest on one thread

import numpy as np
from scipy.special import xlogy
from sklearn.datasets import load_digits

from symad.models.generative.vae import VAE
from symad.numeric.training.loop import train, warmup_cosine
from symad.numeric.training.optimizers import Adam

STEPS, BATCH, CODE = 3000, 100, 8


def main() -> None:
    """Train, measure on held-out digits, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the pictures")
    options = parser.parse_args()
    table = load_digits()
    order = np.random.default_rng(0).permutation(len(table.data))
    pixels, classes = table.data[order] / 16, np.eye(10)[table.target[order]]
    x, c, held_x, held_c = pixels[:1500], classes[:1500], pixels[1500:], classes[1500:]

    model = VAE(64, 128, CODE, classes=10)
    rng = np.random.default_rng(1)

    def stream():
        while True:
            rows = rng.integers(0, len(x), BATCH)
            yield x[rows], rng.standard_normal((BATCH, CODE)), c[rows]

    result = train(
        model.graph(BATCH), model.init(0), stream(), Adam(3e-3), STEPS, schedule=warmup_cosine(100, STEPS)
    )
    p = result.parameters
    bound = np.mean(
        [model.loss(p, held_x, rng.standard_normal((len(held_x), CODE)), held_c) for _ in range(20)]
    )
    mean = np.clip(x.mean(axis=0), 1e-3, 1 - 1e-3)
    independent = -np.mean(np.sum(held_x * np.log(mean) + (1 - held_x) * np.log(1 - mean), axis=1))
    entropy = -np.mean(np.sum(xlogy(held_x, held_x) + xlogy(1 - held_x, 1 - held_x), axis=1))
    print(
        f"training loss {np.mean(result.losses[:20]):.2f} -> {np.mean(result.losses[-100:]):.2f} nats a digit"
    )
    print(f"held-out bound {bound:.2f} nats; independent pixels {independent:.2f}; floor {entropy:.2f}")
    assert bound < independent
    if options.out:
        pictures(options.out, model, p, held_x, held_c)


def pictures(folder: Path, model: VAE, p: dict, x: np.ndarray, c: np.ndarray) -> None:
    """Samples of each class in rows, and a path from one held-out digit to another."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    wanted = np.repeat(np.eye(10), 12, axis=0)
    samples = model.sample(p, 120, seed=2, c=wanted)
    first, last = 0, int(np.argmax(c.argmax(1) != c[0].argmax()))
    ends = model.encode(p, x[[first, last]], c[[first, last]])[0]
    weights = np.linspace(0, 1, 12)[:, None]
    codes = (1 - weights) * ends[0] + weights * ends[1]
    mixed = (1 - weights) * c[first] + weights * c[last]
    walk = model.decode(p, codes, mixed)
    figure, axes = plt.subplots(11, 12, figsize=(8, 7.6), layout="constrained")
    for axis, image in zip(axes.ravel(), [*samples, *walk], strict=True):
        axis.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        axis.axis("off")
    figure.suptitle("each row a class; the last row a walk between two digits")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "vae_digits.png", dpi=140)


if __name__ == "__main__":
    main()
