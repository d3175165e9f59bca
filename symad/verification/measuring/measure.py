"""Numeric functions measured against exact values: is the formula right, and which digits are lost where.

Exact values come from the graph in 50 digits and more, at the exact rational values of the floats. With unit
roundoff ε, a value computed for v is accepted at a point if

    |computed − v| ≤ C ε (E + ‖V‖),

where E is how far the roundings of the formula may move v (`rounding`: each rounding counts with its effect
on the result), and ‖V‖ is the largest element if v is one of an array. A point counts as measured only if a
relative change of v by `SEEN`, or `visible` in lower precision, would have been seen there. A larger
error than is allowed is one of the formula if it is at least half of that and does not jump about between
neighboring floats; else digits are lost. They are lost, too, where the whole error is a rounding of the
largest value at an ordinary point of the region: σ'(400) = 2e-174 is 0 as σ (1 − σ), and no error of the
formula. At extreme points E has the roundings of the inputs alone: there the question is which digits are
lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np

from symad.core.graph import Graph, Node
from symad.errors import SymadError
from symad.ops.basic.sources import symbol_of
from symad.verification.budget import NODE, Meter, OutOfBudget, operations
from symad.verification.certificate.certificate import Entry, Loss
from symad.verification.certificate.witness import Witness, digits_of
from symad.verification.fields.integer_inputs import integer_inputs, reads_inside
from symad.verification.fields.prime_fields import Array
from symad.verification.measuring.call_users_code import (
    BadReturn,
    Caller,
    as_real_array,
    kind_of,
    refuse_arguments,
)
from symad.verification.measuring.directions import KIND, special_directions
from symad.verification.measuring.floating_errors import FACTOR, Error, nudged, plain
from symad.verification.measuring.found import RAISED, Found, entry_of, finite, visible
from symad.verification.measuring.rounding_errors import effects, values_of
from symad.verification.measuring.sampling import KIND as SAMPLED
from symad.verification.measuring.sampling import SAMPLED as MANY
from symad.verification.measuring.sampling import is_moderate, rows, suspicious
from symad.verification.points import PointSet
from symad.verification.rewriting.identities.at_numbers import with_whole_parts
from symad.verification.rewriting.rewrite import expand_definitions
from symad.verification.time_guard import Guard
from symad.verification.values.fifty_digits import (
    Precise,
    all_nodes,
    close_everywhere,
    regions_of,
    settled_values,
    usable,
)
from symad.verification.values.hostile_points import (
    FloatPoint,
    exactly,
    hostile_points,
    is_manageable,
    ordinary_points,
)
from symad.verification.values.turning_points import turning_points

if TYPE_CHECKING:
    from symad.verification.values.points import Nested

UNKNOWN = 1e-50
"""What roundings in the 100 digits of an exact value may do, relative to those of a program."""

ORDINARY, FEW, FAR = 24, 4, 8
FEWEST = 2
"""The points at sizes that are tried in addition: what is wrong there mostly is at each point."""

Flat = Callable[[Any], "list[Any]"]
"""From what a numeric function returned its outputs, in order."""

Inside = Callable[[FloatPoint], bool]
"""Whether a point lies in the domain that a claim is about."""


@dataclass(frozen=True)
class Task:
    """What is measured, and against what."""

    candidate: Caller
    reference: Graph
    outputs: tuple[Node, ...]
    names: tuple[str, ...]
    flat: Flat
    meter: Meter
    inside: Inside
    directions: Sequence[Node] = ()

    def size_of(self, point: FloatPoint) -> float:
        """The largest input, or 1, times the largest direction, or 1."""
        sizes = [1.0, 1.0]
        for node, value in point.items():
            k = node in self.directions
            sizes[k] = max(sizes[k], float(np.max(np.abs(value), initial=0.0)))
        return sizes[0] * sizes[1]

    @property
    def integers(self) -> Mapping[Node, tuple[int, int]]:
        """Inputs that must be integers."""
        return integer_inputs(self.reference.output_nodes)


def measure(
    caller: Caller,
    reference: Graph,
    names: Sequence[str],
    flat: Flat,
    assumes: tuple[str, ...],
    meter: Meter,
    hostile: bool = True,
    domain: Node | None = None,
    valued: Inside = lambda point: True,
    directions: Sequence[Node] = (),
    few: bool = False,
    seed: int = 0,
) -> tuple[list[Entry], list[Loss]]:
    """One entry for each output, and where digits are lost.

    Args:
        caller: calls the function with the values of the reference's inputs, floats and float64 arrays.
        reference: what it should compute; all sizes are numbers.
        names: of its outputs.
        flat: takes apart what the candidate returns.
        assumes: what is trusted.
        meter: stops the measurement.
        hostile: whether hostile points are visited as well.
        domain: positive where the claim is made.
        valued: where the function has a value whose derivative is claimed; a formula of the derivative may
            have values elsewhere. Where this is seldom so, all points count.
        directions: inputs in which the reference is linear: y_bar of a vector-Jacobian product.
        few: whether only a few ordinary points are visited: enough for a formula wrong at this size.
        seed: of the points that are drawn.

    Raises:
        BadReturn: the candidate does not take the inputs, or returns something of another kind or shape.
    """
    refuse_arguments(caller.candidate, [a.name for a in reference.arguments])
    outputs = with_whole_parts(expand_definitions(reference.output_nodes))
    reads = reads_inside(reference.output_nodes)

    drawn = PointSet(outputs, seed, reference.input_nodes, domain)

    def usable(point: FloatPoint) -> bool:
        return reads(point) and drawn.holds(point)

    task = Task(caller, reference, outputs, tuple(names), flat, meter, usable, directions)
    nodes = reference.input_nodes
    ordinary = list(ordinary_points(nodes, task.integers, ORDINARY))
    if domain is not None and sum(usable(p) for _, p in ordinary) < ORDINARY // 2:
        ordinary += [("ordinary", p) for p in islice(drawn.points(MANY), ORDINARY)]
    if sum(usable(p) and valued(p) for _, p in ordinary) >= FEW:
        task = replace(task, inside=lambda point: usable(point) and valued(point))
    if few:
        found = _visited(task, [p for p in ordinary if task.inside(p[1])][:FEWEST], False)
        entries = [entry_of(n, w, assumes) for n, w in zip(names, found, strict=True)]
        return entries, [loss for w in found for loss in w.losses if w.wrong is None]
    special = special_directions(directions, [p for _, p in ordinary if task.inside(p)][:FEW])
    turning = [("turning", point) for point in turning_points(outputs, task.integers)]
    far = [("far", point) for point in islice((p for p in drawn.points(MANY) if not is_moderate(p)), FAR)]
    tried = [*ordinary, *special, *far, *turning]
    found = _visited(task, tried, False)
    if not any(w.wrong or w.stopped or w.stuck or w.unsteady for w in found):
        _sampled(task, drawn, found, tried, hostile)
    entries = [entry_of(n, w, assumes) for n, w in zip(names, found, strict=True)]
    losses = [loss for w in found for loss in w.losses if w.wrong is None]
    if hostile and not any(e.status == "refuted" for e in entries):
        extreme = _visited(task, list(hostile_points(nodes, task.integers)), True)
        losses += [loss for w in extreme for loss in w.losses]
    return entries, losses


def _sampled(
    task: Task, drawn: PointSet, found: Sequence[Found], before: Iterable[tuple[str, FloatPoint]], far: bool
) -> None:
    """Measure at the points of a seed at which floats differ, of ordinary size alone if `far` is not asked.

    ``before`` are the points that were measured.
    """
    outputs = task.reference.output_nodes
    tried = rows(drawn, task.directions, far)
    points, count = suspicious(outputs, partial(_called, task), tried, task.inside)
    known = [(w.best, w.alive, w.largest, dict(w.regions)) for w in found]
    for w in found:
        w.sampled = count
    named = [(SAMPLED if is_moderate(p) else "far", p) for p in points]
    _visited(task, named, False, found, [p for _, p in before])
    for w, (best, alive, largest, regions) in zip(found, known, strict=True):
        w.best, w.alive, w.largest, w.regions = best, alive, largest, regions  # suspicious points show less


def _visited(
    task: Task,
    tried: Iterable[tuple[str, FloatPoint]],
    extreme: bool,
    known: Sequence[Found] | None = None,
    usual: Sequence[FloatPoint] = (),
) -> Sequence[Found]:
    """What is found at some points, as far as the budget goes.

    The first of the usual points, by default of those that are visited, tell what turns at every point;
    points at which floats differ may all lie on one kink.
    """
    found = [Found() for _ in task.outputs] if known is None else known
    try:
        with Guard(task.meter):
            inside = [(kind, p) for kind, p in tried if task.inside(p)]
            usual = [p for p in usual if task.inside(p)] or [p for _, p in inside]
            _visit(task, inside, found, extreme, usual[:3])
    except OutOfBudget:
        for w in found:
            w.stopped = task.meter.used_up
    return found


def _visit(
    task: Task,
    tried: Sequence[tuple[str, FloatPoint]],
    found: Sequence[Found],
    extreme: bool,
    usual: Sequence[FloatPoint],
) -> None:
    """Compare at the points at which an exact value exists and no kink is close."""
    nodes = all_nodes(*task.outputs)
    always = close_everywhere(nodes, [exactly(p) for p in usual])
    later = []
    for kind, point in tried:
        if all(w.wrong is not None for w in found):
            return
        truth = _truth(task, nodes, point, always, extreme)
        if truth is not None and kind == "turning":  # the largest value of a region may come last
            later.append((point, truth))
            for w, right in zip(found, truth.right.values, strict=True):
                w.rescale(truth.region, right)
        elif truth is not None:
            _compare_at(task, kind, point, truth, found)
    for point, truth in later:
        _compare_at(task, "turning", point, truth, found)


def _truth(
    task: Task, nodes: Sequence[Node], point: FloatPoint, always: Mapping[Node, Array], extreme: bool
) -> _Truth | None:
    """What is exact at a point; None where no exact value exists, or a kink is close."""
    task.meter.spend(NODE + 8 * operations(nodes))
    exact = exactly(point)
    if not is_manageable(task.outputs, point) or not usable(nodes, exact, always):
        return None
    try:
        right = settled_values(task.outputs, exact, meter=task.meter)
        values = values_of(task.outputs, exact, right.digits)
        moved = effects(task.outputs, values, right.digits, extreme)
    except OutOfBudget:
        raise
    except (SymadError, ArithmeticError, ValueError):
        return None
    if not any(np.any(finite(v)) or not v.size for v in right.values):
        return None
    return _Truth(right, moved, regions_of(nodes, values), extreme)


@dataclass(frozen=True)
class _Truth:
    """The exact values at a point, how far roundings may move them, and the region it lies in."""

    right: Precise
    moved: Sequence[Array]
    region: bytes
    extreme: bool


def _compare_at(task: Task, kind: str, point: FloatPoint, truth: _Truth, found: Sequence[Found]) -> None:
    """Call the candidate at one point and compare."""
    inputs = [n for n in task.reference.input_nodes if n in point]
    here = _Here(kind, point, {str(symbol_of(n)): plain(point[n]) for n in inputs})
    try:
        numbers = _called(task, point)
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


def _called(task: Task, point: FloatPoint) -> list[Array]:
    """What the candidate returns at a point, as arrays of the right shapes."""
    with np.errstate(all="ignore"):
        result = task.candidate([point[n] for n in task.reference.input_nodes])
        returned = task.flat(result)
    if len(returned) != len(task.outputs):
        made = f"{len(returned)} outputs" if len(returned) != 1 else kind_of(result)
        count, names = len(task.outputs), ", ".join(task.names)
        raise BadReturn(
            f"verify: the function returned {made} instead of {count} output{'s' * (count != 1)} ({names})"
        )
    shapes = [tuple(int(d) for d in o.shape) for o in task.outputs]
    return [as_real_array(v, s, n) for v, s, n in zip(returned, shapes, task.names, strict=True)]


@dataclass(frozen=True)
class _Here:
    kind: str
    point: FloatPoint
    where: Mapping[str, Nested]
    near: dict[int, tuple[Any, Any]] = field(default_factory=dict)  # right and called, by steps away


def _compare_arrays(
    task: Task, k: int, w: Found, here: _Here, got: Array, right: Array, truth: _Truth
) -> None:
    """Update what is found about output ``k`` with one point."""
    limits = np.finfo(got.dtype if got.dtype.kind == "f" else np.dtype(np.float64))
    w.seen = seen = visible(limits)
    known, beside = finite(right), task.size_of(here.point)
    largest = float(max((abs(v) for v in right[known]), default=mpmath.mpf(0))) if right.shape else 0.0
    if here.kind == "ordinary":
        w.rescale(truth.region, right)
    below = FACTOR * float(limits.eps) * w.scale.get(truth.region, 0.0)
    resolved, alive = np.full(right.shape, np.inf), np.zeros(right.shape, dtype=bool)
    for index in np.ndindex(*right.shape):
        if not known[index]:
            continue
        moved = float(truth.moved[k][index])
        unknown = truth.right.floor if truth.extreme else moved * UNKNOWN
        error = Error.of(float(got[index]), right[index], moved + largest, unknown, limits, beside)
        resolved[index], alive[index] = error.resolution, error.resolution < np.inf
        lost = error.excess > 1 and error.absolute <= below
        if error.resolution <= seen and not lost:
            w.relative, w.ulps = max(w.relative, error.relative), max(w.ulps, error.ulps)
        if error.excess <= 1:
            continue
        witness = Witness(here.where, digits_of(right[index]), repr(float(got[index])), index)
        near = here.kind in ("ordinary", "far", "turning", SAMPLED, KIND) and not lost
        if near and _is_of_the_formula(task, k, w, here, index, error):
            if w.wrong is None:
                w.wrong, w.excess = witness, error.excess
        elif lost or error.resolution <= 1 or (here.kind == "ordinary" and not alive[index]):
            if error.relative >= seen / 2:
                resolved[index] = np.inf
            w.losses.append(
                Loss(error.word, task.names[k], here.kind, here.where, witness.left, witness.right,
                     tuple(index), error.lost(limits))
            )  # fmt: skip
    counts = bool(np.any(resolved <= seen)) or not alive.any()
    w.regions[truth.region] = w.regions.get(truth.region, False) or counts
    w.best = resolved if w.best is None else np.minimum(w.best, resolved)
    w.alive = alive if w.alive is None else w.alive | alive
    sizes = np.where(known, abs(right), mpmath.mpf(0))
    w.largest = sizes if w.largest is None else np.maximum(w.largest, sizes)


SHRUNK = 2.0**-10
"""Far from ordinary points a value is compared with those where an input is this much closer to 0."""


def _is_small_beside(task: Task, k: int, here: _Here, at: tuple[int, ...], error: Error) -> bool:
    """Whether an error at a far point is a rounding of a value that the result has closer to 0.

    The scale of ordinary points says nothing there: x² (1 - tanh²(x y)) is 4e-12 at (300, 0.065), and
    rounding tanh there moves it by 300² ε.
    """
    if is_moderate(here.point):
        return False
    changes = [[n] for n, v in here.point.items() if np.asarray(v).dtype.kind == "f"]
    for nodes in [*changes, [n for change in changes for n in change]]:
        near = {n: v * SHRUNK if n in nodes else v for n, v in here.point.items()}
        try:
            size = abs(settled_values(task.outputs, exactly(near), meter=task.meter).values[k][at])
        except OutOfBudget:
            raise
        except (SymadError, ArithmeticError, ValueError):
            continue
        if mpmath.isfinite(size) and error.absolute <= FACTOR * np.finfo(np.float64).eps * size:
            return True
    return False


NEIGHBORS = 24


def _is_of_the_formula(task: Task, k: int, w: Found, here: _Here, at: tuple[int, ...], error: Error) -> bool:
    """Whether an error counts and is one of the formula: rounding jumps about between floats, it does not.

    A value that is another one when the function is called again is none of the formula either.
    """
    seen = w.seen
    if seen < error.resolution < np.inf or error.relative < seen / 2:
        return False
    if here.kind in ("far", SAMPLED) and _is_small_beside(task, k, here, at, error):
        return False
    if np.isnan(error.got):  # where other directions give values, a product has one for these
        return here.kind == KIND and not w.stuck
    if np.isinf(error.got):
        return here.kind in ("ordinary", KIND)
    errors = []
    if 0 not in here.near:
        try:
            here.near[0] = None, _called(task, here.point)
        except Exception:
            return False
    if here.near[0][1][k][at] != error.got:
        w.unsteady = w.unsteady or here.where
        return False
    for step in range(1, NEIGHBORS + 1):
        try:
            if step not in here.near:
                fixed = task.directions if here.kind == KIND else ()
                near = {n: v if n in fixed else nudged(v, step) for n, v in here.point.items()}
                exact = settled_values(task.outputs, exactly(near), meter=task.meter).values
                here.near[step] = exact, _called(task, near)
            right, got = (values[k][at] for values in here.near[step])
            errors.append(float(mpmath.mpf(float(got)) - right))
        except OutOfBudget:
            raise
        except Exception:
            return False
    spread, middle = max(errors) - min(errors), abs(sum(errors)) / len(errors)
    return np.isfinite(middle) and spread <= middle / 2
