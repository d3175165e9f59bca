"""Sums of parameter cotangents: by layout if every place is read once, otherwise by sorted segments.

In both cases every sum has one owner and a fixed order. On the CPU `numpy.add.reduceat` would do. CuPy's is a
difference of cumulative sums (cupy/_core/_routines_indexing.pyx of 14.2.0, line 1255; 13.6.0: 1147), which
loses the digits of small values that follow large ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def add_laid_out(total: Any, values: Any, places: Sequence[tuple[int | None, int]]) -> None:
    """Add values to ``total``, whose axes are axes k of the values, (k, 0), or positions c, (None, c)."""
    axes = [k for k, _ in places if k is not None]
    others = tuple(k for k in range(values.ndim) if k not in axes)
    values = values.sum(axis=others) if others else values
    values = values.transpose([sorted(axes).index(k) for k in axes])
    lengths = iter(values.shape)
    index, part = [], []
    for (axis, position), size in zip(places, total.shape, strict=True):
        length = 0 if axis is None else min(size, next(lengths))  # beyond it, all pairs are hidden
        index.append(slice(length) if axis is not None else position)
        part.extend([slice(length)] if axis is not None else [])
    view = total[(*index, ...)]
    view += values[(*part, ...)]
