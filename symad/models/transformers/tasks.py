"""Four tasks for models that read sequences: denoising, forecasting, classification, regression.

A model gives outputs y_1, ..., y_T = apply(p, x) for inputs x_1, ..., x_T (an RNN, an LSTM, a temporal
convolutional network, a state space model). Then

    denoising       mean over t of |y_t − clean_t|²                        x = clean + noise
    forecasting     mean over t < T of |y_t − x_{t+1}|²                    the target is the input, shifted
    classification  −mean log softmax(s)_label,   s = y_T or the mean of y_t
    regression      mean |s − target|²,           s = y_T or the mean of y_t

Denoising and forecasting answer at every step, the others once for a sequence ("last" or "mean"). Shapes:
x (T, d) or a batch (T, N, d); y (T, d_out) or (T, N, d_out); labels (N,), targets (N, d_out). Source:
Goodfellow, Bengio & Courville, "Deep Learning" (2016), section 10.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from symad.core.arrays import Array
from symad.errors import ShapeError, SymadError
from symad.models.layers.losses import cross_entropy, mean_squared_error


class TaskModel(Protocol):
    """The interface of models for these tasks."""

    def apply(self, p: Mapping[str, Array], x: Array) -> Array:
        """y_1, ..., y_T."""


def denoising_loss(model: TaskModel, p: Mapping[str, Array], noisy: Array, clean: Array) -> Array:
    """The mean squared error of the outputs against the clean sequence, in the shape of the outputs."""
    return mean_squared_error(model.apply(p, noisy), clean)


def forecasting_loss(model: TaskModel, p: Mapping[str, Array], x: Array) -> Array:
    """The mean squared error of y_t against x_{t+1}, each predicted from the inputs before it.

    Raises:
        ShapeError: fewer than two steps.
    """
    if isinstance(x.shape[0], int) and x.shape[0] < 2:
        raise ShapeError(f"forecasting needs sequences of two steps at least, not the shape {x.shape}")
    return mean_squared_error(model.apply(p, x[:-1]), x[1:])


def summary(model: TaskModel, p: Mapping[str, Array], x: Array, readout: str = "last") -> Array:
    """s, one output for a sequence: (d_out,) or (N, d_out).

    Raises:
        SymadError: another readout.
    """
    if readout not in ("last", "mean"):
        raise SymadError(f"readout={readout!r} is not 'last' or 'mean'")
    y = model.apply(p, x)
    return y[x.shape[0] - 1] if readout == "last" else np.mean(y, axis=0)


def classification_loss(
    model: TaskModel, p: Mapping[str, Array], x: Array, labels: Array, readout: str = "last"
) -> Array | float:
    """The cross-entropy of one class for each sequence of a batch: x (T, N, d), labels (N,)."""
    return cross_entropy(summary(model, p, x, readout), labels)


def regression_loss(
    model: TaskModel, p: Mapping[str, Array], x: Array, targets: Array, readout: str = "last"
) -> Array:
    """The mean squared error of one output for each sequence: x (T, N, d), targets (N, d_out)."""
    return mean_squared_error(summary(model, p, x, readout), targets)


def forecast(model: TaskModel, p: Mapping[str, Array], x: Array, steps: int) -> Array:
    """The next ``steps`` values, each used as the next input: (T, d) or (T, N, d), on arrays."""
    history = np.asarray(x)
    for _ in range(steps):
        history = np.concatenate([history, model.apply(p, history)[-1:]])
    return history[len(x) :]
