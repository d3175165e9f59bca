"""Random numbers as functions of a key: noise is an input, and a backward pass can recompute it.

`Uniform` and `FoldIn` are Philox 4×32-10 (`symad.numbers.philox`); their values are step functions of the
key, so every derivative is 0. Normal numbers are made of uniform ones by the transform of Box and Muller,

    z = √(−2 log u₁) cos 2πu₂,

one block of 128 bits for each z, so that element i depends on the key and i alone. (The sine of the pair is
not used.) Sources: Salmon et al. (2011), see `symad.numbers.philox`; Box and Muller, "A note on the
generation of random normal deviates", Annals of Mathematical Statistics 29 (1958).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import sympy

from symad.core.dims import Dim, Shape, as_dim, as_shape, format_shape, same_shape, size
from symad.core.graph import ZERO, Node, Op, shape
from symad.core.questions import (
    Array,
    Count,
    Flags,
    Nodes,
    Tangent,
    Tangents,
    Values,
    batch,
    evaluate,
    flops,
    jvp,
)
from symad.errors import EvaluationError, ShapeError
from symad.numbers.dual import primals
from symad.numbers.number_domains import box, domain_of
from symad.numbers.philox import _fold_in, _uniform
from symad.ops.arrays.stacking import take
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.shaping import broadcast_to, lift
from symad.ops.basic.sources import constant, iota
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power

KEY = 4
"""A key is four integers of 16 bits."""


@dataclass(frozen=True, eq=False)
class RandomOp(Op):
    """An op on keys (..., 4): its value is constant between integers."""

    total = True


@dataclass(frozen=True, eq=False)
class Uniform(RandomOp):
    """Numbers in (0, 1) of ``shape`` for each key: (..., 4) to (..., *shape)."""

    shape: Shape


@dataclass(frozen=True, eq=False)
class FoldIn(RandomOp):
    """A new key for each key (..., 4) and integer (...) from 0 up."""


# ---- makers -------------------------------------------------------------------------------------


def key_of(seed: int) -> np.ndarray:
    """The key (4,) of a seed of 64 bits.

    Raises:
        ShapeError: the seed is not an integer in 0 … 2⁶⁴ − 1.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
        raise ShapeError(f"the seed of a key is an integer in 0..2**64 - 1, not {seed!r}")
    return np.array([int(seed) >> 16 * k & 0xFFFF for k in range(KEY)], dtype=np.float64)


def uniform(key: Node, dims: tuple[int | sympy.Symbol, ...] = ()) -> Node:
    """Uniform numbers in (0, 1) of a shape, for each key (..., 4)."""
    return Node.of(Uniform(as_shape(dims)), (key,))


def normal(key: Node, dims: tuple[sympy.Symbol | int, ...] = ()) -> Node:
    """Standard normal numbers of a shape, for each key (..., 4)."""
    pairs = uniform(key, (*as_shape(dims), 2))
    first, second = (take(pairs, len(pairs.shape) - 1, k) for k in (0, 1))
    radius = power(mul(constant(-2), apply(sympy.log, first)), constant(Fraction(1, 2)))
    return mul(radius, apply(sympy.cos, mul(constant(2), constant(sympy.pi), second)))


def fold_in(key: Node, number: Node) -> Node:
    """The key of stream ``number`` of a key; both may be stacks of one shape, or the number alone."""
    if number.shape and len(_stack(key)) == 0:
        key = broadcast_to(key, (*number.shape, KEY))
    return Node.of(FoldIn(), (key, number))


def split(key: Node, count: Dim) -> Node:
    """The keys (count, 4) of the streams 0 … count − 1 of one key (4,)."""
    return fold_in(key, iota(as_dim(count)))


# ---- answers ------------------------------------------------------------------------------------


def _stack(key: Node) -> Shape:
    """The axes before the axis of the four integers."""
    if not key.shape or key.shape[-1] != KEY:
        raise ShapeError(
            f"a random key has shape (..., 4), not {format_shape(key.shape)}; symad.functions.key makes one"
        )
    return key.shape[:-1]


@shape(Uniform)
def uniform_shape(op: Uniform, args: Nodes) -> Shape:
    return (*_stack(args[0]), *op.shape)


@shape(FoldIn)
def fold_in_shape(op: FoldIn, args: Nodes) -> Shape:
    key, number = args
    if not same_shape(_stack(key), number.shape):
        raise ShapeError(
            f"fold_in takes one number for each key, not {format_shape(number.shape)} "
            f"for keys of shape {format_shape(key.shape)}"
        )
    return key.shape


@jvp.dispatch
def random_jvp(op: RandomOp, y: Node, tangents: Tangents) -> Tangent:
    """Random numbers are step functions of their key."""
    return ZERO


@batch.dispatch
def random_batch(op: RandomOp, args: Nodes, batched: Flags, count: Count) -> Node:
    return Node.of(op, tuple(lift(a, b, count) for a, b in zip(args, batched, strict=True)))


@flops.dispatch
def random_flops(op: RandomOp, y: Node) -> Count:
    return size(y.shape)


def _numbers(values: Values) -> list[Array]:
    """Keys and stream numbers as floats, from any type of number; all of them are integers."""
    try:
        return [np.asarray(primals(v), dtype=np.float64) for v in values]
    except TypeError:
        raise EvaluationError("random numbers need a key of numbers, not of symbols") from None


def _in_domain(found: Array, values: Values) -> Array:
    """Floats as exact numbers of the key's type."""
    domain = domain_of(values)
    if not any(isinstance(v, np.ndarray) and v.dtype == object for v in values):
        return found
    exact = np.frompyfunc(lambda v: domain.number(Fraction(v)), 1, 1)(found)
    return exact if isinstance(exact, np.ndarray) else box(exact)[()]


def _computed(function: Callable[..., np.ndarray], values: Values, *more: tuple[int, ...]) -> Array:
    try:
        return _in_domain(function(*_numbers(values), *more, np.float64), values)
    except ValueError as error:
        raise EvaluationError(str(error)) from None


@evaluate.dispatch
def uniform_evaluate(op: Uniform, values: Values) -> Array:
    return _computed(_uniform, values, op.shape)


@evaluate.dispatch
def fold_in_evaluate(op: FoldIn, values: Values) -> Array:
    return _computed(_fold_in, values)
