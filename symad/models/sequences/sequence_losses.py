"""Losses of y_1, ..., y_T shared by models of sequences, as methods that a model names in its body.

Shapes: x (T, d) or (T, N, d), y as the outputs of the model, classes (T,) or (T, N).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from symad.core.arrays import Array
from symad.models.layers.losses import cross_entropy, mean_squared_error


class SequenceModel(Protocol):
    """A model of y_1, ..., y_T with parameters p."""

    def apply(self, p: Mapping[str, Array], x: Array) -> Array:
        """y_1, ..., y_T."""


class WithLast(SequenceModel, Protocol):
    """A model with y_T alone, too."""

    def last(self, p: Mapping[str, Array], x: Array) -> Array:
        """y_T."""


def loss(self: SequenceModel, p: Mapping[str, Array], x: Array, y: Array) -> Array:
    """The mean squared error of all y_t."""
    return mean_squared_error(self.apply(p, x), y)


def last_loss(self: WithLast, p: Mapping[str, Array], x: Array, y: Array) -> Array:
    """The mean squared error of y_T alone."""
    return mean_squared_error(self.last(p, x), y)


def language_loss(self: SequenceModel, p: Mapping[str, Array], x: Array, targets: Array) -> Array | float:
    """The mean cross-entropy of softmax(y_t) against classes (T,) or (T, N)."""
    return cross_entropy(self.apply(p, x), targets)
