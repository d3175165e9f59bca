"""What measurements have found about one output of a numeric function, and the verdict on it.

In half precision a single rounding may be as large as an error of 1 %, so single points cannot tell them
apart; the median error does: roundings have either sign, a wrong formula has one. With unit roundoff u,
r = (computed − v)/(u v) at a point is of either sign for roundings that differ from point to point. Those of
constants do not differ: they shift the median by at most their effect E_c/|v|. A median beyond 1 + E_c/|v|
(the first for the rounding of the result), and beyond `CERTAIN` times its own deviation, is one of the
formula.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import mpmath
import numpy as np

from symad.verification.certificate.certificate import Entry, Loss
from symad.verification.certificate.report import RAISED
from symad.verification.certificate.witness import Witness, digits_of, place_of
from symad.verification.fields.prime_fields import Array
from symad.verification.measuring.precisions import SEEN, Precision
from symad.verification.measuring.task import KIND, SPECIAL, ZEROS

if TYPE_CHECKING:
    from symad.verification.certificate.witness import Nested


# ---- the median error of a program of low precision ----------------------------------------------


LEAST, CERTAIN = 24, 8.0
"""The least number of points of a median, and how many deviations it must be away from 0."""

NORMAL = 1.86
"""For n normal numbers, the standard deviation of their median is NORMAL/√n times their median deviation."""

STEADY = 8.0
"""A point counts if roundings of the arguments move the value by at most STEADY of its own roundings."""


@dataclass(frozen=True)
class SamplePoint:
    """One point: its region, its numbers as text, and what was computed there for an exact value."""

    region: bytes
    where: Mapping[str, Nested]
    got: Array
    right: Array


@dataclass
class Means:
    """The errors of one output at the points that were visited, in units of the roundoff."""

    places: list[SamplePoint] = field(default_factory=list)
    errors: list[Array] = field(default_factory=list)
    """Flat; NaN where an element does not count."""
    fixed: list[Array] = field(default_factory=list)
    """The effects of constants."""

    def add(self, place: SamplePoint, moved: Array, fixed: Array, limits: Precision) -> None:
        """Keep the errors of one point; roundings, and those of constants, ``moved`` the exact values."""
        got, exact = (np.asarray(v, dtype=float).ravel() for v in (place.got, place.right))
        unit, size = limits.eps / 2, np.abs(exact)
        counts = np.isfinite(got) & (size > limits.smallest_normal / unit) & (size < limits.max)
        counts &= moved.ravel() <= STEADY * size
        with np.errstate(all="ignore"):
            self.errors.append(np.where(counts, (got - exact) / (unit * exact), np.nan))
            self.fixed.append(np.where(counts, fixed.ravel() / size, np.nan))
        self.places.append(place)

    def wrong(self, limits: Precision) -> tuple[Witness, str] | None:
        """The point that shows a median error beyond roundings, and that error in words."""
        for rows in self._groups():
            errors, fixed = (_with_whole(np.stack([v[k] for k in rows])) for v in (self.errors, self.fixed))
            middle, allowed = _allowed(errors, fixed, limits)
            if not np.any(np.abs(middle) > allowed):
                continue
            column = int(np.argmax(np.abs(middle) > allowed))
            element = int(np.nanargmax(np.abs(middle[:-1]))) if column == len(middle) - 1 else column
            place = self.places[rows[int(np.nanargmax(np.abs(errors[:, element])))]]
            at = tuple(int(k) for k in np.unravel_index(element, np.shape(place.right)))
            share = 100 * float(middle[column]) * limits.eps / 2
            reason = (
                f"the median error at {len(rows)} points is {share:.2g} % of the value: roundings of "
                f"{limits.name} explain {100 * float(allowed[column]) * limits.eps / 2:.2g} %"
            )
            return Witness(place.where, digits_of(place.right[at]), repr(float(place.got[at])), at), reason
        return None

    def _groups(self) -> Iterator[list[int]]:
        """All points, and those of each region, if they are enough."""
        every = list(range(len(self.places)))
        regions = dict.fromkeys(p.region for p in self.places)
        for rows in [every, *([k for k in every if self.places[k].region == r] for r in regions)]:
            if len(rows) >= LEAST:
                yield rows


def _with_whole(values: Array) -> Array:
    """Rows of elements, and their median as one more element."""
    return np.column_stack([values, _median(values, 1)])


def _median(values: Array, axis: int) -> Array:
    """The median of what counts, which a few values that underflow do not move; NaN if nothing does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # all of it is NaN
        return np.asarray(np.nanmedian(values, axis=axis))


