"""Questions about memory: which values are views, which allocate, and which operands may be overwritten."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import sympy

from symad.core.dims import Shape
from symad.core.graph import Node, Op
from symad.core.nodes import Moved
from symad.core.questions import question
from symad.higher_order.scan import LoopOp
from symad.numeric.fusion.nest import Nest
from symad.numeric.passes.algebra.block_matrices import AddDiagonal
from symad.numeric.passes.bodies import RowBlocks
from symad.numeric.passes.memory_layout.memory_spans import Cleared, Spread
from symad.numeric.passes.memory_layout.pads import Overlay
from symad.numeric.program.expressions import Compute, Expression, Index, Read, Value, literal
from symad.numeric.program.program import Program
from symad.numeric.targets.target import NUMPY
from symad.ops.arrays.softmax import (
    LogSoftmax,
    LogSoftmaxCotangent,
    LogSoftmaxTangent,
    Softmax,
    SoftmaxTangent,
    TangentOp,
)
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Pad, Reshape, Slice
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Condition, Select
from symad.ops.sparse.csr import CompressedRows
from symad.sympy_functions.scalar_functions import relu, sigmoid, silu, softplus

Computed: TypeAlias = "Node | Compute"
"""An op with its arguments and its shape."""

FRESH = (
    Add, Mul, Pow, Pad, Concatenate, Stack, Softmax, LogSoftmax, SoftmaxTangent, LogSoftmaxTangent,
    LogSoftmaxCotangent, LoopOp, RowBlocks, Cleared, Overlay,
)  # fmt: skip
"""Ops whose result is a new array of floats; it may be overwritten."""


def is_view(array: Computed) -> bool:
    """Whether an array shares the memory of its argument."""
    return array.op.moves <= Moved.SOME or isinstance(array.op, Spread)


def shown(expression: Expression) -> Value | None:
    """The value whose memory an expression shares; None if it allocates."""
    if isinstance(expression, Read):
        return expression.value
    held = expression.__dict__
    if "_shown" not in held:  # kept: the passes on memory ask for every statement
        held["_shown"] = _shown(expression)
    found: Value | None = held["_shown"]
    return found


def _shown(expression: Expression) -> Value | None:
    if isinstance(expression, Index):
        return shown(expression.array)
    views = isinstance(expression, Compute) and (is_view(expression) or _holds_entries(expression))
    return shown(expression.args[0]) if views and isinstance(expression, Compute) else None


def _holds_entries(expression: Compute) -> bool:
    """Whether a sparse matrix may contain its array of entries without a copy."""
    op = expression.op
    return isinstance(op, CompressedRows) and len(op.places) == 1 and bool(expression.args[0].shape)


def keeping(program: Program) -> Callable[[Expression], Value | None]:
    """A function from expressions of a program to the value whose memory they certainly share.

    It returns None for a reshaped view, which may be a copy.
    """
    views = {made.value for made in program.assigned if shown(made.expression) is not None}

    def kept(expression: Expression) -> Value | None:
        base = shown(expression)
        again = isinstance(expression, Compute) and isinstance(expression.op, Reshape) and base in views
        return None if again else base

    return kept


def is_fresh(array: Computed) -> bool:
    """Whether the op of an array allocates a new array of floats."""
    op = array.op
    if isinstance(op, Apply):
        return op.head in (relu, sigmoid, silu, softplus, sympy.sech) or ufunc_name(op.head) is not None
    if isinstance(op, Select):
        return any(a.shape for a in array.args[1:])
    if isinstance(op, Nest):
        condition = isinstance(op.body.output_nodes[op.index].op, Condition)
        return not condition and not (op.axes and not array.shape)  # a sum may be a number
    return isinstance(op, FRESH) or (isinstance(op, Einsum) and not is_view(array))


def leaves_gaps(array: Computed) -> bool:
    """Whether a view is not contiguous in memory, so that operations on it are slower."""
    op = array.op
    if isinstance(op, Slice):
        inner = zip(op.count[1:], array.args[0].shape[1:], strict=True)
        return any(c != d for c, d in inner) or any(step != 1 for step in op.step)
    return isinstance(op, Spread)


def is_long(shape: Shape, least: int) -> bool:
    """Whether an array has at least ``least`` elements, or an unknown number."""
    elements = 1
    for length in shape:
        if not isinstance(length, int):
            return True
        elements *= length
    return elements >= least


def ufunc_name(head: sympy.FunctionClass) -> str | None:
    """The name of the ufunc of a SymPy head in generated code; None if there is none."""
    found = NUMPY.functions.get(head)
    if found is None or found.module not in ("numpy", "scipy.special"):
        return None
    return found.name if found.module == "numpy" else str(found)


# ---- operands that may be overwritten ------------------------------------------------------------


@question
def operands(op: Op, expression: Compute, dtype: str) -> tuple[int, ...]:
    """The positions of the arguments that the result may overwrite, the best one first."""


@operands.dispatch
def operands_none(op: Op, expression: Compute, dtype: str) -> tuple[int, ...]:
    """By default, the result is a new array."""
    return ()


def by_sign(signs: tuple[int, ...]) -> tuple[int, ...]:
    """All positions: first added terms or factors, then subtracted terms or divisors."""
    return tuple(sorted(range(len(signs)), key=lambda k: -signs[k]))


@operands.dispatch
def operands_of_sum(op: Add, expression: Compute, dtype: str) -> tuple[int, ...]:
    """Any term."""
    return by_sign(op.signs)


@operands.dispatch
def operands_of_product(op: Mul, expression: Compute, dtype: str) -> tuple[int, ...]:
    """Any factor or divisor."""
    return by_sign(op.powers)


@operands.dispatch
def operands_of_power(op: Pow, expression: Compute, dtype: str) -> tuple[int, ...]:
    """The base of a square or square root."""
    return (0,) if literal(expression.args[1]) in (2, sympy.Rational(1, 2)) else ()


@operands.dispatch
def operands_of_function(op: Apply, expression: Compute, dtype: str) -> tuple[int, ...]:
    """Arguments of ufuncs of NumPy and SciPy, and of helpers with an argument ``out``."""
    if op.head in (sympy.Max, sympy.Min):
        return tuple(range(len(expression.args)))
    if len(expression.args) != 1 or (op.head is sympy.erfc and dtype == "float32"):
        return ()
    return (0,) if op.head in (relu, sigmoid, sympy.sech) or ufunc_name(op.head) is not None else ()


@operands.dispatch
def operands_of_mask(op: Select, expression: Compute, dtype: str) -> tuple[int, ...]:
    """The scores under a mask, where −∞ replaces the masked scores."""
    return (1,) if literal(expression.args[2]) == -math.inf else ()


@operands.dispatch
def operands_of_nest(op: Nest, expression: Compute, dtype: str) -> tuple[int, ...]:
    """Any operand of a chain of floats: it writes an element after reading all that this element needs."""
    return tuple(range(len(expression.args))) if is_fresh(expression) and not op.axes else ()


@operands.dispatch
def operands_of_span(op: Cleared, expression: Compute, dtype: str) -> tuple[int, ...]:
    """The array whose gaps are cleared."""
    return (0,)


@operands.dispatch
def operands_of_overlay(op: Overlay, expression: Compute, dtype: str) -> tuple[int, ...]:
    """The first part, if it has the shape of the whole."""
    return (0,)


@operands.dispatch
def operands_of_diagonal(op: AddDiagonal, expression: Compute, dtype: str) -> tuple[int, ...]:
    """The array whose diagonal is changed."""
    return (0,)


@operands.dispatch
def operands_of_softmax(op: Softmax, expression: Compute, dtype: str) -> tuple[int, ...]:
    """The argument of the softmax."""
    return (0,)


@operands.dispatch
def operands_of_softmax_tangent(op: TangentOp, expression: Compute, dtype: str) -> tuple[int, ...]:
    """t of p and t: p is read until the end."""
    p, t = expression.args
    return (1,) if p != t else ()
