"""Boxes: the bounds of inputs that conditions and assumptions imply, and of every value inside of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any

import flint
import numpy as np
import sympy

from symad.core.arrays import Number
from symad.core.graph import Node, op_of, topological
from symad.core.questions import evaluate
from symad.errors import SymadError
from symad.evaluation.intervals import (
    OPEN,
    Interval,
    OpenTruth,
    above,
    below,
    both,
    hull,
    interval,
    whole_line,
)
from symad.evaluation.value_ranges import promised
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.arrays.reduction import Product
from symad.ops.basic.arithmetic import sub
from symad.ops.basic.sources import Constant, Input, constant, constant_value, inputs_in, symbol_of
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Compare, Condition, Logic
from symad.verification.terms.signs import known_signs

BITS = 128
"""The bits of the endpoints of intervals."""

MAX_ELEMENTS = 200_000
"""Intervals are computed if all nodes together have at most this many elements."""


def ranges(outputs: Sequence[Node], box: Mapping[Node, Interval]) -> dict[Node, Any]:
    """The intervals of all nodes that have intervals, as arrays; truth values for conditions.

    Args:
        outputs: the nodes that are needed.
        box: the bounds of inputs, the same for all elements of an input; other inputs have no bounds.
    """
    found: dict[Node, Any] = {}
    order = topological(outputs)
    if not all(_is_small(n) for n in order) or sum(prod(n.shape) for n in order) > MAX_ELEMENTS:
        return {}
    signs = known_signs(outputs)
    before = flint.ctx.prec
    flint.ctx.prec = BITS
    try:
        for node in order:
            found[node] = _with_sign(_value(node, found, box), signs[node])
    finally:
        flint.ctx.prec = before
    return found


def _with_sign(value: Any, sign: int) -> Any:
    """The bounds of a number, whose sign may be known for other reasons."""
    if not sign or not isinstance(value, Interval):
        return value
    half = above(0, strict=False) if sign == 1 else -above(0, strict=False)
    return both(value, half) if value.low < 0 < value.high else value


def always_exist(outputs: Sequence[Node]) -> bool:
    """True if all nodes that some outputs need, in every branch, have values at every point: by intervals."""
    order = topological(outputs)
    found = ranges(outputs, promised([n for n in order if isinstance(n.op, Input)]))
    each = [np.asarray(found[n], dtype=object).ravel() for n in order if n in found]
    return len(each) == len(order) and all(
        not isinstance(v, Interval) or v.sure for part in each for v in part
    )


def _is_small(node: Node) -> bool:
    return all(isinstance(d, int) for d in node.shape)


def _value(node: Node, found: Mapping[Node, Any], box: Mapping[Node, Interval]) -> Any:
    if isinstance(node.op, Input):
        return _filled(node, box.get(node, whole_line(sure=True)))
    args = [found[a] for a in node.args]
    try:
        if isinstance(node.op, (Gather, ScatterAdd)):
            at = int(isinstance(node.op, Gather))
            args[at] = _indices(args[at])
        value = evaluate(node.op, tuple(args))
        return value if node.args else _constant(value)
    except (SymadError, ArithmeticError, TypeError, ValueError, AttributeError, np.linalg.LinAlgError):
        return _filled(node, OPEN if isinstance(node.op, Condition) else whole_line())


def _indices(values: Any) -> np.ndarray:
    """The integers of intervals that contain one integer each.

    Raises:
        ValueError: an interval contains more than one number.
    """
    each = np.asarray(values, dtype=object)
    if not all(v.low == v.high and v.low.is_integer() for v in each.ravel()):
        raise ValueError("indices that depend on inputs")
    return np.array([int(v.low.unique_fmpz()) for v in each.ravel()], dtype=np.int64).reshape(each.shape)


def _filled(node: Node, value: Interval | OpenTruth) -> Interval | OpenTruth | np.ndarray:
    """An interval for each element of a node; the elements are different values with the same bounds."""
    if not node.shape:
        return value
    made = np.empty(node.shape, dtype=object)
    for place in np.ndindex(made.shape):
        made[place] = hull([value]) if isinstance(value, Interval) else value
    return made


def _constant(value: Number) -> Interval | np.ndarray | bool:
    """A constant: a truth value unchanged, numbers as intervals."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, np.ndarray):
        return value if value.dtype == bool else np.frompyfunc(interval, 1, 1)(value.astype(object))
    return interval(value)


# ---- the bounds of inputs that a condition implies -----------------------------------------------


Box = Mapping[Node, Interval]
"""The bounds of inputs, the same for all elements of an input."""


def box_within(condition: Node, inputs: Iterable[Node] = ()) -> Box:
    """The bounds that a condition, 1 where it holds, and the assumptions on some inputs imply."""
    found = promised((*inputs, *inputs_in([condition])))
    for node in _parts(condition):
        if isinstance(node.op, Compare) and node.op.relation in ("<", "<="):
            _bound(node, found)
    return found


def _parts(condition: Node) -> list[Node]:
    """The conditions that hold together where one holds that is 1 there and 0 elsewhere."""
    while isinstance(condition.op, Product):
        condition = condition.args[0]
    waiting, found = list(condition.args[:1]), []
    while waiting:
        node = waiting.pop()
        if isinstance(node.op, Logic) and node.op.kind == "and":
            waiting.extend(node.args)
        else:
            found.append(node)
    return found


def domain_margins(condition: Node) -> list[Node]:
    """What is positive inside of a domain: b − a for a < b, and one node for all that is no comparison."""
    parts = _parts(condition)
    simple = [p for p in parts if isinstance(p.op, Compare) and p.op.relation in ("<", "<=")]
    found = [sub(p.args[1], p.args[0]) for p in simple]
    return found if len(simple) == len(parts) else [*found, sub(condition, constant(Fraction(1, 2)))]


def given_numbers(domain: Node | None, fixed: Collection[sympy.Symbol]) -> dict[Node, Node]:
    """The parameters without axes to which a domain gives numbers, and these."""
    parts = [] if domain is None else _parts(domain)
    pairs = [p.args for p in parts if isinstance(p.op, Compare) and p.op.relation == "=="]
    free = (p for pair in pairs for p in (pair, pair[::-1]) if isinstance(p[1].op, Constant))
    return {a: b for a, b in free if isinstance(a.op, Input) and not a.shape and symbol_of(a) in fixed}


Bounds = Mapping[Node, tuple[float, float]]
"""Between which numbers inputs lie, all elements alike; infinite where there is no bound."""


def bounds_of(box: Box) -> Bounds:
    """The bounds as floats."""
    return {node: (float(interval.low), float(interval.high)) for node, interval in box.items()}


def _bound(node: Node, found: dict[Node, Interval]) -> None:
    """Adds the bounds that a < b implies for an input or its absolute value."""
    (a, b), strict = node.args, op_of(node, Compare).relation == "<"
    low, high = constant_value(a), constant_value(b)
    if isinstance(b.op, Input) and low is not None:
        _narrow(found, b, above(low, strict))
    elif isinstance(a.op, Input) and high is not None:
        _narrow(found, a, below(high, strict))
    elif high is not None and isinstance(a.op, Apply) and a.op.head is sympy.Abs:
        (inside,) = a.args
        if isinstance(inside.op, Input):
            _narrow(found, inside, below(high, strict))
            _narrow(found, inside, -below(high, strict))


def _narrow(found: dict[Node, Interval], node: Node, bound: Interval) -> None:
    found[node] = both(found[node], bound) if node in found else bound
