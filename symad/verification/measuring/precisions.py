"""Floating-point types in which programs compute: the roundoff and range of each, and numbers of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from symad.core.arrays import Number
from symad.core.graph import Node

SEEN, MAX_SEEN = 1e-6, 0.5
"""A relative change by the first would have been seen at every point that counts, by 1e4 ε in lower
precision, but at most by the second: in half precision, too, a wrong sign or size is seen."""


@dataclass(frozen=True)
class Precision:
    """A binary floating-point type.

    Args:
        name: as NumPy and PyTorch call it.
        bits: of a significand.
        least: the exponent of the smallest normal number.
        most: the exponent beyond the largest number.
        factor: so many roundings of each size are allowed: those of a program may be others than those of
            the formula, and a few in half precision are as large as an error.
    """

    name: str
    bits: int
    least: int
    most: int
    factor: float

    @property
    def eps(self) -> float:
        """The distance from 1 to the next number, twice the unit roundoff."""
        return 2.0 ** (1 - self.bits)

    @property
    def max(self) -> float:
        """The largest number."""
        return (2.0 - self.eps) * 2.0 ** (self.most - 1)

    @property
    def smallest_normal(self) -> float:
        """The smallest number with all its digits."""
        return 2.0**self.least

    @property
    def smallest_subnormal(self) -> float:
        """The smallest number above 0."""
        return 2.0**self.least * self.eps

    @property
    def is_low(self) -> bool:
        """Whether it has fewer digits than the points that are drawn."""
        return self.bits < DOUBLE.bits

    @property
    def span(self) -> tuple[float, float]:
        """The sizes of numbers of which products of several are numbers of this type; all of float64."""
        high = max(2.0 ** (self.most // 8), 8.0)
        return (high**-1.5, high) if self.is_low else (0.0, np.inf)

    @property
    def visible(self) -> float:
        """The relative change that a point must be able to show."""
        return min(MAX_SEEN, max(SEEN, 1e4 * self.eps / 2))

    def rounded(self, value: Any) -> Any:
        """A float, or an array, in this type, as float64; NaN for what underflows; integers as they are."""
        array = np.asarray(value)
        if not self.is_low or array.dtype.kind != "f":
            return value
        mantissas, exponents = np.frexp(array)
        made = np.ldexp(np.round(np.ldexp(mantissas, self.bits)), exponents - self.bits)
        made = np.where(np.abs(made) > self.max, np.copysign(np.inf, made), made)
        made = np.where((np.abs(made) < self.smallest_normal) & (array != 0), np.nan, made)
        return made if isinstance(value, np.ndarray) else float(made)

    def rounded_point(self, point: dict[Node, Number]) -> dict[Node, Number]:
        """A point in numbers of this type."""
        return {node: self.rounded(value) for node, value in point.items()}

    def holds(self, number: float) -> bool:
        """Whether a number is one of this type."""
        return float(self.rounded(float(number))) == number

    def coarser(self, other: Precision) -> Precision:
        """Of two types the one of fewer digits."""
        return min(self, other, key=lambda p: p.bits)


DOUBLE = Precision("float64", 53, -1022, 1024, 256.0)
SINGLE = Precision("float32", 24, -126, 128, 256.0)
HALF = Precision("float16", 11, -14, 16, 16.0)
BRAIN = Precision("bfloat16", 8, -126, 128, 16.0)
PRECISIONS = {p.name: p for p in (DOUBLE, SINGLE, HALF, BRAIN)}


def precision_named(name: str | None, where: str) -> Precision:
    """A type by its name, float64 for None.

    Raises:
        ValueError: there is no such type.
    """
    if name is None:
        return DOUBLE
    if name not in PRECISIONS:
        known = ", ".join(repr(n) for n in PRECISIONS)
        raise ValueError(f"{where}: computed_in is one of {known}, not {name!r}")
    return PRECISIONS[name]
