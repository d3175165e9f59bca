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

from symad.errors import ShapeError
from symad.functions import arange, log_softmax, lookup, sigmoid, softplus


def mean_squared_error(predicted: Any, target: Any) -> Any:
    """The mean over all elements of (predicted − target)², arrays of one shape."""
    return np.mean((predicted - target) ** 2)


def log_likelihoods(scores: Any, targets: Any) -> Any:
    """log softmax(z)_y at every position: scores (..., classes), integer targets (...) -> (...).

    A target that is no class is an error when the function is called.
    """
    # The lookup changes no target; it refuses those outside of 0..classes − 1.
    targets = lookup(arange(scores.shape[-1]), targets)
    chosen = np.take_along_axis(log_softmax(scores, axis=-1), targets[..., None], axis=-1)
    return chosen[..., 0]


def masked_cross_entropy(scores: Any, targets: Any, mask: Any) -> Any:
    """−Σ m log softmax(z)_y / Σ m, the mean over the positions with m = 1: targets and mask (...).

    A mask without any 1 gives 0/0.
    """
    if tuple(targets.shape) != tuple(mask.shape):
        raise ShapeError(f"targets {targets.shape} and mask {mask.shape} must have the same shape")
    return -np.sum(log_likelihoods(scores, targets) * mask) / np.sum(mask)


def cross_entropy(
    scores: Any, targets: Any, weights: Any = None, smoothing: float = 0.0, ignore: int | None = None
) -> Any:
    """The mean of −Σ_k w_k q_k log softmax(z)_k over all positions, for classes or probabilities.

    With the label smoothing ε, q = (1 − ε) p + ε/K, p the one-hot vector of a class or given. The mean of
    classes divides by Σ w_y over the positions that count, that of probabilities by their number, as PyTorch.

    Args:
        scores: z (..., K).
        targets: classes y (...), or probabilities p (..., K).
        weights: w (K,); by default 1.
        smoothing: ε in [0, 1].
        ignore: the class of positions that do not count; it need not be one of 0..K − 1.

    Raises:
        ShapeError: the shapes do not fit, ε is out of range, or a class to ignore among probabilities.
    """
    if not 0 <= smoothing <= 1:
        raise ShapeError(f"smoothing={smoothing} is not in [0, 1]")
    count = scores.shape[-1]
    if weights is not None and tuple(weights.shape) != (count,):
        raise ShapeError(f"weights {tuple(weights.shape)} are one for each of {count} classes")
    if len(targets.shape) == len(scores.shape):
        if ignore is not None:
            raise ShapeError(f"ignore={ignore} is a class, but the targets {targets.shape} are probabilities")
        weighed = log_softmax(scores, axis=-1) * (1 if weights is None else weights)
        smooth = (1 - smoothing) * targets + smoothing / count
        return -np.mean(np.sum(smooth * weighed, axis=-1))
    if weights is None and not smoothing and ignore is None:
        return -np.mean(log_likelihoods(scores, targets))
    counts = None if ignore is None else targets != ignore
    chosen = targets if counts is None else np.where(counts, targets, 0)
    own = 1.0 if weights is None else lookup(weights[:, None], chosen)[..., 0]
    if counts is not None:
        own = np.where(counts, own, 0.0)
    total = np.sum(own) if len(getattr(own, "shape", ())) else float(np.prod(scores.shape[:-1])) * own
    loss = -(1 - smoothing) * np.sum(own * log_likelihoods(scores, chosen))
    if smoothing:
        spread = np.sum(log_softmax(scores, axis=-1) * (1 if weights is None else weights), axis=-1)
        loss = loss - smoothing / count * np.sum(spread if counts is None else np.where(counts, spread, 0.0))
    return loss / total


def huber(predicted: Any, target: Any, delta: float = 1.0) -> Any:
    """The mean of e²/2 where |e| ≤ δ, else δ (|e| − δ/2), of e = predicted − target (Huber 1964)."""
    return np.mean(huber_of(np.abs(predicted - target), delta))


def huber_of(size: Any, delta: Any) -> Any:
    """e²/2 where |e| ≤ δ, else δ (|e| − δ/2), of |e|."""
    inside = np.minimum(size, delta)
    return inside * (size - inside / 2)


def quantile(predicted: Any, target: Any, level: float = 0.5) -> Any:
    """The mean of max(τ e, (τ − 1) e), e = target − predicted: least at the τ-quantile (Koenker 1978)."""
    if not 0 < level < 1:
        raise ShapeError(f"level={level} is not a level of quantiles in (0, 1)")
    rest = target - predicted
    return np.mean(np.maximum(level * rest, (level - 1) * rest))


def focal(scores: Any, targets: Any, gamma: float = 2.0, alpha: float | None = None) -> Any:
    """The mean of −a (1 − p)^γ log p for logits z and targets y in {0, 1}; p = σ(z) if y = 1, else 1 − σ(z).

    a = α for y = 1 and 1 − α for y = 0, or 1 without α. Source: Lin et al., "Focal loss" (2017), equation 5.
    """
    signed = (2 * targets - 1) * scores
    loss = sigmoid(-signed) ** gamma * softplus(-signed)
    return np.mean(loss if alpha is None else (alpha * targets + (1 - alpha) * (1 - targets)) * loss)


def info_nce(first: Any, second: Any, temperature: Any = 0.1) -> Any:
    """The mean of −log softmax_j(⟨a_i, b_j⟩/τ)_i for unit vectors a, b along two arrays (N, d).

    Row i of one belongs to row i of the other. Source: van den Oord, Li & Vinyals (2018), equation 4.
    """
    a, b = (v / np.sqrt(np.sum(v * v, axis=-1, keepdims=True)) for v in (first, second))
    return cross_entropy(a @ b.T / temperature, arange(first.shape[0]))
