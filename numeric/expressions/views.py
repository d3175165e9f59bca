"""Views as indices: slices, and reshapes that insert or drop axes of length 1. A view of a view is one view.

For example, h[1:][T - 1:T][0] is h[T], and an array reversed twice is the array. `origins` follows views
and loops to the memory that an expression shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from symad.core.dims import Dim, plus, same_dim, times
from symad.numeric.program.expressions import (
    Compute,
    Expression,
    Index,
    NewAxis,
    Place,
    Position,
    Read,
    Span,
    Value,
    parts,
    rewrite,
)
from symad.numeric.program.loops import Loop
from symad.numeric.program.program import Program
from symad.numeric.program.statements import assignments, every_statement
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Reshape, Slice


def join_views(program: Program) -> Program:
    """The program with views as indices, and nested indices joined."""
    return program.with_expressions(lambda expression: rewrite(expression, joined))


def joined(expression: Expression) -> Expression:
    """A view as one index into an array that is no index, if possible; other expressions unchanged."""
    view = as_index(expression)
    if view is None:
        return expression
    if isinstance(view.array, Index):
        places = compose(view.array.places, view.places)
        view = Index(view.array.array, places) if places is not None else view
    shape = view.array.shape
    plain = len(view.places) == len(shape) and all(
        isinstance(p, Span) and p.is_whole(d) for p, d in zip(view.places, shape, strict=True)
    )
    return view.array if plain else view


def as_index(expression: Expression) -> Index | None:
    """A view that NumPy writes as an index; None for other expressions."""
    if isinstance(expression, Index):
        return expression
    if not isinstance(expression, Compute):
        return None
    op = expression.op
    if isinstance(op, Slice):
        axes = zip(op.start, op.count, op.step, strict=True)
        return Index(expression.args[0], tuple(Span(*axis) for axis in axes))
    if isinstance(op, Reshape) and expression.args[0].shape:
        places = unit_axes(expression.args[0].shape, op.shape)
        return Index(expression.args[0], tuple(places)) if places is not None else None
    return None


def unit_axes(old: Sequence[Dim], new: Sequence[Dim]) -> list[Place] | None:
    """The places that insert or drop axes of length 1; None if a reshape does more."""
    places: list[Place] = []
    k = 0
    for dim in new:
        while k < len(old) and old[k] == 1 and dim != 1:
            places.append(Position(0))
            k += 1
        if k < len(old) and same_dim(old[k], dim):
            places.append(Span(0, dim))
            k += 1
        elif dim == 1:
            places.append(NewAxis())
        else:
            return None
    if not all(d == 1 for d in old[k:]):
        return None
    return [*places, *[Position(0)] * (len(old) - k)]


def compose(inner: Sequence[Place], outer: Sequence[Place]) -> tuple[Place, ...] | None:
    """The places of array[inner][outer] as one index; None if there is none."""
    made: list[Place] = []
    waiting = list(outer)

    def take_new() -> None:
        while waiting and isinstance(waiting[0], NewAxis):
            made.append(waiting.pop(0))

    for place in inner:
        if isinstance(place, Position):
            made.append(place)
            continue
        take_new()
        found = _at(place, waiting.pop(0))
        if found is None:
            return None
        made += found
    take_new()
    return tuple(made)


def _at(place: Span | NewAxis, outer: Place) -> list[Place] | None:
    """An axis that the inner index keeps, after its place in the outer index; None if not one index."""
    assert not isinstance(outer, NewAxis)
    if isinstance(place, NewAxis):
        if isinstance(outer, Position):
            return []
        return [place] if outer.is_whole(1) else None
    if isinstance(outer, Span):
        start = plus(place.start, times(outer.start, place.step))
        return [Span(start, outer.count, place.step * outer.step)]
    if outer.index is not None and place.step not in (1, -1):
        return None
    offset = plus(place.start, times(outer.offset, place.step))
    return [Position(offset, outer.index, outer.sign * (1 if place.step > 0 else -1))]


def is_view(expression: Expression) -> bool:
    """Whether an expression shows elements of its argument and computes nothing."""
    if isinstance(expression, Index):
        return True
    return isinstance(expression, Compute) and (
        isinstance(expression.op, (Slice, Reshape))
        or (isinstance(expression.op, Einsum) and len(expression.args) == 1 and _moves(expression.op))
    )


def viewed(expression: Expression) -> Expression:
    """The array of a view, through all nested views; other expressions unchanged."""
    return _first_view(expression)[0]


def _first_view(expression: Expression) -> tuple[Expression, Expression | None]:
    """The array of a view, and the innermost view; no view for other expressions."""
    view = None
    while is_view(expression):
        view, (expression, *_) = expression, parts(expression)
    return expression, view


def _moves(op: Einsum) -> bool:
    """Whether a contraction of one array sums nothing: it permutes axes or takes a diagonal."""
    return set(op.inputs[0]) == set(op.output) and len(set(op.output)) == len(op.output)


# ---- where the memory of an expression comes from, through views and loops -----------------------


@dataclass(frozen=True)
class Shown:
    """Memory that an expression may show: ``made`` allocates it or is a constant.

    ``value`` is the first value that shows it; None if the expression itself makes it. For arguments and
    arrays that statements fill, ``made`` reads the value. ``view`` is the part of it that is shown.
    """

    value: Value | None
    made: Expression
    view: Expression | None

    def is_apart(self, other: Shown) -> bool:
        """Whether both are parts of one value without a common element."""
        pairs = zip(_spans(self.view), _spans(other.view), strict=False)
        return any(a and b and (a[1] <= b[0] or b[1] <= a[0]) for a, b in pairs)


def shown_by(program: Program) -> Mapping[Value, Sequence[Expression]]:
    """For each value that statements assign, the expressions whose memory it may show."""
    found: dict[Value, list[Expression]] = {}
    for statement in every_statement(program.statements):
        for each in assignments(statement):
            place = each.expression if each.over is None else Read(each.over)
            found.setdefault(each.value, []).append(place)
        if isinstance(statement, Loop):
            for carried in statement.carried:
                found.setdefault(carried.value, []).extend((carried.initial, carried.next))
            for row in statement.rows:
                found.setdefault(row.value, []).append(row.array)
            for fixed in statement.fixed:
                found.setdefault(fixed.value, []).append(fixed.expression)
    return found


def origins(expression: Expression, given: Mapping[Value, Sequence[Expression]]) -> Iterator[Shown]:
    """All memory that an expression may show, where ``given`` is `shown_by` of its program.

    A value that a loop carries shows its first value, after no step, or the next value of a step.
    """
    waiting: list[tuple[Value | None, Expression, Expression | None]] = [(None, expression, None)]
    seen: set[Value] = set()
    while waiting:
        value, outer, around = waiting.pop()
        inner, view = _first_view(outer)
        if not isinstance(inner, Read):
            yield Shown(value, inner, view or around)
        elif inner.value not in given:
            yield Shown(inner.value, inner, view)
        elif inner.value not in seen:
            seen.add(inner.value)
            waiting += [(inner.value, each, view) for each in given[inner.value]]


def _spans(view: Expression | None) -> list[tuple[int, int] | None]:
    """The first position of a slice and the one after its last on each axis, where they are known."""
    op = view.op if isinstance(view, Compute) else None
    if not isinstance(op, Slice) or {*op.step} != {1}:
        return []
    pairs = zip(op.start, op.count, strict=True)
    return [(a, a + n) if isinstance(a, int) and isinstance(n, int) else None for a, n in pairs]
