"""`Coloring`: a coloring of a pattern, with compression and recovery."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from symad.core.arrays import Array
from symad.core.graph import METHODS
from symad.sparsity.coloring import compression
from symad.sparsity.coloring.compression import bidirectional_positions
from symad.sparsity.coloring.substitution import Forest, forest
from symad.sparsity.patterns.pattern import ColoringError, IntArray, Pattern

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class Coloring:
    """A coloring of a sparsity pattern, with compression and recovery.

    Attributes:
        kind: "column", "row", "star", "acyclic" or "bidirectional".
        pattern: the m×n pattern; for "star" and "acyclic" with every diagonal entry stored.
        colors: one color from 0 for each column (kinds "column", "star" and "acyclic", an array
            (n,)) or for each row (kind "row", (m,)); for "bidirectional" the pair (row colors,
            column colors), from 1; 0 means that no product is used for that row or column.
        num_colors: the number of products; row colors plus column colors for "bidirectional".
        lower_bound: no coloring of this kind has fewer colors.
        method: the order or closed form that found it.
    """

    kind: str
    pattern: Pattern
    colors: Any
    num_colors: int
    lower_bound: int
    method: str

    @property
    def optimal(self) -> bool:
        """True if the lower bound proves that no coloring of this kind has fewer colors."""
        return self.num_colors <= self.lower_bound

    @property
    def row_colors(self) -> int:
        """The number of row products."""
        return self._side_counts[0]

    @property
    def column_colors(self) -> int:
        """The number of column products."""
        return self._side_counts[1]

    @cached_property
    def _side_counts(self) -> tuple[int, int]:
        if self.kind == "bidirectional":
            return int(self.colors[0].max(initial=0)), int(self.colors[1].max(initial=0))
        return (self.num_colors, 0) if self.kind == "row" else (0, self.num_colors)

    def by_label(self) -> dict[Hashable, int] | tuple[dict[Hashable, int], dict[Hashable, int]]:
        """The colors as a dict from the nodes of the NetworkX graph given (else from numbers).

        For "bidirectional" one dict for the rows and one for the columns.
        """
        rows = self.pattern.row_labels or range(self.pattern.shape[0])
        columns = self.pattern.column_labels or range(self.pattern.shape[1])
        if self.kind == "bidirectional":
            row_colors, column_colors = (c.tolist() for c in self.colors)
            return dict(zip(rows, row_colors, strict=True)), dict(zip(columns, column_colors, strict=True))
        return dict(zip(rows if self.kind == "row" else columns, self.colors.tolist(), strict=True))

    # Compression

    def seeds(self, dtype: DTypeLike = float) -> Any:
        """The seed matrix of zeros and ones.

        S (n, num_colors) for "column", "star" and "acyclic", S (m, num_colors) for "row"; for
        "bidirectional" the pair (S_rows (m, row_colors), S_columns (n, column_colors)).
        """
        if self.kind == "bidirectional":
            counts = self._side_counts
            return tuple(
                compression.indicator(c, p, 1, dtype) for c, p in zip(self.colors, counts, strict=True)
            )
        return compression.indicator(self.colors, self.num_colors, 0, dtype)

    def compress(self, matrix: Array) -> Any:
        """The products of a matrix A (m, n) with the seeds, which a few JVPs, VJPs or HVPs also compute.

        A S (m, num_colors) for "column", "star" and "acyclic"; Sᵀ A (num_colors, n) for "row"; the
        pair (S_rowsᵀ A, A S_columns) for "bidirectional". A is a NumPy, CuPy or SciPy sparse array;
        entries outside the pattern are assumed to be zero; this is not checked.

        Raises:
            ColoringError: A has another shape than the pattern.
        """
        if not hasattr(matrix, "dtype"):
            matrix = np.asarray(matrix)
        if tuple(matrix.shape[-2:]) != self.pattern.shape:
            raise ColoringError(
                f"compress needs a matrix of the pattern's shape {self.pattern.shape}, not {matrix.shape}"
            )
        seeds = self.seeds(compression.product_dtype(matrix))
        if self.kind == "bidirectional":
            return _times(matrix, seeds[0], left=True), _times(matrix, seeds[1])
        return _times(matrix, seeds, left=self.kind == "row")

    # Recovery

    @property
    def compressed_shape(self) -> Any:
        """The shape of the compressed matrix, for "bidirectional" of both."""
        m, n = self.pattern.shape
        rows, columns = (self.row_colors, n), (m, self.column_colors)
        if self.kind == "bidirectional":
            return rows, columns
        return rows if self.kind == "row" else columns

    @cached_property
    def positions(self) -> IntArray:
        """For each stored entry (nnz,) its flat position in the compressed matrix.

        For "bidirectional" in the row products followed by the column products, both flattened. Not defined
        for the kind "acyclic".
        """
        p = self.num_colors
        if self.kind == "column":
            return compression.column_positions(self.pattern, self.colors, p)
        if self.kind == "row":
            return compression.row_positions(self.pattern, self.colors)
        if self.kind == "star":
            return compression.star_positions(self.pattern, self.colors, p)
        if self.kind == "bidirectional":
            return compression.bidirectional_positions(self.pattern, *self.colors)
        raise ColoringError("an acyclic coloring has no direct recovery; it is decompressed by substitution")

    @cached_property
    def trees(self) -> Forest:
        """The two-colored trees of an acyclic coloring."""
        if self.kind != "acyclic":
            raise ColoringError(
                f"only acyclic colorings are decompressed along trees, not {self.kind!r} ones"
            )
        return forest(self.pattern, self.colors, self.num_colors)

    def values(self, compressed: Any, method: str = "substitution") -> Any:
        """The stored entries (..., nnz), in CSR order, from the compressed matrix.

        Args:
            compressed: the result of `compress`, also with leading batch axes; NumPy or CuPy arrays.
            method: for "acyclic": "substitution", from leaves to roots, or "prefix", by prefix
                sums, with the caveats of `symad.sparsity.coloring.substitution`. For the other kinds recovery
                is one gather, which changes no number.

        Raises:
            ColoringError: a shape does not fit, or the method is unknown.
        """
        self._check_compressed(compressed)
        if method not in ("substitution", "prefix"):
            raise ColoringError(f"method={method!r} is neither 'substitution' nor 'prefix'")
        if self.kind == "acyclic":
            trees = self.trees
            return trees.prefix(compressed) if method == "prefix" else trees.substitution(compressed)
        if self.kind == "bidirectional":
            parts = [part.reshape((*part.shape[:-2], -1)) for part in compressed]
            flat = np.concatenate(parts, axis=-1)
        else:
            flat = compressed.reshape((*compressed.shape[:-2], -1))
        index = self.positions if isinstance(flat, np.ndarray) else np.asarray(self.positions, like=flat)
        return flat.take(index, axis=-1)

    def decompress(self, compressed: Array, method: str = "substitution") -> csr_array:
        """The matrix as a scipy ``csr_array`` on the pattern; see `values`."""
        if self.kind != "bidirectional":
            compressed = np.asarray(compressed)
        return self.pattern.to_scipy(self.values(compressed, method))

    def _check_compressed(self, compressed: Any) -> None:
        parts = compressed if self.kind == "bidirectional" else [compressed]
        wanted = self.compressed_shape if self.kind == "bidirectional" else [self.compressed_shape]
        if len(parts) != len(wanted) or any(
            tuple(part.shape[-2:]) != shape for part, shape in zip(parts, wanted, strict=True)
        ):
            given = [getattr(part, "shape", None) for part in parts]
            raise ColoringError(
                f"decompressing this {self.kind} coloring needs shape {self.compressed_shape}, not {given}"
            )

    def __repr__(self) -> str:
        m, n = self.pattern.shape
        colors = f"{self.num_colors} color{'s' * (self.num_colors != 1)}"
        if self.kind == "bidirectional":
            colors += f" ({self.row_colors} for rows + {self.column_colors} for columns)"
        proof = "optimal" if self.optimal else f"lower bound {self.lower_bound}"
        size = f"{m}×{n}, nnz={self.pattern.nnz}"
        return f"<Coloring {self.kind}, {size}: {colors}, {proof}; {self.method}>"

    def _repr_svg_(self) -> str | None:
        found: str | None = METHODS["coloring_svg"](self)
        return found

    def _repr_html_(self) -> str:
        return str(METHODS["coloring_html"](self))


def _times(matrix: Any, seeds: Array, left: bool = False) -> Array:
    """matrix @ seeds, or seedsᵀ @ matrix, in the array library of the matrix."""
    if not isinstance(matrix, np.ndarray) and hasattr(matrix, "__array_function__"):
        seeds = np.asarray(seeds, like=matrix)
    return seeds.T @ matrix if left else matrix @ seeds


# ---- the product from which each stored entry of a derivative is read ----------------------------


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
