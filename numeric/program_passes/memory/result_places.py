"""Results, and the parts that they are assembled from, are computed in given arrays.

Such an array is the place of a result: a row of a loop's array, or a block of rows. The parts of a stack, of
a concatenation and of a padded array are computed in views of its place. The values that a result overwrites
are computed in its place, too, if nothing else reads them: the chain then uses one array. What cannot be
computed in its place is copied there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from symad.core.dims import Dim, Shape, plus
from symad.numeric.fusion.nest import is_chain
from symad.numeric.passes.memory_layout.memory_spans import Cleared
from symad.numeric.passes.memory_layout.pads import single_axes
from symad.numeric.program.expressions import (
    Compute,
    Expression,
    Index,
    Place,
    Position,
    Read,
    Span,
    Value,
    op_in,
    whole,
    zeros,
)
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Statement, Together
from symad.numeric.program.uses import lifetimes, uses_of
from symad.numeric.program_passes.memory.allocation import shown
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Pad, Reshape
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow

IN_PLACE = (Add, Mul, Pow, Apply, Cleared)
"""Ops of floats whose result may overwrite an operand."""

Parts: TypeAlias = Literal["none", "rows", "all"]
"""The parts that are computed in their places: none, those along the first axis, or all."""


def put_results(program: Program, places: Sequence[Value | None], parts: Parts = "rows") -> Program:
    """The program that writes its results to given arrays.

    Args:
        program: a program after `write_over`, or without values that overwrite others.
        places: for each result its array, which becomes an input; None for any array.
        parts: "rows" suits NumPy, where operations on adjacent elements are fast; "all" compiled code.
    """
    return _Results(program, places, parts).program() if any(places) else program


def first_of_chain(value: Value, made: Mapping[Value, Assign], alone: Callable[[Value], bool]) -> Value:
    """The first of the values, each over the one before, that can be computed where the last one is.

    ``alone``: whether nothing but the next value of the chain reads a value.
    """
    while (over := made[value].over) in made and isinstance(op_in(made[value].expression), IN_PLACE):
        assert over is not None
        if not alone(over) or not _is_computed_anywhere(made[over].expression):
            return value
        value = over
    return value


def _is_computed_anywhere(expression: Expression) -> bool:
    """Whether a value that another one overwrites can be computed in the place of that one."""
    if not isinstance(expression, Compute):
        return False
    product = isinstance(expression.op, Einsum) and len(expression.args) == 2 == len(expression.shape)
    return product or isinstance(expression.op, IN_PLACE) or is_chain(expression.op)


def parts_of(expression: Expression) -> list[tuple[Expression, tuple[Place, ...]]]:
    """The parts of a stack, of a concatenation, of a padded array, or of one with new axes of length 1.

    Each has its places in the whole. There are none in other expressions.
    """
    if not isinstance(expression, Compute):
        return []
    op, args, shape = expression.op, expression.args, expression.shape
    if isinstance(op, Stack):
        return [(arg, _at(shape, op.axis, Position(k))) for k, arg in enumerate(args)]
    if isinstance(op, Concatenate):
        found: list[tuple[Expression, tuple[Place, ...]]] = []
        start: Dim = 0
        for arg in args:
            found.append((arg, _at(shape, op.axis, Span(start, arg.shape[op.axis]))))
            start = plus(start, arg.shape[op.axis])
        return found
    if isinstance(op, Pad):
        return [(args[0], tuple(map(Span, op.start, args[0].shape, op.step)))]
    if isinstance(op, Reshape) and (new := single_axes(args[0].shape, shape)):
        here = (Position(0) if axis in new else each for axis, each in enumerate(whole(shape)))
        return [(args[0], tuple(here))]
    return []


def _at(shape: Shape, axis: int, place: Place) -> tuple[Place, ...]:
    """The index of all elements at a place of one axis."""
    return tuple(place if k == axis else each for k, each in enumerate(whole(shape)))


class _Results:
    """The changes of the statements of a program."""

    def __init__(self, program: Program, places: Sequence[Value | None], parts: Parts) -> None:
        self.given = program
        self.parts = parts
        self.places = places
        self.made = {made.value: made for made in program.assigned}
        self.position = {value: k for k, value in enumerate(self.made)}
        self.memory = lifetimes(program, shown).memory
        self.overwritten = {self.owner(m.over): k for k, m in enumerate(self.made.values()) if m.over}
        """For memory that is written again the position of the last value there."""
        self.shared = {value for group in program.shared for value in group}
        self.reads = uses_of(program).reads
        self.arrays = {s.value for s in program.statements if isinstance(s, Allocate)}
        self.first: list[Statement] = []
        """The statements before all others: they name the parts of the places."""
        self.copies: dict[Value, list[Statement]] = {}
        """For an assembled value the copies of the parts that are not computed there."""
        self.known: dict[Value, Value] = {}
        """The places of values that have no statement of their own: arrays, and assembled values."""
        self.over: dict[Value, Value] = {}
        """The places of other values."""
        self.settled: set[Value] = set()
        """The values at the ends of chains that are computed in places."""

    def program(self) -> Program:
        """The program that computes its results in their places."""
        pairs = zip(self.given.results, self.places, strict=True)
        after = [made for result, place in pairs if place is not None for made in self.brought(result, place)]
        ordered = [made for statement in self.given.statements for made in self.placed(statement)]
        inputs = (*self.given.inputs, *(place for place in self.places if place is not None))
        return replace(self.given, inputs=inputs, statements=(*self.first, *ordered, *after))

    def owner(self, value: Value) -> Value:
        """The value that allocated the memory."""
        return self.memory.get(value, value)

    def brought(self, given: Expression, place: Value, back: bool = True) -> list[Statement]:
        """Compute a value in a place; if that may be impossible, return the statement that copies it there.

        ``back``: whether the values that it overwrites are computed there, too.
        """
        made = self.made.get(given.value) if isinstance(given, Read) else None
        if made is None or self.is_placed(made.value):
            return [Assign(Value("", place.shape), given, place)]
        if isinstance(made.expression, Read):  # an array that is filled part by part
            array = made.expression.value
            if array not in self.arrays or array in self.known:
                return [Assign(Value("", place.shape), given, place)]
            self.known[array] = place
        elif not self._put_parts(made, place):
            self.settled.add(made.value)
            value = made.value
            self.over[first_of_chain(value, self.made, self._is_alone) if back else value] = place
        return []

    def is_placed(self, value: Value) -> bool:
        """Whether a value has a place already, perhaps in a part of another array."""
        over = self.made.get(self.made[value].over or value)
        filled = over is not None and isinstance(over.expression, Index)
        return filled or value in self.over or value in self.known or value in self.settled

    def placed(self, statement: Statement) -> list[Statement]:
        """The statements that replace a statement."""
        if isinstance(statement, Together):
            members = (replace(m, over=self.over.get(m.value, m.over)) for m in statement.assignments)
            return [Together(tuple(members))]
        value = statement.value if isinstance(statement, (Assign, Allocate)) else None
        if value is not None and value in self.known:
            place = self.known[value]
            if isinstance(statement, Allocate) and statement.zeros:
                return [Assign(value, zeros(value.shape), place)]
            return [*self.copies.get(value, ()), Assign(value, Read(place))]
        if isinstance(statement, Assign) and value in self.over:
            return [replace(statement, over=self.over[statement.value])]
        return [statement]

    def _parts(self, made: Assign) -> list[tuple[Expression, tuple[Place, ...]]]:
        """The parts of an assembled value that may be computed in its place."""
        found = parts_of(made.expression)
        if self.parts == "rows" and getattr(op_in(made.expression), "axis", None) == 0:
            return found if all(part.shape for part, _ in found) else []
        return found if self.parts == "all" else []

    def _put_parts(self, made: Assign, place: Value) -> bool:
        """Compute the parts of an assembled value in their places; copy the parts that cannot be.

        Returns False if the value has no parts that can be.
        """
        found = self._parts(made)
        if not any(self._stays(part) for part, _ in found):
            return False
        if isinstance(op_in(made.expression), Pad):
            self.first.append(Assign(cleared := Value("", place.shape), zeros(place.shape), place))
            place = cleared
        self.known[made.value], self.copies[made.value] = place, []
        for part, here in found:
            self.first.append(view := Assign(Value("", part.shape), Index(Read(place), here)))
            copy = [Assign(Value("", part.shape), part, view.value)]
            self.copies[made.value] += self.brought(part, view.value, False) if self._stays(part) else copy
        return True

    def _stays(self, part: Expression) -> bool:
        """Whether a part can be computed where it stays: no later value is written to its memory."""
        made = self.made.get(part.value) if isinstance(part, Read) else None
        if made is None or made.value in self.shared or self.is_placed(made.value):
            return False
        if self.overwritten.get(self.owner(made.value), -1) > self.position[made.value]:
            return False
        if isinstance(made.expression, Read):
            return made.expression.value in self.arrays.difference(self.known)
        return shown(made.expression) is None or any(self._stays(inner) for inner, _ in self._parts(made))

    def _is_alone(self, value: Value) -> bool:
        return self.reads[value] == 1 and value not in self.shared and not self.is_placed(value)
