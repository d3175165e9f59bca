"""Results of compiled scalar code: one flat vector, and its conversion to the outputs of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from symad.core.graph import Graph, Node, TupleOf, pack
from symad.ops.elementwise.selection import Condition
from symad.ops.sparse.csr import CompressedRows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from symad.core.structures import Structure


def returns_truth(graph: Graph, packed: bool) -> bool:
    """Whether a result is a truth value, which a vector of numbers cannot hold; packed ones are numbers."""
    return not packed and any(isinstance(output.op, Condition) for output in graph.output_nodes)


@dataclass(frozen=True)
class FlatResults:
    """The outputs of a graph in one vector, one output after the other."""

    structure: Structure
    shapes: tuple[tuple[int, ...], ...]
    matrices: tuple[csr_array | None, ...]
    """For each sparse output the matrix of zeros whose copies are results; None for other outputs."""

    @classmethod
    def of(cls, graph: Graph) -> FlatResults:
        """The places of a graph's outputs."""
        matrices = tuple(_matrix(output) for output in graph.output_nodes)
        shapes = tuple(
            tuple(int(d) for d in output.shape) if matrix is None else (int(matrix.nnz),)
            for output, matrix in zip(graph.output_nodes, matrices, strict=True)
        )
        return cls(graph.structure, shapes, matrices)

    @cached_property
    def places(self) -> tuple[tuple[slice, tuple[int, ...], csr_array | None], ...]:
        """For each output: its slice of the vector, its shape, and its matrix of zeros."""
        ends = list(accumulate(map(prod, self.shapes), initial=0))
        spans = (slice(*span) for span in pairwise(ends))
        return tuple(zip(spans, self.shapes, self.matrices, strict=True))

    @cached_property
    def total(self) -> int:
        """The length of the vector."""
        return sum(map(prod, self.shapes))

    @cached_property
    def whole(self) -> tuple[int, ...] | None:
        """The shape of the result if it is one dense array; else None."""
        one = self.structure is None and bool(self.shapes[0]) and self.matrices[0] is None
        return self.shapes[0] if one else None

    @cached_property
    def is_flat_tuple(self) -> bool:
        """Whether the result is a tuple of the outputs."""
        structure = self.structure
        return isinstance(structure, TupleOf) and all(item is None for item in structure.items)

    def split(self, flat: np.ndarray) -> Any:
        """The outputs at one point, from the vector (total,)."""
        if self.whole is not None:
            return flat.reshape(self.whole)
        parts: list[np.ndarray | csr_array] = []
        for place, shape, matrix in self.places:
            if matrix is not None:
                parts.append(_filled(flat[place], matrix))
            elif not shape:
                parts.append(flat.item(place.start))
            else:
                parts.append(flat[place] if len(shape) == 1 else flat[place].reshape(shape))
        return tuple(parts) if self.is_flat_tuple else pack(self.structure, parts)

    def at_points(self, rows: np.ndarray, batch: tuple[int, ...]) -> Any:
        """The outputs at a batch of points, from rows (total, points): one row for each element."""
        parts: list[np.ndarray | csr_array] = []
        for place, shape, matrix in self.places:
            if not shape:
                parts.append(rows[place.start].reshape(batch))
                continue
            part = np.moveaxis(rows[place].reshape(prod(shape), *batch), 0, -1)
            parts.append(part.reshape(*batch, *shape) if matrix is None else _filled(part, matrix))
        return pack(self.structure, parts)


def _matrix(output: Node) -> csr_array | None:
    """The matrix of zeros that a sparse output is copied from; None for other outputs."""
    op = output.op
    if not isinstance(op, CompressedRows):
        return None
    from scipy.sparse import csr_array

    matrix = csr_array((np.zeros(len(op.columns)), op.columns, op.rows), shape=op.shape)
    matrix.has_canonical_format = True
    matrix.indices.flags.writeable = matrix.indptr.flags.writeable = False  # all results share them
    return matrix


def _filled(entries: np.ndarray, matrix: csr_array) -> csr_array | np.ndarray:
    """A sparse matrix from entries (nnz,), or dense matrices (..., m, n) from entries (..., nnz)."""
    if entries.ndim == 1:
        made = object.__new__(type(matrix))
        vars(made).update(vars(matrix), data=entries)  # like copy.copy, in a fifth of its time
        return made
    dense = np.zeros((*entries.shape[:-1], *matrix.shape))
    places = matrix.tocoo()
    dense[..., places.row, places.col] = entries
    return dense
