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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from symad.verification.checker.quotients import Quotient, Quotients
from symad.verification.checker.terms import Term

POINTS = 2
DIGITS = 9
"""Values that agree to so many digits at all points are looked at."""

LEAST = 3
"""Values of no more terms stay as they are."""

MOST_GIVEN_UP = 8
"""So often an attempt starts again without some names."""


FLOATS: dict[str, Callable[..., float]] = {
    "exp": math.exp, "log": math.log, "sin": math.sin, "cos": math.cos, "tanh": math.tanh, "abs": abs,
    "asin": math.asin, "atan": math.atan, "asinh": math.asinh, "erf": math.erf, "gamma": math.gamma,
    "loggamma": math.lgamma, "atan2": math.atan2, "pow": math.pow, "max": max, "min": min,
    "floor": math.floor, "ceiling": math.ceil, "pi": lambda: math.pi,
    "sign": lambda x: (x > 0) - (x < 0), "Heaviside": lambda x: float(x > 0),
    "less": lambda x, y: float(x < y), "at most": lambda x, y: float(x <= y),
    "equal": lambda x, y: float(x == y), "select": lambda c, x, y: x if c else y,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)), "softplus": lambda x: math.log1p(math.exp(x)),
    "logcosh": lambda x: math.log(math.cosh(x)),
}  # fmt: skip
"""The functions of the checker's table; others have some value for each argument."""


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
    known: dict[int, Quotient] = field(default_factory=dict)
    """The value of the first term of each class, before it got its name."""
    named: dict[int, int] = field(default_factory=dict)
    """The class that a generator is the name of."""
    names: dict[int, int] = field(default_factory=dict)
    """The generator that is the name of a class."""
    without: set[int] = field(default_factory=set)
    """The classes whose names were given up."""
    gave_up: bool = False
    """Whether names were given up on the way."""

    @staticmethod
    def of(terms: Sequence[Term], primal: set[Term]) -> Cuts:
        """The classes of two terms or more, and of each term of the function itself."""
        found: dict[tuple[str, ...], list[Term]] = {}
        columns = [values_at(terms, seed) for seed in range(POINTS)]
        for term, *values in zip(terms, *columns, strict=True):
            if any(values):
                known = not any(map(math.isnan, values))
                key = tuple(map(_rounded, values)) if known else (str(term.index),)
                found.setdefault(key, []).append(term)
        whole = [
            c for c in found.values()
            if (len(c) > 1 or c[0] in primal) and not any(t.kind in ("number", "variable") for t in c)
        ]  # fmt: skip
        return Cuts({term: k for k, c in enumerate(whole) for term in c})

    def start(self) -> None:
        """Forget the values of an attempt."""
        self.known, self.named, self.names, self.gave_up = {}, {}, {}, False

    def first(self, term: Term, value: Quotient, field: Quotients) -> tuple[Quotient, int | None]:
        """The value of the first term of a class, this one if it is the first, and its name if it has one.

        If both are not equal, the names that hide it are given up, and the attempt goes on as if they were.
        """
        k = self.classes.get(term)
        if k is None or k in self.without:
            return value, None
        first = self.known.setdefault(k, value)
        if first.key != value.key and (gap := field.add(first, field.times(value, -1)).over):
            self.without |= {self.named[g] for m in gap for g in m if g in self.named} or {k}
            self.gave_up = True
        return first, self.names.get(k)

    def wants_name(self, term: Term, value: Quotient) -> bool:
        """Whether the value of a term should get a name."""
        k = self.classes.get(term)
        long = len(value.over) + sum(map(len, value.under)) > LEAST
        return long and k is not None and k not in self.without

    def name(self, term: Term, generator: int) -> None:
        """A generator is the name of the value of a term."""
        k = self.classes[term]
        self.named[generator] = k
        self.names[k] = generator
