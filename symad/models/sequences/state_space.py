"""The selective linear state space model, and blocks of it.

    h_t = Ā_t ⊙ h_{t−1} + B̄_t x_t,   y_t = C_t h_t + D ⊙ x_t,   h_0 = 0,
    Ā_t = exp(Δ_t A),   B̄_t = Δ_t B_t,   A = −exp(a) < 0,

where each of the d features has its own state of n numbers. The step Δ_t = softplus(W_Δ x_t + b_Δ), the
input map B_t = W_B x_t and the readout C_t = W_C x_t depend on x_t: the model chooses what to keep. For given
values of these the recurrence is linear, and (Ā, b) ∘ (Ā', b') = (Ā' Ā, Ā' b + b') is associative: all h_t
are prefix sums of T elements, computed in O(log T) rounds (``parallel``, by `symad.functions.affine_scan`),
equal to the loop up to rounding.

A block is x ← x + W_o (s ⊙ silu(z)), with [u, z] = W_i norm(x), v = silu(causal depthwise convolution of u)
and s the state space model of v. Shapes: x (T, d) or a batch (T, N, d); Δ as x; A (d, n); B, C (T, n) or
(T, N, n). Source: Gu & Dao, "Mamba: linear-time sequence modeling with selective state spaces" (2023),
algorithm 2, section 3.4 and appendix C; the prefix sum: Blelloch (1990).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Dim
from symad.errors import ShapeError
from symad.functions import affine_scan, scan, silu, softplus
from symad.models.layers.convolution import depthwise
from symad.models.layers.normalization import rms_norm
from symad.models.layers.options import model
from symad.models.layers.parameters import Parameters, Shapes, glorot, normal, numbers
from symad.models.sequences import sequence_losses
from symad.models.sequences.rnn import check_sequence


def linear_recurrence(A: Array, b: Array) -> Array:
    """h_t = A_t ⊙ h_{t−1} + b_t with h_0 = 0, one step after the other: A and b (T, ...)."""

    def step(h: Array, moving: tuple[Array, ...]) -> Array:
        return moving[0] * h + moving[1]

    return scan(step, np.zeros_like(b[0]), (A, b))


def selective_scan(x: Array, delta: Array, A: Array, B: Array, C: Array, parallel: bool = False) -> Array:
    """y_t = C_t h_t for the recurrence above: x and delta (T, ..., d), A (d, n), B and C (T, ..., n)."""
    if len(A.shape) != 2 or x.shape != delta.shape or x.shape[-1] != A.shape[0] or B.shape != C.shape:
        raise ShapeError(
            f"selective_scan of x {x.shape}, delta {delta.shape}, A {A.shape}, B {B.shape}, C {C.shape}: "
            "needs x and delta (T, ..., d), A (d, n), B and C (T, ..., n)"
        )
    keep = np.exp(delta[..., None] * A)
    enter = (delta * x)[..., None] * B[..., None, :]
    h = (affine_scan if parallel else linear_recurrence)(keep, enter)
    return np.einsum("...dn,...n->...d", h, C)


@model
class StateSpace:
    """A network of selective state space blocks; sizes are ints or symbols.

    Args:
        inputs: d_in.
        hidden: d, the width of the residual stream.
        outputs: d_out.
        state: n, the size of the state of each feature.
        layers: the number of blocks.
        expand: the inner features are expand · d.
        taps: the number of taps of the depthwise convolution.
        parallel: true if the recurrence runs in O(log T) rounds instead of T steps.
    """

    inputs: Dim
    hidden: Dim
    outputs: Dim
    state: Dim = 4
    layers: int = 1
    expand: int = 2
    taps: int = 4
    parallel: bool = False

    @property
    def shapes(self) -> Shapes:
        """W_in, c_in, the parts of each block as ``block1_W_i``, the last norm, W_hy, c_y."""
        d, inner, n = self.hidden, self.expand * self.hidden, self.state
        found: Shapes = {"W_in": (self.inputs, d), "c_in": (d,)}
        for k in range(1, self.layers + 1):
            block: Shapes = {
                "gamma": (d,),
                "W_i": (d, 2 * inner),
                "w": (self.taps, inner),
                "c": (inner,),
                "W_delta": (inner, inner),
                "b_delta": (inner,),
                "W_B": (inner, n),
                "W_C": (inner, n),
                "a": (inner, n),
                "D": (inner,),
                "W_o": (inner, d),
            }
            found |= {f"block{k}_{name}": shape for name, shape in block.items()}
        return found | {"gamma": (d,), "W_hy": (self.outputs, d), "c_y": (self.outputs,)}

    def init(self, seed: int = 0) -> Parameters:
        """A = −1, ..., −n (S4D-real); steps Δ between 0.001 and 0.1 by b_Δ; D = γ = 1; Glorot's matrices."""
        rng = np.random.default_rng(seed)
        start: Parameters = {}
        for name, shape in self.shapes.items():
            sizes, kind = numbers(shape), name.split("_", 1)[-1] if name.startswith("block") else name
            if kind == "a":
                start[name] = np.log(np.broadcast_to(np.arange(1.0, sizes[1] + 1), sizes)).copy()
            elif kind == "b_delta":
                step = np.exp(rng.uniform(np.log(1e-3), np.log(1e-1), sizes))
                start[name] = np.log(np.expm1(step))  # softplus of it is the step
            elif kind in ("gamma", "D"):
                start[name] = np.ones(sizes)
            elif kind == "w":
                start[name] = normal(rng, shape, self.taps**-0.5)
            elif kind == "W_delta":
                start[name] = normal(rng, shape, 0.1 * sizes[0] ** -0.5)
            else:
                start[name] = glorot(rng, shape) if kind[0] == "W" else np.zeros(sizes)
        return start

    def features(self, p: Mapping[str, Array], x: Array) -> Array:
        """The residual stream after the last block, normed: (T, d), or with a batch axis."""
        check_sequence(x)
        x = x @ p["W_in"] + p["c_in"]
        for k in range(1, self.layers + 1):
            block = {name.split("_", 1)[1]: v for name, v in p.items() if name.startswith(f"block{k}_")}
            x = x + self.block(block, x)
        return rms_norm(x, p["gamma"])

    def block(self, p: Mapping[str, Array], x: Array) -> Array:
        """The summand that a block adds to x (T, d) or (T, N, d)."""
        both = rms_norm(x, p["gamma"]) @ p["W_i"]
        inner = p["D"].shape[0]
        u, z = both[..., :inner], both[..., inner:]
        u = silu(self._mix(u, p["w"]) + p["c"])
        delta = softplus(u @ p["W_delta"] + p["b_delta"])
        s = selective_scan(u, delta, -np.exp(p["a"]), u @ p["W_B"], u @ p["W_C"], self.parallel)
        return ((s + p["D"] * u) * silu(z)) @ p["W_o"]

    def _mix(self, u: Array, w: Array) -> Array:
        """The depthwise convolution along the first axis."""
        if len(u.shape) == 2:
            return depthwise(u, w)
        return np.swapaxes(depthwise(np.swapaxes(u, 0, 1), w), 0, 1)

    def apply(self, p: Mapping[str, Array], x: Array) -> Array:
        """y_1, ..., y_T: x (T, d_in) -> (T, d_out), or with a batch axis."""
        return self.features(p, x) @ p["W_hy"].T + p["c_y"]

    loss = sequence_losses.loss
    language_loss = sequence_losses.language_loss
