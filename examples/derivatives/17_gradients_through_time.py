"""How far gradients reach through time, and a solution that gradient descent does not find.

The derivative of a recurrent state with respect to the first one is a product with a factor for each step,
diag(σ') W. With a small W it vanishes; with a large W and ReLU it explodes; tanh prevents the explosion only
by saturating. An LSTM's cell has the additive path diag(f), which reaches as far as the forget gates allow.
All derivatives here are symad's Jacobians of the whole recurrence; those of tanh are compared with the
product.

The second part trains a ReLU network to return the largest of five numbers. Weights without any error exist
and are checked on integers; gradient descent comes close but does not reach them.
Run: python examples/derivatives/17_gradients_through_time.py [--out DIR] for the picture.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products are fastest on one thread

import numpy as np

import symad
from symad import functions
from symad.models.layers import maximum
from symad.models.layers.parameters import orthogonal, trace_model
from symad.models.sequences import lstm
from symad.models.sequences.rnn import jacobian_norms
from symad.numeric import lower
from symad.numeric.training.loop import train, warmup_cosine
from symad.numeric.training.optimizers import Adam

T, WIDTH, STEPS = 100, 8, 500


def tanh_states(h, W, z):
    """h ← tanh(W h + z), from h_0 (d,), W (d, d) and the inputs z (T, d): (T, d)."""
    return functions.scan(lambda h, z_t: np.tanh(W @ h + z_t), h, z)


def relu_states(h, W, z):
    """h ← relu(W h + z)."""
    return functions.scan(lambda h, z_t: functions.relu(W @ h + z_t), h, z)


def cells(c, W_h, driven):
    """c_1, ..., c_T of an LSTM from c_0 (d,), h_0 = 0, W_h (4, d, d) and the inputs (T, 4, d)."""

    def step(state, z):
        return lstm.step(*state, z, W_h)

    return functions.scan(step, (np.zeros(WIDTH), c), driven)[1]


def reach(states, *point):
    """‖∂ state_t / ∂ state_0‖₂ for t = 1, ..., T: one Jacobian of the whole recurrence."""
    graph = symad.trace(states, [np.shape(v) for v in point])
    jacobian = lower(symad.jacobian(graph, 0))(*point)
    return np.linalg.norm(np.reshape(jacobian, (T, WIDTH, WIDTH)), 2, axis=(1, 2))


def gradients():
    """The reach of gradients: in networks by the spectral radius g of W, in LSTMs by the forget bias."""
    rng = np.random.default_rng(0)
    W, z, start = orthogonal(rng, (WIDTH, WIDTH)), 0.3 * rng.normal(size=(T, WIDTH)), np.zeros(WIDTH)
    found, apart = {}, 0.0
    for gain in (0.5, 0.9, 1.5):
        found[f"tanh, g = {gain}"] = norms = reach(tanh_states, start, gain * W, z)
        states = np.vstack([start, tanh_states(start, gain * W, z)])
        product = jacobian_norms(gain * W, states)[1:]
        apart = max(apart, np.abs(norms / product - 1).max())
    ahead = np.abs(W)  # without negative weights or inputs every unit stays active
    ahead *= 1.2 / np.abs(np.linalg.eigvals(ahead)).max()
    found["ReLU, g = 1.2"] = reach(relu_states, start, ahead, np.abs(z))
    W_h = 0.5 * orthogonal(rng, (4, WIDTH, WIDTH))
    driven = 0.3 * rng.normal(size=(T, 4, WIDTH))
    for bias in (1.0, 5.0):
        shift = np.zeros((4, 1))
        shift[lstm.GATES.index("f")] = bias
        found[f"LSTM, b_f = {bias:g}"] = reach(cells, start, W_h, driven + shift)
    print(f"tanh: Jacobians and products of diag(1 − h²) W differ by {apart:.0e}")
    for name, norms in found.items():
        print(f"{name:15s} ‖∂state_10/∂state_0‖ = {norms[9]:.1e}, ‖∂state_{T}/∂state_0‖ = {norms[-1]:.1e}")
    return found


def maxima():
    """Train on both losses; returns the curves of the mean absolute error on fresh sequences."""
    test = np.random.default_rng(1).integers(-1000, 1000, (maximum.LENGTH, 10_000)).astype(float)
    wrong = np.abs(maximum.apply(maximum.exact_parameters(), test) - test.max(axis=0)).max()
    print(f"maximum of five: the exact weights err by {wrong:g} on {test.shape[1]} integer sequences")
    curves = {}
    for name, power in (("absolute_loss", 1.0), ("squared_loss", 0.5)):
        rng = np.random.default_rng(0)
        stream = ((maximum.batch(rng),) for _ in range(STEPS))
        loss = trace_model(getattr(maximum, name), maximum.SHAPES, (maximum.LENGTH, 256))
        start, pace = maximum.init(1), warmup_cosine(10, STEPS, 0.05)
        trained = train(loss, start, stream, Adam(0.02), STEPS, schedule=pace)
        curves[name.replace("_", " ")] = np.array(trained.losses) ** power
        fresh = maximum.batch(np.random.default_rng(2), 10_000)
        error = np.abs(maximum.apply(trained.parameters, fresh) - fresh.max(axis=0)).mean()
        print(f"trained on the {name.replace('_', ' ')}: the mean error is {error:.4f}; exact weights have 0")
    return curves


def main() -> None:
    """Run both parts, and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    norms, curves = gradients(), maxima()
    if options.out:
        picture(options.out, norms, curves)


def picture(folder, norms, curves) -> None:
    """The reach of gradients, and the result of training."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=(3, 2), layout="constrained")
    for name, values in norms.items():
        color = {"tanh": "tab:blue", "ReLU": "tab:red", "LSTM": "tab:green"}[name.split(",")[0]]
        left.semilogy(np.arange(1, T + 1), values, color=color, lw=1.5)
        last = np.flatnonzero(values > 1e-17)[-1]  # the last value inside the picture
        place = {"xytext": (8, 2), "textcoords": "offset points", "va": "center"}
        left.annotate(name, (last, values[last]), fontsize=9, color=color, **place)
    left.axhline(1, color="0.8", lw=0.8, zorder=0)
    left.set(xlim=(0, 1.27 * T), ylim=(1e-18, 1e10), xlabel="t")
    left.set(title="‖∂state_t/∂state_0‖: vanishing and exploding gradients")
    for name, values in curves.items():
        right.semilogy(values, lw=0.8, label=name)
    right.set(xlabel="step", title="maximum of five: minibatch error")
    right.annotate("exact weights exist, with error 0", (0.03, 0.04), xycoords="axes fraction")
    right.legend(frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "gradients_through_time.png", dpi=150)


if __name__ == "__main__":
    main()
