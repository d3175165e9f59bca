"""Which changed derivative is the candidate: agreement to rounding at all points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from symad.verification.fields.prime_fields import Array
from symad.verification.mistakes.words import factor_of

ROUNDINGS = 1024.0
"""The number of roundings of the largest value that both sides together may differ by."""

TOLD = 1000.0
"""A difference counts if it is at least this many times as large as its rounding error."""

ALIKE = 1e-6
"""The largest relative disagreement of two differences."""

MIN_NUMBERS = 4
"""The least number of elements and points at which there must be a difference: fewer say too little."""


@dataclass(frozen=True)
class Change:
    """A mistake, and how it changes the derivative.

    Args:
        rank: simple mistakes have small ones.
        words: its name; ``{}`` stands for what `scaled` finds.
        effect: the change of the derivative, points first; for `scaled` that by leaving a part out.
        scaled: whether the part may also have another factor: "sign" and "factor" get words of their own.
    """

    rank: tuple[float, ...]
    words: str
    effect: Array
    scaled: str = ""


@dataclass(frozen=True)
class Difference:
    """Candidate minus right derivative at some points, flat."""

    right: Array
    found: Array
    eps: float
    """The roundoff of the candidate's numbers."""
    parts: Sequence[slice]
    """Where each output lies."""
    counts: frozenset[int] = frozenset()
    """The numbers of elements of the sums in the function and its derivative."""

    def of(self, part: slice) -> Array:
        """The difference of one output."""
        return self.found[:, part] - self.right[:, part]

    def scale(self, part: slice) -> Array:
        """The largest values of one output at each point."""
        both = np.abs(np.concatenate([self.found[:, part], self.right[:, part]], axis=1))
        return both.max(axis=1, keepdims=True) if both.shape[1] else np.zeros((len(both), 1))

    def floor(self, part: slice) -> Array:
        """What roundings may do, at each point."""
        return ROUNDINGS * self.eps * self.scale(part)

    def shows(self, part: slice) -> bool:
        """Whether an output differs by enough, at enough points and in enough elements."""
        apart = np.abs(self.of(part)) > TOLD * self.floor(part)
        return int(apart.sum()) >= min(MIN_NUMBERS, len(apart)) and int(apart.any(axis=1).sum()) >= 2

    @property
    def right_points(self) -> Array:
        """The points at which all outputs agree with the right derivative."""
        right = [np.all(np.abs(self.of(part)) <= self.floor(part), axis=1) for part in self.parts]
        return np.logical_and.reduce(right)

    def agrees(self, part: slice, effect: Array) -> bool:
        """Whether a change explains one output."""
        wanted, made, allowed = self.of(part), effect[:, part], self.allowed[part.start, part.stop]
        if not np.all(np.abs(wanted[0] - made[0]) <= allowed[0]):  # most are sorted out here
            return False
        return bool(np.all(np.isfinite(made)) and np.all(np.abs(wanted - made) <= allowed))

    @cached_property
    def allowed(self) -> dict[tuple[int, int], Array]:
        """How far a change may be from the difference, at each point; by the ends of an output."""
        made = {}
        for part in self.parts:
            size = np.abs(self.of(part)).max(axis=1, keepdims=True, initial=0.0)
            made[part.start, part.stop] = ALIKE * size + self.floor(part)
        return made

    def may_be(self, effect: Array) -> bool:
        """Whether a change explains at least one output at the first point."""
        for part in self.parts:
            wanted, allowed = self.of(part)[0], self.allowed[part.start, part.stop][0]
            if np.any(np.abs(wanted) > allowed) and np.all(np.abs(wanted - effect[part]) <= allowed):
                return True
        return False


def name_in(change: Change, difference: Difference, wrong: Sequence[int], every: Sequence[int]) -> str:
    """The name of a change, if it explains the outputs ``wrong`` and leaves the others as they are."""
    parts = [difference.parts[k] for k in wrong]
    effect, words = change.effect, change.words
    if change.scaled:
        scale = _scale(change, difference, parts)
        effect = effect * (1 - scale)
        if abs(scale) > 1e-7:
            factor = factor_of(scale)
            if not factor:
                return ""
            what = "wrong sign" if factor == "-1" else f"missing factor {factor}"
            words = change.scaled.replace("{}", what, 1)  # names such as x_{1} may have braces, too
            many = factor.removeprefix("1/")
            if many.isdigit() and int(many) > 2 and int(many) in difference.counts:
                swapped = f"a sum of {many} elements in place of their mean"
                if not factor.startswith("1/"):
                    swapped = f"a mean of {many} elements in place of their sum"
                words += f" ({swapped}?)"
    if any(not difference.agrees(part, effect) for part in parts):
        return ""
    rest = [difference.parts[k] for k in every if k not in wrong]
    return words if all(difference.agrees(part, effect) for part in rest) else ""


def _scale(change: Change, difference: Difference, parts: Sequence[slice]) -> float:
    """How often a part counts in the candidate: 1 is right, 0 leaves it out; found by least squares."""
    wanted = np.concatenate([(difference.of(p) / (difference.scale(p) + 1e-300)).ravel() for p in parts])
    made = np.concatenate([(change.effect[:, p] / (difference.scale(p) + 1e-300)).ravel() for p in parts])
    square = float(made @ made)
    if not square or not np.isfinite(square):
        return 0.0
    scale = 1 - float(wanted @ made) / square
    return 0.0 if abs(scale) < 1e-7 else scale
