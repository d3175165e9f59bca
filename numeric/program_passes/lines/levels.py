"""Straight-line programs for compilers: cut into parts of bounded length, each part ordered by levels.

The level of a value is one more than the highest level of the values that it reads. Values of one level do
not depend on each other, so that a processor can compute several at a time. Equal functions on one level are
evaluated together.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import groupby
from operator import itemgetter

import sympy

from symad.numeric.program.expressions import Compute, Value, values_read
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Block, Section, Statement, Together
from symad.ops.elementwise.apply import Apply

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
