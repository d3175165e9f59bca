"""Inlines values that are read once in straight-line code of scalars, as long as the line stays short.

Array programs have another pass, `inlining`, which aims at readable lines. Here, each name less also saves a
store and a load. A program may have many thousands of lines, and the pass visits each once.
"""

from __future__ import annotations

from typing import TypeAlias

from symad.numeric.expressions.folding import folded
from symad.numeric.program.expressions import Compute, Expression, Read, Value, parts, values_read
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Statement

MAX_NESTED_A_LINE = 40
"""Operations in each other in one line. CPython compiles 200 open brackets; a text may have three for each.

Origin: CPython's tokenizer.
"""

MAX_READS_A_LINE = 16
"""Names and numbers in one line: a sum of eight products fits. With 8, the gradient of an LSTM of
117 weights takes 1.3 times as long (benchmarks/before_after.py); with 24 it takes as long as with 16."""

Waiting: TypeAlias = tuple[Expression, int, int]
"""A value that may be inlined: its expression, with the number of reads and the depth of operations in it."""


def shorten(program: Program) -> Program:
    """The program, which has only assignments, with values inlined."""
    uses = _uses(program)
    made: list[Statement] = []
    waiting: dict[Value, Waiting] = {}
    for statement in program.statements:
        if not isinstance(statement, Assign) or not isinstance(statement.expression, Compute):
            made.append(statement)
            continue
        value, old = statement.value, statement.expression
        size, depth, new = len(old.args), 1, old
        if any(type(arg) is Read and arg.value in waiting for arg in old.args):
            size, depth, args = _filled(old.args, waiting, made)
            new = Compute(old.op, args, old.shape)
        expression = folded(new)
        if uses[value] == 1 and not value.named:
            waiting[value] = expression, size, depth
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
    args: tuple[Expression, ...], waiting: dict[Value, Waiting], made: list[Statement]
) -> tuple[int, int, tuple[Expression, ...]]:
    """The number of reads of an operation with waiting values inlined, its depth, and its arguments.

    A value that does not fit gets an assignment in ``made``.
    """
    size, depth, filled = len(args), 1, list(args)
    for k, arg in enumerate(args):
        if isinstance(arg, Read) and arg.value in waiting:
            inner, inner_size, inner_depth = waiting.pop(arg.value)
            if size + inner_size - 1 <= MAX_READS_A_LINE and inner_depth < MAX_NESTED_A_LINE:
                size += inner_size - 1
                depth = max(depth, inner_depth + 1)
                filled[k] = inner
            else:
                made.append(Assign(arg.value, inner))
    return size, depth, tuple(filled)
