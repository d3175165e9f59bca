"""Functions inside a program, which ops such as `Remat` call. Their values are freed when a call returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import sympy

from symad.numeric.program.expressions import Expression, Value
from symad.numeric.program.loops import Fixed
from symad.numeric.program.statements import Block, Statement


@dataclass(frozen=True)
class DefineFunction(Statement):
    """A function of the ``parameters``; a `Compute` calls it by ``value``.

    Attributes:
        value: the function itself.
        parameters: the values that a call gives.
        fixed: values of the body that are the same in every call.
        body: the statements.
        results: what a call returns.
        copied: for each result whether a call returns a copy, as it may be a view of a parameter.
        steps: a dimension that each call binds: the length of the first axis of parameters.
        repeated: whether the function is called many times.
    """

    value: Value
    parameters: tuple[Value, ...]
    fixed: tuple[Fixed, ...]
    body: Block
    results: tuple[Expression, ...]
    copied: tuple[bool, ...]
    steps: sympy.Symbol | None = None
    repeated: bool = True

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The fixed values and the results."""
        return (*(fixed.expression for fixed in self.fixed), *self.results)

    @property
    def writes(self) -> tuple[Value, ...]:
        """The function."""
        return (self.value,)

    @property
    def block(self) -> Block:
        """The body."""
        return self.body

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Statement:
        """The function with ``change`` applied to its own expressions."""
        fixed = tuple(Fixed(f.value, change(f.expression)) for f in self.fixed)
        return replace(self, fixed=fixed, results=tuple(map(change, self.results)))

    def with_block(self, block: Block) -> Statement:
        """The function with another body."""
        return replace(self, body=block)
