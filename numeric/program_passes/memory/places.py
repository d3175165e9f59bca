"""In-place operations: a result overwrites an operand that no later statement reads.

A chain of elementwise operations then uses one array, which stays in the cache. Inputs and results are never
overwritten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from symad.core.graph import Op
from symad.numeric.fusion.nest import is_chain
from symad.numeric.program.expressions import Compute, Expression, Read, Value, values_read
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Statement, Together
from symad.numeric.program.uses import Lifetimes, lifetimes
from symad.numeric.program_passes.memory.allocation import is_fresh, is_view, leaves_gaps, shown
from symad.numeric.program_passes.memory.operands import operands
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.shaping import Broadcast, Slice


def write_over(program: Program, dtype: str) -> Program:
    """The program whose values overwrite operands that are not read again, where the op allows it.

    Args:
        program: a program with one statement for each op; some values may overwrite others already.
        dtype: the dtype of the module.
    """
    places = _Places(program, dtype)
    return program.with_statements(tuple(places.placed(k, s) for k, s in enumerate(program.statements)))


class _Places:
    """The lifetimes and views that decide whether a value may be overwritten."""

    def __init__(self, program: Program, dtype: str) -> None:
        self.dtype = dtype
        self.lives: Lifetimes = lifetimes(program, shown)
        self.made: Mapping[Value, Compute] = {
            made.value: made.expression for made in program.assigned if isinstance(made.expression, Compute)
        }
        self.shared = frozenset(self.owner(value) for group in program.shared for value in group)

    def placed(self, at: int, statement: Statement) -> Statement:
        """The statement whose values overwrite operands, if possible."""
        if isinstance(statement, Assign):
            return self._over(at, statement, ())
        if not isinstance(statement, Together):
            return statement
        made: list[Assign] = []
        for each in statement.assignments:
            made.append(self._over(at, each, [other.over for other in made]))
        return Together(tuple(made))

    def _over(self, at: int, made: Assign, taken: Collection[Value | None]) -> Assign:
        """The assignment over the best operand that is not in ``taken``."""
        found = made.expression
        if made.over is not None or not isinstance(found, Compute) or not found.shape:
            return made
        for k in operands(found.op, found, self.dtype):
            arg = found.args[k]
            if not isinstance(arg, Read) or arg.shape != found.shape or arg.value in taken:
                continue
            if self.ends(arg.value, found, at):
                return Assign(made.value, found, arg.value, made.kept)
        return made

    def owner(self, value: Value) -> Value:
        """The value that allocated the memory."""
        return self.lives.memory.get(value, value)

    def ends(self, value: Value, reader: Compute, at: int) -> bool:
        """Whether ``reader``, the statement at position ``at``, may overwrite a value.

        It has to be a contiguous array of floats that the program allocated and no later statement reads.
        """
        owner = self.owner(value)
        if owner not in self.made or owner in self.shared or not is_fresh(self.made[owner]):
            return False
        if self.lives.end(owner) != at or any(map(self._breaks, self.chain(value))):
            return False
        others = [value for arg in reader.args for value in values_read(arg)]
        several = sum(self.owner(v) is owner for v in others) > 1
        if several and reads_while_writing(reader.op, len(reader.args)):
            return False  # a later step would read what an earlier one has overwritten
        return not any(self._meets(value, other) for other in others)  # NumPy would copy overlapping operands

    def chain(self, value: Value) -> Iterator[Compute]:
        """The views that lead to a value, from the last to the first."""
        while value in self.made and is_view(self.made[value]):
            view = self.made[value]
            yield view
            (arg,) = view.args
            if not isinstance(arg, Read):
                return
            value = arg.value

    def _breaks(self, view: Compute) -> bool:
        """Whether a view repeats elements or is not contiguous."""
        return isinstance(view.op, Broadcast) or leaves_gaps(view)

    def _meets(self, one: Value, other: Value) -> bool:
        """Whether two values are different ranges of one array that overlap."""
        if one is other:
            return False
        first, second = (_range(self.made.get(value)) for value in (one, other))
        if first is None or second is None or first[0] != second[0]:
            return False
        return max(first[1], second[1]) < min(first[2], second[2])


def reads_while_writing(op: Op, count: int) -> bool:
    """Whether an op with ``count`` operands reads operands after it has begun to write its result.

    It is printed as several statements: 1/(a b) as 1/a, then divided by b; −a − b as −a, then minus b.
    """
    if is_chain(op):
        return True
    signs = op.powers if isinstance(op, Mul) else op.signs if isinstance(op, Add) else (1,)
    return count > 2 or 1 not in signs


def _range(view: Compute | None) -> tuple[Expression, int, int] | None:
    """The array of a slice with one axis, its start and its stop; None for other values."""
    if view is None or not isinstance(view.op, Slice) or len(view.shape) > 1 or view.op.step != (1,):
        return None
    start, count = view.op.start[0], view.op.count[0]
    known = isinstance(start, int) and isinstance(count, int)
    return (view.args[0], start, start + count) if known else None
