"""Coefficients that are zero for all inputs.

A linear graph multiplies tangents by coefficients. Some of those vanish by construction: masks,
padded zeros, constant matrices, softmax weights of scores that were set to −∞. Every element of a
coefficient is in one of three states, found by abstract interpretation: ZERO, MINUS_INFINITY, or
ANY. At a given point (local detection) the states are those of the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, TypeAlias

import numpy as np
import sympy
from numpy.typing import NDArray

from symad.core.arrays import Array, Number
from symad.core.graph import Node, Op, topological
from symad.core.interning import WeakMemo
from symad.core.process import within
from symad.core.questions import definition, evaluate
from symad.facts.functions import is_zero_at_zero
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.arrays.softmax import Softmax
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Pad, ShapingOp
from symad.ops.basic.sources import ArrayConstant, Constant, Eye, Iota, Source, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Select

States: TypeAlias = "NDArray[np.uint8]"

ZERO, ANY, MINUS_INFINITY = np.uint8(0), np.uint8(1), np.uint8(2)

MAX_ELEMENTS = 20_000_000
"""Larger arrays are ANY."""

_known: WeakMemo[Node, tuple[Array | None, States | None]] = WeakMemo()
_point: ContextVar[Mapping[Node, Number] | None] = ContextVar("point", default=None)


def at_point(values: Mapping[Node, Number]) -> AbstractContextManager[None]:
    """A context in which the states of coefficients come from their values at a point."""
    return within(_point, values)


def is_local() -> bool:
    """True if states come from the values at a point."""
    return _point.get() is not None


def may_be_nonzero(node: Node) -> NDArray[np.bool_] | None:
    """For each element, flat, true if it may differ from zero; None if all may."""
    values = _point.get()
    if values is not None:
        return np.broadcast_to(np.asarray(values[node]) != 0, node.shape).ravel()
    states = states_of(node)
    return None if states is None else (states != ZERO).ravel()


def may_be_true(condition: Node) -> tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None]:
    """For each element, flat, true if a condition may hold, and true if it may fail."""
    values = _point.get()
    value = values[condition] if values is not None else constant_of(condition)
    if value is None:
        return None, None
    truth = np.broadcast_to(np.asarray(value, bool), condition.shape).ravel()
    return truth, ~truth


def constant_of(node: Node) -> Array | None:
    """The value of a node that depends on no input, or None."""
    return _look_up(node)[0]


def states_of(node: Node) -> States | None:
    """The states of all elements, in the node's shape; None if all are ANY."""
    return _look_up(node)[1]


def _look_up(node: Node) -> tuple[Array | None, States | None]:
    if node not in _known:
        for part in topological([node]):
            if part not in _known:
                _known[part] = _judged(part)
    return _known[node]


def _judged(node: Node) -> tuple[Array | None, States | None]:
    """The constant value, if there is one, and the states."""
    size = np.prod([d if isinstance(d, int) else MAX_ELEMENTS + 1 for d in node.shape], dtype=float)
    if size > MAX_ELEMENTS:
        return None, None
    value = _folded(node)
    if value is not None:
        return value, _states_of_value(value, node)
    rule = next((RULES[c] for c in type(node.op).__mro__ if c in RULES), None)
    if rule is not None:
        return None, rule(node.op, node)
    meaning = definition(node.op, node)
    return None, None if meaning is None else states_of(meaning)


def _folded(node: Node) -> Array | None:
    if isinstance(node.op, Source):
        constant = isinstance(node.op, (Constant, ArrayConstant, Eye, Iota))
        return evaluate(node.op, ()) if constant else None
    values = tuple([_known[arg][0] for arg in node.args])
    if any(value is None for value in values):
        return None
    try:
        with np.errstate(all="ignore"):
            return evaluate(node.op, values)
    except (ArithmeticError, TypeError, ValueError):
        return None


def _states_of_value(value: Array | float, node: Node) -> States | None:
    array = np.asarray(value)
    if array.dtype == object:
        array = np.vectorize(lambda v: float(v == 0) - 1.0, otypes=[float])(array)
    states = np.where(array == 0, ZERO, np.where(array == -np.inf, MINUS_INFINITY, ANY))
    return _reduced(np.broadcast_to(states, node.shape))


