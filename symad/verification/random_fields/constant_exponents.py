"""Whether an analytic exponent certainly varies: one that is a hidden integer has powers of negative bases.

x^h is a real function for x > 0 only, unless h is an integer on an open set, as sin² + cos² + 1 = 2 is. A
function without jumps that takes two values close to each other is no constant there. The witness is
numeric: two disjoint balls, or one without an integer, beside each of several points of different signs.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import sympy

from symad.core.arrays import Number
from symad.core.graph import Node, topological
from symad.errors import SymadError
from symad.ops.arrays.contraction import Einsum
from symad.ops.arrays.sources import Input, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.arithmetic import Add
from symad.ops.elementwise.powers import Pow
from symad.verification.budget import operations
from symad.verification.measuring.points import points
from symad.verification.random_fields.integer_inputs import integer_inputs
from symad.verification.rewriting.discontinuities import WeakSign

POINTS = 6
BITS = 200


def is_never_whole(node: Node) -> bool:
    """Whether no element of a node without jumps is an integer on an open set, as far as points tell."""
    inputs = [n for n in topological([node]) if isinstance(n.op, Input)]
    if isinstance(node.op, Input):
        return not getattr(node.op.symbol, "is_integer", False)
    seen = False
    if operations(topological([node])) > MOST_STEPS:
        return False
    for point in points(inputs, {}, POINTS if inputs else 1, seed=7):
        try:
            found = _varies_beside(node, point)
        except (SymadError, ArithmeticError, ValueError, TypeError):
            continue
        if found is False:
            return False
        seen = seen or bool(found)
    return seen


def _varies_beside(node: Node, point: dict[Node, Number]) -> bool | None:
    """Whether each element differs at two points close by, or is no integer; None where undefined."""
    from symad.verification.measuring.balls import ball_values

    here, there = (ball_values([node], p, BITS)[0].ravel() for p in (point, _near(point)))
    for a, b in zip(here, there, strict=True):
        if not (a.value.is_finite() and b.value.is_finite()):
            return None
        if a.value.overlaps(b.value) and a.value.contains_integer():
            return False
    return True


def _near(point: Mapping[Node, Number]) -> dict[Node, Number]:
    shifts = iter(range(1, 1 << 30))

    def moved(value: Any) -> Fraction:
        if isinstance(value, np.ndarray):
            return np.frompyfunc(moved, 1, 1)(value)
        return value * (1 + Fraction(next(shifts), 10_007))

    return {n: moved(v) for n, v in point.items()}


MOST_STEPS = 20_000
"""Nodes of more scalar operations are not looked at: nothing is known of them."""

WITNESSES = 8

PLAIN = {sympy.sign, WeakSign, sympy.Abs, sympy.exp}
"""Functions all of whose relations are known."""


def may_cancel(node: Node) -> bool:
    """Whether functions may cancel by a relation that is not known: sums of functions or of roots."""
    return not is_source(node) and any(
        (isinstance(n.op, Apply) and n.op.head not in PLAIN) or _is_root(n) for n in topological([node])
    )


def is_source(node: Node) -> bool:
    """Whether a node is one function, root or input, times others: no sum that could cancel."""
    return not any(isinstance(n.op, (Add, Einsum)) for n in topological([node]))


def _is_root(node: Node) -> bool:
    value = constant_value(node.args[1]) if isinstance(node.op, Pow) else 1
    return not (isinstance(value, int) or (isinstance(value, Fraction) and value.denominator == 1))


def is_nonzero_somewhere(node: Node) -> bool:
    """Whether each element is certainly not 0 at some point: balls are the witnesses."""
    from symad.verification.measuring.balls import ball_values

    order = topological([node])
    if operations(order) > MOST_STEPS:
        return False
    inputs = [n for n in order if isinstance(n.op, Input)]
    seen = np.zeros(int(np.prod(node.shape)), dtype=bool)
    for point in points(inputs, integer_inputs(order), WITNESSES if inputs else 1, seed=11):
        try:
            values = ball_values([node], point, BITS)[0].ravel()
        except (SymadError, ArithmeticError, ValueError, TypeError):
            continue
        seen |= np.array([v.value.is_finite() and not v.value.contains(0) for v in values], dtype=bool)
        if seen.all():
            return True
    return False
