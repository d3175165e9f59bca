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

from symad.verification.checker.terms import Refused

Monomial: TypeAlias = int
Poly: TypeAlias = "dict[Monomial, int]"

WIDTH = 16
GUARD = 1 << (WIDTH - 1)
MOST_TERMS, MOST_PRODUCTS = 4000, 100_000
"""Polynomials of more terms, and products of more pairs of terms, are refused."""

ONE: Poly = {0: 1}


def variable(k: int) -> Poly:
    """Variable k."""
    return {1 << WIDTH * k: 1}


def exponents(monomial: Monomial) -> list[tuple[int, int]]:
    """(k, e) for each variable k with exponent e > 0."""
    found, k = [], 0
    while monomial:
        e = monomial & (GUARD - 1)
        if e:
            found.append((k, e))
        monomial >>= WIDTH
        k += 1
    return found


def monomial_of(powers: Iterable[tuple[int, int]]) -> Monomial:
    """Π variable_k^e."""
    total = 0
    for k, e in powers:
        if not 0 <= e < GUARD or not 0 <= k < MOST_TERMS:
            raise Refused("an exponent is too large")
        total += e << WIDTH * k
    return total


def guards(monomial: Monomial) -> Monomial:
    """The guard bits of all fields up to the last one of a monomial."""
    fields = (monomial.bit_length() + WIDTH - 1) // WIDTH
    return GUARD * (((1 << WIDTH * fields) - 1) // ((1 << WIDTH) - 1))


def add(p: Poly, q: Poly, scale: int = 1) -> Poly:
    """p + scale q."""
    total = dict(p)
    for m, c in q.items():
        value = total.get(m, 0) + scale * c
        if value:
            total[m] = value
        else:
            total.pop(m, None)
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
    if every & guards(every):
        raise Refused("an exponent is too large")
    made = {m: c for m, c in total.items() if c}
    if len(made) > MOST_TERMS:
        raise Refused(f"a polynomial of more than {MOST_TERMS} terms")
    return made


def power(p: Poly, k: int) -> Poly:
    """p^k for k ≥ 0, by repeated squaring."""
    result = ONE
    while k:
        if k & 1:
            result = multiply(result, p)
        k >>= 1
        if k:
            p = multiply(p, p)
    return result


def content(p: Poly) -> int:
    """The greatest common divisor of the coefficients, with the sign of the leading one."""
    if not p:
        return 1
    return gcd(*p.values()) * (1 if p[max(p)] > 0 else -1)


def common_monomial(p: Poly) -> Monomial:
    """The monomial of highest degrees that divides all terms."""
    rows = [dict(exponents(m)) for m in p] or [{}]
    return monomial_of((k, min(row.get(k, 0) for row in rows)) for k in rows[0])


def divided(p: Poly, number: int, monomial: Monomial = 0) -> Poly:
    """p / (number · monomial), which divides all terms."""
    return {m - monomial: c // number for m, c in p.items()}


def exact_quotient(p: Poly, q: Poly) -> Poly | None:
    """p/q if that is a polynomial with integer coefficients, else None."""
    lead, rest, found = max(q), dict(p), dict[int, int]()
    top = q[lead]
    while rest:
        if len(found) > MOST_TERMS:
            return None
        m = max(rest)
        mask = guards(max(m, lead))
        if ((m | mask) - lead) & mask != mask or rest[m] % top:
            return None
        step, c = m - lead, rest[m] // top
        found[step] = c
        rest = add(rest, {n + step: d for n, d in q.items()}, -c)
    return found


def degree(p: Poly, k: int) -> int:
    """The highest exponent of variable k."""
    shift = WIDTH * k
    return max(((m >> shift) & (GUARD - 1) for m in p), default=0)


def by_powers(p: Poly, k: int) -> dict[int, Poly]:
    """p as Σ p_e · variable_k^e: the polynomials p_e by e."""
    shift, parts = WIDTH * k, dict[int, Poly]()
    for m, c in p.items():
        e = (m >> shift) & (GUARD - 1)
        parts.setdefault(e, {})[m - (e << shift)] = c
    return parts
