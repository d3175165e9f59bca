"""Losses shared by the models, for arrays and traced values.

    mean squared error   mean over all elements of (ŷ − y)²
    cross-entropy        −mean over all positions of log softmax(z)_y, or over those with a mask of 1,

with scores z (..., classes) and integer targets y (...). The cross-entropy is −Σ_k p_k log p̂_k for
the one-hot p at y.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symad.errors import ShapeError
from symad.functions import arange, log_softmax, lookup


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


def cross_entropy(scores: Any, targets: Any) -> Any:
    """The mean of −log softmax(z)_y over all positions: scores (..., classes), targets (...)."""
    return -np.mean(log_likelihoods(scores, targets))
