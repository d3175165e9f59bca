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
from symad.verification.scouting import scout

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
    left, right = expand_definitions((left, right))
    hunt = _Hunt(left, right, integers, clock, suspects)
    try:
        hunt.ordinary()
        if not hunt.is_over:
            hunt.scouted()
    except OutOfBudget:
        pass
    return Search(hunt.differs, hunt.witnesses, tuple(hunt.with_difference + hunt.without), hunt.agreed)


@dataclass(eq=False)
class _Hunt:
    """One search, and what it has found so far."""

    left: Node
    right: Node
    integers: Mapping[Node, tuple[int, int]]
    clock: Clock
    suspects: Array | None

    def __post_init__(self) -> None:
        self.nodes = all_nodes(self.left, self.right)
        self.inputs = [n for n in self.nodes if isinstance(n.op, Input)]
        shape = self.left.shape
        self.watched = np.ones(shape, dtype=bool) if self.suspects is None else self.suspects
        self.differs = np.zeros(shape, dtype=bool)
        self.witnesses: dict[tuple[int, ...], Witness] = {}
        self.with_difference: list[Mapping[Node, Any]] = []
        self.without: list[Mapping[Node, Any]] = []
        self.agreed = 0
        self.always: dict[Node, Array] = {}

    @property
    def is_over(self) -> bool:
        """Whether every watched element is known to differ."""
        return bool((self.differs | ~self.watched).all())

    def ordinary(self) -> None:
        """A few points of all kinds; three differences are enough to name a mistake."""
        tried = list(points(self.inputs, self.integers, self.clock.budget.points))
        self.always = close_everywhere(self.nodes, tried[:3])
        for point in tried:
            self.visit(point)
            if self.is_over and len(self.with_difference) >= 3:
                return
            if not self.with_difference and self.agreed >= 6:
                return

    def scouted(self) -> None:
        """Points that floating-point evaluation at many places suggests."""
        for point in scout(
            self.left, self.right, self.inputs, self.integers, self.watched & ~self.differs, self.clock
        ):
            self.visit(point)
            if self.is_over:
                return

    def visit(self, point: Mapping[Node, Any]) -> None:
        """Evaluate both at a point that is not close to a kink."""
        self.clock.check()
        if not usable(self.nodes, point, self.always):
            return
        try:
            values = settled_values((self.left, self.right), point).values
        except (SymadError, ArithmeticError, ValueError):
            return
        new, defined = _different(*values)
        new &= self.watched
        if new.any():
            self.with_difference.append(point)
            for index in map(tuple, np.argwhere(new & ~self.differs).tolist()):
                self.witnesses[index] = _witness(point, values, index)
        elif defined.any():
            self.without.append(point)
            self.agreed += bool(defined.all())
        self.differs |= new


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
