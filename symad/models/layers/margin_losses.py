"""Losses that are 0 beyond a margin m, and their smooth variants: one number for each sample.

With y = ±1, scores x (..., K), a class or a set of classes J,

    soft margin          log(1 + e^{−y x});      hinge embedding  x if y = 1, max(0, m − x) if y = −1;
    ranking              max(0, m − y (a − b));  cosine  1 − cos(a, b) if y = 1, max(0, cos(a, b) − m) if −1;
    multi-margin         Σ_{k≠j} w_j max(0, m − x_j + x_k)^p / K;
    multi-label margin   Σ_{j∈J, k∉J} max(0, 1 − x_j + x_k) / K;
    multi-label logistic the mean over k of the logistic loss of x_k;
    triplet              max(0, m + d(a, p) − d(a, n)), d(a, b) = (Σ |a − b + ε|^p)^{1/p}; with ``swap`` the
                         distance to the negative is the minimum of those from a and from p.

Shapes: pairs and triplets (..., d) -> (...); scores (..., K) -> (...). Sources: Crammer & Singer (2001);
Balntas et al. (2016) for the swap; in the form of ``torch.nn``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.core.arrays import Array, ArrayLike
from symad.errors import ShapeError, SymadError
from symad.functions import arange, lookup, relu, softplus
from symad.models.layers.options import refuse_complex
from symad.models.layers.pointwise_losses import logistic


def soft_margin(score: Array, sign: Array) -> Array:
    """log(1 + e^{−y x}), elementwise."""
    refuse_complex("a loss", score, sign)
    return softplus(-score * sign)


def hinge_embedding(distance: Array, sign: Any, margin: float = 1.0) -> Array:
    """Elementwise x where y = 1, max(0, m − x) where y = −1."""
    refuse_complex("a loss", distance, sign)
    return np.where(sign == 1, distance, relu(margin - distance))


def ranking(first: Array, second: Array, sign: Array, margin: float = 0.0) -> Array:
    """max(0, m − y (a − b)), elementwise."""
    refuse_complex("a loss", first, second, sign)
    return relu(margin - sign * (first - second))


def cosine(a: Array, b: Array, epsilon: float = 0.0) -> Array:
    """⟨a, b⟩ / √((|a|² + ε)(|b|² + ε)) along the last axis: (..., d) -> (...)."""
    refuse_complex("a cosine", a, b)
    squares = [np.sum(v * v, axis=-1) + epsilon for v in (a, b)]
    return np.sum(a * b, axis=-1) / np.sqrt(squares[0] * squares[1])


def cosine_embedding(a: Array, b: Array, sign: Any, margin: float = 0.0) -> Array:
    """1 − cos(a, b) where y = 1, max(0, cos(a, b) − m) where y = −1; ε = 10⁻¹², as PyTorch."""
    found = cosine(a, b, 1e-12)
    return np.where(sign == 1, 1 - found, relu(found - margin))


def multi_margin(
    scores: Any, classes: Array, p: int = 1, margin: float = 1.0, weights: Array | None = None
) -> Array:
    """Σ_{k≠j} w_j max(0, m − x_j + x_k)^p / K for classes j (...).

    Raises:
        SymadError: p is neither 1 nor 2.
        ShapeError: the classes do not have the shape of the scores without its last axis.
    """
    refuse_complex("a loss", scores)
    if p not in (1, 2):
        raise SymadError(f"multi_margin: p={p} is not 1 or 2")
    if tuple(classes.shape) != tuple(scores.shape[:-1]):
        raise ShapeError(
            f"multi_margin: scores {tuple(scores.shape)} need one class for each row, not "
            f"{tuple(classes.shape)}"
        )
    count = scores.shape[-1]
    classes = lookup(arange(count), classes)  # refuses those outside of 0..K − 1
    own = np.take_along_axis(scores, classes[..., None], axis=-1)
    others = np.where(arange(count) == classes[..., None], 0.0, relu(margin - own + scores) ** p)
    weight = 1.0 if weights is None else lookup(weights[:, None], classes)[..., 0]
    return weight * np.sum(others, axis=-1) / count


def multi_label_margin(scores: Array, belongs: Array) -> Array:
    """Σ_{j∈J, k∉J} max(0, 1 − x_j + x_k) / K; ``belongs`` (..., K) is 1 where k is in J, else 0."""
    refuse_complex("a loss", scores, belongs)
    if tuple(scores.shape) != tuple(belongs.shape):
        raise ShapeError(
            f"multi_label_margin: scores {tuple(scores.shape)} and labels {tuple(belongs.shape)} differ "
            "in shape"
        )
    pairs = relu(1 - scores[..., :, None] + scores[..., None, :])
    return np.einsum("...jk,...j,...k->...", pairs, belongs, 1 - belongs) / scores.shape[-1]


def multi_label_logistic(scores: Array, belongs: Array, weights: ArrayLike = 1.0) -> Array:
    """The mean over k of w_k times the logistic loss of x_k: (..., K) -> (...)."""
    return np.mean(logistic(scores, belongs) * weights, axis=-1)


def distance(a: Array, b: Array, p: float = 2.0, epsilon: float = 1e-6) -> Array:
    """(Σ |a − b + ε|^p)^{1/p} along the last axis."""
    refuse_complex("a distance", a, b)
    rest = a - b + epsilon
    if p == 2:
        return np.sqrt(np.sum(rest * rest, axis=-1))
    if p == 1:
        return np.sum(np.abs(rest), axis=-1)
    return np.sum(np.abs(rest) ** p, axis=-1) ** (1 / p)


def triplet(
    anchor: Array,
    near: Array,
    far: Array,
    margin: float = 1.0,
    between: Callable[[Array, Array], Array] = distance,
    swap: bool = False,
) -> Array:
    """max(0, m + d(a, p) − d(a, n)) for a distance ``between``: (..., d) -> (...)."""
    apart = between(anchor, far)
    if swap:
        apart = np.minimum(apart, between(near, far))
    return relu(margin + between(anchor, near) - apart)
