"""A program as a graph in which each rounding is an input.

A statement computes fl(a + b) = a + b + δ. The graph of a program has such a δ for every operation that is
rounded, in the order of the printed code; its derivative by δ says how far that rounding moves a result.

Source: Higham, Accuracy and Stability of Numerical Algorithms, sections 2.2, 2.7.3 and 3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import sympy
from sympy.codegen import cfunctions
from sympy.codegen.numpy_nodes import logaddexp
from sympy.tensor.array.expressions import ArraySymbol

from symad.core.dims import Dim
from symad.core.graph import Node, Op
from symad.core.questions import question
from symad.errors import LoweringError
from symad.facts.functions import fact
from symad.numeric.passes.memory_layout.packed_entries import Pack
from symad.numeric.program.expressions import (
    Compute,
    Expression,
    Index,
    NewAxis,
    Position,
    Read,
    Span,
    Value,
)
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Comment, Free, Statement, assignments
from symad.ops.arrays.reduction import Extreme
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import ShapingOp, reshape, slice_axes
from symad.ops.basic.sources import ArrayConstant, Constant, Source, constant, input_node
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Condition, Select
from symad.sympy_functions.scalar_functions import relu, sigmoid, softplus, stop_gradient


@dataclass(frozen=True)
class FloatType:
    """A binary floating-point type, with rounding to nearest.

    ``unit`` is half of the distance of 1 and the next number; ``tiny`` half of the smallest number.
    """

    unit: float
    tiny: float
    largest: float
    kind: type[np.floating[Any]]


PRECISIONS = {
    "float64": FloatType(2.0**-53, 2.0**-1074, float(np.finfo(np.float64).max), np.float64),
    "float32": FloatType(2.0**-24, 2.0**-150, float(np.finfo(np.float32).max), np.float32),
}
"""In float64 half of the smallest number is none itself, and the smallest number stands for it."""

ULPS: dict[sympy.FunctionClass, float] = {
    sympy.exp: 1, sympy.log: 1, sympy.sin: 1, sympy.cos: 1, sympy.tan: 1, sympy.asin: 1, sympy.acos: 1,
    sympy.atan: 1, sympy.atan2: 1, sympy.sinh: 2, sympy.cosh: 2, sympy.tanh: 2, sympy.asinh: 2,
    sympy.acosh: 2, sympy.atanh: 2, cfunctions.expm1: 2, cfunctions.log1p: 2, cfunctions.log2: 2,
    cfunctions.log10: 2, cfunctions.exp2: 1, cfunctions.hypot: 1, sympy.erf: 1, sympy.erfc: 5,
    sigmoid: 4, softplus: 7,
}  # fmt: skip
"""Largest errors of `math` at a point, in units in the last place.

Source: manual of the GNU C library, "Errors in Math Functions", x86_64 and aarch64, the larger one. The last
two are printed as e/(1 + e) and max(x, 0) + log1p(e) with e = exp(−|x|): the sum of their relative errors.
"""

POW_ULPS, ARRAY_ULPS = 1.0, 4.0
"""Errors of a power at a point, and of any function of arrays: NumPy's tests allow 4 (its SIMD functions)."""

FOLDED_ULPS = 1.0
"""The error of a constant that was computed when the code was printed."""


@dataclass(frozen=True)
class Rounding:
    """One rounded operation: y = exact + delta.

    ``ulps`` counts units in the last place of the exact value. A sum in an order that is not known has the
    error unit·``terms``·Σ|terms| instead, with the sum of the absolute values ``size``. A selection between
    branches has the error |a − b| where its condition may turn, by roundings of its own.
    """

    delta: Node
    exact: Node
    statement: int
    ulps: float = 0.5
    terms: int = 0
    size: Node | None = None
    turns: tuple[Node, Node, Node] | None = None


