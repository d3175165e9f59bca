"""The validator of programs: an error names the first statement that is not well formed."""

from __future__ import annotations

from symad.core.dims import dim_symbols, format_shape, same_shape, size
from symad.errors import LoweringError
from symad.numeric.program.expressions import Expression, Index, Read, Value, values_read
from symad.numeric.program.loops import Blocks, DefineFunction, Loop
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
        elif statement.gives:
            self.nested(statement)

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

    def nested(self, statement: Statement) -> None:
        """A statement with a body: what it is given exists there alone."""
        where = ", ".join(map(label, statement.writes)) or "a loop"
        for expression in statement.held(path for path in statement.reads if path not in statement.ends):
            self.readable(expression, where)
        pairs = [(f.value, f.expression) for f in getattr(statement, "fixed", ())]
        carried = statement.carried if isinstance(statement, Loop) else ()
        for value, expression in (*pairs, *((c.value, c.initial) for c in carried)):
            self.fits(value, expression)
        if isinstance(statement, Loop):
            self.rows(statement)
        outside, dims = set(self.known), set(self.dims)
        if isinstance(statement, Blocks):
            self.dims |= {str(statement.rows), str(statement.stop)}
        elif isinstance(statement, DefineFunction):
            self.dims |= {str(statement.steps)}
        for value in statement.held(statement.gives):
            self.define(value)
        self.block(statement.block)
        for expression in statement.held(statement.ends):
            self.readable(expression, where)
        for c in carried:
            self.fits(c.value, c.next)
        self.known, self.dims = outside, dims
        if isinstance(statement, Blocks):
            for value in statement.writes:
                self.readable(Read(value), "a sum over blocks")
        elif isinstance(statement, Loop):
            self.known |= {*statement.writes}
        else:
            self.define(*statement.writes)

    def rows(self, loop: Loop) -> None:
        for row in loop.rows:
            count = 2 if row.alternates else loop.count
            if not same_shape((count, *row.value.shape), row.array.shape):
                self.fail(f"{label(row.value)} is given rows of {format_shape(row.array.shape)}")
