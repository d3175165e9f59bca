"""Index ranges of sums and products: bounds, affine index expressions, and their extreme values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from symad.errors import OutsideError, TraceError


@dataclass(frozen=True)
class IndexRange:
    """``index`` runs from ``low`` to ``high``, both included; None if the range is not known."""

    index: sympy.Expr
    low: Any = None
    high: Any = None


def ranges_of(expression: sympy.Expr, outer: Sequence[IndexRange]) -> tuple[IndexRange, ...]:
    """The ranges of a Sum or Product, outermost first.

    Raises:
        OutsideError: an index has no finite bounds.
        TraceError: an index is already bound, outside of or in this expression.
    """
    name = type(expression).__name__
    found: list[IndexRange] = []
    for limit in reversed(expression.limits):
        index = limit[0]
        if any(index == r.index for r in (*outer, *found)):
            raise TraceError(
                f"the index {index} of {expression} is bound twice; give the inner {name} an index of its own"
            )
        if len(limit) != 3 or any(b.has(sympy.oo, -sympy.oo, sympy.nan) for b in limit[1:]):
            raise OutsideError(
                f"the {name} over {index} has no finite bounds; give ({index}, 0, n - 1) where n is a "
                "number or a "
                "dimension, or evaluate it first with .doit()"
            )
        found.append(IndexRange(index, limit[1], limit[2]))
    return tuple(found)


def affine(expression: sympy.Expr, index: sympy.Expr) -> tuple[sympy.Basic, sympy.Basic] | None:
    """(a, b) with expression = a·index + b, both free of the index; None if it is not affine."""
    expanded = sympy.expand(expression)
    a = expanded.coeff(index, 1)
    b = sympy.expand(expanded - a * index)
    return None if a.has(index) or b.has(index) else (a, b)


def reach(expression: sympy.Expr, ranges: Iterable[IndexRange], largest: bool) -> sympy.Expr:
    """The largest (smallest) value of an index expression over its ranges; None if not decided.

    Indices are eliminated from the innermost to the outermost one, so that bounds that depend on outer
    indices are used exactly: i − j for 0 ≤ j ≤ i is at least 0.
    """
    result = sympy.sympify(expression, strict=True)
    for r in reversed(list(ranges)):
        if not result.has(r.index):
            continue
        parts = affine(result, r.index)
        if parts is None or r.low is None:
            return None
        a, b = parts
        if not (at_least(a, 0) or at_least(-a, 0)):
            return None
        result = sympy.expand(b + a * (r.high if at_least(a, 0) == largest else r.low))
    return result


def at_least(a: float | sympy.Expr, b: float | sympy.Expr) -> bool:
    """True if a ≥ b for all positive values of the dimension symbols."""
    difference = sympy.expand(sympy.sympify(a, strict=True) - b)
    if difference.is_number:
        return bool(difference >= 0)
    symbols = {
        s: sympy.Dummy(s.name, integer=True, positive=True) for s in difference.free_symbols if s.is_Symbol
    }
    return bool(difference.xreplace(symbols).is_nonnegative)


def larger(a: sympy.Expr, b: sympy.Expr) -> sympy.Expr | None:
    """The larger of two extents; a symbolic one counts as larger than a number. None if not decided."""
    if at_least(a, b):
        return a
    if at_least(b, a):
        return b
    if sympy.sympify(a, strict=True).is_number != sympy.sympify(b, strict=True).is_number:
        return b if sympy.sympify(a, strict=True).is_number else a
    return None
