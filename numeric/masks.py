"""Which tiles of the pair plane a mask empties, fills or cuts, by interval arithmetic.

The mask is a SymPy Boolean of b, h, i, j and array reads. Every tile [i_lo, i_hi] × [j_lo, j_hi] is
classified from the bounds of its comparisons' two sides: affine comparisons are exact, so causal,
sliding-window and prefix masks come out exactly; anything else is at worst called PARTIAL. No
mask entry is ever evaluated: the cost is one interval per tile, and O(length) per array read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import sympy as sp
from sympy.logic.boolalg import BooleanFunction

from symad.numeric.pointwise import FloorDivide, children, constant, topological
from symad.numeric.scores import B, H, I, J, Load, Score

EMPTY, PARTIAL, FULL = 0, 1, 2

Array = Any


@dataclass(frozen=True)
class Interval:
    """All values lie in [low, high]; the arrays have axes (b, h, tile of i, tile of j)."""

    low: Array
    high: Array


@dataclass(frozen=True)
class Truth:
    """``always``: true on the whole tile; ``sometimes``: not excluded anywhere on the tile."""

    always: Array
    sometimes: Array


@dataclass(frozen=True)
class Tiling:
    """The plane of pairs, cut in tiles of ``rows`` × ``columns`` (the last ones may be smaller)."""

    batch: int
    heads: int
    length_q: int
    length_k: int
    rows: int
    columns: int

    def bounds(self, symbol: sp.Symbol) -> Interval:
        """The range of a loop symbol on each tile, on its own axis."""
        if symbol in (B, H):
            axis = 0 if symbol == B else 1
            points = _along(np.arange(self.batch if symbol == B else self.heads), axis)
            return Interval(points, points)
        length, size, axis = (
            (self.length_q, self.rows, 2) if symbol == I else (self.length_k, self.columns, 3)
        )
        low = np.arange(0, length, size)
        return Interval(_along(low, axis), _along(np.minimum(low + size, length) - 1, axis))

    def starts(self, symbol: sp.Symbol) -> Array:
        """Where the cells of a loop symbol's axis begin: every index for b and h."""
        interval = self.bounds(symbol)
        return np.asarray(interval.low).reshape(-1)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(batch, heads, tiles of i, tiles of j)."""
        tiles = (-(-self.length_q // self.rows), -(-self.length_k // self.columns))
        return (self.batch, self.heads, *tiles)


def classify(score: Score, tiling: Tiling, params: Mapping[str, Any]) -> Array:
    """EMPTY, PARTIAL or FULL for every tile: an int8 array of axes (b, h, tile of i, tile of j).

    Axes on which the mask does not depend have length 1. Sound: EMPTY and FULL are never wrong.
    """
    values: dict[sp.Basic, Any] = {}
    for load in score.reads(score.mask):
        for index in load.index:
            _evaluate(index, values, tiling)
        values[load.symbol] = _read(load, tiling, np.asarray(params[load.name]))
    for name, symbol in score.scalars:
        number = np.asarray(params[name]).item()
        values[symbol] = Interval(number, number)
    truth = _evaluate(score.mask, values, tiling)
    always, sometimes = np.broadcast_arrays(truth.always, truth.sometimes)
    classes = np.where(always, FULL, np.where(sometimes, PARTIAL, EMPTY)).astype(np.int8)
    return classes.reshape((1,) * (4 - classes.ndim) + classes.shape)


def _along(values: Array, axis: int) -> Array:
    shape = [1, 1, 1, 1]
    shape[axis] = len(values)
    return values.reshape(shape)


def _read(load: Load, tiling: Tiling, array: Array) -> Interval:
    """Bounds of an array read: the minimum and maximum over each tile's part of the array.

    Exact where every index is a loop symbol of its own; otherwise the bounds of the whole array.
    """
    axes = {B: 0, H: 1, I: 2, J: 3}
    if len(set(load.index)) != array.ndim or any(e not in axes for e in load.index):
        return Interval(array.min(), array.max())
    sizes = {B: tiling.batch, H: tiling.heads, I: tiling.length_q, J: tiling.length_k}
    low = high = array[tuple(slice(0, sizes[e]) for e in load.index)]
    for position, symbol in enumerate(load.index):
        starts = tiling.starts(symbol)
        low = np.minimum.reduceat(low, starts, axis=position)
        high = np.maximum.reduceat(high, starts, axis=position)
    order = np.argsort([axes[e] for e in load.index])
    shape = [1, 1, 1, 1]
    for position in order:
        shape[axes[load.index[position]]] = low.shape[position]
    return Interval(low.transpose(order).reshape(shape), high.transpose(order).reshape(shape))


def _evaluate(expr: sp.Basic, values: dict[sp.Basic, Any], tiling: Tiling) -> Any:
    """The Interval or Truth of ``expr`` on every tile; ``values`` is filled with the parts'."""
    for part in topological([_differences(expr)]):
        if part in values:
            continue
        number = constant(part)
        if isinstance(number, bool):
            values[part] = Truth(number, number)
        elif number is not None:
            values[part] = Interval(number, number)
        elif part in (B, H, I, J):
            values[part] = tiling.bounds(part)
        elif isinstance(part, sp.core.relational.Relational):
            values[part] = _compare(part, values[part.lhs])
        else:
            values[part] = _apply(part, [values[c] for c in children(part)])
    return values[_differences(expr)]


