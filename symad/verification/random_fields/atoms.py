"""The arguments of a kind of function that were met so far, and what they got."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from symad.verification.fields.prime_fields import Array


@dataclass(eq=False)
class Atoms:
    """The arguments met so far of one kind of function, and the random values they got."""

    index: dict[Hashable, tuple[int, int]] = dataclasses.field(default_factory=dict)
    values: list[tuple[Array, ...]] = dataclasses.field(default_factory=list)

    def enter(self, values: tuple[Array, ...], key: Hashable, opposite: Hashable = None) -> None:
        """Give values to a new argument, and with it to its negative."""
        self.index[key] = (len(self.values), 1)
        if opposite not in (None, key):
            self.index[opposite] = (len(self.values), -1)
        self.values.append(values)


def keys_of(rows: Array) -> list[bytes] | list[tuple[int, ...]]:
    """A hashable key for each row."""
    if rows.dtype == object:
        return [tuple(row) for row in rows.tolist()]
    data, width = np.ascontiguousarray(rows).tobytes(), rows.shape[1] * rows.itemsize
    return [data[k * width : (k + 1) * width] for k in range(len(rows))]
