"""Random values for functions: equal arguments give equal values, others independent ones.

An atom such as exp(m), log(m), sign(m) or gamma(m) is identified by the value of m in all lanes
together (Gonnet 1984, "Determining equivalence of expressions in random polynomial time", signatures
of transcendental functions). Each new argument gets a fresh random value; −m gets the value that
follows from it: exp(−m) = 1/exp(m), sign(−m) = −sign(m).

Roots are free random values too, or, where they are asked to be *exact*, true roots in an extension of
the field with a random sign. Signs are free, or exactly ±1 as chosen for one region of the inputs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import prod
from random import Random

import numpy as np

from symad.errors import SymadError
from symad.verification.budget import Unsupported
from symad.verification.fields.prime_fields import Array, Field
from symad.verification.random_fields.known_values import (
    MAX_PAIRED_ROOTS,
    Logarithms,
    Regions,
    Signs,
    same,
    small_rational,
    two_of,
)


@dataclass(eq=False)
class Atoms:
    """The arguments met so far of one kind of function, and the random values they got."""

    index: dict[Hashable, tuple[int, int]] = dataclasses.field(default_factory=dict)
    values: list[tuple[Array, ...]] = dataclasses.field(default_factory=list)

    def enter(self, values: tuple[Array, ...], key: Hashable, opposite: Hashable = None) -> None:
        """Give values to a new argument, and with it to its negative."""
        self.index[key] = (len(self.values), 1)
        if opposite not in (None, key):
            self.index[opposite] = (len(self.values), -1)
        self.values.append(values)


def keys_of(rows: Array) -> list[bytes] | list[tuple[int, ...]]:
    """A hashable key for each row."""
    if rows.dtype == object:
        return [tuple(row) for row in rows.tolist()]
    data, width = np.ascontiguousarray(rows).tobytes(), rows.shape[1] * rows.itemsize
    return [data[k * width : (k + 1) * width] for k in range(len(rows))]


class NeedsLevel(SymadError):
    """A root has no value in this extension of the field; a larger one has it."""


Fresh = Callable[[Array], "list[tuple[Array, ...]]"]
"""From new arguments (T, n) their values: for each a tuple of arrays (T, *tail)."""


@dataclass(eq=False)
class Signatures:
    """The functions of one run."""

    field: Field
    rng: Random
    exact_roots: bool = False
    regions: Regions | None = None
    """Where it is given, signs are exactly ±1."""
    kinds: dict[Hashable, Atoms] = dataclasses.field(default_factory=dict)
    radicands: list[tuple[int, Array]] = dataclasses.field(default_factory=list)
    """Of each exact square root the level of its radicand, and the radicand (T, *tail)."""
    roots: dict[int, list[tuple[Array, Array]]] = dataclasses.field(default_factory=dict)
    """Of each order the radicands met, and their roots."""
    turned: set[Hashable] = dataclasses.field(default_factory=set)
    """The kinds of which both m and −m occurred."""
    domains: bool = False
    """Whether roots and logarithms are undefined where the sign of their argument was chosen to be −1."""
    left_at: int = 0
    """How many signs were chosen when a domain was last left."""

    def __post_init__(self) -> None:
        """Nothing is known yet."""
        self.logarithms, self.signs = Logarithms(self.field), Signs(self.field)

    # ---- identifying arguments -------------------------------------------------------------------

    def look_up(
        self, kind: Hashable, arguments: Sequence[Array], fresh: Fresh, odd: bool
    ) -> tuple[tuple[Array, ...], Array]:
        """For each element the values of its atom, and −1 where it is the negative of the atom.

        ``arguments`` are arrays (T, *s, *tail) of one shape s; the values come as a tuple of arrays of
        that shape, the orientations as an array (N,).
        """
        atoms = self.kinds.setdefault(kind, Atoms())
        flat = np.concatenate([self._rows(a) for a in arguments], axis=1)
        keys = keys_of(flat)
        new = list(dict.fromkeys(k for k in range(len(keys)) if keys[k] not in atoms.index))
        if new:
            self._enter(atoms, arguments, keys, new, fresh, odd)
        found = [atoms.index[key] for key in keys]
        shape = arguments[0].shape
        parts = len(atoms.values[found[0][0]]) if found else 1
        values = tuple(
            np.stack([atoms.values[k][part] for k, _ in found], axis=1).reshape(shape)
            if found
            else np.zeros(shape, dtype=self.field.dtype)
            for part in range(parts)
        )
        turns = np.array([turn for _, turn in found], dtype=np.int64)
        if odd and np.any(turns < 0):
            self.turned.add(kind)
        return values, turns

    def _enter(
        self,
        atoms: Atoms,
        arguments: Sequence[Array],
        keys: list[bytes] | list[tuple[int, ...]],
        new: list[int],
        fresh: Fresh,
        odd: bool,
    ) -> None:
        """Give values to new arguments, and enter their negatives with them."""
        first: dict[bytes | tuple[int, ...], int] = {}
        negatives = [self._rows(self.field.neg(a)) for a in arguments] if odd else []
        opposite = keys_of(np.concatenate(negatives, axis=1)) if odd else []
        for k in new:
            if keys[k] not in atoms.index and keys[k] not in first:
                if odd and opposite[k] in first:
                    continue
                first[keys[k]] = k
        chosen = list(first.values())
        columns = [a.reshape(self.field.lanes, -1, *self.field.tail)[:, chosen] for a in arguments]
        for k, values in zip(chosen, fresh(columns[0]), strict=True):
            atoms.enter(values, keys[k], opposite[k] if odd else None)

    def _rows(self, a: Array) -> Array:
        """One row of residues for each element: (N, T·tail)."""
        width = prod(self.field.tail)
        flat = a.reshape(self.field.lanes, -1, width).transpose(1, 0, 2)
        return flat.reshape(flat.shape[0], -1)

    def turn(self, values: Array, turns: Array) -> Array:
        """The values, negated where the argument was the negative of the atom."""
        if not np.any(turns < 0):
            return values
        where = self._spread(turns < 0, values)
        return np.where(where, self.field.neg(values), values)

    def _spread(self, flags: Array, values: Array) -> Array:
        """Flags of elements (N,) with the axes of values (T, *s, *tail)."""
        inner = values.shape[1 : values.ndim - len(self.field.tail)]
        return flags.reshape((1, *inner) + (1,) * len(self.field.tail))

    # ---- random values ---------------------------------------------------------------------------

    def nonzero(self, count: int) -> Array:
        """Random residues other than 0: (T, count, *tail)."""
        return self.field.random(self.rng, (count,), low=1)

    def opaque(self, kind: Hashable, arguments: Sequence[Array], odd: bool = False) -> Array:
        """A function without relations, except f(−x) = −f(x) for odd ones."""

        def fresh(a: Array) -> list[tuple[Array, ...]]:
            values = self._zero_at_zero(a) if odd else self.nonzero(a.shape[1])
            return [(values[:, k],) for k in range(a.shape[1])]

        (values,), turns = self.look_up(kind, arguments, fresh, odd)
        values = self.turn(values, turns)
        if not odd or self.regions is None or not self.regions.differ:
            return values
        zero = self.field.is_zero(arguments[0])  # in the regions of some lanes alone
        zero = zero.reshape(zero.shape + (1,) * len(self.field.tail))
        return np.where(zero, 0, values).astype(self.field.dtype)

    def opaque_array(self, kind: Hashable, arguments: Sequence[Array], shape: Sequence[int]) -> Array:
        """An array that is a function of whole arrays, without relations."""
        atoms = self.kinds.setdefault(kind, Atoms())
        key = tuple(keys_of(a.reshape(1, -1))[0] for a in arguments)
        if key not in atoms.index:
            atoms.enter((self.nonzero(prod(shape)),), key)
        (values,) = atoms.values[atoms.index[key][0]]
        return values.reshape((self.field.lanes, *shape, *self.field.tail))

    def _zero_columns(self, a: Array, values: Array) -> Array:
        """Where an argument (T, n) is 0 in every lane, with the axes of values."""
        zero = self.field.is_zero(a).all(axis=0)
        return zero.reshape((1, -1) + (1,) * (values.ndim - 2))

    def _zero_at_zero(self, a: Array) -> Array:
        """Random residues for arguments (T, n); 0 for those that are 0."""
        values = self.nonzero(a.shape[1])
        return np.where(self._zero_columns(a, values), 0, values).astype(self.field.dtype)

    def exponential(self, a: Array) -> Array:
        """exp, with exp(0) = 1 and exp(−a) exp(a) = 1."""

        def fresh(column: Array) -> list[tuple[Array, ...]]:
            made = self._fresh_exponentials(column)
            self.logarithms.exponentials.extend((value[0], column[:, k]) for k, value in enumerate(made))
            return made

        (values, over), turns = self.look_up("exp", [a], fresh, True)
        return np.where(self._spread(turns < 0, values), over, values) if np.any(turns < 0) else values

    def _fresh_exponentials(self, column: Array) -> list[tuple[Array, ...]]:
        """(exp, 1/exp) of new exponents (T, n, *tail)."""
        values = self.nonzero(column.shape[1])
        one = self.field.unit(values.ndim)
        values = np.where(self._zero_columns(column, values), one, values)
        over, _ = self.field.inverse(values)
        return [(values[:, k], over[:, k]) for k in range(values.shape[1])]

    def rotation(self, a: Array) -> tuple[Array, Array]:
        """(cos, sin) by a random t: (1 − t²)/(1 + t²) and 2t/(1 + t²); t = 0 for the angle 0."""

        def fresh(column: Array) -> list[tuple[Array, ...]]:
            t = self.nonzero(column.shape[1])
            t = np.where(self._zero_columns(column, t), 0, t).astype(self.field.dtype)
            cosine, sine = rotation_by(self.field, t)
            return [(cosine[:, k], sine[:, k]) for k in range(t.shape[1])]

        (cosine, sine), turns = self.look_up("rotation", [a], fresh, True)
        return cosine, self.turn(sine, turns)

    def logarithm(self, a: Array) -> Array:
        """log|a|, with log 1 = 0."""

        def fresh(column: Array) -> list[tuple[Array, ...]]:
            new = self.nonzero(column.shape[1])
            return [(self.logarithms.of(column[:, k], new[:, k]),) for k in range(column.shape[1])]

        values = self.look_up("log", [a], fresh, False)[0][0]
        unit = self.field.unit(a.ndim)
        ones = self.field.is_zero(self.field.sub(a, np.broadcast_to(unit, a.shape))).all(axis=0)
        if not ones.any():
            return values
        return np.where(self._spread(ones.ravel(), values), 0, values).astype(self.field.dtype)

    # ---- signs -----------------------------------------------------------------------------------

    def sign(self, a: Array, related: bool = True) -> Array:
        """sign: 0 at 0, known for constants, and otherwise free, or ±1 as chosen.

        Free signs of what may be 0 on an open set are not related to others: sign(a) = sign(ab) sign(b)
        fails where b is 0.
        """
        related |= self.regions is not None

        def fresh(column: Array) -> list[tuple[Array, ...]]:
            return [(self._fresh_sign(column[:, k], related),) for k in range(column.shape[1])]

        (values,), turns = self.look_up("sign", [a], fresh, True)
        return self.turn(values, turns)

    def negative(self, a: Array) -> Array:
        """In which lanes the elements of an argument (T, *s, *tail) have the sign −1: (T, *s)."""
        values = self.sign(a)
        base = values[..., 0] if self.field.levels else values
        found = np.asarray(base == self.field.modulus(base.ndim) - 1)
        if self.regions is not None and found.any():
            self.left_at = self.regions.chosen
        return found

    def _fresh_sign(self, column: Array, related: bool) -> Array:
        if self.field.is_zero(column).all():
            return np.zeros_like(column)
        known = small_rational(column, self.field)
        if known is not None:
            return self.field.constant(1 if known > 0 else -1)
        value = self.signs.of(column, related)
        if value is None:
            value = self.nonzero(1)[:, 0] if self.regions is None else self.regions.sign(column)
            self.signs.enter(column, value, related)
        return value

    # ---- roots -----------------------------------------------------------------------------------

    def root(self, a: Array, order: int) -> Array:
        """a^(1/order)."""
        if order == 1:
            return a
        if not self.exact_roots:
            return self._free_root(a, order)
        odd = order
        while odd % 2 == 0:
            odd //= 2
        if odd > 1:
            if self.field.level_of(a):
                raise Unsupported("an odd root of an expression with square roots")
            a = self.field.odd_root(a, odd)
        while order % 2 == 0:
            a = self._square_root(a)
            order //= 2
        return a

    def _free_root(self, a: Array, order: int) -> Array:
        def fresh(column: Array) -> list[tuple[Array, ...]]:
            values = self._zero_at_zero(column)
            return [self._entered(column[:, k], values[:, k], order) for k in range(values.shape[1])]

        (values,), _ = self.look_up(("root", order), [a], fresh, False)
        return values

    def _entered(self, radicand: Array, root: Array, order: int) -> tuple[Array]:
        """A new root, or the product or quotient of two old ones that it is: √(uv) = √u √v for u, v > 0.

        From what is 0, in this region or everywhere, nothing follows: 0 u = 0 says nothing of u.
        """
        known = self._known_root(radicand, order)
        if known is None and not self.field.is_zero(radicand).any():
            self.roots.setdefault(order, []).append((radicand, root))
        return (root if known is None else known,)

    def _known_root(self, radicand: Array, order: int) -> Array | None:
        """A root that follows from one or two old ones, by √|uv| = √|u| √|v| and √|v u²| = √|v| |u|."""
        mul = self.field.mul
        old = self.roots.get(order, [])
        if len(old) > MAX_PAIRED_ROOTS:
            return None
        for (u, root), (v, other), turn in two_of(radicand, old, self.field):
            factor = other if turn == 1 else self.field.inverse(other)[0]
            return self._turned(mul(root, factor), v, u if turn == 1 else radicand)
        for u, root in old if order == 2 else ():
            power = mul(u, u)
            for v, other in old:
                if same(radicand, mul(v, power)):
                    return mul(other, self._size(u, root))
                if same(mul(radicand, power), v):
                    return mul(other, self.field.inverse(self._size(u, root))[0])
        return None

    def _turned(self, product: Array, u: Array, v: Array) -> Array:
        """√u √v, or √(uv)/√u as √v; for exact roots of negative u and v it is −√(uv)."""
        if not self.exact_roots:
            return product
        both = self.negative(u)
        if not both.any():
            return product
        both = both & self.negative(v)
        where = both.reshape(both.shape + (1,) * len(self.field.tail))
        return np.where(where, self.field.neg(product), product)

    def _size(self, u: Array, root: Array) -> Array:
        """|u|: the square of its root where that is free."""
        return self.field.mul(u, self.sign(u)) if self.exact_roots else self.field.mul(root, root)

    def enter_root(self, a: Array, order: int, roots: Array) -> None:
        """Say that ``roots`` are the roots of the values ``a``, arrays (T, *s)."""
        atoms = self.kinds.setdefault(("root", order), Atoms())
        columns = roots.reshape(self.field.lanes, -1, *self.field.tail)
        radicands = a.reshape(self.field.lanes, -1, *self.field.tail)
        for k, key in enumerate(keys_of(self._rows(a))):
            atoms.enter((columns[:, k],), key)
            if not self.field.is_zero(radicands[:, k]).any():
                self.roots.setdefault(order, []).append((radicands[:, k], columns[:, k]))

    def _square_root(self, a: Array) -> Array:
        def fresh(column: Array) -> list[tuple[Array, ...]]:
            roots, missing = self.field.square_root(column)
            if missing.any():
                raise NeedsLevel("a root of a root")
            made: list[tuple[Array, ...]] = []
            for k in range(column.shape[1]):
                flip = np.array([self.rng.random() < 0.5 for _ in self.field.primes])
                flip = flip.reshape((-1,) + (1,) * len(self.field.tail))
                root = np.where(flip, self.field.neg(roots[:, k]), roots[:, k])
                (entered,) = self._entered(column[:, k], root, 2)
                if entered is root:
                    self.radicands.append((self.field.level_of(column[:, k]), column[:, k]))
                made.append((entered,))
            return made

        (values,), _ = self.look_up("square root", [a], fresh, False)
        return values


def rotation_by(field: Field, t: Array) -> tuple[Array, Array]:
    """((1 − t²)/(1 + t²), 2t/(1 + t²)), a point of the unit circle."""
    square, one = field.mul(t, t), field.unit(t.ndim)
    over: Array = field.inverse(field.add(one, square))[0]
    return field.mul(field.sub(one, square), over), field.mul(field.add(t, t), over)
