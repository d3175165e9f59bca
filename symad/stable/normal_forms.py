"""Sums and products as rational combinations of powers, in which equal terms can be found.

A *monomial* is Π b^k with nodes b and integers k ≠ 0; a *term* is a rational number times a monomial. Floats
count as the rational numbers that they are. Roots are bases of their own: (√x)² is not x, which has a value
where √x has none. The factors of a monomial stand in the order in which they were met in the graph: what is
made of them depends on the graph alone.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import sympy

from symad.core.graph import Node, op_of
from symad.facts.functions import fact
from symad.ops.basic.arithmetic import Add, Mul, div, mul, signed_sum
from symad.ops.basic.sources import Constant, Input, constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import HALF, Pow, power

Monomial = tuple[tuple[Node, int], ...]
Number = int | Fraction
Terms = dict[Monomial, Number]
Term = tuple[Number, Monomial]
Part: TypeAlias = tuple[int, Node]
Parts: TypeAlias = list[Part]

ONE: Monomial = ()
MAX_TERMS, MAX_FACTORS, MAX_POWER, MAX_BITS = 40, 12, 8, 64
"""The most terms of a sum, factors of a product, bits of a number; the largest power that is a product."""


FEW_BITS = 16
"""The most bits of a denominator: numbers with more are not written as fractions."""


def head_of(node: Node) -> sympy.FunctionClass | None:
    """The SymPy head of an `Apply` node, else None."""
    return node.op.head if type(node.op) is Apply else None


def plain(node: Node) -> Node:
    """A repeated scalar as this scalar; other nodes unchanged."""
    return node.args[0] if node.op.repeats and not node.args[0].shape else node


def parts_of(node: Node, inside: Callable[[Node], Parts | None], limit: int) -> Parts:
    """The parts of a node, and of parts in it, in order, with the product of their signs or powers.

    ``inside`` gives the parts of one node, None for a node that has none. Beyond the limit the list ends.
    """
    found: Parts = []
    waiting = [(1, node)]
    while waiting and len(found) <= limit:
        sign, part = waiting.pop()
        below = inside(part)
        if below is None:
            found.append((sign, part))
        else:
            waiting.extend([(sign * s, a) for s, a in reversed(below)])
    return found


def terms_of(node: Node) -> Parts:
    """The terms of a sum with their signs, as written."""
    return list(zip(node.op.signs, node.args, strict=True)) if isinstance(node.op, Add) else [(1, node)]


def factors_of(node: Node) -> Parts | None:
    """The factors of a product with their powers, as written; None for other nodes."""
    return list(zip(node.op.powers, node.args, strict=True)) if isinstance(node.op, Mul) else None


def is_root(node: Node) -> bool:
    """Whether a node is √q."""
    return type(node.op) is Pow and rational(node.args[1]) == HALF


def rational(node: Node) -> Number | None:
    """The exact value of a number with few digits; None for other nodes."""
    op = node.op
    if type(op) is not Constant:
        return None
    value = op.value
    if type(value) is float and (value * 2.0 ** (FEW_BITS - 1)).is_integer():
        value = int(value) if value.is_integer() else Fraction(value)
    if type(value) is int:
        return value if value.bit_length() <= MAX_BITS else None
    few = type(value) is Fraction and value.denominator.bit_length() <= FEW_BITS
    return value if few else None


def negated(node: Node) -> Node | None:
    """The node u for −u; None for others."""
    return node.args[0] if type(node.op) is Add and node.op.signs == (-1,) else None


def reflection(node: Node) -> tuple[int, Node] | None:
    """±1 and f(u) for f(−u), where f is an odd or even function; None for other nodes."""
    parity = fact(node.op.head).parity if type(node.op) is Apply else 0
    u = negated(node.args[0]) if parity else None
    return None if u is None else (parity, apply(op_of(node, Apply).head, u))


def _is_base(node: Node) -> bool:
    """Whether a node is one factor, quickly: an input, a function, a sum."""
    kind = type(node.op)
    if kind is Apply or kind is Add:
        return len(node.args) > 1 or (kind is Apply and type(node.args[0].op) is not Add)
    return kind is Input


class _Numbers(dict[Node, int]):
    """The numbers of nodes, in the order in which they are asked for."""

    def __missing__(self, node: Node) -> int:
        self[node] = found = len(self)
        return found


class Forms:
    """The normal forms of the nodes of one graph, each found once."""

    def __init__(self) -> None:
        """Nothing is known."""
        self.products: dict[Node, Term] = {}
        self.sums: dict[Node, Terms] = {}
        self.large: set[Node] = set()
        self.variables: dict[Monomial, Any] = {}
        self.arguments: dict[tuple[Node, bool], Any] = {}
        self.numbers = _Numbers()

    def ordered(self, powers: dict[Node, int]) -> Monomial:
        """The monomial of some factors, those with the power 0 left out."""
        pairs = [pair for pair in powers.items() if pair[1]]
        if len(pairs) > 1:
            numbers = self.numbers
            pairs.sort(key=lambda pair: numbers[pair[0]])
        return tuple(pairs)

    def times(self, a: Monomial, b: Monomial, k: int = 1) -> Monomial:
        """The product a b^k of two monomials."""
        powers = dict(a)
        for base, j in b:
            powers[base] = powers.get(base, 0) + j * k
        return self.ordered(powers)

    def monomial(self, node: Node, depth: int = MAX_FACTORS) -> Term:
        """The coefficient and the monomial of a product; a product of many factors is one factor."""
        found = self.products.get(node)
        if found is None:
            found = self._monomial(plain(node), depth) if depth else (1, ((node, 1),))
            if len(found[1]) > MAX_FACTORS:
                found = 1, ((node, 1),)
            self.products[node] = found
        return found

    def _monomial(self, node: Node, depth: int) -> Term:
        op = node.op
        if type(op) is Mul:
            coefficient: Number = 1
            powers: dict[Node, int] = {}
            for p, factor in zip(op.powers, node.args, strict=True):
                if _is_base(factor):
                    powers[factor] = powers.get(factor, 0) + p
                    continue
                c, m = self.monomial(factor, depth - 1)
                if p < 0 and not c:
                    return 1, ((node, 1),)
                if c != 1:
                    c = c if p > 0 else 1 / Fraction(c)
                    coefficient = c if coefficient == 1 else coefficient * c
                for base, k in m:
                    powers[base] = powers.get(base, 0) + p * k
            return coefficient, self.ordered(powers)
        if type(op) is Add and len(node.args) == 1:
            c, m = self.monomial(node.args[0], depth - 1)
            return c * op.signs[0], m
        if type(op) is Pow:
            exponent = constant_value(node.args[1])
            if type(exponent) is int and 2 <= exponent <= MAX_POWER:
                c, m = self.monomial(node.args[0], depth - 1)
                return c**exponent, tuple([(base, k * exponent) for base, k in m])
        reflected = reflection(node)
        if reflected is not None:
            return reflected[0], ((reflected[1], 1),)
        value = rational(node)
        return (1, ((node, 1),)) if value is None else (value, ONE)

    def rooted(self, m: Monomial) -> Term:
        """A product where it has a value: even powers of √q and |u| are powers of q and u."""
        coefficient: Number = 1
        for base, k in m:
            root = is_root(base)
            if k % 2 == 0 and (root or head_of(base) is sympy.Abs):
                j = k // 2 if root else k
                c, inside = self.monomial(base.args[0])
                coefficient *= Fraction(c) ** j
                m = self.times(self.times(m, ((base, -k),)), inside, j)
        return coefficient, m

    def terms(self, node: Node, depth: int = 3) -> Terms:
        """The terms of a sum, of sums in it, and of multiples of sums; 0 has none."""
        found = self.sums.get(node)
        if found is None:
            found = self._terms(plain(node), depth)
            if len(found) > MAX_TERMS:  # chains of sums would be listed again and again
                c, m = self.monomial(node)
                found = {m: c}
            self.sums[node] = found
        return found

    def _terms(self, node: Node, depth: int) -> Terms:
        if type(node.op) is Add and depth and len(node.args) <= MAX_TERMS:
            parts = [self.terms(part, depth - 1) for part in node.args]
            return collected(*zip(node.op.signs, parts, strict=True))[0]
        coefficient, factors = self.monomial(node)
        if depth and len(factors) == 1:
            ((base, k),) = factors
            if k == 1 and base is not node and type(base.op) is Add:
                return {m: coefficient * c for m, c in self.terms(base, depth - 1).items()}
        return {factors: coefficient} if coefficient else {}


def collected(*parts: tuple[int, Terms]) -> tuple[Terms, bool]:
    """The sum of terms with signs, and whether terms of opposite signs met."""
    found: Terms = {}
    met = False
    for sign, terms in parts:
        for m, c in terms.items():
            c = c if sign > 0 else -c
            before = found.get(m)
            if before is None:
                if c:  # rules divide by coefficients
                    found[m] = c
                continue
            met = met or (before < 0) != (c < 0)
            if before == -c:
                del found[m]
            else:
                found[m] = before + c
    return found, met


def product(coefficient: Number, factors: Monomial) -> Node:
    """A term as a node. It is divided by one factor after the other, whose product may overflow."""
    made = mul(constant(coefficient), *(power(b, constant(k)) for b, k in factors if k > 0))
    for base, k in factors:
        if k < 0:
            made = div(made, power(base, constant(-k)))
    return made


def total(terms: Terms) -> Node:
    """A sum of terms as a node."""
    return signed_sum([(1 if c > 0 else -1, product(c if c > 0 else -c, m)) for m, c in terms.items()])


def common(a: Monomial, b: Monomial) -> Monomial:
    """The factors that two monomials share, each with the smaller power of one sign."""
    other = dict(b)
    shared = []
    for base, k in a:
        j = other.get(base, 0)
        if j * k > 0:
            shared.append((base, min(k, j, key=abs)))
    return tuple(shared)
