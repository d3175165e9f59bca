"""A slice that is reshaped only to drop axes of length 1 is one view: ``h[T - 1]``, not ``h[T - 1:][0]``."""

from __future__ import annotations

from symad.numeric.expressions.views import unit_axes
from symad.numeric.program.expressions import Compute, Expression, NewAxis, Read, Value, op_in, values_read
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, every_statement
from symad.ops.basic.shaping import Reshape, Slice


def join_slices(program: Program) -> Program:
    """The program whose slices are inside the reshapes that read them, if nothing else reads them."""
    pairs = ((made.value, made.expression) for made in program.assigned)
    slices = {value: made for value, made in pairs if isinstance(op_in(made), Slice)}
    if not slices:
        return program
    read = {v for r in program.results for v in values_read(r)}
    for statement in every_statement(program.statements):
        for expression in statement.expressions:
            if not _drops_axes(expression, slices):
                read.update(values_read(expression))
        if isinstance(statement, Assign) and statement.over is not None:
            read |= {statement.value, statement.over}
    inside = {Read(value): made for value, made in slices.items() if value not in read}

    def change(expression: Expression) -> Expression:
        if isinstance(expression, Compute) and expression.args and expression.args[0] in inside:
            return Compute(expression.op, (inside[expression.args[0]],), expression.shape)
        return expression

    kept = [s for s in program.statements if not (isinstance(s, Assign) and Read(s.value) in inside)]
    return program.with_statements(tuple(s.with_expressions(change) for s in kept))


def _drops_axes(expression: Expression, slices: dict[Value, Expression]) -> bool:
    """Whether an expression is a slice without some axes of length 1."""
    if not isinstance(expression, Compute) or not isinstance(expression.op, Reshape):
        return False
    (arg,) = expression.args
    kept = unit_axes(arg.shape, expression.shape) if isinstance(arg, Read) and arg.value in slices else None
    return kept is not None and not any(isinstance(place, NewAxis) for place in kept)
