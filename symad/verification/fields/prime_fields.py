"""Arithmetic in many prime fields at once, and in their quadratic extensions.

A `Field` computes in T *lanes*; lane t works modulo its own prime p_t. A value of shape s is an array
(T, *s) of residues, or (T, *s, 2^m) in the m-th quadratic extension, where the last axis holds the
coefficients. Primes below 2³¹ are stored as uint64, larger ones as Python integers in object arrays;
the code is the same.

The extensions are F_p[t_1, ..., t_m] with t_1² = −1, t_2² = ν = a + t_1 for an a that makes ν a
non-square, and t_{j+1}² = t_j. With p ≡ 3 mod 4 every step doubles the field, and every element of one
level is a square in the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import prod
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from symad.verification.fields.primes import SMALL

# Plum reads annotations at run time, and shall not look into arrays.
if TYPE_CHECKING:
    Array = np.ndarray
else:
    Array = Any


@dataclass(frozen=True, eq=False)
class Field:
    """T prime fields side by side, or their ``levels``-th quadratic extensions."""

    primes: tuple[int, ...]
    levels: int = 0
    _moduli: dict[int, Array] = field(default_factory=dict, repr=False)
    _tables: dict[int, Array] = field(default_factory=dict, repr=False)
    _asked: list[int] = field(default_factory=lambda: [0], repr=False)

    @property
    def operations(self) -> int:
        """How many operations on arrays there were so far: each asks for the primes."""
        return self._asked[0]

    @cached_property
    def dtype(self) -> Any:
        """uint64 where products of residues fit, else object."""
        return np.uint64 if max(self.primes).bit_length() <= SMALL else object

    @property
    def lanes(self) -> int:
        """T, the number of lanes."""
        return len(self.primes)

    @property
    def tail(self) -> tuple[int, ...]:
        """The trailing axes of every array: the coefficients of an extension."""
        return (1 << self.levels,) if self.levels else ()

    def modulus(self, ndim: int) -> Array:
        """The primes as an array (T, 1, ..., 1) of ``ndim`` axes."""
        self._asked[0] += 1
        found = self._moduli.get(ndim)
        if found is None:
            found = np.array(self.primes, dtype=self.dtype).reshape((-1,) + (1,) * (ndim - 1))
            self._moduli[ndim] = found
        return found

    # ---- making values --------------------------------------------------------------------------

    def constant(self, value: int | Fraction) -> Array:
        """A rational number in every lane."""
        number = Fraction(value)
        if number.denominator == 1:
            residues = [number.numerator % p for p in self.primes]
        else:
            residues = [number.numerator * pow(number.denominator, -1, p) % p for p in self.primes]
        return self.embed(np.array(residues, dtype=self.dtype))

    def constants(self, numerators: Array, denominator: int = 1) -> Array:
        """An array of integers over a common denominator, in every lane."""
        flat = numerators.astype(object)
        rows = [flat * pow(denominator, -1, p) % p if denominator != 1 else flat % p for p in self.primes]
        return self.embed(
            np.array(rows, dtype=object).reshape(self.lanes, *numerators.shape).astype(self.dtype)
        )

    def embed(self, base: Array) -> Array:
        """Residues (T, *s) as elements of the extension."""
        if not self.levels:
            return base
        out = np.zeros((*base.shape, 1 << self.levels), dtype=self.dtype)
        out[..., 0] = base
        return out

    def zeros(self, shape: Sequence[int]) -> Array:
        """Zeros of a shape."""
        return np.zeros((self.lanes, *shape, *self.tail), dtype=self.dtype)

    def random(self, rng: Random, shape: Sequence[int] = (), low: int = 0) -> Array:
        """Independent residues of the prime fields, uniform in low..p−1, embedded."""
        count = prod(shape)
        rows: Sequence[Array | list[int]]
        if self.dtype == np.uint64 and count > 8:
            fast = np.random.default_rng(rng.getrandbits(128))
            rows = [fast.integers(low, p, size=count, dtype=np.uint64) for p in self.primes]
        else:
            rows = [[rng.randrange(low, p) for _ in range(count)] for p in self.primes]
        return self.embed(np.array(rows, dtype=self.dtype).reshape(self.lanes, *shape))

    # ---- arithmetic -----------------------------------------------------------------------------

    def add(self, a: Array, b: Array) -> Array:
        """A + b."""
        return (a + b) % self.modulus(max(a.ndim, b.ndim))

    def sub(self, a: Array, b: Array) -> Array:
        """A − b."""
        p = self.modulus(max(a.ndim, b.ndim))
        return (a + (p - b)) % p

    def neg(self, a: Array) -> Array:
        """−a."""
        p = self.modulus(a.ndim)
        return (p - a) % p

    def mul(self, a: Array, b: Array) -> Array:
        """A · b."""
        if not self.levels:
            return a * b % self.modulus(max(a.ndim, b.ndim))
        return self._product(a, b, self.levels)

    def _collected(self, products: Array, level: int) -> Array:
        """Σ_ij products_ij t_i t_j for residues (T, *s, n, n) of one level, by its table of products."""
        lanes, *inner, n, _ = products.shape
        flat = products.astype(np.int64).reshape(lanes, -1, n * n)
        total = np.matmul(flat, self._table(level)).reshape(lanes, *inner, n)
        p = self.modulus(total.ndim).astype(np.int64)
        return np.asarray(total % p).astype(np.uint64)

    def _table(self, level: int) -> Array:
        """Coefficients (T, n², n) of the products of the basis t_0, ..., t_{n−1}: small, with signs."""
        found = self._tables.get(level)
        if found is None:
            n = 1 << level
            basis = np.broadcast_to(np.eye(n, dtype=self.dtype), (self.lanes, n, n))
            rows = [self._bilinear(self._times, basis, basis[:, k : k + 1], level) for k in range(n)]
            table = np.stack(rows, axis=1).astype(np.int64)
            p = self.modulus(4).astype(np.int64)
            found = np.where(table > p // 2, table - p, table).reshape(self.lanes, n * n, n)
            self._tables[level] = found
        return found

    def _times(self, x: Array, y: Array) -> Array:
        """A product in the base field."""
        return x * y % self.modulus(max(x.ndim, y.ndim))

    def _bilinear(self, base: Callable[[Array, Array], Array], a: Array, b: Array, level: int) -> Array:
        """A product by (a0 + a1 t)(b0 + b1 t) = a0 b0 + ν a1 b1 + (a0 b1 + a1 b0) t."""
        if level == 0:
            return base(a[..., 0], b[..., 0])[..., None]
        half = 1 << (level - 1)
        a0, a1, b0, b1 = a[..., :half], a[..., half:], b[..., :half], b[..., half:]
        lower = level - 1
        low = self.add(
            self._bilinear(base, a0, b0, lower), self._times_nu(self._bilinear(base, a1, b1, lower), level)
        )
        high = self.add(self._bilinear(base, a0, b1, lower), self._bilinear(base, a1, b0, lower))
        return np.concatenate([low, high], axis=-1)

    def _times_nu(self, a: Array, level: int) -> Array:
        """A · t_level², an element of the level below."""
        if level == 1:
            return self.neg(a)
        half = a.shape[-1] // 2
        a0, a1 = a[..., :half], a[..., half:]
        turned = np.concatenate([self._times_nu(a1, level - 1), a0], axis=-1)  # t_{level−1} a
        if level > 2:
            return turned
        shift = self._shift.reshape((-1,) + (1,) * (a.ndim - 1))
        return self.add(turned, a * shift % self.modulus(a.ndim))

    @cached_property
    def _shift(self) -> Array:
        """The smallest a for which a + t_1 is a non-square: its norm a² + 1 is none in F_p."""
        found = [
            next(a for a in range(1, p) if pow(a * a + 1, (p - 1) // 2, p) == p - 1) for p in self.primes
        ]
        return np.array(found, dtype=self.dtype)

    def power(self, a: Array, exponent: int) -> Array:
        """a ** exponent for an exponent ≥ 0, by repeated squaring."""
        result = None
        while exponent:
            if exponent & 1:
                result = a if result is None else self.mul(result, a)
            exponent >>= 1
            if exponent:
                a = self.mul(a, a)
        return np.broadcast_to(self.unit(a.ndim), a.shape) if result is None else result

    def unit(self, ndim: int) -> Array:
        """One, with axes to broadcast."""
        one = self.embed(np.ones(self.lanes, dtype=self.dtype))
        return one.reshape((self.lanes,) + (1,) * (ndim - 1 - len(self.tail)) + self.tail)

    def inverse(self, a: Array) -> tuple[Array, Array]:
        """1/a, and where a is 0 (there the inverse given is 0)."""
        zero = self.is_zero(a)
        if not self.levels:
            return self._base_inverse(a), zero
        return self._inverse(a, self.levels), zero

    def _inverse(self, a: Array, level: int) -> Array:
        """1/(a0 + a1 t) = (a0 − a1 t) / (a0² − ν a1²)."""
        if level == 0:
            return self._base_inverse(a)
        half = 1 << (level - 1)
        a0, a1 = a[..., :half], a[..., half:]
        over = self._inverse(self._norm(a0, a1, level), level - 1)
        minus = self._product(self.neg(a1), over, level - 1)
        return np.concatenate([self._product(a0, over, level - 1), minus], axis=-1)

    def _product(self, a: Array, b: Array, level: int) -> Array:
        """A · b in one level."""
        if not level or self.dtype == object or a.ndim != b.ndim:
            return self._bilinear(self._times, a, b, level)
        products = a[..., :, None] * b[..., None, :] % self.modulus(a.ndim + 1)
        return self._collected(products, level)

    def _norm(self, a0: Array, a1: Array, level: int) -> Array:
        """The norm of a0 + a1 t_level to the level below."""
        square = self._times_nu(self._product(a1, a1, level - 1), level)
        return self.sub(self._product(a0, a0, level - 1), square)

    def _base_inverse(self, a: Array) -> Array:
        """All inverses from those of the lanes' total products, by halving: 3n products, T inverses."""
        flat = np.where(a == 0, np.ones_like(a), a).reshape(self.lanes, -1)
        return np.where(a == 0, a, self._halving_inverse(flat).reshape(a.shape))

    def _halving_inverse(self, flat: Array) -> Array:
        """1/(xy) gives 1/x and 1/y by one product each."""
        count = flat.shape[1]
        if count <= 1:
            values = [pow(row[0], -1, p) for row, p in zip(flat.tolist(), self.primes, strict=True) if count]
            return np.array(values, dtype=self.dtype).reshape(flat.shape)
        p, half = self.modulus(2), count // 2
        a, b, rest = flat[:, :half], flat[:, half : 2 * half], flat[:, 2 * half :]
        over = self._halving_inverse(np.concatenate([a * b % p, rest], axis=1))
        both = over[:, :half]
        return np.concatenate([both * b % p, both * a % p, over[:, half:]], axis=1)

    def _lane_power(self, a: Array, exponents: Sequence[int]) -> Array:
        """a ** e_t with another exponent e_t ≥ 0 in each lane; base fields only."""
        p = self.modulus(a.ndim)
        if self.dtype == object:
            over = np.array(exponents, dtype=object).reshape(p.shape)
            powers: Array = np.asarray(np.frompyfunc(pow, 3, 1)(a, over, p))
            return powers
        result = np.ones_like(a)
        left = np.array(exponents, dtype=np.uint64).reshape(p.shape)
        one = np.uint64(1)
        while np.any(left):
            result = np.where(left & one, result * a % p, result)
            a = a * a % p
            left = left >> one
        return result

    # ---- comparing ------------------------------------------------------------------------------

    def is_zero(self, a: Array) -> Array:
        """Where a is 0: a boolean array (T, *s)."""
        zero: Array = a == 0
        return np.asarray(zero.all(axis=-1)) if self.levels else zero

    def level_of(self, a: Array) -> int:
        """The smallest extension that holds all the elements in all lanes."""
        level = self.levels
        while level and not np.any(a[..., 1 << (level - 1) : 1 << level]):
            level -= 1
        return level

    # ---- contraction ----------------------------------------------------------------------------

    def einsum(self, spec: str, *args: Array) -> Array:
        """A contraction of arrays (T, *s), pairwise from the left; ``spec`` names the axes of s only."""
        left, output = spec.split("->")
        parts = left.split(",")
        labels, value = parts[0], args[0]
        for k in range(1, len(parts)):
            later = set("".join(parts[k + 1 :])) | set(output)
            kept = "".join(dict.fromkeys(c for c in labels + parts[k] if c in later))
            labels_out = output if k == len(parts) - 1 else kept
            value, labels = self._pair(labels, parts[k], labels_out, value, args[k]), labels_out
        if len(parts) == 1:
            tail = "Z" if self.levels else ""
            value = np.asarray(np.einsum(f"Y{labels}{tail}->Y{output}{tail}", value))
            value = value % self.modulus(value.ndim)
        return value

    def _pair(self, a_labels: str, b_labels: str, output: str, a: Array, b: Array) -> Array:
        spec = f"Y{a_labels},Y{b_labels}->Y{output}"

        def base(x: Array, y: Array) -> Array:
            if self.dtype == object:
                full = np.asarray(np.einsum(spec, x, y))
                return full % self.modulus(full.ndim)
            # y = y1 2¹⁶ + y0: the sums of products stay below 2⁶⁴ for up to 2¹⁷ terms.
            high = np.asarray(np.einsum(spec, x, y >> np.uint64(16)))
            low = np.asarray(np.einsum(spec, x, y & np.uint64(0xFFFF)))
            p = self.modulus(high.ndim)
            return ((high % p << np.uint64(16)) + low % p) % p

        if not self.levels:
            return base(a, b)
        if self.dtype == object:
            return self._bilinear(base, a, b, self.levels)
        spec = f"Y{a_labels}P,Y{b_labels}Q->Y{output}PQ"
        return self._collected(base(a, b), self.levels)

    # ---- roots ----------------------------------------------------------------------------------

    def square_root(self, a: Array) -> tuple[Array, Array]:
        """A square root, and where there is none in this field (there the value is arbitrary)."""
        if not self.levels:
            return self._base_root(a)
        return self._root(a, self.levels)

    def _base_root(self, a: Array) -> tuple[Array, Array]:
        """u^((p+1)/4), a root where u is a square, since p ≡ 3 mod 4."""
        root = self._lane_power(a, [(p + 1) // 4 for p in self.primes])
        return root, root * root % self.modulus(a.ndim) != a

    def _root(self, a: Array, level: int) -> tuple[Array, Array]:
        """x + y t with x² + ν y² = a0 and 2xy = a1: x² = (a0 ± √N(a))/2."""
        if level == 0:
            root, missing = self._base_root(a)
            return root, missing[..., 0]
        half = 1 << (level - 1)
        lower = level - 1
        a0, a1 = a[..., :half], a[..., half:]
        norm_root, missing = self._root(self._norm(a0, a1, level), lower)
        halved = self._halve(self.add(a0, norm_root)), self._halve(self.sub(a0, norm_root))
        x, wrong = self._root(halved[0], lower)
        other, _ = self._root(halved[1], lower)
        x = np.where(wrong[..., None], other, x)
        y = self._product(a1, self._inverse(self.add(x, x), lower), lower)
        # Elements of the level below: √a0, or √(a0/ν) t where a0 is no square there.
        inside = (a1 == 0).all(axis=-1)
        root, none = self._root(a0, lower)
        turned, _ = self._root(self._over_nu(a0, level), lower)
        x = np.where(inside[..., None], np.where(none[..., None], 0, root), x).astype(self.dtype)
        y = np.where(inside[..., None], np.where(none[..., None], turned, 0), y).astype(self.dtype)
        return np.concatenate([x, y], axis=-1), missing & ~inside

    def _halve(self, a: Array) -> Array:
        half = np.array([(p + 1) // 2 for p in self.primes], dtype=self.dtype)
        return a * half.reshape((-1,) + (1,) * (a.ndim - 1)) % self.modulus(a.ndim)

    def _over_nu(self, a: Array, level: int) -> Array:
        """A / t_level², in the level below."""
        one = np.zeros((self.lanes,) + (1,) * (a.ndim - 2) + (a.shape[-1],), dtype=self.dtype)
        one[..., 0] = 1
        return self._product(a, self._inverse(self._times_nu(one, level), level - 1), level - 1)

    def odd_root(self, a: Array, order: int) -> Array:
        """The unique root of odd order in the base field, where gcd(order, p − 1) = 1."""
        inverses = [pow(order, -1, p - 1) for p in self.primes]
        return self.embed(self._lane_power(a[..., 0] if self.levels else a, inverses))

    def is_square(self, a: Array, level: int) -> Array:
        """Where the element is a square of the given level: its norm to F_p is a square there."""
        if not self.levels:
            a = a[..., None]
        a = a[..., : 1 << level]
        while level:
            half = 1 << (level - 1)
            a = self._norm(a[..., :half], a[..., half:], level)
            level -= 1
        euler = self._lane_power(a[..., 0], [(p - 1) // 2 for p in self.primes])
        squares: Array = euler <= 1
        return squares
