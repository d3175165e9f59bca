"""Reverse mode through long chains in little memory, and a neural ODE trained with it.

First a recurrence of 600 steps with a large state: the memory of each policy, planned and measured, and the
agreement of the gradients. Then a field x' = V tanh(W x³ + b) is fitted to a spiral by the gradient of the
solver's own steps, which the continuous adjoint matches only up to the solver's error.
Run: python examples/derivatives/12_memory_and_depth.py [--out DIR] for the picture.
"""

import argparse
import os
import time
import tracemalloc
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import symad
from symad import functions
from symad.derivatives.memory_plans import draw_plans
from symad.models.layers import neural_ode
from symad.numeric import lower
from symad.numeric.training.loop import train, warmup_cosine
from symad.numeric.training.optimizers import Adam

STEPS, STATE = 600, 5_000
POLICIES = ["all", "recompute", "sqrt", "binomial", ("binomial", 5)]


def measured(memory, start, inputs):
    """The gradient of a sum over the last state, the peak memory in states, and the seconds."""

    def loss(h, xs):
        return np.sum(functions.fold(lambda h, x: np.sin(h + 0.1 * x * h), h, xs, memory))

    gradient = lower(symad.gradient(symad.trace(loss, inputs=[(STATE,), (STEPS,)]), wrt="h"))
    begun = time.perf_counter()
    found = gradient(start, inputs)
    seconds = time.perf_counter() - begun
    tracemalloc.start()
    gradient(start, inputs)
    peak = tracemalloc.get_traced_memory()[1] / (8 * STATE)
    tracemalloc.stop()
    return found, peak, seconds


def policies(rng):
    """One recurrence under all policies."""
    start, inputs = rng.normal(size=STATE), rng.normal(size=STEPS)
    first = None
    print(f"gradient through {STEPS} steps of a state of {STATE} numbers")
    for memory in POLICIES:
        found, peak, seconds = measured(memory, start, inputs)
        first = found if first is None else first
        apart = np.abs(found - first).max() / np.abs(first).max()
        plan = "" if memory == "all" else f"; {symad.memory_plan(STEPS, memory).recomputations} steps again"
        print(f"  {memory!s:16} {peak:7.0f} states at most, {seconds:5.2f} s, differs by {apart:.0e}{plan}")
    return [symad.memory_plan(STEPS, memory) for memory in POLICIES[1:]]


# ---- a neural ODE --------------------------------------------------------------------------------


def spiral(x, t):
    """x' = A x³ (Chen et al. 2018, section 5)."""
    return x**3 @ np.array([[-0.1, -2.0], [2.0, -0.1]])


def field(x, t, W, b, V):
    """The fitted field, for a batch x (N, 2)."""
    return np.tanh(x**3 @ W.T + b) @ V.T


def fit(rng, updates=250, batch=20, ahead=10, dt=0.05):
    """Train on short pieces of the spiral; returns the true path, the fitted path, and the losses."""
    count = 400
    first, span = np.array([[2.0, 0.0]]), (0, count * dt)
    true = neural_ode.integrate(spiral, first, (), span, count, history=True)[:, 0]
    sizes = {"W": (32, 2), "b": (32,), "V": (2, 32)}
    theta = {name: 0.1 * rng.normal(size=size) for name, size in sizes.items()}

    def loss(W, b, V, start, path):
        span = (0.0, ahead * dt)
        found = neural_ode.integrate(field, start, (W, b, V), span, ahead, history=True, memory="sqrt")
        return np.mean(np.abs(found - path))

    def pieces():
        for _ in range(updates):
            starts = rng.integers(0, count - ahead - 1, batch)
            yield true[starts], np.stack([true[starts + k] for k in range(1, ahead + 1)])

    shapes = [p.shape for p in theta.values()]
    graph = symad.trace(loss, inputs=[*shapes, (batch, 2), (ahead, batch, 2)])
    result = train(graph, theta, pieces(), Adam(0.01), updates, schedule=warmup_cosine(20, updates))
    final = tuple(result.parameters.values())
    path = neural_ode.integrate(field, first, final, span, count, history=True)[:, 0]
    return true, path, result.losses, final


def adjoints(theta):
    """The gradient of |x(t_1)|² with respect to V, both ways, for growing numbers of steps."""
    start, span = np.array([[2.0, 0.0]]), (0.0, 2.0)
    for steps in (10, 20, 40):

        def loss(W, b, V, steps=steps):
            return np.sum(neural_ode.integrate(field, start, (W, b, V), span, steps) ** 2)

        discrete = symad.gradient(symad.trace(loss, inputs=[p.shape for p in theta]), wrt="V")(*theta)
        end = neural_ode.integrate(field, start, theta, span, steps)
        continuous = neural_ode.adjoint(field, end, 2 * end, theta, span, steps)[-1]
        apart = np.abs(continuous - discrete).max() / np.abs(discrete).max()
        print(f"  {steps:3} steps of Runge-Kutta: the continuous adjoint is off by {apart:.1e}")


def main() -> None:
    """Measure, fit, compare, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the pictures")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    plans = policies(rng)
    true, path, losses, theta = fit(rng)
    print(f"neural ODE: mean error of short pieces {losses[0]:.3f} -> {np.mean(losses[-20:]):.3f}")
    adjoints(theta)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        draw_plans(plans, options.out / "memory_plans.png")
        picture(options.out / "neural_ode.png", true, path, losses)


def picture(target, true, path, losses) -> None:
    """The two paths and the training loss."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    left.plot(*true.T, color="0.6", lw=3, label="x' = A x³")
    left.plot(*path.T, color="tab:blue", lw=1.2, label="fitted field, from the start alone")
    left.plot(*true[0], "o", color="0.3")
    left.set(aspect="equal", title="one path of 400 steps")
    left.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.05))
    right.semilogy(losses, color="tab:blue", lw=0.8)
    right.set(xlabel="update", title="mean error of pieces of 10 steps")
    figure.savefig(target, dpi=150)


if __name__ == "__main__":
    main()
