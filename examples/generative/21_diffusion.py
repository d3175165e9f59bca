"""Denoising diffusion on two moons: train on the noise, sample by DDPM and by DDIM, measure.

Data: scikit-learn's two moons; a third is held out. The energy distance compares samples with held-out
points, next to a Gaussian with the same moments and to more real points. The model's lower bound on the
likelihood of held-out points is compared with their likelihood under that Gaussian.
Run: python examples/generative/21_diffusion.py [--out DIR] for the picture.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products are fastest on one thread

import numpy as np
from scipy.stats import multivariate_normal
from sklearn.datasets import make_moons

from symad.models.generative import measures
from symad.models.generative.diffusion import Diffusion, schedule
from symad.numeric.training.loop import train, warmup_cosine
from symad.numeric.training.optimizers import Adam

STEPS, BATCH, LEVELS = 3000, 256, 40


def main() -> None:
    """Train, sample, measure, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    points = (make_moons(3000, noise=0.06, random_state=0)[0] - [0.5, 0.25]) * 1.5
    x, held = points[:2000], points[2000:]
    model = Diffusion(2, (64, 64, 64))
    beta, alpha_bar = schedule(LEVELS, 1e-3, 0.25)
    rng = np.random.default_rng(0)
    stream = (model.draw(x[rng.integers(0, 2000, BATCH)], LEVELS, alpha_bar, rng) for _ in range(STEPS))
    result = train(
        model.graph(BATCH), model.init(0), stream, Adam(2e-2), STEPS, schedule=warmup_cosine(100, STEPS)
    )
    print(f"noise error {np.mean(result.losses[:20]):.3f} -> {np.mean(result.losses[-100:]):.3f}")
    p = result.parameters
    made = {
        "DDPM, 40 steps": model.sample(p, 1000, beta, seed=1, posterior=True),
        "DDIM, 20 steps": model.sample_ddim(p, 1000, beta, 20, seed=1),
        "Gaussian of the same moments": rng.multivariate_normal(x.mean(0), np.cov(x.T), 1000),
        "real points": x[:1000],
    }
    distances = {name: measures.energy_distance(samples, held) for name, samples in made.items()}
    for name, distance in distances.items():
        print(f"{name:30} energy distance to held-out points {distance:.4f}")
    assert distances["DDPM, 40 steps"] < 0.5 * distances["Gaussian of the same moments"]
    bound = model.bound(p, held, beta, seed=3)
    gaussian = multivariate_normal(x.mean(axis=0), np.cov(x.T)).logpdf(held).mean()
    print(f"log-likelihood of held-out points: at least {bound:.3f} nats; under the Gaussian {gaussian:.3f}")
    assert bound > gaussian
    if options.out:
        picture(options.out, made, model, p, alpha_bar, result.losses)


def picture(folder: Path, made: dict, model: Diffusion, p: dict, alpha_bar: np.ndarray, losses: list) -> None:
    """Samples, the learned score at a middle noise level, and the loss of each step."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, places = plt.subplot_mosaic("AABBCC;DDDEEE", figsize=(10, 7), layout="constrained")
    axes = [places[name] for name in "ABCDE"]
    for axis, name in zip(axes, ["real points", "DDPM, 40 steps", "DDIM, 20 steps"], strict=False):
        axis.plot(*made[name].T, ".", ms=2, alpha=0.6)
        axis.set_title(name)
    grid = np.stack(np.meshgrid(np.linspace(-2.4, 2.4, 22), np.linspace(-1.8, 1.8, 16)), -1).reshape(-1, 2)
    level = 12
    score = model.score(p, grid, level, alpha_bar)
    axes[3].quiver(*grid.T, *score.T, np.linalg.norm(score, axis=1), cmap="viridis", angles="xy", width=0.004)
    axes[3].set_title(f"the learned score at step {level}")
    for axis in axes[:4]:
        axis.set(xlim=(-2.4, 2.4), ylim=(-1.8, 1.8))
    axes[4].plot(losses, lw=0.3, color="tab:gray")
    axes[4].plot(np.convolve(losses, np.ones(100) / 100, mode="valid"))
    axes[4].set(xlabel="step", ylim=(0, 1))
    axes[4].set_title("error of the predicted noise")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "diffusion.png", dpi=140)


if __name__ == "__main__":
    main()
