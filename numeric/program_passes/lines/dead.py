"""Removes dead statements: those whose values are not read."""

from __future__ import annotations

from symad.numeric.program.expressions import Value, values_read
from symad.numeric.program.loops import Loop
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Block, Comment, Statement, every_statement


def drop_unread(program: Program) -> Program:
    """The program without statements that no result needs."""
    needed = {v for result in program.results for v in values_read(result)}
    return program.with_statements(_needed(program.statements, needed))


def _needed(block: Block, needed: set[Value]) -> Block:
    """The statements of a block that write needed values; the values they read are added to ``needed``."""
    kept: list[Statement] = []
    for statement in reversed(block):
        inner = (statement, *every_statement(statement.block))
        written = {v for s in inner for v in s.writes}
        if isinstance(statement, Comment) or written & needed:
            statement = _cleaned(statement, needed) if isinstance(statement, Loop) else statement
            inner = (statement, *every_statement(statement.block))
            needed.update(v for s in inner for e in s.expressions for v in values_read(e))
            kept.append(statement)
    return tuple(reversed(kept))


def _cleaned(loop: Loop, needed: set[Value]) -> Loop:
    """The loop without assignments in its body that neither the loop nor ``needed`` reads."""
    read = set(needed)
    read |= {v for e in loop.expressions for v in values_read(e)}
    read |= {v for s in every_statement(loop.body) for e in s.expressions for v in values_read(e)}
    body = tuple(s for s in loop.body if not isinstance(s, Assign) or s.value in read)
    return Loop(loop.index, loop.count, loop.backwards, loop.carried, body)
