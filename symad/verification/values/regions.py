"""On which side of each jump and kink a point lies, by strict values, and whether points beside it lie there.

A function may jump or turn where a comparison, an order or a whole part changes. Within a region of points
at which all of these are alike, rounding does not change the branch that a program takes. A point lies
inside of its region if the points beside it, to both sides, are of the same one: a tie there is one on an
open set, and no boundary. What strict values cannot tell, as max(a, b) of equal a and b, may be left open
where the function is continuous, and not where it jumps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import sympy

from symad.core.graph import Node
from symad.facts.functions import fact, sign_of
from symad.ops.arrays.ordering import SortingPositions
from symad.ops.arrays.reduction import Extreme
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Compare
from symad.verification.fields.prime_fields import Array
from symad.verification.values.balls import Ball, NoTruth, as_balls, strict_nodes
from symad.verification.values.point_set import Point, around

BITS = 320
"""Precision in bits: what is 0 by an identity is left open, and little else."""

BESIDE = 2.0**-40
"""How far the points beside a point lie, relatively."""

Region: TypeAlias = bytes
"""The sides of all kinks and jumps, whole parts left out."""


class _Open(ArithmeticError):
    """The side of a jump is not known."""


def kinks(order: Sequence[Node]) -> list[Node]:
    """The nodes at which a value may jump or have a kink."""
    return [n for n in order if isinstance(n.op, (Compare, Extreme, SortingPositions))
            or (isinstance(n.op, Apply) and fact(n.op.head).kink)]  # fmt: skip


def region_around(nodes: Sequence[Node], point: Point, integers: Collection[Node] = ()) -> Region | None:
    """The region that a rational point and all points beside it lie in; None if there is none."""
    turns = kinks(nodes)
    if not turns:
        return b""
    try:
        here = _sides(turns, point)
        near = (_sides(turns, p) for p in around(point, 4, integers, BESIDE))
        return here[0] if all(sides == here for sides in near) else None
    except _Open:
        return None


def _sides(turns: Sequence[Node], point: Point) -> tuple[Region, bytes]:
    """The region of a point, and the whole parts there.

    Raises:
        _Open: the side of a jump is not known.
    """
    wanted = [*turns, *(a for n in turns for a in n.args)]
    values = strict_nodes(wanted, point, BITS)
    found, steps = list[bytes](), list[bytes]()
    for node in turns:
        head = node.op.head if isinstance(node.op, Apply) else None
        (steps if fact(head).kink in ("whole", "quotient") else found).append(_side(node, head, values))
    return b"|".join(found), b"|".join(steps)


def _side(node: Node, head: Any, values: Mapping[Node, Any]) -> bytes:
    """On which side of a kink a point lies, element by element."""
    args = [values[a] for a in node.args]
    if isinstance(node.op, Compare):
        return _truths(values[node])
    if isinstance(node.op, Extreme):
        best = np.expand_dims(as_balls(values[node]), node.op.axes)
        return _reaching(as_balls(args[0]), best, node.op.kind == "max")
    if head is None:
        return _positions(as_balls(values[node]))
    match fact(head).kink:
        case "ties":
            return b"".join(_reaching(as_balls(a), as_balls(values[node]), head is sympy.Max) for a in args)
        case "zero":
            return _signs(as_balls(args[0]), bool(fact(head).jumps))
    parts = as_balls(args[0]) / as_balls(args[1]) if head is sympy.Mod else as_balls(args[0])
    return b",".join(_whole_part(v) for v in np.ravel(parts))


def _truths(values: Any) -> bytes:
    truths = np.asarray(values, dtype=object).ravel().tolist()
    if any(isinstance(t, NoTruth) for t in truths):
        raise _Open
    return np.array(truths, dtype=bool).tobytes()


def _positions(values: np.ndarray) -> bytes:
    if not all(v.is_finite for v in values.ravel()):
        raise _Open
    return np.array([int(v) for v in values.ravel()], dtype=np.int64).tobytes()


def _signs(values: np.ndarray, jumps: bool) -> bytes:
    signs = [sign_of(v.value) if v.is_finite else v.value > 0 for v in values.ravel()]
    if jumps and None in signs:
        raise _Open
    return np.array([2 if s is None else s for s in signs], dtype=np.int8).tobytes()


def _reaching(values: Array, best: Array, largest: bool) -> bytes:
    """Which elements may be the extreme one."""
    below = np.frompyfunc(lambda v, b: (v < b if largest else v > b) is not True, 2, 1)
    return np.asarray(below(values, best)).astype(bool).tobytes()


def _whole_part(value: Ball) -> bytes:
    """The integer below a number, and whether it is that integer."""
    whole = value.value.floor()
    if not whole.is_exact() or (value.value.contains_integer() and not value.value.is_exact()):
        raise _Open
    return f"{whole} {whole == value.value}".encode()
