"""What follows from values that were drawn before: log|uv| = log|u| + log|v|, sign(uv) = sign(u) sign(v).

Without these relations a logarithm or sign of a product would be independent of those of its factors, and
equal expressions would be taken for different ones. All searches are bounded; what is not found is drawn.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from symad.verification.fields.prime_fields import Array, Field
from symad.verification.random_fields.sign_regions import small_rational

MAX_PAIRED_SIGNS = 10
"""The maximum number of signs of which products of two are looked for."""

MAX_PAIRED_ROOTS = 24
"""The maximum number of roots of which products of two are looked for."""

MAX_COMBINED_EXPONENTIALS = 5
"""The maximum number of exponentials whose products are looked for in arguments of logarithms."""


def same(a: Array, b: Array) -> bool:
    """Whether two arguments are equal in all lanes."""
    return bool(np.all(a == b))


Known = tuple[Array, Array]
"""An argument that was met, and the value of a function there."""


def two_of(column: Array, old: Sequence[Known], field: Field) -> Iterator[tuple[Known, Known, int]]:
    """Old arguments u and v of which a new one is the product u v, with 1, or the quotient u/v, with −1."""
    for k, one in enumerate(old):
        for other in old[: k + 1]:
            u, v = one[0], other[0]
            if same(column, field.mul(u, v)):
                yield one, other, 1
            if same(field.mul(column, u), v):
                yield other, one, -1
            if same(field.mul(column, v), u):
                yield one, other, -1


@dataclass(eq=False)
class Logarithms:
    """The logarithms of one run."""

    field: Field
    drawn: list[tuple[Array, Array]] = dataclasses.field(default_factory=list)
    """The arguments met of which logarithms were drawn, and these."""
    exponentials: list[tuple[Array, Array]] = dataclasses.field(default_factory=list)
    """The exponentials drawn, and what they are exponentials of: their logarithms."""

    def of(self, column: Array, value: Array) -> Array:
        """A new logarithm ``value``, or what follows from two old ones.

        Of an exponential the logarithm is known, and that of 1. From what is 0 nothing follows.
        """
        found = self._of_two(column, value)
        if found is None and not self.field.is_zero(column).any():
            self.drawn.append((column, value))
        return value if found is None else found

    def _of_two(self, column: Array, value: Array) -> Array | None:
        """log|uv| = log|u| + log|v|, log|u/v| = log|u| - log|v|."""
        field = self.field
        old = self.drawn if len(self.drawn) <= MAX_PAIRED_ROOTS else []
        if len(old) + len(self.exponentials) <= MAX_PAIRED_ROOTS:
            unit = np.broadcast_to(field.unit(column.ndim), column.shape)
            old = [(unit, np.zeros_like(value)), *self._powers_of_e(), *old]
        for (_, first), (_, second), turn in two_of(column, old, field):
            return field.add(first, second) if turn == 1 else field.sub(first, second)
        return None

    def _powers_of_e(self) -> list[tuple[Array, Array]]:
        """The exponentials, with their products and quotients if they are few, and their logarithms."""
        field, few = self.field, self.exponentials
        found = list(few)
        for k, (u, first) in enumerate(few if len(few) <= MAX_COMBINED_EXPONENTIALS else ()):
            for v, second in few[:k]:
                found.append((field.mul(u, v), field.add(first, second)))
                found.append((field.mul(u, field.inverse(v)[0]), field.sub(first, second)))
        return found


@dataclass(eq=False)
class Signs:
    """The signs of one run."""

    field: Field
    drawn: list[tuple[Array, Array]] = dataclasses.field(default_factory=list)
    """The arguments of which a sign was drawn, and their signs."""
    weak: list[tuple[Array, Array]] = dataclasses.field(default_factory=list)
    """The same for what may be 0 on an open set."""
    multiplied: bool = False
    """Whether a sign was the product of two others."""

    def of(self, column: Array, related: bool) -> Array | None:
        """A sign that follows from others; None if there is none."""
        value = self._of_proportional(column)
        if value is None and related and len(self.drawn) <= MAX_PAIRED_SIGNS:
            value = self._of_product(column)
        return value

    def enter(self, column: Array, value: Array, related: bool) -> None:
        """Note a sign that was drawn."""
        (self.drawn if related else self.weak).append((column, value))

    def _of_proportional(self, column: Array) -> Array | None:
        """The sign of another argument of which this one, or its reciprocal, is a rational multiple."""
        old = self.drawn[:MAX_PAIRED_ROOTS] + self.weak[:MAX_PAIRED_ROOTS]
        over = self.field.inverse(column)[0] if old else column
        for other, value in old:
            for mine in (over, column):
                ratio = small_rational(self.field.mul(other, mine), self.field)
                if ratio:
                    return value if ratio > 0 else self.field.neg(value)
        return None

    def _of_product(self, column: Array) -> Array | None:
        """The product of the signs of two arguments that this one is a product or quotient of."""
        mul = self.field.mul
        for k, (a, first) in enumerate(self.drawn):
            over = self.field.inverse(a)[0]
            for b, second in self.drawn[:k]:
                under = self.field.inverse(b)[0]
                for factor in (mul(over, under), mul(over, b), mul(a, under), mul(a, b)):
                    ratio = small_rational(mul(column, factor), self.field)
                    if ratio:
                        self.multiplied, product = True, mul(first, second)
                        return product if ratio > 0 else self.field.neg(product)
        return None
