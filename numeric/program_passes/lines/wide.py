"""Splits sums and products of very many operands: CPython's compiler recurses once for each operator."""

from __future__ import annotations

from symad.numeric.program.expressions import Compute, Expression, rewrite
from symad.numeric.program.program import Program
from symad.ops.basic.arithmetic import Add, Mul

MAX_OPERANDS = 200
"""Operands of one sum or product. CPython 3.11 compiles chains of 2,000 operands, but not of 3,000.

Origin: CPython's parser.
"""


def split_wide(program: Program) -> Program:
    """The program with sums and products of at most `MAX_OPERANDS`; results change by rounding only."""
    return program.with_expressions(lambda expression: rewrite(expression, _split))


def split_lines(program: Program) -> Program:
    """The same as `split_wide`, for programs with one op in each statement."""
    return program.with_expressions(_split)


def _split(expression: Expression) -> Expression:
    if not isinstance(expression, Compute) or not isinstance(expression.op, (Add, Mul)):
        return expression
    if len(expression.args) <= MAX_OPERANDS:
        return expression
    weights = expression.op.signs if isinstance(expression.op, Add) else expression.op.powers
    parts = list(zip(weights, expression.args, strict=True))
    while len(parts) > MAX_OPERANDS:
        groups = [parts[k : k + MAX_OPERANDS] for k in range(0, len(parts), MAX_OPERANDS)]
        parts = [(1, _joined(expression, group)) for group in groups]
    return _joined(expression, parts)


def _joined(expression: Compute, parts: list[tuple[int, Expression]]) -> Compute:
    """The sum or product of some operands."""
    weights = tuple(w for w, _ in parts)
    op = Add(weights) if isinstance(expression.op, Add) else Mul(weights)
    return Compute(op, tuple(a for _, a in parts), expression.shape)
