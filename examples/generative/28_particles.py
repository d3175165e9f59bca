"""Tokens as particles: endless attention layers gather them; and the error of a layer against its width.

On the sphere, tokens move with the velocity dx_i/dt = Σ_j softmax_j(β ⟨x_i, x_j⟩) x_j, projected: the limit
of many thin attention layers. In the end all gather in one point; for large β they stay in several groups for
a long time. The second part is a two-layer network with random neurons for a target: its error falls as 1/√n.
Run: python examples/generative/28_particles.py [--out DIR] for the picture.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products are fastest on one thread

import numpy as np

from symad import gradient, trace
from symad.models.layers.two_layer import TwoLayer, errors, sample
from symad.models.sequences.dynamics import AttentionDynamics, clusters, energy
from symad.numeric import lower

TOKENS, TIME, STEPS = 60, 24.0, 600


def start():
    """Tokens spread over the sphere."""
    x = np.random.default_rng(3).normal(size=(TOKENS, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def motion(beta):
    """The trajectory as one generated function of the start."""
    model = AttentionDynamics(3, beta=beta)
    run = lower(trace(lambda x: model.trajectory(model.identity(), x, TIME, STEPS), [(TOKENS, 3)]))
    return np.concatenate([start()[None], run(start())])


def sensitivity(beta, x):
    """|∂(position of token 0 at time 4)/∂x_j|, the pull of each token, by a gradient through 100 steps."""
    model = AttentionDynamics(3, beta=beta)

    def pulled(x):
        return np.sum(model.trajectory(model.identity(), x, 4.0, 100)[99, 0] * np.array([0.3, -0.5, 0.8]))

    slope = lower(gradient(trace(pulled, [(TOKENS, 3)]), "x"))(x)
    slope = slope - np.sum(slope * x, axis=1, keepdims=True) * x  # along the sphere
    return np.linalg.norm(slope, axis=1)


def target(x):
    """1 + cos πx on [−1, 1]."""
    return 1 + np.cos(np.pi * x)


def curvature(x):
    """The second derivative of the target."""
    return -(np.pi**2) * np.cos(np.pi * x)


def main() -> None:
    """Move the tokens for two β, measure the widths, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    paths = {beta: motion(beta) for beta in (1.0, 9.0)}
    for beta, path in paths.items():
        groups = [clusters(path[k], 0.1) for k in (0, 50, 150, STEPS)]
        rise = np.diff([energy(x, beta) for x in path[::20]]).min()
        print(
            f"β = {beta:g}: {groups} groups at t = 0, 2, 6, 24; the energy never falls: {bool(rise > -1e-9)}"
        )
    pull = sensitivity(9.0, start())
    near = np.argsort(np.linalg.norm(start() - start()[0], axis=1))
    share = pull[near[:15]].sum() / pull.sum()
    print(f"β = 9: until t = 4 the nearest 15 of 60 tokens make {share:.0%} of the pull on token 0")
    widths = np.array([4, 16, 64, 256, 1024, 4096])
    found = errors(target, curvature, list(widths), draws=100)
    slope = np.polyfit(np.log(widths), np.log(found), 1)[0]
    print(f"two-layer network: error falls as n^{slope:.2f}")
    if options.out:
        picture(options.out, paths, pull, widths, found)


def picture(folder, paths, pull, widths, found) -> None:
    """Both motions, the number of groups, the pull of each token, and error against width."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(11, 8), layout="constrained")
    for number, (beta, path) in enumerate(paths.items()):
        axes = figure.add_subplot(2, 3, number + 1, projection="3d", computed_zorder=False)
        u, v = np.mgrid[0 : 2 * np.pi : 25j, 0 : np.pi : 13j]
        axes.plot_wireframe(
            np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v), color="0.85", lw=0.4, zorder=0
        )
        shown = path[: 1 + int(8 / TIME * STEPS)]
        colors = plt.get_cmap("hsv")(np.arctan2(shown[0, :, 1], shown[0, :, 0]) / (2 * np.pi) % 1)
        for token, color in enumerate(colors):
            axes.plot(*shown[:, token].T, color=color, lw=0.7, zorder=1)
        axes.scatter(*shown[-1].T, color="k", s=14, zorder=2)
        axes.set_title(f"paths, β = {beta:g}")
        axes.set_axis_off()
        axes.set_box_aspect((1, 1, 1), zoom=1.2)
    axes = figure.add_subplot(2, 3, 3)
    times = np.linspace(0, TIME, STEPS + 1)[::10]
    for (beta, path), color in zip(paths.items(), ["tab:blue", "tab:red"], strict=True):
        axes.step(times, [clusters(x, 0.1) for x in path[::10]], color=color, label=f"β = {beta:g}")
    axes.set(yscale="log", xlabel="t", title="number of groups")
    axes.legend(frameon=False)
    axes = figure.add_subplot(2, 3, 4)
    distance = np.degrees(np.arccos(np.clip(start() @ start()[0], -1, 1)))
    axes.plot(distance, pull, ".", color="tab:red")
    axes.set(xlabel="degrees from token 0", title="pull on token 0, β = 9")
    axes = figure.add_subplot(2, 3, 5)
    x, rng = np.linspace(-1, 1, 201), np.random.default_rng(2)
    for width, color in ((16, "0.75"), (256, "tab:orange"), (4096, "tab:red")):
        axes.plot(
            x, TwoLayer(1, width).apply(sample(curvature, width, rng), x[:, None]), color=color, label=width
        )
    axes.plot(x, target(x), "k--", lw=0.8, label="target")
    axes.set(xlabel="x", title="n random neurons")
    axes.legend(frameon=False)
    axes = figure.add_subplot(2, 3, 6)
    axes.loglog(widths, found, "o-", color="tab:red", label="error")
    axes.loglog(widths, found[0] * np.sqrt(widths[0] / widths), "k--", lw=0.8, label="1/√n")
    axes.set(xlabel="neurons n", title="error against width")
    axes.minorticks_off()
    axes.set_yticks([0.2, 0.5, 1, 2, 4], ["0.2", "0.5", "1", "2", "4"])
    axes.legend(frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "particles.png", dpi=150)


if __name__ == "__main__":
    main()
