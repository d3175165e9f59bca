"""Long short-term memory.

    i, f, o = σ(W_h· h_{t−1} + W_x· x_t + b·),   g = tanh(W_hg h_{t−1} + W_xg x_t + b_g),
    c_t = f ⊙ c_{t−1} + i ⊙ g,   h_t = o ⊙ tanh(c_t),   y_t = W_hy h_t + c_y,   h_0 = c_0 = 0.

The additive path is ∂c_t/∂c_{t−1} = diag(f), without a matrix: gradients along it decay only according to the
forget gate, whereas a plain recurrence multiplies by diag(1 − h²) W_hh at each step. Through
the gates, ∂h_t/∂h_{t−1} = diag(o (1 − tanh² c)) ∂c_t/∂h_{t−1} + diag(tanh c) ∂o/∂h_{t−1}.

Shapes: the four gates lie along a leading axis in the order i, f, o, g: W_x (4, d_h, d_in),
W_h (4, d_h, d_h), b (4, d_h); x (T, d_in) or (T, N, d_in). Sources: Hochreiter & Schmidhuber (1997);
the forget gate: Gers, Schmidhuber & Cummins (2000).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Dim
from symad.functions import scan
from symad.models.layers.options import model
from symad.models.layers.parameters import (
    Parameters,
    Shapes,
    check_shapes,
    initial,
    numbers,
    recurrent_matrices,
)
from symad.models.sequences import sequence_losses
from symad.models.sequences.recurrent import Recurrent, lstm_step
from symad.models.sequences.rnn import check_sequence, zero_state

GATES = ("i", "f", "o", "g")


def step(h: Array, c: Array, driven: Array, W_h: Array) -> tuple[Array, Array]:
    """One step: (h_{t−1}, c_{t−1}) -> (h_t, c_t).

    Args:
        h: (d_h,) or (N, d_h), as is c.
        c: the cell.
        driven: W_x x_t + b, (4, d_h) or (4, N, d_h).
        W_h: (4, d_h, d_h).
    """
    a = {gate: driven[k] for k, gate in enumerate(GATES)}
    r = {gate: h @ W_h[k].T for k, gate in enumerate(GATES)}
    h, c = lstm_step(a, r, (h, c), None)
    return h, c


@model
class LSTM:
    """A network of LSTM layers; sizes are ints or symbols.

    Args:
        inputs: d_in.
        hidden: d_h of every layer.
        outputs: d_out.
        layers: the number of recurrent layers.
    """

    inputs: Dim
    hidden: Dim
    outputs: Dim
    layers: int = 1

    @property
    def shapes(self) -> Shapes:
        """W_x1, W_h1, b1, ..., W_hy, c_y."""
        found: Shapes = {}
        for k in range(1, self.layers + 1):
            found[f"W_x{k}"] = (4, self.hidden, self.inputs if k == 1 else self.hidden)
            found[f"W_h{k}"] = (4, self.hidden, self.hidden)
            found[f"b{k}"] = (4, self.hidden)
        return found | {"W_hy": (self.outputs, self.hidden), "c_y": (self.outputs,)}

    def init(self, seed: int = 0) -> Parameters:
        """W_h orthogonal, W_x and W_hy Glorot's, biases 0 but 1 for the forget gates (Gers et al.)."""
        made = initial(self.shapes, seed, recurrent_matrices)
        for k in range(1, self.layers + 1):
            made[f"b{k}"][GATES.index("f")] = 1.0
        return made

    @property
    def torch_layout(self) -> Recurrent:
        """The same layers under PyTorch's names, in the order i, f, g, o."""
        return Recurrent("lstm", self.inputs, self.hidden, self.layers)

    def to_torch(self, p: Mapping[str, Array]) -> dict[str, Array]:
        """The layers' weights in the layout of ``torch.nn.LSTM``, with b_hh = 0; without W_hy and c_y."""
        ours, made = replace(self.torch_layout, gates="".join(GATES)), {}
        for name, shape in ours.shapes.items():
            part, k = name.rsplit("_l", 1)
            found = {"weight_ih": "W_x", "weight_hh": "W_h", "bias_ih": "b"}.get(part)
            own = np.zeros(numbers(shape)) if found is None else p[f"{found}{int(k) + 1}"]
            made[name] = own.reshape(shape)
        return ours.reordered(made, self.torch_layout.order)

    def from_torch(self, state: Mapping[str, Array]) -> dict[str, Array]:
        """W_x1, W_h1, b1 = b_ih + b_hh, ... from the weights of a ``torch.nn.LSTM`` as arrays.

        Raises:
            ShapeError: names or shapes are not those of these layers.
        """
        theirs = self.torch_layout
        check_shapes("from_torch", state, theirs.shapes)
        moved, made = theirs.reordered(state, "".join(GATES)), {}
        for k in range(self.layers):
            for ours, value in (
                (f"W_x{k + 1}", moved[f"weight_ih_l{k}"]),
                (f"W_h{k + 1}", moved[f"weight_hh_l{k}"]),
                (f"b{k + 1}", moved[f"bias_ih_l{k}"] + moved[f"bias_hh_l{k}"]),
            ):
                made[ours] = value.reshape(self.shapes[ours])
        return made

    def states(self, p: Mapping[str, Array], x: Array) -> tuple[Array, Array]:
        """h_1..h_T and c_1..c_T of the last layer, each (T, d_h) or (T, N, d_h)."""
        check_sequence(x)
        history = x, x
        for k in range(1, self.layers + 1):
            W_x, W_h, b = p[f"W_x{k}"], p[f"W_h{k}"], p[f"b{k}"]
            # The inputs of all steps are computed by one product: (T, 4, d_h) or (T, 4, N, d_h).
            if len(x.shape) == 2:
                driven = np.einsum("td,ghd->tgh", history[0], W_x) + b
            else:
                driven = np.einsum("tnd,ghd->tgnh", history[0], W_x) + b[:, None, :]

            def advance(state: tuple[Array, ...], z: Array, W: Array = W_h) -> tuple[Array, ...]:
                return step(state[0], state[1], z, W)

            zeros = zero_state(x, b[0])
            history = scan(advance, (zeros, zeros), driven)
        return history

    def apply(self, p: Mapping[str, Array], x: Array) -> Array:
        """y_1, ..., y_T: x (T, d_in) -> (T, d_out), or with a batch axis."""
        return self.states(p, x)[0] @ p["W_hy"].T + p["c_y"]

    def last(self, p: Mapping[str, Array], x: Array) -> Array:
        """y_T, sequence-to-one: (d_out,) or (N, d_out)."""
        return self.states(p, x)[0][x.shape[0] - 1] @ p["W_hy"].T + p["c_y"]

    loss = sequence_losses.loss
    last_loss = sequence_losses.last_loss
    language_loss = sequence_losses.language_loss
