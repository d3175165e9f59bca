"""Small powers as products: x² as x*x, x³ as x*x*x, and x^(3/2) as x √x. Calls of pow take longer."""

from __future__ import annotations

from fractions import Fraction

from symad.numeric.program.expressions import Compute, Expression, Read
from symad.numeric.program.program import Program
from symad.ops.basic.arithmetic import Mul
from symad.ops.basic.sources import Constant, constant
from symad.ops.elementwise.powers import Pow

MAX_POWER = 4
"""The highest power that is a product. Each multiplication rounds, so that higher powers are calls of pow.

Origin: rounding errors, not time.
"""


def multiply_powers(program: Program) -> Program:
    """The program with small powers of values as products. Each statement of the program computes one op."""
    return program.with_expressions(multiplied)


def multiplied(expression: Expression) -> Expression:
    """A small power of a value as a product; other expressions unchanged."""
    if not isinstance(expression, Compute) or not isinstance(expression.op, Pow):
        return expression
    base, exponent = expression.args
    value = exponent.op.value if isinstance(exponent, Compute) and isinstance(exponent.op, Constant) else None
    if not isinstance(base, Read) or value is None or isinstance(value, (bool, float)):
        return expression
    if value == Fraction(3, 2):
        root = Compute(Pow(), (base, Compute(constant(Fraction(1, 2)).op, (), ())), expression.shape)
        return Compute(Mul((1, 1)), (base, root), expression.shape)
    if value in range(2, MAX_POWER + 1):
        return Compute(Mul((1,) * int(value)), (base,) * int(value), expression.shape)
    return expression
