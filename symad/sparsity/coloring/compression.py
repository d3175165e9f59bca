"""Compression and decompression: seed matrices, compressed products, recovery of the entries.

Direct recovery is one gather: every stored entry is alone at some position of the compressed matrix,
a flat position that depends on the coloring only. The positions are computed once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from symad.core.arrays import Array
from symad.sparsity.coloring.bidirectional import readable
from symad.sparsity.coloring.star import alone_in_row
from symad.sparsity.patterns.pattern import IntArray, Pattern

Matrix = np.ndarray


def indicator(colors: IntArray, p: int, first: int, dtype: DTypeLike) -> Matrix:
    """The matrix S (len(colors), p) with S[k, c − first] = 1 where colors[k] = c."""
    seeds = np.zeros((len(colors), p), dtype)
    used = np.flatnonzero(colors >= first)
    seeds[used, colors[used] - first] = 1
    return seeds


def product_dtype(matrix: Array) -> DTypeLike:
    """The dtype of seeds: that of ``matrix``, or int64 for integers, so that products are exact."""
    dtype = np.dtype(matrix.dtype)
    return dtype if dtype.kind in "fcO" else np.dtype(np.int64)


def column_positions(pattern: Pattern, colors: IntArray, p: int) -> IntArray:
    """Flat positions of the entries in A S (m, p)."""
    return pattern.rows * p + colors[pattern.indices]


def row_positions(pattern: Pattern, colors: IntArray) -> IntArray:
    """Flat positions of the entries in Sᵀ A (p, n)."""
    return colors[pattern.rows] * pattern.shape[1] + pattern.indices


def star_positions(pattern: Pattern, colors: IntArray, p: int) -> IntArray:
    """Flat positions of the entries in H S (n, p), for a pattern with full diagonal.

    Entry (i, j) is read at (i, c(j)) when j is the only neighbor of i with its color, else at
    (j, c(i)), where i is the only one with its color.
    """
    i, j = pattern.rows, pattern.indices
    alone = alone_in_row(pattern, colors)
    return np.where(alone, i * p + colors[j], j * p + colors[i])


def bidirectional_positions(pattern: Pattern, row_colors: IntArray, column_colors: IntArray) -> IntArray:
    """Flat positions of the entries in the row products (p, n), followed by the column products."""
    n = pattern.shape[1]
    p, q = int(row_colors.max(initial=0)), int(column_colors.max(initial=0))
    _, by_column = readable(pattern, (row_colors, column_colors))
    i, j = pattern.rows, pattern.indices
    return np.where(by_column, p * n + i * q + column_colors[j] - 1, (row_colors[i] - 1) * n + j)
