"""Numeric functions measured against exact values: relative error, ulps, and a bound that knows conditioning.

A value v computed in floating point with unit roundoff ε is accepted at a point x if

    |computed − v| ≤ C ε (|v| + ‖V‖ + Σ_j |x_j ∂v/∂x_j|),

the error that C roundings of the inputs and the result would cause (Higham, Accuracy and Stability of
Numerical Algorithms, section 1.6); ‖V‖ is the largest element, if v is one of an array. At ordinary
points C roundings of intermediate values of the formula, of the size M of the largest, are allowed as
well: there the question is whether the formula is right, not whether it is stable. Exact values come
from the graph in 50 digits and more, at the exact rational values of the floats. Ties and boundaries are
left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from symad.errors import SymadError
from symad.evaluation import unchecked
from symad.graph import Graph, Node
from symad.jacobian import jacobian
from symad.verification.budget import NODE, Meter, OutOfBudget, operations
from symad.verification.calling import BadReturn, Caller, as_real_array
from symad.verification.certificate import Entry
from symad.verification.fields import Array
from symad.verification.guard import Guard
from symad.verification.hostile import FloatPoint, exactly, hostile_points, is_manageable, ordinary_points
from symad.verification.integer_inputs import integer_inputs
from symad.verification.precise import (
    Precise,
    all_nodes,
    close_everywhere,
    evaluate_all,
    settled_values,
    usable,
)
from symad.verification.rewriting import expand_definitions
from symad.verification.witness import Witness, digits_of

FACTOR = 256.0
"""C above."""

ORDINARY = 24

Flat = Callable[[Any], "list[Any]"]
"""From what a numeric function returned its outputs, in order."""


@dataclass
class Worst:
    """The largest errors of one output, and what went wrong first."""

    points: int = 0
    relative: float = 0.0
    ulps: float = 0.0
    excess: float = 0.0
    """The largest error as a multiple of what is allowed."""
    at: Mapping[str, Any] | None = None
    fault: str = ""
    stopped: str = ""
    """What was used up before all points were visited."""
    witness: Witness | None = None


def measure(
    candidate: Callable[..., Any],
    reference: Graph,
    names: Sequence[str],
    flat: Flat,
    assumes: tuple[str, ...],
    meter: Meter,
    hostile: bool = True,
) -> list[Entry]:
    """Two entries for each output: at ordinary points, and at hostile ones.

    Args:
        candidate: called with the values of the reference's inputs, floats and float64 arrays.
        reference: what it should compute; all sizes are numbers.
        names: of its outputs.
        flat: takes apart what the candidate returns.
        assumes: what is trusted.
        meter: stops the measurement.
        hostile: whether hostile points are visited as well.
    """
    caller = Caller(candidate)
    outputs = expand_definitions(reference.output_nodes)
    ranges = integer_inputs(outputs)
    tried = ordinary_points(reference.input_nodes, ranges, ORDINARY)
    ordinary = _measure(caller, reference, outputs, flat, tried, meter, True)
    entries = [_ordinary_entry(n, w, assumes) for n, w in zip(names, ordinary, strict=True)]
    if not hostile or any(e.status == "refuted" for e in entries):
        return entries
    tried = hostile_points(reference.input_nodes, ranges)
    worst = _measure(caller, reference, outputs, flat, tried, meter, False)
    return entries + [_hostile_entry(n, w, assumes) for n, w in zip(names, worst, strict=True)]


def _measure(
    candidate: Caller,
    reference: Graph,
    outputs: Sequence[Node],
    flat: Flat,
    tried: Iterable[tuple[str, FloatPoint]],
    meter: Meter,
    lenient: bool,
) -> list[Worst]:
    """The worst errors of each output over some points, as many as there is time for."""
    worst = [Worst() for _ in outputs]
    try:
        with Guard(meter):
            _visit(candidate, reference, outputs, flat, tried, worst, meter, lenient)
    except OutOfBudget:
        for w in worst:
            w.stopped = meter.used_up
    return worst


def _visit(
    candidate: Caller,
    reference: Graph,
    outputs: Sequence[Node],
    flat: Flat,
    tried: Iterable[tuple[str, FloatPoint]],
    worst: Sequence[Worst],
    meter: Meter,
    lenient: bool,
) -> None:
    """Compare at the points at which an exact value exists and no kink is close."""
    slopes = jacobian(reference.with_outputs(outputs, None) if len(outputs) == 1 else reference)
    nodes = all_nodes(*outputs)
    steps = NODE + 4 * operations(nodes)
    listed = [p for _, p in tried]
    always = close_everywhere(nodes, [exactly(p) for p in listed[:3]])
    for point in listed:
        meter.spend(steps)
        if not is_manageable(outputs, point) or not usable(nodes, exactly(point), always):
            continue
        try:
            found = settled_values(outputs, exactly(point), meter=meter)
        except (SymadError, ArithmeticError, ValueError):
            continue
        if not any(np.any(_finite(v)) for v in found.values):
            continue
        conditions = _conditions(slopes, point, outputs, found.values)
        if lenient:
            conditions = [c + float(found.largest) for c in conditions]
        _compare_at(candidate, reference, point, found, conditions, flat, worst)


def _finite(values: Array) -> Array:
    return np.asarray(np.frompyfunc(lambda v: bool(mpmath.isfinite(mpmath.mpf(v))), 1, 1)(values)).astype(
        bool
    )


def _conditions(
    slopes: Graph, point: FloatPoint, outputs: Sequence[Node], exact: Sequence[Array]
) -> list[Array]:
    """Σ_j |x_j ∂v/∂x_j| for each element of each output; infinite where the slope has no value."""
    (matrix,) = unchecked(slopes.output_nodes, point)
    rows = np.asarray(matrix, dtype=np.float64)
    if not np.all(np.isfinite(rows)):  # over- or underflow on the way
        (precise,) = evaluate_all(slopes.output_nodes, exactly(point), 50)
        with np.errstate(all="ignore"):
            rows = np.asarray(np.frompyfunc(float, 1, 1)(precise), dtype=np.float64)
    flat = [np.ravel(np.asarray(point[n], dtype=np.float64)) for n in slopes.input_nodes]
    inputs = np.concatenate(flat) if flat else np.zeros(0)
    with np.errstate(all="ignore"):
        sums = np.where(rows == 0, 0.0, np.abs(rows * inputs)).sum(axis=1)
    sums = np.where(np.isnan(sums), np.inf, sums)
    parts, offset = [], 0
    for value in exact:
        parts.append(sums[offset : offset + value.size].reshape(value.shape))
        offset += value.size
    return parts


def _compare_at(
    candidate: Caller,
    reference: Graph,
    point: FloatPoint,
    exact: Precise,
    conditions: Sequence[Array],
    flat: Flat,
    worst: Sequence[Worst],
) -> None:
    """Call the candidate at one point and compare."""
    where = {str(n.op.symbol): _plain(v) for n, v in point.items()}  # type: ignore[attr-defined]
    try:
        with np.errstate(all="ignore"):
            returned = flat(candidate([point[n] for n in reference.input_nodes]))
    except OutOfBudget:
        raise
    except Exception as problem:  # whatever the user's function raises is what is to be reported
        for w in worst:
            w.points += 1
            _blame_call(w, where, f"raised {type(problem).__name__}: {problem}")
        return
    if len(returned) != len(worst):
        for w in worst:
            w.points += 1
            _blame_call(w, where, f"returned {len(returned)} outputs instead of {len(worst)}")
        return
    for w, value, right, condition in zip(worst, returned, exact.values, conditions, strict=True):
        w.points += 1
        try:
            number = as_real_array(value, right.shape)
        except BadReturn as problem:
            _blame_call(w, where, str(problem))
            continue
        _compare_arrays(w, number, right, condition, exact.floor, where)


def _blame_call(w: Worst, where: Mapping[str, Any], fault: str) -> None:
    if not w.fault:
        w.fault, w.at, w.excess = fault, where, float("inf")


def _compare_arrays(
    w: Worst, got: Array, exact: Array, condition: Array, floor: Any, where: Mapping[str, Any]
) -> None:
    """Update the worst errors of one output with one point."""
    kind = got.dtype if got.dtype.kind == "f" else np.dtype(np.float64)
    limits = np.finfo(kind)
    finite = _finite(exact)
    if exact.shape and finite.any():
        condition = condition + float(max(abs(v) for v in exact[finite]))
    for index in np.ndindex(*exact.shape):
        if not finite[index]:
            continue
        value, slope = float(got[index]), float(condition[index])
        relative, ulps, excess = _errors(value, exact[index], slope, floor, limits)
        w.relative, w.ulps = max(w.relative, relative), max(w.ulps, ulps)
        if excess > w.excess:
            w.excess, w.at = excess, where
            w.witness = Witness(where, digits_of(exact[index]), repr(float(got[index])), tuple(index))
            if np.isnan(got[index]):
                w.fault = "returned NaN"


def _errors(got: float, exact: Any, condition: float, floor: Any, limits: Any) -> tuple[float, float, float]:
    """Relative error, ulps, and the error as a multiple of what is allowed.

    The exact value is known up to ``floor``. Where the allowed error exceeds the value itself no digit is
    determined, and anything is accepted.
    """
    largest, smallest = mpmath.mpf(float(limits.max)), mpmath.mpf(float(limits.smallest_subnormal))
    lost = (float("inf"), float("inf"), float("inf"))
    with mpmath.workdps(60):
        eps = mpmath.mpf(float(limits.eps)) / 2
        allowed = FACTOR * (eps * (abs(exact) + mpmath.mpf(condition)) + smallest)
        if allowed >= abs(exact) and exact and allowed > FACTOR * smallest * 2:
            return 0.0, 0.0, 0.0
        if np.isnan(got):
            return lost
        if abs(exact) > largest:
            right = (got > 0) == (exact > 0) and abs(got) >= float(largest)
            return (0.0, 0.0, 0.0) if right else lost
        if np.isinf(got):
            return lost
        error = max(abs(mpmath.mpf(got) - exact) - floor, mpmath.mpf(0))
        normal = abs(exact) >= mpmath.mpf(float(limits.smallest_normal))
        spacing = 2 * eps * mpmath.mpf(2) ** mpmath.floor(mpmath.log(abs(exact), 2)) if normal else smallest
        relative = error / abs(exact) if normal else mpmath.mpf(0)
        return float(relative), float(error / spacing), float(error / allowed)


def _plain(value: Any) -> Any:
    return [_plain(v) for v in value] if isinstance(value, np.ndarray) and value.ndim else repr(_item(value))


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, (np.ndarray, np.generic)) else value


# ---- entries ------------------------------------------------------------------------------------


def _figures(w: Worst) -> dict[str, Any]:
    return {
        "points": w.points,
        "relative error": w.relative,
        "ulps": w.ulps,
        "allowed": w.excess,
        "worst point": w.at,
    }


def _claim(w: Worst, kind: str) -> str:
    if w.fault:
        return f"called at {w.points} {kind} points"
    more = " + M" if kind == "ordinary" else ""
    return (
        f"measured at {w.points} {kind} points: error at most {w.ulps:.3g} ulps, {w.relative:.2g} relative; "
        f"allowed {FACTOR:g} ε (|v| + ‖V‖ + Σ|x ∂v/∂x|{more})"
    )


def _ordinary_entry(name: str, w: Worst, assumes: tuple[str, ...]) -> Entry:
    if not w.points or (w.stopped and w.excess <= 1):
        reason = w.stopped or "no point was found at which the exact value exists"
        return Entry(name, "undecided", "not measured", 1.0, assumes, reason=reason)
    if w.excess <= 1:
        return Entry(name, "tested", _claim(w, "ordinary"), 1.0, assumes, measured=_figures(w))
    reason = w.fault or f"the error is {w.excess:.3g} times what is allowed"
    return Entry(
        name,
        "refuted",
        _claim(w, "ordinary"),
        0.0,
        assumes,
        w.witness,
        None,
        _with_point(reason, w),
        _figures(w),
    )


def _hostile_entry(name: str, w: Worst, assumes: tuple[str, ...]) -> Entry:
    label = f"{name} at hostile points"
    if w.stopped and w.excess <= 1:
        return Entry(label, "undecided", _claim(w, "hostile"), 1.0, assumes, reason=w.stopped)
    if not w.points:
        return Entry(label, "tested", "no hostile point has an exact value", 1.0, assumes)
    if w.excess <= 1:
        return Entry(label, "tested", _claim(w, "hostile"), 1.0, assumes, measured=_figures(w))
    reason = w.fault or f"accuracy is lost: the error is {w.excess:.3g} times what is allowed"
    return Entry(
        label,
        "undecided",
        _claim(w, "hostile"),
        1.0,
        assumes,
        w.witness,
        None,
        _with_point(reason, w),
        _figures(w),
    )


def _with_point(reason: str, w: Worst) -> str:
    if w.at is None:
        return reason
    return f"{reason}, at {', '.join(f'{k} = {v}' for k, v in w.at.items())}".replace("'", "")
