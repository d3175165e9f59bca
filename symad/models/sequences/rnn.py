"""The recurrent network.

    h_t = σ(W_hh h_{t−1} + W_xh x_t + b),   y_t = W_hy h_t + c,   t = 1..T,   h_0 = 0,

σ = tanh, or relu. Several layers may be stacked: the states of one are the inputs of the next, and
each starts at h = 0. With ``skip`` the readout is W_hy h_t + W_xy x_t + c. Shapes: x (T, d_in) or a
batch (T, N, d_in), W_xh (d_h, d_in), W_hh (d_h, d_h), b (d_h,), W_hy (d_out, d_h), c (d_out,);
sequence-to-sequence y (T, d_out) or (T, N, d_out), sequence-to-one only y_T.

Backpropagation through time is the transpose of the scan:

    ∂L/∂W_hh = Σ_t Σ_{k≤t} ∂L_t/∂h_t (Π_{j=k+1}^t ∂h_j/∂h_{j−1}) ∂⁺h_k/∂W_hh,
    ∂h_j/∂h_{j−1} = diag(1 − h_j²) W_hh,   ⁺ the direct dependence.

Sources: Elman, "Finding structure in time" (1990); Pascanu, Mikolov & Bengio, "On the difficulty of
training recurrent neural networks" (2013), equations 3-5.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Dim
from symad.errors import ShapeError
from symad.functions import scan
from symad.models.layers.activations import activation
from symad.models.layers.options import model
from symad.models.layers.parameters import Parameters, Shapes, initial, recurrent_matrices
from symad.models.sequences import sequence_losses


@model
class RNN:
    """A recurrent network of the given sizes, which are ints or symbols.

    Args:
        inputs: d_in.
        hidden: d_h of every layer.
        outputs: d_out.
        layers: the number of recurrent layers.
        activation: "tanh" or "relu", or another of `symad.models.activations`.
        bias: true if b and c exist.
        skip: true if the readout sees x_t too.
    """

    inputs: Dim
    hidden: Dim
    outputs: Dim
    layers: int = 1
    activation: str = "tanh"
    bias: bool = True
    skip: bool = False

    @property
    def shapes(self) -> Shapes:
        """W_xh1, W_hh1, b1, ..., W_hy, (W_xy,) c."""
        found: Shapes = {}
        for k in range(1, self.layers + 1):
            found[f"W_xh{k}"] = (self.hidden, self.inputs if k == 1 else self.hidden)
            found[f"W_hh{k}"] = (self.hidden, self.hidden)
            if self.bias:
                found[f"b{k}"] = (self.hidden,)
        found["W_hy"] = (self.outputs, self.hidden)
        if self.skip:
            found["W_xy"] = (self.outputs, self.inputs)
        if self.bias:
            found["c"] = (self.outputs,)
        return found

    def init(self, seed: int = 0) -> Parameters:
        """Recurrent matrices orthogonal, so that states neither grow nor decay; others Glorot's; biases 0."""
        return initial(self.shapes, seed, recurrent_matrices)

    def states(self, p: Mapping[str, Array], x: Array) -> Array:
        """h_1, ..., h_T of the last layer: (T, d_h) or (T, N, d_h)."""
        sigma = activation(self.activation)
        for k in range(1, self.layers + 1):
            # The inputs of all steps are computed by one product outside of the loop.
            driven = x @ p[f"W_xh{k}"].T + (p[f"b{k}"] if self.bias else 0)
            W_hh = p[f"W_hh{k}"]

            def step(h: Array, z: Array, W: Array = W_hh) -> Array:
                return sigma(h @ W.T + z)

            x = scan(step, zero_state(x, p[f"b{k}"] if self.bias else W_hh[0]), driven)
        return x

    def apply(self, p: Mapping[str, Array], x: Array) -> Array:
        """y_1, ..., y_T, sequence-to-sequence: x (T, d_in) -> (T, d_out), or with a batch axis."""
        check_sequence(x)
        y = self.states(p, x) @ p["W_hy"].T
        if self.skip:
            y = y + x @ p["W_xy"].T
        return y + p["c"] if self.bias else y

    def last(self, p: Mapping[str, Array], x: Array) -> Array:
        """y_T, sequence-to-one: (d_out,) or (N, d_out)."""
        return self.apply(p, x)[x.shape[0] - 1]

    loss = sequence_losses.loss
    last_loss = sequence_losses.last_loss
    language_loss = sequence_losses.language_loss


def check_sequence(x: Array) -> None:
    """Refuse sequences without steps or features.

    Raises:
        ShapeError: x is not (T, d) or (T, N, d), or T = 0.
    """
    if len(x.shape) not in (2, 3) or x.shape[0] == 0:
        raise ShapeError(f"a sequence has shape (T, d) or, as a batch, (T, N, d) with T ≥ 1, not {x.shape}")


def zero_state(x: Array, like: Array) -> Array:
    """h_0 = 0 in the shape of one state: (d_h,), or (N, d_h) for a batch; ``like`` has shape (d_h,)."""
    zeros = np.zeros_like(like)
    return zeros if len(x.shape) == 2 else np.zeros_like(x[0, :, :1]) + zeros


def jacobian_norms(W_hh: Array, states: Array) -> Array:
    """‖∂h_t/∂h_1‖₂ for t = 1..T of a tanh network: how gradients vanish or explode.

    Args:
        W_hh: (d_h, d_h).
        states: h_1, ..., h_T, (T, d_h).

    Returns:
        (T,) spectral norms of Π_{j=2}^t diag(1 − h_j²) W_hh, the first 1.
    """
    product, norms = np.eye(len(W_hh)), [1.0]
    for h in states[1:]:
        product = (1 - h**2)[:, None] * W_hh @ product
        norms.append(float(np.linalg.norm(product, 2)))
    return np.array(norms)
