"""Results of compiled scalar code: one flat vector, which becomes the outputs of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from symad.core.graph import Graph, Node, pack
from symad.ops.sparse.csr import CompressedRows


@dataclass(frozen=True)
class FlatResults:
    """The outputs of a graph in a vector: the entries of one after those of another."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    matrices: tuple[Any, ...]
    """For sparse outputs the matrix of zeros, whose copies are the results; None for others."""

    @classmethod
    def of(cls, graph: Graph) -> FlatResults:
        """Where the outputs of a graph stand."""
        matrices = tuple(_matrix(output) for output in graph.output_nodes)
        shapes = tuple(
            tuple(int(d) for d in output.shape) if matrix is None else (int(matrix.nnz),)
            for output, matrix in zip(graph.output_nodes, matrices, strict=True)
        )
        return cls(graph.structure, shapes, matrices)

    @property
    def total(self) -> int:
        """The length of the vector."""
        return sum(int(np.prod(shape)) for shape in self.shapes)

    def split(self, flat: Any) -> Any:
        """The outputs from vectors (..., total)."""
        parts, offset = [], 0
        for shape, matrix in zip(self.shapes, self.matrices, strict=True):
            size = int(np.prod(shape))
            part = flat[..., offset : offset + size].reshape(flat.shape[:-1] + shape)
            if matrix is not None:
                part = _filled(part, matrix)
            parts.append(part if np.ndim(part) else float(part))
            offset += size
        return pack(self.structure, parts)

    def at_points(self, rows: Any, batch: tuple[int, ...]) -> Any:
        """The outputs at a batch of points, from rows (total, points) with one element at all points each."""
        parts, offset = [], 0
        for shape, matrix in zip(self.shapes, self.matrices, strict=True):
            if not shape:
                parts.append(rows[offset].reshape(batch))
                offset += 1
                continue
            size = prod(shape)
            part = np.moveaxis(rows[offset : offset + size].reshape(size, *batch), 0, -1)
            parts.append(part.reshape(*batch, *shape) if matrix is None else _filled(part, matrix))
            offset += size
        return pack(self.structure, parts)


def _matrix(output: Node) -> Any:
    """The matrix of zeros that a sparse output is copied from; None for other outputs."""
    op = output.op
    if not isinstance(op, CompressedRows):
        return None
    from scipy.sparse import csr_array

    matrix = csr_array((np.zeros(len(op.columns)), op.columns, op.rows), shape=op.shape)
    matrix.has_canonical_format = True
    matrix.indices.flags.writeable = matrix.indptr.flags.writeable = False  # all results show them
    return matrix


def _filled(entries: Any, matrix: Any) -> Any:
    """A sparse matrix from its entries (nnz,), dense ones (..., m, n) from entries (..., nnz)."""
    if entries.ndim == 1:
        made = object.__new__(type(matrix))
        vars(made).update(vars(matrix), data=entries)  # as copy.copy, at a fifth of its time
        return made
    dense = np.zeros((*entries.shape[:-1], *matrix.shape))
    dense[(..., *matrix.tocoo().coords)] = entries
    return dense
