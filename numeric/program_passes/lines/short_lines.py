"""Inlines values that are read once in straight-line code of scalars, as long as the line stays short.

Array programs have another pass, `inlining`, which aims at readable lines. Here, each name less also saves a
store and a load. A program may have many thousands of lines, and the pass visits each once.
"""

from __future__ import annotations

from symad.numeric.expressions.folding import folded
from symad.numeric.program.expressions import Compute, Expression, Read, Value, parts, values_read
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Statement

MAX_READS_A_LINE = 16
"""Names and numbers in one line: a sum of eight products fits. With 8, the gradient of an LSTM of
117 weights takes 1.3 times as long (benchmarks/before_after.py); with 24 it takes as long as with 16."""


def shorten(program: Program) -> Program:
    """The program, which has only assignments, with values inlined."""
    uses = _uses(program)
    made: list[Statement] = []
    waiting: dict[Value, tuple[Expression, int]] = {}
    for statement in program.statements:
        if not isinstance(statement, Assign) or not isinstance(statement.expression, Compute):
            made.append(statement)
            continue
        value, old = statement.value, statement.expression
        size, new = len(old.args), old
        if any(type(arg) is Read and arg.value in waiting for arg in old.args):
            size, args = _filled(old.args, waiting, made)
            new = Compute(old.op, args, old.shape)
        expression = folded(new)
        if uses[value] == 1 and not value.named:
            waiting[value] = expression, size
        else:
            made.append(statement if expression is old else Assign(value, expression))
    return program.with_statements(tuple(made))


def _uses(program: Program) -> dict[Value, int]:
    """The number of reads of each value. A result counts as two reads, so that its value keeps its name."""
    uses = dict.fromkeys((s.value for s in program.statements if isinstance(s, Assign)), 0)
    uses |= dict.fromkeys((value for value in program.inputs), 0)
    for statement in program.statements:
        for expression in statement.expressions:
            for part in parts(expression):
                if type(part) is Read:
                    uses[part.value] += 1
                elif type(part) is Compute and part.args:
                    for value in values_read(part):
                        uses[value] += 1
    for result in program.results:
        for value in values_read(result):
            uses[value] += 2
    return uses


def _filled(
    args: tuple[Expression, ...], waiting: dict[Value, tuple[Expression, int]], made: list[Statement]
) -> tuple[int, tuple[Expression, ...]]:
    """The arguments with waiting values inlined, and the number of reads in them.

    A value that does not fit gets an assignment in ``made``.
    """
    size, filled = len(args), list(args)
    for k, arg in enumerate(args):
        if isinstance(arg, Read) and arg.value in waiting:
            inner, inner_size = waiting.pop(arg.value)
            if size + inner_size - 1 <= MAX_READS_A_LINE:
                size += inner_size - 1
                filled[k] = inner
            else:
                made.append(Assign(arg.value, inner))
    return size, tuple(filled)
