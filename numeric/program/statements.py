"""Statements: each says which expressions it evaluates, which values it writes, and what it contains."""

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
