"""Where the values of a loop stand: which arrays hold all steps, and what else is a part of these arrays.

- The states h_0, …, h_{T-1} before each step, [h_0; h[:-1]], are the first T rows of an array of T + 1 rows,
  of which h are the others. Nothing is copied to join them.
- A value that is read from its end alone, as h[::-1], is written from the end: h[::-1] is the array itself.
- A value of each step that puts a state beside other rows, [h_{t-1}; x_t], is a block of an array in which
  step t - 1 has written h_{t-1}; what does not depend on the states stands there before the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from symad.core.dims import plus, same_dim
from symad.core.graph import Node, topological
from symad.numeric.passes.loops.loop import Loop as LoopOp
from symad.numeric.passes.loops.loop import pieces
from symad.numeric.program.expressions import Compute, Expression, Interval, Read, Value, values_read
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Statement, assignments
from symad.numeric.program.uses import Lifetimes, lifetimes
from symad.numeric.program_passes.memory import shown
from symad.ops.arrays.shaping import Broadcast, Reshape, Slice
from symad.ops.arrays.stacking import Concatenate
from symad.ops.loops.scan import Scan

Opens: TypeAlias = Callable[[Value], bool]
"""Whether the loop of a value becomes statements, or is left to what computes it as a whole."""


@dataclass(frozen=True)
class Beside:
    """A value of a loop that is a state with other rows before or below it."""

    number: int
    """Which value of the loop it is."""
    state: int
    """Which state it holds."""
    blocks: tuple[tuple[Expression, Interval], ...]
    """The argument of the loop for each block of rows, and where the block stands."""
    place: Interval
    """Where the state stands."""


@dataclass
class LoopLayout:
    """The values of one loop, by their numbers. A value without an entry has an array of its own."""

    op: Scan | LoopOp
    args: tuple[Expression, ...]
    values: dict[int, Value]
    """The values that are read."""
    before: dict[int, list[Value]] = field(default_factory=dict)
    """The arrays of the states before all steps."""
    dropped: set[Value] = field(default_factory=set)
    """Slices that only these arrays read."""
    reversed: dict[int, list[Value]] = field(default_factory=dict)
    """Values that show a value from its end, where nothing else reads it."""
    beside: list[Beside] = field(default_factory=list)

    @property
    def groups(self) -> list[tuple[Value, ...]]:
        """The values that stand in one array."""
        found: list[tuple[Value, ...]] = []
        for number, value in self.values.items():
            found.append((value, *self.before.get(number, ())))
        for one in self.beside:
            state = [self.values[one.state]] if one.state in self.values else []
            found.append((self.values[one.number], *state))
        return [group for group in found if len(group) > 1]


class Layouts:
    """What decides about the loops of a program."""

    def __init__(self, program: Program) -> None:
        every = [made for statement in program.statements for made in assignments(statement)]
        self.made = {made.value: made.expression for made in every}
        self.readers: dict[Value, list[Value | None]] = {}
        """What reads each value, once for each time; None for a result."""
        for made in every:
            for value in values_read(made.expression):
                self.readers.setdefault(value, []).append(made.value)
        for result in program.results:
            for value in values_read(result):
                self.readers.setdefault(value, []).append(None)
        self.lives: Lifetimes = lifetimes(replace(program, shared=()), shown)
        self.returned = {self.owner(v) for result in program.results for v in values_read(result)}

    def owner(self, value: Value) -> Value:
        """The value that made the memory."""
        return self.lives.memory.get(value, value)

    def of(self, statement: Statement) -> LoopLayout:
        """The layout of a statement that is a loop."""
        made = assignments(statement)
        first = made[0].expression
        assert isinstance(first, Compute) and isinstance(first.op, (Scan, LoopOp))
        layout = LoopLayout(first.op, first.args, {number_of(m): m.value for m in made})
        layout.beside = self._beside(layout)
        for number, value in layout.values.items():
            if number < states_of(layout.op):
                layout.before[number] = self._before(value, layout.args[number], layout)
            found = self._reversed(value)
            if found:
                layout.reversed[number] = found
        return layout

    def _before(self, value: Value, initial: Expression, layout: LoopLayout) -> list[Value]:
        """The arrays of the states before all steps: the first state, and all but the last."""
        found: list[Value] = []
        for reader in self.readers.get(value, ()):
            if reader is None or reader in layout.dropped or not _is_all_but_last(self.made[reader]):
                continue
            joined, *more = self.readers.get(reader, (None,))
            if more:
                continue
            if joined is None or self.owner(joined) in self.returned:  # results have memory of their own
                continue
            both = self.made[joined]
            if not isinstance(both, Compute) or not isinstance(both.op, Concatenate) or both.op.axis != 0:
                continue
            start, *others = both.args
            if others == [Read(reader)] and self._starts(start, initial):
                found.append(joined)
                layout.dropped.add(reader)
        return found

    def _starts(self, start: Expression, initial: Expression) -> bool:
        """Whether an array is the initial state with one more axis."""
        made = self.made.get(start.value, start) if isinstance(start, Read) else start
        if isinstance(made, Compute) and isinstance(made.op, Broadcast) and not initial.shape:
            return made.args == (initial,) and made.shape == (1,)
        return start.shape == (1, *initial.shape) and self._source(start) == self._source(initial)

    def _source(self, array: Expression) -> Expression:
        """What an array shows under another shape."""
        while True:
            made = self.made.get(array.value, array) if isinstance(array, Read) else array
            if not isinstance(made, Compute) or not isinstance(made.op, Reshape):
                return array
            (array,) = made.args

    def _reversed(self, value: Value) -> list[Value]:
        """The values that read an array from its end, if nothing else reads it."""
        readers = self.readers.get(value, [])
        turned = [r for r in readers if r is not None and is_reversed(self.made[r])]
        return list(dict.fromkeys(turned)) if len(turned) == len(readers) else []

    def turned(self, array: Expression) -> bool:
        """Whether an array is another one from its end."""
        made = self.made.get(array.value) if isinstance(array, Read) else array
        return made is not None and is_reversed(made)

    def _beside(self, layout: LoopLayout) -> list[Beside]:
        """The values of a loop that can be laid out so; results have memory of their own."""
        op, body = layout.op, layout.op.body
        states, moving, fixed = pieces(op, body.input_nodes)
        outer = dict(zip(body.input_nodes, layout.args, strict=True))
        found: list[Beside] = []
        for number in range(len(states), len(body.output_nodes)):
            rows = body.output_nodes[number]
            own = [a for a in rows.args if a in states]
            plain = isinstance(rows.op, Concatenate) and rows.op.axis == 0 and rows not in body.input_nodes
            known = all(isinstance(a.shape[0], int) for a in rows.args if a.shape)
            if not plain or len(own) != 1 or not known or not {*rows.args} <= {*own, *moving, *fixed}:
                continue
            state = next(k for k, s in enumerate(states) if s is own[0])
            if number not in layout.values or any(b.state == state for b in found):
                continue
            if self.owner(layout.values[number]) in self.returned:
                continue
            blocks, start, place = [], 0, Interval(0, 0)
            for arg in rows.args:
                here = Interval(start, arg.shape[0])
                blocks.append((outer[arg], here))
                place = here if arg is own[0] else place
                start += arg.shape[0]
            found.append(Beside(number, state, tuple(blocks), place))
        return found


def lay_out_together(program: Program, opens: Opens) -> Program:
    """The program that knows which values its loops lay out in one array; ``opens``: see `open_loops`."""
    loops = [s for s in program.statements if is_opened(s, opens)]
    if not loops:
        return program
    layouts = Layouts(program)
    found = [layouts.of(statement) for statement in loops]
    return program.sharing(group for layout in found for group in layout.groups)


def is_opened(statement: Statement, opens: Opens) -> bool:
    """Whether a statement is a loop that becomes statements."""
    made = assignments(statement)
    return bool(made) and is_loop(made[0].expression) and opens(made[0].value)


def is_loop(expression: Expression) -> bool:
    """Whether an expression is a value of a loop."""
    return isinstance(expression, Compute) and isinstance(expression.op, (Scan, LoopOp))


def states_of(op: Scan | LoopOp) -> int:
    """The number of states of a loop, its first values."""
    return op.states if isinstance(op, LoopOp) else 1


def number_of(made: Assign) -> int:
    """Which value of its loop an assignment makes."""
    op = made.expression.op  # type: ignore[attr-defined]  # a loop's
    return op.k if isinstance(op, LoopOp) else 0


def is_reversed(expression: Expression) -> bool:
    """Whether an expression is an array with its first axis reversed."""
    if not isinstance(expression, Compute) or not isinstance(expression.op, Slice):
        return False
    (array,) = expression.args
    same = all(map(same_dim, expression.shape, array.shape))
    return same and expression.op.step == (-1, *[1] * (len(expression.shape) - 1))


def _is_all_but_last(expression: Expression) -> bool:
    """Whether an expression is an array without its last row."""
    if not isinstance(expression, Compute) or not isinstance(expression.op, Slice):
        return False
    (array,), op = expression.args, expression.op
    shape = (plus(array.shape[0], -1), *array.shape[1:])
    return op.count == shape and not any(op.start) and set(op.step) == {1}


def rows_read(op: Scan | LoopOp, beside: Sequence[Beside]) -> set[Node]:
    """The inputs of a body that are read as they are, not as a block of what stands beside a state."""
    inside = {op.body.output_nodes[one.number] for one in beside}
    order = topological(op.body.output_nodes)
    return {*op.body.output_nodes, *(a for n in order if n not in inside for a in n.args)}
