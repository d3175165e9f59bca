"""Polynomials with integer coefficients in generators, and their quotients, modulo relations.

A polynomial has its coefficients other than 0 by monomials, sorted tuples of generators. A generator stands
for a real function: an element of an input, or a function of a value. A quotient is N/(d Π f^m) with an
integer d > 0; what is divided by is kept in factors, so that common ones are seen. Two are equal where both
are defined if the numerator of their difference is 0 modulo the relations g^L = p.
"""

from bisect import insort
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce
from math import gcd, lcm, prod
from typing import Any, NamedTuple, TypeAlias

from symad.verification.checker.terms import MAX_POWER, Refused, bounded, require

Monomial: TypeAlias = tuple[int, ...]
Poly: TypeAlias = dict[Monomial, int]
Factor: TypeAlias = frozenset[tuple[Monomial, int]]
MAX_TERMS, MAX_PRODUCTS, MAX_DEGREE = 4000, 100_000, 2000  # of polynomials; more are refused
MAX_WORK, MAX_GENERATORS, SHORT = 4_000_000, 20_000, 400  # of a proof; of what is canceled by
ZERO, ONE = Poly(), Poly({(): 1})
NONE: Mapping[Factor, int] = {}


def convolved(*pairs: tuple[Poly, Poly]) -> Poly:
    """Σ p q."""
    total = Poly()
    for p, q in [pair if len(pair[0]) < len(pair[1]) else pair[::-1] for pair in pairs]:
        if len(p) * len(q) > MAX_PRODUCTS:
            raise Refused(f"a product of polynomials of {len(p)} and {len(q)} terms")
        for m, c in p.items():
            for n, d in q.items():
                both = (m + n if m[-1] <= n[0] else tuple(sorted(m + n))) if m and n else m or n
                total[both] = total.get(both, 0) + c * d
    bounded(total.values())
    short = len(total) <= MAX_TERMS and max(map(len, total), default=0) <= MAX_DEGREE
    require(short, f"a polynomial has more than {MAX_TERMS} terms, or a degree above {MAX_DEGREE}")
    return total if all(total.values()) else {m: c for m, c in total.items() if c}


def content(p: Poly) -> int:
    """The greatest common divisor of the coefficients, with the sign of the leading one; 1 for 0."""
    return gcd(*p.values()) * (1 if p[max(p, key=lambda m: (len(m), m))] > 0 else -1) if p else 1


def may_divide(q: Poly, p: Poly) -> bool:
    """False only if q does not divide p: it has other generators, or more terms than a single one."""
    places = p if len(q) == 1 else [set[int]().union(*p)]
    return not len(p) == 1 < len(q) and all([k in m for m in places for n in q for k in n])


def exact_quotient(p: Poly, q: Poly) -> Poly | None:
    """p/q if that is a polynomial with integer coefficients, else None; by monomials of highest degree."""
    if not may_divide(q, p):
        return None
    lead = max(q, key=lambda m: (len(m), m))
    rest, found, order = dict(p), dict[Monomial, int](), sorted((len(m), m) for m in p)
    while order and len(found) <= MAX_TERMS:
        if c := rest[m := order.pop()[1]]:
            step, (k, r) = list(m), divmod(c, q[lead])
            if r or any(m.count(i) < lead.count(i) for i in lead):
                return None
            for i in lead:
                step.remove(i)
            bounded([k])
            found[tuple(step)] = k
            for n, d in q.items():
                both = tuple(sorted((*step, *n)))
                if both not in rest:
                    insort(order, (len(both), both))
                rest[both] = rest.get(both, 0) - k * d
    return None if order else found


def by_powers(p: Poly, k: int) -> dict[int, Poly]:
    """p as Σ p_e · variable_k^e: the polynomials p_e by e."""
    parts = dict[int, Poly]()
    for m, c in p.items():
        parts.setdefault(e := m.count(k), {})[tuple([i for i in m if i != k]) if e else m] = c
    return parts


def common_under(unders: Sequence[Mapping[Factor, int]]) -> Mapping[Factor, int]:
    """The least common multiple of some denominators."""
    return {f: max([u.get(f, 0) for u in unders]) for own in unders for f in own} if any(unders) else NONE


