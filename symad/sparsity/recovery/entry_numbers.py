"""The product from which each stored entry of a derivative is read."""

from __future__ import annotations

import numpy as np

from symad.sparsity.coloring.compression import bidirectional_positions
from symad.sparsity.coloring.result import Coloring
from symad.sparsity.patterns.pattern import IntArray


def entry_numbers(coloring: Coloring) -> IntArray:
    """For each stored entry (nnz,) the number of the product it is read from, rows before columns."""
    pattern = coloring.pattern
    if coloring.kind == "row":
        return coloring.colors[pattern.rows]
    if coloring.kind in ("column", "acyclic"):
        return coloring.colors[pattern.indices]
    positions = coloring.positions
    if coloring.kind == "star":
        return positions % coloring.num_colors
    positions = bidirectional_positions(pattern, *coloring.colors)
    split = coloring.row_colors * pattern.shape[1]
    by_row = positions // max(1, pattern.shape[1])
    by_column = coloring.row_colors + (positions - split) % max(1, coloring.column_colors)
    return np.where(positions < split, by_row, by_column)
