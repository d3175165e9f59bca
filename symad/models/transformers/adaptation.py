"""Low-rank adaptation of a frozen matrix.

    W' = W + (α/r) B A,   W (d_out, d_in), B (d_out, r), A (r, d_in),   y = x W'ᵀ.

Only A and B are trained. At the start B = 0: W' = W, and the gradient of A vanishes, since it is
(α/r) Bᵀ ∂L/∂W'. Once merged, W' costs no more than W. Source: Hu et al., "LoRA" (2022), section 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from symad.core.arrays import Array
from symad.errors import ShapeError
from symad.models.layers.parameters import Parameters, Shapes, normal, numbers


def adapter_shapes(matrices: Shapes, rank: int) -> Shapes:
    """A and B for each matrix, as ``name_A`` (..., r, d_in) and ``name_B`` (..., d_out, r).

    Raises:
        ShapeError: a parameter that is not a matrix.
    """
    found: Shapes = {}
    for name, shape in matrices.items():
        if len(shape) < 2:
            raise ShapeError(f"{name} of shape {shape} is not a matrix; adapt parameters with two axes")
        *lead, d_out, d_in = shape
        found[f"{name}_A"] = (*lead, rank, d_in)
        found[f"{name}_B"] = (*lead, d_out, rank)
    return found


def init(matrices: Shapes, rank: int, seed: int = 0) -> Parameters:
    """A normal with variance 1/r, B = 0."""
    rng = np.random.default_rng(seed)
    return {
        name: normal(rng, shape, rank**-0.5) if name.endswith("_A") else np.zeros(numbers(shape))
        for name, shape in adapter_shapes(matrices, rank).items()
    }


def merged(W: Array, A: Array, B: Array, alpha: float) -> Array:
    """W + (α/r) B A, for matrices or stacks of them."""
    return W + (alpha / A.shape[-2]) * (B @ A)


def apply(x: Array, W: Array, A: Array, B: Array, alpha: float) -> Array:
    """x W'ᵀ (..., d_out) by x Wᵀ + (α/r) (x Aᵀ) Bᵀ, without forming W': x (..., d_in)."""
    return x @ W.T + (alpha / A.shape[0]) * ((x @ A.T) @ B.T)


def adapt(frozen: Mapping[str, Array], adapters: Mapping[str, Array], alpha: float) -> dict[str, Array]:
    """The parameters of a model with each adapted matrix replaced by W'; give these to its functions."""
    return {
        name: merged(W, adapters[f"{name}_A"], adapters[f"{name}_B"], alpha) if f"{name}_A" in adapters else W
        for name, W in frozen.items()
    }
