"""The two-layer network with the mean-field scaling, and the decay of its error with the width.

    f(x) = (1/n) Σ_{k≤n} u_k σ(⟨v_k, x⟩ + b_k).

If a target is a mean over neurons, f*(x) = E[u σ(⟨v, x⟩ + b)] for random (u, v, b), then n neurons drawn
from that distribution have E (f − f*)² = Var[u σ(⟨v, x⟩ + b)] / n at every x: the error falls as 1/√n,
for every dimension of x. On [−1, 1] every f* with f*(−1) = f*'(−1) = 0 is such a mean, by Taylor's
formula with remainder,

    f*(x) = ∫_{−1}^{1} f*''(s) relu(x − s) ds = E[2 f*''(s) relu(x − s)],   s uniform on [−1, 1].

Shapes: x (N, d), v (n, d), b and u (n,), f (N,); sizes are ints or symbols. Sources: Barron, "Universal
approximation bounds for superpositions of a sigmoidal function" (1993), theorem 1 and lemma 1;
Cybenko (1989); the scaling: Mei, Montanari & Nguyen (2018), equation 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Dim
from symad.errors import ShapeError
from symad.models.layers.activations import activation
from symad.models.layers.losses import mean_squared_error
from symad.models.layers.options import model
from symad.models.layers.parameters import Parameters, Shapes, numbers


@model
class TwoLayer:
    """A network with d inputs and n neurons; sizes are ints or symbols."""

    inputs: Dim
    width: Dim
    activation: str = "relu"

    @property
    def shapes(self) -> Shapes:
        """v, b, u."""
        return {"v": (self.width, self.inputs), "b": (self.width,), "u": (self.width,)}

    def init(self, seed: int = 0) -> Parameters:
        """Standard normal v, b and u, so that each neuron has size 1, as in the mean-field scaling."""
        rng = np.random.default_rng(seed)
        return {name: rng.standard_normal(numbers(shape)) for name, shape in self.shapes.items()}

    def apply(self, p: Mapping[str, Array], x: Array) -> Array:
        """f(x): (N, d) -> (N,)."""
        if len(x.shape) != 2 or x.shape[1] != p["v"].shape[1]:
            raise ShapeError(f"the data must have shape (N, {p['v'].shape[1]}), not {x.shape}")
        return activation(self.activation)(x @ p["v"].T + p["b"]) @ p["u"] / p["u"].shape[0]

    def loss(self, p: Mapping[str, Array], x: Array, y: Array) -> Array:
        """The mean squared error against y (N,)."""
        return mean_squared_error(self.apply(p, x), y)


def sample(curvature: Callable[[np.ndarray], np.ndarray], width: int, rng: np.random.Generator) -> Parameters:
    """n ReLU neurons on [−1, 1] for a target with this second derivative: v = 1, b = −s, u = 2 f''(s)."""
    s = rng.uniform(-1, 1, width)
    return {"v": np.ones((width, 1)), "b": -s, "u": 2 * curvature(s)}


def errors(target: Callable[[np.ndarray], np.ndarray], curvature: Callable[[np.ndarray], np.ndarray],
           widths: list[int], draws: int = 50, points: int = 201, seed: int = 0) -> Array:  # fmt: skip
    """The root mean square of f − f* over points of [−1, 1] and over draws, for each width: (widths,)."""
    rng, x = np.random.default_rng(seed), np.linspace(-1, 1, points)[:, None]
    wanted, found = target(x[:, 0]), []
    for width in widths:
        model = TwoLayer(1, width)
        gaps = [model.apply(sample(curvature, width, rng), x) - wanted for _ in range(draws)]
        found.append(np.sqrt(np.mean(np.square(gaps))))
    return np.array(found)
