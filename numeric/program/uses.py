"""The reads and the lifetimes of the values of a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from symad.numeric.program.expressions import Expression, Value, values_read
from symad.numeric.program.loops import Blocks, Loop
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Scatter, Statement, Store, assignments, every_statement


@dataclass(frozen=True)
class Uses:
    """The number of reads of each value, and the values that stores and loops write."""

    reads: Counter[Value]
    stored: frozenset[Value]

    def alone(self, value: Value) -> bool:
        """Whether a value is read exactly once."""
        return self.reads[value] == 1


def uses_of(program: Program) -> Uses:
    """The uses of all values of a program. A result counts as a read."""
    reads: Counter[Value] = Counter()
    stored: set[Value] = set()
    for statement in every_statement(program.statements):
        for expression in statement.expressions:
            reads.update(values_read(expression))
        if isinstance(statement, (Store, Scatter, Loop, Blocks)):
            stored.update(statement.writes)
    for result in program.results:
        reads.update(values_read(result))
    return Uses(reads, frozenset(stored))


@dataclass(frozen=True)
class Lifetimes:
    """The values that share memory, and the last statement that reads or writes each memory.

    Attributes:
        memory: for a value in another value's memory the value that allocated it.
        last: for a value that allocated memory the position of the last statement that touches it. A nested
            block counts as part of its statement, as a loop's values are needed in every step. Results are
            read after all statements.
    """

    memory: Mapping[Value, Value]
    last: Mapping[Value, int]

    def end(self, value: Value) -> int:
        """The position of the last statement that reads or writes the memory of a value."""
        return self.last[self.memory.get(value, value)]


def _touched(statement: Statement) -> Iterator[Value]:
    """The values that a statement, and those nested in it, read or write."""
    for inner in every_statement((statement,)) if statement.block else (statement,):
        yield from inner.writes
        for expression in inner.expressions:
            yield from values_read(expression)


def lifetimes(program: Program, shows: Callable[[Expression], Value | None]) -> Lifetimes:
    """The lifetimes of the values of a program.

    ``shows`` gives the value whose memory an expression is a view of; None if it allocates.
    """
    memory: dict[Value, Value] = {}
    last: dict[Value, int] = {}
    for group in program.shared:
        memory |= dict.fromkeys(group[1:], group[0])

    def owner(value: Value) -> Value:
        while value in memory:
            value = memory[value]
        return value

    for k, statement in enumerate(program.statements):
        if statement.__class__ is Assign:  # most statements: nothing is nested, and it writes one value
            value = statement.value
            base = shows(statement.expression) if statement.over is None else statement.over
            if base is not None and (base := owner(base)) is not (own := owner(value)):
                memory[own] = base
            last[owner(value)] = k
            for value in values_read(statement.expression):
                last[owner(value)] = k
            continue
        for made in assignments(statement):
            base = shows(made.expression) if made.over is None else made.over
            if base is not None and owner(base) is not owner(made.value):
                memory[owner(made.value)] = owner(base)
        last.update((owner(value), k) for value in _touched(statement))
    for result in program.results:
        for value in values_read(result):
            last[owner(value)] = len(program.statements)
    return Lifetimes({value: owner(value) for value in memory}, last)
