"""Losses shared by the models, for arrays and traced values.

    mean squared error   mean over all elements of (ŷ − y)²
    cross-entropy        −mean over all positions of log softmax(z)_y, or over those with a mask of 1,

with scores z (..., classes) and integer targets y (...). The cross-entropy is −Σ_k p_k log p̂_k for
the one-hot p at y, or with class weights, smoothed labels and soft targets. Others: Huber, quantile
(pinball), focal, InfoNCE.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symad.core.arrays import Array
from symad.errors import ShapeError
from symad.functions import arange, log_softmax, lookup, sigmoid, softplus
from symad.models.layers import pointwise_losses
from symad.models.layers.options import refuse_complex


def mean_squared_error(predicted: Array, target: Array) -> Any:
    """The mean over all elements of (predicted − target)², arrays of one shape."""
    return np.mean(pointwise_losses.squared(predicted, target))


def log_likelihoods(scores: Array, targets: Array) -> Array:
    """log softmax(z)_y at every position: scores (..., classes), integer targets (...) -> (...).

    A target that is not a class raises an error when the function is called.
    """
    return -class_losses(log_softmax(scores, axis=-1), targets)[0]


def masked_cross_entropy(scores: Array, targets: Array, mask: Array) -> Array:
    """−Σ m log softmax(z)_y / Σ m, the mean over the positions with m = 1: targets and mask (...).

    A mask without any 1 gives 0/0.
    """
    if tuple(targets.shape) != tuple(mask.shape):
        raise ShapeError(f"targets {targets.shape} and mask {mask.shape} must have the same shape")
    return -np.sum(log_likelihoods(scores, targets) * mask) / np.sum(mask)


def class_losses(
    log_p: Any, targets: Any, weights: Array | None = None, smoothing: float = 0.0, ignore: int | None = None
) -> tuple[Any, Any]:
    """−Σ_k w_k q_k log p_k at every position, and the weight of the position in a mean: both (...).

    With label smoothing ε, q = (1 − ε) p + ε/K, where p is the one-hot vector of a class or is given. The
    weight is w_y for a class y, 0 for an ignored one, and 1 for probabilities, as in PyTorch.

    Args:
        log_p: log-probabilities (..., K).
        targets: classes y (...), or probabilities (..., K).
        weights: w (K,); by default 1.
        smoothing: ε in [0, 1].
        ignore: the class of positions that are not counted; it need not be one of 0..K − 1.

    Raises:
        ShapeError: the shapes do not match, ε is out of range, or ``ignore`` is given with probabilities.
    """
    if not 0 <= smoothing <= 1:
        raise ShapeError(f"smoothing={smoothing} is not in [0, 1]")
    refuse_complex("a loss", log_p, targets, weights)
    count, lead = log_p.shape[-1], tuple(log_p.shape[:-1])
    if weights is not None and tuple(weights.shape) != (count,):
        raise ShapeError(f"weights {tuple(weights.shape)}: give one for each of {count} classes")
    if tuple(targets.shape) not in (lead, (*lead, count)):
        raise ShapeError(f"scores {tuple(log_p.shape)} need targets {lead} or {(*lead, count)}, not "
                         f"{tuple(targets.shape)}")  # fmt: skip
    weighed = log_p if weights is None else log_p * weights
    if len(targets.shape) == len(log_p.shape):
        if ignore is not None:
            raise ShapeError(f"ignore={ignore} is a class, but the targets {targets.shape} are probabilities")
        loss = -np.sum(((1 - smoothing) * targets + smoothing / count) * weighed, axis=-1)
        return loss, 1.0
    counts = None if ignore is None else targets != ignore
    # The lookup changes no class; it refuses those outside of 0..K − 1.
    chosen = lookup(arange(count), targets if counts is None else np.where(counts, targets, 0))
    loss = -np.take_along_axis(weighed, chosen[..., None], axis=-1)[..., 0]
    if smoothing:
        loss = (1 - smoothing) * loss - smoothing / count * np.sum(weighed, axis=-1)
    weight = 1.0 if weights is None else lookup(weights[:, None], chosen)[..., 0]
    if counts is not None:
        loss, weight = np.where(counts, loss, 0.0), np.where(counts, weight, 0.0)
    return loss, weight


def mean_of_classes(loss: Array, weight: Array | float) -> Any:
    """Σ loss / Σ weight over all positions, 0/0 if no position counts."""
    if isinstance(weight, float):
        return np.mean(loss)
    return np.sum(loss) / np.sum(weight)


def cross_entropy(
    scores: Array,
    targets: Array,
    weights: Array | None = None,
    smoothing: float = 0.0,
    ignore: int | None = None,
) -> Array | float:
    """The mean of `class_losses` of log softmax(z), for scores z (..., K)."""
    found = class_losses(log_softmax(scores, axis=-1), targets, weights, smoothing, ignore)
    return mean_of_classes(*found)


def huber(predicted: Array, target: Array, delta: float = 1.0) -> Any:
    """The mean of `pointwise_losses.huber`."""
    return np.mean(pointwise_losses.huber(predicted, target, delta))


def quantile(predicted: Array, target: Array, level: float = 0.5) -> Any:
    """The mean of `pointwise_losses.quantile`, which is minimal at the quantile of this level."""
    return np.mean(pointwise_losses.quantile(predicted, target, level))


def focal(scores: Array, targets: Array, gamma: float = 2.0, alpha: float | None = None) -> Array:
    """The mean of −a (1 − p)^γ log p for logits z and targets y in {0, 1}; p = σ(z) if y = 1, else 1 − σ(z).

    a = α for y = 1 and 1 − α for y = 0, or 1 without α. Source: Lin et al., "Focal loss" (2017), equation 5.
    """
    pointwise_losses.check_pair(scores, targets)
    if not gamma >= 0:
        raise ShapeError(f"gamma={gamma} of the focal loss must be at least 0")
    signed = (2 * targets - 1) * scores
    loss = sigmoid(-signed) ** gamma * softplus(-signed)
    return np.mean(loss if alpha is None else (alpha * targets + (1 - alpha) * (1 - targets)) * loss)


def info_nce(first: Array, second: Array, temperature: Array | float = 0.1) -> Array | float:
    """The mean of −log softmax_j(⟨a_i, b_j⟩/τ)_i for unit vectors a, b along two arrays (N, d).

    Row i of one array is the counterpart of row i of the other. Source: van den Oord, Li & Vinyals (2018),
    equation 4.
    """
    pointwise_losses.check_pair(first, second)
    if isinstance(temperature, (int, float)) and not temperature > 0:
        raise ShapeError(f"temperature={temperature} must be positive")
    a, b = (v / np.sqrt(np.sum(v * v, axis=-1, keepdims=True)) for v in (first, second))
    return cross_entropy(a @ b.T / temperature, arange(first.shape[0]))
