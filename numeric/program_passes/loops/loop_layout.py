"""The memory layout of loops: which arrays hold the values of all steps, and which values share an array.

- Backward passes read the states before each step, [h_0; h[:-1]]. One array of T + 1 rows holds them and
  h: the states before are its first T rows, h its last T rows. Nothing is copied.
- If every reader of h reads it reversed, h[::-1], the loop writes the rows in reverse order, and h[::-1] is
  the array itself.
- Compiled steps can write rows with gaps. If every reader of h exchanges its first two axes, the second axis
  comes first in memory, and the exchanged array is contiguous.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from symad.core.dims import plus, same_dim
from symad.higher_order.scan import LoopOp
from symad.numeric.program.expressions import Compute, Expression, Read, Value, op_in, values_read
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Statement, assignments
from symad.numeric.program.uses import Lifetimes, lifetimes
from symad.numeric.program_passes.memory.allocation import shown
from symad.numeric.scheduling.plans import number_of
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape, Slice


@dataclass
class LoopLayout:
    """The layout of one loop. Its values have numbers: the states come first.

    Attributes:
        op: the loop.
        args: its arguments: initial states, arrays with one row for each step, constants.
        values: the values that other statements read.
        before: for a state the values that are its array of the states before each step.
        dropped: values that only these values read; they need no statement.
        reversed: for a value that is only read reversed, the values that reverse it.
        apart: the values whose second axis comes first in memory, if the steps are compiled.
    """

    op: LoopOp
    args: tuple[Expression, ...]
    values: dict[int, Value]
    before: dict[int, list[Value]] = field(default_factory=dict)
    dropped: set[Value] = field(default_factory=set)
    reversed: dict[int, list[Value]] = field(default_factory=dict)
    apart: set[int] = field(default_factory=set)

    @property
    def groups(self) -> list[tuple[Value, ...]]:
        """The groups of values that share an array."""
        found: list[tuple[Value, ...]] = []
        for number, value in self.values.items():
            found.append((value, *self.before.get(number, ())))
        return [group for group in found if len(group) > 1]


class Layouts:
    """The layouts of the loops of a program, found from the readers of each value."""

    def __init__(self, program: Program) -> None:
        self.made: dict[Value, Expression] = {}
        self.readers: dict[Value, list[Value | None]] = {}
        """The values computed from each value, one for each read; None for results and other statements."""
        for statement in program.statements:
            made = assignments(statement)
            self.made |= {each.value: each.expression for each in made}
            for each in made:
                self._read_by(each.value, each.expression)
            for expression in statement.expressions if not made else ():
                self._read_by(None, expression)
        for result in program.results:
            self._read_by(None, result)
        self.lives: Lifetimes = lifetimes(replace(program, shared=()), shown)
        self.returned = {self.owner(v) for result in program.results for v in values_read(result)}

    def _read_by(self, reader: Value | None, expression: Expression) -> None:
        for value in values_read(expression):
            self.readers.setdefault(value, []).append(reader)

    def owner(self, value: Value) -> Value:
        """The value whose statement allocated the memory."""
        return self.lives.memory.get(value, value)

    def of(self, statement: Statement) -> LoopLayout:
        """The layout of a statement that is a loop."""
        made = assignments(statement)
        first = made[0].expression
        assert isinstance(first, Compute) and isinstance(first.op, LoopOp)
        layout = LoopLayout(first.op, first.args, {number_of(op_in(m.expression)): m.value for m in made})
        for number, value in layout.values.items():
            if number < layout.op.states:
                layout.before[number] = self._before(value, layout.args[number], layout)
            found = self._reversed(value)
            if found:
                layout.reversed[number] = found
            if self._is_apart(number, layout):
                layout.apart.add(number)
        return layout

    def _before(self, value: Value, initial: Expression, layout: LoopLayout) -> list[Value]:
        """The values [initial; states[:-1]]. Results are left out: they have memory of their own."""
        found: list[Value] = []
        for reader in self.readers.get(value, ()):
            if reader is None or reader in layout.dropped or not _is_all_but_last(self.made[reader]):
                continue
            joined, *more = self.readers.get(reader, (None,))
            if more:
                continue
            if joined is None or self.owner(joined) in self.returned:
                continue
            both = self.made[joined]
            if not isinstance(both, Compute) or not isinstance(both.op, Concatenate) or both.op.axis != 0:
                continue
            start, *others = both.args
            if others == [Read(reader)] and self._starts(start, initial):
                found.append(joined)
                layout.dropped.add(reader)
                if isinstance(start, Read) and self.readers[start.value] == [joined]:
                    layout.dropped.add(start.value)
        return found

    def _starts(self, start: Expression, initial: Expression) -> bool:
        """Whether an array is the initial state with a leading axis of length 1."""
        number = self._repeated(start)
        if number is not None and start.shape == (1, *initial.shape):
            return number == (self._repeated(initial) if initial.shape else initial)
        return start.shape == (1, *initial.shape) and self._source(start) == self._source(initial)

    def _repeated(self, array: Expression) -> Expression | None:
        """The number that all elements of an array are; None for other arrays."""
        made = self.made.get(array.value) if isinstance(array, Read) else array
        repeats = isinstance(made, Compute) and isinstance(made.op, Broadcast) and not made.args[0].shape
        return made.args[0] if repeats and isinstance(made, Compute) else None

    def _source(self, array: Expression) -> Expression:
        """The array without the reshapes that were applied to it."""
        while True:
            made = self.made.get(array.value, array) if isinstance(array, Read) else array
            if not isinstance(made, Compute) or not isinstance(made.op, Reshape):
                return array
            (array,) = made.args

    def _reversed(self, value: Value) -> list[Value]:
        """The values that reverse an array, if every reader of the array is one of them."""
        readers = self.readers.get(value, [])
        turned = [r for r in readers if r is not None and is_reversed(self.made[r])]
        return list(dict.fromkeys(turned)) if len(turned) == len(readers) else []

    def _is_apart(self, number: int, layout: LoopLayout) -> bool:
        """Whether the second axis of a value comes first in memory; all sizes must be known.

        A state of several parts is stored so if it is read at all steps: those of a part are then adjacent.
        """
        value = layout.values[number]
        if len(value.shape) < 2 or not all(isinstance(d, int) for d in value.shape):
            return False
        if number < layout.op.states:
            made = layout.op.body.output_nodes[number].op
            return bool(layout.before[number]) and isinstance(made, Stack) and made.axis == 0
        turned = layout.reversed.get(number)
        readers = self.readers.get(value, []) if not turned else [r for t in turned for r in self.readers[t]]
        return bool(readers) and all(r is not None and _exchanges_axes(self.made[r]) for r in readers)

    def turned(self, array: Expression) -> bool:
        """Whether an array is another array reversed."""
        made = self.made.get(array.value) if isinstance(array, Read) else array
        return made is not None and is_reversed(made)


def lay_out_together(program: Program) -> Program:
    """The program with the groups of values that share an array of a loop."""
    loops = [s for s in program.statements if is_loop(s)]
    if not loops:
        return program
    layouts = Layouts(program)
    found = [layouts.of(statement) for statement in loops]
    return program.sharing(group for layout in found for group in layout.groups)


def is_loop(statement: Statement) -> bool:
    """Whether a statement computes the values of a loop."""
    made = assignments(statement)
    first = made[0].expression if made else None
    return isinstance(first, Compute) and isinstance(first.op, LoopOp)


def is_reversed(expression: Expression) -> bool:
    """Whether an expression is an array with its first axis reversed."""
    if not isinstance(expression, Compute) or not isinstance(expression.op, Slice):
        return False
    (array,) = expression.args
    same = all(map(same_dim, expression.shape, array.shape))
    return same and expression.op.step == (-1, *[1] * (len(expression.shape) - 1))


def _exchanges_axes(expression: Expression) -> bool:
    """Whether an expression is an array with its first two axes exchanged."""
    if not isinstance(expression, Compute) or not isinstance(expression.op, Einsum):
        return False
    (labels, *others), output = expression.op.inputs, expression.op.output
    return not others and (*output[1::-1], *output[2:]) == labels == tuple(dict.fromkeys(labels))


def _is_all_but_last(expression: Expression) -> bool:
    """Whether an expression is an array without its last row."""
    if not isinstance(expression, Compute) or not isinstance(expression.op, Slice):
        return False
    (array,), op = expression.args, expression.op
    shape = (plus(array.shape[0], -1), *array.shape[1:])
    return op.count == shape and not any(op.start) and set(op.step) == {1}
