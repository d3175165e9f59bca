"""The median error of a program of low precision: roundings have either sign, a wrong formula has one.

In half precision a single rounding may be as large as an error of 1 %, so single points cannot tell them
apart. With unit roundoff u, r = (computed − v)/(u v) at a point is of either sign for roundings that differ
from point to point. Those of constants do not differ: they shift the median by at most their effect E_c/|v|.
A median beyond 1 + E_c/|v| (the first for the rounding of the result), and beyond `CERTAIN` times its own
deviation, is one of the formula.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from symad.verification.certificate.witness import Witness, digits_of
from symad.verification.fields.prime_fields import Array
from symad.verification.measuring.precisions import SEEN, Precision

if TYPE_CHECKING:
    from symad.verification.certificate.witness import Nested

LEAST, CERTAIN = 24, 8.0
"""The least number of points of a median, and how many deviations it must be away from 0."""

NORMAL = 1.86
"""The deviation of a median of n normal numbers is so many times their median deviation, over √n."""

STEADY = 8.0
"""Points count at which roundings move a value by at most so many of its own."""


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
