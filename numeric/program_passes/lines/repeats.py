"""Inlines broadcasts, and conditions that count as 1 or 0, where they are read.

NumPy broadcasts smaller arrays without allocating the result. For an operation that needs such an operand as
a whole array, a statement before the operation computes it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

import sympy

from symad.core.dims import same_shape
from symad.numeric.expressions.numbers import literal
from symad.numeric.fusion.nest import is_chain
from symad.numeric.program.expressions import Compute, Expression, Read, Value, op_in, values_read
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Statement, Together, assignments
from symad.ops.arrays.softmax import Softmax
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.shaping import Broadcast
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Select


def repeat_where_read(program: Program) -> Program:
    """The program whose elementwise statements have broadcasts as operands, without statements for these.

    Args:
        program: a program with one statement for each op.
    """
    into_softmax = _read_by_softmax_alone(program)
    waiting: dict[Value, Compute] = {}
    ordered: list[Statement] = []

    def write(expressions: Sequence[Expression], keep: Collection[Expression] = ()) -> None:
        """Add the statements of waiting values that some expressions read, except those in ``keep``."""
        for part in expressions:
            if isinstance(part, Read) and part.value in waiting and part not in keep:
                ordered.append(Assign(part.value, waiting.pop(part.value)))

    for statement in program.statements:
        made = assignments(statement)
        expression = made[0].expression
        assert isinstance(expression, Compute)
        if is_repeated(expression):
            write(expression.args)
            waiting[made[0].value] = expression
            continue
        read = {a: waiting[a.value] for a in expression.args if isinstance(a, Read) and a.value in waiting}
        if read:
            keep = _as_they_are(expression, read, made[0].value in into_softmax)
            write(expression.args, keep)
            changed = [replace(m, expression=_with(m.expression, read, keep)) for m in made]
            statement = changed[0] if isinstance(statement, Assign) else Together(tuple(changed))
        ordered.append(statement)
    write(program.results)
    return program.with_statements(tuple(ordered))


def is_repeated(expression: Expression) -> bool:
    """Whether an expression is a broadcast array, or a condition that counts as 1 or 0."""
    if not isinstance(expression, Compute) or not expression.shape:
        return False
    return bool(isinstance(expression.op, Broadcast) and expression.args[0].shape) or is_indicator(expression)


def is_indicator(expression: Expression) -> bool:
    """Whether an expression is 1 where a condition holds and 0 elsewhere."""
    if not isinstance(expression, Compute) or not isinstance(expression.op, Select):
        return False
    return literal(expression.args[1]) == 1 and literal(expression.args[2]) == 0


def fill(shape_rank: int, operands: Sequence[Expression]) -> bool:
    """Whether every axis of the result is an axis of at least one of the broadcast operands."""
    found: set[int] = set()
    for operand in operands:
        if isinstance(operand, Compute) and isinstance(operand.op, Broadcast):
            found |= set(operand.op.axes)
    return found == set(range(shape_rank))


def _as_they_are(expression: Compute, read: dict[Read, Compute], for_softmax: bool) -> Collection[Expression]:
    """The operands of an expression that NumPy may broadcast; the others need statements."""
    op = expression.op
    arrays = [a for a in expression.args if a.shape]
    if is_chain(op):
        return _in_chain(expression, read, arrays)
    if isinstance(op, Select):
        return _in_selection(expression, read) if for_softmax else ()
    if all(a in read for a in arrays):  # no other operand has the shape of the result
        fits = isinstance(op, (Add, Mul)) and _begins_whole(expression, read)
    else:
        fits = isinstance(op, (Add, Mul)) or (isinstance(op, Apply) and op.head in (sympy.Max, sympy.Min))
    return arrays if fits else ()


def _in_chain(
    expression: Compute, read: dict[Read, Compute], arrays: Sequence[Expression]
) -> Collection[Expression]:
    """All broadcast operands of a kernel, but one if only it has the shape of the result."""
    views = [a for a in arrays if a in read and isinstance(read[a].op, Broadcast)]
    if len(views) < len(arrays) or fill(len(expression.shape), [read[a] for a in views]):
        return views
    first = next(a for a in views if same_shape(a.shape, expression.shape))
    return [a for a in views if a != first]


def _begins_whole(expression: Compute, read: dict[Read, Compute]) -> bool:
    """Whether the first two terms or factors together have the shape of the result."""
    op = expression.op
    signs = op.signs if isinstance(op, Add) else op.powers if isinstance(op, Mul) else ()
    begin = [read[a] for s, a in zip(signs, expression.args, strict=True) if a in read and s == 1]
    return len(begin) > 1 and fill(len(expression.shape), begin[:2])


def _in_selection(expression: Compute, read: dict[Read, Compute]) -> Collection[Expression]:
    """The mask of scores, of which the others are −∞."""
    mask, scores, low = expression.args
    plain = bool(scores.shape) and scores not in read and literal(low) == -math.inf
    return [mask] if plain and mask in read and isinstance(read[mask].op, Broadcast) else ()


def _with(expression: Expression, read: dict[Read, Compute], keep: Collection[Expression]) -> Expression:
    assert isinstance(expression, Compute)
    args = tuple([read[a] if isinstance(a, Read) and a in read and a in keep else a for a in expression.args])
    return replace(expression, args=args)


def _read_by_softmax_alone(program: Program) -> set[Value]:
    """The selections that only softmaxes read."""
    found = {made.value for made in program.assigned if isinstance(op_in(made.expression), Select)}
    if found:
        for made in program.assigned:
            if not isinstance(made.expression, Compute) or not isinstance(made.expression.op, Softmax):
                found -= {*values_read(made.expression)}
        found -= {value for result in program.results for value in values_read(result)}
    return found
