"""Statements: each says which expressions it evaluates, which values it writes, and what it contains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import sympy

from symad.core.dims import Dim
from symad.numeric.program.expressions import Compute, Expression, Position, Value


class Statement:
    """One step of a program."""

    __slots__ = ()

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What is evaluated here, in order; not what nested blocks evaluate."""
        return ()

    @property
    def writes(self) -> tuple[Value, ...]:
        """The values that are new after the statement, or changed by it; not those of nested blocks."""
        return ()

    @property
    def block(self) -> Block:
        """Nested statements."""
        return ()

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Statement:
        """The statement with every expression of its own changed."""
        return self

    def with_block(self, block: Block) -> Statement:
        """The statement with other nested statements."""
        return self


Block: TypeAlias = "tuple[Statement, ...]"


@dataclass(frozen=True)
class Comment(Statement):
    """A line for the reader: the formulas of the next statements."""

    text: str


@dataclass(frozen=True)
class Assign(Statement):
    """value = expression; into memory of its own, or into that of a value ``over`` that ends here.

    ``kept``: memory of its own is kept from call to call.
    """

    value: Value
    expression: Expression
    over: Value | None = None
    kept: bool = False

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The one."""
        return (self.expression,)

    @property
    def writes(self) -> tuple[Value, ...]:
        """The value."""
        return (self.value,)

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Statement:
        """The same value of a changed expression."""
        made = change(self.expression)
        return self if made is self.expression else replace(self, expression=made)


@dataclass(frozen=True)
class Allocate(Statement):
    """A new array for `Store`; of zeros, or of anything, then perhaps in memory of earlier calls."""

    value: Value
    zeros: bool = False
    kept: bool = False

    @property
    def writes(self) -> tuple[Value, ...]:
        """The array."""
        return (self.value,)


@dataclass(frozen=True)
class Store(Statement):
    """array[position] = expression."""

    array: Value
    position: Position
    expression: Expression

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The one."""
        return (self.expression,)

    @property
    def writes(self) -> tuple[Value, ...]:
        """The array."""
        return (self.array,)

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Statement:
        """The same place for a changed expression."""
        return replace(self, expression=change(self.expression))


@dataclass(frozen=True)
class Scatter(Statement):
    """array[places] = expression, or +=: elements of an array with one axis, at constant ``places``.

    The expression has one element for each place, in order, or no axes: the same for all places.
    """

    array: Value
    places: Compute
    expression: Expression
    adds: bool = False

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The one."""
        return (self.expression,)

    @property
    def writes(self) -> tuple[Value, ...]:
        """The array."""
        return (self.array,)

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Statement:
        """The same places for a changed expression."""
        return replace(self, expression=change(self.expression))


@dataclass(frozen=True)
class Together(Statement):
    """Assignments of one function to several arguments, or of all results of one op: none reads another."""

    assignments: tuple[Assign, ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """One for each."""
        return tuple(a.expression for a in self.assignments)

    @property
    def writes(self) -> tuple[Value, ...]:
        """One for each."""
        return tuple(a.value for a in self.assignments)

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Statement:
        """The same values of changed expressions."""
        return Together(tuple(replace(a, expression=change(a.expression)) for a in self.assignments))


@dataclass(frozen=True)
class Free(Statement):
    """Values that end here: nothing reads them later, and their memory is given back."""

    values: tuple[Value, ...]


@dataclass(frozen=True)
class Part(Statement):
    """Statements that are a function of their own; later ones read what they write."""

    body: Block

    @property
    def block(self) -> Block:
        """The statements."""
        return self.body

    def with_block(self, block: Block) -> Statement:
        """Other statements."""
        return Part(block)


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
class Row:
    """A value that is row number t of an array in step t: a view, so that the step can write there.

    An array of two rows that ``alternates`` gives row t mod 2: each step sees what the one before wrote.
    """

    value: Value
    array: Expression
    alternates: bool = False


@dataclass(frozen=True)
class Fixed:
    """A value that is the same in all steps."""

    value: Value
    expression: Expression


@dataclass(frozen=True)
class Loop(Statement):
    """The body for index = 0 … count − 1, or from the last to the first.

    All carried values are replaced at once at the end of a step; after the loop they have their last value.
    ``rows`` and ``fixed`` are values of the body alone.
    """

    index: Value
    count: Dim
    backwards: bool
    carried: tuple[Carried, ...]
    body: Block
    rows: tuple[Row, ...] = ()
    fixed: tuple[Fixed, ...] = ()

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The initial values, the next ones, the arrays of the rows, what is fixed."""
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
        """The loop with its initial and next values, its arrays and what is fixed changed."""
        made = tuple(replace(c, initial=change(c.initial), next=change(c.next)) for c in self.carried)
        rows = tuple(replace(r, array=change(r.array)) for r in self.rows)
        fixed = tuple(Fixed(f.value, change(f.expression)) for f in self.fixed)
        return replace(self, carried=made, rows=rows, fixed=fixed)

    def with_block(self, block: Block) -> Statement:
        """The loop with another body."""
        return replace(self, body=block)


@dataclass(frozen=True)
class PartOfBlock:
    """A part of an array in each step over blocks of rows: a view, so that the step can write there.

    Along ``axis`` it has the rows of the block, along ``column`` all elements up to the last of these rows;
    other axes are whole. ``flat``: under one axis.
    """

    value: Value
    array: Expression
    axis: int | None
    column: int | None = None
    flat: bool = False


@dataclass(frozen=True)
class Added:
    """What each step adds to a value: to all of it, or along ``column`` up to the last row of the block."""

    value: Value
    expression: Expression
    column: int | None = None


@dataclass(frozen=True)
class Blocks(Statement):
    """The body for each block of at most ``height`` of ``length`` rows.

    In the body the dimension ``rows`` is the number of rows of the block, and ``stop`` the number of all rows
    up to its last one. ``parts`` and ``fixed`` are values of the body alone.
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
        """The arrays, what is fixed, what is added."""
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
        """The statement with its arrays, what is fixed and what is added changed."""
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

    The block computes, from ``unknown``, what ``residual`` (n,) and ``slope`` = ∂residual/∂x (n, n) read.
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
        """What each evaluation of the residual does."""
        return self.body

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Statement:
        """The statement with its three expressions changed."""
        made = [change(e) for e in self.expressions]
        return replace(self, guess=made[0], residual=made[1], slope=made[2])

    def with_block(self, block: Block) -> Statement:
        """The statement with another body."""
        return replace(self, body=block)


def assignments(statement: Statement) -> tuple[Assign, ...]:
    """The assignments that a statement is."""
    if isinstance(statement, Together):
        return statement.assignments
    return (statement,) if isinstance(statement, Assign) else ()


def every_statement(block: Block) -> Iterator[Statement]:
    """All statements, those of nested blocks after the one that contains them."""
    for statement in block:
        yield statement
        yield from every_statement(statement.block)


def change_blocks(block: Block, change: Callable[[Block], Block]) -> Block:
    """The block with ``change`` applied to every nested block, then to the whole."""
    return change(tuple(s.with_block(change_blocks(s.block, change)) if s.block else s for s in block))


def change_expressions(block: Block, change: Callable[[Expression], Expression]) -> Block:
    """The block with every expression changed, those of nested blocks too."""
    return change_blocks(block, lambda inner: tuple(s.with_expressions(change) for s in inner))
