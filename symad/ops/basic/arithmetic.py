"""Arithmetic: signed sums, products and quotients; elementwise on equal shapes.

An argument without axes may be combined with arrays of any shape. Subtraction is a signed sum and division a
product with inverted factors, so a − b and a / b cost one rounding and are printed as they were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import log10
from typing import Any

import numpy as np

from symad.core.dims import Shape, same_shape, size
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
from symad.errors import ShapeError, TraceError
from symad.numbers.number_domains import divide
from symad.ops.basic.shaping import broadcast_axes, broadcast_to
from symad.ops.basic.sources import EXACT, Constant, constant, constant_value, described


@dataclass(frozen=True, eq=False)
class ElementwiseOp(Op):
    """An op applied to each element; arguments have one shape, or no axes."""


@dataclass(frozen=True, eq=False)
class Add(ElementwiseOp):
    """Σ_i signs_i x_i, with signs ±1."""

    total = True

    signs: tuple[int, ...]
    linear = True


@dataclass(frozen=True, eq=False)
class Mul(ElementwiseOp):
    """Π_i x_i^powers_i, with powers ±1: a product, a quotient, or a reciprocal."""

    powers: tuple[int, ...]


# ---- makers -------------------------------------------------------------------------------------


@lru_cache(256)
def _add_op(signs: tuple[int, ...]) -> Add:
    return Add(signs)


@lru_cache(256)
def _mul_op(powers: tuple[int, ...]) -> Mul:
    return Mul(powers)


def _plain(parts: Iterable[tuple[int, Node]]) -> tuple[list[tuple[int, Node]], Shape]:
    """The parts with repeated scalars replaced by these scalars, and the axes that are lost thereby."""
    listed = list(parts)
    for _, node in listed:
        if node.op.repeats:
            break
    else:
        return listed, ()
    lost = next((node.shape for _, node in listed if node.op.repeats), ())
    plain = [
        (k, node.args[0]) if node.op.repeats and not node.args[0].shape else (k, node) for k, node in listed
    ]
    return plain, () if any(node.shape for _, node in plain) else lost


def _repeated(node: Node, shape_: Shape) -> Node:
    if not shape_:
        return node
    return broadcast_to(node, shape_)


def tangent_of_shape(total: Tangent, shape_: Shape) -> Tangent:
    """A tangent repeated to the shape of its value; other tangents and zeros are returned unchanged."""
    if not isinstance(total, Node):
        return ZERO
    return total if total.shape == shape_ else _repeated(total, shape_)


def signed_sum(terms: Iterable[tuple[int, Node]]) -> Node:
    """Σ sign·term. Exact constants are added to one; negations are merged into the signs."""
    signs: list[int] = []
    kept: list[Node] = []
    total: int | Fraction = 0
    plain, lost = _plain(terms)
    if len(plain) == 1 and plain[0][0] == 1 and not lost:
        return plain[0][1]
    for given_sign, given in plain:
        sign, term = given_sign, given
        op = term.op
        if type(op) is Add and len(term.args) == 1:
            sign, term = sign * op.signs[0], term.args[0]
            op = term.op
        if type(op) is Constant and op.kind in EXACT:
            total += sign * op.value
        else:
            signs.append(sign)
            kept.append(term)
    if not kept:
        return _repeated(constant(total), lost)
    if len(kept) > 1 and len(set(kept)) < len(kept):
        signs, kept = _collected(signs, kept)
    if total:
        signs.insert(0, 1 if total > 0 else -1)
        kept.insert(0, constant(abs(total)))
    if signs == [1]:
        return _repeated(kept[0], lost)
    return _repeated(Node.of(_add_op(tuple(signs)), tuple(kept)), lost)


def _collected(signs: list[int], terms: list[Node]) -> tuple[list[int], list[Node]]:
    """Equal terms as one multiple each; terms that cancel stay as x − x, which is NaN where x is NaN."""
    counts: dict[Node, int] = {}
    for sign, term in zip(signs, terms, strict=True):
        counts[term] = counts.get(term, 0) + sign
    pairs = []
    for term, times in counts.items():
        if times == 0:
            pairs += [(1, term), (-1, term)]
        else:
            pairs.append((1 if times > 0 else -1, mul(constant(abs(times)), term)))
    return [sign for sign, _ in pairs], [term for _, term in pairs]


def add(*terms: Node) -> Node:
    """The sum of the terms."""
    return terms[0] if len(terms) == 1 else signed_sum([(1, term) for term in terms])


def sub(a: Node, b: Node) -> Node:
    """The difference a − b."""
    return signed_sum(((1, a), (-1, b)))


def neg(a: Node) -> Node:
    """−a."""
    return signed_sum(((-1, a),))


def signed_product(factors: Iterable[tuple[int, Node]]) -> Node:
    """Π factor^power with powers ±1. Exact constants are multiplied; signs are moved to the front."""
    plain, lost = _plain(factors)
    if len(plain) == 1 and plain[0][0] == 1 and not lost:
        return plain[0][1]
    powers, kept, over, under = _without_numbers(plain)
    if not kept:
        return _repeated(constant(Fraction(over, under)), lost)
    if over == 0:
        return _repeated(_zero_times(powers, kept), lost)
    made = _product_of(powers, kept) if over == under else _times(powers, kept, Fraction(over, under))
    return _repeated(made, lost)


def _without_numbers(factors: Iterable[tuple[int, Node]]) -> tuple[list[int], list[Node], int, int]:
    """The powers and the factors that are no exact numbers, and the fraction that the numbers make."""
    powers: list[int] = []
    kept: list[Node] = []
    over, under = 1, 1
    for given_power, given in factors:
        power, factor = given_power, given
        op = factor.op
        if type(op) is Add and len(factor.args) == 1:
            over *= op.signs[0]
            factor = factor.args[0]
            op = factor.op
        if type(op) is Mul and len(factor.args) == 1:
            power, factor = -power, factor.args[0]
            op = factor.op
        if type(op) is Constant and op.kind in EXACT and (power == 1 or op.value):
            above, below = op.value.numerator, op.value.denominator
            over, under = (over * above, under * below) if power == 1 else (over * below, under * above)
        else:
            powers.append(power)
            kept.append(factor)
    return powers, kept, over, under


def _times(powers: list[int], factors: list[Node], number: Fraction) -> Node:
    """number · Π factor^power, with numerator and denominator as factors where these are floats."""
    if number < 0:
        return neg(_times(powers, factors, -number))
    over, under = number.numerator, number.denominator
    wide = max(over, under) > LARGEST or min(over, under) > SINGLE
    if wide and not any(p == -1 and _is_large_sum(f) for p, f in zip(powers, factors, strict=True)):
        return _scaled(_product_of(powers, factors), number)
    if over != 1:
        powers, factors = [1, *powers], [constant(over), *factors]
    if under != 1:
        powers, factors = [*powers, -1], [*factors, constant(under)]
    return _product_of(powers, factors)


LARGEST, BITS, SINGLE = 1 << 1000, 1000, 1 << 120
"""Integers up to the first are floats, with some room, and up to the last in single precision, too."""

MAX_BITS = 1 << 17
"""The maximum number of bits of an exact factor: the time of its division grows as the square of it."""


def _is_large_sum(node: Node) -> bool:
    """Whether a sum has a number that is no float: what it divides may have one, too, and both cancel."""
    if type(node.op) is not Add:
        return False
    numbers = [a.op.value for a in node.args if isinstance(a.op, Constant)]
    return any(isinstance(v, (int, Fraction)) and not -LARGEST <= v <= LARGEST for v in numbers)


def _scaled(product: Node, factor: Fraction) -> Node:
    """product · factor, where the numerator or the denominator of the factor may be no float.

    As one number, 1/180! would be 0, and x¹⁸⁰/180! too: the factor is divided into parts that are floats.
    """
    over, under = factor.numerator.bit_length(), factor.denominator.bit_length()
    if max(over, under) > MAX_BITS:
        digits, most = (int(bits * log10(2)) for bits in (max(over, under), MAX_BITS))
        raise TraceError(
            f"a factor has about {digits:,} digits; exact factors of at most {most:,} digits are kept: "
            "divide the expression by it, or take the logarithm"
        )
    bits = over - under
    count = abs(bits) // BITS
    part = Fraction(2) ** (bits // (count + 1))
    for number in [part] * count + [factor / part**count]:
        product = Node.of(_mul_op((1, 1)), (product, constant(number)))
    return product


def _product_of(powers: list[int], factors: list[Node]) -> Node:
    return factors[0] if powers == [1] else Node.of(_mul_op(tuple(powers)), tuple(factors))


def _zero_times(powers: list[int], factors: list[Node]) -> Node:
    """An exact 0 of the common shape; 0/0, as in the mean of nothing, is kept."""
    if any(power == -1 and constant_value(f) == 0 for power, f in zip(powers, factors, strict=True)):
        return _product_of([1, *powers], [constant(0), *factors])
    return broadcast_to(constant(0), common_shape("a product", factors))


def mul(*factors: Node) -> Node:
    """The product of the factors."""
    return signed_product([(1, factor) for factor in factors])


def div(a: Node, b: Node) -> Node:
    """The quotient a / b."""
    return signed_product(((1, a), (-1, b)))


def add_tangents(terms: Iterable[Tangent]) -> Tangent:
    """The sum of tangents; structural zeros take no part."""
    present = [term for term in terms if isinstance(term, Node)]
    return add(*present) if present else ZERO


def scale_tangent(coefficient: Node, tangent: Tangent) -> Tangent:
    """coefficient · tangent."""
    return mul(coefficient, tangent) if isinstance(tangent, Node) else ZERO


# ---- answers ------------------------------------------------------------------------------------


def common_shape(what: str, args: Sequence[Node]) -> Shape:
    found: Shape = ()
    for arg in args:
        if arg.shape:
            if found and not same_shape(found, arg.shape):
                raise ShapeError(
                    f"{what} needs arguments of one shape, but they are " + " and ".join(map(described, args))
                )
            found = found or arg.shape
    return found


@shape(Add)
def add_shape(op: Add, args: Nodes) -> Shape:
    return common_shape("a sum", args)


@shape(Mul)
def mul_shape(op: Mul, args: Nodes) -> Shape:
    return common_shape("a product", args)


@jvp.dispatch
def add_jvp(op: Add, y: Node, tangents: Tangents) -> Tangent:
    """y_dot = Σ signs_i x_i_dot."""
    terms = [(s, t) for s, t in zip(op.signs, tangents, strict=True) if isinstance(t, Node)]
    return tangent_of_shape(signed_sum(terms), y.shape) if terms else ZERO


@batch.dispatch
def elementwise_batch(op: ElementwiseOp, args: Nodes, batched: Flags, count: Count) -> Node:
    """All arguments with axes are broadcast to the batched shape."""
    lengths = [len(a.shape) - int(b) for a, b in zip(args, batched, strict=True)]
    rank = max(lengths)
    inner = next(a.shape[int(b) :] for a, b, r in zip(args, batched, lengths, strict=True) if r == rank)
    full = (count, *inner)
    made = []
    for arg, flag, length in zip(args, batched, lengths, strict=True):
        if flag and length < rank:
            made.append(broadcast_axes(arg, full, (0,)))
        elif not flag and length:
            made.append(broadcast_axes(arg, full, tuple(range(1, rank + 1))))
        else:
            made.append(arg)
    return Node.of(op, tuple(made))


@flops.dispatch
def add_flops(op: Add, y: Node) -> Count:
    return size(y.shape) * max(len(y.args) - 1, 1)


@flops.dispatch
def mul_flops(op: Mul, y: Node) -> Count:
    return size(y.shape) * max(len(y.args) - 1, 1)


@evaluate.dispatch
def add_evaluate(op: Add, values: Values) -> Array:
    total = values[0] if op.signs[0] == 1 else -values[0]
    for sign, value in zip(op.signs[1:], values[1:], strict=True):
        total = total + value if sign == 1 else total - value
    return total


@evaluate.dispatch
def mul_evaluate(op: Mul, values: Values) -> Array:
    over: Any = None
    under: Any = None
    for power_, value in zip(op.powers, values, strict=True):
        if power_ == 1:
            over = value if over is None else _product(over, value)
        else:
            under = value if under is None else _product(under, value)
    if under is None:
        return over
    return divide(1 if over is None else over, under)


def _product(a: Any, b: Any) -> Any:
    """a · b with an array on the left: mpmath on the left would print the array before NumPy is tried."""
    return b * a if isinstance(b, np.ndarray) else a * b
