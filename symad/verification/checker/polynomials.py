"""Polynomials with integer coefficients in numbered variables.

A polynomial is a dictionary from monomials to coefficients other than 0. A monomial is one integer: the
exponent of variable k stands in its bits 16 k to 16 k + 14, so that a product of monomials is a sum of
integers. Bit 15 of each field stays 0 and shows when an exponent would become too large.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from math import gcd
from operator import or_
from typing import TypeAlias

from symad.verification.checker.terms import Refused, bounded

Poly: TypeAlias = "dict[int, int]"

WIDTH = 16
GUARD = 1 << (WIDTH - 1)
MOST_TERMS, MOST_PRODUCTS = 4000, 100_000
"""Polynomials of more terms, and products of more pairs of terms, are refused."""

ONE: Poly = {0: 1}


def exponents(monomial: int) -> list[tuple[int, int]]:
    """(k, e) for each variable k with exponent e > 0."""
    found, k = [], 0
    while monomial:
        if e := monomial & (GUARD - 1):
            found.append((k, e))
        monomial, k = monomial >> WIDTH, k + 1
    return found


def monomial_of(powers: Iterable[tuple[int, int]], variables: int = MOST_TERMS) -> int:
    """Π variable_k^e for k below a number of variables."""
    total = 0
    for k, e in powers:
        if not 0 <= e < GUARD or not 0 <= k < variables:
            raise Refused("an exponent is too large, or a generator is not there")
        total += e << WIDTH * k
    return total


def guards(monomial: int) -> int:
    """The guard bits of all fields up to the last one of a monomial."""
    fields = (monomial.bit_length() + WIDTH - 1) // WIDTH
    return GUARD * (((1 << WIDTH * fields) - 1) // ((1 << WIDTH) - 1))


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
            total[m + n] = total.get(m + n, 0) + c * d
    every = reduce(or_, total, 0)
    if every & guards(every) or len(total) > MOST_TERMS:
        raise Refused(f"an exponent is too large, or a polynomial has more than {MOST_TERMS} terms")
    bounded(*total.values())
    return {m: c for m, c in total.items() if c}


def content(p: Poly) -> int:
    """The greatest common divisor of the coefficients, with the sign of the leading one; 1 for 0."""
    return gcd(*p.values()) * (1 if p[max(p)] > 0 else -1) if p else 1


def common_monomial(p: Poly) -> int:
    """The monomial of highest degrees that divides all terms."""
    rows = [dict(exponents(m)) for m in p] or [{}]
    return monomial_of((k, min(row.get(k, 0) for row in rows)) for k in rows[0])


def divided(p: Poly, number: int, monomial: int = 0) -> Poly:
    """p / (number · monomial), which divides all terms."""
    return {m - monomial: c // number for m, c in p.items()}


def exact_quotient(p: Poly, q: Poly) -> Poly | None:
    """p/q if that is a polynomial with integer coefficients, else None."""
    lead, rest, found = max(q), dict(p), dict[int, int]()
    while rest:
        m = max(rest)
        mask = guards(max(m, lead))
        if ((m | mask) - lead) & mask != mask or rest[m] % q[lead] or len(found) > MOST_TERMS:
            return None
        step, c = m - lead, rest[m] // q[lead]
        found[step] = c
        rest = add(rest, {n + step: d for n, d in q.items()}, -c)
    return found


def by_powers(p: Poly, k: int) -> dict[int, Poly]:
    """p as Σ p_e · variable_k^e: the polynomials p_e by e."""
    shift, parts = WIDTH * k, dict[int, Poly]()
    for m, c in p.items():
        e = (m >> shift) & (GUARD - 1)
        parts.setdefault(e, {})[m - (e << shift)] = c
    return parts
