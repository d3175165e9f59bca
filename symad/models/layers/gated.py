"""The feed-forward blocks of transformers, applied at every position.

    relu, gelu:      W_2 σ(W_1 x + b_1) + b_2, gelu exact or by tanh (gelu_tanh);
    geglu, swiglu:   W_2 (σ(W_1 x + b_1) ⊙ (W_3 x + b_3)) + b_2,   σ = gelu or silu.

In rows: x (..., d), W_1 and W_3 (d, d_ff), W_2 (d_ff, d). Sources: Vaswani et al. (2017), equation 2;
Shazeer, "GLU variants improve transformer" (2020), equations 5 and 6.
"""

from __future__ import annotations

from collections.abc import Mapping

from symad.core.arrays import Array
from symad.core.dims import Dim
from symad.errors import SymadError
from symad.models.layers.activations import activation
from symad.models.layers.options import model
from symad.models.layers.parameters import Parameters, Shapes, initial, normal_matrices

KINDS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_tanh", "geglu": "gelu", "swiglu": "silu"}


@model
class FeedForwardBlock:
    """A block of width d with d_ff hidden features; kind "relu", "gelu", "gelu_tanh", "geglu" or "swiglu".

    Raises:
        SymadError: another kind.
    """

    width: Dim
    hidden: Dim
    kind: str = "gelu"
    bias: bool = True

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SymadError(f"the block {self.kind!r} is not one of {', '.join(KINDS)}")

    @property
    def gated(self) -> bool:
        """True if W_3 exists."""
        return self.kind.endswith("glu")

    @property
    def shapes(self) -> Shapes:
        """W_1, W_2, (W_3), and biases."""
        found: Shapes = {"W_1": (self.width, self.hidden), "W_2": (self.hidden, self.width)}
        if self.gated:
            found["W_3"] = (self.width, self.hidden)
        if self.bias:
            found |= {"b_1": (self.hidden,), "b_2": (self.width,)}
            if self.gated:
                found["b_3"] = (self.hidden,)
        return found

    def init(self, seed: int = 0, scale: float = 0.02) -> Parameters:
        """Normal numbers, biases 0."""
        return initial(self.shapes, seed, normal_matrices(scale))

    def apply(self, p: Mapping[str, Array], x: Array) -> Array:
        """(..., d) -> (..., d)."""

        def linear(k: int, value: Array) -> Array:
            projected = value @ p[f"W_{k}"]
            return projected + p[f"b_{k}"] if self.bias else projected

        hidden = activation(KINDS[self.kind])(linear(1, x))
        return linear(2, hidden * linear(3, x) if self.gated else hidden)
