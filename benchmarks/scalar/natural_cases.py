"""The functions of benchmarks/scalar/cases.py as array code, the natural form for JAX, PyTorch and autograd.

``xp`` is `jax.numpy`, `torch` or `autograd.numpy`; every function takes the vector of all unknowns, in the
order of the symbols of the same case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Natural = Callable[[Any], Any]


def rosenbrock(xp: Any) -> Natural:
    """Σ 100(x_{i+1} − x_i²)² + (1 − x_i)²."""

    def f(x: Any) -> Any:
        a, b = x[:-1], x[1:]
        return xp.sum(100 * (b - a**2) ** 2 + (1 - a) ** 2)

    return f


def speelpenning(xp: Any) -> Natural:
    """Π x_i."""
    return lambda x: xp.prod(x)


def arm(xp: Any) -> Natural:
    """Distance and pose error; a joint's matrix is A + cos(q) B + sin(q) C."""
    alpha = (1.5708, 0.3, 1.2, -1.4, 1.1, 0.2)
    d = (0.4, 0.1, 0.15, 0.35, 0.05, 0.12)
    a = (0.05, 0.45, 0.04, 0.1, 0.02, 0.03)
    joints = []
    for k in range(6):
        s, c = np.sin(alpha[k]), np.cos(alpha[k])
        fixed = [[0, 0, 0, 0], [0, 0, 0, 0], [0, s, c, d[k]], [0, 0, 0, 1]]
        cosine = [[1, 0, 0, a[k]], [0, c, -s, 0], [0] * 4, [0] * 4]
        sine = [[0, -c, s, 0], [1, 0, 0, a[k]], [0] * 4, [0] * 4]
        joints.append([xp.asarray(np.array(m, dtype=float)) for m in (fixed, cosine, sine)])
    target = xp.asarray(np.array([0.3, 0.5, 0.6]))

    def f(q: Any) -> Any:
        c, s = xp.cos(q), xp.sin(q)
        t = None
        for k, (fixed, cosine, sine) in enumerate(joints):
            joint = fixed + c[k] * cosine + s[k] * sine
            t = joint if t is None else t @ joint
        pose = (t[0, 0] - 1) ** 2 + t[1, 0] ** 2 + t[2, 2] ** 2
        return xp.sqrt(xp.sum((t[:3, 3] - target) ** 2) + 0.1 * pose)

    return f


def mlp(xp: Any) -> Natural:
    """The mean squared loss of a 6-8-8-1 network on eight samples."""
    rng = np.random.default_rng(1)
    samples, targets = xp.asarray(rng.normal(size=(8, 6)).round(3)), xp.asarray(rng.normal(size=8).round(3))

    def f(x: Any) -> Any:
        h = xp.tanh(samples @ x[:48].reshape((8, 6)).T + x[48:56])
        h = xp.tanh(h @ x[56:120].reshape((8, 8)).T + x[120:128])
        return xp.sum((h @ x[128:136] + x[136] - targets) ** 2) / 8

    return f


def lstm(xp: Any) -> Natural:
    """The squared error of an LSTM with four units after eight steps."""
    data = xp.asarray(np.random.default_rng(0).normal(size=(8, 2)).round(3))
    zero = xp.asarray(np.zeros(4))

    def f(x: Any) -> Any:
        w, b, v, c0 = x[:96].reshape((16, 6)), x[96:112], x[112:116], x[116]
        u, p = w[:, :4], data @ w[:, 4:].T + b
        h, c = zero, zero
        for t in range(8):
            z = u @ h + p[t]
            i, f, o = (1 / (1 + xp.exp(-z[k : k + 4])) for k in (0, 4, 12))
            c = f * c + i * xp.tanh(z[8:12])
            h = o * xp.tanh(c)
        return (xp.sum(v * h) + c0 - 0.7) ** 2

    return f


NATURAL: dict[str, Callable[[Any], Natural]] = {
    "rosenbrock 10": rosenbrock,
    "rosenbrock 100": rosenbrock,
    "rosenbrock 1000": rosenbrock,
    "speelpenning 100": speelpenning,
    "speelpenning 300": speelpenning,
    "mlp": mlp,
    "arm": arm,
    "lstm": lstm,
}
