"""The program: inputs, statements, results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from symad.core.dims import Dim
from symad.core.graph import Op, Structure
from symad.numeric.program.expressions import Compute, Expression, Value
from symad.numeric.program.statements import Assign, Block, assignments, change_expressions


@dataclass(frozen=True)
class Program:
    """A function as a sequence of statements.

    Attributes:
        name: the name of the function.
        inputs: one value for each argument; symbols in their shapes are dimensions, bound by the arguments.
        statements: the statements, in order.
        results: the flat results.
        structure: the structure into which the results are packed for the caller.
        labels: names of the results.
        needed: sizes that must not be negative in a call.
        shared: groups of values that share an array in the target; these are not overwritten.
    """

    name: str
    inputs: tuple[Value, ...]
    statements: Block
    results: tuple[Expression, ...]
    structure: Structure
    labels: tuple[str, ...] = ()
    needed: tuple[Dim, ...] = ()
    shared: tuple[tuple[Value, ...], ...] = ()

    @cached_property
    def assigned(self) -> tuple[Assign, ...]:
        """The assignments of all statements, in order, without those of nested blocks."""
        return tuple([made for statement in self.statements for made in assignments(statement)])

    @cached_property
    def assigned_ops(self) -> frozenset[type[Op]]:
        """The classes of the ops whose values are assigned, outside of nested blocks."""
        expressions = [made.expression for made in self.assigned]
        return frozenset([type(e.op) for e in expressions if isinstance(e, Compute)])

    def assigns(self, classes: tuple[type[Op], ...]) -> bool:
        """Whether a value of an op of these classes is assigned, outside of nested blocks."""
        return any(issubclass(kind, classes) for kind in self.assigned_ops)

    def with_statements(self, statements: Block) -> Program:
        """The program with other statements."""
        return self if statements == self.statements else replace(self, statements=statements)

    def sharing(self, groups: Iterable[tuple[Value, ...]]) -> Program:
        """The program with more groups of values that share an array."""
        return replace(self, shared=(*self.shared, *groups))

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Program:
        """The program with ``change`` applied to every expression, results included."""
        made = change_expressions(self.statements, change)
        return replace(self, statements=made, results=tuple(change(r) for r in self.results))
