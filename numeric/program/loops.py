"""Statements with a body: loops over steps, over blocks of rows, until a root is found; and functions.

Functions are called by ops such as `Remat`. Their values are freed when a call returns.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy

from symad.core.dims import Dim
from symad.numeric.program.expressions import Expression, Value
from symad.numeric.program.statements import Block, Statement


@dataclass(frozen=True)
class Carried:
    """A value that each step of a loop reads and replaces: first ``initial``, then ``next`` of the step.

    ``place``: the row in which the step computes ``next``, if it has one.
    """

    value: Value
    initial: Expression
    next: Expression
    place: Value | None = None


@dataclass(frozen=True)
class LoopRow:
    """In step t, ``value`` is row t of an array: a view, which the step fills if ``filled``, else reads.

    If ``alternates``, the array has two rows, and ``value`` is row t mod 2: the other row keeps what the step
    before has written. ``strides``: the distances in memory from element to element along each axis, in
    elements; None if all are adjacent.
    """

    value: Value
    array: Expression
    filled: bool = False
    alternates: bool = False
    strides: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Fixed:
    """A value of a loop's body that does not change from step to step."""

    value: Value
    expression: Expression


@dataclass(frozen=True)
class Loop(Statement):
    """The body for index = 0 … count − 1, or from the last to the first.

    All carried values are replaced at once at the end of a step; after the loop they have their last value.
    ``rows`` and ``fixed`` are values of the body alone. If ``compiled``, the loop is a function in C, and the
    body has one statement for each op or kernel.
    """

    reads = (("carried", "initial"), ("carried", "next"), ("rows", "array"), ("fixed", "expression"))
    ends = (("carried", "next"),)
    makes = (("carried", "value"),)
    gives = (("index",), ("carried", "value"), ("rows", "value"), ("fixed", "value"))

    index: Value
    count: Dim
    backwards: bool
    carried: tuple[Carried, ...]
    body: Block
    rows: tuple[LoopRow, ...] = ()
    fixed: tuple[Fixed, ...] = ()
    compiled: bool = False


@dataclass(frozen=True)
class PartOfBlock:
    """In each step, ``value`` is a view of an array: a step can write to it.

    Along ``axis`` it shows the rows of the block, along ``column`` the elements up to the last row of the
    block, along other axes all elements. If ``flat``, it is reshaped to one axis.
    """

    value: Value
    array: Expression
    axis: int | None
    column: int | None = None
    flat: bool = False


@dataclass(frozen=True)
class Added:
    """Each step adds ``expression`` to ``value``; with ``column``, up to the last row of the block."""

    value: Value
    expression: Expression
    column: int | None = None


@dataclass(frozen=True)
class Blocks(Statement):
    """A loop over blocks of ``height`` rows out of ``length``; the last block may have fewer rows.

    In the body, the dimension ``rows`` is the number of rows of the block, and ``stop`` is the index after
    its last row. ``parts`` and ``fixed`` exist only in the body.
    """

    reads = (("parts", "array"), ("fixed", "expression"), ("added", "expression"))
    ends = (("added", "expression"),)
    makes = (("added", "value"),)
    gives = (("parts", "value"), ("fixed", "value"))

    length: Dim
    height: int
    rows: sympy.Symbol
    stop: sympy.Symbol
    parts: tuple[PartOfBlock, ...]
    fixed: tuple[Fixed, ...]
    body: Block
    added: tuple[Added, ...]


@dataclass(frozen=True)
class FindRoot(Statement):
    """value = the solution x of residual(x) = 0 by Newton's method from a guess.

    The body computes, from ``unknown``, the values that ``residual`` (n,) and ``slope`` = ∂residual/∂x (n, n)
    read.
    """

    reads = (("guess",), ("residual",), ("slope",))
    ends = (("residual",), ("slope",))
    gives = (("unknown",),)

    value: Value
    unknown: Value
    guess: Expression
    body: Block
    residual: Expression
    slope: Expression


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

    reads = (("fixed", "expression"), ("results",))
    ends = (("results",),)
    gives = (("parameters",), ("fixed", "value"))

    value: Value
    parameters: tuple[Value, ...]
    fixed: tuple[Fixed, ...]
    body: Block
    results: tuple[Expression, ...]
    copied: tuple[bool, ...]
    steps: sympy.Symbol | None = None
    repeated: bool = True
