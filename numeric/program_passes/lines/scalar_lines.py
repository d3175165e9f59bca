"""The lines of straight-line code: short ones for Python, levels for C compilers, and none too wide.

`shorten` inlines values that are read once, as long as the line stays short: each name less also saves a
store and a load. A program may have many thousands of lines, and the pass visits each once. (Array programs
have another pass, `inlining`, which aims at readable lines.) `by_levels` orders statements by depth.
`split_wide` divides sums of very many operands: CPython's compiler recurses once for each operator of a
chain, and its tokenizer counts open brackets. A sum of 1,000 terms is a sum of five sums of 200.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

import sympy

from symad.core.dims import Shape
from symad.core.graph import Op
from symad.numeric.expressions.folding import folded
from symad.numeric.program.expressions import Compute, Expression, Read, Value, parts, rewrite, values_read
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Block, Section, Statement, Together
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Logic

# ---- levels --------------------------------------------------------------------------------------

# The level of a value is one more than the highest level of the values that it reads. Values of one level
# do not depend on each other, so that a processor can compute several at a time. Equal functions on one
# level are evaluated together.


MAX_STATEMENTS_A_PART = 1000
"""Statements in one function. Compilers take more than linear time for long functions.

Origin: it bounds the time of compilation, not that of calls.
"""

MIN_TOGETHER = 4
"""The smallest number of equal functions on one level that are evaluated together.

Two sines together take 0.94 of the time, four 0.84, sixteen 0.77; two exponentials 0.96, eight 0.93
(bench_thresholds.py, "equal"). From two on, the gradient of an LSTM with 117 weights takes 1.05 times as long
(benchmarks/before_after.py).
"""


def in_parts(program: Program) -> Program:
    """The program cut into parts, at least one."""
    block, size = program.statements, MAX_STATEMENTS_A_PART
    parts = [Section(block[k : k + size]) for k in range(0, len(block), size)]
    return program.with_statements(tuple(parts or [Section(())]))


def by_levels(program: Program, together: Collection[sympy.FunctionClass]) -> Program:
    """The program with each part ordered by levels; SymPy heads in ``together`` are evaluated together."""
    made = (s.with_block(_ordered(s.block, together)) if s.block else s for s in program.statements)
    return program.with_statements(tuple(made))


def _ordered(block: Block, together: Collection[sympy.FunctionClass]) -> Block:
    """The assignments ordered by level, and on each level by function."""
    level: dict[Value, int] = {}
    rows: list[tuple[tuple[int, str], Assign]] = []
    for statement in block:
        assert isinstance(statement, Assign)
        above = 0
        for value in values_read(statement.expression):
            above = max(above, level.get(value, 0))
        level[statement.value] = above + 1
        op = statement.expression.op if isinstance(statement.expression, Compute) else None
        name = op.head.__name__ if isinstance(op, Apply) and op.head in together else ""
        rows.append(((above + 1, name), statement))
    found: list[Statement] = []
    for (_, name), group in groupby(sorted(rows, key=itemgetter(0)), key=itemgetter(0)):
        same = tuple([statement for _, statement in group])
        found += [Together(same)] if name and len(same) >= MIN_TOGETHER else same
    return tuple(found)


# ---- wide operations -----------------------------------------------------------------------------

# A wide operation is written in groups: a sum of 1,000 terms is a sum of five sums of 200.


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
