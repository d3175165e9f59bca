"""Points at which nodes have real values: ordinary ones, and what a search for the domain finds.

Small graphs are evaluated in balls of Arb, where a finite ball is a value at the point and around it. Where
balls meet a boundary, as arcsin at what is 1 everywhere, two precisions must agree. Large graphs are
evaluated in floats of two precisions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import islice
from random import Random
from typing import Any

import mpmath
import numpy as np

from symad.core.arrays import Number
from symad.core.dims import size
from symad.core.graph import Node, topological
from symad.errors import SymadError
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.sources import Input, symbol_of
from symad.ops.elementwise.powers import Pow
from symad.ops.linalg.cholesky import Cholesky
from symad.verification.budget import operations
from symad.verification.fields.integer_inputs import integer_inputs
from symad.verification.fields.prime_fields import Array
from symad.verification.values.domains import divisors, margins, may_lack_values
from symad.verification.values.evaluation import UNUSABLE, Way, in_digits, in_floats, values_of
from symad.verification.values.hostile_points import exactly, is_manageable
from symad.verification.values.points import as_floats, is_whole, points

ORDINARY = 27
"""Points of ordinary sizes that are tried."""

STEPS, GROW, SHRINK = 600, 1.8, 0.88
"""Steps of the search, and how their size follows success and failure: about one in five succeeds."""

MAX_OPERATIONS_IN_BALLS = 4_000
"""The maximum number of scalar operations that balls evaluate; beyond it floats decide."""

MOST_INPUTS, MOST_ELEMENTS = 100_000, 10_000_000
"""Elements of inputs beyond which points are floats, and of all nodes beyond which nothing is evaluated."""

FEW = 9
"""Points that are tried where inputs are large."""

NEAR = 10**9 + 7
"""The inverse of the relative distance to points of few digits."""

AGREED, ROUGHLY = 1e-25, 0.1
"""Relative differences up to which numbers of 50 and 100 digits agree, and of 7 and 16 digits."""

BITS, DIGITS = 128, (50, 100)
"""Precision of balls, and the two decimal precisions compared."""


class TooLarge(SymadError):
    """A graph is too large to be evaluated."""


def is_small(outputs: Sequence[Node]) -> bool:
    """Whether outputs are evaluated in balls."""
    try:
        return operations(topological(outputs)) <= MAX_OPERATIONS_IN_BALLS
    except LookupError:  # an op of somebody else's, which does not say what it costs
        return False


def is_too_large(outputs: Sequence[Node]) -> bool:
    """Whether outputs are evaluated nowhere."""
    return bool(sum(size(n.shape) for n in topological(outputs)) > MOST_ELEMENTS)


@dataclass(frozen=True)
class KnownPoint:
    """A point, as exact numbers, and what is known there; of a large one as floats."""

    point: Mapping[Node, Any]
    is_exact: bool = True

    @cached_property
    def floats(self) -> dict[Node, Array | float]:
        """The nearest floats."""
        return {node: as_floats(value) for node, value in self.point.items()}

    def valued(self, outputs: Sequence[Node]) -> list[Array]:
        """For each output which elements have a value."""
        if not (self.is_exact and is_small(outputs)):
            return self.by_floats(outputs)
        rough = [~np.isnan(_as_floats(v)) for v in values_of(outputs, in_floats(self.floats))]
        if not any(r.any() for r in rough):
            return rough
        if not is_manageable(outputs, self.floats):
            return self.by_floats(outputs)
        found = self.precisely(outputs)
        if all((f | ~r).all() for f, r in zip(found, rough, strict=True)):
            return found
        return [f | g for f, g in zip(found, self._in_digits(outputs), strict=True)]

    def precisely(self, outputs: Sequence[Node]) -> list[Array]:
        """The same in balls, whose numbers have no largest one."""
        from symad.verification.values.balls import in_balls

        with in_balls(self.point, BITS) as way:
            return [~np.asarray(way.missing(v)).astype(bool) for v in values_of(outputs, way)]

    def _in_digits(self, outputs: Sequence[Node]) -> list[Array]:
        first, second = (in_digits(self.point, digits) for digits in DIGITS)
        values = steady_values(outputs, (first, second), AGREED)
        agree = np.frompyfunc(_agree, 2, 1)
        return [np.asarray(agree(a, b)).astype(bool) for a, b in values]

    def by_floats(self, outputs: Sequence[Node]) -> list[Array]:
        """The same in floats of two precisions."""
        ways = in_floats(self.floats, np.float32), in_floats(self.floats)
        values = steady_values(outputs, ways, ROUGHLY)
        return [~np.isnan(_as_floats(a)) & ~np.isnan(_as_floats(b)) for a, b in values]


def have_values(outputs: Sequence[Node]) -> bool:
    """Whether each element of some nodes has a value at one of a few points, by floats."""
    try:
        found = [place.by_floats(outputs) for place in islice(places(outputs), FEW)]
    except TooLarge:
        return False
    return all(np.any(flags, axis=0).all() for flags in zip(*found, strict=True))


def _as_floats(value: Any) -> Array:
    return np.asarray(value, dtype=float)


def _agree(a: Number, b: Number) -> bool:
    """Whether two numbers are close; what is 0 by an identity differs by its rounding."""
    a, b = mpmath.mpf(a), mpmath.mpf(b)
    if not (mpmath.isfinite(a) and mpmath.isfinite(b)):
        return False
    return bool(abs(a - b) <= AGREED * max(1, abs(a), abs(b)))


def places(outputs: Sequence[Node]) -> Iterator[KnownPoint]:
    """Points at which some outputs may have values, the last one searched for.

    Raises:
        TooLarge: the graph is not evaluated.
    """
    nodes = topological(outputs)
    inputs = [n for n in nodes if isinstance(n.op, Input)]
    integers = integer_inputs(nodes)
    if is_too_large(outputs):
        raise TooLarge(f"graphs of more than {MOST_ELEMENTS} elements are not evaluated")
    if sum(size(n.shape) for n in inputs) > MOST_INPUTS:
        yield from (KnownPoint(point, False) for point in large_points(inputs, integers))
        return
    tried = []
    for point in points(inputs, integers, ORDINARY):
        tried.append(KnownPoint(_moved_a_little(point, integers)))
        yield tried[-1]
    wanted = [m.inside for m in margins(nodes)]
    if wanted and inputs:
        for point in _searched(wanted, tried, integers):
            yield from (KnownPoint(_moved_a_little(point, integers, seed)) for seed in range(BESIDE))


BESIDE = 6
"""Points next to one that was searched for: where it is the only one, there is no open set."""


def _moved_a_little(
    point: Mapping[Node, Any], integers: Mapping[Node, Any], seed: int = 0
) -> dict[Node, Any]:
    """A point beside, on no line such as x = 1: what has a value there alone has none on an open set."""
    rng = Random(seed)

    def moved(value: Fraction) -> Fraction:
        part = Fraction(rng.randrange(1, NEAR), NEAR * NEAR)
        return value + (part if seed % 2 == 0 else -part) * (value or 1)

    each = np.frompyfunc(moved, 1, 1)
    return {n: v if n in integers or is_whole(n) else each(v) for n, v in point.items()}


def large_points(
    inputs: Sequence[Node], integers: Mapping[Node, tuple[int, int]]
) -> Iterator[dict[Node, Any]]:
    """Points in floats between −2 and 2, every third one of positive numbers."""
    rng = np.random.default_rng(0)
    for k in range(FEW):
        yield {node: _drawn(node, integers.get(node), k % 3 == 2, rng) for node in inputs}


def _drawn(node: Node, span: tuple[int, int] | None, positive: bool, rng: np.random.Generator) -> Any:
    shape, symbol = tuple(int(d) for d in node.shape), symbol_of(node)
    if span is not None:
        return rng.integers(span[0], max(span[1], span[0] + 1), size=shape)
    drawn = rng.uniform(-2, 2, size=shape)
    if is_whole(node):
        drawn = np.round(4 * drawn)
    if getattr(symbol, "is_nonpositive", None):
        return -abs(drawn)
    return abs(drawn) if positive or getattr(symbol, "is_nonnegative", None) else drawn


def _searched(
    wanted: Sequence[Node], starts: Sequence[KnownPoint], integers: Mapping[Node, Number]
) -> Iterator[dict[Node, Number]]:
    """The point closest to where some nodes are positive, by random steps downhill.

    What is minimized is how many of the nodes have no value, and then how far the others are below 0.
    """
    rng = np.random.default_rng(0)
    here = min((p.floats for p in starts), key=lambda p: _violation(wanted, p))
    least, size = _violation(wanted, here), 1.0
    for _ in range(STEPS):
        there = {n: v if n in integers or is_whole(n) else _moved(n, v, size, rng) for n, v in here.items()}
        violation = _violation(wanted, there)
        if violation < least:
            here, least, size = there, violation, size * GROW
            if violation == (0, 0.0):
                break
        else:
            size *= SHRINK
    yield exactly(here)


def _violation(wanted: Sequence[Node], point: Mapping[Node, Number]) -> tuple[int, float]:
    values = [np.asarray(v, dtype=float) for v in values_of(wanted, in_floats(point))]
    missing = sum(int(np.isnan(v).sum()) for v in values)
    below = [np.minimum(v[~np.isnan(v)], 0.0) for v in values]
    return missing, -float(sum(b.sum() for b in below))


def _moved(node: Node, value: Number, size: float, rng: np.random.Generator) -> np.ndarray | float:
    """A point beside, with the signs that the symbol promises."""
    symbol, number = symbol_of(node), np.asarray(value, dtype=float)
    moved = number + size * (np.abs(number) + 1) * rng.normal(size=number.shape)
    if getattr(symbol, "is_nonnegative", None):
        moved = np.abs(moved)
    elif getattr(symbol, "is_nonpositive", None):
        moved = -np.abs(moved)
    return moved if number.shape else float(moved)


# ---- two precisions ----------------------------------------------------------------------------


def steady_values(outputs: Sequence[Node], ways: tuple[Way, Way], apart: float) -> list[tuple[Any, Any]]:
    """The values of some nodes in two ways; nothing where a divisor differs by more than ``apart``."""
    (one, other), (first, second) = ways, [dict(way.point) for way in ways]
    with np.errstate(all="ignore"):
        for node in topological(outputs):
            if node in first:
                continue
            with one.precision():
                a = one.value(node, first)
            with other.precision():
                first[node], second[node] = a, b = a, other.value(node, second)
                lost = _lost(node, first, second, apart)
            if lost is not None and np.any(lost):
                first[node], second[node] = one.without(a, lost), other.without(b, lost)
    return [(first[o], second[o]) for o in outputs]


def _lost(node: Node, first: Mapping[Node, Any], second: Mapping[Node, Any], apart: float) -> Array | None:
    """Which elements of a node are divided by a remainder; None for ops that divide by nothing.

    A divisor has the same value in both ways. Of matrices the results have: of a singular one they differ.
    """
    at = divisors(node)
    try:
        if at:
            lost = [~agree(first[node.args[k]], second[node.args[k]], apart) for k in at]
            if isinstance(node.op, Pow):
                lost = [lost[0] & np.asarray(np.asarray(second[node.args[1]]) < 0, dtype=bool)]
            return reduce(np.logical_or, lost, np.zeros(node.shape, dtype=bool))
        if isinstance(node.op, ElementwiseOp) or not may_lack_values(node):
            return None
        return ~_alike(node, first[node], second[node], apart)
    except UNUSABLE:
        return None


def agree(a: Any, b: Any, apart: float) -> Array:
    """Which elements of two arrays are the same number but for rounding, and not 0."""
    a, b = (np.asarray(v, dtype=object if _is_precise(v) else float) for v in (a, b))
    near = np.asarray(abs(a - b) <= apart * abs(b), dtype=bool) | np.asarray(a == b, dtype=bool)
    return np.asarray(near & np.asarray(b != 0, dtype=bool))


def _is_precise(value: Any) -> bool:
    return isinstance(value, mpmath.mpf) or (isinstance(value, np.ndarray) and value.dtype.hasobject)


def _alike(node: Node, a: Any, b: Any, apart: float) -> Array:
    """Which elements are alike: of factors each for itself, of other matrices all, by the largest ones."""
    a, b = (np.asarray(v, dtype=object if _is_precise(v) else float) for v in (a, b))
    gaps, sizes = abs(a - b), abs(b)
    if not isinstance(node.op, Cholesky) and sizes.size:
        axes = tuple(range(max(sizes.ndim - 2, 0), sizes.ndim))
        gaps, sizes = (np.broadcast_to(np.max(v, axis=axes, keepdims=True), b.shape) for v in (gaps, sizes))
    return np.asarray(gaps <= apart * sizes, dtype=bool)
