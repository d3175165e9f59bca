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
from math import gcd
from typing import Any

import numpy as np
from sympy.polys.domains import ZZ
from sympy.polys.orderings import lex
from sympy.polys.rings import PolyElement, PolyRing

from symad.evaluation.number_domains import Undefined
from symad.verification.budget import Meter, OutOfBudget

MOST_GENERATORS = 48
PRIME = (1 << 61) - 1
"""Fingerprints of polynomials are values modulo this prime; they only select what is then compared."""


@dataclass(eq=False)
class Algebra:
    """The ring of one proof, with the atoms met and the relations of its generators."""

    size: int
    meter: Meter
    terms: int
    ring: Any = None
    atoms: dict[Any, list[tuple[int, Quotient, Any]]] = field(default_factory=dict)
    """For each function the arguments met: fingerprint, argument, and value."""
    relations: list[tuple[int, int, PolyElement, PolyElement]] = field(default_factory=list)
    """(k, L, n, d): the L-th power of generator k is n/d. Later generators first when applied."""
    positive: set[Any] = field(default_factory=set)
    """Generators that are positive."""
    loose: bool = False
    """Whether roots may have negative arguments at points of the claim: then they are not multiplied."""
    domain: Any = None
    """The numbers of this algebra, as `symad.evaluation.number_domains` sees them."""
    used: int = 0
    factors: dict[Any, int] = field(default_factory=dict)

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

    def checked(self, poly: Any) -> Any:
        """A polynomial that is not too large.

        Raises:
            OutOfBudget: it is, or the time is used up.
        """
        if len(poly) > self.terms:
            raise OutOfBudget(f"a polynomial of {len(poly)} terms (allowed: {self.terms})")
        return poly

    def product(self, a: Any, b: Any) -> Any:
        """a·b, refused before it takes too long."""
        if len(a) * len(b) > 25 * self.terms:
            raise OutOfBudget(f"a product of polynomials of {len(a)} and {len(b)} terms")
        self.meter.spend(1 + len(a) * len(b))
        return self.checked(a * b)

    def quotient(self, over: Any, under: Any) -> Any:
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

    def power(self, poly: Any, k: int) -> Any:
        """poly ** k, by repeated squaring, refused before it takes too long."""
        result = self.ring.one
        while k:
            if k & 1:
                result = self.product(result, poly)
            k >>= 1
            if k:
                poly = self.product(poly, poly)
        return result

    def factor(self, poly: Any) -> tuple[int, Any]:
        """A primitive polynomial as a denominator factor: (content, key); constants have no key."""
        content, primitive = poly.primitive()
        if primitive.LC < 0:
            content, primitive = -content, -primitive
        if primitive == 1:
            return int(content), None
        self.factors.setdefault(primitive, len(self.factors))
        return int(content), primitive

    # ---- comparing -------------------------------------------------------------------------------

    def fingerprint(self, poly: Any) -> int:
        """The value of a polynomial at a fixed point modulo a prime."""
        total = 0
        for monomial, coefficient in poly.terms():
            value = int(coefficient)
            for k, e in enumerate(monomial):
                if e:
                    value = value * pow(self.point[k], int(e), PRIME) % PRIME
            total += value
        return total % PRIME

    def reduced(self, poly: Any) -> Any:
        """A numerator modulo the relations, times a non-zero factor."""
        for k, order, over, under in reversed(self.relations):
            if poly and poly.degree(k) >= order:
                poly = self._reduce(poly, k, order, over, under)
        return poly

    def _reduce(self, poly: Any, k: int, order: int, over: Any, under: Any) -> Any:
        """g_k^(qL + s) = (n/d)^q g_k^s, times d^(largest q)."""
        parts: dict[int, Any] = {}
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

    def exponential(self, argument: Quotient) -> Any:
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

    def rotation(self, argument: Quotient) -> tuple[Any, Any]:
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

    def sign(self, argument: Quotient) -> Any:
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

    def _monomial_content(self, poly: Any) -> tuple[tuple[int, ...], Any]:
        """The powers of generators that all terms share, and the rest."""
        shared = tuple(map(min, zip(*poly.monoms(), strict=True)))
        lowered = {
            tuple(e - s for e, s in zip(monomial, shared, strict=True)): coefficient
            for monomial, coefficient in poly.terms()
        }
        return shared, self.ring.from_dict(lowered)

    def _sign_of(self, poly: Any) -> Any:
        """The sign of one factor: 1 for numbers and exponentials."""
        if poly.is_ground or poly in self.positive:
            return self.rational(1)
        value, turned = self.atom("sign", Quotient(self, poly, 1, {}), self._sign, True)
        return -value if turned else value

    def _sign(self) -> Quotient:
        value = self.generator()
        self.relations.append((self.used - 1, 2, self.ring.one, self.ring.one))
        return value

    def root(self, argument: Quotient, order: int) -> Any:
        """The root r with r^order = argument."""
        number = argument.number()
        if number is not None and number in (0, 1):
            return argument

        def make() -> Any:
            known = self._known_root(argument, order)
            if known is not None:
                return known
            value = self._positive()
            self.relations.append((self.used - 1, order, argument.numerator, argument.denominator()))
            return value

        return self.atom(("root", order), argument, make, False)[0]

    def _known_root(self, argument: Quotient, order: int) -> Any:
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


