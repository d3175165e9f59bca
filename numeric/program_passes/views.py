"""Views of views as one: h[1:][T - 1:T] is h[T:T + 1], and what is turned around twice is as it was."""

from __future__ import annotations

from symad.dims import Dim, plus, same_dim, same_shape, times
from symad.numeric.program.expressions import Compute, Expression, Position, Row, rewrite
from symad.numeric.program.program import Program
from symad.ops.contraction import Einsum
from symad.ops.shaping import Reshape, Slice


def join_views(program: Program) -> Program:
    """The program with nested views joined everywhere."""
    return program.with_expressions(lambda expression: rewrite(expression, joined))


def joined(expression: Expression) -> Expression:
    """One view in the place of a view of a view; other expressions as they are."""
    if isinstance(expression, Row):
        return _row(expression)
    if not isinstance(expression, Compute) or len(expression.args) != 1:
        return expression
    (inner,) = expression.args
    if isinstance(expression.op, Slice):
        return _slice(expression.op, expression, inner)
    if isinstance(expression.op, Reshape):
        return _reshape(expression, inner)
    return expression


def _slice(op: Slice, expression: Compute, inner: Expression) -> Expression:
    if isinstance(inner, Compute) and isinstance(inner.op, Slice):
        start = tuple(plus(a, times(b, s)) for a, b, s in zip(inner.op.start, op.start, inner.op.step, strict=True))
        step = tuple(a * b for a, b in zip(inner.op.step, op.step, strict=True))
        return _slice(Slice(start, op.count, step), expression, inner.args[0])
    whole = all(s == 0 for s in op.start) and all(s == 1 for s in op.step)
    if whole and same_shape(op.count, inner.shape):
        return inner
    return Compute(op, (inner,), expression.shape)


def _reshape(expression: Compute, inner: Expression) -> Expression:
    """A reshape of a reshape; a slice of one row without its axis is the row."""
    if same_shape(expression.shape, inner.shape):
        return inner
    if not isinstance(inner, Compute):
        return expression
    if isinstance(inner.op, Reshape):
        return joined(Compute(expression.op, inner.args, expression.shape))
    if isinstance(inner.op, Slice) and same_shape(expression.shape, inner.shape[1:]) and inner.shape[0] == 1:
        rest = inner.op
        row = Row(inner.args[0], Position(rest.start[0]))
        if not row.shape:
            return row
        return joined(Compute(Slice(rest.start[1:], rest.count[1:], rest.step[1:]), (row,), expression.shape))
    return expression


def _row(expression: Row) -> Expression:
    """A row of a slice is a row of the array."""
    inner, position = expression.array, expression.position
    if not isinstance(inner, Compute) or not isinstance(inner.op, Slice):
        return expression
    op = inner.op
    if not all(map(_is_whole, op.start[1:], op.count[1:], op.step[1:], inner.args[0].shape[1:])):
        return expression
    step = op.step[0]
    if step not in (1, -1):
        return expression
    offset = plus(op.start[0], times(position.offset, step))
    return joined(Row(inner.args[0], Position(offset, position.index, position.sign * step)))


def _is_whole(start: Dim, count: Dim, step: int, length: Dim) -> bool:
    return start == 0 and step == 1 and same_dim(count, length)


def is_view(expression: Expression) -> bool:
    """Whether an expression shows elements of its argument without computing anything."""
    if isinstance(expression, Row):
        return True
    return isinstance(expression, Compute) and (
        isinstance(expression.op, (Slice, Reshape))
        or (isinstance(expression.op, Einsum) and len(expression.args) == 1 and _permutes(expression.op))
    )


def _permutes(op: Einsum) -> bool:
    return sorted(op.inputs[0]) == sorted(op.output) and len(set(op.output)) == len(op.output)
