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
from typing import Any

import mpmath
import numpy as np
from flint import arb

from symad.core.graph import topological
from symad.core.process import without_collecting
from symad.numbers.ball_functions import to_mpmath
from symad.ops.linalg.eigen import EigenSystem, EigenValues, EigenVectors
from symad.verification.accept import Pair, Seen
from symad.verification.budget import NODE, Meter, OutOfBudget, operations
from symad.verification.certificate.expression_text import text_of
from symad.verification.certificate.witness import Witness, describe, digits_of, in_order
from symad.verification.fields.integer_inputs import reads_inside
from symad.verification.fields.prime_fields import Array
from symad.verification.lookout import LOOKED_AT, Lookout, Place
from symad.verification.quotients import DifferenceQuotients
from symad.verification.rewriting.identity_testing import has_domain
from symad.verification.rewriting.rewrite import expand_definitions
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
from symad.verification.values.labels import Sides
from symad.verification.values.point_set import (
    UNUSABLE,
    Point,
    PointSet,
    around,
    exactly,
    is_generic,
    is_promised,
    is_short,
    rounded,
)  # fmt: skip
from symad.verification.without_values import Claimed

BITS = (160, 640)
"""Precision in bits; the second where the first does not tell."""

ENOUGH, MANY = 3, 8_000
"""Differences that name a mistake, and the number of scalar operations beyond which one is enough."""

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
    for seen, unmet in zip(watch.seen, watch.unmet, strict=True):
        seen.unmet = unmet.told(text_of)
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
        fixed = frozenset.intersection(*(p.fixed for p in pairs))
        self.points = PointSet(self.outputs, seed, domain=pairs[0].domain, fixed=fixed)
        self.seen = [Seen.nothing(p) for p in pairs]
        self.places = list[Place]()
        start = 0
        for p in pairs:
            end = start + 2 + len(p.function)
            self.places.append((start, start + 1, slice(start + 2, end)))
            start = end
        self.unmet = [
            Sides.of((self.outputs[a], self.outputs[b], *self.outputs[f]), fixed, self.points.domain)
            for a, b, f in self.places
        ]
        self.lookout = Lookout(self.outputs, self.nodes, self.places, watched, self.points, meter)

    def tried(self, large: bool) -> Iterator[Point]:
        """The points that are evaluated strictly: simple ones, and others where these do not decide."""
        found = self.lookout.simple()
        if not (large or self.lookout.is_worth_it(found)):
            return
        for seen in self.seen:
            seen.looked = True
        yield from found
        if not (large or self.lookout.is_large):
            yield from self.lookout.further()

    @property
    def is_over(self) -> bool:
        """Whether all elements differ, at enough points to name the mistake."""
        return all(map(self._is_over, range(len(self.pairs))))

    def _is_over(self, k: int) -> bool:
        enough = 1 if self.lookout.is_large or self.lookout.work > MANY else ENOUGH
        seen = self.seen[k]
        return bool((seen.differs | ~self.watched[k]).all()) and len(seen.places) >= enough

    # ---- looking --------------------------------------------------------------------------------

    def visit(self, point: Point) -> None:
        """Compare strict values at one point."""
        exact = exactly({n: _of_floats(v) for n, v in point.items()})
        if not self._is_usable(exact):
            return
        values, generic = self._values(exact), is_generic(exact, self.points.held)
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
        if self.unmet[k] and both.any():
            self.unmet[k] = self.unmet[k].without(self.unmet[k].met(point))
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
        for near in around(point, NEXT, self.points.held):
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

    def _next_to(
        self, k: int, point: Point, holds: Callable[[Array, Array], Array] = differ, outside: bool = False
    ) -> Array:
        """Where something holds of both sides, by default that they differ, at all points next to one."""
        kept = np.ones(self.watched[k].shape, dtype=bool)
        for near in around(point, NEXT, self.points.held):
            left, right, claimed = self._sides(k, self._values(near))
            kept &= holds(left, right) & (claimed | outside)
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
            if bits is not None and not self._next_to(k, here, outside=outside)[new].all():
                continue  # a tie, perhaps
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
