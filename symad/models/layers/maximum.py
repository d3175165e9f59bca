"""Learning the maximum of a sequence.

A ReLU network without biases reads x_1, ..., x_T one number at a time and answers after the last:

    h_t = relu(W_rec h_{t−1} + W_in x_t),   ŷ = ⟨W_out, h_T⟩,   h_0 = 0,   d_h = 6, T = 5.

Weights that solve it for all real sequences exist (`exact_parameters`). The state contains relu(x_t) and
relu(−x_t), from which x_t = h_1 − h_2; the other units contain relu(x_{t−1} − x_t), and sums that each
include one earlier element: h_6 = relu(max(x_1, ..., x_{T−1}) − x_T), so ŷ = x_T + h_6 is the maximum.
Gradient descent, on |ŷ − max| or its square, finds an approximation only.

Shapes: x (T, N) a batch of N sequences, W_in (6,), W_rec (6, 6), W_out (6,).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from symad.core.arrays import Array
from symad.functions import relu, scan
from symad.models.layers.parameters import Parameters, Shapes, he

HIDDEN, LENGTH = 6, 5
SHAPES: Shapes = {"W_in": (HIDDEN,), "W_rec": (HIDDEN, HIDDEN), "W_out": (HIDDEN,)}


def exact_parameters() -> Parameters:
    """Weights with zero error on every sequence of five numbers."""
    W_rec = [
        [0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
        [1, -1, 0, 0, 0, 0],
        [1, -1, 1, 0, 0, 0],
        [1, -1, 0, 1, 0, 0],
        [1, -1, 0, 0, 1, 0],
    ]
    return {
        "W_in": np.array([1.0, -1, -1, -1, -1, -1]),
        "W_rec": np.array(W_rec, dtype=float),
        "W_out": np.array([1.0, -1, 0, 0, 0, 1]),
    }


def init(seed: int = 0) -> Parameters:
    """He's values."""
    rng = np.random.default_rng(seed)
    return {name: he(rng, shape, shape[-1]) for name, shape in SHAPES.items()}


def apply(p: Mapping[str, Array], x: Array) -> Array:
    """The answers ŷ (N,) for a batch x (T, N)."""

    def step(h: Array, x_t: Array) -> Array:
        return relu(h @ p["W_rec"].T + x_t[:, None] * p["W_in"])

    states = scan(step, np.zeros_like(x[0, :, None] * p["W_in"]), x)
    return states[x.shape[0] - 1] @ p["W_out"]


def absolute_loss(p: Mapping[str, Array], x: Array) -> Array:
    """The mean of |ŷ − max x| over a batch x (T, N)."""
    return np.mean(np.abs(apply(p, x) - np.max(x, axis=0)))


def squared_loss(p: Mapping[str, Array], x: Array) -> Array:
    """The mean of (ŷ − max x)² over a batch x (T, N)."""
    return np.mean((apply(p, x) - np.max(x, axis=0)) ** 2)


def batch(rng: np.random.Generator, size: int = 256) -> Array:
    """Sequences of independent numbers, uniform on [−1, 1]: (LENGTH, size)."""
    return rng.uniform(-1, 1, (LENGTH, size))
