"""Optimal control: a pendulum swings up with the least effort, by direct transcription.

The unknowns z are angle, speed and torque at K + 1 moments. The motion θ' = ω, ω' = −sin θ + τ holds by the
trapezoidal rule between neighboring moments, so that the constraints' Jacobian has two blocks in each row,
and the Hessian of the Lagrangian is sparse as well. SciPy's trust-constr takes both as csr matrices. The
motor is too weak to lift the pendulum directly (|τ| ≤ 0.6, gravity is 1): it has to swing. (Method: J. T.
Betts, Practical Methods for Optimal Control, 2nd ed. (2010), section 4.5.)
Run: python examples/derivatives/08_optimal_control.py [--steps 200] [--out DIR]
"""

import argparse
import time
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import Bounds, NonlinearConstraint, minimize

import symad
from symad.numeric import lower

DURATION, STRONGEST = 10.0, 0.6


def main() -> None:
    """Transcribe, differentiate, optimize, and simulate the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    steps = options.steps
    h, n = DURATION / steps, 3 * (steps + 1)

    def parts(z):
        return z[: steps + 1], z[steps + 1 : 2 * steps + 2], z[2 * steps + 2 :]

    def effort(z):
        torque = parts(z)[2]
        return h / 2 * np.sum(torque[1:] ** 2 + torque[:-1] ** 2)

    def defects(z):
        angle, speed, torque = parts(z)
        push = torque - np.sin(angle)
        return np.concatenate(
            [
                angle[1:] - angle[:-1] - h / 2 * (speed[1:] + speed[:-1]),
                speed[1:] - speed[:-1] - h / 2 * (push[1:] + push[:-1]),
            ]
        )

    clock = time.perf_counter()
    cost, motion = symad.trace(effort, [(n,)]), symad.trace(defects, [(n,)])
    weighted = symad.trace(lambda z, weights: np.sum(weights * defects(z)), [(n,), (2 * steps,)])
    derivatives = {
        "constraints' Jacobian": symad.jacobian(motion, sparse=True),
        "constraints' Hessian": symad.hessian(weighted, 0, sparse=True),
        "cost's Hessian": symad.hessian(cost, sparse=True),
    }
    for name, graph in derivatives.items():
        print(f"{name}: {graph.report}")
    jacobian, bending, cost_hessian = map(lower, derivatives.values())
    value_and_gradient, constraint = lower(symad.value_and_gradient(cost)), lower(motion)
    print(f"built in {time.perf_counter() - clock:.2f} s")

    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    low[2 * steps + 2 :], high[2 * steps + 2 :] = -STRONGEST, STRONGEST
    for k, value in ((0, 0.0), (steps, np.pi), (steps + 1, 0.0), (2 * steps + 1, 0.0)):
        low[k] = high[k] = value  # from rest at the bottom to rest at the top
    guess = np.concatenate([np.linspace(0, np.pi, steps + 1), np.zeros(2 * steps + 2)])

    clock = time.perf_counter()
    found = minimize(
        lambda z: float(value_and_gradient(z)[0]),
        guess,
        jac=lambda z: np.ravel(value_and_gradient(z)[1]),
        hess=cost_hessian,
        method="trust-constr",
        bounds=Bounds(low, high),
        constraints=NonlinearConstraint(constraint, 0, 0, jac=jacobian, hess=bending),
        options={"maxiter": 400, "gtol": 1e-9, "xtol": 1e-12},
    )
    angle, speed, torque = parts(found.x)
    print(f"{found.nit} iterations in {time.perf_counter() - clock:.1f} s; effort {found.fun:.6f}")
    print(f"largest defect {found.constr_violation:.1e}, slope of the Lagrangian {found.optimality:.1e}")
    assert found.constr_violation < 1e-8

    # The torque, applied to a simulation of the pendulum, must bring it to the top.
    times = np.linspace(0, DURATION, steps + 1)
    run = solve_ivp(
        lambda t, y: [y[1], np.interp(t, times, torque) - np.sin(y[0])],
        (0, DURATION), [0.0, 0.0], rtol=1e-9, atol=1e-9, t_eval=times,
    )  # fmt: skip
    apart = np.abs(run.y[0] - angle).max()
    print(f"simulated with this torque, the angle ends at {run.y[0, -1]:.3f}; π = {np.pi:.3f}")
    print(f"swings: the angle goes from {angle.min():.2f} to {angle.max():.2f}")
    assert apart < 0.1
    assert angle.min() < -0.5
    if options.out:
        matrices = jacobian(found.x), bending(found.x, np.ones(2 * steps))
        picture(options.out, times, angle, speed, torque, *matrices)


def picture(folder: Path, times, angle, speed, torque, jacobian, hessian) -> None:
    """The motion, and the patterns of the two matrices."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = {"figsize": (9, 7.6), "height_ratios": [1, 1.3], "layout": "constrained"}
    figure, places = plt.subplot_mosaic("AA;BC", **rows)
    axes = [places[name] for name in "ABC"]
    for name, values in (("angle", angle), ("speed", speed), ("torque", torque)):
        axes[0].plot(times, values, label=name)
    axes[0].set(xlabel="time", title="the motion")
    axes[0].legend(frameon=False)
    for axis, name, matrix in zip(axes[1:], ("Jacobian", "Hessian"), (jacobian, hessian), strict=True):
        axis.spy(matrix, markersize=1.5)
        axis.set(title=f"{name}, {matrix.nnz} entries", xticks=(0, 300, 600), anchor="N")
        axis.tick_params(top=False, labeltop=False, bottom=True, labelbottom=True)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "pendulum_swing_up.png", dpi=150)


if __name__ == "__main__":
    main()
