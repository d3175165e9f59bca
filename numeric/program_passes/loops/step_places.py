"""The step of a compiled loop: results, and the parts that they are assembled from, are computed in place.

Compiled statements write to memory with any strides. So the parts of a stack, of a concatenation, and of a
sum of padded arrays are computed where they stay. Views, and parts that have another place, are copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from symad.core.graph import Node, topological
from symad.numeric.passes.memory_layout.box_sums import boxes_of, fills
from symad.numeric.program.expressions import (
    Compute,
    Expression,
    Index,
    Interval,
    Place,
    Position,
    Read,
    Value,
    values_read,
    whole,
    zeros,
)
from symad.numeric.program.loops import Row
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Statement, Together
from symad.numeric.program_passes.memory.allocation import is_view
from symad.numeric.scheduling.blocks import block_of
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.shaping import Pad, Reshape


def compiled_step(
    results: Sequence[Node], given: Mapping[Node, Value], rows: Sequence[Row | None]
) -> Program:
    """The program of a step: one statement for each op or kernel, whose values are in place if they can be.

    Args:
        results: nodes of the body; all sizes are numbers.
        given: the values of its inputs.
        rows: the rows in which the results stay; None for results in any memory.
    """
    return _Step(block_of(topological(results), results, given).program, rows).program()


class _Step:
    """The places of the values of a step."""

    def __init__(self, program: Program, rows: Sequence[Row | None]) -> None:
        self.given = program
        pairs = zip(program.results, rows, strict=True)
        self.placed = [(result, row.value) for result, row in pairs if row is not None]
        """The results with a place."""
        self.made = {m.value: m.expression for m in program.assigned if isinstance(m.expression, Compute)}
        self.over: dict[Value, Value] = {}
        """The place of a value."""
        self.memory: dict[Value, Value] = {}
        """For an assembled value the array, or the view, that its parts are written to."""
        self.parts: dict[Value, list[tuple[Expression, Value]]] = {}
        """For an assembled value its parts, each with a view of its memory."""
        self.gaps = {row.value for row in rows if row is not None and row.strides is not None}
        """Places whose elements are not adjacent in memory."""
        self.statements: list[Statement] = []

    def program(self) -> Program:
        """The program that computes its results, and the parts of these, in their places."""
        for result, place in self.placed:
            self._put(result, place)
        padded = self._only_padded()
        for statement in self.given.statements:
            if not padded.issuperset(statement.writes):
                self._add(statement)
        for result, place in self.placed:
            self._bring(result, place)
        inputs = (*self.given.inputs, *(place for _, place in self.placed))
        return replace(self.given, inputs=inputs, statements=tuple(self.statements))

    # ---- places ----------------------------------------------------------------------------------

    def _behind(self, expression: Expression) -> Compute | None:
        """The op of a value that the step computes; None for other expressions."""
        return self.made.get(expression.value) if isinstance(expression, Read) else None

    def _put(self, expression: Expression, place: Value) -> None:
        """Give a place to a value that the step computes, and to the parts that it is assembled from."""
        waiting = [(expression, place)]
        while waiting:
            expression, place = waiting.pop()
            found = self._behind(expression)
            if found is None or not isinstance(expression, Read) or expression.value in self.over:
                continue
            if not is_view(found) or isinstance(found.op, Reshape):
                self.over[expression.value] = place
                waiting += self._begin(expression.value, found, place)[::-1]

    def _begin(self, value: Value, found: Compute, place: Value) -> list[tuple[Expression, Value]]:
        """The parts of an assembled value, each with a new value for its part of the place."""
        views = self._views(found, place)
        if views and self._leaves_zeros(found):
            cleared = Value("", place.shape)
            self.statements.append(Assign(cleared, zeros(place.shape), place))
            self.gaps |= {cleared} if place in self.gaps else set()
            place, views = cleared, self._views(found, cleared)
        named = [(part, Assign(Value("", view.shape), view)) for part, view in views]
        self.statements += [made for _, made in named]
        self.gaps |= {m.value for _, m in named if place in self.gaps or not _is_block(m.expression)}
        self.memory[value], self.parts[value] = place, [(part, made.value) for part, made in named]
        return self.parts[value]

    def _views(self, found: Compute, place: Value) -> list[tuple[Expression, Expression]]:
        """The parts of an assembled value, each with its part of the place; none for other values."""
        op, array = found.op, Read(place)
        if isinstance(op, Stack):
            here = [_at(place, op.axis, Position(k)) for k in range(len(found.args))]
            return [(arg, Index(array, places)) for arg, places in zip(found.args, here, strict=True)]
        if isinstance(op, Concatenate):
            lengths = [int(arg.shape[op.axis]) for arg in found.args]
            starts = [sum(lengths[:k]) for k in range(len(lengths))]
            here = [_at(place, op.axis, Interval(*side)) for side in zip(starts, lengths, strict=True)]
            return [(arg, Index(array, places)) for arg, places in zip(found.args, here, strict=True)]
        if isinstance(op, Pad):
            (arg,) = found.args
            return [(arg, Index(array, tuple(map(Interval, op.start, arg.shape, op.step))))]
        if isinstance(op, Reshape) and place not in self.gaps:
            (arg,) = found.args
            return [(arg, Compute(Reshape(arg.shape), (array,), arg.shape))]
        return [pair for pad in self._pads(found) for pair in self._views(pad, place)]

    def _pads(self, found: Compute) -> list[Compute]:
        """The terms of a sum of arrays that are padded into disjoint boxes; none for other ops."""
        pads = [pad for pad in map(self._behind, found.args) if pad is not None]
        alike = len(pads) < len(found.args) or len({*found.args}) < len(pads)
        return pads if not alike and boxes_of(found.op, pads) is not None else []

    def _leaves_zeros(self, found: Compute) -> bool:
        """Whether the parts of an assembled value do not fill it."""
        pads = self._pads(found)
        return isinstance(found.op, Pad) or (
            bool(pads) and not fills(boxes_of(found.op, pads) or (), found.shape)
        )

    def _only_padded(self) -> set[Value]:
        """The padded arrays that only such sums read: their arguments are written to the sums."""
        readers = [found for found in self.made.values() if not self._pads(found)]
        read = {value for found in (*readers, *self.given.results) for value in values_read(found)}
        return {value for value, found in self.made.items() if isinstance(found.op, Pad)} - read

    # ---- statements ------------------------------------------------------------------------------

    def _add(self, statement: Statement) -> None:
        """Add the statements that compute the values of a statement in their places."""
        if isinstance(statement, Together):
            members = (replace(made, over=self.over.get(made.value)) for made in statement.assignments)
            self.statements.append(Together(tuple(members)))
            return
        assert isinstance(statement, Assign) and isinstance(statement.expression, Compute)
        value, found = statement.value, statement.expression
        place = self.over.get(value)
        joins = isinstance(found.op, (Stack, Concatenate, Pad)) or bool(self._pads(found))
        if joins and place is None:
            array = Value("", value.shape)
            self.statements.append(Allocate(array))
            self._begin(value, found, array)
        if self.parts.get(value):
            for part, view in self.parts[value]:
                self._bring(part, view)
            self.statements.append(Assign(value, Read(self.memory[value])))
        elif place is not None and isinstance(found.op, Reshape):  # the place has gaps
            made = Assign(Value("", value.shape), found)
            self.statements += [made, Assign(value, Read(made.value), place)]
        else:
            self.statements.append(replace(statement, over=place))

    def _bring(self, part: Expression, place: Value) -> None:
        """Copy a value to its place, unless it is computed there."""
        if not isinstance(part, Read) or self.over.get(part.value) is not place:
            self.statements.append(Assign(Value("", place.shape), part, place))


def _at(array: Value, axis: int, place: Place) -> tuple[Place, ...]:
    """The index of all elements at a place of one axis."""
    return tuple(place if k == axis else each for k, each in enumerate(whole(array.shape)))


def _is_block(view: Expression) -> bool:
    """Whether the elements of a view are adjacent in memory if those of its array are."""
    if not isinstance(view, Index):
        return True
    first = [*takewhile(lambda place: isinstance(place, Position), view.places)]
    rest = [*zip(view.places, view.array.shape, strict=True)][len(first) :]
    whole_axes = all(isinstance(p, Interval) and p.is_whole(length) for p, length in rest[1:])
    return whole_axes and all(isinstance(p, Interval) and p.step == 1 for p, _ in rest[:1])
