"""Limits of a verification, and the clock that stops it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from symad.verification.signatures import Unsupported


@dataclass(frozen=True)
class Budget:
    """What a verification may use; it stops hard and says so.

    Args:
        seconds: time for one certificate.
        proof_seconds: of these, the time for exact normal forms.
        residues: the largest number of residues of one node in all lanes.
        terms: the largest number of terms of a polynomial in an exact normal form.
        points: points tried in the search for a witness.
        memory: bytes by which the process may grow.
    """

    seconds: float = 20.0
    proof_seconds: float = 4.0
    residues: int = 1 << 26
    terms: int = 4000
    points: int = 24
    memory: int = 4 << 30


class OutOfBudget(Unsupported):
    """The time or size allowed was used up."""


@dataclass(eq=False)
class Clock:
    """Runs from when it is made."""

    budget: Budget
    start: float = field(default_factory=time.monotonic)
    stopped: str = ""
    """What was used up when a computation was interrupted: time or memory."""

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start

    def check(self) -> None:
        """Stop when the time is used up.

        Raises:
            OutOfBudget: it is.
        """
        if self.stopped or self.spent > self.budget.seconds:
            raise OutOfBudget(self.used_up)

    @property
    def used_up(self) -> str:
        """What to tell when the budget is used up."""
        if self.stopped == "memory":
            return f"the memory allowed ({self.budget.memory >> 20} MiB) was used up"
        return f"the time allowed ({self.budget.seconds:g} s) was used up"

    def check_size(self, count: int) -> None:
        """Refuse arrays that are too large.

        Raises:
            OutOfBudget: they are.
        """
        if count > self.budget.residues:
            raise OutOfBudget(f"an array of {count} residues is larger than allowed ({self.budget.residues})")
