"""What a row of facts about a real function holds; the rows are in `symad.facts.rows`.

All other parts ask `fact`: evaluation for values, sparsity and stable forms for zeros and parity,
verification for signs, ranges, limits, domains, poles and jumps. What a row leaves out weakens an answer and
makes none wrong. symad's own functions state their rows where they are defined, and a user's function is a
row like any other (`symad.register_function`). tests/symad/evaluation/test_facts.py compares each row with
values to 50 digits. Facts of functions of several arguments speak of the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from math import inf
from operator import methodcaller
from typing import Any

import sympy

EVEN, ODD = 1, -1
ALWAYS, OF_ARGUMENT, OF_POSITIVE = "always", "argument", "positive arguments"
"""Values that are positive; that have their argument's sign; that are positive where all arguments are."""


@dataclass(frozen=True)
class Facts:
    """What is known of one function f; zeros and signs hold but for isolated points."""

    floats: str = ""
    """The function of NumPy, SciPy or `symad.special` that computes it, with its module."""
    digits: Callable[..., Any] | None = None
    """f on mpmath's numbers, where mpmath has another name, convention or domain; may be the user's."""
    balls: Callable[..., Any] | None = None
    """f on balls of Arb."""
    slow: bool = False
    """Whether mpmath sums slow series, so that Arb is asked first."""
    users: Callable[..., Any] | None = None
    """A user's implementation on floats."""
    parity: int = 0
    """`EVEN`, `ODD`, or 0."""
    definition: Callable[..., sympy.Expr] | None = None
    """f in other functions of SymPy, wherever it has values."""
    sign: str = ""
    """`ALWAYS`, `OF_ARGUMENT`, `OF_POSITIVE`."""
    range: tuple[float, float] = (-inf, inf)
    """Bounds of all values."""
    monotone: int = 0
    """1 if f increases wherever it is defined, −1 if it decreases."""
    total: bool = False
    """Whether f has a finite value and finite slopes at all real arguments."""
    grows: bool = False
    """Whether f grows as an exponential does, and overflows at ordinary arguments."""
    never_zero: bool = False
    meromorphic: bool = False
    """Whether f has no branch points: what is 0 on one piece is 0 on all, around the poles."""
    limits: tuple[float | None, float | None] | None = None
    """The limits at −∞ and ∞; None for no value."""
    above: int | None = None
    """f has values for x > ``above`` only."""
    size_above: int | None = None
    size_below: int | None = None
    """The same of |x|."""
    closed: bool = False
    """Whether f has a value at the end of its domain."""
    ends: Mapping[int, float] = field(default_factory=dict)
    """Where f is infinite at an end of its domain."""
    none_at: Callable[..., bool] | None = None
    """Whether balls are shown to be where f has no value, apart from the domain above."""
    pole_at_zero: bool = False
    """Whether f has no value at 0."""
    kink: str = ""
    """Where f is not analytic inside its domain: "zero", "whole" numbers, a whole "quotient", "ties"."""
    jumps: bool = False
    """Whether f is discontinuous there."""
    flat: bool = False
    """Whether f is constant between its jumps."""

    def outside(self, *values: Any) -> bool:
        """Whether balls are shown to be where f has no real value."""
        if self.none_at is not None and self.none_at(*values):
            return True
        if len(values) > 1:
            return False
        (a,) = values
        return bool(
            (self.above is not None and a < self.above)
            or (self.size_above is not None and abs(a) < self.size_above)
            or (self.size_below is not None and abs(a) > self.size_below)
        )

    @property
    def exact(self) -> bool:
        """Whether f only chooses a value, a sign or an integer, so that nothing is rounded."""
        return bool(self.kink) and (self.flat or not self.jumps)

    @property
    def saturates(self) -> bool:
        """Whether f is nearly constant, or out of range, but for arguments of ordinary size."""
        return self.grows or any(end is not None and abs(end) < inf for end in self.limits or ())


NOTHING = Facts()

FACTS: dict[type[sympy.Basic], Facts] = {}
"""All rows; only `state` adds to them."""


def fact(head: type[sympy.Basic] | None) -> Facts:
    """The row of a SymPy head; of a head without one, and of None, nothing is known."""
    return NOTHING if head is None else FACTS.get(head, NOTHING)


def state(head: type[sympy.Basic], floats: str = "", /, **known: Any) -> None:
    """Add to the row of a head. ``balls`` may be the name of a method of balls."""
    if floats:
        known["floats"] = floats
    if isinstance(known.get("balls"), str):
        known["balls"] = methodcaller(known["balls"])
    FACTS[head] = replace(fact(head), **known)


def float_names() -> dict[type[sympy.Basic], str]:
    """The functions that NumPy, SciPy or `symad.special` computes, and the names."""
    return {head: row.floats for head, row in FACTS.items() if row.floats}


@cache
def is_zero_at_zero(head: type[sympy.Basic]) -> bool:
    """Whether SymPy knows that a function of one argument is 0 at 0."""
    try:
        return head(sympy.S.Zero) is sympy.S.Zero
    except TypeError:  # another number of arguments
        return False


def sign_of(a: Any) -> int | None:
    """The sign of a ball; None where it is not known."""
    if a > 0:
        return 1
    if a < 0:
        return -1
    return 0 if a.is_exact() and a == 0 else None
