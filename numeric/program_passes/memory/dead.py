"""Removes dead statements: those that write no value, and no memory, that is read afterwards."""

from __future__ import annotations

from symad.numeric.program.expressions import Expression, Value, op_in, values_read, walk
from symad.numeric.program.loops import Blocks, Loop
from symad.numeric.program.program import Program
from symad.numeric.program.statements import (
    Assign,
    Block,
    Comment,
    Free,
    Scatter,
    Statement,
    Store,
    assignments,
    every_statement,
)
from symad.numeric.program.uses import lifetimes
from symad.numeric.program_passes.memory.allocation import shown
from symad.ops.basic.sources import ArrayConstant, Constant


def drop_unread(program: Program) -> Program:
    """The program without statements that no result needs."""
    return program.with_statements(_Needed(program).kept(program.statements))


class _Needed:
    """The values, and the memory, that the statements after the current one need."""

    def __init__(self, program: Program) -> None:
        self.memory = lifetimes(program, shown).memory
        self.values: set[Value] = set()
        self.arrays = set(program.inputs)
        """The values that allocated needed memory, and the rows that a step is given to fill."""
        self.constants = {
            made.expression: made.value
            for made in program.assigned
            if made.over is None and isinstance(op_in(made.expression), ArrayConstant)
        }
        """The values of constant arrays, which other statements read by the constants themselves."""
        for result in program.results:
            self.evaluate(result)

    def evaluate(self, expression: Expression) -> None:
        """Note what an expression reads."""
        self.read(*values_read(expression))
        if self.constants:
            for part in walk(expression):
                if isinstance(op_in(part), ArrayConstant) and part in self.constants:
                    self.values.add(self.constants[part])

    def read(self, *values: Value) -> None:
        """Note that values are read."""
        self.values.update(values)
        self.arrays.update([self.memory.get(value, value) for value in values])

    def kept(self, block: Block) -> Block:
        """The statements of a block that write needed values, in order."""
        found: list[Statement] = []
        for statement in reversed(block):
            if self.is_needed(statement):
                found.append(self.cleaned(statement))
                self.read_by(found[-1])
        return tuple(reversed(found))

    def is_needed(self, statement: Statement) -> bool:
        """Whether a statement defines a needed value, or writes to memory of one.

        A constant has a statement without a line, since it is written where it is read.
        """
        if isinstance(statement, Assign):
            over = statement.over
            written = over is not None and self.memory.get(over, over) in self.arrays
            return (
                written or statement.value in self.values or isinstance(op_in(statement.expression), Constant)
            )
        if isinstance(statement, (Comment, Free)):
            return True
        every = (statement, *every_statement(statement.block))
        if any(value in self.values for inner in every for value in inner.writes):
            return True
        places = [made.over for made in assignments(statement) if made.over is not None]
        if isinstance(statement, Loop):
            places += [v for row in statement.rows if row.filled for v in values_read(row.array)]
        if isinstance(statement, Blocks):
            places += [v for part in statement.parts for v in values_read(part.array)]
        places += [inner.array for inner in every if isinstance(inner, (Store, Scatter))]
        return any(self.memory.get(place, place) in self.arrays for place in places)

    def read_by(self, statement: Statement) -> None:
        """Note all that a statement reads, and the places that it writes to."""
        if isinstance(statement, Assign):
            self.evaluate(statement.expression)
            if statement.over is not None:
                self.read(statement.over)
            return
        every = (statement, *every_statement(statement.block)) if statement.block else (statement,)
        for inner in every:
            for expression in inner.expressions:
                self.evaluate(expression)
            self.read(*(made.over for made in assignments(inner) if made.over is not None))
            if isinstance(inner, (Store, Scatter)):
                self.read(inner.array)

    def cleaned(self, statement: Statement) -> Statement:
        """A loop without the assignments in its body that nothing reads; other statements unchanged.

        A body whose steps write to rows is a program of its own, from which the pass removed them before.
        """
        if not isinstance(statement, Loop) or statement.rows:
            return statement
        for expression in statement.expressions:
            self.evaluate(expression)
        inner = [e for s in every_statement(statement.body) for e in s.expressions]
        for value in (v for expression in inner for v in values_read(expression)):
            self.arrays.add(self.memory.get(value, value))  # the next step may read it
        return statement.with_block(self.kept(statement.body))
