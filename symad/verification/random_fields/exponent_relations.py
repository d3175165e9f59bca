"""Rational linear relations between exponents, found from their values in many lanes of one field.

exp(Σ c_i a_i) = Π exp(a_i)^c_i whatever the a_i are. Functions a_1, ..., a_n that are linearly independent
have linearly independent vectors of values at n random points, but for an unlikely choice; so a new
exponent is a rational combination of earlier ones exactly if its vector of values in more lanes than
there are exponents is a combination of theirs, with coefficients that are small rationals. Angles of
sines and cosines likewise.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from symad.verification.fields.prime_fields import Array, Field

ORDER = 12
"""Random values are 12th powers, so that exponents with denominators dividing 12 have powers."""

SPARE = 4
"""Lanes beyond the number of exponents, which confirm a relation."""


@dataclass(eq=False)
class Span:
    """Vectors modulo p, in echelon form, with what they are made of."""

    p: int
    rows: list[tuple[int, list[int], dict[int, int]]] = dataclasses.field(default_factory=list)
    """Pivot, the vector (1 at its pivot), and its combination of the vectors entered, by name."""

    def express(self, vector: list[int], name: int) -> dict[int, Fraction]:
        """The rational coefficients of a vector in those entered before.

        A vector that is no small rational combination of them is {name: 1}; if it is independent it
        is entered under that name.
        """
        rest, made = list(vector), dict[int, int]()
        for pivot, row, combination in self.rows:
            factor = rest[pivot]
            if factor:
                rest = [(r - factor * s) % self.p for r, s in zip(rest, row, strict=True)]
                for k, c in combination.items():
                    made[k] = (made.get(k, 0) + factor * c) % self.p
        first = next((k for k, r in enumerate(rest) if r), None)
        if first is None:
            found = {k: reconstruct(c, self.p) for k, c in made.items() if c}
            known = {k: c for k, c in found.items() if c is not None and ORDER % c.denominator == 0}
            return known if len(known) == len(found) else {name: Fraction(1)}
        over = pow(rest[first], -1, self.p)
        combination = {k: -c * over % self.p for k, c in made.items()}
        combination[name] = over
        self.rows.append((first, [r * over % self.p for r in rest], combination))
        return {name: Fraction(1)}


@dataclass(eq=False)
class Relations:
    """Exponents and angles met so far, in lanes that share one prime."""

    field: Field
    exponents: Span
    angles: Span
    powers: list[Array] = dataclasses.field(default_factory=list)
    """Of each independent exponent a 12th root of its exponential: arrays (T, *tail)."""
    logarithms: dict[int, Array] = dataclasses.field(default_factory=dict)
    """Of those exponents that are logarithms, of what they are."""
    turns: list[tuple[Array, Array]] = dataclasses.field(default_factory=list)
    """Of each independent angle the rotation by a twelfth of it."""
    weight: int = ORDER
    """The largest Σ |12 c_i| of a relation."""
    full: bool = False
    """Whether there were more independent exponents or angles than the lanes can tell apart."""

    def exponentials(self, columns: Array, random: Array) -> list[tuple[Array, ...]]:
        """(exp, 1/exp) of new exponents (T, n, *tail)."""
        made: list[tuple[Array, ...]] = []
        for k in range(columns.shape[1]):
            name = len(self.powers)
            relation = self._relate(self.exponents, columns[:, k], name)
            self.powers.append(random[:, k])
            if any(c.denominator > 1 for k, c in relation.items() if k in self.logarithms):
                relation = {name: Fraction(1)}  # roots of arguments are not related
            value = self._product(relation)
            made.append((value, self.field.inverse(value)[0]))
        return made

    def enter_logarithm(self, column: Array, argument: Array) -> None:
        """A new logarithm as an exponent whose exponential is its argument."""
        name = len(self.powers)
        self.powers.append(argument)
        if self._relate(self.exponents, column, name) == {name: Fraction(1)}:
            self.logarithms[name] = argument

    def _product(self, relation: dict[int, Fraction]) -> Array:
        value = self.field.embed(np.ones(self.field.lanes, dtype=self.field.dtype))
        self.weight = max(self.weight, sum(abs(int(c * ORDER)) for c in relation.values()))
        for k, c in relation.items():
            order = 1 if k in self.logarithms else ORDER
            power = self.field.power(self.powers[k], abs(int(c * order)))
            value = self.field.mul(value, power if c > 0 else self.field.inverse(power)[0])
        return value

    def rotations(self, columns: Array, random: tuple[Array, Array]) -> list[tuple[Array, ...]]:
        """(cos, sin) of new angles (T, n, *tail)."""
        made: list[tuple[Array, ...]] = []
        for k in range(columns.shape[1]):
            relation = self._relate(self.angles, columns[:, k], len(self.turns))
            self.turns.append((random[0][:, k], random[1][:, k]))
            made.append(self._turned(relation))
        return made

    def _turned(self, relation: dict[int, Fraction]) -> tuple[Array, Array]:
        field = self.field
        cosine = field.embed(np.ones(field.lanes, dtype=field.dtype))
        total = cosine, field.sub(cosine, cosine)
        self.weight = max(self.weight, sum(abs(int(c * ORDER)) for c in relation.values()))
        for k, c in relation.items():
            cosine, sine = self.turns[k]
            step = (cosine, sine) if c > 0 else (cosine, field.neg(sine))
            for _ in range(abs(int(c * ORDER))):
                total = compose(field, total, step)
        return total

    def _relate(self, span: Span, column: Array, name: int) -> dict[int, Fraction]:
        """A new argument as a combination of earlier ones, or of itself alone."""
        if len(span.rows) + SPARE >= self.field.lanes:
            self.full = True
        base = column if not self.field.levels else column[..., 0]
        if self.full or (self.field.levels and np.any(column[..., 1:])):
            return {name: Fraction(1)}
        return span.express([int(v) for v in base.tolist()], name)


def relations_for(fields: Field) -> Relations:
    """Empty relations for lanes that all have the same prime."""
    p = fields.primes[0]
    return Relations(fields, Span(p), Span(p))


def compose(field: Field, a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    """The rotation by the sum of two angles."""
    mul, add, sub = field.mul, field.add, field.sub
    return sub(mul(a[0], b[0]), mul(a[1], b[1])), add(mul(a[1], b[0]), mul(a[0], b[1]))


def rotation_by(field: Field, t: Array) -> tuple[Array, Array]:
    """((1 − t²)/(1 + t²), 2t/(1 + t²)), a point of the unit circle."""
    square, one = field.mul(t, t), field.unit(t.ndim)
    over: Array = field.inverse(field.add(one, square))[0]
    return field.mul(field.sub(one, square), over), field.mul(field.add(t, t), over)


def reconstruct(residue: int, p: int, largest: int = 1 << 10) -> Fraction | None:
    """The rational n/d ≡ residue with |n|, d ≤ ``largest``, by the extended Euclidean algorithm.

    Source: Wang, Guy and Davenport (1982), "P-adic reconstruction of rational numbers".
    """
    r0, r1, t0, t1 = p, residue, 0, 1
    while r1 > largest:
        q = r0 // r1
        r0, r1, t0, t1 = r1, r0 - q * r1, t1, t0 - q * t1
    if t1 == 0 or abs(t1) > largest:
        return None
    return Fraction(r1, t1)
