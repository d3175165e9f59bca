"""How far the roundings of a formula may move its results, at one point.

A value y of a graph changes by Σ_n v_n (∂y/∂v_n) δ_n if each node n, with the value v_n, has a relative
rounding δ_n (Higham, Accuracy and Stability of Numerical Algorithms, sections 1.6 and 3.1). Each rounding
counts with its effect on the result, so that a large intermediate value that cancels exactly, or that a
mask removes, allows nothing. For roundings that are independent, the root of Σ (v_n ∂y/∂v_n)² is what is
to be expected; it is found by evaluating the graph to many digits with relative changes ±η at random signs.
Numbers that are floats have no rounding, however large they are.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import partial
from math import isfinite
from random import Random
from typing import Any

import mpmath
import numpy as np

from symad.core.arrays import Number
from symad.core.graph import Node, topological
from symad.core.questions import evaluate
from symad.facts.functions import fact
from symad.numbers.number_domains import UndefinedValue, as_float
from symad.ops.basic.shaping import ShapingOp
from symad.ops.basic.sources import ArrayConstant, Constant, Input, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Condition
from symad.verification.fields.integer_inputs import integer_positions
from symad.verification.fields.prime_fields import Array
from symad.verification.measuring.precisions import DOUBLE, Precision

SAMPLES = 3
"""Choices of signs; the largest change counts."""

ETA = 30
"""Changes are 10^-ETA, relative."""


def effects(
    outputs: Sequence[Node],
    values: Mapping[Node, Any],
    digits: int,
    rounds: Callable[[Node], bool] | None = None,
) -> list[Array]:
    """For each element of the outputs its change by relative roundings of size 1, as floats.

    Args:
        outputs: nodes.
        values: of all nodes they need, to so many digits.
        digits: of these; by `ETA` fewer are known of a change.
        rounds: which nodes have a rounding; by default all whose values are rounded in doubles.
    """
    order = topological(outputs)
    values = {n: values[n] if n.shape else np.asarray(values[n])[()] for n in order}
    whole = _whole(order, values)
    turned = {n for n in order if n not in whole and (rounds or partial(is_rounded, limits=DOUBLE))(n)}
    rng = Random(0)
    found = [np.zeros(np.shape(values[o])) for o in outputs]
    with mpmath.workdps(digits), np.errstate(all="ignore"):
        eta = mpmath.mpf(10) ** -ETA
        for _ in range(SAMPLES):
            moved = _moved(order, values, turned, eta, rng)
            for k, o in enumerate(outputs):
                change = np.frompyfunc(lambda a, b: _size((a, b), eta), 2, 1)(moved[o], values[o])
                found[k] = np.maximum(found[k], np.asarray(change, dtype=np.float64))
    return found


def _moved(
    order: Sequence[Node],
    values: Mapping[Node, Number],
    turned: Container[Node],
    eta: mpmath.mpf,
    rng: Random,
) -> dict[Node, Number]:
    """All values where some have a relative change of their own."""
    up, down = 1 + eta, 1 - eta
    turn = np.frompyfunc(lambda v: v * (up if rng.random() < 0.5 else down) if v else v, 1, 1)
    found: dict[Node, Number] = {}
    for node in order:
        value = evaluate(node.op, tuple([found[a] for a in node.args])) if node.args else values[node]
        found[node] = _turned(value, turn) if node in turned else value
    return found


def _whole(order: Sequence[Node], values: Mapping[Node, Number]) -> set[Node]:
    """Integers made of integers, such as the order n + 1 of a polygamma function: they round none.

    So do places in an array, whether constants, inputs, or chosen by comparisons, and masks: products and
    quotients of what is 0 or 1 by a comparison.
    """
    found: set[Node] = set()
    exact = set(topological([n.args[k] for n in order for k in integer_positions(n)]))
    exact |= {n for n in order if isinstance(n.op, Condition)}
    for node in order:
        known = node in exact or (all(a in found for a in node.args) and not isinstance(node.op, Input))
        if known and _are_integers(values[node]):
            found.add(node)
    return found


def _are_integers(values: Any) -> bool:
    """Whether all values are integers that floats represent, or truth values."""
    array = np.asarray(values)
    if array.dtype.kind in "biu":
        return True
    with np.errstate(all="ignore"):
        near = np.asarray(np.frompyfunc(as_float, 1, 1)(array), dtype=np.float64)
    return bool(np.all((near == np.floor(near)) & (np.abs(near) < 2.0**53)) and np.all(array == near))


def _turned(value: Array | mpmath.mpf, turn: Callable[[mpmath.mpf], mpmath.mpf]) -> Array | mpmath.mpf:
    if isinstance(value, np.ndarray):
        if value.dtype != object or not all(isinstance(v, mpmath.mpf) for v in value.flat):
            return value
        return turn(value)
    return turn(value) if isinstance(value, mpmath.mpf) else value


def is_rounded(node: Node, limits: Precision) -> bool:
    """Whether a value is rounded when it is computed in a floating-point type."""
    if isinstance(node.op, Constant):
        return not _is_float(constant_value(node), limits)
    if isinstance(node.op, ArrayConstant):
        array = node.op.array
        return bool(array.dtype == object or np.any((limits.rounded(array) != array) & np.isfinite(array)))
    if isinstance(node.op, ShapingOp) or node.op.kinked:  # moves or chooses values
        return False
    return not (isinstance(node.op, Apply) and fact(node.op.head).exact)


def _is_float(value: Number, limits: Precision) -> bool:
    """Whether a number is one of a type; π and 1/3 are of none."""
    if not isinstance(value, (bool, float, int, Fraction)):
        return False
    if isinstance(value, float) and not isfinite(value):
        return True
    try:
        return Fraction(float(value)) == value and limits.holds(float(value))
    except OverflowError:
        return False


def _size(pair: tuple[mpmath.mpf, ...], eta: mpmath.mpf) -> float:
    """|a − b|/η as a float; infinite where a value is lost on the way."""
    a, b = pair
    if isinstance(a, UndefinedValue) or isinstance(b, UndefinedValue):
        return float("inf")
    if isinstance(a, (bool, np.bool_)) or isinstance(b, (bool, np.bool_)):
        return 0.0 if bool(a) == bool(b) else float("inf")
    if a == b:
        return 0.0
    difference = abs(mpmath.mpf(a) - b) / eta
    return float(difference) if mpmath.isfinite(difference) else float("inf")


# ---- errors of floating-point numbers ------------------------------------------------------------


@dataclass(frozen=True)
class Errors:
    """How far computed values are off, element by element."""

    got: Array
    relative: Array
    ulps: Array
    excess: Array
    """The errors as multiples of the allowed ones: an element above 1 is wrong, or has lost digits."""
    resolution: Array
    """The smallest relative error that is not allowed; infinite for what underflows, is 0 or overflows."""
    absolute: Array

    @staticmethod
    def of(
        got: Array, exact: Array, moved: Array, floor: Array | float, limits: Precision, beside: float = 1.0
    ) -> Errors:
        """The errors of an array; exact values, numbers of many digits, are known up to ``floor``.

        Args:
            got: what was computed.
            exact: the exact values.
            moved: how far roundings may move them.
            floor: see above.
            limits: the type in which it was computed.
            beside: what an error is compared with where the exact value and those beside it underflow.
        """
        got, size = got.astype(np.float64), np.abs(exact.astype(np.float64))
        with mpmath.workdps(60), np.errstate(all="ignore"):
            apart = np.asarray(np.where(np.isfinite(got), got, 0.0) - exact, dtype=np.float64)
            error = np.maximum(np.abs(apart) - floor, 0.0)
            normal, low = size >= limits.smallest_normal, limits.smallest_subnormal
            allowed = limits.factor * (limits.eps / 2 * (moved + size) + low)
            spacing = np.where(normal, np.ldexp(limits.eps, np.frexp(size)[1] - 1), low)
            scale = np.where(moved < limits.smallest_normal, beside, moved)
            relative = error / np.where(normal, size, scale)
            resolution = np.where(normal, allowed / size, np.inf)
            ulps, excess = error / spacing, error / allowed
        over, lost = size > limits.max, ~np.isfinite(got)
        right = over & ((got > 0) == (exact > 0)) & (np.abs(got) >= limits.max)
        none, all_of_it = np.where(over, 0.0, np.inf), np.where(right, 0.0, np.inf)
        return Errors(
            got,
            np.where(over | lost, none, relative),
            np.where(over | lost, none, ulps),
            np.where(over | lost, all_of_it, excess),
            np.where(over, np.inf, resolution),
            np.where(over | lost, np.inf, error),
        )

    def at(self, index: tuple[int, ...]) -> Error:
        """The error of one element."""
        return Error(*(float(getattr(self, f.name)[index]) for f in fields(self)))


@dataclass(frozen=True)
class Error:
    """How far one computed value is off; see `Errors`."""

    got: float
    relative: float
    ulps: float
    excess: float
    resolution: float
    absolute: float

    @property
    def word(self) -> str:
        """What to call it."""
        if np.isnan(self.got):
            return "no value (NaN)"
        return "overflow" if np.isinf(self.got) else "digits lost"

    def lost(self, limits: Precision) -> int:
        """How many decimal digits are lost."""
        whole = -np.log10(limits.eps)
        if not np.isfinite(self.relative):
            return round(whole)
        return round(min(whole, max(0.0, np.log10(max(self.ulps, 1.0)))))


def nudged(
    value: Array | float, step: int, limits: Precision = DOUBLE, coarse: bool = False
) -> Array | float:
    """A neighboring float, some units in the last place away, or some parts of 2⁻¹⁴; integers stay.

    A small x always moves by parts of itself: floats of exp(x) or 1 + x² hardly change with its last digits,
    so that the error of a cancellation would look steady.
    """
    array = np.asarray(value)
    if array.dtype.kind != "f":
        return value
    units = limits.eps * (3 if limits.bits > 11 else 1)
    moved = array * (1 + step * np.where(coarse | (np.abs(array) < 2.0**-4), max(2.0**-14, units), units))
    return limits.rounded(moved if isinstance(value, np.ndarray) else float(moved))


def plain(value: Array | float) -> Any:
    """A number or array as text, in lists."""
    return [plain(v) for v in value] if isinstance(value, np.ndarray) and value.ndim else repr(_item(value))


def _item(value: Number) -> object:
    return value.item() if isinstance(value, (np.ndarray, np.generic)) else value
