"""Quotients of polynomials in generators, modulo the relations of these generators.

A generator stands for a real function: an element of an input, a function of a value, or a value that was
given a name. A quotient is N/(d Π f^m) with an integer d > 0 and polynomials f; what is divided by is kept
in factors, so that common ones are seen. Two quotients are equal where both are defined if the numerator of
their difference is 0 modulo the relations g^L = p.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import Any, TypeAlias

from symad.verification.checker import polynomials as poly
from symad.verification.checker.polynomials import ONE, Poly
from symad.verification.checker.terms import Refused, bounded

Factor: TypeAlias = "frozenset[tuple[int, int]]"

MOST_WORK, MOST_GENERATORS, MOST_POWER = 4_000_000, 1000, 1000
"""Products of terms in one proof, generators, and powers of values; more are refused."""

SHORT = 400
"""Common factors are looked for while numerator times factor have no more terms than this."""


@dataclass(frozen=True, eq=False)
class Quotient:
    """over / (scale Π factor^m)."""

    over: Poly
    scale: int = 1
    under: Mapping[Factor, int] = field(default_factory=dict)

    @cached_property
    def key(self) -> tuple[object, ...]:
        """The same for the same numerator, number and factors."""
        return frozenset(self.over.items()), self.scale, frozenset(self.under.items())

    @property
    def number(self) -> Fraction | None:
        """The value of a constant."""
        return None if self.under or any(self.over) else Fraction(self.over.get(0, 0), self.scale)

    @property
    def generator(self) -> int:
        """The generator that this is, or −1."""
        powers = poly.exponents(max(self.over)) if len(self.over) == 1 else []
        alone = len(powers) == 1 and powers[0][1] == 1 and self.scale == 1 and not self.under
        return powers[0][0] if alone and 1 in self.over.values() else -1


@dataclass(frozen=True)
class Generator:
    """What is known of one generator.

    ``inputs``: the inputs that it depends on, as bits; ``sign``: "positive", "nonnegative", or "" (unknown);
    ``smooth``: it is a real input, which takes all values of an interval, whatever the others are;
    ``nonzero``: it is 0 on no open set.
    """

    inputs: int
    sign: str = ""
    smooth: bool = False
    nonzero: bool = False


@dataclass(eq=False)
class Quotients:
    """The generators of one proof with their relations, and arithmetic with their quotients."""

    generators: list[Generator] = field(default_factory=list)
    relations: dict[int, tuple[int, Poly]] = field(default_factory=dict)
    """g: (L, p) says that g^L = p, in earlier generators; for L = 2 also in g itself, linearly."""
    work: int = 0

    def generator(self, made: Generator) -> Quotient:
        """A new generator as a quotient."""
        if len(self.generators) >= MOST_GENERATORS:
            raise Refused(f"more than {MOST_GENERATORS} generators")
        self.generators.append(made)
        return Quotient({1 << poly.WIDTH * (len(self.generators) - 1): 1})

    def number(self, value: Fraction | int) -> Quotient:
        """A rational number."""
        exact = Fraction(value)
        return Quotient({0: exact.numerator} if exact else {}, exact.denominator)

    def read(self, saved: Any) -> Quotient:
        """A quotient as proofs write it: [numerator, number, [[factor, multiplicity], ...]]."""
        over, scale, under = saved
        made = {frozenset(self._read(f).items()): int(m) for f, m in under}
        if int(scale) < 1 or not all(f and 1 <= m <= MOST_POWER for f, m in made.items()):
            raise Refused("a quotient is not in normal form")
        return Quotient(self._read(over), int(scale), made)

    def _read(self, saved: Any) -> Poly:
        """A polynomial, written as [[c, [[generator, exponent], ...]], ...]."""
        count = len(self.generators)
        made = {poly.monomial_of(((int(k), int(e)) for k, e in at), count): int(c) for c, at in saved}
        if len(made) != len(saved) or not all(made.values()):
            raise Refused("a polynomial is not in normal form")
        return made

    # ---- normal forms ------------------------------------------------------------------------------

    def product(self, p: Poly, q: Poly) -> Poly:
        """p q, counted as work."""
        self.work += len(p) * len(q)
        if self.work > MOST_WORK:
            raise Refused(f"more than {MOST_WORK} products of terms")
        return poly.multiply(p, q)

    def power_of(self, p: Poly, k: int) -> Poly:
        """p^k for k ≥ 0, by repeated squaring."""
        result = ONE
        while k:
            result = self.product(result, p) if k & 1 else result
            k >>= 1
            p = self.product(p, p) if k else p
        return result

    def reduced(self, p: Poly) -> Poly:
        """p modulo the relations, from the last generator to the first."""
        for g in sorted(self.relations, reverse=True):
            order, value = self.relations[g]
            while max((m >> poly.WIDTH * g & (poly.GUARD - 1) for m in p), default=0) >= order:
                total: Poly = {}
                for e, part in poly.by_powers(p, g).items():
                    whole = self.product(part, self.power_of(value, e // order)) if e >= order else part
                    total = poly.add(total, poly.multiply(whole, {e % order << poly.WIDTH * g: 1}))
                p = total
        return p

    def simple(self, over: Poly, scale: int, under: Mapping[Factor, int]) -> Quotient:
        """A quotient without common factors that are easily seen."""
        over, left = self.reduced(over), dict[Factor, int]()
        for f, m in under.items() if over else ():
            while (
                m and len(over) * len(f) <= SHORT and (less := poly.exact_quotient(over, dict(f))) is not None
            ):
                over, m = less, m - 1
            if m:
                left[f] = m
        common = gcd(scale, *over.values())
        bounded(scale)
        return Quotient(poly.divided(over, common), scale // common, left)

    # ---- arithmetic --------------------------------------------------------------------------------

    def add(self, a: Quotient, b: Quotient) -> Quotient:
        """The sum."""
        under = {f: max(a.under.get(f, 0), b.under.get(f, 0)) for f in [*a.under, *b.under]}
        scale = a.scale * b.scale // gcd(a.scale, b.scale)
        total: Poly = {}
        for q in (a, b):
            over = {m: c * (scale // q.scale) for m, c in q.over.items()}
            for f, m in under.items():
                if more := m - q.under.get(f, 0):
                    over = self.product(over, self.power_of(dict(f), more))
            total = poly.add(total, over)
        return self.simple(total, scale, under)

    def multiply(self, a: Quotient, b: Quotient) -> Quotient:
        """The product."""
        under = {f: a.under.get(f, 0) + b.under.get(f, 0) for f in [*a.under, *b.under]}
        return self.simple(self.product(a.over, b.over), a.scale * b.scale, under)

    def times(self, a: Quotient, number: Fraction | int) -> Quotient:
        """A rational multiple."""
        return self.multiply(a, self.number(number))

    def inverse(self, a: Quotient) -> Quotient:
        """1/a, where a is not 0: its numerator is split in a number, generators and the rest."""
        if not a.over:
            raise Refused("a division by zero")
        scale, shared = poly.content(a.over), poly.common_monomial(a.over)
        rest = poly.divided(a.over, scale, shared)
        under = {frozenset({(1 << poly.WIDTH * k, 1)}): e for k, e in poly.exponents(shared)}
        if rest != ONE:
            under[frozenset(rest.items())] = 1
        over = {0: a.scale if scale > 0 else -a.scale}
        for f, m in a.under.items():
            over = self.product(over, self.power_of(dict(f), m))
        return self.simple(over, abs(scale), under)

    def power(self, a: Quotient, k: int) -> Quotient:
        """a^k for an integer k."""
        if abs(k) > MOST_POWER:
            raise Refused(f"the power {k}")
        if k < 0:
            a, k = self.inverse(a), -k
        result = self.number(1)
        while k:
            result = self.multiply(result, a) if k & 1 else result
            k >>= 1
            a = self.multiply(a, a) if k else a
        return result

    def equal(self, a: Quotient, b: Quotient) -> bool:
        """Whether a = b by the relations."""
        return a.key == b.key or not self.add(a, self.times(b, -1)).over

    # ---- what is known of values -------------------------------------------------------------------

    def sign(self, a: Quotient) -> str:
        """What is seen of the sign: "positive" or "nonnegative", else ""."""
        odd = all(self._sign(dict(f)) for f, m in a.under.items() if m % 2)
        return self._sign(a.over) if odd else ""

    def _sign(self, p: Poly) -> str:
        """Of a sum of products of squares and of positive generators, with positive coefficients."""
        found = "nonnegative"
        for m, c in p.items():
            powers = poly.exponents(m)
            if c < 0 or any(e % 2 and not self.generators[k].sign for k, e in powers):
                return ""
            if all(self.generators[k].sign == "positive" for k, _ in powers):
                found = "positive"
        return found

    def inputs(self, p: Poly) -> int:
        """The inputs that a polynomial depends on, as bits."""
        total = 0
        for k in {k for m in p for k, _ in poly.exponents(m)}:
            total |= self.generators[k].inputs
        return total

    def never_zero(self, p: Poly) -> bool:
        """Whether p is 0 on no open set, as it is shown by one real input b after the other.

        As a polynomial in b, on which nothing else in p depends, p has finitely many zeros for fixed other
        inputs where its leading coefficient is not 0.
        """
        p = self.reduced(p)
        used = sorted({k for m in p for k, _ in poly.exponents(m)}, reverse=True)
        known = [self.generators[k] for k in used]
        if len(p) < 2 and all(g.nonzero for g in known):
            return bool(p)
        for b, g in zip(used, known, strict=True):
            parts = poly.by_powers(p, b)
            if g.smooth and not any(self.inputs(part) & g.inputs for part in parts.values()):
                return self.never_zero(parts[max(parts)])
        return False
