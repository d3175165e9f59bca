"""The scratch memory of a compiled step: values use memory again that no later statement reads."""

from __future__ import annotations

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

        Args:
            size: the number of bytes.
            now: the number of the statement that needs the block; it may read blocks that end with it.
            last: the number of the last statement that reads or writes the block.
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
