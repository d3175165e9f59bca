"""Arrays in compiled loops: a pointer, a shape and strides, known when code is printed; scratch memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

Ints = tuple[int, ...]


@dataclass(frozen=True)
class View:
    """Elements in memory: (i, j, ...) is at ``base + offset + i·strides[0] + j·strides[1] + ...``."""

    base: str
    """A pointer in C."""
    offset: int
    shape: Ints
    strides: Ints
    type: str
    """NumPy's type of the elements."""

    @property
    def pointer(self) -> str:
        """The address of the first element."""
        return f"{self.base} + {self.offset}" if self.offset else self.base

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are adjacent in memory, in order."""
        return self.strides == contiguous(self.shape) or prod(self.shape) == 1

    def sliced(self, start: Ints, count: Ints, step: Ints) -> View:
        """A view of ``count`` elements on each axis, from ``start`` with ``step``."""
        offset = self.offset + sum(a * s for a, s in zip(start, self.strides, strict=True))
        strides = tuple(a * s for a, s in zip(step, self.strides, strict=True))
        return replace(self, offset=offset, shape=tuple(count), strides=strides)

    def permuted(self, axes: Sequence[int]) -> View:
        """A view with the axes in another order."""
        shape, strides = (tuple(side[k] for k in axes) for side in (self.shape, self.strides))
        return replace(self, shape=shape, strides=strides)

    def repeated(self, shape: Ints, axes: Sequence[int]) -> View:
        """A view of a larger shape, with axis k at ``axes[k]``, broadcast along the others."""
        place = dict(zip(axes, self.strides, strict=True))
        return replace(self, shape=tuple(shape), strides=tuple(place.get(k, 0) for k in range(len(shape))))

    def reshaped(self, shape: Ints) -> View | None:
        """A view of the same memory with another shape; None if that needs a copy."""
        if self.is_contiguous:
            return replace(self, shape=tuple(shape), strides=contiguous(shape))
        old = [(d, s) for d, s in zip(self.shape, self.strides, strict=True) if d != 1]
        if [d for d, _ in old] != [d for d in shape if d != 1]:
            return None
        rest = iter(old)
        return replace(self, shape=tuple(shape), strides=tuple(0 if d == 1 else next(rest)[1] for d in shape))


def contiguous(shape: Sequence[int]) -> Ints:
    """The strides of an array whose elements are adjacent in memory."""
    return tuple(prod(shape[k + 1 :]) for k in range(len(shape)))


def merged(shape: Ints, views: Sequence[View]) -> tuple[Ints, list[Ints]]:
    """The fewest nested loops over arrays of one shape: their lengths, and the strides of each array."""
    axes = [k for k, d in enumerate(shape) if d != 1]
    lengths: list[int] = []
    strides: list[list[int]] = [[] for _ in views]
    for k in axes:
        joins = bool(lengths) and all(
            s[-1] == v.strides[k] * shape[k] for s, v in zip(strides, views, strict=True)
        )
        if joins:
            lengths[-1] *= shape[k]
        else:
            lengths.append(shape[k])
        for s, v in zip(strides, views, strict=True):
            if joins:
                s[-1] = v.strides[k]
            else:
                s.append(v.strides[k])
    return tuple(lengths), [tuple(s) for s in strides]


# ---- scratch memory: a value takes the place of one that is read no more -------------------------


ALIGNMENT = 64
"""Bytes of a cache line, where each array begins."""


class Scratch:
    """Blocks of bytes, each in use until the end of a statement."""

    def __init__(self) -> None:
        self.size = 0
        """The bytes that all blocks need."""
        self.used: list[tuple[int, int, int]] = []
        """The blocks in use: the first byte, the byte after the last, and the last statement."""

    def new(self, size: int, now: int, last: int) -> int:
        """The first byte of a new block, in the lowest gap that is large enough.

        ``now`` is the number of the statement that needs it, which may read blocks that end with it, ``last``
        that of the last statement that reads or writes it.
        """
        size = -(-size // ALIGNMENT) * ALIGNMENT
        self.used = sorted(block for block in self.used if block[2] >= now)
        first = 0
        for start, stop, _ in self.used:
            if start - first >= size:
                break
            first = max(first, stop)
        self.used.append((first, first + size, last))
        self.size = max(self.size, first + size)
        return first
