"""Recurrences become `Loop` statements, whose steps write every value into its row of an array.

Each value has an array with one row for each step; `loop_layout` decides which values share an array. The
body is a program of its own, which computes each value in the row of the step. A state that only the next
step reads has an array of two rows, which the steps use alternately.

If the steps are compiled, the whole loop is one function: it writes numbers to rows, too, and elements of a
row may have gaps between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Protocol, TypeAlias

import sympy

from symad.core.dims import Shape, plus
from symad.core.graph import Node, topological
from symad.numeric.passes.bodies import pieces
from symad.numeric.program.expressions import (
    Expression,
    Index,
    Place,
    Position,
    Read,
    Span,
    Value,
    op_in,
    row,
    values_read,
    whole,
)
from symad.numeric.program.loops import Carried, Fixed, Loop, LoopRow
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Statement, Store, assignments, every_statement
from symad.numeric.program_passes.loops.loop_layout import (
    Layouts,
    is_loop,
)
from symad.numeric.program_passes.memory.boxes import put_together
from symad.numeric.program_passes.memory.result_places import put_results
from symad.numeric.scheduling.plans import block_of, number_of

Compiles: TypeAlias = Callable[[Value], bool]
"""Whether the loop that computes a value is one compiled function."""


class MakesBody(Protocol):
    """Makes the step of a loop, or the body of a function."""

    def __call__(
        self,
        results: Sequence[Node],
        given: Mapping[Node, Value],
        places: Sequence[Value | None],
        bounds: Mapping[sympy.Symbol, int] | None = None,
        repeated: bool = True,
    ) -> Program:
        """The program that computes ``results``.

        Args:
            results: nodes of the body.
            given: the values of its inputs.
            places: values for the memory in which results stay; None for any memory.
            bounds: the largest values of sizes that change from step to step, if there are new ones.
            repeated: whether the program is executed many times.
        """


def open_loops(
    program: Program, body: MakesBody, compiles: Compiles = lambda value: False, kept: bool = True
) -> Program:
    """The program with `Loop` statements in place of loops that are one op.

    Args:
        program: a program after `write_over` and `put_results`.
        body: makes the program of a step, unless that is compiled.
        compiles: whether a loop is compiled.
        kept: whether the memory of arrays is kept from call to call.
    """
    loops = [s for s in program.statements if is_loop(s)]
    if not loops:
        return program
    layouts = Layouts(program)
    opened = {id(s): _Opened(s, layouts, body, compiles(assignments(s)[0].value), kept) for s in loops}
    instead: dict[Value, Value | None] = {}
    for one in opened.values():
        instead |= one.instead
    ordered: list[Statement] = []
    for statement in program.statements:
        made = assignments(statement)
        if id(statement) in opened:
            ordered += opened[id(statement)].statements
        elif made and made[0].value in instead:
            array = instead[made[0].value]
            ordered += [] if array is None else [Assign(made[0].value, Read(array))]
        else:
            ordered.append(statement)
    return program.with_statements(tuple(ordered))


class _Opened:
    """The statements that replace one loop."""

    def __init__(
        self, statement: Statement, layouts: Layouts, body: MakesBody, compiled: bool, kept: bool
    ) -> None:
        self.layout = layout = layouts.of(statement)
        self.compiled, self.kept = compiled, kept
        self.layouts = layouts
        self.op = layout.op
        self.count = next(iter(assignments(statement))).value.shape[0]
        self.over = {
            number_of(op_in(made.expression)): made.over
            for made in assignments(statement)
            if made.over is not None
        }
        self.instead: dict[Value, Value | None] = dict.fromkeys(layout.dropped)
        """Values whose statements are removed: each is another name of a value, or is not read any more."""
        self.first: dict[int, Expression] = {}
        """For a state the row of the initial state, if it is in the array of the others."""
        self.before: list[Statement] = []
        self.after: list[Statement] = []
        self.backwards = self._runs_backwards()
        results = self.op.body.output_nodes
        arrays = [self._array(k, node) for k, node in enumerate(results)]
        self.statements = (*self.before, self._loop(arrays, body), *self.after)

    def _runs_backwards(self) -> bool:
        return any(map(self.layouts.turned, pieces(self.op, self.layout.args)[1]))

    def stem(self, number: int) -> str:
        """The name stem of a value; a state that nothing reads is called like the other states."""
        states = [v.stem for k, v in self.layout.values.items() if k < self.op.states]
        own = self.layout.values[number].stem if number in self.layout.values else next(iter(states), "")
        return own or ("h_bar" if self.backwards else "h")

    # ---- arrays ----------------------------------------------------------------------------------

    def _array(self, number: int, result: Node) -> LoopRow | Value | None:
        """The row that a value is written to; for numbers the array; None if it has no array."""
        value, stem = self.layout.values.get(number), self.stem(number)
        place = Value(f"{stem}_t", result.shape)
        if value is None:
            if number >= self.op.states or not (result.shape or self.compiled):
                return None
            pair = self._new(Value(stem, (2, *result.shape)))
            return LoopRow(place, Read(pair), filled=True, alternates=True)
        array = Value(stem, value.shape) if number in self.over else value
        if self.layout.before.get(number):
            stored = self._with_first(number, array)
        else:
            stored = self._new(array, number)
        if array is not value:
            self.after.append(Assign(value, Read(array), self.over[number]))
        if not result.shape and not self.compiled:
            return array
        turned = self.layout.reversed.get(number, ())
        self.instead |= dict.fromkeys(turned, array)
        rows: Expression = Read(array) if not turned else Index(Read(array), _from_the_end(array))
        strides = _row_strides(stored.shape) if self._is_apart(number) else None
        return LoopRow(place, rows, filled=True, strides=strides)

    def _is_apart(self, number: int) -> bool:
        return self.compiled and number in self.layout.apart

    def _new(self, array: Value, number: int = -1) -> Value:
        """Allocate an array; ``number``: that of its value in the loop."""
        self.before.append(Allocate(array, kept=self.kept, swapped=self._is_apart(number)))
        return array

    def _with_first(self, number: int, array: Value) -> Value:
        """An array of T + 1 rows, the initial state first; ``array`` is a view of the others."""
        initial, rest = self.layout.args[number], array.shape[1:]
        longer = self._new(Value(f"{self.stem(number)}_all", (plus(self.count, 1), *rest)), number)
        self.first[number] = row(Read(longer), Position(0))
        self.before += [
            Store(longer, Position(0), initial),
            Assign(array, Index(Read(longer), (Span(1, self.count), *whole(rest)))),
        ]
        joined = self.layout.before[number]
        named = Value(f"{self.stem(number)}_before", joined[0].shape, named=True)
        view = Index(Read(longer), (Span(0, self.count), *whole(rest)))
        self.before.append(Assign(named, view))
        self.instead |= dict.fromkeys(joined, named)
        return longer

    # ---- the loop --------------------------------------------------------------------------------

    def _first(self, k: int, initial: Sequence[Expression]) -> Expression:
        """State k before the first step."""
        return self.first.get(k, initial[k]) if self.compiled else initial[k]

    def _loop(self, arrays: Sequence[LoopRow | Value | None], body: MakesBody) -> Loop:
        op, layout = self.op, self.layout
        results, local = op.body.output_nodes, op.body.input_nodes
        rooms = {k: a for k, a in enumerate(arrays) if isinstance(a, LoopRow)}
        states, xs, constants = pieces(op, local)
        given = {node: Value("", node.shape) for node in local}
        ending = "next" if self.backwards else "previous"
        given |= {s: Value(f"{self.stem(k)}_{ending}", s.shape) for k, s in enumerate(states)}
        kept = [k for k, array in enumerate(arrays) if k < op.states or array is not None]
        wanted = [results[k] for k in kept]
        places = [_room(rooms, k) for k in kept]
        made = (compiled_step if self.compiled else body)(wanted, given, places)
        new = dict(zip(kept, made.results, strict=True))
        initial, moving, fixed = pieces(op, layout.args)
        read = set(op.body.nodes)
        rows = [LoopRow(given[x], array) for x, array in zip(xs, moving, strict=True) if x in read]
        rows += rooms.values()
        index = Value("t", ())
        used = _used(made)
        stores = _stores(arrays, index, new)
        held = [(k, given[s]) for k, s in enumerate(states) if given[s] in used or self.compiled]
        carried = [Carried(value, self._first(k, initial), new[k], _room(rooms, k)) for k, value in held]
        constant = [
            Fixed(given[c], outer) for c, outer in zip(constants, fixed, strict=True) if given[c] in used
        ]
        return Loop(
            index,
            self.count,
            False,
            tuple(carried),
            (*made.statements, *stores),
            tuple(rows),
            tuple(constant),
            self.compiled,
        )


def _room(rooms: Mapping[int, LoopRow], k: int) -> Value | None:
    """The row that value k is written to, if there is one."""
    return rooms[k].value if k in rooms else None


def _stores(
    arrays: Sequence[LoopRow | Value | None], index: Value, new: Mapping[int, Expression]
) -> list[Statement]:
    """The statements that store numbers, which have no row to write to."""
    found = [(k, array) for k, array in enumerate(arrays) if isinstance(array, Value)]
    return [Store(array, Position(0, index), new[k]) for k, array in found]


def _used(program: Program) -> set[Value]:
    """The values that a program reads."""
    every = [e for s in every_statement(program.statements) for e in s.expressions]
    return {value for expression in (*every, *program.results) for value in values_read(expression)}


def compiled_step(
    results: Sequence[Node], given: Mapping[Node, Value], places: Sequence[Value | None]
) -> Program:
    """The program of a compiled step: one statement for each op or kernel; see `MakesBody`."""
    program = block_of(topological(results), results, given).program
    return put_results(put_together(program, in_steps=True), places, "all")


def _from_the_end(array: Value) -> tuple[Place, ...]:
    """The index of all rows of an array in reverse order."""
    count = array.shape[0]
    return (Span(plus(count, -1), count, -1), *whole(array.shape[1:]))


def _row_strides(shape: Shape) -> tuple[int, ...]:
    """The strides of a row of an array whose second axis comes first in memory, in elements."""
    return prod((shape[0], *shape[2:])), *(prod(shape[k:]) for k in range(3, len(shape) + 1))
