"""Where two ways to one value meet: terms that floats show to be equal, and that get one name if they are.

A derivative that the checker takes and one that is claimed go through the same values on their way: the
cotangent of each layer, and the tangent. If every such value gets a name once both are known to be equal,
what is compared between two of them is short, and the whole is proved in a time that grows with its length
(Kuehlmann and Krohm 1997 cut circuits so). Floats only say where to look; the checker establishes it.

A name hides what it stands for. Where two values differ because of that, the names that they use are given
up, and the next attempt does without these.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from symad.core.gc_pause import without_collecting
from symad.verification.checker.quotients import Quotient
from symad.verification.checker.rules import Values
from symad.verification.checker.terms import Term
from symad.verification.proof.hidden_names import FLOATS, Point, hidden_names

POINTS = 2
DIGITS = 9
"""Values that agree to so many digits at all points are looked at."""

VISIBLE = 1e-7
"""A relative difference of floats that no rounding explains."""

LEAST = 3
"""Values of no more terms stay as they are."""

MAX_STARTS_WITHOUT_NAMES = 8
"""The maximum number of times that an attempt starts again without some names."""


def values_at(terms: Sequence[Term], seed: int) -> list[float]:
    """The values of terms, arguments first, at a random point; NaN where there is none."""
    rng, made = Random(seed), dict[Term, float]()
    for term in terms:
        args = [made[a] for a in term.args]
        try:
            made[term] = _value(term, args, rng)
        except (ArithmeticError, ValueError, TypeError):
            made[term] = math.nan
    return list(made.values())


def _value(term: Term, args: Sequence[float], rng: Random) -> float:
    match term.kind:
        case "number":
            return float(term.data)
        case "variable":
            return rng.uniform(0.2, 1.4) * rng.choice((1, 1, -1))
        case "sum":
            return math.fsum(args)
        case "product":
            return math.prod(args)
        case "power":
            return float(
                args[0] ** float(term.data)
            )  # complex, hence an error, for roots of negative numbers
        case "call":
            known = FLOATS.get(term.data) if isinstance(term.data, str) else None
            return float(known(*args)) if known else Random(hash((term.data, *map(_rounded, args)))).random()
    return math.nan


def _rounded(value: float) -> str:
    return f"{value + 0.0:.{DIGITS}e}"


@dataclass
class Cuts:
    """The terms that may get names, by the class of those that look equal."""

    classes: dict[Term, int] = field(default_factory=dict)
    floats: dict[Term, tuple[float, ...]] = field(default_factory=dict)
    """The values of all terms at random points."""
    known: dict[int, Quotient] = field(default_factory=dict)
    """The value of the first term of each class, before it got its name."""
    named: dict[int, int] = field(default_factory=dict)
    """The class that a generator is the name of."""
    first: dict[int, tuple[int, Quotient]] = field(default_factory=dict)
    """The number of the first term of each class, and its value with the name that it got."""
    without: set[int] = field(default_factory=set)
    """The classes whose names were given up."""
    needed: set[int] = field(default_factory=set)
    """The classes that get a name however short the value is: sums that are squared, or divided by."""
    gave_up: bool = False
    """Whether names were given up on the way."""

    _point: Point | None = None

    @staticmethod
    @without_collecting
    def of(terms: Sequence[Term], primal: set[Term]) -> Cuts:
        """The classes of two terms or more, and of each term of the function itself."""
        found: dict[tuple[str, ...], list[Term]] = {}
        floats = dict(
            zip(terms, zip(*(values_at(terms, seed) for seed in range(POINTS)), strict=True), strict=True)
        )
        for term, values in floats.items():
            if any(values):
                known = not any(map(math.isnan, values))
                key = tuple(map(_rounded, values)) if known else (str(term.index),)
                found.setdefault(key, []).append(term)
        whole = [
            c for c in found.values()
            if (len(c) > 1 or c[0] in primal) and not any(t.kind in ("number", "variable") for t in c)
        ]  # fmt: skip
        factors = {t.args[0] for t in terms if t.kind == "power" and t.data < 0}
        factors |= {a for t in terms if t.kind == "product" for a, n in Counter(t.args).items() if n > 1}
        factors |= {t.args[0] for t in terms if t.kind == "power" and t.data % 2 == 0}
        needed = {k for k, c in enumerate(whole) if any(t.kind == "sum" and t in factors for t in c)}
        return Cuts({term: k for k, c in enumerate(whole) for term in c}, floats, needed=needed)

    def differ(self, a: Term, b: Term) -> bool:
        """Whether floats show that two terms are not equal: then no proof is looked for."""
        pairs = zip(self.floats[a], self.floats[b], strict=True)
        return any(abs(u - v) > VISIBLE * (abs(u) + abs(v)) for u, v in pairs)

    def point(self, values: Values) -> Point:
        """A random point."""
        if self._point is None:
            self._point = Point(values, POINTS)
        return self._point

    def start(self) -> None:
        """Forget the values of an attempt."""
        self.known, self.named, self.first, self.gave_up, self._point = {}, {}, {}, False, None

    def value_of(self, term: Term, value: Quotient, values: Values) -> tuple[Quotient, list[tuple[str, Any]]]:
        """The value of a term, the name of its class if that has one, and the step that says so.

        Where it is not the first one of its class, and not seen to be equal to that, the names that hide it
        are given up, and the attempt goes on as if they were equal.
        """
        k = self.classes.get(term)
        if k is None or k in self.without:
            return value, []
        first = self.known.get(k)
        if first is None:
            self.known[k] = value
            size = len(value.over) + sum(map(len, value.under))
            short = size <= LEAST and k not in self.needed and term.kind != "power"
            made = value if short else values.named(value)
            if not short:
                self.named[made.generator] = k
            self.first[k] = term.index, made
            return made, [] if short else [("name", None)]
        number, made = self.first[k]
        if value == made:
            return value, []
        gap = values.field.gap(first, value)
        hidden = hidden_names(gap, values, self.point(values))
        if hidden is not None and values.exists(first, value):
            return made, [("name", [number, *hidden])]
        self.without |= {self.named[g] for m in gap for g in m if g in self.named} or {k}
        self.gave_up = True
        return made, []
