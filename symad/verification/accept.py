"""What was seen of a pair, and what lets a verdict pass: it may only become weaker."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from symad.verification.certificate.blame import blame
from symad.verification.certificate.witness import Witness
from symad.verification.fields.prime_fields import Array
from symad.verification.goals import Pair, Verdict
from symad.verification.points import Point
from symad.verification.without_values import Claimed, claimed_of, why, with_values

HELD = ("proved", "tested", "measured")
LOOKED = (*HELD, "refuted", "undecided")
"""The statuses of elements that are looked at: what is refuted needs values, what is undecided may differ."""


@dataclass
class Seen:
    """What was seen of one pair."""

    valued: Array
    """Boolean: both sides, and the function, have values on an open set."""
    differs: Array
    lacks: Array
    """The function has a derivative at a point, and a formula has no value there."""
    outside: Array
    """Of those that differ: only where the function has no value, to which analytic sides continue."""
    witnesses: dict[tuple[int, ...], Witness] = field(default_factory=dict)
    places: list[Point] = field(default_factory=list)
    """Points with a difference, or at which a formula has no value."""
    lacking: str = ""
    """The point at which a formula has no value, as text."""
    agreed: int = 0
    """The number of points at which all elements agreed."""
    looked: bool = False
    """False if the graphs were too large, so that nothing was tried."""
    stopped: str = ""

    @staticmethod
    def nothing(shape: tuple[int, ...]) -> Seen:
        """Before anything is tried."""
        valued, differs, lacks, outside = (np.zeros(shape, dtype=bool) for _ in range(4))
        return Seen(valued, differs, lacks, outside)

    @property
    def settled(self) -> Array:
        """The elements that differ where something is claimed."""
        return self.differs & ~self.outside


def all_differ(pair: Pair) -> Verdict:
    """The verdict that every element differs; the guard has the witnesses."""
    return Verdict(np.full(pair.left.shape, "refuted", dtype=object), "", 0.0)


def accept(pair: Pair, verdict: Verdict, seen: Seen, sizes: str = "") -> Verdict:
    """The verdict that stands after all that was seen of a pair: never a stronger one.

    An element that differs is refuted. One that is called equal needs an open set on which both sides have
    values, and none on which the function has a derivative and the formula has no value.
    """
    status = verdict.status.copy()
    held, wrong = np.isin(status, HELD), status == "refuted"
    differs, lacks = (_fitted(v, status.shape, False) for v in (seen.differs, seen.lacks))
    valued = _fitted(seen.valued, status.shape, True)
    differs = differs & ~(wrong & bool(verdict.witnesses))
    if differs.any():
        found, fault = {**seen.witnesses, **verdict.witnesses}, verdict.blame
        fault = fault or blame(pair.left, pair.right, seen.places)
        status[differs] = "refuted"
        verdict = replace(verdict, witnesses=found, blame=fault, sizes=verdict.sizes or sizes)
    reason = verdict.reason
    settled = _fitted(seen.settled, status.shape, False)
    if (missing := (held | wrong | differs) & ~valued & ~settled).any():
        status[missing] = "undecided"
        reason = _because(reason, seen.stopped or why(_claim(pair)), status, missing)
    if (lacking := held & lacks & ~differs & ~missing).any():
        status[lacking] = "undecided"
        reason = f"at {seen.lacking}"
    return replace(verdict, status=status, reason=reason)


def _claim(pair: Pair) -> Claimed:
    """What has to have values for a pair to say anything."""
    return claimed_of((pair.left, pair.right), pair.function, pair.kind, pair.place[1], pair.domain)


def _because(reason: str, more: str, status: Array, missing: Array) -> str:
    """The reason for elements without values; others may be undecided for their own."""
    if (status[~missing] == "undecided").any():
        return f"{reason}; of {int(missing.sum())} elements {more}"
    return more


def _fitted(flags: Array, shape: tuple[int, ...], empty: bool) -> Array:
    """Flags in the shape of a verdict, which has one element for each axis of a symbolic size.

    ``empty`` is what holds at a size at which there are no elements.
    """
    if flags.shape == shape:
        return flags
    return np.broadcast_to(flags.any() if flags.size else np.asarray(empty), shape)


def with_search(pair: Pair, seen: Seen, watched: Array) -> Seen:
    """What was seen, with a search for values of the elements of which none was met."""
    missing = watched & ~seen.valued & ~seen.settled
    if not missing.any():
        return seen
    (found,) = with_values([_claim(pair)])
    flags = np.ones_like(missing) if found is None else found[0]
    return replace(seen, valued=seen.valued | (flags & missing))
