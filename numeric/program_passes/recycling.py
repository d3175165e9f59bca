"""Which new arrays are so large that their memory is kept from call to call.

The system gives large blocks of memory page by page, at their first use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import sympy

from symad.core.dims import Shape
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Statement, Together
from symad.numeric.program_passes.memory import shown

SMALLEST = 1 << 16
"""Bytes from which memory is worth keeping: the C library has smaller blocks at hand."""


def keep_memory(program: Program, itemsize: int, bounds: Mapping[sympy.Symbol, int]) -> Program:
    """The program with `kept` memory of results, where they are large.

    Args:
        program: in which is said what is written over what.
        itemsize: bytes of an element.
        bounds: the largest values of sizes that change from step to step.
    """

    def kept(statement: Statement) -> Statement:
        if isinstance(statement, Together):
            return replace(statement, assignments=tuple(map(assign, statement.assignments)))
        if isinstance(statement, Assign):
            return assign(statement)
        if isinstance(statement, Allocate) and not statement.zeros:
            large = is_large(statement.value.shape, itemsize, bounds)
            return replace(statement, kept=statement.kept or large)
        return statement

    def assign(made: Assign) -> Assign:
        large = is_large(made.value.shape, itemsize, bounds)
        return replace(made, kept=True) if large and shown(made.expression) is None else made

    return program.with_statements(tuple(map(kept, program.statements)))


def is_large(shape: Shape, itemsize: int, bounds: Mapping[sympy.Symbol, int]) -> bool:
    """Whether an array is known to be so large that its memory is kept."""
    return most_elements(shape, bounds) * itemsize >= SMALLEST


def most_elements(shape: Shape, bounds: Mapping[sympy.Symbol, int]) -> int:
    """The largest number of elements of an array; 0 if it is not known."""
    lengths = [d if isinstance(d, int) else d.subs(bounds) for d in shape]
    return prod(map(int, lengths)) if all(getattr(d, "is_Integer", True) for d in lengths) else 0
