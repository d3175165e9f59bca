"""What is measured of a numeric function: against what, where, and how it is called.

It is called at points of few digits first, and at a hundred and more of its own strata: there both sides are
compared in floats, which costs little, and where these differ, the point is measured like the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Symbol

from symad.core.graph import Graph, Node, topological
from symad.numbers.values import unchecked
from symad.ops.basic.sources import symbol_of
from symad.verification.budget import Meter
from symad.verification.fields.integer_inputs import reads_inside
from symad.verification.fields.prime_fields import Array
from symad.verification.measuring.call_users_code import BadReturn, Caller, as_real_array, kind_of
from symad.verification.measuring.precisions import DOUBLE, Precision
from symad.verification.measuring.rounding_errors import plain
from symad.verification.rewriting.rewrite import expand_definitions
from symad.verification.terms.discontinuities import unseen
from symad.verification.terms.exact_steps import with_exact_steps
from symad.verification.values.labels import conditions_of
from symad.verification.values.point_set import UNUSABLE, FloatPoint, PointSet, as_plain
from symad.verification.values.strata import PROGRAMS
from symad.verification.values.turning_points import watched_quantities

if TYPE_CHECKING:
    from symad.verification.certificate.witness import Nested


# ---- points of the seed at which a numeric function is called ------------------------------------


SAMPLED, LEAST, SECONDS = 160, 32, 2.0
"""The number of points; after LEAST of them, a function that has taken SECONDS is called no more."""

LOOKED_AT, SUSPICIOUS = 12, 1e-8
"""The number of points that are measured, and the relative difference of floats from which on they are."""

ROUNDINGS = 32
"""The same in roundings, of a type of fewer digits."""

SIZED = ("scaled", "one far")
"""Strata that a program meets in use: other units, and one input that is far off."""

KIND, ZEROS, SPECIAL = "sampled", "zeros among others", "directions"
"""What these points are called; the last ones have special directions."""

MAX_ALONE = 4
"""The maximum number of directions of which each is tried as the only one that is not 0."""


def rows(points: PointSet, far: bool) -> Iterator[tuple[str, FloatPoint]]:
    """Zero, points of special directions, beside what turns, and of all strata of programs.

    Unless more are asked for, points that are not of ordinary size are of the strata of `SIZED` alone.
    """
    directions = points.together
    yield from ((ZEROS, p) for p in points.points(1, ["zeros"]))
    for point, change in zip(filter(is_moderate, points.points(SAMPLED)), _special(directions), strict=False):
        yield SPECIAL, {n: as_plain(change[n](np.asarray(v)) + 0.0) if n in change else v  # no −0
                        for n, v in point.items()}  # fmt: skip
    drawn = points.points(SAMPLED if far else 4 * SAMPLED, PROGRAMS)
    if not far:
        usual = islice(filter(is_moderate, drawn), SAMPLED)
        drawn = chain.from_iterable(zip(points.points(SAMPLED, SIZED), usual, strict=False))
    for point in chain(islice(points.turning(), LOOKED_AT), drawn):
        yield "far" if not is_moderate(point) else ZEROS if _has_zeros(point) else KIND, point


def _has_zeros(point: FloatPoint) -> bool:
    """Whether an input that is no index has a 0."""
    return any(v.dtype.kind == "f" and bool((v == 0).any()) for v in map(np.asarray, point.values()))


DIRECTIONS: tuple[Callable[[Array], Array], ...] = (
    lambda v: 0 * v,
    lambda v: 0 * v + 1,
    lambda v: v * (np.arange(v.size) % 2).reshape(v.shape),
    lambda v: v * (1 - np.arange(v.size) % 2).reshape(v.shape),
    lambda v: v * (np.arange(v.size) == v.size - 1).reshape(v.shape),
    lambda v: -np.abs(v),
)
"""Zero, ones, zeros in every other element, one element that is not 0, and none that is positive: a program
that divides by a direction, or has a branch for it, is wrong there alone. A loss that reads some of the
outputs has such cotangents."""


def _special(directions: Sequence[Node]) -> list[Mapping[Node, Callable[[Array], Array]]]:
    """Changes of all directions, and of all but one."""
    changes = [dict.fromkeys(directions, form) for form in DIRECTIONS] if directions else []
    for alone in directions[:MAX_ALONE] if len(directions) > 1 else ():
        changes.append({node: DIRECTIONS[0] for node in directions if node is not alone})
    return list(changes)


def is_moderate(point: FloatPoint) -> bool:
    """Whether all numbers are of ordinary size, or 0: a function without a value there is at fault."""
    sizes = [np.abs(np.asarray(v, dtype=float)) for v in point.values()]
    return all(bool(np.all((s == 0) | ((s > 2.0**-10) & (s < 12)))) for s in sizes)


Named = tuple[str, FloatPoint]


def suspicious(
    outputs: Sequence[Node],
    call: Callable[[FloatPoint], list[Array]],
    tried: Iterable[Named],
    inside: Callable[[FloatPoint], bool],
    limits: Precision,
) -> tuple[list[Named], list[FloatPoint]]:
    """Points at which floats differ, one of each region and of each input that is 0 first; and all tried."""
    watched = [q for q in watched_quantities(topological(outputs)) if np.prod(q.shape, dtype=int) <= 64]
    found: list[tuple[float, bytes, Named]] = []
    start, seen = time.process_time(), list[FloatPoint]()
    for kind, point in tried:
        if len(seen) >= LEAST and time.process_time() - start > SECONDS:
            break
        if not inside(point):
            continue
        try:
            with np.errstate(all="ignore"):
                right = unchecked((*outputs, *watched), point)
        except UNUSABLE:
            continue
        seen.append(point)
        gap = _gap(call, point, right[: len(outputs)])
        if gap > max(SUSPICIOUS, ROUNDINGS * limits.eps):
            signs = [np.sign(np.nan_to_num(np.asarray(v, dtype=float))) for v in right[len(outputs) :]]
            zeros = [np.asarray(v) == 0 for v in point.values()]
            alike = bytes(int(z.any()) + int(z.all()) for z in zeros)
            key = kind.encode() + alike + b"".join(s.astype(np.int8).tobytes() for s in signs)
            found.append((gap, key, (kind, point)))
    found.sort(key=lambda f: -f[0])
    first: dict[bytes, int] = {}
    for k, (_, key, _) in enumerate(found):
        first.setdefault(key, k)
    order = [*first.values(), *(k for k in range(len(found)) if k not in first.values())]
    return [found[k][2] for k in order[:LOOKED_AT]], seen


def windows(tried: Sequence[FloatPoint]) -> str:
    """For each input without axes the widest interval of ordinary size in which it had no value."""
    told = []
    for node in [n for n in tried[0] if not n.shape] if tried else ():
        values = sorted({float(p[node]) for p in tried if node in p})
        near = [v for v in values if 2.0**-10 < abs(v) < 2.0**9]
        gaps = [(max(abs(a), abs(b)) / min(abs(a), abs(b)), a, b) for a, b in pairwise(near) if a * b > 0]
        if gaps:
            _, low, high = max(gaps)
            told.append(f"{low:.4g} < {symbol_of(node)} < {high:.4g}")
    unseen = "an error there alone, or in a narrower interval, may be unseen"
    return f"no point was tried with {' or '.join(told)}: {unseen}" * bool(told)


def gap(outputs: Sequence[Node], call: Callable[[FloatPoint], list[Array]], point: FloatPoint) -> float:
    """The largest difference of floats at a point, relative to the largest element."""
    try:
        with np.errstate(all="ignore"):
            right = [np.asarray(v, dtype=float) for v in unchecked(outputs, point)]
    except UNUSABLE:
        return 0.0
    sizes = [float(np.max(np.abs(v), initial=0.0, where=np.isfinite(v))) for v in right]
    return _gap(call, point, right, sizes)


def _gap(
    call: Callable[[FloatPoint], list[Array]],
    point: FloatPoint,
    right: Sequence[Any],
    sizes: Sequence[float] | None = None,
) -> float:
    """The largest relative difference of floats at a point; 1 where the function has no value alone."""
    try:
        made = call(point)
    except Exception:  # whatever the user's function raises is told where the point is measured
        return 1.0
    worst = 0.0
    for got, value, size in zip(made, right, sizes or [1e-300] * len(made), strict=True):
        u, v = np.asarray(got, dtype=float), np.asarray(value, dtype=float)
        known = np.isfinite(v)
        with np.errstate(all="ignore"):
            gaps = np.abs(u - v) / np.maximum(np.maximum(np.abs(u), np.abs(v)), size)
        gaps = np.where(known, np.where(np.isfinite(gaps), gaps, 1.0), 0.0)
        worst = max(worst, float(np.max(gaps, initial=0.0)))
    return worst


ORDINARY, FEW = 24, 4
"""The number of ordinary points, and the least one at which something must be claimed."""

Flat = Callable[[Any], "list[Any]"]
"""From what a numeric function returned its outputs, in order."""

Inside = Callable[[FloatPoint], bool]
"""Whether a point lies in the domain that a claim is about."""


@dataclass(frozen=True)
class Task:
    """What is measured, and against what.

    Args:
        candidate: calls the function with the values of the reference's inputs, floats and float64 arrays.
        reference: what it should compute; all sizes are numbers.
        names: of its outputs.
        flat: takes apart what the candidate returns.
        assumes: what is trusted.
        meter: stops the measurement.
        domain: positive where the claim is made.
        of: the function whose derivative is claimed.
        valued: where this function has a value whose derivative is claimed; a formula of the derivative may
            have values elsewhere. Where this is seldom so, all points count.
        directions: inputs in which the reference is linear: y_bar of a vector-Jacobian product.
        seed: of the points that are drawn.
        limits: the type in which the function computes, or that of its results if that has fewer digits.
    """

    candidate: Caller
    reference: Graph
    names: tuple[str, ...]
    flat: Flat
    assumes: tuple[str, ...]
    meter: Meter
    domain: Node | None = None
    of: tuple[Node, ...] = ()
    valued: Inside = lambda point: True
    directions: Sequence[Node] = ()
    fixed: frozenset[Symbol] = frozenset()
    """The inputs that a derivative is not taken by."""
    seed: int = 0
    limits: Precision = DOUBLE

    @cached_property
    def outputs(self) -> tuple[Node, ...]:
        """What it should compute, in ops of which roundings are known."""
        return with_exact_steps(expand_definitions(self.reference.output_nodes))

    @cached_property
    def nodes(self) -> list[Node]:
        """Everything that the outputs need, arguments first."""
        return topological(self.outputs)

    @cached_property
    def counted(self) -> frozenset[Node]:
        """The nodes whose roundings count: labels are numbers at which conditions on them are exact."""
        settled = set(conditions_of(self.outputs, self.fixed))
        return frozenset(chain.from_iterable(unseen(n, settled) for n in self.outputs))

    @cached_property
    def drawn(self) -> PointSet:
        """The points of the seed."""
        given, together = self.reference.input_nodes, tuple(self.directions)
        return PointSet(self.outputs, self.seed, given, self.domain, together, self.fixed)

    @cached_property
    def usable(self) -> Inside:
        """Whether a point lies in the domain, and all places are inside of arrays."""
        reads, holds = reads_inside(self.reference.output_nodes), self.drawn.holds
        return lambda point: reads(point) and holds(point)

    @cached_property
    def ordinary(self) -> list[FloatPoint]:
        """Points of ordinary size, more of them where single ones show little."""
        count = ORDINARY * (1 + self.limits.is_low)
        found = self.of_type(self.drawn.plain(count))
        if self.domain is not None and sum(map(self.usable, found)) < count // 2:
            found += self.of_type(islice(self.drawn.points(SAMPLED), count))
        return found

    @cached_property
    def inside(self) -> Inside:
        """Whether something is claimed at a point."""
        usable, valued = self.usable, self.valued
        if sum(usable(p) and valued(p) for p in self.ordinary) < FEW:
            return usable
        return lambda point: usable(point) and valued(point)

    @property
    def held(self) -> frozenset[Node]:
        """Inputs that stay where they are at points beside a point."""
        return self.drawn.held

    def of_type(self, points: Iterable[FloatPoint], bounded: bool = True) -> list[FloatPoint]:
        """The points with all inputs, in numbers of the type, if these are so large that products remain."""
        low, high = self.limits.span if bounded else (0.0, np.inf)
        made = map(self.limits.rounded_point, points)
        return [p for p in made if all(_is_between(v, low, high) for v in p.values())]

    def size_of(self, point: FloatPoint) -> float:
        """The largest input, or 1, times the largest direction, or 1."""
        sizes = [1.0, 1.0]
        for node, value in point.items():
            k = node in self.directions
            sizes[k] = max(sizes[k], float(np.max(np.abs(value), initial=0.0)))
        return sizes[0] * sizes[1]

    def where(self, point: FloatPoint) -> dict[str, Nested]:
        """A point as text."""
        return {str(symbol_of(n)): plain(point[n]) for n in self.reference.input_nodes if n in point}

    def returned(self, point: FloatPoint) -> list[Any]:
        """What the candidate returns at a point, one part for each output."""
        with np.errstate(all="ignore"):
            result = self.candidate([point[n] for n in self.reference.input_nodes])
            returned = self.flat(result)
        if len(returned) != len(self.outputs):
            alone = kind_of(result) + ", which is one output," * (result is not None)
            made = f"{len(returned)} outputs" if len(returned) != 1 else alone
            many = f"{len(self.outputs)} outputs" if len(self.outputs) != 1 else "one output"
            told = f"the function returned {made} in place of {many}: {', '.join(self.names)}"
            raise BadReturn(f"verify: {told}")
        return returned

    def called(self, point: FloatPoint) -> list[Array]:
        """The same as arrays of the right shapes."""
        shapes = [tuple(int(d) for d in o.shape) for o in self.outputs]
        parts = zip(self.returned(point), shapes, self.names, strict=True)
        return [as_real_array(v, s, n) for v, s, n in parts]


def _is_between(value: Any, low: float, high: float) -> bool:
    sizes = np.abs(np.asarray(value, dtype=float))
    return bool(np.all(np.isfinite(sizes) & ((sizes == 0) | ((sizes >= low) & (sizes <= high)))))
