"""Expressions: trees of ops over named values, without side effects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from symad.core.dims import Dim, Shape, same_dim
from symad.core.graph import Op


@dataclass(frozen=True, eq=False)
class Value:
    """One array of a program. Two values are the same if they are one object.

    ``stem`` is what a person would call it, or empty: names are given when the program is printed. A value
    that is ``named`` keeps a line of its own, as results do.
    """

    stem: str
    shape: Shape
    named: bool = False


class Expression:
    """Something with a value: `Read`, `Index`, `Compute` or `Step`."""

    __slots__ = ()
    shape: Shape


@dataclass(frozen=True)
class Read(Expression):
    """A value by its name."""

    value: Value

    @property
    def shape(self) -> Shape:  # type: ignore[override]  # a property in the place of an attribute
        """The value's."""
        return self.value.shape


@dataclass(frozen=True)
class Position:
    """A place on an axis: ``offset + sign*index``, or ``offset`` alone outside of loops."""

    offset: Dim
    index: Value | None = None
    sign: int = 1


@dataclass(frozen=True)
class Interval:
    """Evenly spaced places on an axis: ``count`` of them from ``start`` with a step; the axis stays."""

    start: Dim
    count: Dim
    step: int = 1

    def is_whole(self, length: Dim) -> bool:
        """Whether it takes all of an axis as it is."""
        return self.start == 0 and self.step == 1 and same_dim(self.count, length)


@dataclass(frozen=True)
class NewAxis:
    """An axis of length 1 that the array has not."""


Place: TypeAlias = "Position | Interval | NewAxis"


@dataclass(frozen=True)
class Index(Expression):
    """``array[places]``, a view: for every axis a position or an interval, and new axes between."""

    array: Expression
    places: tuple[Place, ...]

    @property
    def shape(self) -> Shape:  # type: ignore[override]  # a property in the place of an attribute
        """The lengths of intervals, and 1 for new axes."""
        kept = (p for p in self.places if not isinstance(p, Position))
        return tuple(p.count if isinstance(p, Interval) else 1 for p in kept)


def whole(shape: Shape) -> tuple[Place, ...]:
    """All of every axis."""
    return tuple(Interval(0, length) for length in shape)


def row(array: Expression, position: Position) -> Index:
    """One element of an array along its first axis."""
    return Index(array, (position, *whole(array.shape[1:])))


@dataclass(frozen=True)
class Step(Expression):
    """A position as a number, as a loop's body that counts its steps reads it."""

    position: Position
    shape: Shape = ()


@dataclass(frozen=True)
class Compute(Expression):
    """``op(*args)``; the op is one of the graph's, so that its `evaluate` says what this means.

    Arguments of elementwise ops may have axes of length 1, or lack leading axes: NumPy's broadcasting.
    """

    op: Op
    args: tuple[Expression, ...]
    shape: Shape


def parts(expression: Expression) -> tuple[Expression, ...]:
    """The expressions that an expression is made of."""
    if isinstance(expression, Compute):
        return expression.args
    return (expression.array,) if isinstance(expression, Index) else ()


def with_parts(expression: Expression, new: tuple[Expression, ...]) -> Expression:
    """The same expression of other parts."""
    if new == parts(expression):
        return expression
    if isinstance(expression, Index):
        return replace(expression, array=new[0])
    assert isinstance(expression, Compute)
    return Compute(expression.op, new, expression.shape)


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all its parts, outermost first."""
    waiting = [expression]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(parts(current)))


def values_read(expression: Expression) -> list[Value]:
    """The values that are read, once for each time; loop indices among them."""
    found: list[Value | None] = []
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Read):
            found.append(part.value)
        elif isinstance(part, Compute):
            waiting.extend(part.args[::-1])
        elif isinstance(part, Step):
            found.append(part.position.index)
        elif isinstance(part, Index):
            found += [place.index for place in part.places if isinstance(place, Position)]
            waiting.append(part.array)
    return [value for value in found if value is not None]


def rewrite(expression: Expression, rule: Callable[[Expression], Expression]) -> Expression:
    """The expression with a rule applied to every part, innermost first."""
    old = parts(expression)
    if not old:
        return rule(expression)
    new = tuple([rewrite(part, rule) for part in old])
    return rule(with_parts(expression, new))
