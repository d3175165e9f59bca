"""A ten-link pendulum on a cart: SymPy derives the motion, symad its Jacobian, NumPy runs it.

`sympy.physics.mechanics` derives M(q, u) u' = f(q, u). symad turns both sides and the Jacobian of f into
NumPy code in a fraction of a second (SymPy's own Jacobian takes seconds), and SciPy integrates the fall of
the pendulum. The energy is a check: without friction it must stay constant.
Run: python examples/first_steps/04_pendulum.py [--links 10] [--out DIR]
"""

import argparse
import time
from pathlib import Path

import numpy as np
import sympy as sp
from scipy.integrate import solve_ivp
from sympy.physics.mechanics import find_dynamicsymbols
from sympy.physics.mechanics.models import n_link_pendulum_on_cart

import symad
from symad.numeric import lower


def equations(links: int) -> tuple[sp.Matrix, sp.Matrix, list[sp.Symbol], dict[sp.Symbol, float]]:
    """Mass matrix, forcing vector, states (coordinates, then speeds), and values of the constants."""
    kane = n_link_pendulum_on_cart(links, cart_force=True, joint_torques=False)
    mass, forcing = kane.mass_matrix_full, kane.forcing_full
    states = [*kane.q, *kane.u]
    names = {s: sp.Symbol(str(s.func), real=True) for s in states}
    for other in find_dynamicsymbols(forcing):
        names.setdefault(other, sp.Symbol(str(other.func), real=True))
    mass, forcing = mass.xreplace(names), forcing.xreplace(names)
    symbols = [names[s] for s in states]
    constants = sorted((mass.free_symbols | forcing.free_symbols) - set(symbols), key=str)
    values = {
        c: {"g": 9.81, "F": 0.0}.get(c.name, 1.0 / links if c.name.startswith("l") else 1.0)
        for c in constants
    }
    return mass, forcing, symbols, values


def energy(history: np.ndarray, links: int, values: dict[sp.Symbol, float]) -> np.ndarray:
    """Kinetic and potential energy along a motion; angles are measured from the upright."""
    number = {str(s): v for s, v in values.items()}
    q, u = history[: links + 1], history[links + 1 :]
    vx, vy, height = u[0], 0 * u[0], 0 * q[0]
    total = 0.5 * number["m0"] * vx**2
    for k in range(1, links + 1):
        length, mass = number[f"l{k - 1}"], number[f"m{k}"]
        vx = vx - length * np.cos(q[k]) * u[k]
        vy = vy - length * np.sin(q[k]) * u[k]
        height = height + length * np.cos(q[k])
        total = total + 0.5 * mass * (vx**2 + vy**2) + mass * number["g"] * height
    return total


def main() -> None:
    """Derive, differentiate, simulate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--links", type=int, default=10)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    mass, forcing, states, values = equations(options.links)
    n, constants, numbers = len(states), list(values), list(values.values())

    start = time.perf_counter()
    inputs = [*states, *constants]
    both = lower(symad.trace((mass, forcing), inputs))
    jacobian = lower(symad.jacobian(symad.trace(forcing, inputs), states))
    print(f"code for M, f and the {n}×{n} Jacobian: {time.perf_counter() - start:.2f} s")

    rng = np.random.default_rng(0)
    point = rng.normal(size=n)
    start = time.perf_counter()
    reference = forcing.jacobian(states)
    print(f"SymPy's own Jacobian: {time.perf_counter() - start:.2f} s")
    at = {s: sp.Float(float(v), 30) for s, v in zip(inputs, [*point, *numbers], strict=True)}
    exact = np.array(reference.xreplace(at).evalf(30).tolist(), dtype=float)
    difference = np.abs(jacobian(*point.tolist(), *numbers) - exact).max()
    print(f"largest difference from SymPy at 30 digits: {difference:.1e}")

    def motion(_: float, state: np.ndarray) -> np.ndarray:
        m, f = both(*state.tolist(), *numbers)
        return np.linalg.solve(m, f[:, 0])

    start_state = np.zeros(n)
    start_state[1 : options.links + 1] = -np.pi / 2 - 0.02 * np.arange(options.links)
    times = np.linspace(0, 1.5, 61)
    run = solve_ivp(motion, (0, times[-1]), start_state, method="DOP853", t_eval=times, rtol=1e-9, atol=1e-9)
    e = energy(run.y, options.links, values)
    drift, scale = np.abs(e - e[0]).max(), 9.81 * sum(values[c] for c in values if c.name.startswith("l"))
    print(f"{run.nfev} evaluations; energy drifts by {drift:.1e}, with about {scale:.1f} in motion")
    if options.out:
        picture(options.out, run.y, options.links, values)


def picture(folder: Path, history: np.ndarray, links: int, values: dict[sp.Symbol, float]) -> None:
    """The chain at six moments, each with the twelve frames before it, fainter."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    number = {str(s): v for s, v in values.items()}
    lengths = np.array([number[f"l{k}"] for k in range(links)])
    angles, zeros = history[1 : links + 1], np.zeros((1, history.shape[1]))
    x = history[0] + np.vstack([zeros, np.cumsum(-lengths[:, None] * np.sin(angles), axis=0)])
    y = np.vstack([zeros, np.cumsum(lengths[:, None] * np.cos(angles), axis=0)])
    figure, axes = plt.subplots(2, 3, figsize=(9, 6.4), layout="constrained", sharex=True, sharey=True)
    for axis, frame in zip(axes.flat, np.linspace(0, history.shape[1] - 1, 6).astype(int), strict=True):
        for before in range(max(0, frame - 12), frame):
            axis.plot(x[:, before], y[:, before], color="C0", lw=0.8, alpha=0.04 * (13 - frame + before))
        axis.plot(x[:, frame], y[:, frame], "o-", color="C0", lw=1.8, ms=3.5)
        axis.plot(x[0, frame], 0, "s", color="0.25", ms=9)
        axis.axhline(0, color="0.8", lw=0.8, zorder=0)
        axis.set_title(f"t = {1.5 * frame / (history.shape[1] - 1):.1f} s")
        axis.set_aspect("equal")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "pendulum.png", dpi=150)


if __name__ == "__main__":
    main()
