"""The guard: what is called equal is evaluated strictly at points that nobody chose who called it so.

Both sides of a claim, and the function that it is about, are evaluated in floats at many points of the claim
(`PointSet`), and in strict values (`values/balls.py`) at some: one of each region that was met, those at
which floats differ or one side has no value, and those beside the places at which a formula turns. A
difference at a point and at two points next to it is one on an open set, and refutes. Where both sides have
values at a point that was drawn, they have so on an open set; an element without such a point is not decided.
Where the formula of a derivative has no value although the function has one and its difference quotients are
steady, the quotient takes the place of the formula.

"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, islice
from math import prod
from typing import Any

import mpmath
import numpy as np
from flint import arb

from symad.core.graph import Node, topological
from symad.core.process import without_collecting
from symad.derivatives.implicit import Root
from symad.facts.functions import fact
from symad.numbers.ball_functions import to_mpmath
from symad.numbers.function_values import implementation
from symad.numbers.values import unchecked
from symad.ops.elementwise.apply import Apply
from symad.ops.linalg.eigen import EigenSystem, EigenValues, EigenVectors
from symad.tracing.from_sympy.parameter_derivatives import is_numerical
from symad.verification.accept import Pair, Seen
from symad.verification.budget import NODE, Meter, OutOfBudget, operations, takes_seconds
from symad.verification.certificate.witness import Witness, describe, digits_of, in_order
from symad.verification.fields.integer_inputs import reads_inside
from symad.verification.fields.prime_fields import Array
from symad.verification.quotients import DifferenceQuotients
from symad.verification.rewriting.identity_testing import has_domain
from symad.verification.rewriting.restated.by_elements import scalar_operations
from symad.verification.rewriting.rewrite import expand_definitions
from symad.verification.terms.depending import depending
from symad.verification.terms.discontinuities import is_jump
from symad.verification.terms.exact_steps import with_exact_steps
from symad.verification.values.balls import (
    DISJOINT,
    NONE,
    OVERLAP,
    UNKNOWN,
    VALUE,
    Ball,
    ball_values,
    compared,
    precision,
)  # fmt: skip
from symad.verification.values.fifty_digits import is_manageable, settled_values
from symad.verification.values.point_set import (
    UNUSABLE,
    Columns,
    Point,
    PointSet,
    around,
    as_floats,
    as_plain,
    evaluated,
    exactly,
    is_generic,
    is_promised,
    is_short,
    one_by_one,
    rounded,
)  # fmt: skip
from symad.verification.values.turning_points import watched_quantities
from symad.verification.without_values import Claimed

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

BITS = (160, 640)
"""Precision in bits; the second where the first does not tell."""

SUSPICIOUS = 1e-10
"""Relative differences of floats beyond this are looked at; the largest ones first."""

VISIBLE = 1e-6
"""A relative difference that rounding hardly makes: large graphs are looked at where floats show it."""

SIMPLE, MANY = 3, 8_000
"""The number of simple points, and of scalar operations beyond which one difference is enough."""

LOOKED_AT, TURNING = 4, 8
"""Suspicious points of each pair, and points beside turning places."""

SHORT = (3, 8, None)
"""Bits of the numbers of a witness; None for those of the point at which the difference was met."""

NEXT = 2
"""Points next to a difference that have to show it as well."""


@without_collecting
def inspect(
    pairs: Sequence[Pair], watched: Sequence[Array], seed: int, meter: Meter, large: bool = False
) -> list[Seen]:
    """What is seen of some pairs whose sizes are numbers, as far as the budget goes.

    Args:
        pairs: of one certificate and one domain; they share most of their nodes.
        watched: which of their elements are called equal.
        seed: of the points.
        meter: stops the inspection.
        large: whether graphs of any size are looked at, at a few points.
    """
    watch = _Watch(pairs, watched, seed, meter)
    try:
        for point in watch.tried(large):
            watch.visit(point)
            if watch.is_over:
                break
    except OutOfBudget:  # what was seen until then counts
        for seen in watch.seen:
            seen.stopped = meter.used_up
    return watch.seen


def differ(left: Array, right: Array) -> Array:
    """Where two values certainly differ."""
    return np.asarray(compared(left, right) == DISJOINT)


def _lack(left: Array, right: Array) -> Array:
    """Where the formula may have no value, or the candidate has none."""
    return ~_marked(left, VALUE) | _marked(right, NONE)


class _Watch:
    """One inspection, and what it has seen so far."""

    def __init__(self, pairs: Sequence[Pair], watched: Sequence[Array], seed: int, meter: Meter) -> None:
        """Nothing is tried yet."""
        self.pairs, self.watched, self.meter = pairs, watched, meter
        given = [n for p in pairs for n in (p.left, p.right, *p.function)]
        self.inside = reads_inside(given)
        self.outputs = with_exact_steps(expand_definitions(given))
        self.nodes = topological(self.outputs)
        self.points = PointSet(self.outputs, seed, domain=pairs[0].domain)
        self.seen = [Seen.nothing(p) for p in pairs]
        self.work = max(scalar_operations(self.outputs), 1)
        self.places = list[tuple[int, int, slice]]()
        """Of each pair the positions of its sides and of its function among the outputs."""
        start = 0
        for p in pairs:
            end = start + 2 + len(p.function)
            self.places.append((start, start + 1, slice(start + 2, end)))
            start = end

    # ---- where to look --------------------------------------------------------------------------

    def tried(self, large: bool) -> Iterator[Point]:
        """The points that are evaluated strictly: simple ones, and others where these do not decide."""
        found = [p for p in self.points.plain(SIMPLE) if self.points.holds(p)]
        slow = any(map(takes_seconds, self.nodes))
        if not large and (slow or (self.is_large and not any(map(self._is_suspicious, found)))):
            return
        large = large or self.is_large
        for seen in self.seen:
            seen.looked = True
        yield from found
        if large:
            return
        count = min(MOST, max(WORK // self.work, LEAST))
        elements = sum(prod(n.shape) for n in self.points.arguments)
        rows = min(ROWS, max(ELEMENTS // max(elements, 1), 24), max(400_000 // len(self.nodes), 48))
        rows = min(rows, FEW_ROWS) if any(map(_takes_points_alone, self.nodes)) else rows
        columns = self.points.drawn(rows)
        yield from self._chosen(columns, count) if columns else []
        if self.points.domain is not None or depending(self.outputs, is_jump):
            self.meter.spend(NODE * len(self.nodes))
            yield from islice(self.points.turning(), min(TURNING, count))

    @property
    def is_large(self) -> bool:
        """Whether the graphs take long in strict values."""
        return self.work > MAX_OPERATIONS or len(self.nodes) > MAX_NODES

    def _is_suspicious(self, point: Point) -> bool:
        """Whether floats visibly differ in all elements of a pair at a point."""
        try:
            values = unchecked(self.outputs, {n: as_floats(v) for n, v in point.items()})
        except UNUSABLE:
            return False
        gaps = (relative_gaps(values[a], values[b], watched) + ~watched
                for (a, b, _), watched in zip(self.places, self.watched, strict=True))  # fmt: skip
        return any(bool((gap > VISIBLE).all()) for gap in gaps)

    @property
    def is_over(self) -> bool:
        """Whether all elements differ, at enough points to name the mistake."""
        return all(map(self._is_over, range(len(self.pairs))))

    def _is_over(self, k: int) -> bool:
        enough = 1 if self.is_large or self.work > MANY else SIMPLE
        seen = self.seen[k]
        return bool((seen.differs | ~self.watched[k]).all()) and len(seen.places) >= min(enough, 3)

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
        rest = [k for k in np.flatnonzero(valued).tolist() if k not in keys.values()]
        regions = list(islice(chain(keys.values(), rest), count))
        return list(dict.fromkeys([*chosen[: 2 * count], *regions])) or list(range(min(LEAST, total)))

    # ---- looking --------------------------------------------------------------------------------

    def visit(self, point: Point) -> None:
        """Compare strict values at one point."""
        exact = exactly({n: _of_floats(v) for n, v in point.items()})
        if not self._is_usable(exact):
            return
        values, generic = self._values(exact), is_generic(exact, self.points.integers)
        for k in range(len(self.pairs)):
            if not self._is_over(k):
                self._look(k, exact, values, generic)

    def _is_usable(self, point: Point) -> bool:
        return is_promised(point) and self.inside(point) and is_manageable(self.outputs, point)

    def _values(self, point: Point) -> list[Array]:
        """Strict values of all outputs; more precise ones where these do not tell."""
        self.meter.spend(NODE * len(self.nodes) + operations(self.nodes))
        values = ball_values(self.outputs, point, BITS[0])
        unclear = (np.any(compared(values[a], values[b]) == OVERLAP) for a, b, _ in self.places)
        if any(unclear):
            self.meter.spend(2 * operations(self.nodes))
            values = ball_values(self.outputs, point, BITS[1])
        return self._by_digits(point, values) if self.has_spectra else values

    @cached_property
    def has_spectra(self) -> bool:
        """Whether there are eigenvalues, of which balls have no rule."""
        return any(isinstance(n.op, (EigenSystem, EigenValues, EigenVectors)) for n in self.nodes)

    def _by_digits(self, point: Point, values: list[Array]) -> list[Array]:
        """The values, with what two precisions agree upon where balls know nothing."""
        if not any(np.any(_marked(v, UNKNOWN)) for v in values):
            return values
        try:
            found = settled_values(self.outputs, point, meter=self.meter)
        except OutOfBudget:
            raise
        except UNUSABLE:
            return values
        settled = np.frompyfunc(partial(_settled, found.floor), 2, 1)
        with precision(BITS[1]):
            return [np.asarray(settled(v, np.asarray(number, dtype=object).reshape(v.shape)), dtype=object)
                    for v, number in zip(values, found.values, strict=True)]  # fmt: skip

    def _look(self, k: int, point: Point, values: Sequence[Array], generic: bool) -> None:
        pair, seen = self.pairs[k], self.seen[k]
        left, right, claimed = self._sides(k, values)
        codes = compared(left, right)
        exist = _marked(left, VALUE) & _marked(right, VALUE)
        both = exist & claimed
        if self._is_analytic(k):
            self._look_outside(k, point, exist & ~claimed & (codes == DISJOINT))
        apart = (codes == DISJOINT) & both & self.watched[k]
        if (apart & seen.differs).any() and _finite(left)[apart].all() and _finite(right)[apart].all():
            seen.places.append(point)
        apart &= ~seen.differs
        infinite = apart & ~(_finite(left) & _finite(right))
        seen.valued |= both & _finite(left) & _finite(right) & generic
        seen.agreed += bool((both & (codes != DISJOINT)).all())
        if apart.any():
            apart &= self._next_to(k, point)
            self._lacks(k, apart & infinite, point, "one side is infinite there")
            self._differs(k, apart & ~infinite, point)
        if pair.kind == "value":
            return
        open_ = claimed & self.watched[k] & ~seen.differs & ~seen.lacks
        without = ~_marked(left, VALUE) & open_
        alone = _marked(left, VALUE) & _marked(right, NONE) & open_  # the candidate has no value
        if alone.any():
            without |= alone & self._next_to(k, point, _lack)
        for index in list(map(tuple, np.argwhere(without)))[:LOOKED_AT]:
            self._by_quotient(k, index, point, right)

    def _is_analytic(self, k: int) -> bool:
        """Whether the sides of a derivative have neither kinks nor roots, and so one formula everywhere."""
        pair = self.pairs[k]
        if pair.kind == "value" or self.points.domain is not None:
            return False
        return not any(is_jump(n) or has_domain(n) for n in topological([pair.left, pair.right]))

    def _look_outside(self, k: int, point: Point, new: Array) -> None:
        """Keep a difference where the function has no value: analytic sides differ inside, too."""
        seen = self.seen[k]
        new = new & self.watched[k] & ~seen.differs
        if not new.any():
            return
        kept = new.copy()
        for near in around(point, NEXT, self.points.integers):
            left, right, _ = self._sides(k, self._values(near))
            kept &= (compared(left, right) == DISJOINT) & _finite(left) & _finite(right)
        seen.outside |= kept
        self._differs(k, kept, point, True)

    def _sides(self, k: int, values: Sequence[Array]) -> tuple[Array, Array, Array]:
        """Both sides, and of which elements something is claimed: where the function has a value."""
        a, b, f = self.places[k]
        function = [_marked(v, VALUE) & _finite(v) for v in values[f]]
        pair = self.pairs[k]
        claim = Claimed((), 1, pair.kind)
        return values[a], values[b], claim.has_function(function, values[a].shape, pair.place[1])

    def _next_to(self, k: int, point: Point, holds: Callable[[Array, Array], Array] = differ) -> Array:
        """Where something holds of both sides, by default that they differ, at all points next to one."""
        kept = np.ones(self.watched[k].shape, dtype=bool)
        for near in around(point, NEXT, self.points.integers):
            left, right, claimed = self._sides(k, self._values(near))
            kept &= holds(left, right) & claimed
        return kept

    def _differs(self, k: int, new: Array, point: Point, outside: bool = False) -> None:
        """Keep a difference, at a point of short numbers where one shows it as well."""
        if not new.any():
            return
        seen = self.seen[k]
        for bits in SHORT if not is_short(point) else SHORT[-1:]:
            here = point if bits is None else rounded(point, bits)
            if bits is not None and not (self._is_usable(here) and self.points.holds(here)):
                continue
            values = ball_values(self.outputs, here, BITS[1])
            values = self._by_digits(here, values) if self.has_spectra else values
            left, right, claimed = self._sides(k, values)
            finite = _finite(left) & _finite(right) & (claimed | outside)
            if ((compared(left, right) == DISJOINT) & finite)[new].all():
                break
        new = new & _finite(left) & _finite(right)
        seen.places.append(here)
        told = in_order(describe(here), self.pairs[k].inputs)
        for index in map(tuple, np.argwhere(new).tolist()):
            one, other = (digits_of(to_mpmath(v[index].value)) for v in (left, right))
            seen.witnesses[index] = Witness(told, one, other, index)
        seen.differs |= new

    def _lacks(self, k: int, new: Array, point: Point, how: str) -> None:
        if new.any():
            seen = self.seen[k]
            seen.lacks |= new
            seen.lacking = seen.lacking or f"{_told(describe(point))}: {how}"

    def _by_quotient(self, k: int, index: tuple[int, ...], point: Point, right: Array) -> None:
        """Look at an element whose formula has no value where the function may have a derivative."""
        seen, pair = self.seen[k], self.pairs[k]
        quotient = DifferenceQuotients(pair, point).of(index)
        if quotient is None:
            return
        here = np.zeros(right.shape, dtype=bool)
        here[index] = True
        side = right[index]
        if side.mark == UNKNOWN:  # it may have a value there
            return
        if not self._next_to(k, point, _lack)[index]:  # an isolated point, or a boundary
            return
        if side.mark != VALUE or not side.is_finite:
            how = "the function has a value and its difference quotients are steady, and the formula has none"
            self._lacks(k, here, point, how)
            return
        if not quotient.excludes(side.value):
            seen.valued |= here
            return
        seen.places.append(point)
        told = in_order(describe(point), pair.inputs)
        seen.witnesses[index] = Witness(told, quotient.text, digits_of(to_mpmath(side.value)), index)
        seen.differs |= here


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


def _of_floats(value: Any) -> Any:
    return value.astype(float) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value


def _settled(floor: Any, ball: Ball, number: Any) -> Ball:
    """A ball around a number of many digits, in the place of one that is not known."""
    if ball.mark != UNKNOWN or not mpmath.isfinite(number) or abs(number) <= floor:
        return ball
    with mpmath.workdps(60):
        return Ball(arb(mpmath.nstr(number, 40), mpmath.nstr(abs(number) * mpmath.mpf(10) ** -33, 5)))


def _marked(values: Array, mark: str) -> Array:
    return np.array([v.mark == mark for v in values.ravel()], dtype=bool).reshape(values.shape)


def _finite(values: Array) -> Array:
    return np.array([v.is_finite for v in values.ravel()], dtype=bool).reshape(values.shape)


def _told(point: Mapping[str, Any]) -> str:
    from symad.verification.certificate.witness import place_of

    return place_of(point)
