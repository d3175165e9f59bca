"""Points at which a claim is looked at: drawn from a seed, stratum by stratum, and beside all that turns.

`PointSet` is the only source of points: formulas, programs, users' rules and searches take what they need by
the names of strata (`strata`), or the points on both sides of the places at which a formula turns: where the
arguments of a comparison, a maximum, a root or a logarithm are equal to their boundary (`turning_points`).
All numbers are floats of a short mantissa, so that they are exact in binary: a tie on an open set, as
|x| = x, is exact, and one in a single point is hardly met, but in the strata that are made of ties.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import cycle, islice
from math import prod
from typing import Any

import numpy as np
import sympy

from symad.core.graph import Node, topological
from symad.errors import SymadError
from symad.numbers.number_domains import as_float
from symad.numbers.values import unchecked
from symad.ops.basic.sources import Input, symbol_of
from symad.transforms.batches import batch_outputs
from symad.verification.fields.integer_inputs import integer_inputs
from symad.verification.fields.prime_fields import Array
from symad.verification.terms.linear_terms import number
from symad.verification.values.labels import labels_of
from symad.verification.values.ranges import Bounds, bounds_of, box_within
from symad.verification.values.strata import (
    FORMULAS,
    HOSTILE,
    PLAIN,
    STRATA,
    RowLayout,
    Stratum,
    rows_of,
    short,
)
from symad.verification.values.turning_points import turning_points

FloatPoint = dict[Node, Any]
Point = Mapping[Node, Any]
"""A point in exact numbers."""

Columns = Mapping[Node, Array]
"""For each input its values at all points, along a leading axis."""

MAX_FLOAT = 2**1000


@dataclass(frozen=True)
class PointSet:
    """The points of one claim."""

    outputs: tuple[Node, ...]
    """All that is claimed, and the function that it is about; sizes are numbers."""
    seed: int = 0
    inputs: tuple[Node, ...] = ()
    """The inputs, where the outputs need not have all of them."""
    domain: Node | None = None
    """Positive where something is claimed."""
    together: tuple[Node, ...] = ()
    """Inputs that are far, or not, together: the directions of a product."""
    fixed: frozenset[sympy.Symbol] = frozenset()
    """The inputs that a derivative is not taken by."""

    @cached_property
    def _nodes(self) -> list[Node]:
        return topological((*self.outputs, *([self.domain] if self.domain is not None else [])))

    @cached_property
    def arguments(self) -> tuple[Node, ...]:
        """All inputs that are drawn."""
        return tuple(dict.fromkeys((*self.inputs, *(n for n in self._nodes if isinstance(n.op, Input)))))

    @cached_property
    def integers(self) -> Mapping[Node, tuple[int, int]]:
        """Inputs that are indices or exponents, with their ranges."""
        return integer_inputs(self.outputs)

    @cached_property
    def labels(self) -> Mapping[Node, Array]:
        """Inputs that are compared with numbers, and these numbers."""
        return labels_of(self._nodes, self.fixed)

    @cached_property
    def held(self) -> frozenset[Node]:
        """Inputs that stay where they are at points beside a point."""
        return frozenset((*self.integers, *self.labels))

    @cached_property
    def bounds(self) -> Bounds:
        """A box around the domain."""
        return {} if self.domain is None else bounds_of(box_within(self.domain))

    @cached_property
    def _real(self) -> dict[Node, Array]:
        """The inputs that are no indices, with their positions in a row."""
        real, start = dict[Node, Array](), 0
        for n in self.arguments:
            if n not in self.integers:
                real[n] = np.arange(start, start + _count(n))
                start += _count(n)
        return real

    @cached_property
    def layout(self) -> RowLayout:
        """What strata may ask."""
        found = {float(abs(c)) for c in map(number, self._nodes) if c and abs(c) < MAX_FLOAT}
        free = [n for n in self._real if not is_whole(n)]
        joined = [self._real[n] for n in free if n in self.together]
        blocks = [self._real[n] for n in free if n not in self.together]
        blocks += [np.concatenate(joined)] if joined else []
        return RowLayout(np.array(sorted(found) or [1.0]), [b for b in blocks if b.size] or [np.arange(0)])

    # ---- rows and points ------------------------------------------------------------------------

    def drawn(self, count: int, kinds: Sequence[str] = FORMULAS) -> Columns:
        """So many rows, of some strata in turn; those outside of the domain are left out."""
        rng = np.random.default_rng(self.seed % 2**63)
        chosen = [STRATA[kind] for kind in islice(cycle(kinds), count)]
        made = self._rows(chosen, rng)
        turns = np.arange(count) // len(kinds) + np.arange(count)
        inside = (turns % 2 == 0) & np.array([s.signs != "own" for s in chosen], dtype=bool)
        for node, (low, high) in self.bounds.items():
            if node in self._real and node not in self.labels:
                made[node][inside] = _between(made[node][inside], low, high, rng)
        return self.within(made)

    def points(self, count: int, kinds: Sequence[str] = FORMULAS) -> Iterator[FloatPoint]:
        """The rows, one after the other."""
        yield from points_of(self.drawn(count, kinds))

    def plain(self, count: int) -> Iterator[FloatPoint]:
        """Points of ordinary sizes and few digits, in the domain or not: the same ones for every seed."""
        if not self.arguments:
            yield {}
            return
        chosen = [STRATA[kind] for kind in islice(cycle(PLAIN), count)]
        yield from points_of(self._rows(chosen, np.random.default_rng(0)))

    def hostile(self) -> Iterator[tuple[str, FloatPoint]]:
        """Where digits may be lost, and why, at two points of either sign; the same ones for every seed."""
        twice = [pair for pair in HOSTILE for _ in range(2)]
        made = points_of(self._rows([stratum for _, stratum in twice], np.random.default_rng(0)))
        yield from ((word, point) for (word, _), point in zip(twice, made, strict=False))

    def turning(self) -> Iterator[FloatPoint]:
        """Points on both sides of the places at which something turns."""
        rng = np.random.default_rng(self.seed % 2**63)
        running = [n for n in self._real if not is_whole(n) and _count(n) and n in self._nodes]
        for base in points_of(self._rows([STRATA["simple"]], rng)):
            yield from filter(self.holds, turning_points(self._nodes, base, running, rng))

    def within(self, columns: Columns) -> Columns:
        """The rows that lie in the domain."""
        if self.domain is None or not columns:
            return columns
        count = len(next(iter(columns.values())))
        try:
            (holds,) = evaluated((self.domain,), columns)
        except UNUSABLE:
            kept = [k for k, point in enumerate(points_of(columns)) if self.holds(point)]
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

    # ---- the numbers of a row -------------------------------------------------------------------

    def _rows(self, strata: Sequence[Stratum], rng: np.random.Generator) -> dict[Node, Array]:
        """A row for each stratum, as the symbols promise."""
        count, total = len(strata), sum(map(len, self._real.values()))
        values, signs = np.empty((count, total)), rng.integers(0, 4, size=count)
        for stratum in dict.fromkeys(strata):
            rows = np.array([s is stratum for s in strata])
            values[rows] = rows_of(stratum, self.layout, signs[rows], total, rng)
        most = np.array([s.most for s in strata], dtype=float)[:, None]
        made = dict[Node, Array]()
        for n in self.arguments:
            shape = (count, *(int(d) for d in n.shape))
            if n in self._real:
                drawn = values[:, self._real[n]]
                drawn = _promised(n, drawn, most)
                if n in self.labels:
                    chosen = np.arange(count) % 3 != 1
                    given = rng.choice(self.labels[n], drawn[chosen].shape)
                    drawn[chosen] = _promised(n, given, np.abs(given))
                made[n] = drawn.reshape(shape)
                square = len(shape) >= 3 and shape[-1] == shape[-2] and not is_whole(n)
                for how in ("symmetric", "definite") if square else ():
                    rows = np.array([s.square == how for s in strata])
                    made[n][rows] = short(_definite(made[n][rows], how))
            else:
                low, high = self.integers[n]
                made[n] = rng.integers(low, max(high, low + 1), size=shape)
        return made


def _promised(node: Node, values: Array, most: Array) -> Array:
    """Numbers as the symbol of an input promises them."""
    symbol = symbol_of(node)
    if getattr(symbol, "is_zero", False):
        return np.zeros_like(values)
    if is_whole(node):
        values = np.sign(values) * np.round(np.minimum(np.abs(values), most))
    if getattr(symbol, "is_nonpositive", None):
        values = -np.abs(values)
    elif getattr(symbol, "is_nonnegative", None):
        values = np.abs(values)
    if not _may_be_zero(node):
        values = np.where(values == 0, -1.0 if getattr(symbol, "is_nonpositive", None) else 1.0, values)
    return values + 0.0  # no −0


def _may_be_zero(node: Node) -> bool:
    """Whether a symbol may be 0; a MatrixSymbol says no of all matrices but the one of zeros."""
    symbol = symbol_of(node)
    apart = any(getattr(symbol, f"is_{word}", None) for word in ("positive", "negative"))
    return not apart and (bool(node.shape) or getattr(symbol, "is_zero", None) is not False)


def _definite(a: Array, how: str) -> Array:
    """A Aᵀ + I, with A clipped to [−4, 4]."""
    a = np.clip(a, -4, 4)
    made = a @ np.swapaxes(a, -1, -2) + np.eye(a.shape[-1])
    if how == "definite":
        made[1::2] -= np.triu(made[1::2], 1) / 2  # what factors do not read
    return made


def _between(values: Array, low: float, high: float, rng: np.random.Generator) -> Array:
    """Values inside of bounds, some of them close to one."""
    part = rng.random(values.shape)
    part = np.where(rng.random(values.shape) < 0.25, part * 2.0**-8, part)
    if np.isfinite(low) and np.isfinite(high):
        return short(low + (high - low) * part)
    if np.isfinite(low):
        return short(low + np.abs(values))
    return short(high - np.abs(values)) if np.isfinite(high) else values


# ---- values and points --------------------------------------------------------------------------

UNUSABLE = (
    SymadError, ArithmeticError, ValueError, TypeError, LookupError, RuntimeError, np.linalg.LinAlgError
)  # fmt: skip
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
    for k, point in enumerate(islice(points_of(columns), rows)):
        try:
            with np.errstate(all="ignore"):
                values = unchecked(outputs, point)
        except UNUSABLE:
            continue
        for whole, value in zip(found, values, strict=True):
            whole[k] = value
    return found


def points_of(columns: Columns) -> Iterator[FloatPoint]:
    """The rows of columns, one after the other."""
    for k in range(len(next(iter(columns.values()), ()))):
        yield {n: as_plain(c[k]) for n, c in columns.items()}


def as_plain(value: Any) -> Any:
    """A number without axes as a float or an int; rational numbers as floats."""
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim:
        return value.astype(float)
    return value.item() if isinstance(value, (np.ndarray, np.generic)) and not np.ndim(value) else value


def as_floats(value: Any) -> Any:
    """Rational values as floats; integers stay."""
    if isinstance(value, np.ndarray):
        return np.frompyfunc(as_float, 1, 1)(value).astype(np.float64) if value.dtype == object else value
    return as_float(value)


def exactly(point: Point) -> dict[Node, Any]:
    """The exact rational values of floats."""
    return {node: _exact(value) for node, value in point.items()}


def _exact(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return np.frompyfunc(Fraction, 1, 1)(value)
    return Fraction(value) if isinstance(value, float) else value


# ---- what the symbols of a point promise ----------------------------------------------------------


def _count(node: Node) -> int:
    return prod(int(d) for d in node.shape)


def is_zero(node: Node) -> bool:
    """Whether an input is a scalar that is promised to be 0."""
    return not node.shape and bool(getattr(symbol_of(node), "is_zero", False))


def is_whole(node: Node) -> bool:
    """Whether the symbol of an input is an integer."""
    return bool(getattr(symbol_of(node), "is_integer", False))


SPARSE = ("even", "odd", "prime", "composite")
"""Assumptions about integers that most integers do not satisfy."""


def is_promised(point: Point) -> bool:
    """False if the assumptions of a symbol exclude its value at a point, such as 1 for an even symbol."""
    for node, value in point.items():
        wanted = [k for k in SPARSE if getattr(symbol_of(node), f"is_{k}", None)]
        if wanted and not node.shape:
            number = sympy.Integer(int(value))
            if not all(getattr(number, f"is_{k}") for k in wanted):
                return False
    return True


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
    point: Point, count: int, integers: Iterable[Node] = (), step: float = STEP
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
