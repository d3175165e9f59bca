"""Losses of single numbers, elementwise: predictions and targets of one shape give losses of that shape.

With e = ŷ − y, a probability p, a logit z and log-probabilities q,

    absolute |e|;  squared e²;  huber e²/2 where |e| ≤ δ, else δ (|e| − δ/2);  smooth absolute: huber/β;
    quantile max(−τ e, (1 − τ) e);  logistic w y log(1 + e^{−z}) + (1 − y) log(1 + e^z);
    binary cross-entropy −y log p − (1 − y) log(1 − p);  divergence y (log y − q);
    poisson e^z − y z, or μ − y log(μ + ε);  gaussian (log v + e²/v)/2, v at least ε.

`reduced` makes one number of them. Sources: Huber (1964); Koenker & Bassett (1978); in the form of
``torch.nn``, with the same bounds on logarithms and variances.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import format_shape, same_shape
from symad.errors import ShapeError, SymadError
from symad.functions import softplus, stop_gradient, xlogy
from symad.models.layers.options import refuse_complex

REDUCTIONS = ("mean", "sum", "none", "batchmean")


def reduced(values: Array, reduction: str = "mean") -> Any:
    """The mean or the sum of all elements, the sum over the length of the first axis, or the elements.

    Raises:
        SymadError: another reduction.
    """
    if reduction not in REDUCTIONS:
        raise SymadError(f"reduction={reduction!r} is not one of {', '.join(REDUCTIONS)}")
    if reduction == "none":
        return values
    if reduction == "mean":
        return np.mean(values)
    return np.sum(values) / (values.shape[0] if reduction == "batchmean" else 1)


def error(predicted: Array, target: Array) -> Array:
    """e = ŷ − y, of arrays of one shape or of numbers: (N, 1) and (N,) would be N² differences.

    Raises:
        ShapeError: two other shapes.
    """
    check_pair(predicted, target)
    return predicted - target


def check_pair(predicted: Array, target: Array) -> None:
    """Refuse a prediction and a target of different shapes, unless one is a number, and complex ones."""
    refuse_complex("a loss", predicted, target)
    a, b = (tuple(getattr(v, "shape", ())) for v in (predicted, target))
    if a and b and not same_shape(a, b):
        raise ShapeError(
            f"a loss of predictions {format_shape(a)} and targets {format_shape(b)}, which would be "
            "broadcast; give both one shape"
        )


def squared(predicted: Array, target: Array) -> Array:
    """e²."""
    return error(predicted, target) ** 2


def absolute(predicted: Array, target: Array) -> Array:
    """|e|, with the derivative 0 at 0."""
    return np.abs(error(predicted, target))


def huber(predicted: Array, target: Array, delta: float = 1.0) -> Array:
    """e²/2 where |e| ≤ δ, else δ (|e| − δ/2)."""
    if not delta > 0:
        raise ShapeError(f"delta={delta} of Huber's loss must be positive")
    size = absolute(predicted, target)
    inside = np.minimum(size, delta)
    return inside * (size - inside / 2)


def smooth_absolute(predicted: Array, target: Array, beta: float = 1.0) -> Array:
    """Huber's loss over β: |e| − β/2 far away; |e| if β = 0."""
    return huber(predicted, target, beta) / beta if beta else absolute(predicted, target)


def quantile(predicted: Array, target: Array, level: float = 0.5) -> Array:
    """max(τ (y − ŷ), (τ − 1)(y − ŷ)); its mean is minimal at the τ-quantile.

    Raises:
        ShapeError: the level is not in (0, 1).
    """
    if not 0 < level < 1:
        raise ShapeError(f"level={level} is not a level of quantiles in (0, 1)")
    rest = -error(predicted, target)
    return np.maximum(level * rest, (level - 1) * rest)


def logistic(logit: Array, target: Array, positive: Array | float = 1.0) -> Array:
    """w y log(1 + e^{−z}) + (1 − y) log(1 + e^z) for y in [0, 1]; w, ``positive``, is the weight of y = 1."""
    check_pair(logit, target)
    return softplus(-logit) * target * positive + softplus(logit) * (1 - target)


def binary_cross_entropy(probability: Array, target: Array) -> Array:
    """−y log p − (1 − y) log(1 − p), each logarithm at least −100."""
    check_pair(probability, target)
    kept, lost = (np.maximum(v, -100.0) for v in (np.log(probability), np.log1p(-probability)))
    return -target * kept - (1 - target) * lost


def divergence(log_probability: Array, target: Array, log_target: bool = False) -> Array:
    """y (log y − q), 0 where y = 0; ``log_target``: log y is given."""
    check_pair(log_probability, target)
    if log_target:
        return np.exp(target) * (target - log_probability)
    return xlogy(target, target) - target * log_probability


def poisson(
    predicted: Array, target: Array, logarithmic: bool = True, epsilon: float = 1e-8, full: bool = False
) -> Array:
    """e^z − y z, or μ − y log(μ + ε); ``full`` adds Stirling's y log y − y + log(2πy)/2 where y > 1."""
    check_pair(predicted, target)
    loss: Array
    if logarithmic:
        loss = np.exp(predicted) - target * predicted
    else:
        loss = predicted - target * np.log(predicted + epsilon)
    if not full:
        return loss
    large = np.where(target > 1, target, 1.0)
    stirling: Array = large * np.log(large) - large + np.log(2 * np.pi * large) / 2
    return loss + np.where(target > 1, stirling, 0.0)


def gaussian(mean: Array, target: Array, variance: Array, epsilon: float = 1e-6, full: bool = False) -> Array:
    """(log v + e²/v)/2, where v < ε its value and slope at ε, as PyTorch; ``full`` adds log(2π)/2."""
    v = variance + stop_gradient(np.maximum(variance, epsilon) - variance)
    loss = (np.log(v) + squared(mean, target) / v) / 2
    return loss + float(np.log(2 * np.pi)) / 2 if full else loss
