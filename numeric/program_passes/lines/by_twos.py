"""Splits elementwise statements into ones with one or two operands, as functions of arrays have them.

A sum or product of several operands begins in the operand that it overwrites, or in a new array, and goes on
in that array. Its numbers are combined to one number before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import sympy

from symad.core.graph import Op
from symad.numeric.expressions.numbers import literal
from symad.numeric.program.expressions import Compute, Expression, Read, Value, op_in
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Statement
from symad.numeric.program_passes.lines.repeats import fill, is_repeated
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow

Term: TypeAlias = tuple[int, Expression]
"""A sign or power ±1, and an operand."""

SPLIT = (Add, Mul, Pow, Apply)
"""The ops that are split."""


def by_twos(program: Program) -> Program:
    """The program whose elementwise statements have at most two operands.

    The intermediate values of one expression share an array: each statement overwrites the value before.
    """
    ordered: list[Statement] = []
    for statement in program.statements:
        if isinstance(statement, Assign) and isinstance(op_in(statement.expression), SPLIT):
            ordered += steps(statement)
        else:
            ordered.append(statement)
    return program.with_statements(tuple(ordered))


def steps(statement: Assign) -> Iterator[Assign]:
    """The statements into which an assignment is split."""
    expression = statement.expression
    first: Value | None = statement.over
    made = _chain(expression, first) if isinstance(expression, Compute) and expression.shape else None
    if made is None:
        yield statement
        return
    assert isinstance(expression, Compute)
    target = first
    (op, args), *rest = made
    last = statement.value if not rest else Value("", expression.shape)
    yield Assign(last, Compute(op, args, expression.shape), target)
    for k, (op, args) in enumerate(rest, 1):
        target, last = last, statement.value if k == len(rest) else Value("", expression.shape)
        yield Assign(last, Compute(op, (Read(target), *args), expression.shape), target)


Step: TypeAlias = tuple[Op, tuple[Expression, ...]]
"""An op with its operands; after the first step, without the first operand, the value of the step before."""


def _chain(expression: Compute, over: Value | None) -> list[Step] | None:
    """The steps of an expression; None if it is not split."""
    op = expression.op
    if isinstance(op, Add):
        return _of_terms(expression, op.signs, over)
    if isinstance(op, Mul):
        return _of_terms(expression, op.powers, over)
    if isinstance(op, Pow) and literal(expression.args[1]) == 2 and expression.args[0].shape:
        return [(Mul((1, 1)), (expression.args[0],) * 2)]
    if isinstance(op, Apply) and op.head in (sympy.Max, sympy.Min):
        return _of_extremes(expression, over)
    return None


def _of_terms(expression: Compute, signs: Sequence[int], over: Value | None) -> list[Step] | None:
    """The steps of a sum or product, whose terms have signs or powers ±1.

    It begins with the operand that it overwrites, if there is one.
    """
    pairs = list(zip(signs, expression.args, strict=True))
    kind: Callable[[tuple[int, ...]], Op] = Add if isinstance(expression.op, Add) else Mul
    rest = [(sign, arg) for sign, arg in pairs if arg.shape]
    numbers = [(sign, arg) for sign, arg in pairs if not arg.shape]
    if len(numbers) > 1:
        joined = Compute(kind(tuple([s for s, _ in numbers])), tuple([n for _, n in numbers]), ())
        numbers = [(1, joined)]
    rest += numbers
    first = _beginning(expression, rest, over)
    if first is None or (len(rest) == 1 and first[0] == 1):
        return None
    rest.remove(first)
    if first[0] == -1 and not any(sign == 1 for sign, _ in rest):
        steps: list[Step] = [(kind((-1,)), (first[1],))]
    else:
        partner = next(t for t in rest if t[0] == 1) if first[0] == -1 else _partner(expression, first, rest)
        rest.remove(partner)
        one, other = (partner, first) if first[0] == -1 else (first, partner)
        steps = [(kind((1, other[0])), (one[1], other[1]))]
    return [*steps, *((kind((1, sign)), (arg,)) for sign, arg in rest)]


def _beginning(expression: Compute, terms: Sequence[Term], over: Value | None) -> Term | None:
    """The first term: the overwritten operand, one of full shape, or one of two that broadcast to it."""
    arrays = [t for t in terms if t[1].shape]
    found = [t for t in arrays if isinstance(t[1], Read) and t[1].value is over]
    found = found or [t for t in arrays if not is_repeated(t[1])]
    if found:
        return next((t for t in found if t[0] == 1), found[0])
    added = [t for t in arrays if t[0] == 1]
    return added[0] if len(added) > 1 and fill(len(expression.shape), [a for _, a in added[:2]]) else None


def _partner(expression: Compute, first: Term, rest: Sequence[Term]) -> Term:
    """The second term. If the first is broadcast, both together have the full shape."""
    if not is_repeated(first[1]):
        return rest[0]
    return next(t for t in rest if fill(len(expression.shape), (first[1], t[1])))


def _of_extremes(expression: Compute, over: Value | None) -> list[Step] | None:
    """The steps of a maximum or minimum of several operands."""
    whole = [a for a in expression.args if a.shape and not is_repeated(a)]
    ending = [a for a in whole if isinstance(a, Read) and a.value is over]
    if not whole:
        return None
    rest = list(expression.args)
    rest.remove(first := (ending or whole)[0])
    return [(expression.op, (first, rest[0])), *((expression.op, (a,)) for a in rest[1:])]
