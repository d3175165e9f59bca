"""Scalar terms: what graphs are once they are written out, element by element.

A term is a number, a variable, a sum, a product, a rational power, a function called by name, a sum over index
symbols, [i = j] for index symbols, or −∞. Equal terms are one object, however often they are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

Operand: TypeAlias = "Term | Fraction | int"

MOST_POSITIONS = 10_000
"""Positions are below; index symbols are not."""

MOST_TERMS, MOST_WORK, MOST_BITS = 60_000, 5_000_000, 20_000
"""Claims with more terms, more work to write them out, or longer numbers are refused."""


class Refused(Exception):
    """A claim or a step that the checker does not accept; says why."""


def bounded(*numbers: int) -> None:
    """Refuse integers that are too long."""
    if any(n.bit_length() > MOST_BITS for n in numbers):
        raise Refused(f"a number of more than {MOST_BITS} bits")


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

    def __mul__(self, other: Operand) -> Term:
        return self.table.product([self, other])

    def __pow__(self, exponent: Fraction | int) -> Term:
        return self.table.power(self, Fraction(exponent))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Term:
        return self * -1

    def __sub__(self, other: Operand) -> Term:
        return self + self.table.term(other) * -1

    def __rsub__(self, other: Operand) -> Term:
        return self * -1 + other

    def __truediv__(self, other: Operand) -> Term:
        return self * self.table.term(other) ** -1

    def __rtruediv__(self, other: Operand) -> Term:
        return self**-1 * other


class Terms:
    """All terms of one proof, numbered in the order in which they are made: arguments come first."""

    def __init__(self) -> None:
        """There are none yet."""
        self.count = self.work = 0
        self._known: dict[tuple[str, object, tuple[Term, ...]], Term] = {}
        self.minus_infinity = self._made("infinity", None)
        """Has no use but in sums, where it is the sum, and under exp, where it is 0."""

    def spend(self, work: int) -> None:
        """Count work, and refuse more than is allowed."""
        self.work += work
        if self.work > MOST_WORK:
            raise Refused("writing the claim out takes too long")

    def _made(self, kind: str, data: object, args: tuple[Term, ...] = ()) -> Term:
        found = self._known.get((kind, data, args))
        if found is None:
            if args and self.minus_infinity in args:
                raise Refused("−∞ is used as a number")
            if self.count >= MOST_TERMS:
                raise Refused(f"more than {MOST_TERMS} scalar terms")
            found = self._known[kind, data, args] = Term(self, kind, data, args, self.count)
            self.count += 1
        return found

    def term(self, value: Operand) -> Term:
        """A number as a term; terms as they are."""
        if isinstance(value, Term):
            return value
        exact = Fraction(value)
        bounded(exact.numerator, exact.denominator)
        return self._made("number", exact)

    def variable(self, name: object) -> Term:
        """An element of an input."""
        return self._made("variable", name)

    def sum(self, parts: Iterable[Operand]) -> Term:
        """Σ parts; numbers are added up, and zeros disappear."""
        terms = [self.term(p) for p in parts]
        self.spend(len(terms))
        kept = [t for t in terms if t.kind != "number"]
        if self.minus_infinity in kept:
            return self.minus_infinity
        total = self.term(sum((t.number or 0 for t in terms), Fraction(0)))
        if total.number or not kept:
            kept.append(total)
        return kept[0] if len(kept) == 1 else self._made("sum", None, tuple(kept))

    def product(self, parts: Iterable[Operand]) -> Term:
        """Π parts; numbers are multiplied, ones disappear, and a zero makes all zero."""
        kept, total = list[Term](), Fraction(1)
        for term in map(self.term, parts):
            self.spend(1)
            if term.number is None:
                kept.append(term)
            else:
                total *= term.number
                bounded(total.numerator, total.denominator)
        if not total and self.minus_infinity not in kept:
            return self.term(0)
        if total != 1 or not kept:
            kept.append(self.term(total))
        return kept[0] if len(kept) == 1 else self._made("product", None, tuple(kept))

    def power(self, base: Term, exponent: Fraction) -> Term:
        """base^exponent for a rational exponent; (u^p)^k is u^(p k) for an integer k."""
        if base.kind == "power" and exponent.denominator == 1:
            base, exponent = base.args[0], exponent * base.data  # type: ignore[operator]
        if exponent in (0, 1):
            return base if exponent else self.term(1)
        number = base.number
        if number == 0 and exponent < 0:
            raise Refused("a division by zero")
        if number is not None and exponent.denominator == 1 and abs(exponent) < 1000:
            bits = max(number.numerator.bit_length(), number.denominator.bit_length())
            if bits * abs(exponent) <= MOST_BITS:
                return self.term(number ** int(exponent))
        return self._made("power", exponent, (base,))

    def call(self, name: object, *args: Operand) -> Term:
        """The function of this name."""
        if name == "exp" and args[0] is self.minus_infinity:
            return self.term(0)
        return self._made("call", name, tuple(map(self.term, args)))

    def total(self, indices: Iterable[tuple[int, object]], body: Term) -> Term:
        """Σ body over index symbols with their sizes."""
        bound = tuple(indices)
        return self._made("total", bound, (body,)) if bound else body

    def delta(self, i: int, j: int) -> Term:
        """[i = j] for two positions, or two index symbols."""
        symbols = i != j and max(i, j) >= MOST_POSITIONS
        return self._made("delta", (min(i, j), max(i, j))) if symbols else self.term(int(i == j))

    def select(self, condition: Term, then: Operand, otherwise: Operand) -> Term:
        """``then`` where the condition is 1, and ``otherwise`` where it is 0."""
        a, b = self.term(then), self.term(otherwise)
        if condition.number is not None:
            return a if condition.number else b
        return a if a is b else self.call("select", condition, a, b)


def needed(goals: Sequence[Term]) -> list[Term]:
    """All terms that some terms need, arguments first."""
    seen, stack = set(goals), list(goals)
    while stack:
        new = [arg for arg in stack.pop().args if arg not in seen]
        seen.update(new)
        stack.extend(new)
    return sorted(seen, key=lambda term: term.index)