def _differences(expr: sp.Basic) -> sp.Basic:
    """Every comparison with an expanded difference on the left and 0 on the right.

    ``i - 3 <= j`` becomes ``i - j - 3 <= 0``: each variable stands once, so intervals are exact.
    """

    def rewritten(relation: Any) -> Any:
        if relation.rhs == 0:
            return relation
        return relation.func(sp.expand(relation.lhs - relation.rhs), 0, evaluate=False)

    return expr.replace(lambda e: isinstance(e, sp.core.relational.Relational), rewritten)


def _compare(relation: Any, difference: Interval) -> Truth:
    low, high = np.asarray(difference.low), np.asarray(difference.high)
    if isinstance(relation, sp.Le):
        return Truth(high <= 0, low <= 0)
    if isinstance(relation, sp.Lt):
        return Truth(high < 0, low < 0)
    if isinstance(relation, sp.Ge):
        return Truth(low >= 0, high >= 0)
    if isinstance(relation, sp.Gt):
        return Truth(low > 0, high > 0)
    contains, only = (low <= 0) & (high >= 0), (low == 0) & (high == 0)
    if isinstance(relation, sp.Eq):
        return Truth(only, contains)
    return Truth(~contains, ~only)  # Ne


def _apply(expr: sp.Basic, parts: list[Any]) -> Any:
    rule = _RULES.get(expr.func)
    if rule is not None:
        return rule(expr, parts)
    return Truth(False, True) if isinstance(expr, BooleanFunction) else _UNKNOWN


_UNKNOWN = Interval(-np.inf, np.inf)


def _add(_: sp.Basic, parts: list[Interval]) -> Interval:
    low, high = (reduce(np.add, [getattr(p, end) for p in parts]) for end in ("low", "high"))
    return Interval(low, high)


def _multiply(_: sp.Basic, parts: list[Interval]) -> Interval:
    def product(a: Interval, b: Interval) -> Interval:
        corners = [np.multiply(p, q) for p in (a.low, a.high) for q in (b.low, b.high)]
        corners = [np.nan_to_num(c, nan=0.0, posinf=np.inf, neginf=-np.inf) for c in corners]
        return Interval(reduce(np.minimum, corners), reduce(np.maximum, corners))

    return reduce(product, parts)


def _power(expr: sp.Basic, parts: list[Interval]) -> Interval:
    exponent = expr.args[1]
    if not (isinstance(exponent, sp.Integer) and exponent > 0):
        return _UNKNOWN
    base, n = parts[0], int(exponent)
    if n % 2:
        return Interval(np.power(base.low, n), np.power(base.high, n))
    size = _absolute(expr, [base])
    return Interval(np.power(size.low, n), np.power(size.high, n))


def _absolute(_: sp.Basic, parts: list[Interval]) -> Interval:
    low, high = parts[0].low, parts[0].high
    inside = np.maximum(np.maximum(low, np.negative(high)), 0)
    return Interval(inside, np.maximum(np.abs(low), np.abs(high)))


def _monotone(function: Callable[..., Array]) -> Callable[..., Interval]:
    def bounded(_: sp.Basic, parts: list[Interval]) -> Interval:
        return Interval(
            reduce(function, [p.low for p in parts]), reduce(function, [p.high for p in parts])
        )

    return bounded


def _step(function: Callable[..., Array]) -> Callable[..., Interval]:
    return lambda _, parts: Interval(function(parts[0].low), function(parts[0].high))


def _modulo(expr: sp.Basic, parts: list[Interval]) -> Interval:
    period = expr.args[1]
    if not (isinstance(period, sp.Number) and period > 0):
        return _UNKNOWN
    low, high = parts[0].low, parts[0].high
    n = int(period) if period.is_Integer else float(period)
    if not np.all(np.isfinite(low) & np.isfinite(high)):
        return Interval(0, n)
    same = np.floor_divide(low, n) == np.floor_divide(high, n)
    last = n - 1 if expr.is_integer else n
    return Interval(np.where(same, np.mod(low, n), 0), np.where(same, np.mod(high, n), last))


def _floor_divide(_: sp.Basic, parts: list[Interval]) -> Interval:
    a, n = parts
    return Interval(np.floor_divide(a.low, n.low), np.floor_divide(a.high, n.low))


def _and(_: sp.Basic, parts: list[Truth]) -> Truth:
    return Truth(
        reduce(np.logical_and, [p.always for p in parts]),
        reduce(np.logical_and, [p.sometimes for p in parts]),
    )


def _or(_: sp.Basic, parts: list[Truth]) -> Truth:
    return Truth(
        reduce(np.logical_or, [p.always for p in parts]),
        reduce(np.logical_or, [p.sometimes for p in parts]),
    )


def _not(_: sp.Basic, parts: list[Truth]) -> Truth:
    return Truth(np.logical_not(parts[0].sometimes), np.logical_not(parts[0].always))


_RULES: dict[type, Callable[[sp.Basic, list[Any]], Any]] = {
    sp.Add: _add,
    sp.Mul: _multiply,
    sp.Pow: _power,
    sp.Abs: _absolute,
    sp.Max: _monotone(np.maximum),
    sp.Min: _monotone(np.minimum),
    sp.floor: _step(np.floor),
    sp.ceiling: _step(np.ceil),
    sp.Mod: _modulo,
    FloorDivide: _floor_divide,
    sp.And: _and,
    sp.Or: _or,
    sp.Not: _not,
}
