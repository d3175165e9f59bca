"""Scalar terms: what graphs are once they are written out, element by element.

A term is a number, a variable, a sum, a product, a rational power, or a function called by name. Equal
terms are one object, so a shared subexpression is one term however often it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import prod
from typing import TypeAlias

Operand: TypeAlias = "Term | Fraction | int"

MOST_TERMS = 60_000
"""Claims that need more terms are not written out."""


class Refused(Exception):
    """A claim or a step that the checker does not accept; says why."""


class Term:
    """One term; ``data`` is the number, the name of the variable or function, or the exponent."""

    __slots__ = ("args", "data", "index", "kind", "table")

    def __init__(self, table: Terms, kind: str, data: object, args: tuple[Term, ...], index: int) -> None:
        """Made by a table of terms alone."""
        self.table, self.kind, self.data, self.args, self.index = table, kind, data, args, index

    @property
    def number(self) -> Fraction | None:
        """The value of a number."""
        return self.data if isinstance(self.data, Fraction) and self.kind == "number" else None

    def __add__(self, other: Operand) -> Term:
        return self.table.sum([self, other])

    def __sub__(self, other: Operand) -> Term:
        return self + self.table.term(other) * -1

    def __rsub__(self, other: Operand) -> Term:
        return self.table.term(other) - self

    def __neg__(self) -> Term:
        return self * -1

    def __mul__(self, other: Operand) -> Term:
        return self.table.product([self, other])

    def __truediv__(self, other: Operand) -> Term:
        return self * self.table.term(other) ** -1

    def __rtruediv__(self, other: Operand) -> Term:
        return self**-1 * other

    def __pow__(self, exponent: Fraction | int) -> Term:
        return self.table.power(self, Fraction(exponent))

    __radd__, __rmul__ = __add__, __mul__


class Terms:
    """All terms of one proof, numbered in the order in which they are made: arguments come first."""

    def __init__(self) -> None:
        """There are none yet."""
        self.all: list[Term] = []
        self._known: dict[tuple[str, object, tuple[Term, ...]], Term] = {}
        self._numbers: dict[Fraction | int, Term] = {}

    def _made(self, kind: str, data: object, args: tuple[Term, ...] = ()) -> Term:
        key = (kind, data, args)
        found = self._known.get(key)
        if found is None:
            if len(self.all) >= MOST_TERMS:
                raise Refused(f"more than {MOST_TERMS} scalar terms")
            found = self._known[key] = Term(self, kind, data, args, len(self.all))
            self.all.append(found)
        return found

    def term(self, value: Operand) -> Term:
        """A number as a term; terms as they are."""
        if isinstance(value, Term):
            return value
        if value not in self._numbers:
            self._numbers[value] = self._made("number", Fraction(value))
        return self._numbers[value]

    def variable(self, name: object) -> Term:
        """An element of an input."""
        return self._made("variable", name)

    def _sorted(self, parts: Iterable[Operand]) -> tuple[list[Term], list[Fraction]]:
        """The parts that are no numbers, and the numbers."""
        terms = list(map(self.term, parts))
        numbers = [t.number for t in terms if t.number is not None]
        return [t for t in terms if t.kind != "number"], numbers

    def sum(self, parts: Iterable[Operand]) -> Term:
        """Σ parts; numbers are added up, and zeros disappear."""
        kept, numbers = self._sorted(parts)
        if (total := sum(numbers)) or not kept:
            kept.append(self.term(total))
        return kept[0] if len(kept) == 1 else self._made("sum", None, tuple(kept))

    def product(self, parts: Iterable[Operand]) -> Term:
        """Π parts; numbers are multiplied, ones disappear, and a zero makes all zero."""
        kept, numbers = self._sorted(parts)
        total = prod(numbers)
        if not total or not kept:
            return self.term(total)
        if total != 1:
            kept.append(self.term(total))
        return kept[0] if len(kept) == 1 else self._made("product", None, tuple(kept))

    def power(self, base: Term, exponent: Fraction) -> Term:
        """base^exponent for a rational exponent."""
        if exponent == 1:
            return base
        if exponent == 0:
            return self.term(1)
        number = base.number
        if number is not None and exponent.denominator == 1 and abs(exponent) < 1000:
            if not number and exponent < 0:
                raise Refused("a division by zero")
            return self.term(number ** int(exponent))
        return self._made("power", exponent, (base,))

    def call(self, name: str, *args: Operand) -> Term:
        """The function of this name."""
        return self._made("call", name, tuple(map(self.term, args)))

    def select(self, condition: Term, then: Operand, otherwise: Operand) -> Term:
        """``then`` where the condition is 1, and ``otherwise`` where it is 0."""
        a, b = self.term(then), self.term(otherwise)
        if condition.number is not None:
            return a if condition.number else b
        return a if a is b else self.call("select", condition, a, b)


def needed(goals: Sequence[Term]) -> list[Term]:
    """All terms that some terms need, arguments first."""
    seen = set(goals)
    stack = list(goals)
    while stack:
        for arg in stack.pop().args:
            if arg not in seen:
                seen.add(arg)
                stack.append(arg)
    return sorted(seen, key=lambda term: term.index)
