"""One point at which a numeric function is compared with exact values, and what counts there.

Exact values come from the graph in 50 digits and more, at the exact rational values of the floats. With unit
roundoff ε, a value computed for v is accepted at a point if

    |computed − v| ≤ C ε (E + ‖V‖),

where E is how far the roundings of the formula may move v (`rounding_errors`: each rounding counts with its
effect on the result), and ‖V‖ is the largest element if v is one of an array. A point counts as measured only
if a relative change of v by `SEEN`, or `visible` in lower precision, would have been seen there. A larger
error than is allowed is one of the formula if it is at least half of that and does not jump about between
neighboring floats; else digits are lost. They are lost, too, where the whole error is a rounding of the
largest value at an ordinary point of the region: σ'(400) = 2e-174 is 0 as σ (1 − σ), and no error of the
formula. At extreme points E has the roundings of the inputs alone: there the question is which digits are
lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np

from symad.core.graph import Node
from symad.errors import SymadError
from symad.verification.budget import NODE, OutOfBudget, operations
from symad.verification.certificate.certificate import Loss
from symad.verification.certificate.report import RAISED
from symad.verification.certificate.witness import Witness, digits_of
from symad.verification.fields.prime_fields import Array
from symad.verification.measuring.call_users_code import BadReturn
from symad.verification.measuring.found import OutputFinding, SamplePoint, finite
from symad.verification.measuring.precisions import DOUBLE, SINGLE
from symad.verification.measuring.rounding_errors import Error, Errors, effects, is_rounded, nudged
from symad.verification.measuring.task import KIND, SPECIAL, ZEROS, Task, is_moderate
from symad.verification.values.fifty_digits import Precise, is_manageable, settled_values
from symad.verification.values.point_set import FloatPoint, exactly
from symad.verification.values.regions import Region, region_around

if TYPE_CHECKING:
    from symad.verification.certificate.witness import Nested

UNKNOWN = 1e-50
"""What roundings in the 100 digits of an exact value may do, relative to those of a program."""


def truth_at(task: Task, point: FloatPoint, extreme: bool) -> Truth | None:
    """What is exact at a point; None where no exact value exists, or a kink is close."""
    task.meter.spend(NODE * len(task.nodes) + 8 * operations(task.nodes))
    exact = exactly(point)
    if not is_manageable(task.outputs, point):
        return None
    region = region_around(task.nodes, exact, task.held)
    if region is None:
        return None
    try:
        right = settled_values(task.outputs, exact, meter=task.meter)
        moved = effects(task.outputs, right.every, right.digits, partial(_counts, task, extreme))
        fixed = []
        if task.limits.is_low and not extreme:
            fixed = effects(task.outputs, right.every, right.digits, partial(_is_constant, task))
    except OutOfBudget:
        raise
    except (SymadError, ArithmeticError, ValueError):
        return None
    if not any(np.any(finite(v)) or not v.size for v in right.values):
        return None
    return Truth(right, moved, region, extreme, fixed)


def _counts(task: Task, extreme: bool, node: Node) -> bool:
    """Whether the rounding of a node counts: at extreme points those of inputs and results alone."""
    wanted = not extreme or not node.args or node in task.outputs
    return wanted and node in task.counted and node not in task.held and is_rounded(node, task.limits)


def _is_constant(task: Task, node: Node) -> bool:
    """Whether a node is a number that the type does not have."""
    return node.op.stored and is_rounded(node, task.limits)


@dataclass(frozen=True)
class Truth:
    """The exact values at a point, how far roundings may move them, and the region it lies in."""

    right: Precise
    moved: Sequence[Array]
    region: Region
    extreme: bool
    fixed: Sequence[Array] = ()
    """How far roundings of constants, the same at all points, may move them."""


def compare_at(
    task: Task, kind: str, point: FloatPoint, truth: Truth, found: Sequence[OutputFinding]
) -> None:
    """Call the candidate at one point and compare."""
    here = _Here(kind, point, task.where(point), task.size_of(point))
    try:
        numbers = task.called(point)
    except OutOfBudget:
        raise
    except BadReturn:
        if not any(w.points for w in found):  # it never returned anything else
            raise
        word = "no value of the right kind"
    except Exception as problem:  # whatever the user's function raises is what is to be reported
        word = f"{RAISED}{type(problem).__name__}: {problem}"
    else:
        for k, (w, number, right) in enumerate(zip(found, numbers, truth.right.values, strict=True)):
            w.points += 1
            _compare_arrays(task, k, w, here, number, right, truth)
        return
    for w, name in zip(found, task.names, strict=True):
        w.losses.append(Loss(word, name, kind, here.where))


@dataclass(frozen=True)
class _Here:
    kind: str
    point: FloatPoint
    where: Mapping[str, Nested]
    size: float
    near: dict[int, tuple[Any, Any]] = field(default_factory=dict)  # right and called, by steps away


def _compare_arrays(
    task: Task, k: int, w: OutputFinding, here: _Here, got: Array, right: Array, truth: Truth
) -> None:
    """Update what is found about output ``k`` with one point."""
    limits = task.limits
    w.seen = seen = limits.visible
    known = finite(right)
    largest = float(max((abs(v) for v in right[known]), default=mpmath.mpf(0))) if right.shape else 0.0
    if here.kind == "ordinary":
        w.rescale(truth.region, right)
        if truth.fixed:
            place = SamplePoint(truth.region, here.where, got, right)
            w.means.add(place, truth.moved[k], truth.fixed[k], limits)
    below = limits.factor * limits.eps * w.scale.get(truth.region, 0.0)
    moved = truth.moved[k]
    unknown = float(truth.right.floor) if truth.extreme else moved * UNKNOWN
    errors = Errors.of(got, right, moved + largest, unknown, limits, here.size)
    off, lost = known & (errors.excess > 1), (errors.excess > 1) & (errors.absolute <= below)
    counts = known & (errors.resolution <= seen) & ~lost
    w.relative = max(w.relative, float(np.max(errors.relative, initial=0.0, where=counts)))
    w.ulps = max(w.ulps, float(np.max(errors.ulps, initial=0.0, where=counts)))
    resolved = np.where(known, errors.resolution, np.inf)
    for index in map(tuple, np.argwhere(off).tolist()):
        told = digits_of(right[index]), repr(float(got[index]))
        if _blinds(task, k, w, here, index, errors.at(index), told, bool(lost[index])):
            resolved[index] = np.inf
    w.keep(truth.region, resolved, right)


def _blinds(
    task: Task,
    k: int,
    w: OutputFinding,
    here: _Here,
    at: tuple[int, ...],
    error: Error,
    told: tuple[str, str],
    lost: bool,
) -> bool:
    """Tell an error, as one of the formula or as digits lost, and whether it hides others of that size."""
    near = here.kind in NEAR and not lost
    if near and _is_of_the_formula(task, k, w, here, at, error):
        if w.wrong is None:
            w.wrong, w.excess = Witness(here.where, *told, at), error.excess
        return False
    underflows = here.kind == "ordinary" and error.resolution == np.inf
    if not (lost or error.resolution <= 1 or underflows or np.isnan(error.got)):
        return False
    digits = error.lost(task.limits)
    w.losses.append(Loss(error.word, task.names[k], here.kind, here.where, *told, tuple(at), digits))
    return error.relative >= w.seen / 2


NEAR = ("ordinary", "far", "turning", KIND, ZEROS, SPECIAL)
"""The kinds of points at which an error may be one of the formula."""


SHRUNK = 2.0**-10
"""Far from ordinary points a value is compared with those where an input is this much closer to 0."""


def _is_small_beside(task: Task, k: int, here: _Here, at: tuple[int, ...], error: Error) -> bool:
    """Whether an error at a far point is a rounding of a value that the result has closer to 0.

    The scale of ordinary points says nothing there: x² (1 - tanh²(x y)) is 4e-12 at (300, 0.065), and
    rounding tanh there moves it by 300² ε.
    """
    if is_moderate(here.point):
        return False
    free = ((n, v) for n, v in here.point.items() if n not in task.held)
    changes = [[n] for n, v in free if np.asarray(v).dtype.kind == "f"]
    for nodes in [*changes, [n for change in changes for n in change]]:
        near = {n: v * SHRUNK if n in nodes else v for n, v in here.point.items()}
        try:
            size = abs(settled_values(task.outputs, exactly(near), meter=task.meter).values[k][at])
        except OutOfBudget:
            raise
        except (SymadError, ArithmeticError, ValueError):
            continue
        if mpmath.isfinite(size) and error.absolute <= task.limits.factor * task.limits.eps * size:
            return True
    return False


NEIGHBORS = 24


def _is_of_the_formula(
    task: Task, k: int, w: OutputFinding, here: _Here, at: tuple[int, ...], error: Error
) -> bool:
    """Whether an error counts and is one of the formula: rounding jumps about between floats, it does not.

    A value that is another one when the function is called again is none of the formula either.
    """
    seen = w.seen
    if seen < error.resolution < np.inf or error.relative < seen / 2:
        return False
    if here.kind in ("far", KIND, ZEROS) and _is_small_beside(task, k, here, at, error):
        return False
    if np.isnan(error.got):  # where other directions give values, a product has one for these
        return here.kind in (ZEROS, SPECIAL) and not w.stuck
    if np.isinf(error.got):
        return here.kind in ("ordinary", ZEROS, SPECIAL)
    if task.limits is DOUBLE and _is_blurred(task, k, here, at, error.got):
        return False
    try:
        if 0 not in here.near:
            here.near[0] = None, task.called(here.point)
        if here.near[0][1][k][at] != error.got:
            w.unsteady = w.unsteady or here.where
            return False
        small = error.absolute <= BESIDE * task.limits.factor * task.limits.eps * max(
            w.scale.values(), default=0.0
        )
        return all(_is_steady(task, k, here, at, coarse) for coarse in (False, True)[: 1 + small])
    except OutOfBudget:
        raise
    except Exception:  # whatever the user's function raises close by: this point tells nothing
        return False


def _is_blurred(task: Task, k: int, here: _Here, at: tuple[int, ...], got: float) -> bool:
    """Whether a function returns the same at the nearest point in float32, at which something turns.

    A program that computes in float32 and returns numbers of float64, as masks are, meets a tie of a maximum,
    an order or a clip there; at a tie either side is right.
    """
    near = SINGLE.rounded_point(here.point)
    try:
        tied = region_around(task.nodes, exactly(near), task.held) is None
        return tied and bool(task.called(near)[k][at] == got)
    except OutOfBudget:
        raise
    except Exception:  # whatever the user's function raises close by: this point tells nothing
        return False


BESIDE = 1e4
"""How many times larger than the roundings of the largest value an error may be to be tried by larger steps.

Neighboring floats do not tell such an error from a wrong formula: 1 − tanh² of 15 is off equally at many.
"""


def _is_steady(task: Task, k: int, here: _Here, at: tuple[int, ...], coarse: bool) -> bool:
    """Whether the error hardly changes between neighboring floats, or floats a little apart."""
    errors = []
    for step in range(1, NEIGHBORS + 1):
        key = -step if coarse else step
        if key not in here.near:
            fixed = {*task.held, *(task.directions if here.kind == SPECIAL else ())}
            moved = {n: nudged(v, step, task.limits, coarse) for n, v in here.point.items() if n not in fixed}
            near = {**here.point, **moved}
            exact = settled_values(task.outputs, exactly(near), meter=task.meter).values
            here.near[key] = exact, task.called(near)
        right, got = (values[k][at] for values in here.near[key])
        errors.append(float(mpmath.mpf(float(got)) - right))
    spread, middle = max(errors) - min(errors), abs(sum(errors)) / len(errors)
    return bool(np.isfinite(middle) and spread <= middle / 2)
