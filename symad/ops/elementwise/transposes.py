"""Transposes of sums, products and selections; cotangents of scalars that were broadcast are summed."""

from __future__ import annotations

from symad.core.dims import Shape
from symad.core.graph import ZERO, Node
from symad.core.questions import Flags, Tangent, Tangents, transpose
from symad.ops.basic.arithmetic import Add, Mul, neg, signed_product
from symad.ops.basic.contraction import sum_axes
from symad.ops.basic.sources import constant
from symad.ops.elementwise.selection import Select, select


def sum_to(y_bar: Node, target: Shape) -> Node:
    """The cotangent of an argument without axes that was combined with an array: the sum of all elements."""
    if len(y_bar.shape) == len(target):
        return y_bar
    return sum_axes(y_bar, tuple(range(len(y_bar.shape))))


@transpose.dispatch
def add_transpose(op: Add, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    return tuple(
        sum_to(y_bar if sign == 1 else neg(y_bar), arg.shape) if flag else ZERO
        for sign, arg, flag in zip(op.signs, y.args, linear, strict=True)
    )


@transpose.dispatch
def mul_transpose(op: Mul, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    """A product is linear in one factor; the others scale the cotangent."""
    (k,) = [i for i, flag in enumerate(linear) if flag]
    rest = [(op.powers[j], y.args[j]) for j in range(len(y.args)) if j != k]
    result: list[Tangent] = [ZERO] * len(linear)
    result[k] = sum_to(signed_product([*rest, (1, y_bar)]), y.args[k].shape)
    return tuple(result)


@transpose.dispatch
def select_transpose(op: Select, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    """a_bar = select(c, y_bar, 0), b_bar = select(c, 0, y_bar)."""
    condition, a, b = y.args
    zero = constant(0)
    a_bar = sum_to(select(condition, y_bar, zero), a.shape) if linear[1] else ZERO
    b_bar = sum_to(select(condition, zero, y_bar), b.shape) if linear[2] else ZERO
    return ZERO, a_bar, b_bar
