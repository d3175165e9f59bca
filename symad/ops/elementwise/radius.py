"""Radii: absolute values, norms of any order, and hypot(u, v); they have no derivative at 0.

As selections between 0 and √q they are no branches: the slope at 0 is defined, and need not be masked.
"""

from __future__ import annotations

import sympy
from sympy.codegen.cfunctions import hypot

from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import div, mul
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import SLOPES, Apply
from symad.ops.elementwise.powers import HALF, Pow, distance_slope, is_distance
from symad.ops.elementwise.selection import Select, equal, select

RADIAL = frozenset((Apply, Pow, Select))
"""The ops of radii and of others."""


def inside(node: Node) -> Nodes:
    """For a radius |u| the node u, for q^(1/d) of a sum of powers, with its value at 0 or not, q; else ().

    For hypot(u, v) both, or what is inside of these; hypot(1, v) is never 0, and no radius.
    """
    op, args = node.op, node.args
    kind = type(op)
    if isinstance(op, Apply):
        if op.head is hypot and all(constant_value(a) is None for a in args):
            parts = [inside(a) if isinstance(a.op, Apply) else () for a in args]
            return tuple([n for a, part in zip(args, parts, strict=True) for n in part or (a,)])
        return args if op.head is sympy.Abs else ()
    if kind is Pow:
        return args[:1] if is_distance(node) else ()
    if kind is Select and is_root(args[2]) and constant_value(args[1]) == 0:
        below = inside(args[2])
        return below if below and args[0] is equal(below[0], constant(0)) else ()
    return ()


def is_root(radius: Node) -> bool:
    """Whether a radius is the root of a sum of squares, with its value at 0 or not."""
    if isinstance(radius.op, Select):
        return is_root(radius.args[2])
    return isinstance(radius.op, Pow) and constant_value(radius.args[1]) == HALF


def slopes_of(radius: Node) -> Nodes:
    """1/(2r), by q, and r/(d q) of other orders; sign u; u/r and v/r of hypot(u, v). All are 0 at 0."""
    if isinstance(radius.op, Apply):
        rule, below = SLOPES[radius.op.head], inside(radius)
        slopes = [rule(radius, below, k) for k in range(len(below))]
        return tuple([slope for slope in slopes if isinstance(slope, Node)])
    if isinstance(radius.op, Select):
        return (select(radius.args[0], constant(0), div(constant(1), mul(constant(2), radius.args[2]))),)
    return (distance_slope(radius),)


def is_zero(radius: Node) -> Node:
    """The condition r = 0."""
    return radius.args[0] if isinstance(radius.op, Select) else equal(radius, constant(0))
