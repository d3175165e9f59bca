"""Loop statements: over steps, over blocks of rows, and until a root is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import sympy

from symad.core.dims import Dim
from symad.numeric.program.expressions import Expression, Value
from symad.numeric.program.statements import Block, Statement


@dataclass(frozen=True)
class Carried:
    """A value that each step of a loop reads and replaces: first ``initial``, then ``next`` of the step.

    ``place``: the row in which the step computes ``next``, if it has one.
    """

    value: Value
    initial: Expression
    next: Expression
    place: Value | None = None


@dataclass(frozen=True)
class LoopRow:
    """In step t, ``value`` is row t of an array: a view, which the step fills if ``filled``, else reads.

    If ``alternates``, the array has two rows, and ``value`` is row t mod 2: the other row keeps what the step
    before has written. ``strides``: the distances in memory from element to element along each axis, in
    elements; None if all are adjacent.
    """

    value: Value
    array: Expression
    filled: bool = False
    alternates: bool = False
    strides: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Fixed:
    """A value of a loop's body that does not change from step to step."""

    value: Value
    expression: Expression


@dataclass(frozen=True)
class Loop(Statement):
    """The body for index = 0 … count − 1, or from the last to the first.

    All carried values are replaced at once at the end of a step; after the loop they have their last value.
    ``rows`` and ``fixed`` are values of the body alone. If ``compiled``, the loop is a function in C, and the
    body has one statement for each op or kernel.
    """

    index: Value
    count: Dim
    backwards: bool
    carried: tuple[Carried, ...]
    body: Block
    rows: tuple[LoopRow, ...] = ()
    fixed: tuple[Fixed, ...] = ()
    compiled: bool = False

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The initial values, the next values, the arrays of the rows, and the fixed values."""
        return (
            *(c.initial for c in self.carried),
            *(c.next for c in self.carried),
            *(r.array for r in self.rows),
            *(f.expression for f in self.fixed),
        )

    @property
    def writes(self) -> tuple[Value, ...]:
        """The carried values."""
        return tuple(c.value for c in self.carried)

    @property
    def block(self) -> Block:
        """The body."""
        return self.body

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Statement:
        """The loop with ``change`` applied to its own expressions."""
        made = tuple(replace(c, initial=change(c.initial), next=change(c.next)) for c in self.carried)
        rows = tuple(replace(r, array=change(r.array)) for r in self.rows)
        fixed = tuple(Fixed(f.value, change(f.expression)) for f in self.fixed)
        return replace(self, carried=made, rows=rows, fixed=fixed)

    def with_block(self, block: Block) -> Statement:
        """The loop with another body."""
        return replace(self, body=block)


@dataclass(frozen=True)
class PartOfBlock:
    """In each step, ``value`` is a view of an array: a step can write to it.

    Along ``axis`` it shows the rows of the block, along ``column`` the elements up to the last row of the
    block, along other axes all elements. If ``flat``, it is reshaped to one axis.
    """

    value: Value
    array: Expression
    axis: int | None
    column: int | None = None
    flat: bool = False


@dataclass(frozen=True)
class Added:
    """Each step adds ``expression`` to ``value``; with ``column``, up to the last row of the block."""

    value: Value
    expression: Expression
    column: int | None = None


@dataclass(frozen=True)
class Blocks(Statement):
    """A loop over blocks of ``height`` rows out of ``length``; the last block may have fewer rows.

    In the body, the dimension ``rows`` is the number of rows of the block, and ``stop`` is the index after
    its last row. ``parts`` and ``fixed`` exist only in the body.
    """

    length: Dim
    height: int
    rows: sympy.Symbol
    stop: sympy.Symbol
    parts: tuple[PartOfBlock, ...]
    fixed: tuple[Fixed, ...]
    body: Block
    added: tuple[Added, ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The arrays, the fixed values, and the values that are added."""
        return (
            *(p.array for p in self.parts),
            *(f.expression for f in self.fixed),
            *(a.expression for a in self.added),
        )

    @property
    def writes(self) -> tuple[Value, ...]:
        """The sums."""
        return tuple(a.value for a in self.added)

    @property
    def block(self) -> Block:
        """The body."""
        return self.body

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Statement:
        """The statement with ``change`` applied to its own expressions."""
        return replace(
            self,
            parts=tuple(replace(p, array=change(p.array)) for p in self.parts),
            fixed=tuple(Fixed(f.value, change(f.expression)) for f in self.fixed),
            added=tuple(replace(a, expression=change(a.expression)) for a in self.added),
        )

    def with_block(self, block: Block) -> Statement:
        """The statement with another body."""
        return replace(self, body=block)


@dataclass(frozen=True)
class FindRoot(Statement):
    """value = the solution x of residual(x) = 0 by Newton's method from a guess.

    The body computes, from ``unknown``, the values that ``residual`` (n,) and ``slope`` = ∂residual/∂x (n, n)
    read.
    """

    value: Value
    unknown: Value
    guess: Expression
    body: Block
    residual: Expression
    slope: Expression

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The guess, the residual, its derivative."""
        return self.guess, self.residual, self.slope

    @property
    def writes(self) -> tuple[Value, ...]:
        """The solution."""
        return (self.value,)

    @property
    def block(self) -> Block:
        """The statements of each evaluation of the residual and its derivative."""
        return self.body

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Statement:
        """The statement with ``change`` applied to its three expressions."""
        made = [change(e) for e in self.expressions]
        return replace(self, guess=made[0], residual=made[1], slope=made[2])

    def with_block(self, block: Block) -> Statement:
        """The statement with another body."""
        return replace(self, body=block)
