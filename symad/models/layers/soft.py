"""Smooth approximations of a maximum and of its position, with a temperature α.

    weights       p_i = e^{z_i/α} / Σ_j e^{z_j/α}        α → 0: 1 at the largest z_i, 0 elsewhere (a Dirac)
    maximum       α log Σ_i e^{z_i/α}                    between max z and max z + α log n
    argmax        Σ_i i p_i                              α → 0: the position of the maximum
    cross-entropy −log p_y = log Σ_j e^{z_j/α} − z_y/α

The gradient of the maximum is p. Shapes: z (..., n), along the last axis; α > 0 a number or a traced one.
Source: Goodfellow, Bengio & Courville, "Deep Learning" (2016), sections 4.1 and 6.2.2.3.
"""

from __future__ import annotations

import numpy as np

from symad.core.arrays import Array
from symad.errors import SymadError
from symad.functions import arange, log_softmax, logsumexp, softmax


def weights(z: Array, alpha: Array | float = 1.0) -> Array:
    """softmax(z/α): (..., n) -> (..., n)."""
    return softmax(z / _positive(alpha), axis=-1)


def log_weights(z: Array, alpha: Array | float = 1.0) -> Array:
    """log softmax(z/α): (..., n) -> (..., n)."""
    return log_softmax(z / _positive(alpha), axis=-1)


def maximum(z: Array, alpha: Array | float = 1.0) -> Array:
    """α log Σ e^{z/α}: (..., n) -> (...)."""
    return alpha * logsumexp(z / _positive(alpha), axis=-1)


def argmax(z: Array, alpha: Array | float = 1.0) -> Array:
    """Σ_i i p_i, i = 0..n−1: (..., n) -> (...)."""
    return np.sum(weights(z, alpha) * (1.0 * arange(z.shape[-1])), axis=-1)


def _positive(alpha: Array | float) -> Array | float:
    if isinstance(alpha, (int, float)) and not alpha > 0:
        raise SymadError(f"the temperature alpha={alpha} must be > 0; its limit 0 is np.max and np.argmax")
    return alpha
