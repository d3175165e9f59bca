"""Floats that stand for simple numbers: 0.3333333333333333 for 1/3, 0.7978845608028654 for √(2/π), 0.044715.

A float is its exact binary value, so x ** (1/3) and its derivative with (1/3) rounded differ in the last
digits. Where a user says that constants are rounded, each float that is a simple number is read as it. A
guard such as the 1e-20 of log(x + 1e-20), or the 2⁻⁵² of max(x, 2⁻⁵²), is read as the 0 that it rounds to
beside x.
"""

from __future__ import annotations

from fractions import Fraction
from math import e, isfinite, log, pi, sqrt

import numpy as np
import sympy

from symad.core.graph import Graph, Node, Op, op_of, rebuild
from symad.ops.basic.arithmetic import Add, add, mul
from symad.ops.basic.sources import ArrayConstant, Constant, array_constant, constant, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Compare

MAX_SIMPLE_DENOMINATOR = 1000
"""The maximum denominator of a simple number."""

DECIMAL_DIGITS = 12
"""The number of significant digits of a simple decimal number, such as 0.044715."""

ULPS = 4
"""How far off in units of the last place a rounded number may be."""

GUARD = 2.0**-52
"""Floats up to this size count as 0 in sums, as bounds and in comparisons."""

FACTORS: tuple[tuple[float, sympy.Expr], ...] = (
    (1.0, sympy.Integer(1)), (pi, sympy.pi), (1 / pi, 1 / sympy.pi), (pi**2, sympy.pi**2),
    (1 / pi**2, 1 / sympy.pi**2), (sqrt(pi), sympy.sqrt(sympy.pi)),
    (1 / sqrt(pi), 1 / sympy.sqrt(sympy.pi)), (sqrt(2 / pi), sympy.sqrt(2 / sympy.pi)),
    (sqrt(2 * pi), sympy.sqrt(2 * sympy.pi)), (1 / sqrt(2 * pi), 1 / sympy.sqrt(2 * sympy.pi)),
    (sqrt(2), sympy.sqrt(2)), (sqrt(3), sympy.sqrt(3)), (sqrt(5), sympy.sqrt(5)),
    (log(2), sympy.log(2)), (log(10), sympy.log(10)), (1 / log(2), 1 / sympy.log(2)), (e, sympy.E),
    (log(2 * pi), sympy.log(2 * sympy.pi)), (log(pi), sympy.log(sympy.pi)),
)  # fmt: skip
"""What simple numbers are multiples of."""


def with_simple_constants(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """The graph with floats read as the simple numbers they are, and which they were."""
    found: dict[str, str] = {}

    def simple(node: Node, args: tuple[Node, ...]) -> Node:
        if isinstance(node.op, ArrayConstant):
            return _simple_array(node, found)
        if isinstance(node.op, Constant):
            return _simple_constant(node, found)
        if _takes_guards(node.op) and any(map(_is_guard, node.args)):
            found.update({repr(_float(arg)): "0" for arg in node.args if _is_guard(arg)})
            pairs = zip(node.args, args, strict=True)
            args = tuple(constant(0) if _is_guard(old) else new for old, new in pairs)
        return node.over(args)

    outputs = rebuild(graph.output_nodes, {}, simple)
    return graph.with_outputs(outputs, graph.structure), found


def _simple_constant(node: Node, found: dict[str, str]) -> Node:
    """A float as the simple number that it is, if there is one."""
    value = constant_value(node)
    if not (isinstance(value, float) or (isinstance(value, Fraction) and _is_float(value))):
        return node
    known = simple_number(float(value))
    if known is None or known == value:
        return node
    if _exact(known) != Fraction(value):
        found[repr(float(value))] = str(known)
    return _node(known)


MAX_VALUES = 16
"""The maximum number of different values of an array that are read as simple numbers."""


def _simple_array(node: Node, found: dict[str, str]) -> Node:
    """An array of floats as what is left of it, plus each simple number times 1 where it stands."""
    array = op_of(node, ArrayConstant).array
    if array.dtype.kind != "f":
        return node
    values = [float(v) for v in np.unique(array[np.isfinite(array) & (array != np.round(array))])]
    known = {v: simple for v in values[: MAX_VALUES + 1] if (simple := simple_number(v)) is not None}
    if not known or len(values) > MAX_VALUES:
        return node
    found.update({repr(v): str(simple) for v, simple in known.items() if Fraction(v) != _exact(simple)})
    rest = np.where(np.isin(array, list(known)), 0.0, array)
    parts = [mul(_node(simple), array_constant((array == v).astype(float))) for v, simple in known.items()]
    return add(*([array_constant(rest)] if rest.any() else []), *parts)


def _exact(number: sympy.Expr) -> Fraction | None:
    return Fraction(int(number.p), int(number.q)) if number.is_Rational else None


def _takes_guards(op: Op) -> bool:
    """Whether an op is a sum, a bound or a comparison."""
    return isinstance(op, (Add, Compare)) or (isinstance(op, Apply) and op.head in (sympy.Max, sympy.Min))


def _is_guard(node: Node) -> bool:
    value = _float(node)
    return value is not None and 0 < abs(value) <= GUARD


def _float(node: Node) -> float | None:
    value = constant_value(node) if isinstance(node.op, Constant) else None
    return float(value) if isinstance(value, (float, Fraction)) else None


def _is_float(value: Fraction) -> bool:
    """Whether a number is a float, or a sum or product of floats without rounding, such as 3 · 0.044715."""
    denominator = value.denominator
    return denominator > MAX_SIMPLE_DENOMINATOR and denominator & (denominator - 1) == 0


def simple_number(value: float) -> sympy.Expr | None:
    """The simple number that a float is when rounded; None if there is none."""
    if not isfinite(value) or value == 0:
        return None
    for size, exact in FACTORS:
        ratio = Fraction(value / size).limit_denominator(MAX_SIMPLE_DENOMINATOR)
        if ratio and abs(float(ratio) * size - value) <= ULPS * 2.0**-53 * abs(value) * (
            1 if size == 1 else 2
        ):
            if size == 1.0 and ratio.denominator == 1 and float(ratio) == value:
                return None
            if abs(ratio.numerator) <= MAX_SIMPLE_DENOMINATOR:
                return sympy.Rational(ratio.numerator, ratio.denominator) * exact
    decimal = Fraction(f"{value:.{DECIMAL_DIGITS}g}")
    if abs(decimal - Fraction(value)) <= ULPS * 2.0**-53 * abs(value):
        return sympy.Rational(decimal.numerator, decimal.denominator)
    return None


def _node(number: sympy.Expr) -> Node:
    from symad.tracing.from_sympy.scalars import trace_scalar

    return trace_scalar(number)
