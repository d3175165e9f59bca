"""Folds constants: 3*(2*x) is 6*x. Small powers are products, and broadcasts that NumPy does by itself go."""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import TypeAlias

from symad.core.dims import broadcast_shapes, same_shape
from symad.numeric.expressions.views import joined
from symad.numeric.program.expressions import Compute, Expression, Read, rewrite
from symad.numeric.program.program import Program
from symad.ops.basic.arithmetic import Add, ElementwiseOp, Mul
from symad.ops.basic.shaping import Broadcast, Reshape
from symad.ops.basic.sources import Constant, constant, is_exact
from symad.ops.elementwise.powers import Pow

MAX_INTEGER = 10**30
"""Numbers are multiplied up to this magnitude, which single precision can hold.

Origin: the range of single precision, up to 3·10³⁸.
"""


def fold(program: Program) -> Program:
    """The program with `aligned` and `folded` applied to every expression."""
    return program.with_expressions(lambda expression: rewrite(rewrite(expression, aligned), folded))


def folded(expression: Expression) -> Expression:
    """A product with its exact constants collected, or a sum that does not begin with −a if possible."""
    if isinstance(expression, Compute) and isinstance(expression.op, Mul):
        return _product(expression, expression.op)
    if isinstance(expression, Compute) and isinstance(expression.op, Add):
        return _sum(expression, expression.op)
    return expression


def _sum(expression: Compute, op: Add) -> Expression:
    """b − a instead of −a + b: the same to the last bit."""
    if op.signs[:2] != (-1, 1):
        return expression
    first, second, *rest = expression.args
    return Compute(Add((1, -1, *op.signs[2:])), (second, first, *rest), expression.shape)


def exact(expression: Expression) -> int | Fraction | None:
    """The value of an exact constant; None for other expressions."""
    if isinstance(expression, Compute) and isinstance(expression.op, Constant):
        value = expression.op.value
        return value if is_exact(value) else None
    return None


def _holds_number(expression: Compute) -> bool:
    """Whether an expression is an exact number or a product, which may begin with a number."""
    return isinstance(expression.op, Mul) or exact(expression) is not None


def _product(expression: Compute, op: Mul) -> Expression:
    """A product with its exact numbers in front: a·(b·x) = (a b)·x for integers and fractions.

    This adds no rounding. Only numbers of the product, and of factors that are products, are moved; the order
    of the other factors stays. So do quotients of quotients: the product of their divisors could overflow.
    """
    inner_numbers = [arg for arg in expression.args if isinstance(arg, Compute) and _holds_number(arg)]
    if not inner_numbers or (len(inner_numbers) == 1 and exact(inner_numbers[0]) not in (None, 1)):
        return expression
    flat = _flat(expression, op)
    over, under, rest = _numbers(flat)
    if max(abs(over), abs(under)) > MAX_INTEGER:
        return expression
    is_one = over == under
    if len(rest) + (not is_one) >= len(op.powers) and len(flat) == len(op.powers):
        return expression
    if is_one and len(rest) == 1 and rest[0][0] == 1 and same_shape(rest[0][1].shape, expression.shape):
        return rest[0][1]
    return Compute(*_with_number(over, under, rest), expression.shape)


def _with_number(over: int, under: int, rest: Powers) -> tuple[Mul, tuple[Expression, ...]]:
    """The product of a fraction and other factors."""
    begins = over != 1 or not any(p == 1 for p, _ in rest)
    made = [*([(1, _number(over))] if begins else []), *rest, *([(-1, _number(under))] if under != 1 else [])]
    return Mul(tuple(p for p, _ in made)), tuple(a for _, a in made)


Powers: TypeAlias = "list[tuple[int, Expression]]"
"""Factors with their powers, 1 or −1."""


def _flat(expression: Compute, op: Mul) -> Powers:
    """The factors of a product, and those of its factors that are products with a number in front."""
    flat: Powers = []
    number_first = exact(expression.args[0]) is not None
    divides = _has_divisor(expression)
    for power, arg in zip(op.powers, expression.args, strict=True):
        first = number_first and power == 1
        if (
            isinstance(arg, Compute)
            and isinstance(arg.op, Mul)
            and (first or exact(arg.args[0]) is not None)
            and not (divides and _has_divisor(arg))
        ):
            flat += [(power * p, a) for p, a in zip(arg.op.powers, arg.args, strict=True)]
        else:
            flat.append((power, arg))
    return flat


def _numbers(flat: Powers) -> tuple[int, int, Powers]:
    """The exact numbers among some factors, as one fraction, and the other factors."""
    over, under, rest = 1, 1, []
    for power, arg in flat:
        value = exact(arg)
        if value:
            above, below = value.as_integer_ratio()[::power]
            over, under = over * above, under * below
        else:
            rest.append((power, arg))
    common = gcd(over, under) if under > 0 else -gcd(over, under)
    return over // common, under // common, rest


def _has_divisor(expression: Compute) -> bool:
    """Whether a product has a divisor that is no number."""
    powers = expression.op.powers if isinstance(expression.op, Mul) else ()
    return any(p == -1 and exact(arg) is None for p, arg in zip(powers, expression.args, strict=True))


def _number(value: int) -> Compute:
    return Compute(constant(value).op, (), ())


def aligned(expression: Expression) -> Expression:
    """An elementwise op without `Broadcast` ops around its arguments, as NumPy broadcasts these itself."""
    if not isinstance(expression, Compute) or not isinstance(expression.op, ElementwiseOp):
        return expression
    args = tuple(_small(a) for a in expression.args)
    covered = broadcast_shapes(*(a.shape for a in args))
    whole = same_shape(covered, expression.shape)  # otherwise the result's shape needs a broadcast
    return Compute(expression.op, args, expression.shape) if whole else expression


def _small(expression: Expression) -> Expression:
    """The array that is broadcast, with axes of length 1 where the broadcast inserts axes in between."""
    if not isinstance(expression, Compute) or not isinstance(expression.op, Broadcast):
        return expression
    (arg,), axes, shape = expression.args, expression.op.axes, expression.op.shape
    if not axes:
        return arg
    first = min(axes)
    target = tuple(shape[k] if k in axes else 1 for k in range(first, len(shape)))
    return joined(Compute(Reshape(target), (arg,), target))


# ---- small powers as products --------------------------------------------------------------------


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
