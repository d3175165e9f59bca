"""Rational points to try: inside the domain the symbols promise, of several sizes and signs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import prod
from random import Random
from typing import Any, TypeAlias

import numpy as np
import sympy

from symad.core.arrays import Number
from symad.core.graph import Node
from symad.numbers.number_domains import as_float
from symad.ops.basic.sources import symbol_of
from symad.verification.fields.prime_fields import Array

DENOMINATORS = (3, 4, 5, 7, 8, 9, 11, 16)

KINDS = ("simple", "mixed", "positive", "small", "definite", "large", "mixed", "tiny", "positive")
"""What each point of the sequence is like; they repeat."""

SIZES = {"small": Fraction(3, 7), "tiny": Fraction(1, 300), "large": Fraction(6)}


def points(
    inputs: Sequence[Node], integers: Mapping[Node, tuple[int, int]], count: int, seed: int = 0
) -> Iterator[dict[Node, Any]]:
    """``count`` points for these inputs; the same ones every time.

    Args:
        inputs: input nodes with known sizes.
        integers: inputs that are indices or exponents, with their ranges.
        count: how many points.
        seed: another seed gives other points.
    """
    rng = Random(seed)
    for k in range(count):
        kind = KINDS[k % len(KINDS)]
        used: set[Fraction] = set()
        yield {node: _value(node, integers.get(node), kind, rng, used) for node in inputs}


def is_zero(node: Node) -> bool:
    """Whether an input is a scalar that is promised to be 0."""
    return not node.shape and bool(getattr(symbol_of(node), "is_zero", False))


def is_whole(node: Node) -> bool:
    """Whether the symbol of an input is an integer."""
    return bool(getattr(symbol_of(node), "is_integer", False))


SPARSE = ("even", "odd", "prime", "composite")
"""Assumptions about integers that most integers do not satisfy."""


def is_promised(point: Mapping[Node, Any]) -> bool:
    """False if the assumptions of a symbol exclude its value at a point, such as 1 for an even symbol."""
    for node, value in point.items():
        wanted = [k for k in SPARSE if getattr(symbol_of(node), f"is_{k}", None)]
        if wanted and not node.shape:
            number = sympy.Integer(int(value))
            if not all(getattr(number, f"is_{k}") for k in wanted):
                return False
    return True


def _value(node: Node, span: tuple[int, int] | None, kind: str, rng: Random, used: set[Fraction]) -> Number:
    symbol = symbol_of(node)
    shape = tuple(int(d) for d in node.shape)
    count = prod(shape)
    if span is not None:
        drawn = [rng.randrange(span[0], max(span[1], span[0] + 1)) for _ in range(count)]
        return np.array(drawn, dtype=np.int64).reshape(shape)
    numbers = np.empty(count, dtype=object)
    numbers[:] = [_fresh_number(symbol, kind, rng, used) for _ in range(count)]
    value = numbers.reshape(shape)
    if kind == "definite" and len(shape) >= 2 and shape[-1] == shape[-2]:
        value = _definite(value)
    return value if shape else value[()]


def _definite(a: Array) -> Array:
    """A Aᵀ + I, symmetric and positive definite."""
    n = a.shape[-1]
    product = (a[..., :, None, :] * a[..., None, :, :]).sum(axis=-1)
    return product + np.eye(n, dtype=int).astype(object) * Fraction(1)


TRIES = 20
"""How often a number that was not used before is looked for."""

MAX_SIMPLE_NUMBERS = 32
"""The maximum count of simple numbers at a point; further ones are moved at once."""

FINE = 10_007


def _fresh_number(symbol: sympy.Basic, kind: str, rng: Random, used: set[Fraction]) -> Fraction:
    """A number not used before at this point: no accidental ties. Of integers there may be too few."""
    whole = bool(getattr(symbol, "is_integer", False))
    number = _number(symbol, kind, rng)
    for _ in range(TRIES if whole or len(used) < MAX_SIMPLE_NUMBERS else 0):
        if abs(number) not in used:
            break
        number = _number(symbol, kind, rng)
    else:
        number *= 1 if whole else 1 + Fraction(len(used), FINE)
    used.add(abs(number))
    return number


def _number(symbol: sympy.Basic, kind: str, rng: Random) -> Fraction:
    """A number that the assumptions of the symbol allow."""
    if getattr(symbol, "is_zero", False):
        return Fraction(0)
    if getattr(symbol, "is_integer", False):
        number = Fraction(rng.randrange(getattr(symbol, "is_zero", None) is False, 9))
    elif kind == "simple":
        number = Fraction(rng.randrange(1, 8), rng.choice((2, 3, 4, 5)))
    else:
        over = rng.choice(DENOMINATORS)
        number = Fraction(rng.randrange(1, 2 * over) + rng.randrange(2) * over, over) * SIZES.get(kind, 1)
        if kind == "small":
            number = min(number, 1 / (number + 1))
    positive = getattr(symbol, "is_nonnegative", None)
    negative = getattr(symbol, "is_nonpositive", None)
    if negative or (not positive and kind not in ("positive", "simple") and rng.random() < 0.5):
        number = -number
    return number


Nested: TypeAlias = "str | list[Nested]"
"""A number as text, an array as nested lists of them."""


def describe(point: Mapping[Node, Number]) -> dict[str, Nested]:
    """A point by the names of its inputs: strings for numbers, nested lists for arrays."""
    names = [str(symbol_of(node)) for node in point]
    return {
        name if names.count(name) == 1 else f"{name} ({promise_of(node)})": _plain(value)
        for name, (node, value) in zip(names, point.items(), strict=True)
    }


def promise_of(node: Node) -> str:
    """What tells two symbols of one name apart."""
    symbol = symbol_of(node)
    words = ("zero", "positive", "negative", "nonnegative", "nonpositive")
    sign = next((w for w in words if getattr(symbol, f"is_{w}", None)), "")
    whole = "integer" if getattr(symbol, "is_integer", False) else ""
    return " ".join(word for word in (sign, whole) if word) or "real"


def _plain(value: Number) -> Nested:
    if isinstance(value, np.ndarray):
        return [_plain(v) for v in value] if value.ndim else _plain(value[()])
    return str(value)


def relative_gaps(u: Array | float, v: Array | float, watched: Array) -> Array:
    """Relative differences of watched elements where both values are finite, else 0."""
    with np.errstate(all="ignore"):
        gap = np.abs(np.asarray(u, dtype=float) - v) / (np.abs(u) + np.abs(v))
    return np.where(np.isfinite(gap) & watched, gap, 0.0)


def as_floats(value: Number) -> Array | float:
    """Rational values as floats."""
    if isinstance(value, np.ndarray):
        return np.frompyfunc(as_float, 1, 1)(value).astype(np.float64) if value.dtype == object else value
    return as_float(value)
