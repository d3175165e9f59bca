"""Clues: quick necessary conditions for the rules of sums and products, which most nodes fail.

A *print* is a number for each monomial, the sum of those of its factors: equal monomials have equal prints,
and the print of a quotient is a difference. Listing the terms of a sum in normal form costs more than all
else in a pass; here it is asked first whether terms may be equal, whether a factor has a partner, a function
of one kind of a related argument, and whether what a row leaves of one term is another one. A clue may
mislead, but none is missed.
"""

from __future__ import annotations

from fractions import Fraction

import sympy
from sympy.codegen.cfunctions import Cbrt, log1p

from symad.core.graph import Node
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.sources import Constant
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import HALF, Pow
from symad.ops.elementwise.selection import Select
from symad.stable.normal_forms import MAX_FACTORS, MAX_POWER, MAX_TERMS, PARITY, head_of, rational
from symad.stable.secants import COMPLEMENTS

Factors = tuple[tuple[Node, int], ...]
Sketch = tuple[int, Factors]
"""The print of a term, and its factors that are no numbers with their powers."""

NUMBER: Sketch = (0, ())
SUM = "sum"
MAX_PARTNERS = 12
"""Of more functions with a common term, each is compared with the last ones."""


class Clues:
    """The prints of the nodes of one graph, and which factors have partners."""

    def __init__(self) -> None:
        """Nothing is known."""
        self.sketches: dict[Node, Sketch] = {}
        self.listed: dict[Node, tuple[Sketch, ...]] = {}
        self.bases: dict[int, Node] = {}
        self.partners: dict[tuple[object, object], list[Node]] = {}
        self.sizes: dict[Node, int] = {}
        self.factors: set[Node] = set()
        self.paired: set[Node] = set()
        """Factors with a partner."""

    def sketch(self, node: Node) -> Sketch:
        """The print and the factors of a product."""
        found = self.sketches.get(node)
        if found is None:
            found = self.sketches[node] = self._sketch(node)
        return found

    def _sketch(self, node: Node) -> Sketch:
        op = node.op
        kind = type(op)
        if isinstance(op, Mul):
            return self._of_product(op.powers, node)
        if kind is Constant:
            return NUMBER if rational(node) is not None else self._base(node)
        if kind is Add and len(node.args) == 1:
            return self.sketch(node.args[0])
        if op.repeats and not node.args[0].shape:
            return self.sketch(node.args[0])
        if kind is Pow:
            exponent = rational(node.args[1])
            if type(exponent) is int and 2 <= exponent <= MAX_POWER:
                value, factors = self.sketch(node.args[0])
                if len(factors) == 1 and factors[0][0] not in self.factors:
                    self._be_factor(factors[0][0])
                return exponent * value, tuple([(b, k * exponent) for b, k in factors])
        if kind is Apply and head_of(node) in PARITY:
            u = node.args[0]
            if isinstance(u.op, Add) and u.op.signs == (-1,):
                return self.sketch(Node.of(op, u.args))
        return self._base(node)

    def _of_product(self, powers: tuple[int, ...], node: Node) -> Sketch:
        value, known = 0, self.sketches
        factors: Factors = ()
        for p, factor in zip(powers, node.args, strict=True):
            inner, below = known.get(factor) or self.sketch(factor)
            if len(below) == 1 and below[0][0] not in self.factors:
                self._be_factor(below[0][0])
            value += p * inner
            factors += below if p == 1 else tuple([(b, -k) for b, k in below])
        return (value, factors) if len(factors) <= MAX_FACTORS else self._base(node)

    def _base(self, node: Node) -> Sketch:
        """A node as one factor; its partners are found."""
        value = hash((node, 1))
        self.bases[value] = node
        op, args = node.op, node.args
        kind = type(op)
        if kind is Apply:
            head = head_of(node)
            family = sympy.log if head is log1p else head
            self._relate(node, (Pow, Fraction(1, 3)) if head is Cbrt else (family, *args[:-1]), args[-1])
        elif kind is Pow:
            exponent = rational(args[1])
            self._relate(node, (Pow, args[1] if exponent is None else exponent), args[0])
        elif kind is Add or kind is Select:
            self._relate(node, SUM, node if kind is Add else args[2])
        return value, ((node, 1),)

    def _be_factor(self, node: Node) -> None:
        """A factor other than a sum is a partner of sums with this term."""
        self.factors.add(node)
        if type(node.op) is not Add and type(node.op) is not Constant:
            others = self._enter(node, (SUM, hash((node, 1))))
            self.paired.update((node, *others) if others else ())

    def _relate(self, node: Node, family: object, inside: Node) -> None:
        """Functions of one kind are partners if the difference of their arguments may be shorter than these.

        Products of functions and sums are compared by their powers: there may be a row for their difference.
        """
        terms = self.terms(inside)
        prints = {value for value, _ in terms}
        if head_of(node) is log1p:
            prints.add(0)
        size, shared = len(prints), dict[Node, int]()
        self.sizes[node] = size
        for value in prints:
            if value or size < 3:
                for other in self._enter(node, (family, value)):
                    shared[other] = shared.get(other, 0) + 1
        number = 0 in prints
        for other, count in shared.items():
            size_ = self.sizes.get(other, 1)
            if 2 * (count + number) > min(size, size_) or 2 * count >= size + size_ - 2:
                self.paired.update((node, other))
        if size == 1 and type(node.op) is not Add:
            factors = terms[0][1]
            others = self._enter(
                node, (family, frozenset([(head_of(b), type(b.op) is Pow, k) for b, k in factors]))
            )
            if others and any([b in self.paired for b, _ in factors]):
                self.paired.update((node, *others))

    def _enter(self, node: Node, key: tuple[object, object]) -> list[Node]:
        """The last nodes that have been entered before."""
        entered = self.partners.setdefault(key, [])
        others = [other for other in entered[-MAX_PARTNERS:] if other is not node]
        entered.append(node)
        return others

    def terms(self, node: Node, depth: int = 3) -> tuple[Sketch, ...]:
        """The terms of a sum, of sums in it, and of multiples of sums."""
        found = self.listed.get(node)
        if found is None:
            found = self._terms(node, depth)
            if len(found) > MAX_TERMS:
                found = ((hash((node, 1)), ((node, 1),)),)
            self.listed[node] = found
        return found

    def _terms(self, node: Node, depth: int) -> tuple[Sketch, ...]:
        if type(node.op) is Add and depth and len(node.args) <= MAX_TERMS:
            return tuple([term for part in node.args for term in self.terms(part, depth - 1)])
        if type(node.op) is Add and len(node.args) > MAX_TERMS:
            return ((hash((node, 1)), ((node, 1),)),)  # as one factor
        made = self.sketch(node)
        if depth and len(made[1]) == 1:
            ((base, k),) = made[1]
            if k == 1 and base is not node and type(base.op) is Add:
                return self.terms(base, depth - 1)
        return (made,)

    # ---- the questions -------------------------------------------------------------------------------

    def may_change(self, node_args: tuple[Node, ...], last: bool) -> bool:
        """Whether a sum may have a better form: equal terms, partners, or a row with another term."""
        terms = [term for a in node_args for term in self.terms(a)]
        prints = {value for value, _ in terms}
        if len(prints) < len(terms):
            return True
        paired = self.paired
        for value, factors in terms:
            for base, k in factors:
                if base in paired:
                    return True
                kind = type(base.op)
                if kind is Apply:
                    head = head_of(base)
                    if head in COMPLEMENTS:
                        one = self.sketch(base)[0]
                        if any([value - row.power * one in prints for row in COMPLEMENTS[head]]):
                            return True
                elif kind is Pow and abs(k) == 1 and value - k * self.sketch(base)[0] in prints:
                    return True
                elif kind is Add and k == 1:
                    rest = value - self.sketch(base)[0]
                    if any([rest + inner in prints for inner, _ in self.terms(base)]):
                        return True
                if k < 0 and self._is_quotient(value, k, base, prints):
                    return True
        return last and len(terms) <= 3 and self._is_conjugate(terms)

    def _is_quotient(self, value: int, k: int, under: Node, prints: set[int]) -> bool:
        """Whether a term without its divisor is another one, but for a factor or a term of the divisor."""
        one = self.sketch(under)[0]
        inside = {inner for inner, _ in self.terms(under)} if type(under.op) is Add else ()
        for other in prints:
            rest = value - k * one - other
            over = self.bases.get(rest)
            found = over is not None and bool(over.args or under.args)
            if found or not rest or value + one - other in inside:
                return True
        return False

    def _is_conjugate(self, terms: list[Sketch]) -> bool:
        """Whether a term is a root, and squares of the others are inside of it."""
        for value, factors in terms:
            if len(factors) == 1 and type(factors[0][0].op) is Pow:
                root = factors[0][0]
                others = [other for other, _ in terms if other != value]
                squares = {a + b for a in others for b in others}
                if rational(root.args[1]) == HALF and not squares.isdisjoint(
                    [inner for inner, _ in self.terms(root.args[0])]
                ):
                    return True
        return False
