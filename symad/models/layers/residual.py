"""The residual network.

    x_{k+1} = x_k + h (V_k σ(W_k x_k + b_k) + c_k),  k = 0..L−1,   x_0 = E x,   y = R x_L + r,

an Euler step of size h for each layer (h = 1 in the network of He et al.). The layers are the steps of a
recurrence over stacked parameters, so that the code does not grow with depth, and ``memory`` says which
activations reverse mode keeps. Shapes: x (d_in,) or a batch (N, d_in), E (d, d_in), W (L, m, d), b (L, m), V
(L, d, m), c (L, d), R (d_out, d), r (d_out,). Sources: He, Zhang, Ren & Sun, "Identity mappings in deep
residual networks" (2016), equation 2; E, "A proposal on machine learning via dynamical systems" (2017),
section 3.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import sympy

from symad.core.arrays import Array
from symad.core.dims import Dim
from symad.core.signatures import Memory
from symad.errors import ShapeError
from symad.functions import fold
from symad.models.layers.activations import activation
from symad.models.layers.losses import cross_entropy, mean_squared_error
from symad.models.layers.options import model
from symad.models.layers.parameters import Parameters, Shapes, glorot, normal, numbers


@model
class ResNet:
    """A residual network of the given sizes, which are ints or symbols.

    Args:
        inputs: d_in.
        width: d, the number of features of a state.
        hidden: m, the width inside a layer.
        outputs: d_out.
        layers: L.
        step: h.
        activation: see `symad.models.activations`.
        memory: see `symad.functions.fold`.
    """

    inputs: Dim
    width: Dim
    hidden: Dim
    outputs: Dim
    layers: Dim
    step: float | sympy.Expr = 1
    activation: str = "tanh"
    memory: Memory = "all"

    @property
    def shapes(self) -> Shapes:
        """E, W, b, V, c, R, r."""
        d, m, depth = self.width, self.hidden, self.layers
        return {
            "E": (d, self.inputs),
            "W": (depth, m, d),
            "b": (depth, m),
            "V": (depth, d, m),
            "c": (depth, d),
            "R": (self.outputs, d),
            "r": (self.outputs,),
        }

    def init(self, seed: int = 0) -> Parameters:
        """Matrices Glorot's, V divided by √L so that the state's variance stays bounded; biases 0."""
        rng = np.random.default_rng(seed)
        start = {
            name: glorot(rng, shape) if name in "EWR" else normal(rng, shape, 0.0)
            for name, shape in self.shapes.items()
            if name != "V"
        }
        start["V"] = glorot(rng, self.shapes["V"]) / np.sqrt(numbers((self.layers,))[0])
        return {name: start[name] for name in self.shapes}

    def layer(self, x: Array, W: Array, b: Array, V: Array, c: Array) -> Array:
        """One layer: x (..., d)."""
        return x + self.step * (activation(self.activation)(x @ W.T + b) @ V.T + c)

    def apply(self, p: Mapping[str, Array], x: Array) -> Array:
        """The outputs (..., d_out) of inputs (..., d_in).

        Raises:
            ShapeError: the inputs have another size.
        """
        if len(x.shape) not in (1, 2) or x.shape[-1] != self.inputs:
            raise ShapeError(f"a residual network of {self.inputs} inputs was given x of shape {x.shape}")
        stacked = (p["W"], p["b"], p["V"], p["c"])
        state = fold(lambda x, layer: self.layer(x, *layer), x @ p["E"].T, stacked, self.memory)
        return state @ p["R"].T + p["r"]

    def loss(self, p: Mapping[str, Array], x: Array, y: Array) -> Array:
        """The mean squared error."""
        return mean_squared_error(self.apply(p, x), y)

    def classification_loss(self, p: Mapping[str, Array], x: Array, y: Array) -> Array | float:
        """The cross-entropy with integer targets y (N,)."""
        return cross_entropy(self.apply(p, x), y)
