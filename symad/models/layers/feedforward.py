"""The feed-forward network.

    S_0 = X,   S_{2k−1} = S_{2k−2} W_k + b_k,   S_{2k} = σ(S_{2k−1}),   k = 1..H,
    readout S_{2H+1} = S_{2H} W_{H+1},   loss S_{2H+2} = ℓ(S_{2H+1}, Y)

in the right convention, where rows are samples: X (N, d_0), W_k (d_{k−1}, d_k), b_k (d_k,). In the left
convention columns are samples, S_{2k−1} = W_k S_{2k−2} + b_k, with X (d_0, N), W_k (d_k, d_{k−1}); the
parameters of one are the transposes of those of the other. Source: Goodfellow, Bengio & Courville,
"Deep Learning" (2016), algorithm 6.3.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Dim
from symad.core.graph import Graph
from symad.errors import ShapeError
from symad.models.layers.activations import activation
from symad.models.layers.losses import cross_entropy, mean_squared_error
from symad.models.layers.options import model
from symad.models.layers.parameters import Parameters, Shapes, glorot, he, trace_model

RECTIFIED = ("relu", "gelu", "silu", "softplus")


@model
class FeedForward:
    """A network with layers of the given widths.

    Args:
        widths: d_0, d_1, ..., d_{H+1}: the inputs, the H hidden layers, the outputs; ints or symbols.
        activation: "tanh", "relu", "sigmoid", "gelu", "silu" or "softplus".
        convention: "right" (samples are rows) or "left" (samples are columns).

    Raises:
        ShapeError: fewer than two widths, or another convention.
    """

    widths: tuple[Dim, ...]
    activation: str = "tanh"
    convention: str = "right"

    def __post_init__(self) -> None:
        if len(self.widths) < 2 or self.convention not in ("left", "right"):
            raise ShapeError(
                f"FeedForward(widths={self.widths}, convention={self.convention!r}) needs the widths "
                "of inputs and outputs at least, and the convention 'left' or 'right'"
            )

    @property
    def hidden(self) -> int:
        """H, the number of hidden layers."""
        return len(self.widths) - 2

    @property
    def shapes(self) -> Shapes:
        """W1, b1, ..., W_H, b_H and the readout W_{H+1}, which has no bias."""
        found: Shapes = {}
        for k in range(1, self.hidden + 2):
            fan_in, fan_out = self.widths[k - 1], self.widths[k]
            found[f"W{k}"] = (fan_in, fan_out) if self.convention == "right" else (fan_out, fan_in)
            if k <= self.hidden:
                found[f"b{k}"] = (fan_out,)
        return found

    def init(self, seed: int = 0) -> Parameters:
        """He's values for ReLU and related functions, Glorot's for the others; biases 0."""
        rng = np.random.default_rng(seed)

        def start(name: str) -> np.ndarray:
            shape = self.shapes[name]
            if name.startswith("b"):
                return np.zeros(shape)
            if self.activation in RECTIFIED:
                return he(rng, shape, shape[0] if self.convention == "right" else shape[1])
            return glorot(rng, shape)

        return {name: start(name) for name in self.shapes}

    def apply(self, p: Mapping[str, Array], X: Array) -> Array:
        """The readout S_{2H+1}: X (N, d_0) -> (N, d_{H+1}), or transposed in the left convention."""
        sigma, S = activation(self.activation), X
        for k in range(1, self.hidden + 1):
            if self.convention == "right":
                S = sigma(S @ p[f"W{k}"] + p[f"b{k}"])
            else:
                S = sigma(p[f"W{k}"] @ S + p[f"b{k}"][:, None])
        last = p[f"W{self.hidden + 1}"]
        return S @ last if self.convention == "right" else last @ S

    def loss(self, p: Mapping[str, Array], X: Array, Y: Array) -> Array:
        """The mean squared error of the readout against Y, in the shape of the readout."""
        return mean_squared_error(self.apply(p, X), Y)

    def classification_loss(self, p: Mapping[str, Array], X: Array, y: Array) -> Array | float:
        """The cross-entropy of softmax(readout) against the classes y (N,)."""
        scores = self.apply(p, X)
        return cross_entropy(scores if self.convention == "right" else scores.T, y)

    def graph(self, samples: Dim) -> Graph:
        """The loss as a graph of (W1, b1, ..., X, Y); `symad.to_sympy` prints it."""
        ends = (self.widths[0], self.widths[-1])
        if self.convention == "right":
            return trace_model(self.loss, self.shapes, *((samples, d) for d in ends))
        return trace_model(self.loss, self.shapes, *((d, samples) for d in ends))
