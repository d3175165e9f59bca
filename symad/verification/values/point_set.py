"""Points at which a claim is looked at: drawn from a seed, and in every region that its formulas have.

Rows are stratified by sign, decade and order: of ordinary size, far away and close to 0, near the numbers of
the formulas, all coordinates close together, whole numbers, definite matrices. Others lie on both sides of
the places at which a formula turns: where the arguments of a comparison, a maximum, a root or a logarithm
are equal to their boundary (`turning_points`). All numbers are floats of a short mantissa, so that they are
exact in binary: a tie on an open set, as |x| = x, is exact, and one in a single point is hardly met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from symad.core.graph import Node, topological
from symad.errors import SymadError
from symad.numbers.values import unchecked
from symad.ops.basic.sources import Input, symbol_of
from symad.transforms.batches import batch_outputs
from symad.verification.fields.integer_inputs import integer_inputs
from symad.verification.fields.prime_fields import Array
from symad.verification.terms.linear_terms import number
from symad.verification.values.boxes import Bounds, bounds_of, box_within
from symad.verification.values.points import is_whole, is_zero
from symad.verification.values.turning_points import turning_points

FloatPoint = dict[Node, Any]
Point = Mapping[Node, Any]
"""A point in exact numbers."""

Columns = Mapping[Node, Array]
"""For each input its values at all points, along a leading axis."""

KINDS = ("ordinary", "moderate", "ordinary", "near", "far", "close", "ordinary", "whole", "definite", "near")
"""What the rows are like, in turn."""

LARGEST = (2, 8, 24, 80, 480)
"""Ordinary sizes: the largest of a stratum."""

BITS = 50
"""Bits of the numbers: products of a few are exact in the precision of balls."""

MAX_FLOAT = 2**1000


@dataclass(frozen=True)
class PointSet:
    """The points of one claim."""

    outputs: tuple[Node, ...]
    """All that is claimed, and the function that it is about; sizes are numbers."""
    seed: int
    inputs: tuple[Node, ...] = ()
    """The inputs, where the outputs need not have all of them."""
    domain: Node | None = None
    """Positive where something is claimed."""

    @cached_property
    def arguments(self) -> tuple[Node, ...]:
        """All inputs that are drawn."""
        below = (*self.outputs, *([self.domain] if self.domain is not None else []))
        found = (n for n in topological(below) if isinstance(n.op, Input))
        return tuple(dict.fromkeys((*self.inputs, *found)))

    @cached_property
    def integers(self) -> Mapping[Node, tuple[int, int]]:
        """Inputs that are indices or exponents, with their ranges."""
        return integer_inputs(self.outputs)

    @cached_property
    def numbers(self) -> Array:
        """The sizes of the numbers in the formulas: branches begin and end there."""
        below = (*self.outputs, *([self.domain] if self.domain is not None else []))
        found = {float(abs(c)) for c in map(number, topological(below)) if c and abs(c) < MAX_FLOAT}
        return np.array(sorted(found) or [1.0])

    @cached_property
    def bounds(self) -> Bounds:
        """A box around the domain."""
        return {} if self.domain is None else bounds_of(box_within(self.domain))

    def drawn(self, count: int) -> Columns:
        """So many rows; those outside of the domain are left out, and so may be fewer."""
        rng = np.random.default_rng(self.seed % 2**63)
        kinds = np.array([KINDS[k % len(KINDS)] for k in range(count)])
        signs = rng.integers(0, 4, size=count)  # all positive, all negative, or each by itself
        made = {n: self._column(n, kinds, signs, rng) for n in self.arguments}
        inside = np.arange(count) % 2 == 0
        for node, (low, high) in self.bounds.items():
            if node in made and node not in self.integers:
                made[node][inside] = _between(made[node][inside], low, high, rng)
        return self.within(made)

    def points(self, count: int) -> Iterator[FloatPoint]:
        """The rows, one after the other."""
        columns = self.drawn(count)
        for k in range(len(next(iter(columns.values()), ()))):
            yield {n: as_plain(c[k]) for n, c in columns.items()}

    def within(self, columns: Columns) -> Columns:
        """The rows that lie in the domain."""
        if self.domain is None or not columns:
            return columns
        count = len(next(iter(columns.values())))
        try:
            (holds,) = evaluated((self.domain,), columns)
        except UNUSABLE:
            kept = [k for k in range(count) if self.holds({n: c[k] for n, c in columns.items()})]
            return {n: c[kept] for n, c in columns.items()}
        flags = np.asarray(holds, dtype=float).reshape(count) > 0
        return {n: c[flags] for n, c in columns.items()}

    def holds(self, point: Mapping[Node, Any]) -> bool:
        """Whether a point lies in the domain."""
        if self.domain is None:
            return True
        try:
            (value,) = unchecked((self.domain,), {n: as_plain(v) for n, v in point.items()})
        except UNUSABLE:
            return False
        return bool(np.all(np.asarray(value, dtype=float) > 0))

    def turning(self) -> Iterator[FloatPoint]:
        """Points on both sides of the places at which something turns."""
        below = (*self.outputs, *([self.domain] if self.domain is not None else []))
        for point in turning_points(below, self.integers, self.seed % 2**31):
            if self.holds(point):
                yield point

    # ---- one input ------------------------------------------------------------------------------

    def _column(self, node: Node, kinds: Array, signs: Array, rng: np.random.Generator) -> Array:
        count, shape = len(kinds), tuple(int(d) for d in node.shape)
        span, symbol = self.integers.get(node), symbol_of(node)
        if span is not None:
            return rng.integers(span[0], max(span[1], span[0] + 1), size=(count, *shape))
        whole = is_whole(node)
        values: Array = np.empty((count, prod(shape)))
        for kind in dict.fromkeys(kinds.tolist()):
            rows = kinds == kind
            values[rows] = SIZES[kind](self.numbers, (int(rows.sum()), prod(shape)), rng)
        values = np.round(np.minimum(values, 1 << 12)) if whole else _short(values)
        if whole and getattr(symbol, "is_zero", None) is False:
            values = np.maximum(values, 1.0)
        values = self._signed(symbol, values, signs, rng).reshape(count, *shape)
        if len(shape) >= 2 and shape[-1] == shape[-2] and not whole:
            rows = kinds == "definite"
            values[rows] = _short(_definite(values[rows]))
        return values

    def _signed(self, symbol: Any, values: Array, signs: Array, rng: np.random.Generator) -> Array:
        if getattr(symbol, "is_zero", False):
            return np.zeros_like(values)
        if getattr(symbol, "is_nonpositive", None):
            return -values
        if getattr(symbol, "is_nonnegative", None):
            return values
        each = np.where(rng.random(values.shape) < 0.5, 1.0, -1.0)
        return values * np.select([signs[:, None] == 0, signs[:, None] == 1], [1.0, -1.0], each)


UNUSABLE = (SymadError, ArithmeticError, ValueError, TypeError, LookupError, np.linalg.LinAlgError)
"""What evaluation raises where it has no answer."""


def evaluated(outputs: tuple[Node, ...], columns: Columns) -> list[Array]:
    """The values of some nodes at all rows, in floats, with a leading axis."""
    count = len(next(iter(columns.values())))
    rows = {n: Node.of(Input(symbol_of(n), (count, *n.shape))) for n in columns}
    batched = batch_outputs(outputs, rows, count)
    with np.errstate(all="ignore"):
        found = unchecked(batched, {rows[n]: column for n, column in columns.items()})
    return [np.broadcast_to(np.asarray(v), (count, *o.shape)) for v, o in zip(found, outputs, strict=True)]


def one_by_one(outputs: tuple[Node, ...], columns: Columns, rows: int) -> list[Array]:
    """The same values, row by row: NaN in the rows that an op refuses."""
    found = [np.full((rows, *(int(d) for d in o.shape)), np.nan) for o in outputs]
    for k in range(rows):
        try:
            with np.errstate(all="ignore"):
                values = unchecked(outputs, {n: as_plain(column[k]) for n, column in columns.items()})
        except UNUSABLE:
            continue
        for whole, value in zip(found, values, strict=True):
            whole[k] = value
    return found


def as_plain(value: Any) -> Any:
    """A number without axes as a float or an int; rational numbers as floats."""
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim:
        return value.astype(float)
    return value.item() if isinstance(value, (np.ndarray, np.generic)) and not np.ndim(value) else value


def _short(values: Array) -> Array:
    """Floats of few bits."""
    mantissas, exponents = np.frexp(values)
    return np.ldexp(np.round(mantissas * 2**BITS) / 2**BITS, exponents)


def _definite(a: Array) -> Array:
    """A Aᵀ + I, with A clipped to [−4, 4]; in every second matrix the upper triangle is halved."""
    a = np.clip(a, -4, 4)
    made = a @ np.swapaxes(a, -1, -2) + np.eye(a.shape[-1])
    made[1::2] -= np.triu(made[1::2], 1) / 2  # what factors do not read
    return made


def _between(values: Array, low: float, high: float, rng: np.random.Generator) -> Array:
    """Values inside of bounds, some of them close to one."""
    part = rng.random(values.shape)
    part = np.where(rng.random(values.shape) < 0.25, part * 2.0**-8, part)
    if np.isfinite(low) and np.isfinite(high):
        return _short(low + (high - low) * part)
    if np.isfinite(low):
        return _short(low + np.abs(values))
    return _short(high - np.abs(values)) if np.isfinite(high) else values


Drawn = Callable[[Array, tuple[int, int], np.random.Generator], Array]


def _ordinary(numbers: Array, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    return rng.random(shape) * rng.choice(LARGEST, size=(shape[0], 1))


def _decades(low: float, high: float) -> Drawn:
    def draw(numbers: Array, shape: tuple[int, int], rng: np.random.Generator) -> Array:
        return np.exp2(rng.uniform(low, high, size=shape))

    return draw


def _near(numbers: Array, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """Beside the numbers of the formulas, relatively by 2⁻¹² to 1."""
    apart = np.exp2(rng.uniform(-12, 1, size=shape)) * np.where(rng.random(shape) < 0.5, 1, -0.5)
    return rng.choice(numbers, size=shape) * (1 + apart)


def _close(numbers: Array, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """All coordinates of a row close together."""
    base = rng.random((shape[0], 1)) * rng.choice(LARGEST, size=(shape[0], 1))
    return np.abs(base * (1 + np.exp2(rng.uniform(-10, -2, size=shape)) * rng.uniform(-1, 1, size=shape)))


def _whole(numbers: Array, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """Beside whole numbers."""
    return np.abs(rng.integers(0, 9, size=shape) + np.exp2(-10.0) * rng.uniform(-1, 1, size=shape))


SIZES: dict[str, Drawn] = {
    "ordinary": _ordinary, "moderate": _decades(-7, 9), "far": _decades(-40, 40), "near": _near,
    "close": _close, "whole": _whole, "definite": _ordinary,
}  # fmt: skip
"""How the sizes of each kind are drawn."""


# ---- points next to a point ------------------------------------------------------------------


def is_generic(point: Point, integers: Iterable[Node]) -> bool:
    """Whether no coordinate is whole: at whole exponents powers have values that they lack beside."""
    for node, value in point.items():
        symbol = symbol_of(node)
        if node in integers or getattr(symbol, "is_integer", False) or is_zero(node):
            continue
        if any(v.denominator == 1 for v in np.asarray(value, dtype=object).ravel().tolist()):
            return False
    return True


def is_short(point: Point) -> bool:
    """Whether all numbers are those of simple points."""
    numbers = (v for value in point.values() for v in np.asarray(value, dtype=object).ravel().tolist())
    return all(v.denominator < 1000 for v in numbers if isinstance(v, Fraction))


def rounded(point: Point, bits: int) -> dict[Node, Any]:
    """A point with numbers of few bits."""

    def short(value: Any) -> Any:
        if not isinstance(value, Fraction):
            return value
        mantissa, exponent = np.frexp(float(value))
        return Fraction(float(np.ldexp(np.round(mantissa * 2**bits) / 2**bits, exponent)))

    return {
        n: np.frompyfunc(short, 1, 1)(v) if isinstance(v, np.ndarray) else short(v) for n, v in point.items()
    }


STEP = 2.0**-31
"""How far the points next to a point lie, relatively."""


def around(
    point: Point, count: int, integers: Iterable[Node], step: float = STEP
) -> Iterator[dict[Node, Any]]:
    """Points next to a point, in pairs to both sides, each coordinate moved by itself; integers stay."""
    rng = np.random.default_rng(7)
    kept = {n for n in point if n in integers or is_whole(n) or is_zero(n)}

    def moved(value: Any) -> Any:
        part = Fraction(float(np.round(rng.uniform(-1, 1) * 2**12) / 2**12 * step))
        return part * (abs(value) if value else 1)

    for _ in range(0, count, 2):
        apart = {n: np.frompyfunc(moved, 1, 1)(v) if isinstance(v, np.ndarray) else moved(v)
                 for n, v in point.items() if n not in kept}  # fmt: skip
        yield {n: v + apart[n] if n in apart else v for n, v in point.items()}
        yield {n: v - apart[n] if n in apart else v for n, v in point.items()}
