"""Where the guard looks: at simple points, at suspicious ones of many rows, and in each region.

Floats choose points; they decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from math import prod
from typing import TypeAlias

import numpy as np

from symad.core.graph import Node
from symad.derivatives.implicit import Root
from symad.facts.functions import fact
from symad.numbers.function_values import implementation
from symad.numbers.values import unchecked
from symad.ops.elementwise.apply import Apply
from symad.tracing.from_sympy.parameter_derivatives import is_numerical
from symad.verification.budget import NODE, Meter, takes_seconds
from symad.verification.fields.prime_fields import Array
from symad.verification.rewriting.restated.by_elements import scalar_operations
from symad.verification.terms.depending import depending
from symad.verification.terms.discontinuities import is_jump
from symad.verification.values.point_set import (
    UNUSABLE,
    Columns,
    Point,
    PointSet,
    as_floats,
    as_plain,
    evaluated,
    one_by_one,
)
from symad.verification.values.turning_points import watched_quantities

Place: TypeAlias = tuple[int, int, slice]
"""The positions of both sides of a pair, and of its function, among the outputs."""

ROWS, ELEMENTS = 1024, 1 << 16
"""Rows evaluated in floats, and the elements of all inputs together in all rows."""

ALONE = 64
"""The maximum number of rows that are evaluated one by one, where some of all cannot be evaluated."""

FEW_ROWS = 24
"""The same where a function is called point by point."""

WORK, LEAST, MOST = 24_000, 3, 16
"""Scalar operations of strict values for all pairs of a certificate together; the least and the largest
number of points."""

MAX_OPERATIONS, MAX_NODES = 60_000, 6_000
"""The maximum numbers of scalar operations of graphs in strict values, and of nodes in floats."""

SUSPICIOUS = 1e-10
"""Relative differences of floats beyond this are looked at; the largest ones first."""

VISIBLE = 1e-6
"""A relative difference that rounding hardly makes: large graphs are looked at where floats show it."""

SIMPLE = 3
"""The number of simple points."""

LOOKED_AT, TURNING = 4, 8
"""Suspicious points of each pair, and points beside turning places."""


@dataclass(frozen=True, eq=False)
class Lookout:
    """The graphs of one inspection, and the points at which they are worth a look."""

    outputs: Sequence[Node]
    nodes: Sequence[Node]
    places: Sequence[Place]
    watched: Sequence[Array]
    """Which elements of each pair are called equal."""

    points: PointSet
    meter: Meter

    @cached_property
    def work(self) -> int:
        """The number of scalar operations."""
        return max(scalar_operations(self.outputs), 1)

    @property
    def is_large(self) -> bool:
        """Whether the graphs take long in strict values."""
        return self.work > MAX_OPERATIONS or len(self.nodes) > MAX_NODES

    def simple(self) -> list[Point]:
        """Points of simple numbers."""
        return [p for p in self.points.plain(SIMPLE) if self.points.holds(p)]

    def is_worth_it(self, found: Sequence[Point]) -> bool:
        """Whether strict values take little time, or floats visibly differ at one of some points."""
        slow = any(map(takes_seconds, self.nodes))
        return not slow and (not self.is_large or any(map(self._is_suspicious, found)))

    def _is_suspicious(self, point: Point) -> bool:
        """Whether floats visibly differ in all elements of a pair at a point."""
        try:
            values = unchecked(self.outputs, {n: as_floats(v) for n, v in point.items()})
        except UNUSABLE:
            return False
        gaps = (relative_gaps(values[a], values[b], watched) + ~watched
                for (a, b, _), watched in zip(self.places, self.watched, strict=True))  # fmt: skip
        return any(bool((gap > VISIBLE).all()) for gap in gaps)

    def further(self) -> Iterator[Point]:
        """Rows of many that were drawn, and points beside the places at which a formula turns."""
        count = min(MOST, max(WORK // self.work, LEAST))
        elements = sum(prod(n.shape) for n in self.points.arguments)
        rows = min(ROWS, max(ELEMENTS // max(elements, 1), 24), max(400_000 // len(self.nodes), 48))
        rows = min(rows, FEW_ROWS) if any(map(_takes_points_alone, self.nodes)) else rows
        columns = self.points.drawn(rows)
        yield from self._chosen(columns, count) if columns else []
        if self.points.domain is not None or depending(self.outputs, is_jump):
            self.meter.spend(NODE * len(self.nodes))
            yield from islice(self.points.turning(), min(TURNING, count))

    def _chosen(self, columns: Columns, count: int) -> Iterator[Point]:
        """Of all rows: suspicious ones, and one of each region."""
        total = len(next(iter(columns.values()), ()))
        if not total:
            return
        self.meter.spend(NODE * len(self.nodes) + total * len(self.nodes) / 10)
        regions = [q for q in watched_quantities(self.nodes) if prod(q.shape) <= 64]
        try:
            found = evaluated((*self.outputs, *regions), columns)
        except UNUSABLE:  # as by a factor of one matrix that is not definite
            total = min(total, ALONE)
            found = one_by_one((*self.outputs, *regions), columns, total)
        for k in self._rows(found, total, count):
            yield {n: as_plain(column[k]) for n, column in columns.items()}

    def _rows(self, found: Sequence[Array], total: int, count: int) -> list[int]:
        """Positions of the rows to look at, the most suspicious ones first."""
        flat = [np.asarray(v, dtype=float).reshape(total, -1) for v in found]
        chosen, valued = list[int](), np.zeros(total, dtype=bool)
        for (a, b, f), watched in zip(self.places, self.watched, strict=True):
            u, v = flat[a], flat[b]
            keep = watched.ravel()
            worst = relative_gaps(u, v, keep).max(axis=1, initial=0.0)
            order = np.argsort(-worst, kind="stable")[:LOOKED_AT]
            chosen += [int(k) for k in order if worst[k] > SUSPICIOUS]
            function = np.all([np.isfinite(w).all(axis=1) for w in flat[f]], axis=0) if flat[f] else True
            odd = ((np.isfinite(u) != np.isfinite(v)) & keep).any(axis=1)
            if flat[f]:
                odd |= (~np.isfinite(u) & keep).any(axis=1)
            chosen += np.flatnonzero(odd & function)[:LOOKED_AT].tolist()
            valued |= (np.isfinite(u) & np.isfinite(v) & keep).any(axis=1)
        signs = np.concatenate([np.sign(np.nan_to_num(w)) for w in flat[len(self.outputs) :]] or
                               [np.zeros((total, 1))], axis=1).astype(np.int8)  # fmt: skip
        keys = dict[bytes, int]()
        for k in np.flatnonzero(valued).tolist():
            keys.setdefault(signs[k].tobytes(), k)
        regions = islice(dict.fromkeys(chain(keys.values(), np.flatnonzero(valued).tolist())), count)
        return list(dict.fromkeys([*chosen[: 2 * count], *regions])) or list(range(min(LEAST, total)))


def relative_gaps(u: Array | float, v: Array | float, watched: Array) -> Array:
    """Relative differences of watched elements where both values are finite, else 0."""
    with np.errstate(all="ignore"):
        gap = np.abs(np.asarray(u, dtype=float) - v) / (np.abs(u) + np.abs(v))
    return np.where(np.isfinite(gap) & watched, gap, 0.0)


def _takes_points_alone(n: Node) -> bool:
    """Whether a node is solved for, differentiated numerically, or a SymPy function of a user's."""
    if isinstance(n.op, Root) or is_numerical(n):
        return True
    head = n.op.head if isinstance(n.op, Apply) else None
    known = head is None or fact(head).floats or implementation(head) is not None
    return not known and not head.__module__.startswith("sympy.")
