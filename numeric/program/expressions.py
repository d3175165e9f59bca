"""Expressions: trees of ops over named values, without side effects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import TypeAlias

import sympy

from symad.core.dims import Dim, Shape, same_dim
from symad.core.graph import Op
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import Constant, constant


@dataclass(frozen=True, eq=False)
class Value:
    """One array of a program. Two values are the same if they are one object.

    ``stem`` is a name stem, or empty; names are chosen when the program is printed. A ``named`` value keeps a
    statement of its own, as results do.
    """

    stem: str
    shape: Shape
    named: bool = False


class Expression:
    """The base class of `Read`, `Index`, `Compute` and `StepNumber`."""

    __slots__ = ()
    shape: Shape


@dataclass(frozen=True)
class Read(Expression):
    """The array of a value."""

    value: Value

    @property
    def shape(self) -> Shape:  # type: ignore[override]  # a property in the place of an attribute
        """The shape of the value."""
        return self.value.shape


@dataclass(frozen=True)
class Position:
    """A position on an axis: ``offset + sign*index``, or ``offset`` without a loop's index."""

    offset: Dim
    index: Value | None = None
    sign: int = 1


@dataclass(frozen=True)
class Span:
    """``count`` evenly spaced positions on an axis, from ``start`` with a step. The axis stays."""

    start: Dim
    count: Dim
    step: int = 1

    def is_whole(self, length: Dim) -> bool:
        """Whether it contains all positions of the axis in order."""
        return self.start == 0 and self.step == 1 and same_dim(self.count, length)


@dataclass(frozen=True)
class NewAxis:
    """An inserted axis of length 1."""


Place: TypeAlias = "Position | Span | NewAxis"


@dataclass(frozen=True)
class Index(Expression):
    """``array[places]``, a view: a position or an interval for each axis of the array, and new axes."""

    array: Expression
    places: tuple[Place, ...]

    @property
    def shape(self) -> Shape:  # type: ignore[override]  # a property in the place of an attribute
        """The lengths of the intervals, and 1 for new axes."""
        kept = (p for p in self.places if not isinstance(p, Position))
        return tuple(p.count if isinstance(p, Span) else 1 for p in kept)


def whole(shape: Shape) -> tuple[Place, ...]:
    """The index of a whole array."""
    return tuple(Span(0, length) for length in shape)


def row(array: Expression, position: Position) -> Index:
    """One element of an array along its first axis."""
    return Index(array, (position, *whole(array.shape[1:])))


@dataclass(frozen=True)
class StepNumber(Expression):
    """A position as a number, for a loop's body that reads the number of its step."""

    position: Position
    shape: Shape = ()


@dataclass(frozen=True)
class Compute(Expression):
    """``op(*args)``, where the op is an op of graphs; its `evaluate` defines the value.

    Arguments of elementwise ops are broadcast as in NumPy. ``functions``: those of the program that compute
    the graphs inside the op.
    """

    op: Op
    args: tuple[Expression, ...]
    shape: Shape
    functions: tuple[Value, ...] = ()


ZERO = Compute(constant(0).op, (), ())


def zeros(shape: Shape) -> Compute:
    """An array of zeros."""
    return Compute(Broadcast(shape, ()), (ZERO,), shape)


def op_in(expression: Expression) -> Op | None:
    """The op of an expression that computes; None for others."""
    return expression.op if isinstance(expression, Compute) else None


def parts(expression: Expression) -> tuple[Expression, ...]:
    """The direct subexpressions of an expression."""
    if isinstance(expression, Compute):
        return expression.args
    return (expression.array,) if isinstance(expression, Index) else ()


def with_parts(expression: Expression, new: tuple[Expression, ...]) -> Expression:
    """The expression with other direct subexpressions."""
    if new == parts(expression):
        return expression
    if isinstance(expression, Index):
        return replace(expression, array=new[0])
    assert isinstance(expression, Compute)
    return Compute(expression.op, new, expression.shape, expression.functions)


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all its subexpressions, outermost first."""
    waiting = [expression]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(parts(current)))


def values_read(expression: Expression) -> tuple[Value, ...]:
    """The values that an expression reads, loop indices too, once for each read."""
    known: tuple[Value, ...] | None = expression.__dict__.get("_values_read")
    if known is not None:
        return known
    found: list[Value | None] = []
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Read):
            found.append(part.value)
        elif isinstance(part, Compute):
            waiting += part.args[::-1]
            found += part.functions
        elif isinstance(part, StepNumber):
            found.append(part.position.index)
        elif isinstance(part, Index):
            found += [place.index for place in part.places if isinstance(place, Position)]
            waiting.append(part.array)
    values = tuple([value for value in found if value is not None])
    expression.__dict__["_values_read"] = values  # most passes ask for every statement
    return values


def rewrite(expression: Expression, rule: Callable[[Expression], Expression]) -> Expression:
    """The expression with a rule applied to every subexpression, innermost first."""
    old = parts(expression)
    if not old:
        return rule(expression)
    new = tuple([rewrite(part, rule) for part in old])
    return rule(with_parts(expression, new))


# ---- numbers of the host language in printed code ------------------------------------------------


def is_number(expression: Expression, made: Mapping[Value, Expression] = MappingProxyType({})) -> bool:
    """Whether an expression consists of constants and dimensions, and elementwise ops of them.

    ``made``: what values were assigned; others are no numbers.
    """
    while isinstance(expression, Read) and expression.value in made and not expression.shape:
        expression = made[expression.value]
    if not isinstance(expression, Compute):
        return False
    if expression.op.literal:
        return True
    return isinstance(expression.op, ElementwiseOp) and all(is_number(a, made) for a in expression.args)


def literal(expression: Expression) -> int | float | Fraction | sympy.Expr | bool | None:
    """The value of a constant; None for other expressions."""
    if isinstance(expression, Compute) and isinstance(expression.op, Constant):
        value: int | float | Fraction | sympy.Expr | bool = expression.op.value
        return value
    return None