class Quotient(NamedTuple):
    """over / (scale Π factor^m), which does not change."""

    over: Poly
    scale: int = 1
    under: Mapping[Factor, int] = NONE

    @property
    def number(self) -> Fraction | None:
        """The value of a constant."""
        return None if self.under or any(self.over) else Fraction(self.over.get((), 0), self.scale)

    @property
    def generator(self) -> int:
        """The generator that this is, or −1."""
        ((m, c),) = self.over.items() if len(self.over) == self.scale == 1 and not self.under else [((), 0)]
        return m[0] if len(m) == c == 1 else -1


class Generator(NamedTuple):
    """What is known of one generator."""

    inputs: int  # those that it depends on, as bits
    sign: str  # "positive", "nonnegative", or "" for unknown
    smooth: bool  # it takes all values of an interval, whatever the others are, as real inputs do
    zeros: Poly  # it is 0 only where this polynomial is


class Quotients:
    """The generators of one proof with their relations, and arithmetic with their quotients."""

    def __init__(self) -> None:
        """``relations`` g: (L, p) say g^L = p, L > 1, in earlier generators, or for L = 2 linear in g."""
        self.work, self.generators, self.relations = 0, list[Generator](), dict[int, tuple[int, Poly]]()
        self.known, self.irreducible = dict[int, bool](), dict[int, set[Monomial]]()  # `nonzero`, `reduced`

    def generator(self, made: Generator) -> Quotient:
        """A new generator as a quotient."""
        require(len(self.generators) < MAX_GENERATORS, f"more than {MAX_GENERATORS} generators")
        self.generators.append(made)
        return Quotient({(len(self.generators) - 1,): 1})

    def number(self, value: Fraction | int) -> Quotient:
        """A rational number."""
        return Quotient({(): value.numerator} if value else {}, value.denominator)

    def read(self, saved: Any) -> Quotient:
        """A quotient as proofs write it: [N, d, [[f, m], ...]], polynomials as [[c, monomial], ...]."""
        parts = saved[0], *(f for f, _ in saved[2])
        over, *factors = ({tuple(sorted(map(int, m))): int(c) for c, m in p} for p in parts)
        scale, *powers = int(saved[1]), *(int(m) for _, m in saved[2])
        there = all(0 <= k < len(self.generators) for p in (over, *factors) for m in p for k in m)
        full = all(factors) and all(all(p.values()) for p in (over, *factors))
        require(there and full and min(scale, *powers, 1) == 1, "a quotient is not in normal form")
        return Quotient(over, scale, {frozenset(f.items()): m for f, m in zip(factors, powers, strict=True)})

    def product(self, p: Poly, q: Poly, k: int = 1) -> Poly:
        """p q^k, by repeated squaring, counted as work."""
        while k:
            self.work += len(p) * len(q)
            require(self.work <= MAX_WORK, "too many products of terms")
            p = (q if p is ONE else convolved((p, q))) if k & 1 else p
            k, q = k >> 1, convolved((q, q)) if k > 1 else q
        return p

    def reduced(self, p: Poly) -> Poly:
        """p modulo the relations, from the last generator to the first."""
        r, known = self.relations, self.irreducible.get(len(self.relations), set())
        while used := {g for m in {*p} - known for g in r.keys() & {*m} if m.count(g) >= r[g][0]}:
            (n, value), parts = r[g := max(used)], by_powers(p, max(used)).items()
            p = convolved(*[(self.product(q, value, e // n), {(g,) * (e % n): 1}) for e, q in parts])
        known.update(p)
        self.irreducible = {len(r): known} if len(known) < MAX_PRODUCTS else {}
        return p

    def simple(self, over: Poly, scale: int, under: Mapping[Factor, int]) -> Quotient:
        """A quotient without common factors, while numerator times factor have SHORT terms at most."""
        over, left = self.reduced(over) if self.relations else over, dict[Factor, int]()
        for f, m in under.items() if over else ():
            while m and len(over) * len(f) <= SHORT and (less := exact_quotient(over, dict(f))) is not None:
                over, m = less, m - 1
            left |= {f: m} if m else {}
        bounded([scale])
        if (common := gcd(scale, *over.values()) if scale > 1 else 1) > 1:
            over = {m: c // common for m, c in over.items()}
        return Quotient(over, scale // common, left)

    def inner(self, products: Sequence[Sequence[Quotient]]) -> Quotient:
        """The sum of products."""
        if any([q.under for part in products if len(part) > 1 for q in part]):
            products = [[reduce(self.multiply, part)] for part in products]
        scales, made = [prod([q.scale for q in part]) for part in products], list[tuple[Poly, Poly]]()
        scale, under = lcm(*scales), common_under([part[0].under for part in products])
        for part, own in zip(products, scales, strict=True):
            over: Poly = ONE if own == scale else {(): scale // own}
            for f, m in under.items():
                over = self.product(over, dict(f), m - part[0].under.get(f, 0))
            made.append((reduce(self.product, [q.over for q in part[:-1]], over), part[-1].over))
        self.work += sum([len(p) * len(q) for p, q in made])
        return self.simple(convolved(*made), scale, under)

    def multiply(self, a: Quotient, b: Quotient) -> Quotient:
        """The product."""
        both = [*a.under, *b.under] if a.under and b.under else ()
        under = {f: a.under.get(f, 0) + b.under.get(f, 0) for f in both} or a.under or b.under
        return self.simple(self.product(a.over, b.over), a.scale * b.scale, under)

    def inverse(self, a: Quotient) -> Quotient:
        """1/a, where a is not 0: its numerator is split in a number, generators and the rest."""
        require(a.over, "a division by zero")
        scale, common = content(a.over), sorted(set(next(iter(a.over))).intersection(*a.over))
        shared = tuple(k for k in common for _ in range(min(m.count(k) for m in a.over)))
        rest = exact_quotient(a.over, {shared: scale}) or ONE
        under: dict[Factor, int] = {frozenset({((k,), 1)}): e for k, e in Counter(shared).items()}
        under |= {frozenset(rest.items()): 1} if rest != ONE else {}
        over: Poly = {(): a.scale if scale > 0 else -a.scale}
        for f, m in a.under.items():
            over = self.product(over, dict(f), m)
        return self.simple(over, abs(scale), under)

    def power(self, a: Quotient, k: int) -> Quotient:
        """a^k for an integer k."""
        require(abs(k) <= MAX_POWER, f"the power {k}")
        a, k = self.inverse(a) if k < 0 else a, abs(k)
        under = {f: m * k for f, m in a.under.items() if k}
        return self.simple(self.product(ONE, a.over, k), a.scale**k, under)

    def gap(self, a: Quotient, b: Quotient) -> Poly:
        """The numerator of a − b: 0 if a = b by the relations."""
        return ZERO if a == b else self.inner([[a], [b, self.number(-1)]]).over

    def sign(self, a: Quotient) -> str:
        """What is seen of the sign: "positive" or "nonnegative", else ""."""
        return self._sign(a.over) if all(self._sign(dict(f)) for f, m in a.under.items() if m % 2) else ""

    def _sign(self, p: Poly) -> str:
        """Of a sum of products of squares and of positive generators, with positive coefficients."""
        signs = {k: self.generators[k].sign for m in p for k in m}
        if any(c < 0 or any(not signs[k] and m.count(k) % 2 for k in m) for m, c in p.items()):
            return ""
        return "positive" if any(all(signs[k] == "positive" for k in m) for m in p) else "nonnegative"

    def never_zero(self, p: Poly) -> bool:
        """Whether p is 0 on no open set, as it is shown by terms, or by one generator b after the other."""
        # A sum of terms that are not negative is 0 only where all of them are.
        # As a polynomial in b alone, p has finitely many zeros where its leading coefficient is not 0.
        p = self.reduced(p)
        if self._sign(p) and any(all(map(self.nonzero, m)) for m in p):
            return True
        known = {k: self.generators[k] for k in sorted({k for m in p for k in m}, reverse=True)}
        if len(p) < 2:
            return bool(p) and all(map(self.nonzero, known))
        for b, g in known.items():
            if g.smooth and not any(h.inputs & g.inputs for k, h in known.items() if k != b):
                return self.never_zero((parts := by_powers(p, b))[max(parts)])
        return False

    def nonzero(self, k: int) -> bool:
        """Whether a generator is 0 on no open set; found once."""
        if k not in self.known:
            self.known[k] = self.never_zero(self.generators[k].zeros)
        return self.known[k]
