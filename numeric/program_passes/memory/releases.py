"""Statements that free memory before other memory is allocated."""

from __future__ import annotations

from symad.core.contents import inner_graphs
from symad.numeric.program.expressions import Compute, Read, Value, parts
from symad.numeric.program.loops import Blocks, Loop
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Free, Statement, assignments
from symad.numeric.program.uses import lifetimes
from symad.numeric.program_passes.memory.allocation import is_long, keeping


def release(program: Program, least: int) -> Program:
    """The program with `Free` statements for all memory that no result needs.

    An array is freed after the last read of all values that share its memory, immediately before the next
    allocation. Memory that lives until then, or until the end of the program, needs no earlier statement.

    Args:
        program: a program after all other passes.
        least: the smallest number of elements of an array that a statement frees.
    """
    keeps = keeping(program)
    lives = lifetimes(program, keeps)
    given = set(program.inputs)
    showing: dict[Value, list[Value]] = {}
    over = {made.over for made in program.assigned}
    for statement in program.statements:
        if isinstance(statement, Allocate) and statement.value not in over:
            showing[statement.value] = [statement.value]
    for made in program.assigned:
        if made.value not in over:
            showing.setdefault(lives.memory.get(made.value, made.value), []).append(made.value)

    def takes_memory(statement: Statement) -> bool:
        """Whether a statement allocates an array of at least ``least`` elements."""
        if isinstance(statement, Allocate):
            return is_long(statement.value.shape, least)
        for made in assignments(statement):
            if made.over is None and is_long(made.value.shape, least) and keeps(made.expression) is None:
                return True
        return False

    ending: dict[int, list[Value]] = {}
    for owner, values in showing.items():
        if owner not in given and is_long(owner.shape, least):
            ending.setdefault(lives.end(owner), []).extend(values)
    ordered: list[Statement] = []
    waiting: list[Value] = []
    left = False
    for k, statement in enumerate(program.statements):
        if (waiting or left) and takes_memory(statement):
            ordered.append(Free(tuple(waiting)))
            waiting, left = [], False
        ordered.append(statement)
        waiting += ending.get(k, ())
        left = left or _has_steps(statement)
    return program.with_statements(tuple(ordered))


def _has_steps(statement: Statement) -> bool:
    """Whether a statement is printed as a loop, whose variables keep arrays alive after it."""
    if isinstance(statement, (Blocks, Loop)):
        return True
    waiting = list(statement.expressions)
    while waiting:
        part = waiting.pop()
        if part.__class__ is not Read:
            if isinstance(part, Compute) and inner_graphs(part.op):
                return True
            waiting += parts(part)
    return False
