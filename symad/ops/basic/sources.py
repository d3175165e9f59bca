"""Sources: nodes without arguments. Inputs, constants, dimensions used as values, index ranges."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np
import sympy

from symad.core.dims import Dim, Shape, as_dim, as_shape, format_shape
from symad.core.graph import ZERO, Node, Op, shape, topological
from symad.core.questions import (
    Array,
    Count,
    Flags,
    Nodes,
    Tangent,
    Tangents,
    Values,
    batch,
    definition,
    evaluate,
    flops,
    jvp,
)
from symad.errors import EvaluationError, OutsideError, TraceError


@dataclass(frozen=True, eq=False)
class Source(Op):
    """A node without arguments."""

    finite_slopes = True


@dataclass(frozen=True, eq=False)
class Input(Source):
    """An input: the SymPy symbol the user wrote, with its shape."""

    outside = True

    symbol: Any
    shape: Shape


def symbol_of(node: Node) -> sympy.Expr:
    """The SymPy symbol of an input."""
    assert isinstance(node.op, Input), node
    return node.op.symbol


def inputs_in(outputs: Iterable[Node]) -> list[Node]:
    """The inputs on which some nodes depend, in topological order."""
    return [node for node in topological(outputs) if isinstance(node.op, Input)]


@dataclass(frozen=True, eq=False)
class Fresh(Source):
    """An input of a body that is still being traced; its number is unique among nested bodies."""

    outside = True

    number: int
    shape: Shape


_numbers = count()


def fresh_input(inner: Shape) -> Node:
    """A new input of a body that is being made."""
    return Node.of(Fresh(next(_numbers), inner))


def described(node: Node) -> str:
    """The text for a value in an error: an input by its name, with its shape."""
    shown = format_shape(node.shape)
    return f"{node.op.symbol} {shown}" if isinstance(node.op, Input) else shown


@dataclass(frozen=True, eq=False)
class Constant(Source):
    """A scalar number: int, Fraction, float, bool, or a SymPy number such as pi.

    ``kind`` keeps 1, 1.0 and True apart, and 0.0 from -0.0.
    """

    literal = stored = True

    value: Any
    kind: str


@dataclass(frozen=True, eq=False)
class ArrayConstant(Source):
    """An array of numbers that is known when the graph is built; ``data`` is its bytes."""

    stored = True

    data: bytes
    dtype: str
    shape: tuple[int, ...]

    @property
    def array(self) -> np.ndarray:
        """The array, read-only."""
        return np.frombuffer(self.data, dtype=self.dtype).reshape(self.shape)


@dataclass(frozen=True, eq=False)
class Dimension(Source):
    """A dimension used as a value: an expression in the dimension symbols."""

    literal = True

    expression: Any


@dataclass(frozen=True, eq=False)
class Iota(Source):
    """(0, 1, ..., size − 1)."""

    size: Dim


@dataclass(frozen=True, eq=False)
class Eye(Source):
    """The identity matrix of order ``size``: a (size, size) array."""

    size: Dim


# ---- makers -------------------------------------------------------------------------------------


def input_node(symbol: sympy.Basic, dims: Iterable[Dim] = ()) -> Node:
    """The input of this symbol and shape."""
    return Node.of(Input(symbol, as_shape(dims)))


def constant(value: Fraction | float | sympy.Expr) -> Node:
    """A scalar constant, kept exact.

    Raises:
        TraceError: a complex number, or an object that is not a number.
    """
    if type(value) is int:
        return _SMALL[value] if 0 <= value < len(_SMALL) else _integer(value)
    if type(value) is Fraction:
        return _fraction(value.numerator, value.denominator)
    return _constant(value)


_SMALL: list[Node] = []
"""The constants 0, 1, 2, ..., kept because they are needed very often; filled below."""


def _constant(value: Fraction | float | sympy.Expr) -> Node:
    if isinstance(value, Node):
        return value
    if isinstance(value, (bool, np.bool_)):
        return Node.of(Constant(bool(value), "bool"))
    if isinstance(value, (int, np.integer)):
        return _integer(int(value))
    if isinstance(value, Fraction):
        return _fraction(value.numerator, value.denominator)
    if isinstance(value, (float, np.floating)):
        number = float(_rounded(np.asarray(value)) if isinstance(value, np.longdouble) else value)
        if math.isnan(number):
            number = math.nan  # always the same object: NaN equals nothing but itself
        return Node.of(Constant(number, f"float {number.hex()}"))
    if isinstance(value, sympy.Basic):
        return _sympy_constant(value)
    error = OutsideError if isinstance(value, (complex, np.complexfloating)) else TraceError
    raise error(f"{value!r} of type {type(value).__name__} is not a real number")


@lru_cache(maxsize=256)
def _integer(value: int) -> Node:
    """An integer as a constant; cached, since passes make the same ones again and again."""
    return Node.of(Constant(value, "int"))


@lru_cache(maxsize=256)
def _fraction(numerator: int, denominator: int) -> Node:
    """A fraction as a constant; the key is two integers, because a Fraction is hashed slowly."""
    if denominator == 1:
        return constant(numerator)
    return Node.of(Constant(Fraction(numerator, denominator), "fraction"))


MIN_NORMAL = float(np.finfo(np.float64).smallest_normal)
"""The threshold below which numbers lose digits as floats, or become 0."""


def _sympy_constant(value: sympy.Basic) -> Node:
    if value in (sympy.true, sympy.false):
        return constant(bool(value))
    if isinstance(value, sympy.Integer):
        return constant(int(value))
    if isinstance(value, sympy.Rational):
        return constant(Fraction(int(value.p), int(value.q)))
    if isinstance(value, sympy.Float):
        number = float(value)
        if value == 0 or (value._prec <= 53 and MIN_NORMAL <= abs(number) < math.inf):
            return constant(number)
        return Node.of(Constant(value, f"Float{value._prec}"))
    if isinstance(value, sympy.NumberSymbol):
        return Node.of(Constant(value, "symbol"))
    raise OutsideError(f"{value} is not a real number")


def array_constant(value: Array) -> Node:
    """A constant array; arrays without axes become scalars.

    Raises:
        TraceError: the dtype is not boolean, integer or real floating point, or a number is too large.
    """
    array = np.asarray(value)
    if array.ndim == 0:
        return constant(array.item())
    if array.dtype.kind not in "biuf":
        raise TraceError(f"an array of dtype {array.dtype} cannot be a constant; use real numbers")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = _rounded(array)
    array = np.ascontiguousarray(array)
    return Node.of(ArrayConstant(array.tobytes(), array.dtype.str, array.shape))


def _rounded(value: np.ndarray) -> np.ndarray:
    """Numbers with more digits than a float, rounded to floats.

    Raises:
        TraceError: one of them is larger than all floats.
    """
    with np.errstate(over="ignore"):
        rounded = value.astype(np.float64)
    if np.any(np.isinf(rounded) & np.isfinite(value)):
        raise TraceError(f"a constant of dtype {value.dtype} is larger than all numbers of float64")
    return rounded


def dimension(expression: float | sympy.Expr) -> Node:
    """A dimension as a value."""
    dim = as_dim(expression)
    return constant(dim) if isinstance(dim, int) else Node.of(Dimension(dim))


def iota(count: Dim) -> Node:
    """The indices 0 … count − 1."""
    return Node.of(Iota(as_dim(count)))


def eye(count: Dim) -> Node:
    """The identity matrix."""
    return Node.of(Eye(as_dim(count)))


def constant_value(node: Tangent) -> Any:
    """The number of a scalar constant node, or None."""
    if isinstance(node, Node) and isinstance(node.op, Constant):
        return node.op.value
    return None


EXACT = ("int", "fraction")
"""Kinds of constants that are folded exactly."""


def is_exact(value: Fraction | float | sympy.Expr | None) -> bool:
    """True if a constant's value is an int or Fraction (and no bool)."""
    return type(value) in (int, Fraction)  # isinstance is slow here: Fraction has an abstract base class