@dataclass
class RoundedProgram:
    """The graph of a program, made statement by statement."""

    precision: FloatType
    numpy: bool
    """Whether functions are those of NumPy; otherwise those of `math`."""
    given: frozenset[Node]
    """The nodes of the function that is bounded: its floats are exact, those of printed code are rounded."""
    known: dict[Value, Node] = field(default_factory=dict)
    roundings: list[Rounding] = field(default_factory=list)
    inexact: set[Node] = field(default_factory=set)
    """The nodes that depend on roundings."""
    statement: int = 0

    def node(self, expression: Expression) -> Node:
        """The node of an expression."""
        if isinstance(expression, Read):
            return self.known[expression.value]
        if isinstance(expression, Index):
            return self._view(self.node(expression.array), expression)
        if isinstance(expression, Compute) and not expression.functions:
            args = tuple(self.node(a) for a in expression.args)
            found: Node = rounded(expression.op, args, self)
            if any(a in self.inexact for a in found.args):
                self.inexact.add(found)
            return found
        raise LoweringError(f"error_bound has no rule for {type(expression).__name__} in a program")

    def round(self, exact: Node, **options: Any) -> Node:
        """The value after its rounding."""
        symbol = sympy.Dummy("delta") if not exact.shape else ArraySymbol(sympy.Dummy("delta"), exact.shape)
        delta = input_node(symbol, exact.shape)
        self.roundings.append(Rounding(delta, exact, self.statement, **options))
        made = Node.of(Add((1, 1)), (exact, delta))
        self.inexact.add(made)
        return made

    def function(self, exact: Node, ulps: float) -> Node:
        """The value of a function of a library."""
        return self.round(exact, ulps=max(ulps, ARRAY_ULPS) if self.numpy else ulps)

    def _view(self, array: Node, index: Index) -> Node:
        starts, counts, steps = [], [], []
        for place in (p for p in index.places if not isinstance(p, NewAxis)):
            if isinstance(place, Position) and place.index is not None:
                raise LoweringError("error_bound has no rule for loops; write the steps out")
            starts.append(place.offset if isinstance(place, Position) else place.start)
            counts.append(place.count if isinstance(place, Span) else 1)
            steps.append(place.step if isinstance(place, Span) else 1)
        part = slice_axes(array, tuple(starts), tuple(counts), tuple(steps))
        return reshape(part, index.shape)


def rounded_results(program: Program, inputs: Sequence[Node], made: RoundedProgram) -> list[Node]:
    """The results of a program of statements without loops, for some inputs.

    Raises:
        LoweringError: a statement or an op has no rule here.
    """
    made.known.update(zip(program.inputs, inputs, strict=True))
    for k, statement in enumerate(program.statements):
        made.statement = k
        _check(statement)
        for each in assignments(statement):
            made.known[each.value] = made.node(each.expression)
    made.statement = len(program.statements)
    return [made.node(result) for result in program.results]


def _check(statement: Statement) -> None:
    """Refuse loops and what writes into a part of an array."""
    if not (assignments(statement) or isinstance(statement, (Comment, Free))):
        raise LoweringError(
            f"error_bound has no rule for loops ({type(statement).__name__}); write the steps out"
        )
    if any(isinstance(each, Assign) and each.over is not None for each in assignments(statement)):
        raise LoweringError("error_bound has no rule for a value that is overwritten")


@question
def rounded(op: Op, args: tuple[Node, ...], made: RoundedProgram) -> Any:
    """The node of ``op(*args)`` as it is computed, with its roundings."""


@rounded.dispatch
def rounded_op(op: Op, args: tuple[Node, ...], made: RoundedProgram) -> Node:
    """An op without a rule is refused.

    Raises:
        LoweringError: always.
    """
    raise LoweringError(
        f"error_bound has no rule for {type(op).__name__}: its functions are scalar expressions, and arrays "
        "with elementwise functions, sums and products"
    )


@rounded.dispatch
def rounded_moves(
    op: ShapingOp | Condition | Extreme | Stack | Concatenate | Pack,
    args: tuple[Node, ...],
    made: RoundedProgram,
) -> Node:
    """What moves, compares or chooses values rounds none."""
    return Node.of(op, args)


@rounded.dispatch
def rounded_source(op: Source, args: tuple[Node, ...], made: RoundedProgram) -> Node:
    """Whole numbers, such as the places of an axis."""
    return Node.of(op)


@rounded.dispatch
def rounded_constant(op: Constant, args: tuple[Node, ...], made: RoundedProgram) -> Node:
    """A number that is none of the type is rounded; a float of printed code alone stands for log(2), say."""
    node, value = Node.of(op), op.value
    if isinstance(value, float) and node not in made.given:
        return made.round(node, ulps=FOLDED_ULPS)
    whole = isinstance(value, (bool, int, float, Fraction)) and np.isfinite(float(value))
    return node if whole and Fraction(value) == made.precision.kind(float(value)) else made.round(node)


@rounded.dispatch
def rounded_array(op: ArrayConstant, args: tuple[Node, ...], made: RoundedProgram) -> Node:
    """The same for an array of numbers."""
    node = Node.of(op)
    kept = op.array.dtype != object and np.all(op.array == op.array.astype(made.precision.kind))
    if kept and (node in made.given or op.array.dtype.kind != "f"):
        return node
    return made.round(node, ulps=FOLDED_ULPS)


@rounded.dispatch
def rounded_add(op: Add, args: tuple[Node, ...], made: RoundedProgram) -> Node:
    """From left to right."""
    total = args[0] if op.signs[0] == 1 else Node.of(Add((-1,)), args[:1])
    for sign, arg in zip(op.signs[1:], args[1:], strict=True):
        total = made.round(Node.of(Add((1, sign)), (total, arg)))
    return total


