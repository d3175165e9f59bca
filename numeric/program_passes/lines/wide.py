"""Splits sums, products, extremes and conditions of very many operands, which CPython would not compile.

CPython's compiler recurses once for each operator of a chain, and its tokenizer counts open brackets. A wide
operation is written in groups: a sum of 1,000 terms is a sum of five sums of 200.
"""

from __future__ import annotations

import sys

import sympy

from symad.core.dims import Shape
from symad.core.graph import Op
from symad.numeric.program.expressions import Compute, Expression, Read, Value, rewrite
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Statement
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Logic

MAX_OPERANDS = 200
"""Operands of one sum or product. CPython 3.11 compiles chains of 2,000 operands, but not of 3,000.

Origin: CPython's parser.
"""

MAX_NESTED = 16
"""Operands of an operation that is written as calls in each other, ``maximum(maximum(a, b), c)``. CPython
compiles 200 open brackets; 5,000 operands take four levels of 16.

Origin: CPython's tokenizer.
"""


def split_wide(program: Program) -> Program:
    """The program with operations of few operands; results change by rounding only."""
    return program.with_expressions(lambda expression: rewrite(expression, _split))


def split_lines(program: Program) -> Program:
    """The same as `split_wide`, for programs with one op in each statement: each part is a statement, too."""
    made: list[Statement] = []
    for statement in program.statements:
        whole = _split(statement.expression) if isinstance(statement, Assign) else None
        if isinstance(statement, Assign) and isinstance(whole, Compute):
            made += _in_lines(statement.value, whole) if whole is not statement.expression else [statement]
        else:
            made.append(statement)
    return program.with_statements(tuple(made))


def _in_lines(value: Value, whole: Compute) -> list[Statement]:
    """The assignments of an operation on parts, the parts first."""
    made: list[Statement] = []
    args = list(whole.args)
    for k, arg in enumerate(args):
        if isinstance(arg, Compute) and arg.args:  # a number stays where it is read
            part = Value(value.stem, arg.shape)
            made += _in_lines(part, arg)
            args[k] = Read(part)
    return [*made, Assign(value, Compute(whole.op, tuple(args), whole.shape))]


def _split(expression: Expression) -> Expression:
    """The operation on operations on parts, if it has more operands than one text may have."""
    if not isinstance(expression, Compute) or len(expression.args) <= _most(expression.op):
        return expression
    op, parts = expression.op, list(expression.args)
    weights = op.signs if isinstance(op, Add) else op.powers if isinstance(op, Mul) else (1,) * len(parts)
    while len(parts) > (most := _most(op)):
        starts = range(0, len(parts), most)
        parts = [_joined(op, weights[k : k + most], parts[k : k + most], expression.shape) for k in starts]
        weights = (1,) * len(parts)
    return _joined(op, weights, parts, expression.shape)


def _most(op: Op) -> int:
    """The number of operands that may stand in one text of an op."""
    if isinstance(op, (Add, Mul)):
        return MAX_OPERANDS
    calls = isinstance(op, Logic) or (isinstance(op, Apply) and op.head in (sympy.Max, sympy.Min))
    return MAX_NESTED if calls else sys.maxsize


def _joined(op: Op, weights: tuple[int, ...], parts: list[Expression], shape: Shape) -> Expression:
    """The operation on some operands."""
    if len(parts) == 1 and weights == (1,):
        return parts[0]
    return Compute(type(op)(weights) if isinstance(op, (Add, Mul)) else op, tuple(parts), shape)