# ---- answers ------------------------------------------------------------------------------------


@shape(Fresh)
def fresh_shape(op: Fresh, args: Nodes) -> Shape:
    return op.shape


@shape(Input)
def input_shape(op: Input, args: Nodes) -> Shape:
    return op.shape


@shape(Constant)
def constant_shape(op: Constant, args: Nodes) -> Shape:
    return ()


_SMALL.extend(_constant(k) for k in range(33))


@shape(ArrayConstant)
def array_constant_shape(op: ArrayConstant, args: Nodes) -> Shape:
    return op.shape


@shape(Dimension)
def dimension_shape(op: Dimension, args: Nodes) -> Shape:
    return ()


@shape(Iota)
def iota_shape(op: Iota, args: Nodes) -> Shape:
    return (op.size,)


@shape(Eye)
def eye_shape(op: Eye, args: Nodes) -> Shape:
    return (op.size, op.size)


@jvp.dispatch
def source_jvp(op: Source, y: Node, tangents: Tangents) -> Tangent:
    return ZERO


@batch.dispatch
def source_batch(op: Source, args: Nodes, batched: Flags, count: Count) -> Node:
    raise AssertionError("a source has no arguments, so it is never batched")


@flops.dispatch
def source_flops(op: Source, y: Node) -> Count:
    return 0


@evaluate.dispatch
def constant_evaluate(op: Constant, values: Values) -> Array:
    return op.value


@evaluate.dispatch
def array_constant_evaluate(op: ArrayConstant, values: Values) -> Array:
    return op.array


@definition.dispatch
def dimension_definition(op: Dimension, y: Node) -> Node | None:
    """The constant, if the sizes are known."""
    return constant(op.expression) if isinstance(op.expression, int) else None


@evaluate.dispatch
def dimension_evaluate(op: Dimension, values: Values) -> Any:
    if not isinstance(op.expression, int) and op.expression.free_symbols:
        raise EvaluationError(f"the size {op.expression} is not fixed by the arrays given")
    return int(op.expression)


@evaluate.dispatch
def iota_evaluate(op: Iota, values: Values) -> Array:
    return np.arange(op.size)


@evaluate.dispatch
def eye_evaluate(op: Eye, values: Values) -> Array:
    return np.eye(op.size, dtype=np.int64)
