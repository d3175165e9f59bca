"""Exact numbers for proofs: rational functions of inputs and of independent functions.

A `Quotient` is N / (d Π a_i^m_i) with a polynomial N over the integers, an integer d, and known
polynomials a_i. The variables of the polynomials are the inputs and one generator for each atom:
exp(m), log(m), a root, cos(m) and sin(m), sign(m), or any other function of one argument. Known
relations of generators are applied at the end: r^L = u, cos² + sin² = 1, sign² = 1. If the numerator
of a difference reduces to zero, the two sides are equal as real functions, wherever both are
defined: the relations hold there.

Quotients are numbers to `symad.evaluation.number_domains`, so graphs, linear algebra and Dual numbers
evaluate on them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sympy.polys.domains import ZZ
from sympy.polys.orderings import lex
from sympy.polys.rings import PolyElement, PolyRing

from symad.verification.budget import Meter, OutOfBudget
from symad.verification.proof.quotients import PRIME, Quotient

MOST_GENERATORS = 48


@dataclass(eq=False)
class Algebra:
    """The ring of one proof, with the atoms met and the relations of its generators."""

    size: int
    meter: Meter
    terms: int
    ring: PolyRing = None
    atoms: dict[Any, list[tuple[int, Quotient, Any]]] = field(default_factory=dict)
    """For each function the arguments met: fingerprint, argument, and value."""
    relations: list[tuple[int, int, PolyElement, PolyElement]] = field(default_factory=list)
    """(k, L, n, d): the L-th power of generator k is n/d. Later generators first when applied."""
    positive: set[PolyElement] = field(default_factory=set)
    """Generators that are positive."""
    loose: bool = False
    """Whether roots may have negative arguments at points of the claim: then they are not multiplied."""
    domain: Any = None
    """The numbers of this algebra, as `symad.evaluation.number_domains` sees them."""
    used: int = 0
    factors: dict[PolyElement, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ring = PolyRing([f"g{k}" for k in range(self.size)], ZZ, lex)
        self.point = [pow(7, 3 * k + 5, PRIME) * (2 * k + 3) % PRIME for k in range(self.size)]

    # ---- making ----------------------------------------------------------------------------------

    def generator(self) -> Quotient:
        """A new variable.

        Raises:
            OutOfBudget: there are too many.
        """
        if self.used >= self.size:
            raise OutOfBudget(f"more than {self.size} independent functions and inputs")
        self.used += 1
        return Quotient(self, self.ring.gens[self.used - 1], 1, {})

    def rational(self, value: Fraction | int) -> Quotient:
        """A rational number."""
        number = Fraction(value)
        return Quotient(self, self.ring(number.numerator), number.denominator, {})

    def checked(self, poly: PolyElement) -> PolyElement:
        """A polynomial that is not too large.

        Raises:
            OutOfBudget: it is, or the time is used up.
        """
        if len(poly) > self.terms:
            raise OutOfBudget(f"a polynomial of {len(poly)} terms (allowed: {self.terms})")
        return poly

    def product(self, a: PolyElement, b: PolyElement) -> PolyElement:
        """a·b, refused before it takes too long."""
        if len(a) * len(b) > 25 * self.terms:
            raise OutOfBudget(f"a product of polynomials of {len(a)} and {len(b)} terms")
        self.meter.spend(1 + len(a) * len(b))
        return self.checked(a * b)

    def quotient(self, over: PolyElement, under: PolyElement) -> PolyElement | None:
        """The polynomial over/under; None where there is none."""
        if any(a < b for a, b in zip(over.degrees(), under.degrees(), strict=True)):
            return None
        lead, found, rest = under.leading_expv(), self.ring.zero, over.copy()
        while rest:
            at = rest.leading_expv()
            monomial = self.ring.monomial_div(at, lead)
            c, remainder = divmod(rest[at], under[lead])
            if monomial is None or remainder:
                return None
            self.meter.spend(len(under) + len(rest) / 8)
            found[monomial] = c
            rest = rest._iadd_poly_monom(under, (monomial, -c))
        return found

    def power(self, poly: PolyElement, k: int) -> PolyElement:
        """poly ** k, by repeated squaring, refused before it takes too long."""
        result = self.ring.one
        while k:
            if k & 1:
                result = self.product(result, poly)
            k >>= 1
            if k:
                poly = self.product(poly, poly)
        return result

    def factor(self, poly: PolyElement) -> tuple[int, PolyElement | None]:
        """A primitive polynomial as a denominator factor: (content, key); constants have no key."""
        content, primitive = poly.primitive()
        if primitive.LC < 0:
            content, primitive = -content, -primitive
        if primitive == 1:
            return int(content), None
        self.factors.setdefault(primitive, len(self.factors))
        return int(content), primitive

    # ---- comparing -------------------------------------------------------------------------------

    def fingerprint(self, poly: PolyElement) -> int:
        """The value of a polynomial at a fixed point modulo a prime."""
        total = 0
        for monomial, coefficient in poly.terms():
            value = int(coefficient)
            for k, e in enumerate(monomial):
                if e:
                    value = value * pow(self.point[k], int(e), PRIME) % PRIME
            total += value
        return total % PRIME

    def reduced(self, poly: PolyElement) -> PolyElement:
        """A numerator modulo the relations, times a non-zero factor."""
        for k, order, over, under in reversed(self.relations):
            if poly and poly.degree(k) >= order:
                poly = self._reduce(poly, k, order, over, under)
        return poly

    def _reduce(
        self, poly: PolyElement, k: int, order: int, over: PolyElement, under: PolyElement
    ) -> PolyElement:
        """g_k^(qL + s) = (n/d)^q g_k^s, times d^(largest q)."""
        parts: dict[int, PolyElement] = {}
        for monomial, coefficient in poly.terms():
            q, s = divmod(monomial[k], order)
            rest = (*monomial[:k], s, *monomial[k + 1 :])
            part = parts.setdefault(q, self.ring.zero.copy())
            part[rest] = part.get(rest, ZZ(0)) + coefficient
        top = max(parts)
        total = self.ring.zero
        for q, part in sorted(parts.items()):
            part.strip_zero()
            scale = self.product(self.power(over, q), self.power(under, top - q))
            total = total + self.product(part, scale)
        return self.checked(total)

    # ---- functions -------------------------------------------------------------------------------

    def atom(self, kind: Any, argument: Quotient, make: Callable[[], Any], odd: bool) -> tuple[Any, bool]:
        """The value of an atom, old or new, and whether the argument is the negative of the atom's."""
        for print_, known, value in self.atoms.setdefault(kind, []):
            if print_ == argument.fingerprint and not (known - argument).numerator:
                return value, False
            if odd and (print_ + argument.fingerprint) % PRIME == 0 and not (known + argument).numerator:
                return value, True
        value = make()
        self.atoms[kind].append((argument.fingerprint, argument, value))
        return value, False

    def opaque(self, kind: Any, arguments: tuple[Quotient, ...], odd: bool = False) -> Any:
        """A function without relations; of several arguments, one after the other."""
        for argument in arguments[:-1]:
            key, _ = self.atom((kind, "arguments"), argument, lambda: object(), False)
            kind = (kind, key)
        if odd and not arguments[-1].reduced_numerator():
            return self.rational(0)
        value, turned = self.atom(kind, arguments[-1], self.generator, odd)
        return -value if turned else value

    def exponential(self, argument: Quotient) -> Quotient:
        """exp: integer multiples of monomials become powers."""
        result = self.rational(1)
        for k, part in argument.multiples():
            value, turned = self.atom("exp", part, self._positive, True)
            result = result * value ** (-k if turned else k)
        return result

    def _positive(self) -> Quotient:
        value = self.generator()
        self.positive.add(value.numerator)
        return value

    def rotation(self, argument: Quotient) -> tuple[Quotient, Quotient]:
        """(cos, sin), by the addition theorem over the terms of the argument."""
        total = self.rational(1), self.rational(0)
        for k, part in argument.multiples():
            (cosine, sine), turned = self.atom("rotation", part, self._rotation, True)
            step = (cosine, -sine) if turned is (k > 0) else (cosine, sine)
            for _ in range(abs(k)):
                total = total[0] * step[0] - total[1] * step[1], total[1] * step[0] + total[0] * step[1]
        return total

    def _rotation(self) -> tuple[Quotient, Quotient]:
        cosine, sine = self.generator(), self.generator()
        one = self.ring.one
        self.relations.append((self.used - 1, 2, one - cosine.numerator**2, one))
        return cosine, sine

    def sign(self, argument: Quotient) -> Quotient:
        """sign, with sign² = 1 away from 0."""
        number = argument.number()
        if number is not None:
            return self.rational((number > 0) - (number < 0))
        powers, rest = self._monomial_content(argument.numerator)
        content, primitive = rest.primitive()
        value = self.rational(1 if content > 0 else -1) * self._sign_of(primitive)
        for k, e in enumerate(powers):
            if e % 2:
                value = value * self._sign_of(self.ring.gens[k])
        for factor, e in argument.under.items():
            if e % 2:
                value = value * self._sign_of(factor)
        return value

    def _monomial_content(self, poly: PolyElement) -> tuple[tuple[int, ...], PolyElement]:
        """The powers of generators that all terms share, and the rest."""
        shared = tuple(map(min, zip(*poly.monoms(), strict=True)))
        lowered = {
            tuple(e - s for e, s in zip(monomial, shared, strict=True)): coefficient
            for monomial, coefficient in poly.terms()
        }
        return shared, self.ring.from_dict(lowered)

    def _sign_of(self, poly: PolyElement) -> Quotient:
        """The sign of one factor: 1 for numbers and exponentials."""
        if poly.is_ground or poly in self.positive:
            return self.rational(1)
        value, turned = self.atom("sign", Quotient(self, poly, 1, {}), self._sign, True)
        return -value if turned else value

    def _sign(self) -> Quotient:
        value = self.generator()
        self.relations.append((self.used - 1, 2, self.ring.one, self.ring.one))
        return value

    def root(self, argument: Quotient, order: int) -> Quotient:
        """The root r with r^order = argument."""
        number = argument.number()
        if number is not None and number in (0, 1):
            return argument

        def make() -> Quotient:
            known = self._known_root(argument, order)
            if known is not None:
                return known
            value = self._positive()
            self.relations.append((self.used - 1, order, argument.numerator, argument.denominator()))
            return value

        return self.atom(("root", order), argument, make, False)[0]

    def _known_root(self, argument: Quotient, order: int) -> Quotient | None:
        """The product or quotient of two known roots that a root is: √(uv) = √u √v for u, v > 0."""
        if self.loose:
            return None
        old = self.atoms.get(("root", order), [])
        for k, (a, _, root) in enumerate(old):
            for b, _, other in old[: k + 1]:
                for left, right, combine, x, y in (
                    (argument.fingerprint, a * b, operator.mul, root, other),
                    (argument.fingerprint * a, b, operator.truediv, other, root),
                    (argument.fingerprint * b, a, operator.truediv, root, other),
                ):
                    if (left - right) % PRIME == 0:
                        value = combine(x, y)
                        if not (value**order - argument).reduced_numerator():
                            return value
        return None
