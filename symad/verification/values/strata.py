"""Strata of points: how the numbers of a row are drawn, as a table, and which strata are taken for what.

Formulas are looked at where no ties are, since what differs there alone is no difference. Programs may be
wrong in single points, so that these are strata of their own: zeros, equal and whole numbers, powers of two.
All numbers are floats of a short mantissa, which are exact in binary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from symad.verification.fields.prime_fields import Array

LARGEST = (2, 8, 24, 80, 480)
"""Ordinary sizes: the largest of a row."""

BITS = 50
"""Bits of the numbers: products of a few are exact in the precision of balls."""

FEW = 16
"""The largest number of inputs whose numbers have few digits."""


class RowLayout(NamedTuple):
    """What a stratum may ask of a claim."""

    numbers: Array
    """The sizes of the numbers in the formulas: branches begin and end there."""
    blocks: Sequence[Array]
    """The positions in a row of each input; those of inputs that go together are one block."""


Draw = Callable[[RowLayout, tuple[int, int], np.random.Generator], Array]
"""Rows of numbers, all real inputs side by side."""


@dataclass(frozen=True)
class Stratum:
    """How the rows of one kind are drawn."""

    draw: Draw
    signs: str = "either"
    """"either": all positive, all negative, or each by itself; "positive"; "own" if they are drawn, too."""
    plain: bool = False
    """Whether numbers have few digits, so that a point is easily read."""
    square: str = ""
    """"symmetric" or "definite" where square matrices are positive definite; those of the second in turn
    symmetric and not, with other numbers in what factors do not read."""
    most: int = 1 << 12
    """The largest size of an input whose symbol is an integer."""


def _up_to(*largest: float) -> Draw:
    def draw(layout: RowLayout, shape: tuple[int, int], rng: np.random.Generator) -> Array:
        return rng.random(shape) * rng.choice(largest, size=(shape[0], 1))

    return draw


def _spread(low: float, high: float) -> Draw:
    """Numbers that are apart: each of a row lies in a part of the interval of its own."""

    def draw(layout: RowLayout, shape: tuple[int, int], rng: np.random.Generator) -> Array:
        part = rng.permuted(np.tile(np.arange(shape[1]), (shape[0], 1)), axis=1)
        inner = 0.2 + 0.6 * rng.random(shape)  # with few digits they are apart, too
        return low + (part + inner) / max(shape[1], 1) * (high - low)

    return draw


_ordinary = _up_to(*LARGEST)


def _decades(low: float, high: float) -> Draw:
    """Each number of any power of two."""

    def draw(layout: RowLayout, shape: tuple[int, int], rng: np.random.Generator) -> Array:
        return np.exp2(rng.uniform(low, high, size=shape))

    return draw


def _scaled(low: float, high: float) -> Draw:
    """Whole rows times a power of ten."""

    def draw(layout: RowLayout, shape: tuple[int, int], rng: np.random.Generator) -> Array:
        return _ordinary(layout, shape, rng) * 10.0 ** rng.uniform(low, high, size=(shape[0], 1))

    return draw


def _near(layout: RowLayout, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """Beside the numbers of the formulas, relatively by 2⁻¹² to 1."""
    apart = np.exp2(rng.uniform(-12, 1, size=shape)) * np.where(rng.random(shape) < 0.5, 1, -0.5)
    return rng.choice(layout.numbers, size=shape) * (1 + apart)


def _close(layout: RowLayout, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """All coordinates of a row close together."""
    base = rng.random((shape[0], 1)) * rng.choice(LARGEST, size=(shape[0], 1))
    return np.abs(base * (1 + np.exp2(rng.uniform(-10, -2, size=shape)) * rng.uniform(-1, 1, size=shape)))


def _beside_whole(layout: RowLayout, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    return np.abs(rng.integers(0, 9, size=shape) + np.exp2(-10.0) * rng.uniform(-1, 1, size=shape))


def _whole(high: int) -> Draw:
    """Whole numbers: a program may ask whether numbers are equal."""

    def draw(layout: RowLayout, shape: tuple[int, int], rng: np.random.Generator) -> Array:
        return rng.integers(0, high, size=shape).astype(float)

    return draw


def _powers(layout: RowLayout, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    return np.exp2(rng.integers(-6, 7, size=shape))


def _equal(layout: RowLayout, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """One number in all places."""
    sign = np.where(rng.random((shape[0], 1)) < 0.5, 1, -1)
    return np.repeat(sign * short(_ordinary(layout, (shape[0], 1), rng)), shape[1], axis=1)


def _one_zero(layout: RowLayout, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """One number is 0: a program may divide by it. Each input comes in turn."""
    made = _ordinary(layout, shape, rng)
    for k in range(shape[0] if shape[1] else 0):
        made[k, rng.choice(layout.blocks[k % len(layout.blocks)])] = 0.0
    return made


FAR = 1.2e4
"""The size of one input, or of all directions, where others are of ordinary size: a pass may clip them."""


def _one_far(layout: RowLayout, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    made = _ordinary(layout, shape, rng)
    for k in range(shape[0] if shape[1] else 0):
        made[k, layout.blocks[k % len(layout.blocks)]] *= FAR
    return made


def _at(scale: float, offset: float = 0.0) -> Draw:
    """Small numbers of either sign times a scale, beside an offset; the signs change from row to row."""

    def draw(layout: RowLayout, shape: tuple[int, int], rng: np.random.Generator) -> Array:
        place = np.arange(shape[1])
        values = scale * (1 + place % 3 * 0.25) * np.where(place % 2, -1.0, 1.0)
        return offset + values * np.where(np.arange(shape[0]) % 2, -1.0, 1.0)[:, None]

    return draw


STRATA: Mapping[str, Stratum] = {
    "ordinary": Stratum(_ordinary), "moderate": Stratum(_decades(-7, 9)), "far": Stratum(_decades(-40, 40)),
    "near": Stratum(_near), "close": Stratum(_close), "beside whole": Stratum(_beside_whole),
    "definite": Stratum(_ordinary, square="definite"), "whole": Stratum(_whole(12)),
    "small whole": Stratum(_whole(3)), "powers of two": Stratum(_powers), "equal": Stratum(_equal, "own"),
    "one zero": Stratum(_one_zero), "one far": Stratum(_one_far), "scaled": Stratum(_scaled(-6, 9)),
    "huge": Stratum(_scaled(7, 12)), "minute": Stratum(_scaled(-13, -8)), "zeros": Stratum(_at(0.0), "own"),
    # of few digits
    "simple": Stratum(_spread(0.5, 3), "positive", True), "mixed": Stratum(_up_to(3), plain=True),
    "positive": Stratum(_up_to(3), "positive", True), "small": Stratum(_up_to(0.9), plain=True),
    "symmetric": Stratum(_up_to(3), plain=True, square="symmetric"),
    "large": Stratum(_up_to(18), plain=True, most=9), "tiny": Stratum(_up_to(0.01), plain=True),
}  # fmt: skip
"""How the rows of each kind are drawn."""

FORMULAS = (
    "ordinary", "moderate", "ordinary", "near", "far", "close", "ordinary", "beside whole", "definite",
    "near",
)  # fmt: skip
"""What rows for formulas are like, in turn: no ties, as what differs there alone is no difference."""

PROGRAMS = (
    "ordinary", "scaled", "whole", "one far", "moderate", "near", "equal", "one zero", "ordinary", "far",
    "small whole", "close", "powers of two", "huge", "definite", "minute",
)  # fmt: skip
"""What rows for programs are like, in turn: these may be wrong in single points."""

PLAIN = ("simple", "mixed", "positive", "small", "symmetric", "large", "mixed", "tiny", "positive")
"""What points are like that are the same ones for every seed, in turn."""

HOSTILE: tuple[tuple[str, Stratum], ...] = tuple(
    (word, Stratum(_at(scale, offset), "own", most=40))
    for word, scale, offset in (
        ("cancellation", 1e-5, 0.0), ("cancellation", 1e-9, 0.0), ("cancellation", 1e-17, 0.0),
        ("nearly equal", 1e-9, 1.0), ("saturation", 20.0, 0.0), ("saturation", 45.0, 0.0),
        ("saturation", 750.0, 0.0), ("large arguments", 1e8, 0.0), ("very large arguments", 1e160, 0.0),
        ("denormals", 1e-310, 0.0), ("zeros", 0.0, 0.0), ("ties", 0.0, 1.0),
    )
)  # fmt: skip
"""Where a right formula may lose its digits, and why."""


def rows_of(stratum: Stratum, layout: RowLayout, signs: Array, total: int, rng: np.random.Generator) -> Array:
    """Rows of one stratum, with signs."""
    values = stratum.draw(layout, (len(signs), total), rng)
    if stratum.signs == "own":
        return values
    values = _few_digits(values) if stratum.plain else short(values)
    if stratum.signs == "positive":
        return values
    each = np.where(rng.random(values.shape) < 0.5, 1.0, -1.0)
    return values * np.select([signs[:, None] == 0, signs[:, None] == 1], [1.0, -1.0], each)


def short(values: Array) -> Array:
    """Floats of `BITS` bits."""
    mantissas, exponents = np.frexp(values)
    return np.ldexp(np.round(mantissas * 2**BITS) / 2**BITS, exponents)


def _few_digits(values: Array) -> Array:
    """Odd multiples of a power of two: of so few bits that hardly two of a row are equal."""
    count = values.shape[1]
    length = count.bit_length()
    bits = (3 + length if length < 3 else 3 + 2 * length) if count <= FEW else BITS
    mantissas, exponents = np.frexp(values)
    return np.ldexp((np.floor(mantissas * 2 ** (bits - 1)) * 2 + 1) / 2**bits, exponents)
