"""Autoencoders of handwritten digits: the linear one is PCA; a deep one is better with the same code size.

Data: scikit-learn's 1797 digits of 8×8 pixels; 497 are held out. The error is that of a held-out digit's
reconstruction, ½|x − x̂|², and is compared with the error of the mean digit and of principal components. A
straight line between two codes is compared with a line between the pixels by the distance from real digits.
Run: python examples/generative/26_autoencoder.py [--out DIR] for the picture.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products are fastest on one thread

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from symad.models.generative.autoencoder import Autoencoder, LinearAutoencoder
from symad.numeric.training.loop import batches, train, warmup_cosine
from symad.numeric.training.optimizers import Adam

BATCH, STEPS = 100, 1600


def fit(model, x: np.ndarray, rate: float, steps: int = STEPS) -> dict:
    """The parameters after training by Adam."""
    made = train(
        model.graph(BATCH),
        model.init(0),
        batches(x, size=BATCH),
        Adam(rate),
        steps,
        schedule=warmup_cosine(100, steps),
    )
    return made.parameters


def main() -> None:
    """Train, compare with PCA, measure lines between digits, and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    table = load_digits()
    order = np.random.default_rng(0).permutation(len(table.data))
    pixels, labels = table.data[order] / 16, table.target[order]
    mean = pixels[:1300].mean(axis=0)
    x, held = pixels[:1300] - mean, pixels[1300:] - mean
    _, _, axes = np.linalg.svd(x, full_matrices=False)

    linear = LinearAutoencoder(64, 8)
    p = fit(linear, x, 1e-2)
    best = linear.loss({"W_e": axes[:8], "W_d": axes[:8].T}, x)
    space = np.linalg.svd(axes[:8] @ np.linalg.qr(p["W_d"])[0], compute_uv=False)
    print(f"linear code of 8: loss {linear.loss(p, x):.5f} on the training digits, PCA {best:.5f}")
    print(f"its decoder spans the principal space: the cosines of the angles are {space.min():.5f} or more")
    assert best <= linear.loss(p, x) < 1.01 * best

    print(f"the mean digit: held-out error {(held**2).sum() / (2 * len(held)):.3f}")
    found = {}
    for code in (2, 8):
        deep = Autoencoder((64, 96, 48, code))
        found[code] = deep, fit(deep, x, 4e-3)
        ours = deep.loss(found[code][1], held)
        pca = LinearAutoencoder(64, code).loss({"W_e": axes[:code], "W_d": axes[:code].T}, held)
        print(f"code of {code}: held-out error {ours:.3f} deep, {pca:.3f} by {code} principal components")
        assert ours < pca
    deep, p2 = found[2]
    codes = deep.encode(p2, x), deep.encode(p2, held)
    planes = codes, (x @ axes[:2].T, held @ axes[:2].T)
    scores = [KNeighborsClassifier(5).fit(a, labels[:1300]).score(b, labels[1300:]) for a, b in planes]
    print(
        f"codes of two numbers classify {scores[0]:.0%} of held-out digits; two components, {scores[1]:.0%}"
    )

    model, p8 = found[8]
    rng, nearest = np.random.default_rng(2), []
    pairs = rng.integers(0, len(held), (200, 2))
    pairs = pairs[labels[1300:][pairs[:, 0]] != labels[1300:][pairs[:, 1]]]
    for a, b in held[pairs]:
        middles = np.stack([model.between(p8, a, b, 3)[1], (a + b) / 2])
        nearest.append(cdist(middles, x).min(axis=1))
    codewise, pixelwise = np.mean(nearest, axis=0)
    print(
        f"half-way between digits of two classes the nearest real digit is {codewise:.2f} away by codes, "
        f"{pixelwise:.2f} by pixels (digit to digit: {np.sort(cdist(held, x), axis=1)[:, 0].mean():.2f})"
    )
    if options.out:
        picture(options.out, found, mean, held, labels, codes[0])


def picture(folder: Path, found: dict, mean, held, labels, codes) -> None:
    """Reconstructions, paths between digits, the plane of codes with its classes, and its decoded digits."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    model, p = found[8]
    first = [int(np.argmax(labels[1300:] == k)) for k in range(10)]
    made = model.decode(p, model.encode(p, held[first]))
    walks = [
        model.between(p, held[first[a]], held[first[b]], 10) for a, b in ((1, 7), (3, 8), (4, 9), (0, 6))
    ]
    images = np.stack([held[first], made, *walks]) + mean
    deep, p2 = found[2]
    low, high = np.quantile(codes, [0.02, 0.98], axis=0)
    across, up = np.meshgrid(np.linspace(low[0], high[0], 15), np.linspace(high[1], low[1], 15))
    plane = deep.decode(p2, np.stack([across, up], axis=-1).reshape(-1, 2)) + mean
    figure, panels = plt.subplot_mosaic("AA;BC", figsize=(9, 9), height_ratios=(6, 7), layout="constrained")
    axes = list(panels.values())
    axes[0].imshow(tiled(images), cmap="gray_r", vmin=0, vmax=1)
    axes[0].set_title("held-out digits, their codes of 8 decoded, four walks")
    dots = axes[1].scatter(*codes.T, c=labels[: len(codes)], cmap="tab10", s=5, vmin=-0.5, vmax=9.5)
    axes[1].set_title("codes of 2, by class")
    axes[1].set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    figure.colorbar(dots, ax=axes[1], ticks=range(10))
    axes[2].imshow(tiled(plane.reshape(15, 15, 64)), cmap="gray_r", vmin=0, vmax=1)
    axes[2].set_title("the same plane, decoded")
    for axis in axes[::2]:
        axis.axis("off")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "autoencoder.png", dpi=140)


def tiled(images: np.ndarray) -> np.ndarray:
    """Images (rows, columns, 64) side by side, with a frame of one pixel."""
    rows, columns = images.shape[:2]
    framed = np.pad(images.reshape(rows, columns, 8, 8), ((0, 0), (0, 0), (1, 1), (1, 1)))
    return framed.transpose(0, 2, 1, 3).reshape(10 * rows, 10 * columns)


if __name__ == "__main__":
    main()
