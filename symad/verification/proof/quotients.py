"""Quotients of polynomials with the relations of one algebra: the numbers of exact normal forms."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy.polys.domains import ZZ

from symad.evaluation.number_domains import Undefined

if TYPE_CHECKING:
    from sympy.polys.rings import PolyElement

    from symad.verification.proof.rational_functions import Algebra

PRIME = (1 << 61) - 1
"""Fingerprints of polynomials are values modulo this prime; they only select what is then compared."""


@dataclass(eq=False)
class Quotient:
    """numerator / (scale Π factor^multiplicity)."""

    algebra: Algebra
    numerator: PolyElement
    scale: int
    under: dict[PolyElement, int]
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

    def denominator(self) -> PolyElement:
        """The denominator, multiplied out."""
        total = self.algebra.ring(self.scale)
        for factor, m in self.under.items():
            total = self.algebra.product(total, self.algebra.power(factor, m))
        return total

    def reduced_numerator(self) -> PolyElement:
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

    def __add__(self, other: Any) -> Quotient:
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

    def _raised(self, under: dict[PolyElement, int], scale: int) -> PolyElement:
        """The numerator over a larger denominator."""
        total = self.numerator * ZZ(scale // self.scale)
        for factor, m in under.items():
            more = m - self.under.get(factor, 0)
            if more:
                total = self.algebra.product(total, self.algebra.power(factor, more))
        return total

    def __neg__(self) -> Quotient:
        return Quotient(self.algebra, -self.numerator, self.scale, self.under)

    def __sub__(self, other: Any) -> Quotient:
        b = self._other(other)
        return NotImplemented if b is None else self + (-b)

    def __rsub__(self, other: int) -> Quotient:
        return -self + other

    def __mul__(self, other: Any) -> Quotient:
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

    def inverse(self) -> Quotient | Undefined:
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
