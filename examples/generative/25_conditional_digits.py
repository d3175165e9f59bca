"""Digits on demand: a variational autoencoder, an adversarial network and diffusion, each given the class.

Data: scikit-learn's 1797 digits of 8×8 pixels; 497 are held out. Each model draws 50 samples of each class.
Three numbers compare them with held-out digits: the share that a classifier of real digits assigns to the
requested class, the energy distance, and coverage; the same for a Gaussian per class, one Gaussian for all,
and training digits. Diffusion runs on 24 principal components, the codes of the best linear autoencoder. The
samples of the autoencoder are means of pixels, without their noise: smooth, and a little too similar to each
other.
Run: python examples/generative/25_conditional_digits.py [--out DIR] for the picture.
"""

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products are fastest on one thread

import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from symad.models.generative import gan, measures
from symad.models.generative.diffusion import Diffusion, schedule
from symad.models.generative.gan import GAN
from symad.models.generative.vae import VAE
from symad.numeric.training.adversarial import Player, train_in_turn
from symad.numeric.training.loop import train, warmup_cosine
from symad.numeric.training.optimizers import Adam

BATCH, EACH, CODE, COMPONENTS, LEVELS = 64, 50, 16, 24, 60
ASKED = np.repeat(np.eye(10), EACH, axis=0)


def in_double(parameters: dict) -> dict:
    """Parameters that were trained in single precision, in double precision for use."""
    return {name: value.astype(np.float64) for name, value in parameters.items()}


def by_vae(x: np.ndarray, c: np.ndarray, steps: int = 1000) -> np.ndarray:
    """Train on pixels x (N, 64) with classes c (N, 10); returns the pixel means of samples."""
    model, rng = VAE(64, 128, CODE, classes=10, deviation=0.25), np.random.default_rng(1)

    def stream():
        while True:
            rows = rng.integers(0, len(x), BATCH)
            yield x[rows], rng.standard_normal((BATCH, CODE)), c[rows]

    rate = warmup_cosine(100, steps)
    made = train(
        model.graph(BATCH), model.init(0), stream(), Adam(4e-3), steps, schedule=rate, dtype="float32"
    )
    return model.sample(in_double(made.parameters), len(ASKED), seed=2, c=ASKED)


def by_gan(x: np.ndarray, c: np.ndarray, rounds: int = 500) -> np.ndarray:
    """Wasserstein's game with the gradient penalty: two critic steps for each generator step."""
    widths, rng = (128, 128), np.random.default_rng(1)
    model = GAN(
        64, CODE, widths, widths, gan.WASSERSTEIN, penalty=1.0, classes=10, activation="tanh", pixels=True
    )

    def pictures():
        while True:
            rows = rng.integers(0, len(x), BATCH)
            yield model.draw(x[rows], rng, c[rows])

    def codes():
        while True:
            yield model.draw_codes(BATCH, rng, np.eye(10)[rng.integers(0, 10, BATCH)])

    critic = Player(model.critic_graph(BATCH), model.critic_names, Adam(4e-3, 0.5), steps=2)
    generator = Player(model.generator_graph(BATCH), model.generator_names, Adam(4e-3, 0.5))
    rate = warmup_cosine(50, rounds, floor=0.05)
    made = train_in_turn(
        [critic, generator], model.init(0), [pictures(), codes()], rounds, rate, dtype="float32"
    )
    return model.sample(in_double(made.averages), len(ASKED), seed=3, c=ASKED)


def by_diffusion(x: np.ndarray, c: np.ndarray, steps: int = 1200) -> np.ndarray:
    """Noise and its prediction in principal components, scaled by the fourth root of their variances."""
    mean = x.mean(axis=0)
    _, singular, axes = np.linalg.svd(x - mean, full_matrices=False)
    scale = np.sqrt(singular[:COMPONENTS])
    codes = (x - mean) @ axes[:COMPONENTS].T / scale
    unit = codes.std()
    model, rng = Diffusion(COMPONENTS, (192, 192), classes=10), np.random.default_rng(1)
    beta, alpha_bar = schedule(LEVELS, 1e-3, 0.2)

    def stream():
        while True:
            rows = rng.integers(0, len(x), 2 * BATCH)
            yield model.draw(codes[rows] / unit, LEVELS, alpha_bar, rng, c[rows], hidden=0.1)

    rate = warmup_cosine(100, steps)
    made = train(
        model.graph(2 * BATCH), model.init(0), stream(), Adam(6e-3), steps, schedule=rate, dtype="float32"
    )
    p = in_double(made.parameters)
    samples = model.sample_ddim(p, len(ASKED), beta, 30, seed=2, c=ASKED, guidance=0.3)
    return np.clip(samples * unit * scale @ axes[:COMPONENTS] + mean, 0, 1)


def gaussians(x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Samples of one Gaussian, and of one Gaussian for each class, with the moments of the data."""
    rng = np.random.default_rng(4)
    one = rng.multivariate_normal(x.mean(axis=0), np.cov(x.T), len(ASKED))
    per_class = [
        rng.multivariate_normal(x[labels == k].mean(axis=0), np.cov(x[labels == k].T), EACH)
        for k in range(10)
    ]
    return np.clip(one, 0, 1), np.clip(np.concatenate(per_class), 0, 1)


def main() -> None:
    """Train all three, measure, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    table = load_digits()
    order = np.random.default_rng(0).permutation(len(table.data))
    pixels, labels = table.data[order] / 16, table.target[order]
    x, y, held = pixels[:1300], labels[:1300], pixels[1300:]
    c = np.eye(10)[y]
    judge = SVC(gamma=0.1, C=10).fit(x, y)
    print(f"the classifier reads {judge.score(held, labels[1300:]):.1%} of the held-out digits")

    one, per_class = gaussians(x, y)
    made = {
        "training digits": np.concatenate([x[y == k][:EACH] for k in range(10)]),
        "one Gaussian": one,
        "a Gaussian per class": per_class,
    }
    for name, model in {"VAE": by_vae, "WGAN with penalty": by_gan, "diffusion": by_diffusion}.items():
        start = time.perf_counter()
        made[name] = model(x, c)
        print(f"{name} trained and sampled in {time.perf_counter() - start:.1f} s")
    print(f"{'':20} read as asked   energy distance   coverage")
    results = {}
    for name, samples in made.items():
        right = float(np.mean(judge.predict(samples) == ASKED.argmax(axis=1)))
        distance, covered = measures.energy_distance(samples, held), measures.coverage(samples, held)
        results[name] = right, distance, covered
        print(f"{name:20} {right:13.1%}   {distance:15.4f}   {covered:8.1%}")
    assert all(results[name][0] > 0.9 for name in ("VAE", "WGAN with penalty", "diffusion"))
    for name in ("WGAN with penalty", "diffusion"):
        assert results[name][1] < results["one Gaussian"][1] / 1.5
    if options.out:
        picture(options.out, made)


def picture(folder: Path, made: dict) -> None:
    """Samples, one class per row."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 5, figsize=(10, 3.4), layout="constrained")
    names = ["training digits", "a Gaussian per class", "VAE", "WGAN with penalty", "diffusion"]
    for axis, name in zip(axes, names, strict=True):
        images = made[name].reshape(10, EACH, 8, 8)[:, :7]
        framed = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
        axis.imshow(framed.transpose(0, 2, 1, 3).reshape(100, 70), cmap="gray_r", vmin=0, vmax=1)
        axis.set_title(name, fontsize=11)
        axis.axis("off")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "conditional_digits.png", dpi=140)


if __name__ == "__main__":
    main()
