"""Dependency sets: the inputs on which each element of an array depends, as boolean CSR patterns.

A node of the graph with s elements has a `Pattern` of shape (s, inputs), its elements in row-major
order. Ops act on them as sparse boolean matrices: moving elements selects rows, adding unites rows,
contracting multiplies with a boolean matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from symad.core.arrays import Array
from symad.sparsity.patterns.pattern import BoolArray, IntArray, Pattern

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MIN_SORTED_PATTERNS = 4
"""The number of patterns from which a union is one sort instead of a chain of merges."""


def nothing(size: int, inputs: int) -> Pattern:
    """The pattern in which no element depends on an input."""
    return Pattern((size, inputs), np.zeros(size + 1, np.int64), np.zeros(0, np.int64))


def seeds(size: int, inputs: int, first: int) -> Pattern:
    """The pattern in which element k is input ``first + k``."""
    return Pattern((size, inputs), np.arange(size + 1), np.arange(first, first + size))


def of_scipy(matrix: csr_array) -> Pattern:
    """The pattern of a csr_array without repeated entries."""
    matrix.sort_indices()
    return Pattern(matrix.shape, matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64))


def select_rows(pattern: Pattern, rows: IntArray) -> Pattern:
    """The rows with these numbers, in this order; −1 stands for a row without entries."""
    if len(rows) == pattern.shape[0] and np.array_equal(rows, np.arange(len(rows))):
        return pattern
    degrees = pattern.row_degrees[rows] if pattern.shape[0] else np.zeros(len(rows), np.int64)
    degrees = np.where(rows >= 0, degrees, 0)
    indptr = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(degrees, out=indptr[1:])
    shifts = np.repeat(pattern.indptr[rows] - indptr[:-1], degrees)
    indices = pattern.indices[shifts + np.arange(indptr[-1])]
    return Pattern((len(rows), pattern.shape[1]), indptr, indices)


def keep_rows(pattern: Pattern, kept: BoolArray | None) -> Pattern:
    """The rows for which ``kept`` holds, the others emptied; None keeps all."""
    if kept is None or kept.all():
        return pattern
    return pattern.selected(kept[pattern.rows])


def union(patterns: Sequence[Pattern]) -> Pattern:
    """The entries of any of the patterns, which have one shape."""
    distinct = list({id(p): p for p in patterns}.values())
    if len(distinct) >= MIN_SORTED_PATTERNS:
        rows = np.concatenate([p.rows for p in distinct])
        columns = np.concatenate([p.indices for p in distinct])
        return Pattern.from_entries(distinct[0].shape, rows, columns)
    result = distinct[0]
    for other in distinct[1:]:
        if other.nnz and result.nnz:
            result = of_scipy(result.to_scipy() + other.to_scipy())
        elif other.nnz:
            result = other
    return result


def through(link: csr_array, pattern: Pattern) -> Pattern:
    """The dependencies of y when y depends on the elements of x by a boolean scipy matrix."""
    return of_scipy(link @ pattern.to_scipy())


def link_matrix(shape: tuple[int, int], rows: Array, columns: Array) -> csr_array:
    """The boolean scipy matrix with these entries."""
    from scipy.sparse import coo_array

    return coo_array((np.ones(len(rows), bool), (rows, columns)), shape=shape).tocsr()


def stacked(patterns: Sequence[Pattern]) -> Pattern:
    """The rows of all patterns, concatenated."""
    if len(patterns) == 1:
        return patterns[0]
    indptr = np.concatenate([[0], *(p.row_degrees for p in patterns)]).cumsum()
    indices = np.concatenate([p.indices for p in patterns])
    return Pattern((len(indptr) - 1, patterns[0].shape[1]), indptr, indices)


def of_bits(sets: Sequence[int], inputs: int) -> Pattern:
    """One row for each set of inputs given as the bits of an integer."""
    width = -(-inputs // 8)
    rows, columns = [], []
    for k, bits in enumerate(sets):
        if bits == 0:
            continue
        found = [bits.bit_length() - 1] if bits & (bits - 1) == 0 else _positions(bits, width)
        rows.append(np.full(len(found), k))
        columns.append(np.asarray(found))
    if not rows:
        return nothing(len(sets), inputs)
    return Pattern.from_entries((len(sets), inputs), np.concatenate(rows), np.concatenate(columns))


def _positions(bits: int, width: int) -> IntArray:
    """The positions of the ones, byte by byte: few operations also for large sets."""
    raw = np.frombuffer(bits.to_bytes(width, "little"), np.uint8)
    used = np.flatnonzero(raw)
    place, bit = np.nonzero(np.unpackbits(raw[used][:, None], axis=1, bitorder="little"))
    return used[place] * 8 + bit


def to_bits(pattern: Pattern) -> int:
    """The first row as the bits of an integer."""
    return sum(1 << column for column in pattern.indices[: pattern.indptr[1]].tolist())
