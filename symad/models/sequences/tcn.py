"""The temporal convolutional network: residual blocks of dilated causal convolutions.

    block l = 1..L, dilation r = 2^{l−1}:
    u = relu(C_r(z; W1_l) + b1_l),   v = relu(C_r(u; W2_l) + b2_l),   z ← relu(v + S_l z),
    y_t = W_hy z_t + c_y,

C_r is the causal convolution with K taps, S_l a matrix where the width changes and otherwise the identity.
Output t depends on the R = 1 + 2 (K − 1)(2^L − 1) inputs x_{t−R+1}, ..., x_t and no others. Shapes: x (T,
d_in) or a batch (T, N, d_in), y (T, d_out) or (T, N, d_out), W1_l and W2_l (K, d, d). Source: Bai, Kolter &
Koltun, "An empirical evaluation of generic convolutional and recurrent networks" (2018), section 3, without
weight normalization and dropout.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Dim
from symad.functions import relu
from symad.models.layers.convolution import causal
from symad.models.layers.options import model
from symad.models.layers.parameters import Parameters, Shapes, glorot_matrices, he, initial
from symad.models.sequences import sequence_losses
from symad.models.sequences.rnn import check_sequence


@model
class TCN:
    """A network of L blocks; sizes are ints or symbols, levels and taps ints.

    Args:
        inputs: d_in.
        hidden: d, the features of every block.
        outputs: d_out.
        levels: L.
        taps: K.
    """

    inputs: Dim
    hidden: Dim
    outputs: Dim
    levels: int = 3
    taps: int = 3

    @property
    def receptive_field(self) -> int:
        """R, the number of inputs on which an output depends."""
        return 1 + 2 * (self.taps - 1) * (2**self.levels - 1)

    @property
    def shapes(self) -> Shapes:
        """W1_1, b1_1, W2_1, b2_1, (S_1,) ..., W_hy, c_y."""
        found: Shapes = {}
        for level in range(1, self.levels + 1):
            width = self.inputs if level == 1 else self.hidden
            found[f"W1_{level}"] = (self.taps, width, self.hidden)
            found[f"b1_{level}"] = (self.hidden,)
            found[f"W2_{level}"] = (self.taps, self.hidden, self.hidden)
            found[f"b2_{level}"] = (self.hidden,)
            if width != self.hidden:
                found[f"S_{level}"] = (width, self.hidden)
        return found | {"W_hy": (self.outputs, self.hidden), "c_y": (self.outputs,)}

    def init(self, seed: int = 0) -> Parameters:
        """He's values for filters, Glorot's for S and W_hy, biases 0."""

        def start(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
            filters = len(shape) == 3
            return he(rng, shape, shape[0] * shape[1]) if filters else glorot_matrices(rng, name, shape)

        return initial(self.shapes, seed, start)

    def features(self, p: Mapping[str, Array], x: Array) -> Array:
        """z_1, ..., z_T of the last block: (T, d), or with a batch axis."""
        check_sequence(x)
        batched = len(x.shape) == 3
        z = np.swapaxes(x, 0, 1) if batched else x
        for level in range(1, self.levels + 1):
            r = 2 ** (level - 1)
            u = relu(causal(z, p[f"W1_{level}"], r) + p[f"b1_{level}"])
            v = relu(causal(u, p[f"W2_{level}"], r) + p[f"b2_{level}"])
            z = relu(v + (z @ p[f"S_{level}"] if f"S_{level}" in p else z))
        return np.swapaxes(z, 0, 1) if batched else z

    def apply(self, p: Mapping[str, Array], x: Array) -> Array:
        """y_1, ..., y_T: x (T, d_in) -> (T, d_out), or with a batch axis."""
        return self.features(p, x) @ p["W_hy"].T + p["c_y"]

    loss = sequence_losses.loss
