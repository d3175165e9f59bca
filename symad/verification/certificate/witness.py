"""Points at which two graphs certainly differ, as certificates tell them; the guard finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import mpmath
import numpy as np

from symad.core.arrays import Number
from symad.core.graph import Node
from symad.ops.basic.sources import symbol_of

Nested: TypeAlias = "str | list[Nested]"
"""A number as text, an array as nested lists of them."""

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


def describe(point: Mapping[Node, Number]) -> dict[str, Nested]:
    """A point by the names of its inputs: strings for numbers, nested lists for arrays."""
    names = [str(symbol_of(node)) for node in point]
    return {
        name if names.count(name) == 1 else f"{name} ({promise_of(node)})": _plain(value)
        for name, (node, value) in zip(names, point.items(), strict=True)
    }


def promise_of(node: Node) -> str:
    """What tells two symbols of one name apart."""
    symbol = symbol_of(node)
    words = ("zero", "positive", "negative", "nonnegative", "nonpositive")
    sign = next((w for w in words if getattr(symbol, f"is_{w}", None)), "")
    whole = "integer" if getattr(symbol, "is_integer", False) else ""
    return " ".join(word for word in (sign, whole) if word) or "real"


def _plain(value: Number) -> Nested:
    if isinstance(value, np.ndarray):
        return [_plain(v) for v in value] if value.ndim else _plain(value[()])
    return str(value)
