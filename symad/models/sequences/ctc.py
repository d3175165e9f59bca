"""Connectionist temporal classification: −log of the probability of a labeling of unknown alignment.

A path π_1, ..., π_T of classes, one of them a blank, represents the labels that remain when repetitions are
merged and blanks removed. With l' = (blank, l_1, blank, ..., l_S, blank) the sum over all its paths is

    α_t(s) = y_t(l'_s) (α_{t−1}(s) + α_{t−1}(s − 1) + α_{t−1}(s − 2) if l'_s ≠ blank and l'_s ≠ l'_{s−2}),
    α_0(0) = 1,   p(l) = α_T(2S) + α_T(2S − 1),

in logarithms, as a scan. Shapes: log-probabilities (T, N, K), labels (N, S), which may be padded beyond their
number of labels, lengths (N,); one sequence without N. A labeling without a path has the loss +∞ and
derivative 0.

Source: Graves, Fernández, Gomez & Schmidhuber (2006), equations 6-8.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import format_shape
from symad.errors import ShapeError
from symad.functions import arange, concatenate, lookup, scan, stack, stop_gradient
from symad.models.layers.options import refuse_complex

NEVER = -np.inf


def log_sum(x: Array, axis: int) -> Array:
    """log Σ e^x along an axis; −∞ with derivative 0 where all are −∞."""
    largest = stop_gradient(np.max(x, axis=axis, keepdims=True))
    shift = np.where(largest > NEVER, largest, 0.0)
    possible = x > NEVER
    total = np.sum(np.where(possible, np.exp(np.where(possible, x, 0.0) - shift), 0.0), axis=axis)
    log_total = np.log(np.where(total > 0, total, 1.0)) + np.sum(shift, axis=axis)
    return np.where(total > 0, log_total, NEVER)


def ctc(
    log_probabilities: Any, labels: Array, steps: Array | None, counts: Array | None, blank: int = 0
) -> Array:
    """−log p(l) of each sequence: (N,), or a number.

    Args:
        log_probabilities: (T, N, K), or (T, K).
        labels: (N, S) classes other than the blank, or (S,); entries beyond the count are not read.
        steps: (N,) the numbers of time steps, or one number; None for T.
        counts: (N,) the numbers of labels, or one number; None for S.
        blank: the class of the blank.

    Raises:
        ShapeError: the shapes do not fit.
    """
    if len(log_probabilities.shape) == 2:
        lengths = [None if v is None else np.reshape(v, (1,)) for v in (steps, counts)]
        return ctc(log_probabilities[:, None, :], labels[None], lengths[0], lengths[1], blank)[0]
    _check(log_probabilities, labels, steps, counts, blank)
    T, N, K = log_probabilities.shape
    labels = lookup(arange(K), labels)  # refuses those outside of 0..K − 1
    S = labels.shape[1]
    blanks = 0 * labels + blank
    woven = stack([blanks, labels], axis=2).reshape(N, 2 * S)
    woven = concatenate([woven, 0 * labels[:, :1] + blank], axis=1)
    seen = np.take_along_axis(log_probabilities, np.broadcast_to(woven[None], (T, N, 2 * S + 1)), axis=2)
    place = arange(2 * S + 1)
    jumps = np.logical_and(woven != np.roll(woven, 2, axis=1), np.logical_and(woven != blank, place >= 2))

    def step(alpha: Array, moving: tuple[Array, ...]) -> Array:
        now, t = moving
        before = np.where(place >= 1, np.roll(alpha, 1, axis=1), NEVER)
        skipped = np.where(jumps, np.roll(alpha, 2, axis=1), NEVER)
        reached = log_sum(stack([alpha, before, skipped]), 0) + now
        return reached if steps is None else np.where((t < steps)[:, None], reached, alpha)

    # before the first step: all paths begin at the first blank, or jump from it to the first label
    start = np.where(place == 0, 0.0, NEVER) + np.zeros_like(seen[0])
    last = scan(step, start, (seen, arange(T)))[T - 1]
    ends = 2 * S if counts is None else 2 * counts[:, None]
    ending = np.logical_or(place == ends, place == ends - 1)
    return -log_sum(np.where(ending, last, NEVER), 1)


def _check(
    log_probabilities: Array, labels: Array, steps: Array | None, counts: Array | None, blank: int
) -> None:
    refuse_complex("ctc", log_probabilities)
    shape, given = tuple(log_probabilities.shape), tuple(labels.shape)
    if len(shape) != 3 or len(given) != 2 or given[0] != shape[1]:
        raise ShapeError(
            f"ctc of log-probabilities {format_shape(shape)} and labels {format_shape(given)}: needs "
            "(T, N, K) and (N, S), or (T, K) and (S,)"
        )
    for name, lengths, most in (("steps", steps, shape[0]), ("counts", counts, given[1])):
        if lengths is None:
            continue
        if tuple(lengths.shape) != shape[1:2]:
            shown = format_shape(tuple(lengths.shape))
            raise ShapeError(f"ctc: {name} {shown}: give one for each of {shape[1]} sequences")
        if isinstance(lengths, np.ndarray) and not ((lengths >= 0) & (lengths <= most)).all():
            raise ShapeError(f"ctc: {name}={lengths.tolist()} must lie in 0..{most}")
    if isinstance(shape[2], int) and not 0 <= blank < shape[2]:
        raise ShapeError(f"ctc: blank={blank} is not one of the {shape[2]} classes")
