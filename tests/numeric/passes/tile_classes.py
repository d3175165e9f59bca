"""Classes of the tiles of a mask in the plane of pairs (empty, full or partial), by interval arithmetic.

The mask is a SymPy Boolean of b, h, i, j and array reads. Every tile [i_lo, i_hi] × [j_lo, j_hi] is
classified from the bounds of its comparisons' two sides: affine comparisons are exact, so causal,
sliding-window and prefix masks are classified exactly; a tile of another mask that is empty or full may be
called PARTIAL, and no other error occurs. No mask entry is ever evaluated: the cost is one interval per tile,
and O(length) per array read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from symad.numeric.pairs.intervals import ArrayBounds, ScoreInterval, evaluate
from symad.numeric.pairs.scores import LOOPS, B, H, I, J, Load, Score

EMPTY, PARTIAL, FULL = 0, 1, 2

Array = Any


@dataclass(frozen=True)
class Tiling:
    """The plane of pairs, cut in tiles of ``rows`` × ``columns`` (the last ones may be smaller)."""

    batch: int
    heads: int
    length_q: int
    length_k: int
    rows: int
    columns: int

    def bounds(self, symbol: sp.Symbol) -> ScoreInterval:
        """The range of a loop symbol on each tile, on its own axis."""
        if symbol in (B, H):
            axis = 0 if symbol == B else 1
            points = _along(np.arange(self.batch if symbol == B else self.heads), axis)
            return ScoreInterval(points, points)
        length, size, axis = (
            (self.length_q, self.rows, 2) if symbol == I else (self.length_k, self.columns, 3)
        )
        low = np.arange(0, length, size)
        return ScoreInterval(_along(low, axis), _along(np.minimum(low + size, length) - 1, axis))

    def starts(self, symbol: sp.Symbol) -> Array:
        """The first index of each tile along a loop symbol's axis; every index for b and h."""
        interval = self.bounds(symbol)
        return np.asarray(interval.low).reshape(-1)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(batch, heads, tiles of i, tiles of j)."""
        tiles = (-(-self.length_q // self.rows), -(-self.length_k // self.columns))
        return (self.batch, self.heads, *tiles)


def classify(score: Score, tiling: Tiling, params: Mapping[str, Any]) -> Array:
    """EMPTY, PARTIAL or FULL for every tile: an int8 array of axes (b, h, tile of i, tile of j).

    Axes on which the mask does not depend have length 1. Sound: EMPTY and FULL are never wrong.
    """
    known: dict[sp.Basic, ScoreInterval] = {s: tiling.bounds(s) for s in LOOPS}
    for load in score.reads(score.mask):
        known[load.symbol] = _read(load, tiling, np.asarray(params[load.name]))
    for name, symbol in score.scalars:
        number = np.asarray(params[name]).item()
        known[symbol] = ScoreInterval(number, number)
    truth = evaluate(score.mask, known, ArrayBounds)
    always, sometimes = np.broadcast_arrays(truth.always, truth.sometimes)
    classes = np.where(always, FULL, np.where(sometimes, PARTIAL, EMPTY)).astype(np.int8)
    return classes.reshape((1,) * (4 - classes.ndim) + classes.shape)


def _along(values: Array, axis: int) -> Array:
    shape = [1, 1, 1, 1]
    shape[axis] = len(values)
    return values.reshape(shape)


def _read(load: Load, tiling: Tiling, array: Array) -> ScoreInterval:
    """Bounds of an array read: the minimum and maximum over each tile's part of the array.

    Exact where every index is a loop symbol of its own; otherwise the bounds of the whole array.
    """
    axes = {B: 0, H: 1, I: 2, J: 3}
    if len(set(load.index)) != array.ndim or any(e not in axes for e in load.index):
        return ScoreInterval(array.min(), array.max())
    sizes = {B: tiling.batch, H: tiling.heads, I: tiling.length_q, J: tiling.length_k}
    low = high = array[tuple(slice(0, sizes[e]) for e in load.index)]
    for position, symbol in enumerate(load.index):
        starts = tiling.starts(symbol)
        low = np.minimum.reduceat(low, starts, axis=position)
        high = np.maximum.reduceat(high, starts, axis=position)
    order = np.argsort([axes[e] for e in load.index])
    shape = [1, 1, 1, 1]
    for position in order:
        shape[axes[load.index[position]]] = low.shape[position]
    return ScoreInterval(low.transpose(order).reshape(shape), high.transpose(order).reshape(shape))
