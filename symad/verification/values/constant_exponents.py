"""Whether an analytic exponent certainly varies: one that is a hidden integer has powers of negative bases.

x^h is a real function for x > 0 only, unless h is an integer on an open set, as sin² + cos² + 1 = 2 is. A
function without jumps that takes two values close to each other is no constant there. The witness is
numeric: two disjoint balls, or one without an integer, beside each of several points of different signs.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import prod

import numpy as np
import sympy

from symad.core.arrays import Number
from symad.core.graph import Node, topological
from symad.facts.functions import fact
from symad.ops.basic.arithmetic import Add
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.sources import Input, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.verification.budget import operations
from symad.verification.fields.prime_fields import Array
from symad.verification.terms.discontinuities import WeakSign
from symad.verification.values.point_set import PointSet, around, exactly

POINTS = 6
BITS = 200


def is_never_whole(node: Node) -> bool:
    """Whether no element of a node without jumps is an integer on an open set, as far as points tell."""
    if isinstance(node.op, Input):
        return not getattr(node.op.symbol, "is_integer", False)
    seen = False
    if operations(topological([node])) > MAX_OPERATIONS:
        return False
    for point in map(exactly, PointSet((node,)).plain(POINTS)):
        found = _varies_beside(node, point)
        if found is False:
            return False
        seen = seen or bool(found)
    return seen


def _varies_beside(node: Node, point: dict[Node, Number]) -> bool | None:
    """Whether each element differs at two points close by, or is no integer; None where undefined."""
    from symad.verification.values.balls import ball_values

    beside = next(around(point, 1, step=NEAR))
    here, there = (ball_values([node], p, BITS)[0].ravel() for p in (point, beside))
    for a, b in zip(here, there, strict=True):
        if not (a.value.is_finite() and b.value.is_finite()):
            return None
        if a.value.overlaps(b.value) and a.value.contains_integer():
            return False
    return True


MAX_OPERATIONS = 20_000
"""The maximum number of scalar operations of a node that is looked at; of others nothing is known."""

FEW_STEPS = 2_000
WITNESSES, PIECES = 8, 32
"""Points that are tried; with branch points, and no more scalar operations than `FEW_STEPS`, `PIECES`."""

NEAR, BESIDE = 2.0**-12, 2.0**-40
"""The relative distances of points beside another one: at which a function varies, and is 0, too."""

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
    """Whether each element is certainly not 0 at some point, and 0 beside none: balls are the witnesses.

    One point is enough for what is analytic on a connected set. Functions with branch points are pieced
    together: asin(sin x) − x is 0 for |x| < π/2 and nowhere else. So where there are such functions, no point
    tried may have zeros around it.
    """
    order = topological([node])
    steps = operations(order)
    if steps > MAX_OPERATIONS:
        return False
    pieced = any(map(_branches, order))
    count = PIECES if pieced and steps <= FEW_STEPS else WITNESSES
    seen = np.zeros(prod(node.shape), dtype=bool)
    points = PointSet((node,))
    for point in map(exactly, points.plain(count)):
        nonzero, zero = _signs_at(node, point)
        beside = next(around(point, 1, points.integers, BESIDE))
        if pieced and zero.any() and (zero & _signs_at(node, beside)[1]).any():
            return False
        seen |= nonzero
        if seen.all() and not pieced:
            return True
    return bool(seen.all())


def _branches(node: Node) -> bool:
    """Whether a function of complex numbers has branch points, as far as is known here."""
    return _is_root(node) or (isinstance(node.op, Apply) and not fact(node.op.head).meromorphic)


def _signs_at(node: Node, point: Mapping[Node, Number]) -> tuple[Array, Array]:
    """Which elements are certainly not 0 at a point, and which are 0 as far as can be seen."""
    from symad.verification.values.balls import ball_values

    values = ball_values([node], point, BITS)[0].ravel()
    finite = np.array([v.value.is_finite() for v in values], dtype=bool)
    zero = np.array([v.value.contains(0) for v in values], dtype=bool)
    return finite & ~zero, finite & zero