def _allowed(errors: Array, fixed: Array, limits: Precision) -> tuple[Array, Array]:
    """For each element its median error, and what may be one of roundings; infinite for too few points."""
    count, middle = (~np.isnan(errors)).sum(axis=0), _median(errors, 0)
    spread = NORMAL * _median(np.abs(errors - middle), 0) / np.sqrt(np.maximum(count, 1))
    least = np.maximum(1 + _median(fixed, 0), 2 * SEEN / limits.eps)
    return np.nan_to_num(middle), np.where(count >= LEAST, np.maximum(least, CERTAIN * spread), np.inf)


SUBNORMAL = 5e-324
"""The smallest float."""

SINGLE_SIZED = 1e-3
"""A smaller relative error may be one of roundings in single precision."""

MAX_RAISED = 5
"""The maximum number of calls of a function of which each raises."""

RETURNS = {
    "no value (NaN)": "returns no value (NaN)", "overflow": "returns an infinite value",
    "no value of the right kind": "returns no value of the right kind",
}  # fmt: skip
"""What a function does, by the keyword of a loss; of exceptions the keyword says it."""


@dataclass
class OutputFinding:
    """What was found about one output."""

    points: int = 0
    sampled: int = 0
    """Further points, at which floats were compared."""
    relative: float = 0.0
    ulps: float = 0.0
    seen: float = SEEN
    """What a point must be able to show, in the precision of the results."""
    best: Array | None = None
    """For each element the smallest relative error that would have been seen at some point."""
    alive: Array | None = None
    """Which elements are somewhere larger than what underflows."""
    largest: Array | None = None
    """The largest exact value of each element."""
    scale: dict[bytes, float] = field(default_factory=dict)
    """The largest value at an ordinary point of each region, or where something turns."""
    regions: dict[bytes, bool] = field(default_factory=dict)
    """Whether a point of each region counts; where everything is 0 there is nothing to be seen."""
    wrong: Witness | None = None
    excess: float = 0.0
    losses: list[Loss] = field(default_factory=list)
    stopped: str = ""
    """Why a point that had to be measured was not."""
    ended: str = ""
    """Why no more points were measured, after some that agree."""
    unsteady: Mapping[str, Nested] | None = None
    """A point at which two calls gave different values, at least one of them wrong."""
    means: Means = field(default_factory=Means)
    mean: str = ""
    """How large the mean error is, if it is wrong."""

    @property
    def stuck(self) -> list[Loss]:
        """Ordinary points, or points of special directions, without a value."""
        kinds = ("ordinary", KIND, ZEROS, SPECIAL)
        return [loss for loss in self.losses if loss.kind in kinds and loss.word != "digits lost"]

    @property
    def is_settled(self) -> bool:
        """Whether more points change nothing: it is wrong, or undecided."""
        return bool(self.wrong or self.stopped or self.stuck or self.unsteady)

    @property
    def always_raises(self) -> bool:
        """Whether there were several calls, and each raised."""
        return not self.points and len(self.losses) >= MAX_RAISED

    def accuse_means(self, limits: Precision) -> None:
        """Call an output of low precision wrong whose mean error is none of roundings."""
        found = None if self.wrong else self.means.wrong(limits)
        if found is not None:
            self.wrong, self.mean = found

    def end(self, reason: str) -> None:
        """Measure no more points, for a reason."""
        self.ended = f"{reason} after {self.points} points"

    def keep(self, region: bytes, resolved: Array, right: Array) -> None:
        """Keep what one point shows: the smallest relative error that would have been seen there."""
        alive = resolved < np.inf
        counts = bool(np.any(resolved <= self.seen)) or not alive.any()
        self.regions[region] = self.regions.get(region, False) or counts
        self.best = resolved if self.best is None else np.minimum(self.best, resolved)
        self.alive = alive if self.alive is None else self.alive | alive
        sizes = np.where(finite(right), abs(right), mpmath.mpf(0))
        self.largest = sizes if self.largest is None else np.maximum(self.largest, sizes)

    def rescale(self, region: bytes, right: Array) -> None:
        """Keep the largest value of a region."""
        sizes = (float(abs(v)) for v in right[finite(right)])
        self.scale[region] = max(self.scale.get(region, 0.0), *sizes, 0.0)


