"""Powers x ** y and square roots; elementwise on equal shapes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import sympy

from symad.core.dims import Shape, size
from symad.core.graph import Node, Op, shape
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
    question,
)
from symad.numbers.number_domains import raise_to
from symad.ops.basic.arithmetic import (
    Add,
    ElementwiseOp,
    Mul,
    add_tangents,
    common_shape,
    div,
    mul,
    sub,
    tangent_of_shape,
)
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape, Slice, broadcast_to
from symad.ops.basic.sources import constant, constant_value, is_exact
from symad.ops.elementwise.apply import Apply, apply
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
        return distance_slope(y) if is_distance(y) else div(constant(1), mul(constant(2), y))
    if isinstance(value, sympy.NumberSymbol):  # π − 1 is an expression
        return mul(exponent, power(base, sub(exponent, constant(1))))
    if value is not None:
        return mul(exponent, power(base, constant(value - 1)))
    # b**0 = 1 for every b, also 0: the slope there is 0 and not 0·∞
    zero = constant(0)
    flat = logic("and", equal(base, zero), equal(exponent, zero))
    return select(flat, zero, mul(exponent, power(base, sub(exponent, constant(1)))))


def distance_slope(y: Node) -> Node:
    """1/(2y) of a distance y = √q, and in general y/(d q) of y = q^(1/d).

    It has no derivative at the origin; there its slope is defined as 0, like that of |x|, and it has no
    second derivative.
    """
    base, exponent = y.args
    value = constant_value(exponent)
    slope = div(constant(1), mul(constant(2), y)) if value == HALF else div(mul(exponent, y), base)
    return select(equal(y, constant(0)), sqrt(y), slope)


def is_distance(node: Node) -> bool:
    """True for q^(1/d) of a sum q of powers of degree d, as in √(x² + y²) and (|x|³ + |y|³)^(1/3)."""
    if not isinstance(node.op, Pow):
        return False
    value = constant_value(node.args[1])
    if type(value) not in (Fraction, float) or not 0 < value < 1:
        return False
    d = degree(node.args[0])
    return d is not None and abs(d * value - 1) < EXACT_EXPONENT


EXACT_EXPONENT = 1e-14
"""How far the product of an exponent 1/d, a float, and of the degree d may be from 1."""


Degree: TypeAlias = "int | Fraction | float | None"


@question
def sum_degree(op: Op, y: Node) -> Degree:
    """The d for which ``y`` is a sum of powers |u|^d and higher ones; None if it is no such sum.

    The sum is along axes or term by term, of even powers, powers of absolute values, or ⟨x, x⟩. It is not
    negative, and is 0 only where all terms are.
    """


def degree(node: Node) -> Degree:
    """The degree of a node; see `sum_degree`."""
    found: Degree = sum_degree(node.op, node)
    return found


@sum_degree.dispatch
def no_sum_degree(op: Op, y: Node) -> Degree:
    return None


@sum_degree.dispatch
def pow_sum_degree(op: Pow, y: Node) -> Degree:
    base, exponent = y.args[0], constant_value(y.args[1])
    if type(exponent) not in (int, Fraction, float) or exponent <= 0:
        return None
    even = isinstance(exponent, int) and exponent % 2 == 0
    return exponent if even or (isinstance(base.op, Apply) and base.op.head is sympy.Abs) else None


@sum_degree.dispatch
def add_sum_degree(op: Add, y: Node) -> Degree:
    known = [degree(a) for a in y.args] if -1 not in op.signs else [None]
    return None if None in known else min(d for d in known if d is not None)


@sum_degree.dispatch
def mul_sum_degree(op: Mul, y: Node) -> Degree:
    over = [a for p, a in zip(op.powers, y.args, strict=True) if p == 1]
    rest = [a for a in y.args if not _is_positive(a)]
    if len(rest) == 2 and rest[0] is rest[1] and over.count(rest[0]) == 2:
        return 2
    return degree(rest[0]) if len(rest) == 1 and rest[0] in over else None


@sum_degree.dispatch
def einsum_sum_degree(op: Einsum, y: Node) -> Degree:
    if len(y.args) == 2 and y.args[0] is y.args[1] and op.inputs[0] == op.inputs[1]:
        return 2
    return degree(y.args[0]) if len(y.args) == 1 else None


@sum_degree.dispatch
def moved_sum_degree(op: Broadcast | Reshape | Slice, y: Node) -> Degree:
    return degree(y.args[0])


def _is_positive(node: Node) -> bool:
    """True if a node is a positive number."""
    value = constant_value(node)
    return isinstance(value, (int, float, Fraction)) and value > 0


@flops.dispatch
def pow_flops(op: Pow, y: Node) -> Count:
    return size(y.shape)


@evaluate.dispatch
def pow_evaluate(op: Pow, values: Values) -> Array:
    return raise_to(values[0], values[1])
