"""The program: inputs, statements, results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from symad.core.dims import Dim
from symad.core.graph import Structure
from symad.numeric.program.expressions import Expression, Value
from symad.numeric.program.statements import Block, change_expressions


@dataclass(frozen=True)
class Program:
    """A function as statements.

    Attributes:
        name: the function's.
        inputs: one value for each argument; symbols in their shapes are dimensions, bound by the arguments.
        statements: what is done, in order.
        results: the flat results.
        structure: how they are packed for the caller.
        labels: names of the results, for people.
        needed: sizes that must not be negative in a call.
        shared: groups of values that the target lays out in one array; nothing is written over them.
    """

    name: str
    inputs: tuple[Value, ...]
    statements: Block
    results: tuple[Expression, ...]
    structure: Structure
    labels: tuple[str, ...] = ()
    needed: tuple[Dim, ...] = ()
    shared: tuple[tuple[Value, ...], ...] = ()

    def with_statements(self, statements: Block) -> Program:
        """The same function by other statements."""
        return replace(self, statements=statements)

    def sharing(self, groups: Iterable[tuple[Value, ...]]) -> Program:
        """The same function, where these values are laid out in one array, too."""
        return replace(self, shared=(*self.shared, *groups))

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Program:
        """The program with every expression changed, results included."""
        made = change_expressions(self.statements, change)
        return replace(self, statements=made, results=tuple(change(r) for r in self.results))
