"""Quotients as numbers that graphs are evaluated on."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import sympy

from symad.evaluation.number_domains import DOMAINS, AnyDomain, Domain, Truth, Undefined
from symad.verification.budget import Meter
from symad.verification.proof.quotients import Quotient
from symad.verification.proof.rational_functions import Algebra
from symad.verification.rewriting.signs import ODD


def algebra_of(size: int, meter: Meter, terms: int) -> Algebra:
    """An algebra of ``size`` generators, with its numbers."""
    made = Algebra(size, meter, terms)
    made.domain = Quotients(made)
    return made


class Quotients(Domain["Quotient | Fraction | int | Undefined"]):
    """The number domain of one algebra."""

    rank = 6

    def __init__(self, algebra: Algebra | None) -> None:
        """Without an algebra it only finds that of a number."""
        self.algebra = algebra

    def of(self, value: Any) -> AnyDomain:
        """The domain of the algebra a number belongs to."""
        return value.algebra.domain

    def number(self, value: Any) -> Any:
        """Floats are their exact binary values; pi and the like are generators."""
        assert self.algebra is not None
        if isinstance(value, sympy.NumberSymbol):
            return self.algebra.opaque(value, (self.algebra.rational(0),))
        if isinstance(value, float) and value - value != 0:
            return Undefined("not a number")
        if isinstance(value, sympy.Basic):
            exact = sympy.Rational(value)
            value = Fraction(int(exact.p), int(exact.q))
        return self.algebra.rational(Fraction(value))

    def apply(self, head: sympy.FunctionClass, *values: Any) -> Any:
        """exp, sin, cos, sign with their relations; any other function is a generator."""
        assert self.algebra is not None
        if any(isinstance(v, Undefined) for v in values):
            return next(v for v in values if isinstance(v, Undefined))
        arguments = tuple(v if isinstance(v, Quotient) else self.number(v) for v in values)
        if head is sympy.exp:
            return self.algebra.exponential(arguments[0])
        if head in (sympy.cos, sympy.sin):
            return self.algebra.rotation(arguments[0])[0 if head is sympy.cos else 1]
        if head is sympy.sign:
            return self.algebra.sign(arguments[0])
        if head is sympy.log and arguments[0].number() == 1:
            return self.algebra.rational(0)
        return self.algebra.opaque(head, arguments, odd=head in ODD and len(arguments) == 1)

    def power(self, base: Any, exponent: Any) -> Any:
        """Integer powers, and roots of order at most 64."""
        assert self.algebra is not None
        if isinstance(base, Undefined):
            return base
        value = exponent.number() if isinstance(exponent, Quotient) else Fraction(exponent)
        base = base if isinstance(base, Quotient) else self.number(base)
        if value is None:
            return self.algebra.opaque("power", (base, exponent))
        if value.denominator == 1 and abs(value) <= 10_000:
            return base ** int(value)
        if value.denominator <= 64:
            return self.algebra.root(base, value.denominator) ** value.numerator
        return self.algebra.opaque(("power", value), (base,))

    def divide(self, a: Any, b: Any) -> Any:
        """Exact division."""
        if isinstance(a, Undefined) or isinstance(b, Undefined):
            return a if isinstance(a, Undefined) else b
        under = b if isinstance(b, Quotient) else self.number(b)
        return a * under.inverse()

    def compare(self, relation: str, a: Any, b: Any) -> Truth:
        """[a == b] as 0 or 1: the only comparison in the basis."""
        assert self.algebra is not None
        return self.algebra.rational(int((a - b) == 0))

    def select(self, condition: Truth, a: Any, b: Any) -> Any:
        """b + c (a − b) for an indicator c; one known to be 0 or 1 ignores what is not taken."""
        known = condition.number() if isinstance(condition, Quotient) else Fraction(int(condition))
        if known in (0, 1):
            return a if known == 1 else b
        return b + condition * (a - b)


DOMAINS.append(((Quotient,), Quotients(None)))
