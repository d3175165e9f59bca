"""Marks new arrays that are so large that their memory is kept from call to call.

The operating system maps new large blocks of memory page by page, at the first use of each page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from math import prod

import sympy

from symad.core.dims import Shape
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Statement, Together
from symad.numeric.program_passes.memory.allocation import shown

MIN_KEPT_BYTES = 1 << 16
"""The smallest size in bytes of an array whose memory is kept; the C library keeps smaller blocks itself.

In one expression, kept memory takes 1.2 times as long as new memory at 4 KiB, 0.7 at 16 KiB, and 0.4 at
256 KiB (bench_thresholds.py, "kept"). In the steps of loops, the C library gives the same block each time:
with 16 KiB, the gradient of an LSTM in single precision takes 1.08 times as long, with 32 KiB 1.05
(benchmarks/before_after.py).
"""


def keep_memory(program: Program, itemsize: int, bounds: Mapping[sympy.Symbol, int]) -> Program:
    """The program whose large arrays have memory that is ``kept``.

    Args:
        program: a program after `write_over`.
        itemsize: bytes of an element.
        bounds: the largest values of dimensions that change from step to step.
    """

    @cache
    def large(shape: Shape) -> bool:
        return is_large(shape, itemsize, bounds)

    def kept(statement: Statement) -> Statement:
        if isinstance(statement, Together):
            return replace(statement, assignments=tuple(map(assign, statement.assignments)))
        if isinstance(statement, Assign):
            return assign(statement)
        if isinstance(statement, Allocate) and not statement.zeros:
            return replace(statement, kept=statement.kept or large(statement.value.shape))
        return statement

    def assign(made: Assign) -> Assign:
        new = large(made.value.shape) and shown(made.expression) is None
        return Assign(made.value, made.expression, made.over, kept=True) if new else made

    return program.with_statements(tuple(map(kept, program.statements)))


def is_large(shape: Shape, itemsize: int, bounds: Mapping[sympy.Symbol, int]) -> bool:
    """Whether an array certainly has at least `MIN_KEPT_BYTES`."""
    return most_elements(shape, bounds) * itemsize >= MIN_KEPT_BYTES


def most_elements(shape: Shape, bounds: Mapping[sympy.Symbol, int]) -> int:
    """The largest number of elements of an array; 0 if unknown."""
    lengths = [d if isinstance(d, int) else d.subs(bounds) for d in shape]
    return prod(map(int, lengths)) if all(getattr(d, "is_Integer", True) for d in lengths) else 0
