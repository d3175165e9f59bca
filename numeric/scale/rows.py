"""The rows of all parts in one array: each thread writes the rows that it computed to their places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Lock

import numpy as np

from symad.numeric.numpy_arrays.memory_reuse import shared_memory
from symad.splitting.plan import Piece, Values

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

LINE = 64
"""Bytes of a cache line, to which the beginning of each output is aligned."""


class RowStore:
    """The outputs that are concatenations of rows, allocated once.

    All are in one block of memory, which later calls reuse once the results are released. No part is kept
    in addition to the whole.
    """

    def __init__(self, pieces: Sequence[Piece], lengths: Sequence[int]) -> None:
        """Memory is allocated when the shapes of the first part are known.

        Args:
            pieces: the rules that combine the outputs.
            lengths: the lengths of the parts, in order.
        """
        self.places = [k for k, p in enumerate(pieces) if p.kind == "rows" and p.weight is None]
        self.pieces = pieces
        self.edges = np.cumsum((0, *lengths)).tolist()
        self.whole: dict[int, Array] = {}
        self.lock = Lock()

    def take(self, chunk: int, values: Values) -> Values:
        """The values of a part after its rows are written to the whole; the rows' entries become empty."""
        if not self.places:
            return values
        kept = list(values)
        blocks = {k: kept[k][0][0] for k in self.places}
        with self.lock:
            if not self.whole:
                self._allocate(blocks)
        for k, block in blocks.items():
            axis = self.pieces[k].axis
            lead = (slice(None),) * axis
            self.whole[k][(*lead, slice(self.edges[chunk], self.edges[chunk + 1]))] = block
            kept[k] = []
        return tuple(kept)

    def give(self, values: Values) -> Values:
        """The combined values, with the rows in their entries."""
        kept = list(values)
        for k in self.places:
            kept[k] = [(self.whole[k], None)]
        return tuple(kept)

    def _allocate(self, blocks: dict[int, Array]) -> None:
        shapes = {k: self._shape(k, np.shape(block)) for k, block in blocks.items()}
        sizes = {k: math.prod(shapes[k]) * np.asarray(block).dtype.itemsize for k, block in blocks.items()}
        memory = shared_memory(sum(-(-size // LINE) * LINE for size in sizes.values()))
        start = 0
        for k, block in blocks.items():
            flat = memory[start : start + sizes[k]].view(np.asarray(block).dtype)
            self.whole[k] = flat.reshape(shapes[k])
            start += -(-sizes[k] // LINE) * LINE

    def _shape(self, k: int, part: tuple[int, ...]) -> tuple[int, ...]:
        axis = self.pieces[k].axis
        return *part[:axis], self.edges[-1], *part[axis + 1 :]
