"""Sparsity patterns: boolean matrices in one canonical compressed-row form.

A stored entry (i, j) means: the element *may* be different from zero. No entry is ever dropped
because its value happens to be zero, so a pattern never depends on the point of evaluation.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from symad.core.arrays import Array, ArrayLike
from symad.errors import SymadError

if TYPE_CHECKING:
    import networkx as nx
    from scipy.sparse import csr_array, sparray


# ---- errors about patterns and colorings ---------------------------------------------------------


class PatternError(SymadError, ValueError):
    """A matrix or graph given as a sparsity pattern is not one."""


class ColoringError(SymadError, ValueError):
    """A coloring violates the condition of its kind, or was requested by an unknown name."""


IntArray: TypeAlias = "NDArray[np.int64]"
BoolArray: TypeAlias = "NDArray[np.bool_]"

PatternLike: TypeAlias = "Pattern | sparray | nx.Graph[Hashable] | ArrayLike"
"""Objects with a pattern: a matrix of SciPy, a graph of NetworkX, an array, nested lists."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """An m×n boolean matrix; row i has the ascending columns ``indices[indptr[i]:indptr[i+1]]``."""

    shape: tuple[int, int]
    indptr: IntArray
    indices: IntArray
    row_labels: tuple[Hashable, ...] | None = None
    """The nodes of a NetworkX graph to which the rows belong."""
    column_labels: tuple[Hashable, ...] | None = None

    @staticmethod
    def from_entries(
        shape: tuple[int, int],
        rows: ArrayLike,
        columns: ArrayLike,
        row_labels: tuple[Hashable, ...] | None = None,
        column_labels: tuple[Hashable, ...] | None = None,
    ) -> Pattern:
        """The pattern with the entries (rows[k], columns[k]); repeated entries count once.

        Raises:
            PatternError: an index lies outside the shape.
        """
        m, n = shape
        i, j = np.asarray(rows, np.int64).ravel(), np.asarray(columns, np.int64).ravel()
        outside = (i < 0) | (i >= m) | (j < 0) | (j >= n)
        if outside.any():
            k = int(np.flatnonzero(outside)[0])
            raise PatternError(f"entry ({i[k]}, {j[k]}) lies outside a pattern of shape {m}×{n}")
        keys = np.sort(i * n + j)  # faster than np.unique, which hashes
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys
        i, j = (keys // n, keys % n) if n else (keys, keys)
        indptr = np.zeros(m + 1, np.int64)
        np.cumsum(np.bincount(i, minlength=m), out=indptr[1:])
        return Pattern((m, n), indptr, j, row_labels, column_labels)

    @property
    def nnz(self) -> int:
        """The number of stored entries."""
        return len(self.indices)

    @cached_property
    def rows(self) -> IntArray:
        """The row of every stored entry, in storage order."""
        return np.repeat(np.arange(self.shape[0]), self.row_degrees)

    @cached_property
    def row_degrees(self) -> IntArray:
        """Entries in each row."""
        return np.diff(self.indptr)

    @cached_property
    def column_degrees(self) -> IntArray:
        """Entries in each column."""
        return np.bincount(self.indices, minlength=self.shape[1])

    @cached_property
    def transposing_order(self) -> IntArray:
        """For each entry of the transpose, in its storage order, its position in this pattern."""
        return np.argsort(self.indices, kind="stable")

    @cached_property
    def transposed(self) -> Pattern:
        """The transpose."""
        order = self.transposing_order
        indptr = np.zeros(self.shape[1] + 1, np.int64)
        np.cumsum(self.column_degrees, out=indptr[1:])
        shape = (self.shape[1], self.shape[0])
        return Pattern(shape, indptr, self.rows[order], self.column_labels, self.row_labels)

    def in_row(self, i: int) -> IntArray:
        """The columns of one row."""
        return self.indices[self.indptr[i] : self.indptr[i + 1]]

    def lists(self) -> list[list[int]]:
        """The columns of each row, as Python lists, which a greedy loop reads fastest."""
        flat, ends = self.indices.tolist(), self.indptr.tolist()
        return [flat[a:b] for a, b in pairwise(ends)]

    def selected(self, kept: BoolArray) -> Pattern:
        """The same shape with only those stored entries for which ``kept`` (nnz,) holds."""
        indptr = np.concatenate([[0], np.cumsum(kept)])[self.indptr]
        labels = (self.row_labels, self.column_labels)
        return Pattern(self.shape, indptr, self.indices[kept], *labels)

    def same_entries(self, other: Pattern) -> bool:
        """True if both have the same shape and the same stored entries."""
        return (
            self.shape == other.shape
            and np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.indices, other.indices)
        )

    def first_asymmetry(self) -> tuple[int, int] | None:
        """An entry (i, j) stored without (j, i), or None for a symmetric pattern."""
        if self.shape[0] != self.shape[1]:
            raise PatternError(f"a pattern of shape {_times(self.shape)} is not square")
        if self.same_entries(self.transposed):
            return None
        n = self.shape[0]
        keys = self.rows * n + self.indices
        mirrored = self.indices * n + self.rows
        lonely = int(np.flatnonzero(~np.isin(keys, mirrored))[0])
        return int(self.rows[lonely]), int(self.indices[lonely])

    def with_diagonal(self) -> Pattern:
        """The pattern with every diagonal entry stored."""
        every = np.arange(min(self.shape))
        return Pattern.from_entries(
            self.shape,
            np.concatenate([self.rows, every]),
            np.concatenate([self.indices, every]),
            self.row_labels,
            self.column_labels,
        )

    def adjacency(self) -> Pattern:
        """The graph of a symmetric pattern: the same entries without the diagonal.

        Raises:
            PatternError: the pattern is not square, or not symmetric; the message names an entry.
        """
        lonely = self.first_asymmetry()
        if lonely is not None:
            i, j = lonely
            raise PatternError(
                f"a symmetric pattern is needed, but in the {_times(self.shape)} pattern given "
                f"entry ({i}, {j}) is stored and ({j}, {i}) is not; store both triangles, or color "
                "it as a Jacobian (kind 'column', 'row' or 'bidirectional')"
            )
        off = self.rows != self.indices
        return self if off.all() else self.selected(off)

    def column_intersection(self) -> Pattern:
        """The graph on the columns in which two are adjacent if some row contains both (AᵀA).

        Its proper colorings are the partial distance-2 colorings of the columns. The number of
        entries is at most Σ_i (entries of row i)²; `intersection_work` computes it in advance.
        """
        product = self.transposed.to_scipy() @ self.to_scipy()
        product.sort_indices()
        n = self.shape[1]
        indptr, indices = product.indptr.astype(np.int64), product.indices.astype(np.int64)
        squared = Pattern((n, n), indptr, indices, self.column_labels, self.column_labels)
        return squared.selected(squared.rows != squared.indices)

    @property
    def intersection_work(self) -> int:
        """Σ_i (entries of row i)², an upper bound on the entries of AᵀA."""
        return int((self.row_degrees**2).sum())

    def to_scipy(self, data: Array | None = None) -> csr_array:
        """A scipy ``csr_array`` of this pattern: boolean, or with the values ``data`` (nnz,)."""
        from scipy.sparse import csr_array

        index = np.int32 if max(*self.shape, self.nnz) < 2**31 else np.int64
        values = np.ones(self.nnz, bool) if data is None else data
        return csr_array((values, self.indices.astype(index), self.indptr.astype(index)), shape=self.shape)

    def __repr__(self) -> str:
        return f"Pattern({_times(self.shape)}, {self.nnz} entries)"


def _times(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape))


def as_pattern(matrix: PatternLike, bipartite: bool = True) -> Pattern:
    """The pattern of any object that has one.

    Args:
        matrix: a `Pattern`; a scipy.sparse array or matrix of any format (stored zeros are
            entries); a dense array, SymPy matrix or list of lists (elements that differ from 0 are
            entries); or a NetworkX graph.
        bipartite: true if a NetworkX graph whose nodes all have ``bipartite=0`` or ``1`` represents
            the rectangular matrix with its 0-nodes as rows and its 1-nodes as columns. All
            other graphs represent their adjacency matrix, with self-loops as the diagonal.

    Raises:
        PatternError: it is none of these, or not two-dimensional.
    """
    if isinstance(matrix, Pattern):
        return matrix
    networkx = sys.modules.get("networkx")  # if it is not loaded, the argument cannot be a graph
    if networkx is not None and isinstance(matrix, networkx.Graph):
        return _of_graph(matrix, bipartite)
    if hasattr(matrix, "tocoo"):
        return _of_sparse(matrix)
    return _of_dense(matrix)


def _of_sparse(matrix: sparray) -> Pattern:
    if len(matrix.shape) != 2:
        raise PatternError(f"a pattern has two axes, not the shape {matrix.shape}")
    if getattr(matrix, "format", "") == "dia":
        # SciPy drops stored zeros when it converts this format; ones are never dropped.
        matrix = type(matrix)((np.ones_like(matrix.data), matrix.offsets), shape=matrix.shape)
    m, n = map(int, matrix.shape)
    if getattr(matrix, "format", "") == "csr" and getattr(matrix, "has_canonical_format", False):
        return Pattern((m, n), matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64))
    entries = matrix.tocoo()
    return Pattern.from_entries((m, n), entries.row, entries.col)


def _of_dense(matrix: Any) -> Pattern:
    try:
        array = np.asarray(matrix)
    except ValueError:
        raise PatternError("a pattern given as lists needs rows of equal length") from None
    if array.ndim != 2:
        raise PatternError(
            "a pattern is a sparse or dense matrix or a NetworkX graph; the "
            f"{type(matrix).__name__} given, of shape {array.shape}, is not two-dimensional"
        )
    rows, columns = np.nonzero(np.asarray(array != 0, bool))
    m, n = array.shape
    return Pattern.from_entries((m, n), rows, columns)


def _of_graph(graph: nx.Graph[Hashable], bipartite: bool) -> Pattern:
    sides = [side for _, side in graph.nodes(data="bipartite")]
    if bipartite and sides and all(side in (0, 1) for side in sides):
        rows = tuple(node for node, side in zip(graph, sides, strict=True) if side == 0)
        columns = tuple(node for node, side in zip(graph, sides, strict=True) if side == 1)
        row_of, column_of = _numbered(rows), _numbered(columns)
        pairs = [(u, v) if u in row_of else (v, u) for u, v in graph.edges()]
        for u, v in pairs:
            if u not in row_of or v not in column_of:
                raise PatternError(
                    f"the edge ({u!r}, {v!r}) joins two nodes of one side of a bipartite graph"
                )
        entries = [(row_of[u], column_of[v]) for u, v in pairs]
    else:
        rows = columns = tuple(graph)
        number = _numbered(rows)
        entries = [(number[u], number[v]) for u, v in graph.edges()]
        if not graph.is_directed():
            entries += [(j, i) for i, j in entries]
    array = np.array(entries, np.int64).reshape(-1, 2)
    return Pattern.from_entries((len(rows), len(columns)), array[:, 0], array[:, 1], rows, columns)


def _numbered(labels: Iterable[Hashable]) -> dict[Hashable, int]:
    return {label: k for k, label in enumerate(labels)}
