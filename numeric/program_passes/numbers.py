"""What is a number of the host language in printed text: constants, dimensions, and what is made of them."""

from __future__ import annotations

from fractions import Fraction

import sympy

from symad.numeric.program.expressions import Compute, Expression
from symad.ops.arrays.sources import Constant, Dimension
from symad.ops.elementwise.arithmetic import ElementwiseOp


def is_number(expression: Expression) -> bool:
    """Whether an expression is made of constants and dimensions alone."""
    if not isinstance(expression, Compute):
        return False
    if isinstance(expression.op, (Constant, Dimension)):
        return True
    return isinstance(expression.op, ElementwiseOp) and all(map(is_number, expression.args))


def literal(expression: Expression) -> int | float | Fraction | sympy.Expr | bool | None:
    """The value of a constant; None for anything else."""
    if isinstance(expression, Compute) and isinstance(expression.op, Constant):
        value: int | float | Fraction | sympy.Expr | bool = expression.op.value
        return value
    return None
