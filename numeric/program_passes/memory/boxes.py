"""Sums of padded arrays: the terms are computed without padding, in the parts of one array.

A term that overlaps no other term is written to its part. Terms that overlap are added there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from symad.core.dims import plus
from symad.numeric.passes.memory_layout.pads import Box, Overlay, boxes_of, fills, single_axes
from symad.numeric.program.expressions import (
    Compute,
    Expression,
    Index,
    Place,
    Position,
    Read,
    Span,
    Value,
    values_read,
    zeros,
)
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Statement, Together, assignments
from symad.numeric.program_passes.memory.allocation import is_fresh, is_view
from symad.numeric.program_passes.memory.result_places import first_of_chain
from symad.ops.basic.arithmetic import Add
from symad.ops.basic.shaping import Pad, Reshape


def put_together(program: Program, in_steps: bool) -> Program:
    """The program with sums of padded arrays as arrays that are filled part by part.

    Args:
        program: a program after `write_over`.
        in_steps: the program is a step of a loop. Then the operands that a term overwrites are computed in
            its part, too, since small arrays stay in the cache.
    """
    work = _BoxChanges(program, program.assigned, in_steps)
    for made in work.made.values():
        if isinstance(made.expression, Compute) and isinstance(made.expression.op, Overlay):
            work.overlay(made, made.expression.op)
        elif isinstance(made.expression, Compute) and isinstance(made.expression.op, Add):
            work.sum_of_boxes(made)
    return work.program() if work.instead else program


class _BoxChanges:
    """The changes of the statements of a program.

    Attributes:
        before: for a value, statements to insert before its own.
        instead: for a value, statements that replace its own.
        over: for a value, the value that it overwrites.
    """

    def __init__(self, program: Program, every: Sequence[Assign], in_steps: bool) -> None:
        self.given = program
        self.in_steps = in_steps
        self.made = {made.value: made for made in every}
        self.position = {made.value: k for k, made in enumerate(every)}
        self.shared = {value for group in program.shared for value in group}
        self.overwrites = any(made.over is not None for made in every)
        self.before: dict[Value, list[Statement]] = {}
        self.instead: dict[Value, list[Statement]] = {}
        self.over: dict[Value, Value] = {}

    @cached_property
    def reads(self) -> Counter[Value]:
        """The number of values that are computed from each value; a result counts, too."""
        found = Counter(v for made in self.made.values() for v in {*values_read(made.expression)})
        found.update(v for result in self.given.results for v in values_read(result))
        return found

    def program(self) -> Program:
        """The program with these changes."""
        ordered: list[Statement] = []
        for statement in self.given.statements:
            made = assignments(statement)
            for each in made:
                ordered += self.before.get(each.value, ())
            if isinstance(statement, Together):
                over = tuple(replace(each, over=self.over.get(each.value, each.over)) for each in made)
                ordered.append(Together(over))
            else:
                ordered += self.instead.get(made[0].value, (statement,)) if made else (statement,)
        return self.given.with_statements(tuple(ordered))

    def behind(self, expression: Expression) -> Compute | None:
        """The op that computes a value; None if it is no op of this program."""
        found = self.made.get(expression.value) if isinstance(expression, Read) else None
        return found.expression if found is not None and isinstance(found.expression, Compute) else None

    # ---- parts that do not overlap ---------------------------------------------------------------

    def sum_of_boxes(self, made: Assign) -> None:
        """Change a sum of arrays that are padded into boxes, if the boxes do not overlap."""
        assert isinstance(made.expression, Compute)
        pads = [pad for pad in map(self.behind, made.expression.args) if pad is not None]
        args = [a.value for a in made.expression.args if isinstance(a, Read)]
        if len(pads) < len(made.expression.args) or len({*args}) < len(args):
            return
        if made.over is not None and made.over not in args:  # it has a place
            return
        found = boxes_of(made.expression.op, pads)
        if found is None or any(value in self.instead for value in args):
            return
        array = Value("", made.value.shape)
        places = [self._fill(array, *pair) for pair in zip(args, pads, found, strict=True)]
        first = min(places, key=self.position.__getitem__)
        self.before.setdefault(first, []).insert(0, Allocate(array, zeros=not fills(found, array.shape)))
        self.instead[made.value] = [Assign(made.value, Read(array))]

    def _fill(self, array: Value, padded: Value, pad: Compute, box: Box) -> Value:
        """Write a term to its box. Returns the value before whose statement the array must be allocated."""
        (inner,) = pad.args
        axes: frozenset[int] = frozenset()
        reshaped, behind = None, self.behind(inner)
        if behind is not None and isinstance(behind.op, Reshape):
            axes = single_axes(behind.args[0].shape, inner.shape)
            if axes and isinstance(inner, Read):
                reshaped, inner = inner.value, behind.args[0]
        places = tuple(Position(a) if k in axes else Span(a, b - a) for k, (a, b) in enumerate(box))
        here = self.behind(inner)
        alone = reshaped is None or self.reads[reshaped] == 1
        alone = alone and here is not None and not isinstance(here.op, Pad) and not is_view(here)
        kept: list[Statement] = [self.made[padded]] if self.reads[padded] > 1 else []
        self.instead[padded] = kept
        if reshaped is not None and self.reads[reshaped] == 1 and not kept:
            self.instead[reshaped] = []
        if alone and isinstance(inner, Read) and self._is_free(inner.value):
            return self._computed(inner.value, array, places, self.in_steps)
        self.instead[padded] = [*kept, *self._copied(inner, array, places)]
        return padded

    def _is_free(self, value: Value) -> bool:
        """Whether a value can be computed in another array, which later values may overwrite."""
        alone = self.reads[value] == 1 or not self.overwrites
        return alone and value not in self.shared and value not in self.instead

    def _computed(self, value: Value, array: Value, places: Sequence[Place], back: bool) -> Value:
        """Compute a value in a part of an array. Returns the first value that is computed there.

        If ``back``, so are the values that it overwrites.
        """
        value = first_of_chain(value, self.made, self._is_free) if back else value
        view = Assign(Value("", value.shape), Index(Read(array), tuple(places)))
        self.over[value] = view.value
        self.instead[value] = [replace(self.made[value], over=view.value)]
        self.before[value] = [view]
        return value

    def _copied(self, given: Expression, array: Value, places: Sequence[Place]) -> list[Statement]:
        """The statements that copy a value to a part of an array."""
        view = Assign(Value("", given.shape), Index(Read(array), tuple(places)))
        return [view, Assign(Value("", given.shape), given, view.value)]

    # ---- parts that overlap ----------------------------------------------------------------------

    def overlay(self, made: Assign, op: Overlay) -> None:
        """Change an `Overlay`: the first part is written to an array, and the others are added to it."""
        assert isinstance(made.expression, Compute)
        first, *rest = made.expression.args
        added: list[Statement] = []
        if made.over is not None and first == Read(made.over):
            array = made.over
        else:
            array = Value("", made.value.shape)
            added = self._begun(made.value, array, op, first)
        for start, sign, part in zip(op.start[1:], op.signs[1:], rest, strict=True):
            view = Assign(Value("", part.shape), Index(Read(array), (Span(start, part.shape[0]),)))
            total = Compute(Add((1, sign)), (Read(view.value), part), part.shape)
            added += [view, Assign(Value("", part.shape), total, view.value)]
        self.instead[made.value] = [*added, Assign(made.value, Read(array))]

    def _begun(self, whole: Value, array: Value, op: Overlay, first: Expression) -> list[Statement]:
        """The statements that allocate the array and copy the first part to it.

        They are empty if the first part is computed there: then they precede its statement.
        """
        start, (count,), stop = op.start[0], first.shape, plus(op.start[0], first.shape[0])
        opened: list[Statement] = [Allocate(array)]
        for begin, length in ((0, start), (stop, plus(op.size, -stop))):
            if length != 0:
                opened += self._copied(zeros((length,)), array, (Span(begin, length),))
        place = Span(start, count)
        here = self.behind(first)
        if here is not None and is_fresh(here) and first.shape != whole.shape:
            assert isinstance(first, Read)
            if self.reads[first.value] == 1 and self._is_free(first.value):  # the others are added there
                at = self._computed(first.value, array, (place,), True)
                self.before[at] = [*opened, *self.before[at]]
                return []
        return [*opened, *self._copied(first, array, (place,))]
