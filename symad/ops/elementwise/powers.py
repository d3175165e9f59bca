"""Powers x ** y and square roots; elementwise on equal shapes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import sympy

from symad.core.dims import Shape, size
from symad.core.graph import Node, shape
from symad.core.questions import (
    Array,
    Count,
    Nodes,
    Tangent,
    Tangents,
    Values,
    evaluate,
    flops,
    jvp,
)
from symad.numbers.number_domains import raise_to
from symad.ops.basic.arithmetic import (
    ElementwiseOp,
    add_tangents,
    common_shape,
    div,
    mul,
    sub,
    tangent_of_shape,
)
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import constant, constant_value, is_exact
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.selection import equal, logic, select


@dataclass(frozen=True, eq=False)
class Pow(ElementwiseOp):
    """x ** y, real: NaN for negative x and fractional y; 0 ** 0 = 1."""


POW = Pow()
HALF = Fraction(1, 2)


def power(base: Node, exponent: Node) -> Node:
    """The power base ** exponent; negative number exponents become reciprocals."""
    value = constant_value(exponent)
    if is_exact(value) or isinstance(value, float):
        if value == 1:
            return base
        if value == 0:
            return _one_like(base)
        if value < 0:
            return div(constant(1), power(base, constant(-value)))
        number = constant_value(base)
        if is_exact(number) and isinstance(value, int) and value <= 64:
            return constant(Fraction(number) ** value)
    return Node.of(POW, (base, exponent))


def _one_like(node: Node) -> Node:
    return broadcast_to(constant(1), node.shape)


def sqrt(a: Node) -> Node:
    """The square root, a ** (1/2)."""
    return power(a, constant(HALF))


@shape(Pow)
def pow_shape(op: Pow, args: Nodes) -> Shape:
    return common_shape("a power", args)


@jvp.dispatch
def pow_jvp(op: Pow, y: Node, tangents: Tangents) -> Tangent:
    """d(b**e) = e b**(e−1) ḃ + b**e log(b) ė, with log(b) b**e = 0 at b = 0 (the limit for e > 0)."""
    base, exponent = y.args
    base_dot, exponent_dot = tangents
    terms: list[Tangent] = []
    if isinstance(base_dot, Node):
        terms.append(mul(_power_slope(y, base, exponent), base_dot))
    if isinstance(exponent_dot, Node):
        at_zero = equal(base, constant(0))
        logarithm = apply(sympy.log, select(at_zero, constant(1), base))
        terms.append(mul(y, logarithm, exponent_dot))
    return tangent_of_shape(add_tangents(terms), y.shape)


def _power_slope(y: Node, base: Node, exponent: Node) -> Node:
    """e b**(e−1), reusing y if the exponent is 1/2."""
    value = constant_value(exponent)
    if type(value) is Fraction and value == HALF:
        return div(constant(1), mul(constant(2), y))
    if isinstance(value, sympy.NumberSymbol):  # π − 1 is an expression
        return mul(exponent, power(base, sub(exponent, constant(1))))
    if value is not None:
        less = value - 1
        if isinstance(value, float) and (exact := Fraction(value) - 1) != Fraction(less):
            less = exact  # a rounded e − 1 would be the exponent of another function
        return mul(exponent, power(base, constant(less)))
    # b**0 = 1 for every b, also 0: the slope there is 0 and not 0·∞
    zero = constant(0)
    flat = logic("and", equal(base, zero), equal(exponent, zero))
    return select(flat, zero, mul(exponent, power(base, sub(exponent, constant(1)))))


@flops.dispatch
def pow_flops(op: Pow, y: Node) -> Count:
    return size(y.shape)


@evaluate.dispatch
def pow_evaluate(op: Pow, values: Values) -> Array:
    return raise_to(values[0], values[1])
