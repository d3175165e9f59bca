"""The search for a point at which two graphs certainly differ.

Both are evaluated at rational points to 50 digits and more, until two precisions agree, so that
rounding cannot be the cause. Points near a tie, a jump or a boundary are not used: there the values
may differ although the functions agree on an open dense set. Away from them the functions are
continuous, so a difference at one point is a difference in a neighbourhood, if both sides have values
there: for x < 0, x^y has values at isolated y only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from random import Random
from typing import TYPE_CHECKING

import mpmath
import numpy as np

from symad.core.arrays import Number
from symad.core.graph import Node
from symad.errors import SymadError
from symad.ops.basic.sources import Input
from symad.verification.budget import NODE, Meter, OutOfBudget, operations
from symad.verification.fields.integer_inputs import reads_inside
from symad.verification.fields.prime_fields import Array
from symad.verification.rewriting.identities.at_numbers import with_whole_parts
from symad.verification.rewriting.restated.by_elements import scalar_operations
from symad.verification.rewriting.rewrite import expand_definitions
from symad.verification.values.fifty_digits import (
    PRECISIONS,
    all_nodes,
    around,
    close_everywhere,
    settled_values,
    usable,
)
from symad.verification.values.find_values import may_lack_values
from symad.verification.values.hostile_points import exactly, is_manageable
from symad.verification.values.points import describe, is_promised, points
from symad.verification.values.scouting import beside, scout
from symad.verification.values.turning_points import turning_points

if TYPE_CHECKING:
    from symad.verification.values.points import Nested

DIGITS = 30
"""Both values are given to this many digits."""

HIGHER = (400, 800)
"""Digits for points at which cancellation hides more."""

CONFIRMING = (200, 800, 3200)
"""Bits of the balls that confirm a difference."""

MAX_OPERATIONS_IN_BALLS = 60_000
"""The maximum number of scalar operations of graphs that are evaluated in balls."""

NEIGHBOUR_BITS = 200
"""Bits to which a point and those next to it agree: more than 50 digits have, fewer than 100."""

MANY_STEPS = 8_000
"""Of graphs of more steps, one difference is enough to name a mistake; of others it takes three."""

SURE = mpmath.mpf(10) ** -DIGITS
"""A smaller relative difference is none."""


@dataclass(frozen=True)
class Witness:
    """A point at which an element differs.

    ``point`` maps names to exact rationals as text; ``left`` and ``right`` are the two values.
    """

    point: Mapping[str, Nested]
    left: str
    right: str
    index: tuple[int, ...] = ()

    @property
    def gap(self) -> float:
        """The relative difference of the two values."""
        with mpmath.workdps(DIGITS):
            left, right = mpmath.mpf(self.left), mpmath.mpf(self.right)
            return float(abs(left - right) / max(abs(left), abs(right), mpmath.mpf(10) ** -300))

    def __str__(self) -> str:
        return f"at {place_of(self.point)}: {self.left} and {self.right}"


def in_order(point: Mapping[str, Nested], names: Sequence[str]) -> Mapping[str, Nested]:
    """A point with its inputs in an order; a name may be followed by what its symbol promises."""
    places = {name: k for k, name in enumerate(names)}
    found = sorted(point, key=lambda name: places.get(name.split(" (")[0], len(places)))
    return {name: point[name] for name in found}


def place_of(point: Mapping[str, Nested]) -> str:
    """A point as text."""
    return ", ".join(f"{name} = {short(value)}" for name, value in point.items()) or "every point"


MAX_SHOWN = 100
"""The maximum number of rows of an array that a text shows; of larger ones it shows a tenth."""


def short(value: Nested) -> str:
    """A number or an array as text."""
    if not isinstance(value, list):
        return str(value)
    shown = value if len(value) <= MAX_SHOWN else value[: MAX_SHOWN // 10]
    more = [f"... ({len(value):,} in all)"] if len(shown) < len(value) else []
    return "[" + ", ".join([*map(short, shown), *more]) + "]"


@dataclass(frozen=True)
class Search:
    """What the search found about one pair of nodes."""

    differs: Array
    """Boolean: elements that certainly differ at some point."""
    witnesses: Mapping[tuple[int, ...], Witness]
    points: tuple[Mapping[Node, Number], ...]
    """The points at which both were defined, those with a difference first."""
    agreed: int
    """The number of points at which all elements agreed to 30 digits."""
    stopped: str = ""
    """What was used up before all points were tried."""


def search(
    left: Node,
    right: Node,
    integers: Mapping[Node, tuple[int, int]],
    meter: Meter,
    suspects: Array | None = None,
    first: Sequence[Mapping[Node, Number]] = (),
    claimed: Callable[[Mapping[Node, Number]], Array] | None = None,
    names: Sequence[str] = (),
) -> Search:
    """Look for points at which two nodes of one shape differ; all dimensions must be numbers.

    Args:
        left: the reference.
        right: what is compared with it.
        integers: inputs that are indices or exponents, with their ranges.
        meter: stops the search.
        suspects: the elements to look at; all by default.
        first: points to visit before all others.
        claimed: flags of the elements about which something is said at a point; all by default.
        names: of the inputs, in the order in which witnesses have them.
    """
    inside = reads_inside((left, right))
    left, right = with_whole_parts(expand_definitions((left, right)))
    hunt = _Hunt(left, right, integers, meter, inside, suspects, claimed, names)
    stopped = ""
    try:
        for point in first:
            hunt.visit(point)
        hunt.ordinary()
        if not hunt.is_over:
            hunt.scouted()
        if not hunt.is_over and not hunt.with_difference:
            hunt.turning()
    except OutOfBudget:
        stopped = meter.used_up
    tried = tuple(hunt.with_difference + hunt.without)
    return Search(hunt.differs, hunt.witnesses, tried, hunt.agreed, stopped)


@dataclass(eq=False)
class _Hunt:
    """One search, and what it has found so far."""

    left: Node
    right: Node
    integers: Mapping[Node, tuple[int, int]]
    meter: Meter
    inside: Callable[[Mapping[Node, Number]], bool]
    suspects: Array | None
    claimed: Callable[[Mapping[Node, Number]], Array] | None = None
    names: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.nodes = all_nodes(self.left, self.right)
        self.steps = NODE + 2 * operations(self.nodes)
        self.inputs = [n for n in self.nodes if isinstance(n.op, Input)]
        shape = self.left.shape
        self.watched = np.ones(shape, dtype=bool) if self.suspects is None else self.suspects
        self.differs = np.zeros(shape, dtype=bool)
        self.witnesses: dict[tuple[int, ...], Witness] = {}
        self.with_difference: list[Mapping[Node, Number]] = []
        self.without: list[Mapping[Node, Number]] = []
        self.agreed = 0
        self.always: dict[Node, Array] = {}

    @property
    def is_over(self) -> bool:
        """Whether every watched element is known to differ."""
        return bool((self.differs | ~self.watched).all())

    def ordinary(self) -> None:
        """A few points of all kinds; three differences are enough to name a mistake."""
        tried = points(self.inputs, self.integers, self.meter.budget.points)
        first = list(islice(tried, 3))
        self.always = close_everywhere(self.nodes, first)
        enough = 3 if self.steps + 2 * self.watched.size <= MANY_STEPS else 1
        for point in chain(first, tried):
            self.visit(point)
            if self.is_over and len(self.with_difference) >= enough:
                return
            if not self.with_difference and self.agreed >= 2 * enough:
                return

    def scouted(self) -> None:
        """Points that floating-point evaluation at many places suggests."""
        for point in scout(
            self.left, self.right, self.inputs, self.integers, self.watched & ~self.differs, self.meter
        ):
            self.visit(point)
            if not self.is_over:  # a jump may be met exactly
                self.visit(beside(point, Random(0)))
            if self.is_over:
                return

    def turning(self) -> None:
        """Points of regions that begin and end somewhere along a line."""
        self.meter.spend(NODE * len(self.nodes))
        for point in turning_points((self.left, self.right), self.integers):
            self.visit(exactly(point))
            if self.is_over:
                return

    def visit(self, point: Mapping[Node, Number]) -> None:
        """Evaluate both at a point that is not close to a kink."""
        self.meter.spend(self.steps)
        if (
            not is_promised(point)
            or not self.inside(point)
            or not is_manageable((self.left, self.right), point)
            or not usable(self.nodes, point, self.always)
        ):
            return
        try:
            new, defined, values = self._compared(point)
        except OutOfBudget:
            raise
        except (SymadError, ArithmeticError, ValueError):
            return
        new &= self.watched
        if new.any() and self.claimed is not None:
            new &= self.claimed(point)
        if new.any():
            new &= self._confirmed(point, new)
        if new.any() and any(map(may_lack_values, self.nodes)):
            new &= self._is_inside(point)
        if new.any():
            self.with_difference.append(point)
            told = in_order(describe(point), self.names)  # of all elements: an array has as many numbers
            for index in map(tuple, np.argwhere(new & ~self.differs).tolist()):
                left, right = (digits_of(np.asarray(v)[index]) for v in values)
                self.witnesses[index] = Witness(told, left, right, index)
        elif defined.any():
            self.without.append(point)
            self.agreed += bool(defined.all())
        self.differs |= new

    def _confirmed(self, point: Mapping[Node, Number], new: Array) -> Array:
        """Which differences balls confirm: what a cancellation or a jump may have caused is none."""
        from symad.verification.values.balls import DISJOINT, Undetermined, ball_values, compared

        if scalar_operations([self.left, self.right]) > MAX_OPERATIONS_IN_BALLS:
            return new
        try:
            for bits in CONFIRMING:
                apart = compared(*ball_values((self.left, self.right), point, bits)) == DISJOINT
                if np.all(apart | ~new):
                    break
        except Undetermined:
            return np.zeros_like(new)
        except (SymadError, ArithmeticError, ValueError, TypeError):  # an op that balls do not have
            return new
        return np.asarray(apart)

    def _is_inside(self, point: Mapping[Node, Number]) -> Array:
        """Where both sides have values next to a point as well."""
        inside = np.ones(self.left.shape, dtype=bool)
        for near in around(point, NEIGHBOUR_BITS):
            try:
                values = settled_values((self.left, self.right), near, meter=self.meter).values
            except OutOfBudget:
                raise
            except (SymadError, ArithmeticError, ValueError):
                return np.zeros_like(inside)
            for side in values:
                inside &= np.asarray(np.frompyfunc(mpmath.isfinite, 1, 1)(side)).astype(bool)
        return inside

    def _compared(self, point: Mapping[Node, Number]) -> tuple[Array, Array, tuple[Array, ...]]:
        """Where the sides certainly differ at a point, where both are known, and their values."""
        for precisions in (PRECISIONS, HIGHER):
            found = settled_values((self.left, self.right), point, precisions=precisions, meter=self.meter)
            verdicts = np.asarray(np.frompyfunc(_verdict, 3, 1)(*found.values, found.floor))
            if not np.any(verdicts == -2):
                break
        return (
            np.asarray(verdicts == 1).astype(bool),
            np.asarray(verdicts >= 0).astype(bool),
            found.values,
        )


def _verdict(a: Number, b: Number, floor: Number) -> int:
    """1 where two numbers differ, 0 where they agree to 30 digits, −1 where one is undefined.

    −2 where they differ by no more than a cancellation may have hidden.
    """
    with mpmath.workdps(60):
        a, b = mpmath.mpf(a), mpmath.mpf(b)
        if not (mpmath.isfinite(a) and mpmath.isfinite(b)):
            return -1
        if abs(a - b) <= SURE * max(abs(a), abs(b)):
            return 0
        return 1 if abs(a - b) > floor else -2


def digits_of(value: Number) -> str:
    """A number to 30 digits."""
    with mpmath.workdps(60):
        return str(mpmath.nstr(mpmath.mpf(value), DIGITS, strip_zeros=True))
