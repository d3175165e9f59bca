"""What follows from values that were drawn before: log|uv| = log|u| + log|v|, sign(uv) = sign(u) sign(v).

Without these relations a logarithm or sign of a product would be independent of those of its factors, and
equal expressions would be taken for different ones. All searches are bounded; what is not found is drawn.

Exact signs are ±1 for each argument of `sign`, as one region of the inputs has them. Either a region is
chosen for all lanes, argument by argument, so that all regions can be visited one after the other; or each
lane draws its own. Signs that follow from others are not free: x > 0 implies x + 1 > 0, and x − y > 0 with
y − z > 0 implies x − z > 0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random

import numpy as np

from symad.verification.fields.prime_fields import Array, Field

# ---- exact signs ---------------------------------------------------------------------------------

MAX_LINKED_SIGNS = 40
"""The maximum number of signs between which implications are looked for."""

SCALES = (Fraction(1), Fraction(2), Fraction(3), Fraction(1, 2), Fraction(1, 3))
"""By which known arguments are multiplied: x > 1/2 implies 2x > 0."""

PARTS = (1, 2, 3, 4, 6, 8)
MULTIPLES = tuple(sorted({Fraction(n, d) for n in PARTS for d in PARTS}))
"""By which known arguments are multiplied in sums of two: a − max(b, c, d) comes as 4 times itself."""


@dataclass(eq=False)
class Regions:
    """The signs of one run."""

    field: Field
    choices: list[bool] | Random
    """Whether the free signs are +, in the order they come, missing ones being +; or what draws them."""
    chosen: int = 0
    """How many signs were free so far."""
    settled: list[tuple[Array, Array]] = dataclasses.field(default_factory=list)
    """Arguments (T, *tail), and in which lanes they are positive (T,)."""
    linked: bool = False
    """Whether a sign followed from others, so that not all choices are equally likely."""

    @property
    def differ(self) -> bool:
        """Whether each lane has a region of its own."""
        return isinstance(self.choices, Random)

    def sign(self, column: Array) -> Array:
        """The signs of an argument (T, *tail), as residues."""
        known, positive = self._implied(column)
        if not known.all():
            positive = np.where(known, positive, self._free())
        self.settled.append((column, positive))
        zero = self.field.is_zero(column)
        signs = [
            0 if z else (1 if plus else p - 1)
            for z, plus, p in zip(zero, positive, self.field.primes, strict=True)
        ]
        return self.field.embed(np.array(signs, dtype=self.field.dtype))

    def _free(self) -> Array:
        """The next free sign."""
        position, self.chosen = self.chosen, self.chosen + 1
        if isinstance(self.choices, Random):
            return np.array([self.choices.random() < 0.5 for _ in range(self.field.lanes)])
        if position == len(self.choices):
            self.choices.append(True)
        return np.full(self.field.lanes, self.choices[position])

    def _implied(self, column: Array) -> tuple[Array, Array]:
        """In which lanes a sign follows, and what it is there."""
        lanes = self.field.lanes
        known, positive = np.zeros(lanes, dtype=bool), np.zeros(lanes, dtype=bool)
        self._small_numbers(column, known, positive)
        if len(self.settled) > MAX_LINKED_SIGNS:
            return known, positive
        signed = [
            (a, truths) for b, plus in self.settled for a, truths in ((b, plus), (self.field.neg(b), ~plus))
        ]
        for truth, target in ((True, column), (False, self.field.neg(column))):
            for a, above in signed:
                where = above & ~known
                if where.any() and any(self._exceeds(target, a, scale) for scale in SCALES):
                    self.linked = True
                    _set(known, positive, where, truth)
            for scale, k, other, j in self._sums(target, signed):
                (a, above), (b, also) = signed[k], signed[j]
                where = above & also & ~known
                if not where.any():  # as of a and −a, of which one is positive
                    continue
                rest = self.field.sub(target, self._scaled(scale, a))
                if self.field.is_zero(self.field.sub(rest, self._scaled(other, b))).all():
                    self.linked = True
                    _set(known, positive, where, truth)
        return known, positive

    def _sums(
        self, target: Array, signed: Sequence[tuple[Array, Array]]
    ) -> Iterator[tuple[Fraction, int, Fraction, int]]:
        """The sums c a + d b of two known arguments that an argument is in the first lane: (c, a, d, b)."""
        p, whole = self.field.primes[0], int(target.flat[0])
        found: dict[int, list[tuple[Fraction, int]]] = {}
        for k, (a, _) in enumerate(signed):
            first = int(a.flat[0])
            multiples = [(scale, first * over % p) for scale, over in self._multiples]
            for scale, value in multiples:
                found.setdefault(value, []).append((scale, k))
            for scale, value in multiples:
                for other, j in found.get((whole - value) % p, ()):
                    yield scale, k, other, j

    @cached_property
    def _multiples(self) -> list[tuple[Fraction, int]]:
        """The multiples that are tried, with their residues in the first lane."""
        p = self.field.primes[0]
        return [(scale, scale.numerator * pow(scale.denominator, -1, p) % p) for scale in MULTIPLES]

    def _first(self, scale: Fraction, a: Array) -> int:
        """The residue of a multiple of an argument in the first lane."""
        p = self.field.primes[0]
        return int(a.flat[0]) * scale.numerator * pow(scale.denominator, -1, p) % p

    def _scaled(self, scale: Fraction, a: Array) -> Array:
        return a if scale == 1 else self.field.mul(self.field.constant(scale), a)

    def _exceeds(self, target: Array, a: Array, scale: Fraction) -> bool:
        """Whether an argument is a multiple of another plus a positive number; one lane is asked first."""
        p = self.field.primes[0]
        alone = (int(target.flat[0]) - self._first(scale, a)) % p
        if min(alone, p - alone) > WHOLE and reconstruct(alone, p) is None:
            return False
        gap = small_rational(self.field.sub(target, self._scaled(scale, a)), self.field)
        return gap is not None and gap > 0

    def _small_numbers(self, column: Array, known: Array, positive: Array) -> None:
        """In some regions an argument may be a number."""
        for lane in range(self.field.lanes):
            parts = np.ravel(column[lane])
            number = None if np.any(parts[1:]) else reconstruct(int(parts[0]), self.field.primes[lane], 16)
            if number is not None:
                known[lane], positive[lane] = True, number > 0


def _set(known: Array, positive: Array, where: Array, truth: bool) -> None:
    new = where & ~known
    positive[new] = truth
    known |= new


WHOLE = 1 << 20
"""Integers up to this are recognized."""


def small_rational(column: Array, fields: Field) -> Fraction | None:
    """The n/d with |n|, d ≤ 2¹⁰, or the integer up to `WHOLE`, that a value (T, *tail) is in every lane."""
    base = column if not fields.levels else column[..., 0]
    if fields.levels and np.any(column[..., 1:]):
        return None
    first, p = int(base[0]), fields.primes[0]
    whole = first if first <= WHOLE else first - p
    found = Fraction(whole) if abs(whole) <= WHOLE else reconstruct(first, p)
    if found is None:
        return None
    for residue, q in zip(base.tolist(), fields.primes, strict=True):
        if (found.numerator - residue * found.denominator) % q:
            return None
    return found


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
