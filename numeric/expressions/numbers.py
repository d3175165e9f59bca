"""Expressions that are numbers of the host language in printed code, not arrays."""

from __future__ import annotations

from fractions import Fraction

import sympy

from symad.numeric.program.expressions import Compute, Expression
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.sources import Constant, Dimension


def is_number(expression: Expression) -> bool:
    """Whether an expression consists of constants and dimensions, and elementwise ops of them."""
    if not isinstance(expression, Compute):
        return False
    if isinstance(expression.op, (Constant, Dimension)):
        return True
    return isinstance(expression.op, ElementwiseOp) and all(map(is_number, expression.args))


def literal(expression: Expression) -> int | float | Fraction | sympy.Expr | bool | None:
    """The value of a constant; None for other expressions."""
    if isinstance(expression, Compute) and isinstance(expression.op, Constant):
        value: int | float | Fraction | sympy.Expr | bool = expression.op.value
        return value
    return None
