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
from typing import TypeAlias

from symad.verification.checker import polynomials as poly
from symad.verification.checker.polynomials import ONE, Poly
from symad.verification.checker.terms import Refused

Factor: TypeAlias = "frozenset[tuple[int, int]]"
Key: TypeAlias = "tuple[Factor, int, frozenset[tuple[Factor, int]]]"

MOST_WORK = 4_000_000
"""Products of terms in one proof."""

SHORT = 400
"""Common factors are looked for while numerator times factor have no more terms than this."""


@dataclass(frozen=True, eq=False)
class Quotient:
    """over / (scale Π factor^m)."""

    over: Poly
    scale: int
    under: Mapping[Factor, int]

    @cached_property
    def key(self) -> Key:
        """The same for the same numerator, number and factors."""
        return frozenset(self.over.items()), self.scale, frozenset(self.under.items())

    @property
    def number(self) -> Fraction | None:
        """The value of a constant."""
        if self.under or any(self.over):
            return None
        return Fraction(self.over.get(0, 0), self.scale)


@dataclass(frozen=True)
class Generator:
    """What is known of one generator."""

    name: str
    inputs: int
    """The inputs that it depends on, as bits."""
    sign: str = ""
    """"positive", "nonnegative", or "" for unknown."""
    smooth: bool = False
    """Whether it is a real input: it takes all values of an interval, whatever the others are."""
    nonzero: bool = False
    """Whether it is known to be 0 on no open set."""


@dataclass(eq=False)
class Quotients:
    """The generators of one proof with their relations, and arithmetic with their quotients."""

    generators: list[Generator] = field(default_factory=list)
    relations: dict[int, tuple[int, Poly]] = field(default_factory=dict)
    """g: (L, p) says that g^L = p, in earlier generators, or in later ones that refine g."""
    work: int = 0

    def generator(self, made: Generator) -> Quotient:
        """A new generator as a quotient."""
        if len(self.generators) >= 1000:
            raise Refused("more than 1000 generators")
        self.generators.append(made)
        return Quotient(poly.variable(len(self.generators) - 1), 1, {})

    def number(self, value: Fraction | int) -> Quotient:
        """A rational number."""
        exact = Fraction(value)
        return Quotient({0: exact.numerator} if exact else {}, exact.denominator, {})

    # ---- normal forms ------------------------------------------------------------------------------

    def product(self, p: Poly, q: Poly) -> Poly:
        """p q, counted as work."""
        self.work += len(p) * len(q)
        if self.work > MOST_WORK:
            raise Refused(f"more than {MOST_WORK} products of terms")
        return poly.multiply(p, q)

    def reduced(self, p: Poly) -> Poly:
        """p modulo the relations."""
        changed = bool(self.relations)
        while changed and p:
            changed = False
            for g in sorted(self.relations, reverse=True):
                order, value = self.relations[g]
                if poly.degree(p, g) < order:
                    continue
                changed, total = True, dict[int, int]()
                for e, part in poly.by_powers(p, g).items():
                    q, rest = divmod(e, order)
                    whole = self.product(part, poly.power(value, q)) if q else part
                    total = poly.add(total, poly.multiply(whole, {rest << poly.WIDTH * g: 1}))
                p = total
        return p

    def simple(self, over: Poly, scale: int, under: Mapping[Factor, int]) -> Quotient:
        """A quotient without common factors that are easily seen."""
        over = self.reduced(over)
        if not over:
            return Quotient({}, 1, {})
        left = {}
        for f, m in under.items():
            while m and len(over) * len(f) <= SHORT:
                less = poly.exact_quotient(over, dict(f))
                if less is None:
                    break
                over, m = less, m - 1
            if m:
                left[f] = m
        common = gcd(scale, *over.values())
        return Quotient(poly.divided(over, common), scale // common, left)

    # ---- arithmetic --------------------------------------------------------------------------------

    def add(self, a: Quotient, b: Quotient) -> Quotient:
        """The sum."""
        under = dict(a.under)
        for f, m in b.under.items():
            under[f] = max(under.get(f, 0), m)
        scale = a.scale * b.scale // gcd(a.scale, b.scale)
        return self.simple(poly.add(self._over(a, scale, under), self._over(b, scale, under)), scale, under)

    def _over(self, a: Quotient, scale: int, under: Mapping[Factor, int]) -> Poly:
        """The numerator of ``a`` over a larger denominator."""
        total = {m: c * (scale // a.scale) for m, c in a.over.items()}
        for f, m in under.items():
            for _ in range(m - a.under.get(f, 0)):
                total = self.product(total, dict(f))
        return total

    def multiply(self, a: Quotient, b: Quotient) -> Quotient:
        """The product."""
        under = dict(a.under)
        for f, m in b.under.items():
            under[f] = under.get(f, 0) + m
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
        under = {frozenset(poly.variable(k).items()): e for k, e in poly.exponents(shared)}
        if rest != ONE:
            factor = frozenset(rest.items())
            under[factor] = under.get(factor, 0) + 1
        over = {0: a.scale if scale > 0 else -a.scale}
        for f, m in a.under.items():
            over = self.product(over, poly.power(dict(f), m))
        return self.simple(over, abs(scale), under)

    def power(self, a: Quotient, k: int) -> Quotient:
        """a^k for an integer k."""
        if abs(k) > 1000:
            raise Refused(f"the power {k}")
        if k < 0:
            return self.power(self.inverse(a), -k)
        result = self.number(1)
        while k:
            if k & 1:
                result = self.multiply(result, a)
            k >>= 1
            if k:
                a = self.multiply(a, a)
        return result

    def equal(self, a: Quotient, b: Quotient) -> bool:
        """Whether a = b by the relations."""
        return a.key == b.key or not self.add(a, self.times(b, -1)).over

    # ---- what is known of values -------------------------------------------------------------------

    def sign(self, a: Quotient) -> str:
        """What is seen of the sign: "positive" or "nonnegative", else ""."""
        signs = [self._sign(a.over)] + [self._sign(dict(f)) or "?" for f, m in a.under.items() if m % 2]
        return "" if "?" in signs else signs[0]

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
        if not any(p):
            return bool(p)
        used = {k for m in p for k, _ in poly.exponents(m)}
        if len(p) == 1 and all(self.generators[k].nonzero or self.generators[k].smooth for k in used):
            return True
        for b in sorted(used, reverse=True):
            if self.generators[b].smooth:
                parts = poly.by_powers(p, b)
                others = {k for part in parts.values() for m in part for k, _ in poly.exponents(m)}
                if all(not self.generators[k].inputs & self.generators[b].inputs for k in others):
                    return self.never_zero(parts[max(parts)])
        return False
