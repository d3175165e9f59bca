"""Removes aliases: statements v = w, where v is only another name for w."""

from __future__ import annotations

from symad.numeric.program.expressions import Expression, Read, Value, rewrite
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Block, change_blocks, every_statement


def drop_aliases(program: Program) -> Program:
    """The program without statements v = w. Readers of v read w."""
    same: dict[Value, Expression] = {}
    for statement in every_statement(program.statements):
        if isinstance(statement, Assign) and isinstance(statement.expression, Read):
            value = statement.expression.value
            same[statement.value] = same.get(value, statement.expression)
    if not same:
        return program

    def read(expression: Expression) -> Expression:
        return same.get(expression.value, expression) if isinstance(expression, Read) else expression

    def without(block: Block) -> Block:
        return tuple(s for s in block if not (isinstance(s, Assign) and s.value in same))

    made = program.with_expressions(lambda expression: rewrite(expression, read))
    return made.with_statements(change_blocks(made.statements, without))
