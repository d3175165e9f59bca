"""Statements, with the expressions that they evaluate, the values that they write, and nested blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from symad.numeric.program.expressions import Compute, Expression, Position, Value


class Statement:
    """One step of a program."""

    __slots__ = ()

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions that the statement evaluates, in order, without those of nested blocks."""
        return ()

    @property
    def writes(self) -> tuple[Value, ...]:
        """The values that the statement defines or changes, without those of nested blocks."""
        return ()

    @property
    def block(self) -> Block:
        """The nested statements."""
        return ()

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Statement:
        """The statement with ``change`` applied to its own expressions."""
        return self

    def with_block(self, block: Block) -> Statement:
        """The statement with other nested statements."""
        return self


Block: TypeAlias = "tuple[Statement, ...]"


@dataclass(frozen=True)
class Comment(Statement):
    """A comment for the reader of the code, such as the formulas of the next statements."""

    text: str


@dataclass(frozen=True)
class Assign(Statement):
    """value = expression, in new memory, or in the memory of the value ``over``, which ends here.

    If ``kept``, new memory is kept from call to call.
    """

    value: Value
    expression: Expression
    over: Value | None = None
    kept: bool = False

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expression."""
        return (self.expression,)

    @property
    def writes(self) -> tuple[Value, ...]:
        """The value."""
        return (self.value,)

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Statement:
        """The assignment with ``change`` applied to its expression."""
        made = change(self.expression)
        return self if made is self.expression else replace(self, expression=made)


@dataclass(frozen=True)
class Allocate(Statement):
    """A new array, of zeros or uninitialized.

    If ``kept``, its memory is kept from call to call. If ``swapped``, the second axis comes first in memory.
    """

    value: Value
    zeros: bool = False
    kept: bool = False
    swapped: bool = False

    @property
    def writes(self) -> tuple[Value, ...]:
        """The array."""
        return (self.value,)


@dataclass(frozen=True)
class Store(Statement):
    """array[position] = expression, along the first axis."""

    array: Value
    position: Position
    expression: Expression

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expression."""
        return (self.expression,)

    @property
    def writes(self) -> tuple[Value, ...]:
        """The array."""
        return (self.array,)

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Statement:
        """The statement with ``change`` applied to its expression."""
        return replace(self, expression=change(self.expression))


@dataclass(frozen=True)
class Scatter(Statement):
    """array[places] = expression, or +=, for an array with one axis and constant ``places``.

    The expression has one element for each place, in order, or it has no axes and goes to every place.
    """

    array: Value
    places: Compute
    expression: Expression
    adds: bool = False

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expression."""
        return (self.expression,)

    @property
    def writes(self) -> tuple[Value, ...]:
        """The array."""
        return (self.array,)

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Statement:
        """The statement with ``change`` applied to its expression."""
        return replace(self, expression=change(self.expression))


@dataclass(frozen=True)
class Together(Statement):
    """Independent assignments: one function of several arguments, or all results of one op."""

    assignments: tuple[Assign, ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions of the assignments."""
        return tuple(a.expression for a in self.assignments)

    @property
    def writes(self) -> tuple[Value, ...]:
        """The values of the assignments."""
        return tuple(a.value for a in self.assignments)

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Statement:
        """The assignments with ``change`` applied to their expressions."""
        return Together(tuple(replace(a, expression=change(a.expression)) for a in self.assignments))


@dataclass(frozen=True)
class Free(Statement):
    """The values end here: no later statement reads them, and their memory is freed."""

    values: tuple[Value, ...]


@dataclass(frozen=True)
class Section(Statement):
    """Statements that become a function of their own; later statements read the values that they write."""

    body: Block

    @property
    def block(self) -> Block:
        """The statements."""
        return self.body

    def with_block(self, block: Block) -> Statement:
        """The part with other statements."""
        return Section(block)


def assignments(statement: Statement) -> tuple[Assign, ...]:
    """The assignments of an `Assign` or `Together` statement; none for others."""
    if isinstance(statement, Assign):
        return (statement,)
    return statement.assignments if isinstance(statement, Together) else ()


def every_statement(block: Block) -> Iterator[Statement]:
    """All statements; each is followed by those of its nested block."""
    for statement in block:
        yield statement
        yield from every_statement(statement.block)


def change_blocks(block: Block, change: Callable[[Block], Block]) -> Block:
    """The block with ``change`` applied to every nested block first, then to the whole block."""
    return change(tuple(s.with_block(change_blocks(s.block, change)) if s.block else s for s in block))


def change_expressions(block: Block, change: Callable[[Expression], Expression]) -> Block:
    """The block with ``change`` applied to every expression, in nested blocks too."""
    return change_blocks(block, lambda inner: tuple(s.with_expressions(change) for s in inner))
