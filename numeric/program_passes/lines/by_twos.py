"""Elementwise statements as NumPy's functions take them: operands that broadcast, one or two at a time.

NumPy broadcasts smaller arrays without allocating the result, so broadcasts, and conditions that count as 1
or 0, are inlined where they are read. For an operation that needs such an operand as a whole array, a
statement before the operation computes it. A sum or product of several operands begins in the operand that
it overwrites, or in a new array, and goes on in that array. Its numbers are combined to one number before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import sympy

from symad.core.dims import same_shape
from symad.core.graph import Op
from symad.numeric.fusion.nest import is_chain
from symad.numeric.program.expressions import Compute, Expression, Read, Value, literal, op_in, values_read
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Statement, Together, assignments
from symad.ops.arrays.softmax import Softmax
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.shaping import Broadcast
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Select

# ---- broadcasts ----------------------------------------------------------------------------------


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