def _reduced(states: np.ndarray) -> States | None:
    return None if (states == ANY).all() else states


def _filled(node: Node) -> States:
    states = _known[node][1]
    return np.full(node.shape, ANY) if states is None else states


# ---- rules --------------------------------------------------------------------------------------


def _anything(op: Op, y: Node) -> None:
    return None


def _add_states(op: Add, y: Node) -> States | None:
    parts = [_filled(arg) for arg in y.args]
    zero = np.broadcast_to(np.logical_and.reduce([p == ZERO for p in _spread(parts, y)]), y.shape)
    lowest = np.zeros(y.shape, bool)
    for sign, part in zip(op.signs, parts, strict=True):
        if sign == 1:
            lowest = lowest | (part == MINUS_INFINITY)
    return _reduced(np.where(zero, ZERO, np.where(lowest, MINUS_INFINITY, ANY)))


def _mul_states(op: Mul, y: Node) -> States | None:
    zero = np.zeros(y.shape, bool)
    for power, arg in zip(op.powers, y.args, strict=True):
        if power == 1:
            zero = zero | (_filled(arg) == ZERO)
    return _reduced(np.where(zero, ZERO, ANY))


def _spread(parts: list[States], y: Node) -> list[States]:
    return [np.broadcast_to(part, y.shape) for part in parts]


def _pow_states(op: Pow, y: Node) -> States | None:
    exponent = constant_value(y.args[1])
    if exponent is None or not exponent > 0:
        return None
    return _reduced(np.where(np.broadcast_to(_filled(y.args[0]), y.shape) == ZERO, ZERO, ANY))


def _apply_states(op: Apply, y: Node) -> States | None:
    argument = _filled(y.args[0])
    if op.head is sympy.exp:
        return _reduced(np.where(argument == MINUS_INFINITY, ZERO, ANY))
    if len(y.args) == 1 and is_zero_at_zero(op.head):
        return _reduced(np.where(argument == ZERO, ZERO, ANY))
    return None


def _select_states(op: Select, y: Node) -> States | None:
    condition, a, b = y.args
    first, second = _spread([_filled(a), _filled(b)], y)
    known = constant_of(condition)
    if known is not None:
        return _reduced(np.where(np.broadcast_to(known, y.shape), first, second))
    return _reduced(np.where(first == second, first, ANY))


def _shaping_states(op: ShapingOp, y: Node) -> States | None:
    if not isinstance(op, Pad) and all(_known[arg][1] is None for arg in y.args):
        return None
    return _reduced(evaluate(op, tuple(_filled(arg) for arg in y.args)))


def _gather_states(op: Gather, y: Node) -> States | None:
    table, indices = y.args
    rows = constant_of(indices)
    if rows is None or _known[table][1] is None:
        return None
    return _reduced(evaluate(op, (_filled(table), rows)))


def _einsum_states(op: Einsum, y: Node) -> States | None:
    if all(_known[arg][1] is None for arg in y.args):
        return None
    parts = [(_filled(arg) != ZERO).astype(np.float32) for arg in y.args]
    hits = np.einsum(op.spec, *parts, optimize=len(parts) > 1)
    return _reduced(np.where(hits > 0, ANY, ZERO))


def _softmax_states(op: Softmax, y: Node) -> States | None:
    lowest = _filled(y.args[0]) == MINUS_INFINITY
    return _reduced(np.where(lowest & ~lowest.all(axis=op.axes, keepdims=True), ZERO, ANY))


RULES: dict[type[Op], Callable[[Any, Node], States | None]] = {
    Source: _anything,
    Add: _add_states,
    Mul: _mul_states,
    Pow: _pow_states,
    Apply: _apply_states,
    Select: _select_states,
    Gather: _gather_states,
    ScatterAdd: _anything,
    ShapingOp: _shaping_states,
    Einsum: _einsum_states,
    Softmax: _softmax_states,
}
"""States by op class; an op without a rule has those of its definition, or ANY."""
