"""Masks as formulas of a tile's corners: whether the tile is empty or full, and where loops may end.

A tile is rows [q0, q1) by keys [k0, k1). `tile_truth` gives conditions on the corners under which
every pair, or any pair, can be visible; `visible_range` gives closed bounds of the loop over keys
for some rows, or over rows for some keys. Both come from interval arithmetic on the mask, so they
are sound for every mask, and exact for affine ones such as causal, window and prefix.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp
from sympy.core.relational import Relational

from symad.numeric.pairs.intervals import ScoreInterval, SymbolicBounds, TruthBounds, differences, evaluate
from symad.numeric.pairs.scores import B, H, I, J
from symad.numeric.pairs.stable_sympy import FloorDivide

Q0, Q1, K0, K1 = sp.symbols("q0 q1 k0 k1", integer=True, nonnegative=True)
LOW, HIGH = sp.symbols("lo hi", integer=True, nonnegative=True)
Range = tuple[sp.Expr, sp.Expr]


def corners() -> dict[sp.Basic, ScoreInterval]:
    """The loop symbols' intervals on a tile."""
    return {
        B: ScoreInterval(B, B),
        H: ScoreInterval(H, H),
        I: ScoreInterval(Q0, Q1 - 1),
        J: ScoreInterval(K0, K1 - 1),
    }


def tile_truth(mask: sp.Basic, known: Mapping[sp.Basic, ScoreInterval]) -> TruthBounds:
    """Conditions for "every pair is visible" and "a pair may be visible", in the tile's corners."""
    truth: TruthBounds = evaluate(mask, known, SymbolicBounds)
    return truth


def visible_range(
    mask: sp.Basic,
    variable: sp.Symbol,
    known: Mapping[sp.Basic, ScoreInterval],
    varying: frozenset[sp.Symbol] = frozenset(),
) -> Range:
    """[low, high) outside which no value of ``variable`` satisfies the mask.

    Args:
        mask: the Boolean.
        variable: I or J.
        known: intervals of the other symbols.
        varying: symbols (array reads) that change with ``variable``; comparisons that contain them
            give no bound.

    Returns:
        Expressions in `LOW`, `HIGH` (the whole range) and the symbols of ``known``'s bounds.
    """
    whole = (LOW, HIGH)
    if mask == sp.false:
        return (LOW, LOW)
    if isinstance(mask, (sp.And, sp.Or)):
        parts = [visible_range(m, variable, known, varying) for m in mask.args]
        first, last = (sp.Max, sp.Min) if isinstance(mask, sp.And) else (sp.Min, sp.Max)
        return first(*[p[0] for p in parts]), last(*[p[1] for p in parts])
    if not isinstance(mask, Relational) or not mask.has(variable):
        return whole
    relation = differences(mask)
    if isinstance(relation, (sp.Ge, sp.Gt)):
        flipped = sp.Le if isinstance(relation, sp.Ge) else sp.Lt
        relation = flipped(sp.expand(-relation.lhs), 0, evaluate=False)
    if isinstance(relation, sp.Eq):
        sides = [relation.lhs, sp.expand(-relation.lhs)]
    elif isinstance(relation, (sp.Le, sp.Lt)):
        strict = isinstance(relation, sp.Lt) and relation.lhs.is_integer
        sides = _without_absolute(relation.lhs + (1 if strict else 0))
    else:
        return whole
    ranges = [_half_line(side, variable, known, varying) for side in sides]
    return sp.Max(*[r[0] for r in ranges]), sp.Min(*[r[1] for r in ranges])


def _without_absolute(total: sp.Expr) -> list[sp.Expr]:
    """Expressions that are all ≤ 0 exactly if ``total`` is: c|e| + r becomes ce + r, −ce + r."""
    for absolute in sorted(total.atoms(sp.Abs), key=sp.default_sort_key):
        factor = total.coeff(absolute)
        rest = sp.expand(total - factor * absolute)
        if factor.is_number and factor.is_positive and not rest.has(absolute):
            signs = (factor, -factor)
            return [
                side
                for sign in signs
                for side in _without_absolute(sp.expand(sign * absolute.args[0] + rest))
            ]
    return [total]


def _half_line(
    total: sp.Expr,
    variable: sp.Symbol,
    known: Mapping[sp.Basic, ScoreInterval],
    varying: frozenset[sp.Symbol],
) -> Range:
    """The range where c v + rest ≤ 0 is possible for integers; c is a nonzero integer."""
    factor = total.coeff(variable)
    rest = sp.expand(total - factor * variable)
    if not factor.is_Integer or factor == 0 or not rest.is_integer:
        return (LOW, HIGH)
    if rest.free_symbols & (varying | {variable}):
        return (LOW, HIGH)
    least = evaluate(rest, known, SymbolicBounds).low
    if least.has(sp.oo, -sp.oo):
        return (LOW, HIGH)
    size = abs(factor)
    quotient = -least if size == 1 else FloorDivide(-least, size)
    if factor > 0:
        return (LOW, sp.Min(HIGH, quotient + 1))
    return (sp.Max(LOW, -quotient), HIGH)