@rounded.dispatch
def rounded_mul(op: Mul, args: tuple[Node, ...], made: RoundedProgram) -> Node:
    """The factors from left to right, over the product of the divisors; powers of two move the exponent."""
    pairs = list(zip(op.powers, args, strict=True))
    over, under = ([a for p, a in pairs if p == power] for power in (1, -1))
    top = _product(over or [constant(1)], made)
    return _times(top, _product(under, made), -1, made) if under else top


def _product(factors: Sequence[Node], made: RoundedProgram) -> Node:
    total = factors[0]
    for factor in factors[1:]:
        total = _times(total, factor, 1, made)
    return total


def _times(a: Node, b: Node, power: int, made: RoundedProgram) -> Node:
    exact = Node.of(Mul((1, power)), (a, b))
    scales = _is_power_of_two(b) or (power == 1 and _is_power_of_two(a))
    return made.round(exact, ulps=0.0 if scales else 0.5)


def _is_power_of_two(node: Node) -> bool:
    value = node.op.value if isinstance(node.op, Constant) else None
    if not isinstance(value, (int, float, Fraction)) or not value or not np.isfinite(float(value)):
        return False
    return abs(float(np.frexp(float(value))[0])) == 0.5


@rounded.dispatch
def rounded_power(op: Pow, args: tuple[Node, ...], made: RoundedProgram) -> Node:
    """A square root is rounded once, and so is NumPy's square of an array."""
    exact, exponent = Node.of(op, args), args[1].op.value if isinstance(args[1].op, Constant) else None
    if exponent == Fraction(1, 2) or (exponent == 2 and made.numpy):
        return made.round(exact)
    return made.function(exact, POW_ULPS)


@rounded.dispatch
def rounded_apply(op: Apply, args: tuple[Node, ...], made: RoundedProgram) -> Node:
    """By the table; NumPy's sigmoid is printed as 1/(1 + exp(−x)), where exp may overflow."""
    exact = Node.of(op, args)
    if op.head in (sympy.Max, sympy.Min):
        return _chosen(args, op.head is sympy.Max)
    if fact(op.head).kink == "zero" or op.head in (relu, stop_gradient):
        return exact
    if op.head is sigmoid and made.numpy:
        power = made.function(apply(sympy.exp, Node.of(Add((-1,)), args)), ULPS[sympy.exp])
        return made.round(Node.of(Mul((-1,)), (made.round(Node.of(Add((1, 1)), (constant(1), power))),)))
    if op.head is logaddexp:
        return _log_of_sum(args[0], args[1], made)
    if op.head not in ULPS:
        raise LoweringError(
            f"error_bound has no documented error of {op.head.__name__}; it has those of exp, log, powers, "
            "trigonometric and hyperbolic functions and their inverses, erf and erfc"
        )
    return made.function(exact, ULPS[op.head])


def _log_of_sum(a: Node, b: Node, made: RoundedProgram) -> Node:
    """max(a, b) + log1p(exp(−|a − b|))."""
    distance = made.round(Node.of(Add((1, -1)), (a, b)))
    power = made.function(
        apply(sympy.exp, Node.of(Add((-1,)), (apply(sympy.Abs, distance),))), ULPS[sympy.exp]
    )
    rest = made.function(apply(cfunctions.log1p, power), ULPS[cfunctions.log1p])
    return made.round(Node.of(Add((1, 1)), (_chosen((a, b), True), rest)))


def _chosen(args: Sequence[Node], largest: bool) -> Node:
    """The largest or smallest argument, as a selection: at ties its slope lies between those of both."""
    found = args[0]
    for arg in args[1:]:
        pair = (found, arg) if largest else (arg, found)
        found = Node.of(Select(), (Node.of(Compare("<"), pair), arg, found))
    return found


@rounded.dispatch
def rounded_select(op: Select, args: tuple[Node, ...], made: RoundedProgram) -> Node:
    """A condition of rounded numbers may turn: then the branches' difference is an error."""
    exact = Node.of(op, args)
    return made.round(exact, ulps=0.0, turns=args) if args[0] in made.inexact else exact


@rounded.dispatch
def rounded_contraction(op: Einsum, args: tuple[Node, ...], made: RoundedProgram) -> Node:
    """Sums of products in any order: |error| <= γ Σ|products|, γ = n u/(1 − n u) for n roundings each."""
    exact = Node.of(op, args)
    lengths: dict[int, Dim] = {}
    for labels, arg in zip(op.inputs, args, strict=True):
        lengths.update(zip(labels, arg.shape, strict=True))
    summed = prod(int(d) for k, d in lengths.items() if k not in op.output)
    terms = max(summed, 1) + len(args) - 2
    if not terms:
        return exact
    size = Node.of(op, tuple(apply(sympy.Abs, a) for a in args))
    return made.round(exact, ulps=0.0, terms=terms, size=size)
