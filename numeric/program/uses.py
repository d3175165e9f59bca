"""Who reads what: the one use map, made once for each pass that asks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from symad.numeric.program.expressions import Value, values_read
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Block, Loop, Store, every_statement


@dataclass(frozen=True)
class Uses:
    """How often each value is read, and which arrays are changed after they are made."""

    reads: Counter[Value]
    stored: frozenset[Value]

    def alone(self, value: Value) -> bool:
        """Whether a value is read exactly once."""
        return self.reads[value] == 1


def uses_of(program: Program) -> Uses:
    """The uses of all values of a program, results included."""
    reads: Counter[Value] = Counter()
    stored: set[Value] = set()
    for statement in every_statement(program.statements):
        for expression in statement.expressions:
            reads.update(values_read(expression))
        if isinstance(statement, (Store, Loop)):
            stored.update(statement.writes)
    for result in program.results:
        reads.update(values_read(result))
    return Uses(reads, frozenset(stored))


def last_reads(block: Block, results: tuple[Value, ...]) -> list[frozenset[Value]]:
    """For each statement of a block the values that it is the last to read; results are never among them.

    A nested block counts as part of its statement: what a loop reads is needed in every step.
    """
    later = set(results)
    found: list[frozenset[Value]] = []
    for statement in reversed(block):
        inner = [statement, *every_statement(statement.block)]
        read = {v for s in inner for e in s.expressions for v in values_read(e)}
        found.append(frozenset(read - later))
        later |= read
    return found[::-1]
