"""`Coloring`: a coloring of a pattern, with compression and recovery.

Direct recovery is one gather: every stored entry is alone at some position of the compressed matrix, a flat
position that depends on the coloring only. The positions are computed once.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from symad.core.arrays import Array
from symad.core.graph import METHODS
from symad.sparsity.coloring.conditions import Sides, alone_in_row, readable
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

    @cached_property
    def sides(self) -> Sides:
        """The colors of the rows (m,) and of the columns (n,), from 1; 0 for those without a product."""
        if self.kind == "bidirectional":
            return self.colors[0], self.colors[1]
        rows, columns = (np.zeros(side, np.int64) for side in self.pattern.shape)
        return (self.colors + 1, columns) if self.kind == "row" else (rows, self.colors + 1)

    @property
    def row_colors(self) -> int:
        """The number of row products."""
        return int(self.sides[0].max(initial=0))

    @property
    def column_colors(self) -> int:
        """The number of column products."""
        return int(self.sides[1].max(initial=0))

    def _used(self, rows: Any, columns: Any) -> Any:
        """What belongs to the side with products; both for "bidirectional"."""
        if self.kind == "bidirectional":
            return rows, columns
        return rows if self.kind == "row" else columns

    def by_label(self) -> dict[Hashable, int] | tuple[dict[Hashable, int], dict[Hashable, int]]:
        """The colors as a dict from the nodes of the NetworkX graph given (else from numbers).

        For "bidirectional" one dict for the rows and one for the columns.
        """
        m, n = self.pattern.shape
        labels = self._used(self.pattern.row_labels or range(m), self.pattern.column_labels or range(n))
        if self.kind != "bidirectional":
            return dict(zip(labels, self.colors.tolist(), strict=True))
        rows, columns = (dict(zip(*side, strict=True)) for side in zip(labels, self.colors, strict=True))
        return rows, columns

    # Compression

    def seeds(self, dtype: DTypeLike = float) -> Any:
        """The seed matrix of zeros and ones.

        S (n, num_colors) for "column", "star" and "acyclic", S (m, num_colors) for "row"; for
        "bidirectional" the pair (S_rows (m, row_colors), S_columns (n, column_colors)).
        """
        return self._used(*(indicator(colors, dtype) for colors in self.sides))

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
        # integer seeds make products with integers exact
        seeds = self.seeds(matrix.dtype if matrix.dtype.kind in "fcO" else np.int64)
        if self.kind == "bidirectional":
            return _times(matrix, seeds[0], left=True), _times(matrix, seeds[1])
        return _times(matrix, seeds, left=self.kind == "row")

    # Recovery

    @property
    def compressed_shape(self) -> Any:
        """The shape of the compressed matrix, for "bidirectional" of both."""
        m, n = self.pattern.shape
        return self._used((self.row_colors, n), (m, self.column_colors))

    @cached_property
    def positions(self) -> IntArray:
        """For each stored entry (nnz,) its flat position in the compressed matrix.

        For "bidirectional" in the row products followed by the column products, both flattened. Not defined
        for the kind "acyclic". Entry (i, j) of a star coloring is read at (i, c(j)) when j is the only
        neighbor of i with its color, else at (j, c(i)), where i is the only one with its color.
        """
        if self.kind == "acyclic":
            raise ColoringError(
                "an acyclic coloring has no direct recovery; it is decompressed by substitution"
            )
        (of_row, of_column), n = self.sides, self.pattern.shape[1]
        i, j = self.pattern.rows, self.pattern.indices
        if self.kind == "row":
            return (of_row[i] - 1) * n + j
        if self.kind == "star":
            alone = alone_in_row(self.pattern, of_column)
            i, j = np.where(alone, i, j), np.where(alone, j, i)
        found = self.row_colors * n + i * self.column_colors + of_column[j] - 1
        if self.kind == "bidirectional":
            by_column = readable(self.pattern, self.sides)[1]
            found = np.where(by_column, found, (of_row[i] - 1) * n + j)
        return found

    @cached_property
    def products(self) -> IntArray:
        """For each stored entry (nnz,) the number of the product it is read from, rows before columns."""
        if self.kind == "acyclic":
            return self.sides[1][self.pattern.indices] - 1
        p, n = self.row_colors, self.pattern.shape[1]
        by_column = p + (self.positions - p * n) % max(1, self.column_colors)
        return np.where(self.positions < p * n, self.positions // max(1, n), by_column)

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
        both = self.kind == "bidirectional"
        parts = compressed if both else (compressed,)
        shapes = [tuple(getattr(part, "shape", ())[-2:]) for part in parts]
        if shapes != list(self.compressed_shape if both else [self.compressed_shape]):
            given = [getattr(part, "shape", None) for part in parts]
            raise ColoringError(
                f"decompressing this {self.kind} coloring needs shape {self.compressed_shape}, not {given}"
            )
        if method not in ("substitution", "prefix"):
            raise ColoringError(f"method={method!r} is neither 'substitution' nor 'prefix'")
        if self.kind == "acyclic":
            return (self.trees.prefix if method == "prefix" else self.trees.substitution)(compressed)
        flat = [part.reshape((*part.shape[:-2], -1)) for part in parts]
        whole = np.concatenate(flat, axis=-1) if both else flat[0]
        index = self.positions if isinstance(whole, np.ndarray) else np.asarray(self.positions, like=whole)
        return whole.take(index, axis=-1)

    def decompress(self, compressed: Array, method: str = "substitution") -> csr_array:
        """The matrix as a scipy ``csr_array`` on the pattern; see `values`."""
        if self.kind != "bidirectional":
            compressed = np.asarray(compressed)
        return self.pattern.to_scipy(self.values(compressed, method))

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


def indicator(colors: IntArray, dtype: DTypeLike = float) -> Array:
    """The matrix S (len(colors), p) with S[k, c − 1] = 1 where colors[k] = c ≥ 1."""
    seeds = np.zeros((len(colors), int(colors.max(initial=0))), dtype)
    used = np.flatnonzero(colors)
    seeds[used, colors[used] - 1] = 1
    return seeds


def _times(matrix: Any, seeds: Array, left: bool = False) -> Array:
    """matrix @ seeds, or seedsᵀ @ matrix, in the array library of the matrix."""
    if not isinstance(matrix, np.ndarray) and hasattr(matrix, "__array_function__"):
        seeds = np.asarray(seeds, like=matrix)
    return seeds.T @ matrix if left else matrix @ seeds
