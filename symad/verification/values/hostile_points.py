"""Floating-point points at which numeric code is measured: ordinary ones, and hostile ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import sympy
from sympy.functions.special.bessel import BesselBase

from symad.core.arrays import Array, ArrayLike, Number
from symad.core.graph import Node, op_of, topological
from symad.errors import SymadError
from symad.facts.functions import fact
from symad.numbers.values import unchecked
from symad.ops.basic.sources import ArrayConstant, Constant, symbol_of
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.verification.budget import is_slow
from symad.verification.terms.linear_terms import number
from symad.verification.values.points import points

HOSTILE: tuple[tuple[str, float, float], ...] = (
    ("cancellation", 1e-5, 0.0),
    ("cancellation", 1e-9, 0.0),
    ("cancellation", 1e-17, 0.0),
    ("nearly equal", 1e-9, 1.0),
    ("saturation", 20.0, 0.0),
    ("saturation", 45.0, 0.0),
    ("saturation", 750.0, 0.0),
    ("large arguments", 1e8, 0.0),
    ("very large arguments", 1e160, 0.0),
    ("denormals", 1e-310, 0.0),
    ("zeros", 0.0, 0.0),
    ("ties", 0.0, 1.0),
)
"""What is hostile about them; the values are offset + scale·(a small number of either sign)."""

MAX_EXACT_EXPONENT = 1e9
"""The largest exponent of a power that is computed exactly; beyond it, it would fill the memory."""

MAX_SLOW_ARGUMENT = 1e3
"""The largest argument at which slow functions are evaluated to many digits."""

FloatPoint = dict[Node, Any]


def ordinary_points(
    inputs: Sequence[Node], integers: Mapping[Node, tuple[int, int]], count: int
) -> Iterator[tuple[str, FloatPoint]]:
    """Points of ordinary size, as the nearest floats."""
    for point in points(inputs, integers, count):
        yield "ordinary", {node: _as_float(value) for node, value in point.items()}


def hostile_points(
    inputs: Sequence[Node], integers: Mapping[Node, tuple[int, int]]
) -> Iterator[tuple[str, FloatPoint]]:
    """Two points of each hostile kind, of either sign where the symbols allow."""
    for name, scale, offset in HOSTILE:
        for turn in (1.0, -1.0):
            yield name, {node: _hostile(node, integers.get(node), scale, offset, turn) for node in inputs}


def _as_float(value: ArrayLike) -> Any:
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value.astype(np.float64)
    return float(value) if isinstance(value, Fraction) else value


def _hostile(
    node: Node, span: tuple[int, int] | None, scale: float, offset: float, turn: float
) -> Array | float:
    shape = tuple(int(d) for d in node.shape)
    symbol = symbol_of(node)
    count = prod(shape)
    if span is not None:
        return np.full(shape, span[0], dtype=np.int64)
    varied = 1 + np.arange(count) % 3 * 0.25
    values = offset + scale * turn * varied * np.where(np.arange(count) % 2, -1.0, 1.0)
    if getattr(symbol, "is_zero", False):
        values = np.zeros(count)
    elif getattr(symbol, "is_nonnegative", False):
        values = np.abs(values)
    elif getattr(symbol, "is_nonpositive", False):
        values = -np.abs(values)
    if getattr(symbol, "is_integer", False):
        values = np.clip(np.round(values), -40, 40) + (1 if getattr(symbol, "is_positive", False) else 0)
    return values.reshape(shape) if shape else float(values[0])


def exactly(point: FloatPoint) -> dict[Node, Number]:
    """The exact rational values of the floats."""
    return {node: _exact(value) for node, value in point.items()}


def _exact(value: Array | float) -> Array | Fraction:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return np.frompyfunc(Fraction, 1, 1)(value)
    return Fraction(value) if isinstance(value, float) else value


def _is_small_power(node: Node) -> bool:
    exponent = number(node.args[1])
    return exponent is not None and abs(exponent) <= 100


def _is_infinite(node: Node) -> bool:
    """Whether a node is a constant that holds an infinity, such as a mask."""
    if isinstance(node.op, ArrayConstant):
        return bool(node.op.array.dtype.kind == "f" and np.any(np.isinf(node.op.array)))
    value = node.op.value if isinstance(node.op, Constant) else 0
    return (isinstance(value, float) and np.isinf(value)) or value in (sympy.oo, -sympy.oo)


def _is_slow_far_out(node: Node) -> bool:
    """True if many digits of a function may take long where an argument is large.

    mpmath sums long series for Bessel functions of a large order, and for ψ⁽ⁿ⁾(x) with x ≪ 0.
    """
    head = op_of(node, Apply).head
    if is_slow(head) or head is sympy.polygamma:
        return True
    return isinstance(head, type) and issubclass(head, BesselBase) and number(node.args[0]) is None


def is_manageable(outputs: Sequence[Node], point: Mapping[Node, Number], balls: bool = False) -> bool:
    """Whether no argument of an exponential, or of a slow function, is too large for many digits.

    In balls, whose exponents have no limit, no argument of a slow function alone.
    """
    order = topological(outputs)
    suspects = [n for n in order if (_is_slow if balls else _may_run_away)(n)]
    if not suspects:
        return True
    masked = any(map(_is_infinite, order))
    wanted = list(dict.fromkeys(a for n in suspects for a in n.args))
    try:
        floats = {n: _as_float(v) for n, v in point.items()}
        values = dict(zip(wanted, unchecked(wanted, floats), strict=True))
    except (SymadError, ArithmeticError, ValueError, TypeError):
        return False
    return not any(_runs_away(n, [np.asarray(values[a], dtype=np.float64) for a in n.args], masked)
                   for n in suspects)  # fmt: skip


def _may_run_away(node: Node) -> bool:
    """Whether a node may take long, or fill the memory, at large arguments."""
    if isinstance(node.op, Pow):
        return not _is_small_power(node)
    return isinstance(node.op, Apply) and (fact(node.op.head).grows or _is_slow_far_out(node))


def _is_slow(node: Node) -> bool:
    return isinstance(node.op, Apply) and _is_slow_far_out(node)


def _runs_away(node: Node, arguments: list[Array], masked: bool) -> bool:
    """Whether arguments are too large for a node; infinite ones of masks are not."""
    largest = MAX_EXACT_EXPONENT
    if isinstance(node.op, Pow):
        with np.errstate(all="ignore"):
            logs = np.log(np.abs(arguments[0])) * arguments[1]
        arguments = [logs[~np.isneginf(logs)]]
    elif isinstance(node.op, Apply) and _is_slow_far_out(node):
        largest = MAX_SLOW_ARGUMENT
    known = [a[~np.isinf(a)] if masked else a for a in arguments]
    return any(np.any(~(np.abs(a) <= largest)) for a in known)
