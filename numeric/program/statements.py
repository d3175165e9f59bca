"""Statements, with the expressions that they evaluate, the values that they write, and nested blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

from symad.numeric.program.expressions import Compute, Expression, Position, Value

Path: TypeAlias = "tuple[str, ...]"
"""A field, or a field of records and the field of each: ``("rows", "array")``."""


class Statement:
    """One step of a program.

    A class says in which fields its parts are: ``reads`` leads to the expressions that it evaluates, in
    order, ``makes`` to the values that it defines or changes. Nested statements are in the field ``body``;
    ``gives`` leads to the values that exist there only, ``ends`` to the expressions that are evaluated at the
    end of the body.
    """

    reads: ClassVar[tuple[Path, ...]] = ()
    ends: ClassVar[tuple[Path, ...]] = ()
    makes: ClassVar[tuple[Path, ...]] = (("value",),)
    gives: ClassVar[tuple[Path, ...]] = ()

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions that the statement evaluates, in order, without those of nested blocks."""
        return self.held(self.reads)

    @property
    def writes(self) -> tuple[Value, ...]:
        """The values that the statement defines or changes, without those of nested blocks."""
        return self.held(self.makes)

    @property
    def block(self) -> Block:
        """The nested statements."""
        found: Block = getattr(self, "body", ())
        return found

    def held(self, paths: Iterable[Path]) -> tuple[Any, ...]:
        """The parts that some paths lead to, in order."""
        found: list[Any] = []
        for name, *inner in paths:
            held = getattr(self, name)
            if inner:
                found += [getattr(record, inner[0]) for record in held]
            else:
                found += held if isinstance(held, tuple) else (held,)
        return tuple(found)

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Statement:
        """The statement with ``change`` applied to its own expressions."""
        made: dict[str, Any] = {}
        for name, *inner in self.reads:
            held = made.get(name, getattr(self, name))
            if inner:
                made[name] = tuple([replace(r, **{inner[0]: change(getattr(r, inner[0]))}) for r in held])
            else:
                made[name] = tuple(map(change, held)) if isinstance(held, tuple) else change(held)
        same = all(getattr(self, name) is part for name, part in made.items())
        return self if same else self._with(**made)

    def with_block(self, block: Block) -> Statement:
        """The statement with other nested statements."""
        return self._with(body=block)

    def _with(self, **parts: Any) -> Statement:
        itself: Any = self
        made: Statement = replace(itself, **parts)
        return made


Block: TypeAlias = "tuple[Statement, ...]"


@dataclass(frozen=True)
class Comment(Statement):
    """A comment for the reader of the code, such as the formulas of the next statements."""

    makes = ()

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

    # Most statements are assignments: what the base class finds by names of fields is written out for them.

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


@dataclass(frozen=True)
class Store(Statement):
    """array[position] = expression, along the first axis."""

    reads = (("expression",),)
    makes = (("array",),)

    array: Value
    position: Position
    expression: Expression


@dataclass(frozen=True)
class Scatter(Statement):
    """array[places] = expression, or +=, for an array with one axis and constant ``places``.

    The expression has one element for each place, in order, or it has no axes and goes to every place.
    """

    reads = (("expression",),)
    makes = (("array",),)

    array: Value
    places: Compute
    expression: Expression
    adds: bool = False


@dataclass(frozen=True)
class Together(Statement):
    """Independent assignments: one function of several arguments, or all results of one op."""

    reads = (("assignments", "expression"),)
    makes = (("assignments", "value"),)

    assignments: tuple[Assign, ...]


@dataclass(frozen=True)
class Free(Statement):
    """The values end here: no later statement reads them, and their memory is freed."""

    makes = ()

    values: tuple[Value, ...]


@dataclass(frozen=True)
class Section(Statement):
    """Statements that become a function of their own; later statements read the values that they write."""

    makes = ()

    body: Block


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
