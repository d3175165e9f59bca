"""Straight-line code of scalars: what is read once is written where it is read, while lines stay short.

The pass of array programs, `inlining`, decides what a reader would write; here every name that is left out
also saves a store and a load, and a program may have many thousands of lines: each is looked at once.
"""

from __future__ import annotations

from collections import Counter

from symad.numeric.program.expressions import Compute, Expression, Read, Value, parts, values_read
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Statement

MAX_READS_A_LINE = 8
"""Names and numbers in one line; by eye, as for array programs."""


def shorten(program: Program) -> Program:
    """The program, of assignments alone, with such values in the lines that read them."""
    uses: Counter[Value] = Counter()
    for statement in program.statements:
        for expression in statement.expressions:
            for part in parts(expression):
                if isinstance(part, Read):
                    uses[part.value] += 1
                elif isinstance(part, Compute) and part.args:
                    uses.update(values_read(part))
    for result in program.results:
        uses.update(dict.fromkeys(values_read(result), 2))
    made: list[Statement] = []
    waiting: dict[Value, tuple[Expression, int]] = {}
    for statement in program.statements:
        if not isinstance(statement, Assign) or not isinstance(statement.expression, Compute):
            made.append(statement)
            continue
        size, args = _filled(statement.expression.args, waiting, made)
        expression = statement.expression
        if args is not None:
            expression = Compute(expression.op, args, expression.shape)
        if uses[statement.value] == 1 and not statement.value.named:
            waiting[statement.value] = expression, size
        else:
            made.append(statement if args is None else Assign(statement.value, expression))
    return program.with_statements(tuple(made))


def _filled(
    args: tuple[Expression, ...], waiting: dict[Value, tuple[Expression, int]], made: list[Statement]
) -> tuple[int, tuple[Expression, ...] | None]:
    """The names in the arguments with what waits written into them, and those arguments if any changed.

    What does not fit gets its line in ``made``.
    """
    size, changed = len(args), list(args)
    for k, arg in enumerate(args):
        if isinstance(arg, Read) and arg.value in waiting:
            inner, inner_size = waiting.pop(arg.value)
            if size + inner_size - 1 <= MAX_READS_A_LINE:
                size += inner_size - 1
                changed[k] = inner
            else:
                made.append(Assign(arg.value, inner))
    return size, tuple(changed) if changed != list(args) else None
