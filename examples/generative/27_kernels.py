"""Kernels on handwritten digits: matrices, features, regression, a shape from its matrix, a two-sample test.

A kernel is a SymPy expression; so are sums and products of kernels. Data: scikit-learn's 1797 digits of 8×8
pixels, 797 of them held out.
Run: python examples/generative/27_kernels.py [--out DIR] for the picture.
"""

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # here as fast as many threads, and reproducible

import numpy as np
import sympy as sp
from sklearn.datasets import load_digits

from symad.models.generative import gaussian_process as gp
from symad.models.generative import kernels, measures
from symad.numeric.eager.pairwise import pairwise

KERNELS = {
    "linear": (kernels.inner, {}),
    "polynomial, degree 3": (kernels.polynomial(3), {}),
    "RBF": (kernels.rbf(), {kernels.length: 1.4}),
    "Matérn 3/2": (kernels.matern(sp.Rational(3, 2)), {kernels.length: 2.0}),
    "RBF × linear + ¼ RBF": (
        kernels.rbf() * kernels.inner / 10 + kernels.rbf() / 4,
        {kernels.length: 1.4},
    ),
}


def features() -> None:
    """Explicit features and the kernel: equal numbers at very different costs."""
    print("polynomial features, dimension C(n + d − 1, d):", end=" ")
    print(", ".join(f"n={n} d={d}: {kernels.feature_dimension(n, d)}" for n, d in ((2, 2), (3, 4), (64, 3))))
    x, y = sp.symbols("x1:3", real=True), sp.symbols("y1:3", real=True)
    phi_x, phi_y = (kernels.polynomial_features(list(v), 2) for v in (x, y))
    print(f"φ(x) = {list(phi_x)}, ⟨φ(x), φ(y)⟩ = {sp.factor(phi_x.dot(phi_y))}")


def classify(x: np.ndarray, labels: np.ndarray, held: np.ndarray, held_labels: np.ndarray) -> dict:
    """Kernel ridge regression on ±1 for each class; the accuracy on held-out digits, and the spectrum."""
    targets = 2.0 * np.eye(10)[labels] - 1
    found = {}
    for name, (kernel, values) in KERNELS.items():
        matrix = kernels.gram(kernel, x, None, values)
        fits = gp.ridge(kernel, values, 0.05, x, targets)
        right = np.mean((kernels.gram(kernel, held, x, values) @ fits.weights).argmax(axis=1) == held_labels)
        rates = np.linalg.eigvalsh(matrix)[::-1]
        half = int(np.searchsorted(np.cumsum(rates) / rates.sum(), 0.95)) + 1
        print(f"{name:22} {right:6.1%} right; 95% of the spectrum in {half:3d} of {len(x)} dimensions")
        found[name] = right
    assert found["RBF"] > found["linear"] + 0.03
    return found


def rebuild(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points of a spiral, and points found from their scalar products alone, rotated to fit."""
    t = np.linspace(0, 4 * np.pi, 80)
    points = np.stack([t * np.cos(t), t * np.sin(t)], axis=1) / 8 + 0.02 * rng.normal(size=(80, 2))
    points = points - points.mean(axis=0)
    found = kernels.reconstruct(points @ points.T)
    left, _, right = np.linalg.svd(found.T @ points)
    print(
        f"a spiral from its matrix of rank {found.shape[1]}: up to a rotation it differs by "
        f"{np.abs(found @ left @ right - points).max():.0e}"
    )
    return points, found


def two_samples(x: np.ndarray, labels: np.ndarray) -> None:
    """MMD between classes of digits, compared with random splits of one class."""
    rng, values = np.random.default_rng(0), {kernels.length: measures.median_length(x[:300], x[300:600])}

    def mmd2(a: np.ndarray, b: np.ndarray) -> float:
        return float(measures.mmd2(a, b, kernels.rbf(), values))

    threes, fives = x[labels == 3], x[labels == 5]
    chance = []
    for _ in range(200):
        mixed = rng.permutation(threes)
        chance.append(mmd2(mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]))
    limit = np.quantile(chance, 0.95)
    print(
        f"MMD² of threes and fives {mmd2(threes, fives):.4f}; of two halves of the threes "
        f"{np.mean(chance):.4f} on average, below {limit:.4f} in 95 of 100 splits"
    )
    assert mmd2(threes, fives) > 5 * limit


def large_sums(rng: np.random.Generator, count: int = 10_000) -> None:
    """Σ_j k(x_i, y_j) b_j for many points, in blocks, without the matrix."""
    x, y, b = rng.normal(size=(count, 3)), rng.normal(size=(count, 3)), rng.normal(size=(count, 1))
    start = time.perf_counter()
    total = pairwise(lambda u, v: sp.exp(-(u - v).dot(u - v) / 2), x, y, b)
    seconds = time.perf_counter() - start
    rows = kernels.gram(kernels.rbf(), x[:50], y, {kernels.length: 1.0}) @ b
    print(
        f"{count} × {count} kernel sums in {seconds:.1f} s without the matrix of "
        f"{8 * count**2 / 1e9:.1f} GB; 50 rows of it agree to {np.abs(total[:50] - rows).max():.0e}"
    )


def main() -> None:
    """Run all parts in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    table = load_digits()
    order = np.random.default_rng(0).permutation(len(table.data))
    pixels, labels = table.data[order] / 16, table.target[order]
    rng = np.random.default_rng(1)
    features()
    classify(pixels[:1000], labels[:1000], pixels[1000:], labels[1000:])
    spiral = rebuild(rng)
    two_samples(pixels, labels)
    large_sums(rng)
    if options.out:
        picture(options.out, pixels[:300], labels[:300], *spiral)


def picture(folder: Path, x, labels, points, found) -> None:
    """Kernel matrices of 300 digits in order of their classes; the spiral, and the points found."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    x = x[np.argsort(labels, kind="stable")]
    edges = np.cumsum(np.bincount(labels, minlength=10))[:-1] - 0.5
    figure, axes = plt.subplots(2, 3, figsize=(10.5, 7), layout="constrained")
    for axis, (name, (kernel, values)) in zip(axes.ravel(), KERNELS.items(), strict=False):
        matrix = kernels.gram(kernel, x, None, values)
        scale = np.sqrt(np.diagonal(matrix))
        axis.imshow(matrix / scale / scale[:, None], cmap="viridis", vmin=0, vmax=1)
        axis.set_title(name, fontsize=10)
        axis.set_xticks(edges, [])
        axis.set_yticks(edges, [])
    axes[1, 2].plot(*points.T, ".-", label="points")
    axes[1, 2].plot(*found.T, ".-", label="found from ⟨x, y⟩ alone")
    axes[1, 2].set(aspect="equal", ylim=(-1.5, 2.1))
    axes[1, 2].set_title("a shape, up to rotation", fontsize=10)
    axes[1, 2].legend(frameon=False, fontsize=8, loc="upper left")
    figure.suptitle("normalized kernel matrices of 300 digits in order of their classes", fontsize=10)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "kernels.png", dpi=130)


if __name__ == "__main__":
    main()
