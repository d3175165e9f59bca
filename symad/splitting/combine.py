"""Combining the values of parts, two at a time, in floating point.

A partial value of a weighted piece is a pair: the mean over the parts so far, and the weight of these parts.
With logarithmic weights this is the online rule of softmax (Milakov and Gimelshein 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symad.core.arrays import Array
from symad.splitting.plan import Piece

Values = tuple[Any, ...]


def merge(pieces: Sequence[Piece], left: Values, right: Values) -> Values:
    """The values of two neighboring parts as those of one; rows are lists of blocks."""
    with np.errstate(invalid="ignore", over="ignore"):
        return tuple(_merge(p, k, left, right) for k, p in enumerate(pieces))


def _merge(piece: Piece, k: int, left: Values, right: Values) -> Any:
    a, b = left[k], right[k]
    if piece.kind == "rows":
        return [*a, *b]
    if piece.weight is not None:
        return _mean(piece, a, b, left[piece.weight], right[piece.weight])
    return _REDUCE[piece.kind](a, b)


_REDUCE: dict[str, Callable[[Array, Array], Array]] = {
    "sum": lambda a, b: a + b,
    "product": lambda a, b: a * b,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "logsumexp": np.logaddexp,
}


def _mean(
    piece: Piece, a: Array | float, b: Array | float, w: Array | float, v: Array | float
) -> Array | float:
    """(w a + v b)/(w + v); weights of logarithms are taken relative to the larger one."""
    if piece.log:
        top = np.maximum(w, v)
        top = np.where(np.isfinite(top), top, 0.0)
        w, v = np.exp(w - top), np.exp(v - top)
    total = w + v
    return _times(a, w / total, piece.place) + _times(b, v / total, piece.place)


def _times(value: Array | float, factor: Array | float, place: Sequence[int]) -> Array:
    """A value times a factor along some of its axes; parts with weight 0 are ignored."""
    factor = _along(factor, place, np.ndim(value))
    return np.where(factor == 0, 0.0, value * factor)[()]


def _along(factor: Array | float, place: Sequence[int], rank: int) -> np.ndarray:
    factor = np.asarray(factor)
    order = sorted(range(len(place)), key=lambda k: place[k])
    shape = [1] * rank
    for k in order:
        shape[place[k]] = factor.shape[k]
    return np.transpose(factor, order).reshape(shape)


def start(pieces: Sequence[Piece], values: Sequence[Array] | tuple[float, Array, float]) -> Values:
    """The values of one part, ready to merge."""
    made = []
    for piece, value in zip(pieces, values, strict=True):
        weight = None if piece.weight is None else values[piece.weight]
        made.append([(value, weight)] if piece.kind == "rows" else value)
    return tuple(made)


def finish(pieces: Sequence[Piece], values: Values) -> Values:
    """The combined values."""
    return tuple(
        _rows(piece, value, None if piece.weight is None else values[piece.weight])
        if piece.kind == "rows"
        else value
        for piece, value in zip(pieces, values, strict=True)
    )


def _rows(piece: Piece, blocks: Sequence[tuple[Array, Array]], total: Array | float | None) -> Array:
    parts = [block_of(piece, v, w, total) for v, w in blocks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=piece.axis)


def block_of(piece: Piece, value: Array, weight: Array, total: Any) -> Array:
    """The rows of one part, times its share of the total weight."""
    if piece.weight is None:
        return value
    with np.errstate(invalid="ignore"):
        share = np.exp(np.subtract(weight, total)) if piece.log else np.divide(weight, total)
    return _times(value, share, piece.place)


def combined(pieces: Sequence[Piece], parts: Sequence[Sequence[Array]]) -> Values:
    """The values of all parts as one, by a tree that depends on their number alone."""
    level = [start(pieces, part) for part in parts]
    while len(level) > 1:
        pairs = [merge(pieces, *level[k : k + 2]) for k in range(0, len(level) - 1, 2)]
        level = pairs + ([level[-1]] if len(level) % 2 else [])
    return finish(pieces, level[0])