@dataclass(eq=False)
class Quotient:
    """numerator / (scale Π factor^multiplicity)."""

    algebra: Algebra
    numerator: Any
    scale: int
    under: dict[Any, int]
    _print: int | None = None

    @property
    def fingerprint(self) -> int:
        """The value at a fixed point modulo a prime."""
        if self._print is None:
            over = self.algebra.fingerprint(self.numerator)
            under = self.scale % PRIME
            for factor, m in self.under.items():
                under = under * pow(self.algebra.fingerprint(factor), m, PRIME) % PRIME
            self._print = over * pow(under, -1, PRIME) % PRIME
        return self._print

    def denominator(self) -> Any:
        """The denominator, multiplied out."""
        total = self.algebra.ring(self.scale)
        for factor, m in self.under.items():
            total = self.algebra.product(total, self.algebra.power(factor, m))
        return total

    def reduced_numerator(self) -> Any:
        """The numerator modulo the relations."""
        return self.algebra.reduced(self.numerator)

    def number(self) -> Fraction | None:
        """The value of a constant."""
        if self.under or not self.numerator.is_ground:
            return None
        return Fraction(int(self.numerator.LC) if self.numerator else 0, self.scale)

    def multiples(self) -> list[tuple[int, Quotient]]:
        """The argument as Σ k·part with integer k; parts are monomials if the denominator is a number."""
        value = self._cancelled()
        if value.under:
            return [(1, value)]
        found = []
        for monomial, coefficient in value.numerator.terms():
            number = Fraction(int(coefficient), value.scale)
            part = self.algebra.ring.from_dict({monomial: ZZ(1)})
            if number.denominator == 1 and abs(number) <= 16:
                found.append((int(number), Quotient(self.algebra, part, 1, {})))
            else:
                over = self.algebra.ring.from_dict({monomial: ZZ(number.numerator)})
                found.append((1, Quotient(self.algebra, over, number.denominator, {})))
        return found

    def _cancelled(self) -> Quotient:
        """Without the factors of the denominator that divide the numerator."""
        numerator, under = self.numerator, {}
        for factor, multiplicity in self.under.items():
            left = multiplicity
            while left and len(numerator) * len(factor) <= self.algebra.terms:
                quotient = self.algebra.quotient(numerator, factor)
                if quotient is None:
                    break
                numerator, left = quotient, left - 1
            if left:
                under[factor] = left
        common = gcd(int(numerator.content()) if numerator else 0, self.scale)
        if common > 1:
            numerator = numerator.quo_ground(ZZ(common))
        return Quotient(self.algebra, numerator, self.scale // max(common, 1), under)

    # ---- arithmetic ------------------------------------------------------------------------------

    def _other(self, other: Any) -> Quotient | None:
        if isinstance(other, Quotient):
            return other
        if isinstance(other, np.generic):
            other = other.item()
        if isinstance(other, (int, float, Fraction)):
            return self.algebra.rational(Fraction(other))
        return None

    def __add__(self, other: Any) -> Any:
        b = self._other(other)
        if b is None:
            return NotImplemented
        under = dict(self.under)
        for factor, m in b.under.items():
            under[factor] = max(under.get(factor, 0), m)
        scale = self.scale * b.scale // gcd(self.scale, b.scale)
        over = self._raised(under, scale) + b._raised(under, scale)
        made = Quotient(self.algebra, self.algebra.checked(over), scale, under)
        return made._cancelled() if under else made

    def _raised(self, under: dict[Any, int], scale: int) -> Any:
        """The numerator over a larger denominator."""
        total = self.numerator * ZZ(scale // self.scale)
        for factor, m in under.items():
            more = m - self.under.get(factor, 0)
            if more:
                total = self.algebra.product(total, self.algebra.power(factor, more))
        return total

    def __neg__(self) -> Quotient:
        return Quotient(self.algebra, -self.numerator, self.scale, self.under)

    def __sub__(self, other: Any) -> Any:
        b = self._other(other)
        return NotImplemented if b is None else self + (-b)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        b = self._other(other)
        if b is None:
            return NotImplemented
        under = dict(self.under)
        for factor, m in b.under.items():
            under[factor] = under.get(factor, 0) + m
        over = self.algebra.product(self.numerator, b.numerator)
        made = Quotient(self.algebra, over, self.scale * b.scale, under)
        return made._cancelled() if under else made

    __radd__, __rmul__ = __add__, __mul__

    def inverse(self) -> Any:
        """1/x; undefined where the numerator is 0 by the relations."""
        if not self.reduced_numerator():
            return Undefined("1/0")
        content, factor = self.algebra.factor(self.numerator)
        over = self.denominator() * ZZ(1 if content > 0 else -1)
        return Quotient(self.algebra, over, abs(content), {} if factor is None else {factor: 1})._cancelled()

    def __truediv__(self, other: Any) -> Any:
        b = self._other(other)
        return NotImplemented if b is None else self * b.inverse()

    def __rtruediv__(self, other: Any) -> Any:
        return self.inverse() * other

    def __pow__(self, exponent: int) -> Any:
        if exponent < 0:
            return self.inverse() ** -exponent
        result = self.algebra.rational(1)
        base = self
        while exponent:
            if exponent & 1:
                result = result * base
            exponent >>= 1
            base = base * base if exponent else base
        return result

    def __eq__(self, other: object) -> bool:
        b = self._other(other)
        return b is not None and not (self - b).reduced_numerator()

    __hash__ = None  # type: ignore[assignment]
