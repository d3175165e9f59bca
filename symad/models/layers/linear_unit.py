"""The linear recurrent unit, with the autoregressive model as a special case.

    h_t = W_rec h_{t−1} + w_in x_t,   y_t = ⟨w_out, h_t⟩,   h_0 = 0.

With W_rec the shift matrix (ones below the diagonal), w_in = e_1 and w_out = w the state is the window
(x_t, x_{t−1}, ..., x_{t−s+1}) and the unit is AR(s) without bias: y_t = Σ_τ w_τ x_{t−τ}, with x = 0 before
the start. Shapes: W_rec (s, s), w_in and w_out (s,), x (T,), y (T,).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from symad.core.arrays import Array, ArrayLike
from symad.functions import scan
from symad.models.layers.parameters import Parameters


def apply(p: Mapping[str, Array], x: Array) -> Array:
    """y_1, ..., y_T of the inputs x (T,)."""

    def step(h: Array, x_t: Array) -> Array:
        return p["W_rec"] @ h + p["w_in"] * x_t

    return scan(step, np.zeros_like(p["w_in"]), x) @ p["w_out"]


def from_ar(weights: ArrayLike) -> Parameters:
    """The unit that is the AR model with these weights (s,), the newest lag first; they may be traced."""
    w = weights if hasattr(weights, "shape") else np.asarray(weights)
    s = int(w.shape[0])
    return {"W_rec": np.eye(s, k=-1), "w_in": np.eye(s)[0], "w_out": w}
