"""`error_bound`: how far rounding may move the results of printed code, over a whole box of inputs.

Let δ_n be the rounding of the n-th operation, |δ_n| <= ½ulp of its value. By the mean value theorem the
computed result differs from the exact one by Σ_n ∂y/∂δ_n(ξ)·δ_n, where ξ lies between no rounding and all
roundings. Ranges that hold the values of every such ξ give a bound without a remainder. The box is halved
where the bound is largest, until it is no longer much larger than at single points.

Source: Higham, Accuracy and Stability of Numerical Algorithms, sections 1.6 and 3.1; the search is that of
Moore, Kearfott, Cloud, Introduction to Interval Analysis, section 11.2.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TypeAlias

import flint
import numpy as np
from flint import arb

from symad.core.arrays import Number
from symad.core.graph import Node, topological
from symad.core.process import without_collecting
from symad.evaluation.intervals import INTERVALS, Interval, OpenTruth, interval
from symad.numbers.values import value_of
from symad.numeric.stability.roundings import FloatType, Rounding
from symad.transforms.cotangents import gradient_nodes

Box: TypeAlias = "tuple[tuple[float, float], ...]"
"""The smallest and the largest value of each element of the inputs, in order."""

CLOSE = 1.02
"""The search ends when the worst box has a bound of at most this factor times that of a single point."""

WIDE = 16
"""A side whose ends differ by a larger factor is cut at their geometric mean."""

BITS = 80
"""The precision of the ranges."""


@dataclass(frozen=True)
class Bounded:
    """The bounds in one box: of the error, of its ratio to the result, and what each rounding contributes."""

    absolute: float
    relative: float
    parts: tuple[float, ...]
    sign: int = 0
    """The sign of the result; 0 where it has none or it is not known."""
    lost: int = -1
    """The first rounding whose value is not known; -1 where all are."""


class Analysis:
    """The error of one number that a program computes, as a function of a box."""

    def __init__(
        self,
        result: Node,
        inputs: Sequence[Node],
        roundings: Sequence[Rounding],
        precision: FloatType,
        agree: Callable[[Node, Node], bool],
    ) -> None:
        """``result`` has no axes and is a node of the rounded program.

        ``agree`` tells whether two branches are the same function without roundings.
        """
        self.agree = agree
        reached = set(topological([result]))
        self.result, self.inputs, self.precision = result, inputs, precision
        self.roundings = [r for r in roundings if r.delta in reached]
        self.slopes = gradient_nodes(result, [r.delta for r in self.roundings])

    @cached_property
    def order(self) -> list[Node]:
        """Every node after its arguments, and every rounding after the value that it rounds."""
        found: list[Node] = []
        seen = set(self.inputs)
        for each in self.roundings:
            needed = [each.exact, *([] if each.size is None else [each.size])]
            found += [*topological(needed, seen), each.delta]
            seen.update(found)
        slopes = [s for s in self.slopes if isinstance(s, Node)]
        return found + topological([self.result, *slopes], seen)

    @without_collecting
    def at(self, box: Box) -> Bounded:
        """The bounds in a box."""
        before, flint.ctx.prec = flint.ctx.prec, BITS
        try:
            return self._at(box)
        finally:
            flint.ctx.prec = before

    def _at(self, box: Box) -> Bounded:
        found: dict[Node, Number] = dict(zip(self.inputs, _entered(self.inputs, box), strict=True))
        deltas = {r.delta: r for r in self.roundings}
        sizes: dict[Node, Number] = {}
        for node in self.order:
            rounding = deltas.get(node)
            if rounding is None:
                found[node] = value_of(node, found, INTERVALS)
            else:
                size = sizes[node] = self._size(rounding, found)
                if _total(size) == math.inf:
                    parts = (math.inf,) * len(self.roundings)
                    return Bounded(math.inf, math.inf, parts, 0, self.roundings.index(rounding))
                found[node] = _spread(_around_zero, size)
        parts = tuple(
            _total(_spread(_product, found[slope], sizes[r.delta])) if isinstance(slope, Node) else 0.0
            for slope, r in zip(self.slopes, self.roundings, strict=True)
        )
        absolute = math.fsum(parts) * (1 + 2.0**-40)
        absolute = math.inf if math.isnan(absolute) else absolute
        smallest = interval(found[self.result]).smallest
        relative = 0.0 if absolute == 0 else absolute / smallest if smallest else math.inf
        return Bounded(absolute, relative, parts, _sign(interval(found[self.result])))

    def _size(self, rounding: Rounding, found: dict[Node, Number]) -> Number:
        """The largest rounding of each element; infinite where the value is not known or overflows."""
        value = found[rounding.exact]
        if rounding.turns is not None:
            jumps = _spread(_turned, *(found[node] for node in rounding.turns))
            return jumps if not _total(jumps) or not self.agree(*rounding.turns[1:]) else 0.0 * jumps
        if rounding.size is not None:
            n, unit = rounding.terms, self.precision.unit
            rate, least = n * unit / (1 - n * unit), n * self.precision.tiny
            total = found[rounding.size]
            return _spread(lambda v, t: self._fits(v, rate * interval(t).largest + least), value, total)
        return _spread(lambda v: self._fits(v, rounding.ulps * self._ulp(v)), value)

    def _ulp(self, value: Number) -> float:
        """A unit in the last place of the largest value."""
        largest = interval(value).largest
        if largest == 0 or not math.isfinite(largest):
            return 0.0
        return 2 * self.precision.unit * math.ldexp(1.0, math.frexp(largest)[1] - 1)

    def _fits(self, value: Number, size: float) -> float:
        """The rounding of a value that does not overflow, with that of numbers too small for all digits."""
        return size + self.precision.tiny if interval(value).largest <= self.precision.largest else math.inf


def _spread(function: Callable[..., Number], *values: Number) -> Number:
    """A function of numbers, or of each element of arrays."""
    if not any(isinstance(v, np.ndarray) for v in values):
        return function(*values)
    return np.frompyfunc(function, len(values), 1)(*values)


def _entered(inputs: Sequence[Node], box: Box) -> list[Number]:
    """The ranges of the inputs, as numbers or as arrays."""
    ranges = iter([Interval(arb(low), arb(high)) for low, high in box])
    made: list[Number] = []
    for node in inputs:
        shape = tuple(int(d) for d in node.shape)
        array = np.empty(shape, dtype=object)
        for index in np.ndindex(shape):
            array[index] = next(ranges)
        made.append(array if shape else array[()])
    return made


def _around_zero(size: float) -> Interval:
    return Interval(arb(-size), arb(size))


def _product(slope: Number, size: float) -> float:
    """What a rounding contributes; one of size 0 contributes nothing, whatever the slope."""
    return interval(slope).largest * size if size else 0.0


def _turned(condition: Number, a: Number, b: Number) -> float:
    """|a − b| where the condition is not the same everywhere."""
    return (interval(a) - b).largest if isinstance(condition, OpenTruth) else 0.0


def _sign(value: Interval) -> int:
    return (1 if value.low > 0 else -1) if value.smallest else 0


def _total(values: Number) -> float:
    return math.fsum(values.ravel()) if isinstance(values, np.ndarray) else float(values)


def search(analysis: Analysis, box: Box, kind: str, boxes: int) -> Bounded:
    """The bounds where the bound of one kind is largest.

    Args:
        analysis: of one result.
        box: the box.
        kind: "absolute" or "relative".
        boxes: the largest number of boxes that are looked at.
    """
    number = count()
    first = analysis.at(box)
    waiting = [(-getattr(first, kind), next(number), box, first)]
    seen, signs = 0.0, set[int]()
    for _ in range(boxes // 3):
        size, _, worst, _ = waiting[0]
        middle = analysis.at(tuple((m, m) for m in map(_middle, worst)))
        seen, signs = max(seen, _finite(getattr(middle, kind))), signs | {middle.sign}
        hopeless = kind == "relative" and {1, -1} <= signs  # the result is 0 in between
        halves = [] if hopeless or -size <= CLOSE * seen else _halves(worst, box)
        if not halves:
            break
        heapq.heappop(waiting)
        for half in halves:
            made = analysis.at(half)
            heapq.heappush(waiting, (-getattr(made, kind), next(number), half, made))
    return waiting[0][3]


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _middle(side: tuple[float, float]) -> float:
    """The middle, of a side over several powers of two that of its exponents."""
    low, high = side
    wide = abs(low) * WIDE < abs(high) or abs(high) * WIDE < abs(low)
    if wide and low * high > 0:
        return math.copysign(math.sqrt(abs(low)) * math.sqrt(abs(high)), high)
    return low + (high - low) / 2


def _halves(box: Box, whole: Box) -> list[Box]:
    """The box in two, along the side that is longest for its range; nothing for a point."""
    lengths = [(b - a) / ((d - c) or 1.0) for (a, b), (c, d) in zip(box, whole, strict=True)]
    k = max(range(len(box)), key=lengths.__getitem__, default=-1)
    if k < 0:
        return []
    low, high = box[k]
    middle = _middle(box[k])
    if not low < middle < high:
        return []
    return [(*box[:k], side, *box[k + 1 :]) for side in ((low, middle), (middle, high))]
