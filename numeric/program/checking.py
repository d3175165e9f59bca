"""The validator of programs: an error names the first statement that is not well formed."""

from __future__ import annotations

from symad.core.dims import dim_symbols, format_shape, same_shape, size
from symad.errors import LoweringError
from symad.numeric.program.expressions import Expression, Index, Read, Value, values_read
from symad.numeric.program.loops import Blocks, DefineFunction, FindRoot, Loop
from symad.numeric.program.program import Program
from symad.numeric.program.statements import (
    Allocate,
    Assign,
    Block,
    Free,
    Scatter,
    Section,
    Statement,
    Store,
    Together,
)


def check_program(program: Program) -> None:
    """Check that a program is well formed.

    Every value is defined once, before it is read; shapes are equal where they must be; inputs bind all
    dimensions.

    Raises:
        LoweringError: a statement breaks a rule, by a mistake of a pass, not of the user.
    """
    dims = {s for value in program.inputs for s in dim_symbols(value.shape)}
    checker = _Checker(program.name, {str(s) for s in dims})
    for value in program.inputs:
        checker.define(value)
    checker.block(program.statements)
    for result in program.results:
        checker.readable(result, "the result")


def label(value: Value) -> str:
    """The text for a value in an error message."""
    return f"{value.stem or 'a value'} {format_shape(value.shape)}"


def shown_array(expression: Expression) -> Value | None:
    """The array that an index is a view of; None for other expressions."""
    array = expression.array if isinstance(expression, Index) else None
    return array.value if isinstance(array, Read) else None


class _Checker:
    """The checks, with the values that are known so far."""

    def __init__(self, program: str, dims: set[str]) -> None:
        self.program = program
        self.dims = dims
        self.known: set[Value] = set()
        self.defined: set[Value] = set()
        self.arrays: set[Value] = set()

    def fail(self, what: str) -> None:
        raise LoweringError(f"program {self.program}: {what}")

    def define(self, value: Value) -> None:
        if value in self.defined:
            self.fail(f"{label(value)} is defined twice")
        unknown = {str(s) for s in dim_symbols(value.shape)} - self.dims
        if unknown:
            self.fail(f"{label(value)}:  no input binds {unknown}")
        self.defined.add(value)
        self.known.add(value)

    def readable(self, expression: Expression, where: str) -> None:
        for value in values_read(expression):
            if value not in self.known:
                self.fail(f"{where} reads {label(value)} before it is written")

    def end(self, value: Value, where: str) -> None:
        self.readable(Read(value), where)
        self.known.discard(value)

    def block(self, block: Block) -> None:
        for statement in block:
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        if isinstance(statement, Assign):
            self.readable(statement.expression, label(statement.value))
            self.assigned(statement)
        elif isinstance(statement, Free):
            for value in statement.values:
                self.end(value, "what is freed")
        elif isinstance(statement, Together):
            for inner in statement.assignments:
                self.readable(inner.expression, label(inner.value))
            for inner in statement.assignments:
                self.assigned(inner)
        elif isinstance(statement, Section):
            self.block(statement.body)
        elif isinstance(statement, Allocate):
            self.define(statement.value)
            self.arrays.add(statement.value)
        elif isinstance(statement, Store):
            self.store(statement)
        elif isinstance(statement, Scatter):
            self.scatter(statement)
        elif isinstance(statement, Loop):
            self.loop(statement)
        elif isinstance(statement, Blocks):
            self.blocks(statement)
        elif isinstance(statement, FindRoot):
            self.root(statement)
        elif isinstance(statement, DefineFunction):
            self.function(statement)

    def assigned(self, statement: Assign) -> None:
        self.fits(statement.value, statement.expression)
        if statement.over is not None:
            self.end(statement.over, label(statement.value))
            self.fits(statement.over, statement.expression)
        self.define(statement.value)
        if shown_array(statement.expression) in self.arrays:
            self.arrays.add(statement.value)

    def fits(self, value: Value, expression: Expression) -> None:
        if not same_shape(value.shape, expression.shape):
            shapes = f"is given {format_shape(expression.shape)}"
            self.fail(f"{label(value)} {shapes}")

    def store(self, statement: Store) -> None:
        array, index = statement.array, statement.position.index
        self.readable(statement.expression, f"{label(array)}[...]")
        self.allocated(array)
        if index is not None and index not in self.known:
            self.fail(f"{label(array)} is stored to at {label(index)}, which is no index here")
        self.fits(Value(array.stem, array.shape[1:]), statement.expression)

    def scatter(self, statement: Scatter) -> None:
        array, made, count = statement.array, statement.expression, statement.places.shape[0]
        self.readable(made, f"{label(array)}[...]")
        self.allocated(array)
        if made.shape and size(made.shape) != count:
            self.fail(f"{label(array)} is given {format_shape(made.shape)} for {count} elements")

    def allocated(self, array: Value) -> None:
        if array not in self.arrays:
            self.fail(f"{label(array)} is stored to, but was never allocated")

    def loop(self, statement: Loop) -> None:
        for carried in statement.carried:
            self.readable(carried.initial, label(carried.value))
            self.fits(carried.value, carried.initial)
        for fixed in statement.fixed:
            self.readable(fixed.expression, label(fixed.value))
            self.fits(fixed.value, fixed.expression)
        for each in statement.rows:
            self.readable(each.array, label(each.value))
            count = 2 if each.alternates else statement.count
            if not same_shape((count, *each.value.shape), each.array.shape):
                self.fail(f"{label(each.value)} is given rows of {format_shape(each.array.shape)}")
        outside = set(self.known)
        self.define(statement.index)
        given = [*(row.value for row in statement.rows), *(fixed.value for fixed in statement.fixed)]
        for value in (*statement.writes, *given):
            self.define(value)
        self.block(statement.body)
        for carried in statement.carried:
            self.readable(carried.next, label(carried.value))
            self.fits(carried.value, carried.next)
        self.known = outside | set(statement.writes)

    def blocks(self, statement: Blocks) -> None:
        outside = set(self.known)
        self.dims |= {str(statement.rows), str(statement.stop)}
        for fixed in statement.fixed:
            self.readable(fixed.expression, label(fixed.value))
            self.fits(fixed.value, fixed.expression)
        for part in statement.parts:
            self.readable(part.array, label(part.value))
        for value in (*(p.value for p in statement.parts), *(f.value for f in statement.fixed)):
            self.define(value)
        self.block(statement.body)
        for added in statement.added:
            self.readable(added.expression, label(added.value))
            self.readable(Read(added.value), "a sum over blocks")
        self.known = outside

    def function(self, statement: DefineFunction) -> None:
        for fixed in statement.fixed:
            self.readable(fixed.expression, label(fixed.value))
            self.fits(fixed.value, fixed.expression)
        outside, dims = set(self.known), set(self.dims)
        self.dims |= {str(statement.steps)}
        for value in (*statement.parameters, *(fixed.value for fixed in statement.fixed)):
            self.define(value)
        self.block(statement.body)
        for result in statement.results:
            self.readable(result, f"a result of {label(statement.value)}")
        self.known, self.dims = outside, dims
        self.define(statement.value)

    def root(self, statement: FindRoot) -> None:
        self.readable(statement.guess, label(statement.value))
        outside = set(self.known)
        self.define(statement.unknown)
        self.block(statement.body)
        self.readable(statement.residual, label(statement.value))
        self.readable(statement.slope, label(statement.value))
        self.known = outside
        self.define(statement.value)
