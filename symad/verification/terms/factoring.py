"""Positive nodes as products of rational powers, for logarithms and roots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import gcd, lcm

import sympy

from symad.core.graph import Node, op_of
from symad.ops.basic.arithmetic import Add, Mul, add, mul, signed_product, signed_sum
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow, power
from symad.verification.terms.linear_terms import MAX_TERMS_APART, Terms, merged, multiple, number


def power_factors(node: Node, sign: Callable[[Node], int], absolutes: bool = False) -> Terms:
    """node = Π b^e over rational e, where node is positive: all b are positive there.

    A product is split only if at most one factor may be negative; b^e for even e becomes |b|^e, where
    |b| = sign(b)·b. With ``absolutes``, ab of unknown signs is split as well, as |a| |b|: true where ab is
    positive, but no longer undefined elsewhere.
    """
    found: Terms = []
    todo: Terms = [(Fraction(1), node)]
    while todo:
        e, n = todo.pop()
        parts = _factors(n, sign, absolutes) if len(found) + len(todo) < MAX_TERMS_APART else None
        if parts is None:
            found.append((e, n))
        else:
            todo.extend((e * exponent, part) for exponent, part in reversed(parts))
    return merged((e, b) for e, b in found if constant_value(b) != 1)


def _factors(n: Node, sign: Callable[[Node], int], absolutes: bool) -> Terms | None:
    value = number(n)
    if value is not None:
        return _prime_factors(value)
    if isinstance(n.op, Mul):
        return _factors_of_product(n, n.op.powers, sign, absolutes)
    if isinstance(n.op, Add):
        return _common_powers(n, sign) or _content(n)
    if isinstance(n.op, Pow):
        exponent = number(n.args[1])
        if exponent is not None and (sign(n.args[0]) == 1 or exponent.denominator > 1):
            return [(exponent, n.args[0])] if exponent.numerator != 1 else None
        if exponent is not None and exponent.denominator == 1 and exponent % 2 == 0:
            return [(exponent, absolute(n.args[0]))]
    return None


def _factors_of_product(
    n: Node, powers: Sequence[int], sign: Callable[[Node], int], absolutes: bool
) -> Terms | None:
    """At most one factor of unknown sign, or by absolute values any."""
    if (len(n.args) == 1 and tuple(powers) == (1,)) or _is_absolute(n):
        return None
    factors = list(n.args)
    if sum(sign(a) != 1 for a in factors) > 1:
        if not absolutes:
            return None
        factors = [a if sign(a) == 1 else absolute(a) for a in factors]
    return [(Fraction(p), a) for p, a in zip(powers, factors, strict=True)]


def _content(n: Node) -> Terms | None:
    """A sum as its positive rational content times the rest; None where that is 1."""
    signed = zip(op_of(n, Add).signs, n.args, strict=True)
    terms = [(s * c, m) for s, a in signed for c, m in _one_multiple(a)]
    numerators = gcd(*[c.numerator for c, _ in terms])
    content = Fraction(numerators, lcm(*[c.denominator for c, _ in terms]))
    if content == 1 or max(content.numerator, content.denominator) > 1 << 62:
        return None
    rest = add(*[mul(constant(c / content), m) for c, m in terms])
    return [(Fraction(1), constant(content)), (Fraction(1), rest)] if rest.shape == n.shape else None


def _common_powers(n: Node, sign: Callable[[Node], int]) -> Terms | None:
    """A sum without the powers common to its terms: 1 + 1/E = (E + 1)/E, 1 + 1/x² = (x² + 1)/x².

    Of what may be negative only even powers are taken out.
    """
    parts = [_powers(a) for a in n.args]
    common = _lowest([powers for powers, _ in parts], sign)
    if not common:
        return None
    terms = []
    for turn, (powers, rest) in zip(op_of(n, Add).signs, parts, strict=True):
        left = {b: powers.get(b, 0) - common.get(b, 0) for b in (*powers, *common)}
        factors = [power(b, constant(k)) for b, k in left.items() if k]
        terms.append((turn, mul(signed_product(rest), *factors) if rest else mul(*factors, constant(1))))
    whole = signed_sum(terms)
    if whole.shape != n.shape:
        return None
    outside = [(Fraction(k), b if sign(b) == 1 else absolute(b)) for b, k in common.items()]
    return [(Fraction(1), whole), *outside]


def _lowest(rows: Sequence[dict[Node, int]], sign: Callable[[Node], int]) -> dict[Node, int]:
    """The powers that all terms share. Of a base that may be negative, only an even power is taken."""
    common: dict[Node, int] = {}
    for base in dict.fromkeys(b for powers in rows for b in powers):
        lowest = min(powers.get(base, 0) for powers in rows)
        taken = lowest if lowest % 2 == 0 or sign(base) == 1 else lowest - 1
        if taken:
            common[base] = taken
    return common


def _powers(a: Node) -> tuple[dict[Node, int], list[tuple[int, Node]]]:
    """A term as integer powers of nodes, times its numbers."""
    powers: dict[Node, int] = {}
    numbers: list[tuple[int, Node]] = []
    todo = [(1, a)]
    while todo:
        k, n = todo.pop()
        exponent = number(n.args[1]) if isinstance(n.op, Pow) else None
        if isinstance(n.op, Mul):
            todo.extend((k * p, arg) for p, arg in zip(n.op.powers, n.args, strict=True))
        elif number(n) is not None:
            numbers.append((1 if k > 0 else -1, power(n, constant(abs(k)))))
        elif exponent is not None and exponent.denominator == 1 and isinstance(n.args[0].op, Mul):
            todo.append((k * int(exponent), n.args[0]))
        elif exponent is not None and exponent.denominator == 1:
            powers[n.args[0]] = powers.get(n.args[0], 0) + k * int(exponent)
        else:
            powers[n] = powers.get(n, 0) + k
    return powers, numbers


def _one_multiple(a: Node) -> Terms:
    value = number(a)
    if value is not None:
        return [(value, constant(1))]
    return (multiple(a) if isinstance(a.op, Mul) else None) or [(Fraction(1), a)]


def _prime_factors(value: Fraction) -> Terms | None:
    """The factorization of a positive rational; None for primes, 1 and what is too large."""
    if value <= 0 or max(value.numerator, value.denominator) > 1 << 62:
        return None
    primes: dict[int, int] = sympy.factorint(value.numerator)
    for p, e in sympy.factorint(value.denominator).items():
        primes[p] = primes.get(p, 0) - e
    if value == 1 or (len(primes) == 1 and value in primes):
        return None
    return [(Fraction(e), constant(int(p))) for p, e in sorted(primes.items())]


def absolute(b: Node) -> Node:
    """sign(b)·b."""
    return mul(apply(sympy.sign, b), b)


def _is_absolute(n: Node) -> bool:
    """Whether a product is sign(b)·b."""
    heads = [a.args[0] for a in n.args if isinstance(a.op, Apply) and a.op.head is sympy.sign]
    return len(n.args) == 2 and len(heads) == 1 and heads[0] in n.args
