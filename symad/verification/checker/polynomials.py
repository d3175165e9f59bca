"""Polynomials with integer coefficients in numbered variables.

A polynomial is a dictionary from monomials to coefficients other than 0; a monomial is the sorted tuple of its
variables, each as often as its exponent says.
"""

from __future__ import annotations

from collections import Counter
from functools import reduce
from math import gcd
from typing import TypeAlias

from symad.verification.checker.terms import Refused, bounded

Monomial: TypeAlias = "tuple[int, ...]"
Poly: TypeAlias = "dict[Monomial, int]"

MOST_TERMS, MOST_PRODUCTS, MOST_DEGREE = 4000, 100_000, 2000
"""Polynomials of more terms or higher degree, and products of more pairs of terms, are refused."""

ONE: Poly = {(): 1}


def add(p: Poly, q: Poly, scale: int = 1) -> Poly:
    """p + scale q."""
    total = dict(p)
    for m, c in q.items():
        total[m] = total.get(m, 0) + scale * c
        if not total[m]:
            del total[m]
    return total


def multiply(p: Poly, q: Poly) -> Poly:
    """p q."""
    if p == ONE or q == ONE:
        return q if p == ONE else p
    if len(p) * len(q) > MOST_PRODUCTS:
        raise Refused(f"a product of polynomials of {len(p)} and {len(q)} terms")
    total: Poly = {}
    for m, c in p.items():
        for n, d in q.items():
            both = tuple(sorted(m + n))
            total[both] = total.get(both, 0) + c * d
    bounded(*total.values())
    if len(total) > MOST_TERMS or max(map(len, total), default=0) > MOST_DEGREE:
        raise Refused(f"a polynomial has more than {MOST_TERMS} terms, or a degree above {MOST_DEGREE}")
    return {m: c for m, c in total.items() if c}


def leading(p: Poly) -> Monomial:
    """The monomial of highest degree, and among these the last; products keep this order."""
    return max(p, key=lambda m: (len(m), m))


def content(p: Poly) -> int:
    """The greatest common divisor of the coefficients, with the sign of the leading one; 1 for 0."""
    return gcd(*p.values()) * (1 if p[leading(p)] > 0 else -1) if p else 1


def common_monomial(p: Poly) -> Monomial:
    """The monomial of highest degree that divides all terms."""
    return tuple(sorted(reduce(Counter.__and__, map(Counter, p)).elements())) if p else ()


def divided(p: Poly, number: int, monomial: Monomial = ()) -> Poly:
    """p / (number · monomial), which divides all terms."""
    under = Counter(monomial)
    return {tuple(sorted((Counter(m) - under).elements())) if under else m: c // number for m, c in p.items()}


def exact_quotient(p: Poly, q: Poly) -> Poly | None:
    """p/q if that is a polynomial with integer coefficients, else None."""
    lead, rest, found = leading(q), dict(p), dict[Monomial, int]()
    while rest:
        m = leading(rest)
        step, c = Counter(m) - Counter(lead), rest[m] // q[lead]
        if step.total() != len(m) - len(lead) or rest[m] % q[lead] or len(found) > MOST_TERMS:
            return None
        found[tuple(sorted(step.elements()))] = c
        rest = add(rest, multiply({tuple(sorted(step.elements())): c}, q), -1)
    return found


def by_powers(p: Poly, k: int) -> dict[int, Poly]:
    """p as Σ p_e · variable_k^e: the polynomials p_e by e."""
    parts = dict[int, Poly]()
    for m, c in p.items():
        parts.setdefault(m.count(k), {})[tuple(i for i in m if i != k)] = c
    return parts
