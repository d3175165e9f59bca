"""The operands that the result of an op may overwrite, where NumPy's functions take an array ``out``."""

from __future__ import annotations

import math

import sympy

from symad.core.graph import Op
from symad.core.questions import question
from symad.numeric.expressions.numbers import literal
from symad.numeric.fusion.nest import Nest
from symad.numeric.passes.algebra.add_diagonal import AddDiagonal
from symad.numeric.passes.memory_layout.memory_spans import Cleared
from symad.numeric.passes.memory_layout.overlapping_pads import Overlay
from symad.numeric.program.expressions import Compute
from symad.numeric.program_passes.memory.allocation import is_fresh, ufunc_name
from symad.ops.arrays.softmax import Softmax, TangentOp
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Select
from symad.sympy_functions.scalar_functions import relu, sigmoid


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
