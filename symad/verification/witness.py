"""The search for a point at which two graphs certainly differ.

Both are evaluated at rational points to 50 digits and more, until two precisions agree, so that
rounding cannot be the cause. Points near a tie, a jump or a boundary are not used: there the values
may differ although the functions agree on an open dense set. Away from them the functions are
continuous, so a difference at one point is a difference in a neighbourhood.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from symad.errors import SymadError
from symad.graph import Node
from symad.ops.sources import Input
from symad.verification.budget import Clock, OutOfBudget
from symad.verification.fields import Array
from symad.verification.points import describe, points
from symad.verification.precise import all_nodes, close_everywhere, settled_values, usable
from symad.verification.rewriting import expand_definitions

DIGITS = 30
"""Both values are given to this many digits."""

SURE = mpmath.mpf(10) ** -DIGITS
"""A smaller relative difference is none."""


@dataclass(frozen=True)
class Witness:
    """A point at which an element differs.

    ``point`` maps names to exact rationals as text; ``left`` and ``right`` are the two values.
    """

    point: Mapping[str, Any]
    left: str
    right: str
    index: tuple[int, ...] = ()

    def __str__(self) -> str:
        at = ", ".join(f"{name} = {_short(value)}" for name, value in self.point.items())
        return f"at {at}: {self.left} and {self.right}"


def _short(value: Any) -> str:
    return "[" + ", ".join(map(_short, value)) + "]" if isinstance(value, list) else str(value)


@dataclass(frozen=True)
class Search:
    """What the search found about one pair of nodes."""

    differs: Array
    """Boolean: elements that certainly differ at some point."""
    witnesses: Mapping[tuple[int, ...], Witness]
    points: tuple[Mapping[Node, Any], ...]
    """The points at which both were defined, those with a difference first."""
    agreed: int
    """The number of points at which all elements agreed to 30 digits."""


def search(
    left: Node,
    right: Node,
    integers: Mapping[Node, tuple[int, int]],
    clock: Clock,
    suspects: Array | None = None,
) -> Search:
    """Look for points at which two nodes of one shape differ; all dimensions must be numbers.

    Args:
        left: the reference.
        right: what is compared with it.
        integers: inputs that are indices or exponents, with their ranges.
        clock: stops the search.
        suspects: the elements to look at; all by default.
    """
    a, b = expand_definitions((left, right))
    nodes = all_nodes(a, b)
    inputs = [n for n in nodes if isinstance(n.op, Input)]
    differs = np.zeros(left.shape, dtype=bool)
    watched = np.ones(left.shape, dtype=bool) if suspects is None else suspects
    witnesses: dict[tuple[int, ...], Witness] = {}
    with_difference, without = [], []
    agreed = 0
    tried = list(points(inputs, integers, clock.budget.points))
    always = close_everywhere(nodes, tried[:3])
    for point in tried:
        try:
            clock.check()
            if not usable(nodes, point, always):
                continue
            values = settled_values((a, b), point).values
        except OutOfBudget:
            break
        except (SymadError, ArithmeticError, ValueError):
            continue
        new, defined = _different(*values)
        new &= watched
        if new.any():
            with_difference.append(point)
            for index in map(tuple, np.argwhere(new & ~differs).tolist()):
                witnesses[index] = _witness(point, values, index)
        elif defined.any():
            without.append(point)
            agreed += bool(defined.all())
        differs |= new
        if (differs | ~watched).all() and len(with_difference) >= 3:
            break
        if not with_difference and agreed >= 6:
            break
    return Search(differs, witnesses, tuple(with_difference + without), agreed)


def _different(a: Array, b: Array) -> tuple[Array, Array]:
    """Where two arrays of values certainly differ, and where both are finite."""
    results = np.frompyfunc(_verdict, 2, 1)(a, b)
    verdicts = np.asarray(results)
    return np.asarray(verdicts == 1).astype(bool), np.asarray(verdicts >= 0).astype(bool)


def _verdict(a: Any, b: Any) -> int:
    """1 where two numbers differ, 0 where they agree to 30 digits, −1 where one is undefined."""
    with mpmath.workdps(60):
        a, b = mpmath.mpf(a), mpmath.mpf(b)
        if not (mpmath.isfinite(a) and mpmath.isfinite(b)):
            return -1
        return int(abs(a - b) > SURE * max(abs(a), abs(b)))


def _witness(point: Mapping[Node, Any], values: Sequence[Array], index: tuple[int, ...]) -> Witness:
    left, right = (digits_of(np.asarray(v)[index]) for v in values)
    return Witness(describe(point), left, right, index)


def digits_of(value: Any) -> str:
    """A number to 30 digits."""
    with mpmath.workdps(60):
        return str(mpmath.nstr(mpmath.mpf(value), DIGITS, strip_zeros=True))
