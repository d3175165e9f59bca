"""Radii: absolute values, and roots of sums of squares; they have no derivative at 0.

As selections between 0 and √q they are no branches: the slope at 0 is defined, and need not be masked.
"""

from __future__ import annotations

import sympy

from symad.core.graph import Node
from symad.ops.basic.arithmetic import div, mul
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import HALF, Pow, distance_slope, is_sum_of_squares
from symad.ops.elementwise.selection import Select, equal, select


def inside(node: Node) -> Node | None:
    """For a radius |u| the node u, for √q of a sum of squares, with its value at 0 or not, q; else None."""
    op, args = node.op, node.args
    if isinstance(op, Apply):
        return args[0] if op.head is sympy.Abs else None
    if isinstance(op, Pow):
        return args[0] if constant_value(args[1]) == HALF and is_sum_of_squares(args[0]) else None
    if isinstance(op, Select) and isinstance(args[2].op, Pow) and constant_value(args[1]) == 0:
        q = inside(args[2])
        return q if q is not None and args[0] is equal(q, constant(0)) else None
    return None


def slope_of(radius: Node) -> Node:
    """1/(2r), by q, or sign u; 0 at 0."""
    if isinstance(radius.op, Apply):
        return apply(sympy.sign, radius.args[0])
    if isinstance(radius.op, Select):
        return select(radius.args[0], constant(0), div(constant(1), mul(constant(2), radius.args[2])))
    return distance_slope(radius)


def is_zero(radius: Node) -> Node:
    """The condition r = 0."""
    return radius.args[0] if isinstance(radius.op, Select) else equal(radius, constant(0))
