"""Where the memory of an expression comes from, through views and loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from symad.numeric.expressions.views import viewed
from symad.numeric.program.expressions import Expression, Read, Value
from symad.numeric.program.loops import Loop
from symad.numeric.program.program import Program
from symad.numeric.program.statements import assignments, every_statement


@dataclass(frozen=True)
class Shown:
    """Memory that an expression may show: ``made`` allocates it or is a constant.

    ``value`` is the first value that shows it; None if the expression itself makes it. For arguments and
    arrays that statements fill, ``made`` reads the value.
    """

    value: Value | None
    made: Expression


def shown_by(program: Program) -> Mapping[Value, Sequence[Expression]]:
    """For each value that statements assign, the expressions whose memory it may show."""
    found: dict[Value, list[Expression]] = {}
    for statement in every_statement(program.statements):
        for each in assignments(statement):
            found.setdefault(each.value, []).append(each.expression)
        if isinstance(statement, Loop):
            for carried in statement.carried:
                found.setdefault(carried.value, []).extend((carried.initial, carried.next))
            for row in statement.rows:
                found.setdefault(row.value, []).append(row.array)
            for fixed in statement.fixed:
                found.setdefault(fixed.value, []).append(fixed.expression)
    return found


def origins(expression: Expression, given: Mapping[Value, Sequence[Expression]]) -> Iterator[Shown]:
    """All memory that an expression may show.

    A value that a loop carries shows its first value, after no step, or the next value of a step.

    Args:
        expression: an expression of the program.
        given: what each value shows, see `shown_by`.
    """
    waiting: list[tuple[Value | None, Expression]] = [(None, expression)]
    seen: set[Value] = set()
    while waiting:
        value, inner = waiting.pop()
        inner = viewed(inner)
        if not isinstance(inner, Read):
            yield Shown(value, inner)
        elif inner.value not in given:
            yield Shown(inner.value, inner)
        elif inner.value not in seen:
            seen.add(inner.value)
            waiting += [(inner.value, each) for each in given[inner.value]]
