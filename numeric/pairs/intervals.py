"""Interval arithmetic on SymPy expressions and Booleans: bounds as arrays, or as expressions.

The same rules run on two kinds of bounds. With NumPy arrays of tile bounds, all tiles of a mask are
classified at once. With SymPy bounds, the classification is a formula in the tile's corners, which becomes
code in a kernel. Bounds are exact for expressions in which every variable occurs once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import sympy as sp
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanFunction

from symad.numeric.pairs.stable_sympy import FloorDivide, children, constant, topological

Bound = Any


@dataclass(frozen=True)
class ScoreInterval:
    """The interval [low, high], which contains all values."""

    low: Bound
    high: Bound


@dataclass(frozen=True)
class TruthBounds:
    """Bounds of a truth value: ``always`` true for all values; ``sometimes`` not excluded for all of them."""

    always: Bound
    sometimes: Bound


class ArrayBounds:
    """Bounds as numbers and NumPy arrays."""

    minimum = staticmethod(np.minimum)
    maximum = staticmethod(np.maximum)
    floor = staticmethod(np.floor)
    ceiling = staticmethod(np.ceil)
    floor_divide = staticmethod(np.floor_divide)
    mod = staticmethod(np.mod)
    where = staticmethod(np.where)
    equal = staticmethod(np.equal)
    both = staticmethod(np.logical_and)
    either = staticmethod(np.logical_or)
    negate = staticmethod(np.logical_not)
    infinity = np.inf

    @staticmethod
    def constant(number: sp.Basic) -> Any:
        """A SymPy number or truth value as a Python value."""
        return constant(number)

    @staticmethod
    def product(a: Bound, b: Bound) -> Bound:
        """A product with 0 · ∞ = 0, as bounds need it."""
        with np.errstate(invalid="ignore"):
            found = np.multiply(a, b)
        return np.where(np.isnan(found), 0, found)


class SymbolicBounds:
    """Bounds as SymPy expressions of tile corners."""

    minimum = staticmethod(sp.Min)
    maximum = staticmethod(sp.Max)
    floor = staticmethod(sp.floor)
    ceiling = staticmethod(sp.ceiling)
    floor_divide = staticmethod(FloorDivide)
    mod = staticmethod(sp.Mod)
    equal = staticmethod(sp.Eq)
    both = staticmethod(sp.And)
    either = staticmethod(sp.Or)
    negate = staticmethod(sp.Not)
    infinity = sp.oo

    @staticmethod
    def constant(number: sp.Basic) -> sp.Basic:
        """The number itself."""
        return number

    @staticmethod
    def where(condition: Bound, yes: Bound, no: Bound) -> Bound:
        """``yes`` if the condition holds, else ``no``."""
        return sp.Piecewise((yes, condition), (no, True))

    @staticmethod
    def product(a: Bound, b: Bound) -> Bound:
        """A product with 0 · ∞ = 0."""
        return sp.S.Zero if a == 0 or b == 0 else a * b


Kind = type[ArrayBounds] | type[SymbolicBounds]
Rule = Callable[[sp.Basic, list[Any], Kind], Any]


def evaluate(expr: sp.Basic, known: Mapping[sp.Basic, Any], kind: Kind) -> Any:
    """The Interval or Truth of ``expr``, given those of its symbols.

    Functions without a rule have the bounds ±∞, and Booleans without one are undecided.
    """
    values: dict[sp.Basic, Any] = dict(known)
    expr = differences(expr)
    for part in topological([expr]):
        if part in values:
            continue
        number = constant(part)
        if isinstance(number, bool):
            values[part] = TruthBounds(kind.constant(part), kind.constant(part))
        elif number is not None:
            values[part] = ScoreInterval(kind.constant(part), kind.constant(part))
        elif isinstance(part, Relational):
            values[part] = _compare(part, values[part.lhs], kind)
        else:
            values[part] = _apply(part, [values.get(c) for c in children(part)], kind)
    return values[expr]


def differences(expr: sp.Basic) -> sp.Basic:
    """The expression with every comparison as an expanded difference on the left and 0 on the right.

    ``i - 3 <= j`` becomes ``i - j - 3 <= 0``: each variable then occurs once, so that intervals are exact.
    """

    def rewritten(relation: sp.Basic) -> sp.Basic:
        if relation.rhs == 0:
            return relation
        return relation.func(sp.expand(relation.lhs - relation.rhs), 0, evaluate=False)

    return expr.replace(lambda e: isinstance(e, Relational), rewritten)


def _compare(relation: sp.Basic, difference: ScoreInterval, kind: Kind) -> TruthBounds:
    low, high = difference.low, difference.high
    if isinstance(relation, sp.Le):
        return TruthBounds(high <= 0, low <= 0)
    if isinstance(relation, sp.Lt):
        return TruthBounds(high < 0, low < 0)
    if isinstance(relation, sp.Ge):
        return TruthBounds(low >= 0, high >= 0)
    if isinstance(relation, sp.Gt):
        return TruthBounds(low > 0, high > 0)
    contains = kind.both(low <= 0, high >= 0)
    only = kind.both(kind.equal(low, 0), kind.equal(high, 0))
    if isinstance(relation, sp.Eq):
        return TruthBounds(only, contains)
    return TruthBounds(kind.negate(contains), kind.negate(only))  # Ne


def _apply(expr: sp.Basic, parts: list[Any], kind: Kind) -> ScoreInterval | TruthBounds:
    rule = _RULES.get(expr.func)
    if rule is not None and None not in parts:
        return rule(expr, parts, kind)
    if isinstance(expr, BooleanFunction):
        false, true = (kind.constant(c) for c in (sp.false, sp.true))
        return TruthBounds(false, true)
    return ScoreInterval(-kind.infinity, kind.infinity)


def _add(_: sp.Basic, parts: list[ScoreInterval], kind: Kind) -> ScoreInterval:
    low, high = parts[0].low, parts[0].high
    for p in parts[1:]:
        low, high = low + p.low, high + p.high
    return ScoreInterval(low, high)


def _multiply(_: sp.Basic, parts: list[ScoreInterval], kind: Kind) -> ScoreInterval:
    def product(a: ScoreInterval, b: ScoreInterval) -> ScoreInterval:
        if a.low is a.high and np.ndim(a.low) == 0:  # a number: its sign determines the order of the bounds
            ends = [kind.product(a.low, b.low), kind.product(a.low, b.high)]
            return ScoreInterval(*ends) if a.low >= 0 else ScoreInterval(*reversed(ends))
        corners = [kind.product(p, q) for p in (a.low, a.high) for q in (b.low, b.high)]
        return ScoreInterval(reduce(kind.minimum, corners), reduce(kind.maximum, corners))

    return reduce(product, sorted(parts, key=lambda p: p.low is not p.high))


def _power(expr: sp.Basic, parts: list[ScoreInterval], kind: Kind) -> ScoreInterval:
    exponent = expr.args[1]
    if not (isinstance(exponent, sp.Integer) and exponent > 0):
        return ScoreInterval(-kind.infinity, kind.infinity)
    base = parts[0] if exponent % 2 else _absolute(expr, parts[:1], kind)
    return ScoreInterval(base.low ** int(exponent), base.high ** int(exponent))


def _absolute(_: sp.Basic, parts: list[ScoreInterval], kind: Kind) -> ScoreInterval:
    low, high = parts[0].low, parts[0].high
    inside = kind.maximum(kind.maximum(low, -high), 0)
    return ScoreInterval(inside, kind.maximum(-low, high))


def _each_end(name: str, several: bool = True) -> Rule:
    """The rule of a monotone function of bounds, by its name there: the function of the ends on each side."""

    def rule(_: sp.Basic, parts: list[ScoreInterval], kind: Kind) -> ScoreInterval:
        function = getattr(kind, name)
        low, high = [p.low for p in parts], [p.high for p in parts]
        if not several:
            return ScoreInterval(function(low[0]), function(high[0]))
        return ScoreInterval(reduce(function, low), reduce(function, high))

    return rule


def _floor_divide(expr: sp.Basic, parts: list[ScoreInterval], kind: Kind) -> ScoreInterval:
    a, n = parts[0], kind.constant(expr.args[1])
    return ScoreInterval(kind.floor_divide(a.low, n), kind.floor_divide(a.high, n))


def _modulo(expr: sp.Basic, parts: list[ScoreInterval], kind: Kind) -> ScoreInterval:
    """The bounds, exact within one period; otherwise [0, n)."""
    argument, period = expr.args
    if not (argument.is_integer and isinstance(period, sp.Integer) and period > 0):
        return ScoreInterval(-kind.infinity, kind.infinity)
    low, high, n = parts[0].low, parts[0].high, kind.constant(period)
    if np.any([np.isinf(v).any() if kind is ArrayBounds else v.is_infinite for v in (low, high)]):
        return ScoreInterval(kind.constant(sp.S.Zero), n - 1)
    same = kind.equal(kind.floor_divide(low, n), kind.floor_divide(high, n))
    least, most = kind.constant(sp.S.Zero), n - 1
    return ScoreInterval(kind.where(same, kind.mod(low, n), least), kind.where(same, kind.mod(high, n), most))


def _each_truth(name: str) -> Rule:
    """The rule of a logical function: it is applied to both bounds, what always holds and what may hold."""

    def rule(_: sp.Basic, parts: list[TruthBounds], kind: Kind) -> TruthBounds:
        function = getattr(kind, name)
        always, sometimes = [p.always for p in parts], [p.sometimes for p in parts]
        return TruthBounds(reduce(function, always), reduce(function, sometimes))

    return rule


def _not(_: sp.Basic, parts: list[TruthBounds], kind: Kind) -> TruthBounds:
    return TruthBounds(kind.negate(parts[0].sometimes), kind.negate(parts[0].always))


_RULES: dict[type, Rule] = {
    sp.Add: _add,
    sp.Mul: _multiply,
    sp.Pow: _power,
    sp.Abs: _absolute,
    sp.Max: _each_end("maximum"),
    sp.Min: _each_end("minimum"),
    sp.floor: _each_end("floor", several=False),
    sp.ceiling: _each_end("ceiling", several=False),
    FloorDivide: _floor_divide,
    sp.Mod: _modulo,
    sp.And: _each_truth("both"),
    sp.Or: _each_truth("either"),
    sp.Not: _not,
}
