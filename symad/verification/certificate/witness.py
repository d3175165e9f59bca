"""Points at which two graphs certainly differ, as certificates tell them; the guard finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mpmath

from symad.core.arrays import Number

if TYPE_CHECKING:
    from symad.verification.values.points import Nested

DIGITS = 30
"""Both values are given to this many digits."""


@dataclass(frozen=True)
class Witness:
    """A point at which an element differs.

    ``point`` maps names to exact rationals as text; ``left`` and ``right`` are the two values.
    """

    point: Mapping[str, Nested]
    left: str
    right: str
    index: tuple[int, ...] = ()

    @property
    def gap(self) -> float:
        """The relative difference of the two values."""
        with mpmath.workdps(DIGITS):
            left, right = mpmath.mpf(self.left), mpmath.mpf(self.right)
            return float(abs(left - right) / max(abs(left), abs(right), mpmath.mpf(10) ** -300))

    def __str__(self) -> str:
        return f"at {place_of(self.point)}: {self.left} and {self.right}"


def in_order(point: Mapping[str, Nested], names: Sequence[str]) -> Mapping[str, Nested]:
    """A point with its inputs in an order; a name may be followed by what its symbol promises."""
    places = {name: k for k, name in enumerate(names)}
    found = sorted(point, key=lambda name: places.get(name.split(" (")[0], len(places)))
    return {name: point[name] for name in found}


def place_of(point: Mapping[str, Nested]) -> str:
    """A point as text."""
    return ", ".join(f"{name} = {short(value)}" for name, value in point.items()) or "every point"


MAX_SHOWN = 100
"""The maximum number of rows of an array that a text shows; of larger ones it shows a tenth."""


def short(value: Nested) -> str:
    """A number or an array as text."""
    if not isinstance(value, list):
        return str(value)
    shown = value if len(value) <= MAX_SHOWN else value[: MAX_SHOWN // 10]
    more = [f"... ({len(value):,} in all)"] if len(shown) < len(value) else []
    return "[" + ", ".join([*map(short, shown), *more]) + "]"


def digits_of(value: Number) -> str:
    """A number to 30 digits."""
    with mpmath.workdps(60):
        return str(mpmath.nstr(mpmath.mpf(value), DIGITS, strip_zeros=True))
