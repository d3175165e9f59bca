"""Memory that no later statement reads is used again: by results, by later calls, or for other arrays.

A result overwrites an operand that is read for the last time; a chain of elementwise operations then uses one
array, which stays in the cache. Inputs and results are never overwritten. Large new arrays keep their memory
from call to call. Other arrays are freed before the next one is allocated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache
from math import prod

import sympy

from symad.core.contents import inner_graphs
from symad.core.dims import Shape
from symad.core.graph import Op
from symad.numeric.fusion.nest import is_chain
from symad.numeric.program.expressions import Compute, Expression, Read, Value, parts, values_read
from symad.numeric.program.loops import Blocks, Loop
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Free, Statement, Together, assignments
from symad.numeric.program.uses import Lifetimes, lifetimes
from symad.numeric.program_passes.memory.allocation import (
    is_fresh,
    is_long,
    is_view,
    keeping,
    leaves_gaps,
    operands,
    shown,
)
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.shaping import Broadcast, Slice

# ---- results over operands -----------------------------------------------------------------------

# A chain of elementwise operations then uses one array, which stays in the cache.


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


# ---- memory kept from call to call ---------------------------------------------------------------

# The operating system maps new large blocks of memory page by page, at the first use of each page.


MIN_KEPT_BYTES = 1 << 16
"""The smallest size in bytes of an array whose memory is kept; the C library keeps smaller blocks itself.

In one expression, kept memory takes 1.2 times as long as new memory at 4 KiB, 0.7 at 16 KiB, and 0.4 at
256 KiB (bench_thresholds.py, "kept"). In the steps of loops, the C library gives the same block each time:
with 16 KiB, the gradient of an LSTM in single precision takes 1.08 times as long, with 32 KiB 1.05
(benchmarks/before_after.py).
"""


def keep_memory(program: Program, itemsize: int, bounds: Mapping[sympy.Symbol, int]) -> Program:
    """The program whose large arrays have memory that is ``kept``.

    Args:
        program: a program after `write_over`.
        itemsize: bytes of an element.
        bounds: the largest values of dimensions that change from step to step.
    """

    @cache
    def large(shape: Shape) -> bool:
        return is_large(shape, itemsize, bounds)

    def kept(statement: Statement) -> Statement:
        if isinstance(statement, Together):
            return replace(statement, assignments=tuple(map(assign, statement.assignments)))
        if isinstance(statement, Assign):
            return assign(statement)
        if isinstance(statement, Allocate) and not statement.zeros:
            return replace(statement, kept=statement.kept or large(statement.value.shape))
        return statement

    def assign(made: Assign) -> Assign:
        new = large(made.value.shape) and shown(made.expression) is None
        return Assign(made.value, made.expression, made.over, kept=True) if new else made

    return program.with_statements(tuple(map(kept, program.statements)))


def is_large(shape: Shape, itemsize: int, bounds: Mapping[sympy.Symbol, int]) -> bool:
    """Whether an array certainly has at least `MIN_KEPT_BYTES`."""
    return most_elements(shape, bounds) * itemsize >= MIN_KEPT_BYTES


def most_elements(shape: Shape, bounds: Mapping[sympy.Symbol, int]) -> int:
    """The largest number of elements of an array; 0 if unknown."""
    lengths = [d if isinstance(d, int) else d.subs(bounds) for d in shape]
    return prod(map(int, lengths)) if all(getattr(d, "is_Integer", True) for d in lengths) else 0


def release(program: Program, least: int) -> Program:
    """The program with `Free` statements for all memory that no result needs.

    An array is freed after the last read of all values that share its memory, immediately before the next
    allocation. Memory that lives until then, or until the end of the program, needs no earlier statement.

    Args:
        program: a program after all other passes.
        least: the smallest number of elements of an array that a statement frees.
    """
    keeps = keeping(program)
    lives = lifetimes(program, keeps)
    given = set(program.inputs)
    showing: dict[Value, list[Value]] = {}
    over = {made.over for made in program.assigned}
    for statement in program.statements:
        if isinstance(statement, Allocate) and statement.value not in over:
            showing[statement.value] = [statement.value]
    for made in program.assigned:
        if made.value not in over:
            showing.setdefault(lives.memory.get(made.value, made.value), []).append(made.value)

    def takes_memory(statement: Statement) -> bool:
        """Whether a statement allocates an array of at least ``least`` elements."""
        if isinstance(statement, Allocate):
            return is_long(statement.value.shape, least)
        for made in assignments(statement):
            if made.over is None and is_long(made.value.shape, least) and keeps(made.expression) is None:
                return True
        return False

    ending: dict[int, list[Value]] = {}
    for owner, values in showing.items():
        if owner not in given and is_long(owner.shape, least):
            ending.setdefault(lives.end(owner), []).extend(values)
    ordered: list[Statement] = []
    waiting: list[Value] = []
    left = False
    for k, statement in enumerate(program.statements):
        if (waiting or left) and takes_memory(statement):
            ordered.append(Free(tuple(waiting)))
            waiting, left = [], False
        ordered.append(statement)
        waiting += ending.get(k, ())
        left = left or _has_steps(statement)
    return program.with_statements(tuple(ordered))


def _has_steps(statement: Statement) -> bool:
    """Whether a statement is printed as a loop, whose variables keep arrays alive after it."""
    if isinstance(statement, (Blocks, Loop)):
        return True
    waiting = list(statement.expressions)
    while waiting:
        part = waiting.pop()
        if part.__class__ is not Read:
            if isinstance(part, Compute) and inner_graphs(part.op):
                return True
            waiting += parts(part)
    return False
