"""Normalization: layer norm, RMS norm, batch norm.

    LayerNorm(x) = γ ⊙ (x − μ) / √(σ² + ε) + β,   μ, σ² the mean and variance over the features (last axis);
    RMSNorm(x) = γ ⊙ x / √(mean(x²) + ε);
    BatchNorm as LayerNorm with μ, σ² over the samples (first axis); to predict, running averages of them.

γ, β (d,). In a block G with residual: post-norm LN(x + G(x)), pre-norm x + G(LN(x)), deep norm
LN(α x + G(x)) with α = (2N)^{1/4} for N layers. Sources: Ba, Kiros & Hinton (2016); Zhang & Sennrich
(2019), equation 4; Ioffe & Szegedy (2015), algorithms 1 and 2; Wang et al., "DeepNet" (2022).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symad.core.arrays import Array
from symad.models.layers.options import refuse_complex

EPSILON = 1e-5


def layer_norm(x: Array, gamma: Array, beta: Array | None = None, epsilon: float = EPSILON) -> Array:
    """γ (x − μ) / √(σ² + ε) + β over the last axis of x (..., d); without β if it is None."""
    refuse_complex("a norm", x, gamma, beta)
    centered = x - np.mean(x, axis=-1, keepdims=True)
    scaled = gamma * centered / np.sqrt(np.mean(centered**2, axis=-1, keepdims=True) + epsilon)
    return scaled if beta is None else scaled + beta


def rms_norm(x: Array, gamma: Array, epsilon: float = EPSILON) -> Array:
    """γ x / √(mean(x²) + ε) over the last axis of x (..., d)."""
    refuse_complex("a norm", x, gamma)
    return gamma * x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + epsilon)


def batch_norm(x: Array, gamma: Array, beta: Array, epsilon: float = EPSILON) -> Array:
    """γ (x − μ) / √(σ² + ε) + β with the mean and variance over the samples of x (N, d), in training."""
    refuse_complex("a norm", x, gamma, beta)
    centered = x - np.mean(x, axis=0)
    return gamma * centered / np.sqrt(np.mean(centered**2, axis=0) + epsilon) + beta


def batch_norm_predict(
    x: Array,
    gamma: Array | float,
    beta: Array | float,
    mean: Array,
    variance: Array,
    epsilon: float = EPSILON,
) -> Array:
    """Batch norm with running statistics (d,), for prediction."""
    return gamma * (x - mean) / np.sqrt(variance + epsilon) + beta


def running(mean: Array, variance: Array, x: Array, momentum: float = 0.1) -> tuple[Array, ...]:
    """Running statistics after one more batch x (N, d); the variance is the unbiased one."""
    count = x.shape[0]
    fresh = np.mean(x, axis=0), np.var(x, axis=0) * (count / (count - 1))
    keep = 1 - momentum
    return keep * mean + momentum * fresh[0], keep * variance + momentum * fresh[1]


def deep_scale(layers: int) -> float:
    """α = (2N)^{1/4}."""
    return float((2 * layers) ** 0.25)


def residual(
    order: str, x: Array, G: Callable[[Array], Array], norm: Callable[[Array], Array], alpha: float = 1.0
) -> Array:
    """A block with its residual and norm in the order "pre", "post" or "deep"."""
    if order == "pre":
        return x + G(norm(x))
    return norm((alpha * x if order == "deep" else x) + G(x))
