"""Plans for the reverse sweep of a chain: which states are kept, dropped and recomputed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import isqrt
from typing import TypeAlias

from symad.core.identifiers import not_one_of
from symad.errors import DerivativeError
from symad.transforms.revolve import split


@dataclass(frozen=True)
class Keep:
    """Keep the state s_at, which has just been computed."""

    at: int


@dataclass(frozen=True)
class Drop:
    """Free the state s_at."""

    at: int


@dataclass(frozen=True)
class Advance:
    """Computes s_stop from s_start, which is kept or has just been computed, by stop − start steps."""

    start: int
    stop: int


@dataclass(frozen=True)
class Reverse:
    """Pull the adjoint of s_{at+1} back to s_at, which is kept or has just been computed."""

    at: int


Action: TypeAlias = "Keep | Drop | Advance | Reverse"


POLICIES = ("all", "none", "every", "binomial")


@dataclass(frozen=True)
class ChainPlan:
    """The actions for a chain of ``length`` steps in order: keep, advance and reverse."""

    policy: str
    length: int
    actions: tuple[Action, ...] = field(repr=False)

    @property
    def evaluations(self) -> int:
        """The number of forward steps, without those inside the n reversals."""
        return sum(a.stop - a.start for a in self.actions if isinstance(a, Advance))

    @property
    def recomputations(self) -> int:
        """The number of these steps that had been run before."""
        return self.evaluations - max((a.stop for a in self.actions if isinstance(a, Advance)), default=0)

    @cached_property
    def live(self) -> tuple[int, ...]:
        """The number of states kept at each action: the memory curve, in states."""
        count, curve = 1, []
        for action in self.actions:
            count += isinstance(action, Keep) - isinstance(action, Drop)
            curve.append(count)
        return tuple(curve)

    @property
    def peak(self) -> int:
        """The maximum number of states kept at once, s_0 included."""
        return max(self.live, default=1)

    def __str__(self) -> str:
        return (
            f"{self.length} steps, policy {self.policy!r}: at most {self.peak} states kept, "
            f"{self.recomputations} steps run again"
        )


def make_plan(length: int, policy: str = "binomial", keep: int | None = None) -> ChainPlan:
    """The plan of a policy for a chain.

    Args:
        length: the number of steps n.
        policy: "all", "none", "every" or "binomial".
        keep: for "every" the distance k of kept states, √n by default; for "binomial" the number of
            states kept at once, s_0 included, about 2 log2 n by default.

    Raises:
        DerivativeError: the policy is unknown, or a number is not positive.
    """
    if policy not in POLICIES:
        raise DerivativeError(not_one_of("policy", policy, POLICIES))
    if length < 0 or (keep is not None and keep < 1):
        raise DerivativeError(f"a plan needs length ≥ 0 and keep ≥ 1, not {length} and {keep}")
    if policy == "every":
        actions = _every(length, keep or max(isqrt(length), 1))
    elif policy == "all":
        actions = _every(length, max(length, 1))
    else:
        slots = 1 if policy == "none" else keep or 2 * max(length, 1).bit_length()
        actions = _binomial(length, slots)
    return ChainPlan(policy, length, tuple(actions))


def _every(length: int, distance: int) -> Iterator[Action]:
    """Keep every ``distance``-th state; then reverse each segment, the last one first."""
    starts = list(range(0, length, distance))
    for start, stop in pairwise(starts):
        yield Advance(start, stop)
        yield Keep(stop)
    for start in reversed(starts):
        stop = min(start + distance, length)
        for k in range(start + 1, stop):
            yield Advance(k - 1, k)
            yield Keep(k)
        for k in reversed(range(start, stop)):
            yield Reverse(k)
            if k:
                yield Drop(k)


def _binomial(length: int, slots: int) -> Iterator[Action]:
    """Revolve, without recursion: the stack holds segments (first, last, free slots) and drops."""
    stack: list[tuple[int, int, int] | Drop] = [(0, length, slots - 1)] if length else []
    while stack:
        task = stack.pop()
        if isinstance(task, Drop):
            yield task
            continue
        first, last, free = task
        if last - first == 1:
            yield Reverse(first)
        elif not free:
            for k in reversed(range(first, last)):
                if k > first:
                    yield Advance(first, k)
                yield Reverse(k)
        else:
            middle = first + split(last - first, free)
            yield Advance(first, middle)
            yield Keep(middle)
            stack += [(first, middle, free), Drop(middle), (middle, last, free - 1)]


def steps_of(action: Action) -> int:
    """The number of steps that an action runs."""
    return action.stop - action.start if isinstance(action, Advance) else int(isinstance(action, Reverse))
