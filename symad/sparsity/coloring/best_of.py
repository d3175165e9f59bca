"""Trying several colorings and keeping the best."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symad.sparsity.coloring.orders import OrderLike
from symad.sparsity.patterns.pattern import IntArray


def color_count(colors: IntArray) -> int:
    """The number of different colors, for colors numbered from 0 without gaps."""
    return int(colors.max(initial=-1)) + 1


def compact(colors: IntArray) -> IntArray:
    """The same classes, numbered from 0 without gaps in the order of the old numbers."""
    return np.unique(colors, return_inverse=True)[1].reshape(colors.shape).astype(np.int64)


def order_name(order: OrderLike) -> str:
    """The name of an order in reports."""
    return order if isinstance(order, str) else getattr(order, "__name__", "given order")


@dataclass
class Race:
    """The best coloring so far; of equal ones the first is kept, so that the result is deterministic.

    ``bound`` is a lower bound on the number of colors: once it is reached no other coloring is tried.
    """

    bound: int
    colors: Any = None
    count: int = field(default=2**62)
    winner: str = ""

    def offer(self, name: str, colors: Any, count: int | None = None) -> bool:
        """Compare a coloring (None: no coloring) with the best; returns true if the bound is reached."""
        if colors is not None:
            count = color_count(colors) if count is None else count
            if count < self.count:
                self.colors, self.count, self.winner = colors, count, name
        return self.done

    @property
    def done(self) -> bool:
        """True if no better coloring exists."""
        return self.count <= self.bound
