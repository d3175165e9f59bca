"""Sums and products as rational combinations of powers, in which equal terms can be found.

A *monomial* is Π b^k with nodes b and integers k ≠ 0; a *term* is a rational number times a monomial. Floats
count as the rational numbers that they are. Roots are bases of their own: (√x)² is not x, which has a value
where √x has none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

import sympy

from symad.core.graph import Node
from symad.ops.basic.arithmetic import Add, Mul, signed_product, signed_sum
from symad.ops.basic.sources import constant, constant_value, is_exact
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow, power

Monomial = frozenset[tuple[Node, int]]
Terms = dict[Monomial, Fraction]

ONE: Monomial = frozenset()
DEPTH, MAX_TERMS, MAX_BITS = 6, 40, 200
"""Products and sums are looked through to this depth, sums have this many terms, numbers this many bits."""


def head_of(node: Node) -> sympy.FunctionClass | None:
    """The SymPy head of an `Apply` node, else None."""
    return node.op.head if isinstance(node.op, Apply) else None


def plain(node: Node) -> Node:
    """A repeated scalar as this scalar; other nodes unchanged."""
    return node.args[0] if node.op.repeats and not node.args[0].shape else node


def rational(node: Node) -> Fraction | None:
    """The exact value of a number; None for other nodes, and for numbers with many digits."""
    value = constant_value(node)
    if isinstance(value, bool) or not (is_exact(value) or isinstance(value, float)):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    found = Fraction(value)
    return found if max(found.numerator.bit_length(), found.denominator.bit_length()) <= MAX_BITS else None


def number(value: Fraction) -> Node:
    """A rational number as a constant: a float where it was one."""
    few = value.denominator & (value.denominator - 1) or value.denominator < 1 << 20
    return constant(value if few else float(value))


def monomial(node: Node) -> tuple[Fraction, Monomial]:
    """The coefficient and the monomial of a product."""
    powers: Counter[Node] = Counter()
    coefficient = _gather(node, 1, powers, DEPTH)
    return coefficient, frozenset((b, k) for b, k in powers.items() if k)


def _gather(given: Node, k: int, powers: Counter[Node], depth: int) -> Fraction:
    """Add the factors of ``given`` to the k to the powers; the number among them."""
    node = plain(given)
    op, value = node.op, rational(node)
    if value is not None and (value or k > 0) and abs(k) < MAX_BITS:
        return value**k
    coefficient = Fraction(1)
    if depth and isinstance(op, Mul):
        for p, factor in zip(op.powers, node.args, strict=True):
            coefficient *= _gather(factor, k * p, powers, depth - 1)
        return coefficient
    if depth and isinstance(op, Add) and len(node.args) == 1:
        return _gather(node.args[0], k, powers, depth - 1) * op.signs[0] ** k
    exponent = constant_value(node.args[1]) if isinstance(op, Pow) else None
    if depth and isinstance(exponent, int) and 2 <= exponent <= MAX_TERMS:
        return _gather(node.args[0], k * exponent, powers, depth - 1)
    powers[node] += k
    return coefficient


def terms_of(node: Node, depth: int = 3) -> list[tuple[Fraction, Monomial]]:
    """The terms of a sum, of sums in it, and of multiples of sums."""
    node = plain(node)
    if isinstance(node.op, Add) and depth:
        return [
            (sign * c, m)
            for sign, part in zip(node.op.signs, node.args, strict=True)
            for c, m in terms_of(part, depth - 1)
        ]
    coefficient, factors = monomial(node)
    if depth and len(factors) == 1:
        ((base, k),) = factors
        if k == 1 and base is not node and isinstance(base.op, Add):
            return [(coefficient * c, m) for c, m in terms_of(base, depth - 1)]
    return [(coefficient, factors)]


def collected(*parts: list[tuple[Fraction, Monomial]]) -> tuple[Terms, bool]:
    """The sum of some terms, and whether terms of opposite signs met."""
    found: Terms = {}
    met = False
    for part in parts:
        for c, m in part:
            before = found.get(m, Fraction(0))
            met = met or before * c < 0
            found[m] = before + c
    return {m: c for m, c in found.items() if c}, met


def product(coefficient: Fraction, factors: Monomial) -> Node:
    """A term as a node; numerators first."""
    ordered = sorted(factors, key=lambda pair: -pair[1])
    parts = [(1 if k > 0 else -1, power(b, constant(abs(k)))) for b, k in ordered]
    return signed_product([(1, number(coefficient)), *parts])


def total(terms: Mapping[Monomial, Fraction]) -> Node:
    """A sum of terms as a node."""
    return signed_sum([(1 if c > 0 else -1, product(abs(c), m)) for m, c in terms.items()])


def times(a: Monomial, b: Monomial) -> Monomial:
    """The product of two monomials."""
    powers = Counter(dict(a))
    for base, k in b:
        powers[base] += k
    return frozenset((base, k) for base, k in powers.items() if k)


def inverse(a: Monomial) -> Monomial:
    """The reciprocal of a monomial."""
    return frozenset((base, -k) for base, k in a)


def common(a: Monomial, b: Monomial) -> Monomial:
    """The factors that two monomials share, each with the smaller power of one sign."""
    other = dict(b)
    shared = []
    for base, k in a:
        j = other.get(base, 0)
        if j * k > 0:
            shared.append((base, min(k, j, key=abs)))
    return frozenset(shared)
