"""Expressions that are numbers of the host language in printed code, not arrays."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

import sympy

from symad.numeric.program.expressions import Compute, Expression, Read, Value
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.sources import Constant, Dimension


def is_number(expression: Expression, made: Mapping[Value, Expression] = MappingProxyType({})) -> bool:
    """Whether an expression consists of constants and dimensions, and elementwise ops of them.

    Args:
        expression: the expression.
        made: what values were assigned; others are no numbers.
    """
    while isinstance(expression, Read) and expression.value in made and not expression.shape:
        expression = made[expression.value]
    if not isinstance(expression, Compute):
        return False
    if isinstance(expression.op, (Constant, Dimension)):
        return True
    return isinstance(expression.op, ElementwiseOp) and all(is_number(a, made) for a in expression.args)


def literal(expression: Expression) -> int | float | Fraction | sympy.Expr | bool | None:
    """The value of a constant; None for other expressions."""
    if isinstance(expression, Compute) and isinstance(expression.op, Constant):
        value: int | float | Fraction | sympy.Expr | bool = expression.op.value
        return value
    return None
