"""Results that are computed in given arrays: in a row of a loop's array, or in a block of rows of a result.

Such an array is the place of the result. The values that a result overwrites are computed in the place, too,
if nothing else reads them: the chain then uses one array. Other results are copied to their places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from symad.numeric.fusion.chains import Fused
from symad.numeric.passes.memory_layout.memory_spans import Cleared
from symad.numeric.program.expressions import Compute, Expression, Position, Read, Value, row
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Statement, Together, assignments
from symad.numeric.program.uses import uses_of
from symad.numeric.program_passes.lines.by_twos import steps
from symad.ops.arrays.stacking import Stack
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow

IN_PLACE = (Add, Mul, Pow, Apply, Cleared)
"""Ops of floats whose result may overwrite an operand."""


def is_computed_anywhere(expression: Expression) -> bool:
    """Whether a value that another one overwrites can be computed in the place of that one."""
    if not isinstance(expression, Compute):
        return False
    product = isinstance(expression.op, Einsum) and len(expression.args) == 2 == len(expression.shape)
    return product or isinstance(expression.op, (*IN_PLACE, Fused))


def put_results(program: Program, places: Sequence[Value | None], parts: bool = True) -> Program:
    """The program that writes its results to given arrays.

    Args:
        program: a program after `write_over`.
        places: for each result its array, which becomes an input; None for any array.
        parts: whether the parts of a stack are computed in their rows of its place.
    """
    return _Results(program, places, parts).program() if any(places) else program


class _Results:
    """The changes of the statements of a program."""

    def __init__(self, program: Program, places: Sequence[Value | None], parts: bool) -> None:
        self.given = program
        self.parts = parts
        self.places = places
        self.made = {made.value: made for made in program.assigned}
        self.together = {
            value: statement
            for statement in program.statements
            if isinstance(statement, Together)
            for value in statement.writes
        }
        self.ended = {made.over for made in self.made.values()}
        self.shared = {value for group in program.shared for value in group}
        self.reads = uses_of(program).reads
        self.arrays = {s.value for s in program.statements if isinstance(s, Allocate) and not s.zeros}
        self.before: dict[Value, list[Statement]] = {}
        """For a value, statements to insert before its own."""
        self.over: dict[Value, Value] = {}
        """The places of values."""
        self.settled: set[Value] = set()
        """The results that are computed in their places."""
        self.known: dict[Value, Value] = {}
        """For an array that becomes an alias of a place, the place."""

    def program(self) -> Program:
        """The program that computes its results in their places."""
        after: list[Statement] = []
        for result, place in zip(self.given.results, self.places, strict=True):
            if place is not None and not self.put(result, place):
                after.append(Assign(Value("", place.shape), result, place))
        ordered = [made for statement in self.given.statements for made in self.placed(statement)]
        inputs = (*self.given.inputs, *(place for place in self.places if place is not None))
        return replace(self.given, inputs=inputs, statements=(*ordered, *after))

    def put(self, result: Expression, place: Value) -> bool:
        """Compute a result in its place. Returns False if that may be impossible."""
        made = self.made.get(result.value) if isinstance(result, Read) else None
        if made is None or self.is_placed(made.value):
            return False
        if isinstance(made.expression, Read):  # an array that is filled part by part
            array = made.expression.value
            if array not in self.arrays or array in self.known:
                return False
            self.known[array] = place
            return True
        if self.parts and self._put_parts(made, place):
            return True
        value = made.value
        self.settled.add(value)
        while (earlier := self._earlier(value)) is not None:
            value = earlier
        self.over[value] = place
        return True

    def is_placed(self, value: Value) -> bool:
        """Whether a value has a place already."""
        return value in self.over or value in self.known or value in self.settled

    def placed(self, statement: Statement) -> list[Statement]:
        """The statements that replace a statement."""
        if isinstance(statement, Allocate) and statement.value in self.known:
            return [Assign(statement.value, Read(self.known[statement.value]))]
        found = [m.value for m in assignments(statement) if m.value in self.over or m.value in self.known]
        before = [made for value in found for made in self.before.get(value, ())]
        if not found:
            return [statement]
        if isinstance(statement, Together):
            members = (replace(m, over=self.over.get(m.value, m.over)) for m in statement.assignments)
            return [*before, Together(tuple(members))]
        assert isinstance(statement, Assign)
        if statement.value in self.known:
            return [*before, Assign(statement.value, Read(self.known[statement.value]))]
        *first, last = steps(statement)
        return [*before, *first, replace(last, over=self.over[statement.value])]

    def _put_parts(self, made: Assign, place: Value) -> bool:
        """Compute the different parts of a stack in their rows of its place; copy the parts that cannot be.

        Returns False if the result is no such stack.
        """
        found = made.expression
        if not isinstance(found, Compute) or not isinstance(found.op, Stack) or found.op.axis != 0:
            return False
        parts = [arg.value for arg in found.args if isinstance(arg, Read) and arg.shape]
        stay = [*map(self._stays, parts)]
        if len({*parts}) < len(found.args) or not any(stay):
            return False
        copies: list[Statement] = []
        for k, (part, stays) in enumerate(zip(parts, stay, strict=True)):
            view = Assign(Value("", part.shape), row(Read(place), Position(k)))
            if stays:
                self.before[part], self.over[part] = [view], view.value
            else:
                copies += [view, Assign(Value("", part.shape), Read(part), view.value)]
        self.before[made.value], self.known[made.value] = copies, place
        return True

    def _stays(self, value: Value) -> bool:
        """Whether one assignment of its own computes a value, and no later value overwrites it."""
        made = self.made.get(value)
        alone = made is not None and value not in self.together and isinstance(made.expression, Compute)
        return alone and not {value} & (self.ended | self.shared) and not self.is_placed(value)

    def _earlier(self, value: Value) -> Value | None:
        """The value that a value overwrites, if it can be computed in the same place; else None."""
        over, op = self.made[value].over, getattr(self.made[value].expression, "op", None)
        if over is None or over not in self.made or not isinstance(op, IN_PLACE):
            return None
        alone = self.reads[over] == 1 and over not in self.shared and not self.is_placed(over)
        return over if alone and is_computed_anywhere(self.made[over].expression) else None
