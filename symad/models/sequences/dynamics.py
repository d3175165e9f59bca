"""Attention as the velocity of particles: the limit of infinitely many thin layers acting on the tokens.

    dx_i/dt = (1/Z_i) Σ_j e^{β ⟨Q x_i, K x_j⟩} V x_j,   i = 1..n,

with Z_i = Σ_j e^{β ⟨Q x_i, K x_j⟩}, as in self-attention, or Z_i = n. On the sphere ("layer norm") the
velocity is projected to the tangent space, v − ⟨x_i, v⟩ x_i, and |x_i| = 1 is preserved. For Q = K = V = I
and Z_i = n the motion on the sphere is the gradient ascent of the energy

    E(x) = 1/(2 β n²) Σ_ij e^{β ⟨x_i, x_j⟩},   dx_i/dt = n (∂E/∂x_i projected),

so tokens gather: from almost all starts in dimension d ≥ 3 they converge to one point. Integrated by the
classical Runge-Kutta method of order 4, as a scan. Shapes: x (n, d), Q and K (d_k, d), V (d, d); trajectories
(steps, n, d). Sources: Sander et al., "Sinkformers" (2022), section 3; Geshkovski, Letrouit, Polyanskiy &
Rigollet, "A mathematical perspective on transformers" (2023), equations 2.3, 3.3 and theorem 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Dim
from symad.core.given import renamed
from symad.errors import ShapeError, SymadError
from symad.functions import scan, softmax
from symad.models.layers.options import model
from symad.models.layers.parameters import Parameters, Shapes, normal, numbers

NORMALIZERS = ("softmax", "count")


@renamed(normaliser="normalizer")
@model
class AttentionDynamics:
    """Particles in dimension d; sizes are ints or symbols.

    Args:
        width: d.
        key: d_k; by default d.
        beta: β.
        sphere: true if the particles stay on the unit sphere.
        normalizer: "softmax" for Z_i = Σ_j e^{...}, "count" for Z_i = n.

    Raises:
        SymadError: another normalizer.
    """

    width: Dim
    key: Dim | None = None
    beta: float = 1.0
    sphere: bool = True
    normalizer: str = "softmax"

    def __post_init__(self) -> None:
        if self.normalizer not in NORMALIZERS:
            raise SymadError(f"normalizer={self.normalizer!r} is not one of {', '.join(NORMALIZERS)}")

    @property
    def shapes(self) -> Shapes:
        """Q, K, V."""
        key = self.width if self.key is None else self.key
        return {"Q": (key, self.width), "K": (key, self.width), "V": (self.width, self.width)}

    def init(self, seed: int = 0) -> Parameters:
        """Normal numbers of variance 1/d."""
        rng = np.random.default_rng(seed)
        return {k: normal(rng, s, numbers(s)[-1] ** -0.5) for k, s in self.shapes.items()}

    def identity(self) -> Parameters:
        """Q = K = V = I, for which there is an energy."""
        return {k: np.eye(numbers(s)[0], numbers(s)[1]) for k, s in self.shapes.items()}

    def velocity(self, p: Mapping[str, Array], x: Array) -> Array:
        """dx/dt: (n, d) -> (n, d)."""
        if len(x.shape) != 2 or x.shape[1] != p["V"].shape[1]:
            raise ShapeError(f"particles have shape (n, {p['V'].shape[1]}), not {x.shape}")
        scores = self.beta * ((x @ p["Q"].T) @ (x @ p["K"].T).T)
        a = softmax(scores, axis=-1) if self.normalizer == "softmax" else np.exp(scores) / x.shape[0]
        v = a @ (x @ p["V"].T)
        return v - np.sum(x * v, axis=-1, keepdims=True) * x if self.sphere else v

    def trajectory(self, p: Mapping[str, Array], x: Array, time: float, steps: int) -> Array:
        """x after 1, 2, ..., ``steps`` steps to ``time``: (n, d) -> (steps, n, d)."""
        if steps < 1:
            raise SymadError(f"the trajectory needs at least one step, not {steps}")
        h = time / steps

        def step(x: Array, _: Array | float) -> Array:
            k1 = self.velocity(p, x)
            k2 = self.velocity(p, x + h / 2 * k1)
            k3 = self.velocity(p, x + h / 2 * k2)
            k4 = self.velocity(p, x + h * k3)
            return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

        return scan(step, x, np.zeros(steps))

    def loss(self, p: Mapping[str, Array], x: Array, y: Array, time: float = 1.0, steps: int = 10) -> Array:
        """The mean squared distance of the particles at the end from y (n, d)."""
        return np.mean((self.trajectory(p, x, time, steps)[steps - 1] - y) ** 2)


def energy(x: Array, beta: Array | float) -> Array | float:
    """E(x) of particles (n, d)."""
    return np.sum(np.exp(beta * (x @ x.T))) / (2 * beta * x.shape[0] ** 2)


def clusters(x: Array, near: float = 0.05) -> int:
    """The number of groups of particles (n, d); neighbors within the distance ``near`` belong together."""
    from scipy.sparse.csgraph import connected_components

    x = np.asarray(x)
    distance = np.linalg.norm(x[:, None] - x[None], axis=-1)
    return int(connected_components(distance < near, directed=False)[0])
