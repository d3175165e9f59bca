"""Floating-point points at which numeric code is measured: ordinary ones, and hostile ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import sympy

from symad.errors import SymadError
from symad.evaluation import unchecked
from symad.graph import Node, topological
from symad.ops.elementwise import Apply
from symad.ops.powers import Pow
from symad.verification.points import points
from symad.verification.terms import number

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

RUNAWAY = {sympy.exp, sympy.sinh, sympy.cosh, sympy.gamma, sympy.factorial}
LARGEST_EXPONENT = 1e9
"""Beyond this the exact value would fill the memory."""

FloatPoint = dict[Node, Any]


def ordinary_points(
    inputs: Sequence[Node], integers: Mapping[Node, Any], count: int
) -> Iterator[tuple[str, FloatPoint]]:
    """Points of ordinary size, as the nearest floats."""
    for point in points(inputs, integers, count):
        yield "ordinary", {node: _as_float(value) for node, value in point.items()}


def hostile_points(inputs: Sequence[Node], integers: Mapping[Node, Any]) -> Iterator[tuple[str, FloatPoint]]:
    """Two points of each hostile kind, of either sign where the symbols allow."""
    for name, scale, offset in HOSTILE:
        for turn in (1.0, -1.0):
            yield name, {node: _hostile(node, integers.get(node), scale, offset, turn) for node in inputs}


def _as_float(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value.astype(np.float64)
    return float(value) if isinstance(value, Fraction) else value


def _hostile(node: Node, span: Any, scale: float, offset: float, turn: float) -> Any:
    shape = tuple(int(d) for d in node.shape)
    symbol = node.op.symbol  # type: ignore[attr-defined]
    count = int(np.prod(shape))
    if span is not None:
        return np.full(shape, span[0], dtype=np.int64)
    varied = 1 + np.arange(count) % 3 * 0.25
    values = offset + scale * turn * varied * np.where(np.arange(count) % 2, -1.0, 1.0)
    if getattr(symbol, "is_nonnegative", False):
        values = np.abs(values)
    elif getattr(symbol, "is_nonpositive", False):
        values = -np.abs(values)
    if getattr(symbol, "is_integer", False):
        values = np.clip(np.round(values), -40, 40) + (1 if getattr(symbol, "is_positive", False) else 0)
    return values.reshape(shape) if shape else float(values[0])


def exactly(point: FloatPoint) -> dict[Node, Any]:
    """The exact rational values of the floats."""
    return {node: _exact(value) for node, value in point.items()}


def _exact(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return np.frompyfunc(Fraction, 1, 1)(value)
    return Fraction(value) if isinstance(value, float) else value


def _is_small_power(node: Node) -> bool:
    exponent = number(node.args[1])
    return exponent is not None and abs(exponent) <= 100


def is_manageable(outputs: Sequence[Node], point: FloatPoint) -> bool:
    """Whether no exponential has so large an argument that its exact value cannot be held."""
    order = topological(outputs)
    suspects = [
        n
        for n in order
        if (isinstance(n.op, Pow) and not _is_small_power(n))
        or (isinstance(n.op, Apply) and n.op.head in RUNAWAY)
    ]
    wanted = list(dict.fromkeys(a for n in suspects for a in n.args))
    try:
        values = dict(zip(wanted, unchecked(wanted, point), strict=True))
    except (SymadError, ArithmeticError, ValueError, TypeError):
        return False
    for node in suspects:
        first = np.asarray(values[node.args[0]], dtype=np.float64)
        if isinstance(node.op, Pow):
            with np.errstate(all="ignore"):
                first = np.log(np.abs(first)) * np.asarray(values[node.args[1]], dtype=np.float64)
            first = first[~np.isneginf(first)]
        if np.any(~(np.abs(first) <= LARGEST_EXPONENT)):
            return False
    return True
