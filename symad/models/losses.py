"""Losses shared by the models, for arrays and traced values.

    mean squared error   mean over all elements of (ŷ − y)²
    cross-entropy        −mean over all positions of log softmax(z)_y,

with scores z (..., classes) and integer targets y (...). The cross-entropy is −Σ_k p_k log p̂_k for
the one-hot p at y.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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


def cross_entropy(scores: Any, targets: Any) -> Any:
    """The mean of −log softmax(z)_y over all positions: scores (..., classes), targets (...)."""
    return -np.mean(log_likelihoods(scores, targets))
