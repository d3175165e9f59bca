"""Models for Coq, from mechanics, robotics and statistics, and a cell of a recurrent network."""

import numpy as np
import sympy as sp


def pendulum(links):
    """The Lagrangian of a chain of unit masses, T − V."""
    theta = sp.symbols(f"theta1:{links + 1}", real=True)
    omega = sp.symbols(f"omega1:{links + 1}", real=True)
    lengths = sp.symbols(f"l1:{links + 1}", positive=True)
    g = sp.Symbol("g", real=True)
    height = vx = vy = kinetic = potential = sp.S.Zero
    for angle, rate, length in zip(theta, omega, lengths, strict=True):
        height -= length * sp.cos(angle)
        vx += length * sp.cos(angle) * rate
        vy += length * sp.sin(angle) * rate
        kinetic += (vx**2 + vy**2) / 2
        potential += g * height
    return kinetic - potential, None


def robot_arm(joints=4):
    """The distance of the tip of a planar arm from a target."""
    q = sp.symbols(f"q1:{joints + 1}", real=True)
    lengths = sp.symbols(f"l1:{joints + 1}", positive=True)
    px = sum(lengths[i] * sp.cos(sum(q[: i + 1])) for i in range(joints))
    py = sum(lengths[i] * sp.sin(sum(q[: i + 1])) for i in range(joints))
    tx, ty = sp.symbols("x_t y_t", real=True)
    return sp.sqrt((px - tx) ** 2 + (py - ty) ** 2), None


def logistic_regression():
    """The negative log-likelihood of three weights for three labelled points."""
    w = sp.symbols("w1:4", real=True)
    points = [[1.5, -2, 0.3], [0.1, 0.2, 1], [-1, 3, 2.5]]
    labels = [1, -1, 1]
    scores = [sum(a * b for a, b in zip(w, row, strict=True)) for row in points]
    return sum(sp.log(1 + sp.exp(-s * m)) for s, m in zip(labels, scores, strict=True)), None


def rosenbrock(n):
    """The chained Rosenbrock function."""
    v = sp.symbols(f"x0:{n}", real=True)
    return sum(100 * (v[i + 1] - v[i] ** 2) ** 2 + (1 - v[i]) ** 2 for i in range(n - 1)), None


def lstm_cell(n):
    """The sum of the state of an LSTM cell after one step, by NumPy."""

    def cell(x, h, c, W, U, b):
        z = W @ x + U @ h + b
        gate = [1 / (1 + np.exp(-z[k * n : (k + 1) * n])) for k in range(3)]
        new = gate[1] * c + gate[0] * np.tanh(z[3 * n :])
        return (gate[2] * np.tanh(new)).sum()

    return cell, [(n,), (n,), (n,), (4 * n, n), (4 * n, n), (4 * n,)]


MODELS = {
    "pendulum": pendulum(3),
    "arm": robot_arm(),
    "logistic": logistic_regression(),
    "rosenbrock": rosenbrock(100),
    "lstm": lstm_cell(2),
}
"""Name: what is differentiated, and its inputs if it is a Python function."""
