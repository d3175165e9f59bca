"""Adversarial networks on a ring of eight Gaussians: five games, the modes they find, and the critic's slope.

Every game is two graphs and their gradients; with the gradient penalty the loss contains a gradient, which is
differentiated again. The energy distance and the share of samples near a mode compare samples with held-out
points, next to a Gaussian with the same moments and to fresh real points.
Run: python examples/generative/24_gan.py [--out DIR] for the picture.
"""

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products are fastest on one thread

import numpy as np

from symad.models.generative import divergences, gan, measures
from symad.models.generative.gan import GAN
from symad.numeric.training.adversarial import Player, train_in_turn
from symad.numeric.training.loop import warmup_cosine
from symad.numeric.training.optimizers import Adam

BATCH, SPREAD = 128, 0.1
ANGLES = np.arange(8) * np.pi / 4
CENTERS = 2 * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)

# name: the divergence, whether the generator saturates, λ, the bound of the critic's weights, its steps
GAMES = {
    "GAN, saturating": (gan.JENSEN_SHANNON, True, 0.0, None, 1),
    "GAN": (gan.JENSEN_SHANNON, False, 0.0, None, 1),
    "f-GAN, Pearson": (gan.contest(divergences.PEARSON), False, 0.0, None, 1),
    "WGAN, clipped": (gan.WASSERSTEIN, False, 0.0, 1.0, 2),
    "WGAN, penalty": (gan.WASSERSTEIN, False, 0.1, None, 2),
}
ROUNDS = 700


def ring(count: int, rng: np.random.Generator) -> np.ndarray:
    """Points (count, 2), each at one of the eight modes."""
    return CENTERS[rng.integers(0, 8, count)] + SPREAD * rng.standard_normal((count, 2))


def play(model: GAN, bound: float | None, steps: int, seed: int = 0) -> tuple[dict, list]:
    """Returns the averaged parameters, and both players' losses."""
    rng = np.random.default_rng(seed)
    players = [
        Player(model.critic_graph(BATCH), model.critic_names, Adam(4e-3, 0.5), steps, bound),
        Player(model.generator_graph(BATCH), model.generator_names, Adam(4e-3, 0.5)),
    ]
    streams = [
        (model.draw(ring(BATCH, rng), rng) for _ in range(steps * ROUNDS)),
        (model.draw_codes(BATCH, rng) for _ in range(ROUNDS)),
    ]
    rate = warmup_cosine(50, ROUNDS, floor=0.05)
    made = train_in_turn(players, model.init(seed), streams, ROUNDS, rate, average=0.98)
    return made.averages, made.losses


def main() -> None:
    """Play every game, measure, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    held, made = ring(2000, rng), {"real points": ring(2000, rng)}
    made["Gaussian"] = rng.multivariate_normal(held.mean(axis=0), np.cov(held.T), 2000)
    for name, (game, saturating, penalty, bound, steps) in GAMES.items():
        start = time.perf_counter()
        model = GAN(2, 8, (64, 64), (64, 64), game, saturating, penalty, activation="tanh")
        parameters, _ = play(model, bound, steps)
        made[name] = model.sample(parameters, 2000, seed=2)
        print(f"{name:16} {ROUNDS} rounds in {time.perf_counter() - start:.1f} s")
    print(f"{'':16} modes of 8   near a mode   energy distance   sliced Wasserstein")
    results = {}
    for name, x in made.items():
        modes, near = measures.mode_coverage(x, CENTERS, 3 * SPREAD)
        results[name] = modes, measures.energy_distance(x, held)
        sliced = measures.sliced_wasserstein(x, held)
        print(f"{name:16} {modes:10d}   {near:11.0%}   {results[name][1]:15.4f}   {sliced:18.3f}")
    assert results["WGAN, penalty"][0] == 8
    assert results["WGAN, penalty"][1] < 0.3 * results["Gaussian"][1]
    if options.out:
        picture(options.out, made, model, parameters)


def picture(folder: Path, made: dict, model: GAN, p: dict) -> None:
    """Samples of each game; the last critic's score and its slope."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(11, 5.7), layout="constrained", sharex=True, sharey=True)
    for axis, (name, x) in zip(axes.ravel(), made.items(), strict=False):
        axis.plot(*x.T, ".", ms=1.5, alpha=0.5)
        axis.set_title(name, fontsize=10)
    axis = axes.ravel()[-1]
    line = np.linspace(-3, 3, 61)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    axis.contourf(line, line, model.score(p, grid).reshape(61, 61), levels=20, cmap="viridis")
    coarse = grid.reshape(61, 61, 2)[3::6, 3::6].reshape(-1, 2)
    axis.quiver(*coarse.T, *model.slopes(p, coarse).T, color="white", width=0.004, angles="xy")
    axis.set_title("critic of the last, ∇ of its score", fontsize=10)
    for axis in axes.ravel():
        axis.set(xlim=(-3, 3), ylim=(-3, 3), aspect="equal")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "gan.png", dpi=140)


if __name__ == "__main__":
    main()