def finite(values: Array) -> Array:
    """Which numbers are finite."""
    found = np.frompyfunc(lambda v: bool(mpmath.isfinite(mpmath.mpf(v))), 1, 1)(values)
    return np.asarray(found).astype(bool)


def entry_of(name: str, w: OutputFinding, assumes: tuple[str, ...]) -> Entry:
    """The verdict on the formula of one output."""
    known = np.zeros(0) if w.best is None else w.best.ravel()
    seen = max([w.seen / 2, *known[np.isfinite(known)].tolist()])
    figures = {"points": w.points, "relative error": w.relative, "ulps": w.ulps, "would have seen": seen}
    calls = w.points + sum(loss.word.startswith(RAISED) for loss in w.losses)
    points, called_at = (f"{k} point{'s' * (k != 1)}" for k in (w.points, calls))
    sides = f", in {len(w.regions)} regions between its branches" * (len(w.regions) > 1)
    called = f"called at {called_at}"
    if w.wrong is not None:
        times = f"the error is {w.excess:.3g} times what roundings explain"
        reason = w.mean or (times if np.isfinite(w.excess) else "")
        if w.seen == SEEN and w.wrong.gap < SINGLE_SIZED:
            reason += '; computed_in="float32" judges what computes in float32'
        return Entry(name, "refuted", called, 0.0, assumes, w.wrong, None, reason, figures)
    reason = _why_not(w)
    if reason:
        return Entry(name, "undecided", called, 1.0, assumes, None, None, reason, figures)
    lost = "but for values that floats do not hold"
    close = f"to {w.relative:.2g} relative ({w.ulps:.3g} ulps)" if np.isfinite(w.relative) else lost
    claim = (
        f"agrees with 50 digits at {points}{sides}, {close}"
        + f", and with floats at {w.sampled} more" * (w.sampled > 0)
        + f"; an error of {seen:.1g} would have been seen"
    )
    return Entry(name, "measured", claim, 1.0, assumes, reason=w.ended, measured=figures)


def _why_not(w: OutputFinding) -> str:
    """Why an output does not count as measured; empty if it does."""
    if w.unsteady is not None:
        return f"two calls at the same point gave different values, at {place_of(w.unsteady)}"
    if w.stopped:
        return w.stopped
    if w.stuck:
        return f"the function {RETURNS.get(w.stuck[0].word, w.stuck[0].word)}, at {w.stuck[0].place}"
    if not w.points:
        return "no point was found at which the exact value exists"
    blind = np.zeros(0, dtype=bool)
    if w.best is not None and w.alive is not None and w.largest is not None:
        least = SUBNORMAL if w.alive.any() else 0.0  # beside others, what is as small as e^(-1e9) may be 0
        blind = (w.best > w.seen) & (w.alive | np.asarray(w.largest > least).astype(bool))
    if blind.any():
        count = int(blind.sum())
        return (
            f"at no point tried would a relative error of {w.seen:.1g} have been seen"
            + (f" in {count} of {blind.size} elements" if blind.size > 1 else "")
            + ": roundings explain larger ones"
        )
    missed = sum(not counts for counts in w.regions.values())
    if missed:
        return f"in {missed} of {len(w.regions)} regions no point would have shown an error of {w.seen:.1g}"
    return ""
