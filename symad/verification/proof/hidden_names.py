"""Which names hide that two values are equal: those are to be replaced by what they stand for, and no others.

A difference that is 0, but not as a polynomial in names, is 0 by what some of these stand for. Floats say
which: in Σ m c, with monomials m in some of the names, these do not matter if each c is 0 at a random point.
The last one of those that matter is put in, and the same is asked again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from random import Random
from typing import Any

from symad.verification.checker.quotients import Factor, Monomial, Poly
from symad.verification.checker.rules import Values
from symad.verification.checker.terms import Refused

MAX_TERMS = 2000
"""The maximum number of terms of differences that are looked at."""

SMALL = 1e-9
"""A sum of floats that is smaller than this part of its terms is 0."""

FLOATS: dict[str, Callable[..., float]] = {
    "exp": math.exp, "log": math.log, "sin": math.sin, "cos": math.cos, "tanh": math.tanh, "abs": abs,
    "asin": math.asin, "atan": math.atan, "asinh": math.asinh, "erf": math.erf, "gamma": math.gamma,
    "loggamma": math.lgamma, "atan2": math.atan2, "pow": math.pow, "max": max, "min": min,
    "floor": math.floor, "ceiling": math.ceil, "pi": lambda: math.pi,
    "sign": lambda x: (x > 0) - (x < 0), "Heaviside": lambda x: float(x > 0),
    "less": lambda x, y: float(x < y),
    "equal": lambda x, y: float(x == y), "select": lambda c, x, y: x if c else y,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)), "softplus": lambda x: math.log1p(math.exp(x)),
    "logcosh": lambda x: math.log(math.cosh(x)), "name": lambda x: x, "root 2": math.sqrt,
    "real": lambda x: 1.0,
}  # fmt: skip
"""The functions of the checker's table; others have some value for each argument."""


class Drawn(dict[int, float]):
    """Numbers by generators; those of generators without a formula are drawn."""

    def __init__(self, rng: Random) -> None:
        """``rng`` draws them."""
        super().__init__()
        self._rng = rng

    def __missing__(self, k: int) -> float:
        return self.setdefault(k, self._rng.uniform(0.2, 1.4))


class Point:
    """The values of the generators of a proof at a random point."""

    def __init__(self, values: Values, seed: int) -> None:
        """Each is computed once, after those that it depends on."""
        self._values, self._rng = values, Random(seed)
        self._made, self._seen = Drawn(self._rng), 0

    def terms(self, p: Iterable[tuple[Monomial, int]]) -> list[float]:
        """The values of the terms of a polynomial; NaN where there are none."""
        atoms = self._values.atoms
        new = [*islice(reversed(atoms.items()), len(atoms) - self._seen)]
        for key, value in reversed(new):
            try:
                self._made[value.generator] = self._function(*key)
            except (ArithmeticError, ValueError, TypeError):
                self._made[value.generator] = math.nan
        self._seen = len(atoms)
        return self._terms(p)

    def _terms(self, p: Iterable[tuple[Monomial, int]]) -> list[float]:
        value = self._made.__getitem__
        return [c * math.prod(map(value, m)) for m, c in p]

    def _function(self, name: object, *args: Any) -> float:
        known = FLOATS.get(name) if isinstance(name, str) else None
        return float(known(*[self._quotient(*a) for a in args])) if known else self._rng.random()

    def _quotient(self, over: Factor, scale: int, under: Iterable[tuple[Factor, int]]) -> float:
        divisors = [math.fsum(self._terms(f)) ** e for f, e in under]
        return math.fsum(self._terms(over)) / (scale * math.prod(divisors))


def hidden_names(gap: Poly, values: Values, point: Point) -> list[int] | None:
    """The names without which a difference is seen to be 0, in the order in which they are put in.

    None if it is not 0, or not seen to be.
    """
    found = list[int]()
    while gap:
        if len(gap) > MAX_TERMS:
            return None
        terms = point.terms(gap.items())
        if not all(map(math.isfinite, terms)) or not _is_zero(terms):
            return None
        found.append(_last_that_matters(list(gap), terms, values))
        if found[-1] < 0:
            return None  # what is lacking is no name
        try:
            gap = values.without(gap, found[-1])
        except Refused:
            return None
    return found


def _is_zero(terms: Sequence[float]) -> bool:
    return abs(math.fsum(terms)) <= SMALL * math.fsum(map(abs, terms))


def _last_that_matters(p: Sequence[Monomial], terms: list[float], values: Values) -> int:
    """The last name that is not one of those for whose monomials all coefficients are 0; −1 if all are."""
    groups = [0] * len(terms)
    names = sorted(values.names.keys() & set().union(*p), reverse=True)
    for k in names:
        parts = dict[tuple[int, int], list[float]]()
        powers = {i: e for i, m in enumerate(p) if (e := m.count(k))}
        for i, e in powers.items():
            parts.setdefault((groups[i], e), []).append(terms[i])
        if not all(map(_is_zero, parts.values())):
            return k
        numbers = {part: len(terms) * (k + 1) + n for n, part in enumerate(parts)}
        for i, e in powers.items():
            groups[i] = numbers[groups[i], e]
    return names[0] if names and not any(terms) else -1  # a name stands for 0
