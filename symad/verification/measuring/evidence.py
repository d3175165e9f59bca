"""Both sides at real points before they are called equal: in floats at many, in balls at some.

This proves nothing. It is a net under everything that does: a relation used outside its region, or a region
that was forgotten, shows at a point of that region. Signs of inputs are drawn one by one, and each element
counts where it is defined itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import Any

import numpy as np

from symad.core.graph import Node, topological
from symad.errors import SymadError
from symad.numbers.values import unchecked
from symad.ops.basic.sources import Input
from symad.verification.budget import NODE, Meter, OutOfBudget, operations, takes_seconds
from symad.verification.depending import depending
from symad.verification.fields.integer_inputs import integer_inputs, reads_inside
from symad.verification.fields.prime_fields import Array
from symad.verification.rewriting.restated.by_elements import by_elements, scalar_operations
from symad.verification.rewriting.rewrite import expand_definitions
from symad.verification.terms.discontinuities import is_jump
from symad.verification.terms.positive_domains import is_partial
from symad.verification.values.points import affordable, points
from symad.verification.values.scouting import (
    SUSPICIOUS,
    as_floats,
    beside,
    relative_gaps,
    scattered,
    scout,
)

WORK = 24_000
"""Scalar operations of balls for all pairs of a certificate together, and at least one point of them."""

MAX_OPERATIONS_IN_BALLS = 60_000
"""The maximum number of scalar operations of graphs in balls; larger ones are evaluated in floats."""

MAX_POINTS = 10
"""The maximum number of points at which both sides are evaluated in balls."""

IN_FLOATS = 24
"""Points tried in floats, which show where balls should look; fewer for graphs of many nodes."""

NODES = 8_000
"""Nodes evaluated in floats, over all points."""

BITS = (100, 400)
"""Precision in bits; the second where the first does not tell."""

Point = Mapping[Node, Any]
Claim = tuple[Node, Node, Array]
"""Two sides, and which of their elements are said to be equal."""


def with_regions(outputs: Iterable[Node]) -> set[Node]:
    """The nodes of which different relations may hold in different regions: roots, logarithms or jumps."""
    return depending(outputs, lambda node: is_partial(node) or is_jump(node))


def disagreements(claims: Sequence[Claim], meter: Meter) -> list[tuple[Array, list[Point]]]:
    """For each claim the elements that differ at some real point, and these points."""
    given = [side for a, b, _ in claims for side in (a, b)]
    inside, expanded = reads_inside(given), expand_definitions(given)
    net = Net(expanded[0::2], expanded[1::2], [claimed for _, _, claimed in claims], meter)
    net.integers = integer_inputs(given)
    try:
        for point in net.tried():
            if not inside(point):
                continue
            meter.spend(NODE * len(net.nodes) + operations(net.nodes))
            net.visit(point)
    except OutOfBudget:  # the net is cut off, and what holds does not fall
        pass
    return list(zip(net.differs, net.places, strict=True))


class Net:
    """All claims of one certificate: they share most of their nodes."""

    def __init__(
        self, left: Sequence[Node], right: Sequence[Node], claimed: Sequence[Array], meter: Meter
    ) -> None:
        """Nothing is tried yet."""
        self.left, self.right, self.claimed, self.meter = left, right, claimed, meter
        self.nodes = topological([*left, *right])
        self.inputs = [n for n in self.nodes if isinstance(n.op, Input)]
        self.integers = integer_inputs(self.nodes)
        self.differs = [np.zeros_like(c) for c in claimed]
        self.places: list[list[Point]] = [[] for _ in claimed]
        self._written_out: dict[int, list[list[Node]] | None] = {}

    def tried(self) -> Iterator[Point]:
        """Points of independent signs, some of them far away, and what floats suggest."""
        operations = max(scalar_operations([*self.left, *self.right]), 1)
        if operations > MAX_OPERATIONS_IN_BALLS or not self.inputs or any(map(takes_seconds, self.nodes)):
            return
        count = min(MAX_POINTS, max(WORK // operations, 1))
        for k, point in enumerate(points(self.inputs, self.integers, count, seed=5)):
            yield beside(scattered(point, Random(k)) if k % 3 == 2 else point, Random(k))
        for suggested in self._suggested():
            yield beside(suggested, Random(0))

    def _suggested(self) -> Iterator[Point]:
        """Points at which floats differ in an element that is claimed."""
        if not any(n.shape for n in self.inputs) and not self.integers and len(self.nodes) * 4 < NODES:
            for a, b, claimed in zip(self.left, self.right, self.claimed, strict=True):
                yield from islice(scout(a, b, self.inputs, {}, claimed, self.meter), MAX_POINTS)
            return
        count = affordable(self.inputs, min(IN_FLOATS, NODES // len(self.nodes)))
        for k, point in enumerate(points(self.inputs, self.integers, count, seed=6)):
            moved = beside(scattered(point, Random(k)) if k % 3 == 2 else point, Random(k))
            self.meter.spend(NODE * len(self.nodes) / 3)
            floats = {n: as_floats(v) for n, v in moved.items()}
            try:
                values = unchecked([*self.left, *self.right], floats)
            except (SymadError, ArithmeticError, ValueError, TypeError, np.linalg.LinAlgError):
                continue
            sides = zip(values[: len(self.left)], values[len(self.left) :], self.claimed, strict=True)
            if any(np.any(relative_gaps(u, v, claimed) > SUSPICIOUS) for u, v, claimed in sides):
                yield moved

    def visit(self, point: Point) -> None:
        """Look where the sides have disjoint enclosures at a point."""
        try:
            found = _in_balls(self.left, self.right, point)
        except UNUSABLE:
            found = [self._one_by_one(k, point) for k in range(len(self.left))]
        for k, apart in enumerate(found):
            new = apart & self.claimed[k] & ~self.differs[k]
            if new.any():
                self.differs[k] |= new
                self.places[k].append(point)

    def _one_by_one(self, k: int, point: Point) -> Array:
        """One claim alone; its elements one by one where they are few."""
        a, b, claimed = self.left[k], self.right[k], self.claimed[k]
        try:
            return _in_balls([a], [b], point)[0]
        except UNUSABLE:
            pass
        found = np.zeros(claimed.shape, dtype=bool)
        if k not in self._written_out:
            self._written_out[k] = by_elements((a, b)) if claimed.shape else None
        sides = self._written_out[k]
        for position, index in enumerate(np.ndindex(claimed.shape) if sides is not None else ()):
            assert sides is not None
            try:
                found[index] = bool(_in_balls([sides[0][position]], [sides[1][position]], point)[0])
            except UNUSABLE:
                continue
        return found


UNUSABLE = (SymadError, ArithmeticError, ValueError, TypeError)
"""What balls raise at a point that does not tell."""


def _in_balls(left: Sequence[Node], right: Sequence[Node], point: Point) -> list[Array]:
    """Where nodes have disjoint enclosures; with a finer precision where one says little."""
    from symad.verification.values.balls import DISJOINT, UNKNOWN, ball_values, compared

    for bits in BITS:
        values = ball_values([*left, *right], point, bits)
        verdicts = [compared(u, v) for u, v in zip(values[: len(left)], values[len(left) :], strict=True)]
        if not any(np.any(v == UNKNOWN) for v in verdicts):
            break
    return [np.asarray(v == DISJOINT) for v in verdicts]
