"""Scalar terms: what graphs are once they are written out, element by element.

A term is a number, a variable, a sum, a product, a rational power, a function called by name, a sum over
index symbols, [i = j] for index symbols, or −∞. Equal terms are one object, however often they are used.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

Operand: TypeAlias = "Term | Fraction | int"
MOST_TERMS, MOST_WORK, MOST_BITS, MOST_POWER = 200_000, 5_000_000, 20_000, 1000  # more are refused
FREE, BOUND = 10_000, 20_000  # positions are below; index symbols begin here, and those that sums bind


class Refused(Exception):
    """A claim or a step that the checker does not accept; says why."""


def bounded(*numbers: int) -> None:
    """Refuse integers that are too long."""
    if max(map(int.bit_length, numbers), default=0) > MOST_BITS:
        raise Refused(f"a number of more than {MOST_BITS} bits")


@dataclass(frozen=True, eq=False, slots=True)
class Term:
    """One term; ``data`` is the number, the name, the exponent, or the index symbols with their sizes."""

    table: Terms
    kind: str
    data: Any
    args: tuple[Term, ...]
    index: int

    @property
    def number(self) -> Fraction | None:
        """The value of a number."""
        return self.data if self.kind == "number" else None

    def __add__(self, other: Operand) -> Term:
        return self.table.sum([self, other])

    def __mul__(self, other: Operand) -> Term:
        return self.table.product([self, other])

    def __pow__(self, exponent: Fraction | int) -> Term:
        return self.table.power(self, Fraction(exponent))

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other: Operand) -> Term:
        return self + self.table.term(other) * -1

    def __rsub__(self, other: Operand) -> Term:
        return self * -1 + other

    def __truediv__(self, other: Operand) -> Term:
        return self * self.table.term(other) ** -1


class Terms:
    """All terms of one proof, numbered in the order in which they are made: arguments come first."""

    def __init__(self) -> None:
        """There is −∞ alone, of which a sum is −∞, and exp is 0; ``truths`` are known to be 0 or 1."""
        self.work, self.truths, self.known = 0, set[Term](), dict[tuple[Hashable, ...], Term]()
        self.numbers: dict[Operand, Term] = {}
        self.minus_infinity = self.made("infinity", None)

    def spend(self, work: int) -> None:
        """Count work, and refuse more than is allowed."""
        self.work += work
        if self.work > MOST_WORK:
            raise Refused("writing the claim out takes too long")

    def made(self, kind: str, data: object, *args: Term) -> Term:
        """The term; it is made if there is none."""
        if (kind, data, args) not in self.known:
            if len(self.known) >= MOST_TERMS or (args and self.minus_infinity in args):
                raise Refused(f"more than {MOST_TERMS} scalar terms, or −∞ is used as a number")
            self.known[kind, data, args] = Term(self, kind, data, args, len(self.known))
        return self.known[kind, data, args]

    def term(self, value: Operand) -> Term:
        """A number as a term; terms as they are."""
        if isinstance(value, Term) or value in self.numbers:
            return value if isinstance(value, Term) else self.numbers[value]
        bounded((exact := Fraction(value)).numerator, exact.denominator)
        return self.numbers.setdefault(value, self.made("number", exact))

    def _folded(self, parts: Iterable[Operand], start: int) -> tuple[list[Term], Fraction]:
        """The parts that are no numbers, and the sum of the numbers from 0, or their product from 1."""
        terms = [part if isinstance(part, Term) else self.term(part) for part in parts]
        total = Fraction(start)
        self.spend(len(terms))
        kept = [term for term in terms if term.kind != "number"]
        for number in [term.data for term in terms if term.kind == "number"]:
            total = total * number if start else total + number
            bounded(total.numerator, total.denominator)
        return [*kept, self.term(total)] if total != start or not kept else kept, total

    def sum(self, parts: Iterable[Operand]) -> Term:
        """Σ parts; numbers are added up, and zeros disappear."""
        kept, _ = self._folded(parts, 0)
        if self.minus_infinity in kept:
            return self.minus_infinity
        return kept[0] if len(kept) == 1 else self.made("sum", None, *kept)

    def product(self, parts: Iterable[Operand]) -> Term:
        """Π parts; numbers are multiplied, ones disappear, and a zero makes all zero."""
        kept, total = self._folded(parts, 1)
        if not total and self.minus_infinity not in kept:
            return self.term(0)
        return kept[0] if len(kept) == 1 else self.made("product", None, *kept)

    def power(self, base: Term, exponent: Fraction) -> Term:
        """base^exponent for a rational exponent; (u^p)^k is u^(p k) for an integer k."""
        if base.kind == "power" and exponent.denominator == 1:
            base, exponent = base.args[0], exponent * base.data
        if exponent in (0, 1):
            return base if exponent else self.term(1)
        if base.kind == "number" and exponent.denominator == 1:
            bits = max(base.data.numerator.bit_length(), base.data.denominator.bit_length())
            if (not base.data and exponent < 0) or bits * abs(exponent) > MOST_BITS:
                raise Refused("a division by zero, or a power of a number that is too long")
            return self.term(base.data ** int(exponent))
        return self.made("power", exponent, base)

    def call(self, name: object, *args: Operand) -> Term:
        """The function of this name."""
        zero = name == "exp" and args[0] is self.minus_infinity
        return self.term(0) if zero else self.made("call", name, *map(self.term, args))

    def delta(self, i: int, j: int) -> Term:
        """[i = j] for two positions, or two index symbols."""
        known = i == j or max(i, j) < FREE
        return self.term(i == j) if known else self.made("delta", (min(i, j), max(i, j)))

    def select(self, condition: Term, then: Operand, otherwise: Operand) -> Term:
        """``then`` where the condition is 1, and ``otherwise`` where it is 0."""
        a, b = self.term(then), self.term(otherwise)
        if a is b or condition.kind == "number":
            return a if a is b or condition.data else b
        return self.call("select", condition, a, b)


def needed(goals: Sequence[Term]) -> list[Term]:
    """All terms that some terms need, arguments first."""
    seen, stack = set(goals), list(goals)
    while stack:
        new = [arg for arg in stack.pop().args if arg not in seen]
        seen.update(new)
        stack.extend(new)
    return sorted(seen, key=lambda term: term.index)
