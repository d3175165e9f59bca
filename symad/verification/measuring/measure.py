"""Numeric functions measured against exact values: is the formula right, and which digits are lost where.

Points of ordinary size come first, with those far away and those beside which something turns; then those
of a seed, at which floats of both sides are compared and what differs is measured; and hostile ones, which
show where digits are lost. `comparing` says what counts at one point, `found` which verdict follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice

import numpy as np

from symad.verification.budget import Guard, OutOfBudget
from symad.verification.certificate.certificate import Entry, Loss
from symad.verification.certificate.expression_text import text_of
from symad.verification.fields.prime_fields import Array
from symad.verification.measuring.call_users_code import precision_of, refuse_arguments
from symad.verification.measuring.comparing import compare_at, truth_at
from symad.verification.measuring.found import OutputFinding, entry_of
from symad.verification.measuring.precisions import Precision
from symad.verification.measuring.task import FEW, SAMPLED, Task, gap, is_moderate, rows, suspicious, windows
from symad.verification.values.labels import Sides
from symad.verification.values.point_set import FloatPoint, exactly

FAR, FEWEST = 8, 2
"""Points far away; and those at sizes that are tried in addition: what is wrong there mostly is at each."""

PART = 0.25
"""The part of the steps after which what agrees at `FEW` points is measured, and only floats are compared."""


@dataclass(frozen=True)
class Measured:
    """One entry for each output, where digits are lost, and what was not tried."""

    entries: list[Entry]
    losses: list[Loss]
    unseen: str = ""


def measure(task: Task, hostile: bool = True, few: bool = False) -> Measured:
    """What is measured at ordinary points, at those of a seed, and at hostile ones if requested.

    With ``few`` only a few ordinary points are visited: enough for a formula that is wrong at this size.

    Raises:
        BadReturn: the candidate does not take the inputs, or returns something of another kind or shape.
    """
    refuse_arguments(task.candidate.candidate, [a.name for a in task.reference.arguments])
    task, first = _in_its_type(task)
    found, unseen = [OutputFinding() for _ in task.outputs], ""
    if few:
        _visited(task, [("ordinary", p) for p in task.ordinary if task.inside(p)][:FEWEST], found)
        return Measured(*_told(task, found))
    tried = _visited(task, _first_points(task), found)
    if not task.meter.is_late and not any(w.is_settled for w in found):
        tried += _sampled(task, found, hostile)
        unseen = windows(tried)
    unmet = Sides.of(task.outputs, task.fixed, task.domain).anywhere(map(exactly, tried)).told(text_of)
    for w in found:
        w.stopped = w.stopped or unmet
    _repeated(task, first, found)
    entries, losses = _told(task, found)
    if hostile and not any(w.wrong or w.ended or w.always_raises for w in found):
        extreme = [OutputFinding() for _ in task.outputs]
        _visited(task, _hostile(task), extreme, True)
        losses += [loss for w in extreme for loss in w.losses]
    return Measured(entries, losses, unseen)


def _first_points(task: Task) -> list[tuple[str, FloatPoint]]:
    """Points of ordinary size, far away, and beside what turns."""
    distant = islice((p for p in task.drawn.points(SAMPLED) if not is_moderate(p)), FAR)
    turning = replace(task.drawn, seed=0).turning()
    return [
        *(("ordinary", p) for p in task.ordinary),
        *(("far", p) for p in task.of_type(distant)), *(("turning", p) for p in task.of_type(turning)),
    ]  # fmt: skip


def differs(task: Task, count: int) -> bool:
    """Whether floats differ at one of some points, so that it is worth measuring."""
    least = task.limits.visible
    for point in task.of_type(islice(filter(is_moderate, task.drawn.points(SAMPLED)), count)):
        if task.usable(point) and gap(task.reference.output_nodes, task.called, point) > least:
            return True
    return False


First = tuple[FloatPoint, "list[Array]"]
"""The point of the first call, and what was returned."""


def _in_its_type(task: Task) -> tuple[Task, First | None]:
    """The task with the type of the results, which the first call tells."""
    point = next(filter(task.inside, task.ordinary), None)
    if point is None:
        return task, None
    try:
        with Guard(task.meter):
            limits = reduce(Precision.coarser, map(precision_of, task.returned(point)), task.limits)
            return replace(task, limits=limits), (point, task.called(point))
    except Exception:  # whatever the user's function raises is told where the point is measured
        return task, None


def _repeated(task: Task, first: First | None, found: Sequence[OutputFinding]) -> None:
    """Call the function at the first point again: with a state of its own, another value may come out."""
    if first is None:
        return
    point, before = first
    try:
        with Guard(task.meter):
            after = task.called(point)
    except Exception:  # what raises at a later time only has a state, too
        after = [np.full(v.shape, np.nan) for v in before]
    for w, old, new in zip(found, before, after, strict=True):
        with np.errstate(invalid="ignore"):
            apart = np.abs(new.astype(float) - old) > task.limits.visible * np.abs(old.astype(float))
        if np.any(apart | (np.isnan(new) != np.isnan(old))) and w.wrong is None:
            w.unsteady = w.unsteady or task.where(point)


def _told(task: Task, found: Sequence[OutputFinding]) -> tuple[list[Entry], list[Loss]]:
    """The verdicts, and the losses of what is not wrong."""
    for w in found:
        w.accuse_means(task.limits)
    entries = [entry_of(n, w, task.assumes) for n, w in zip(task.names, found, strict=True)]
    return entries, [loss for w in found for loss in w.losses if w.wrong is None]


def _hostile(task: Task) -> list[tuple[str, FloatPoint]]:
    return [(kind, p) for kind, point in task.drawn.hostile() for p in task.of_type([point], False)]


def _sampled(task: Task, found: Sequence[OutputFinding], far: bool) -> list[FloatPoint]:
    """Measure at the points of a seed at which floats differ, of ordinary size alone if `far` is not asked.

    Returns all points that were tried.
    """
    outputs = task.reference.output_nodes
    drawn = ((k, p) for k, q in rows(task.drawn, far) for p in task.of_type([q]))
    points, tried = suspicious(outputs, task.called, drawn, task.inside, task.limits)
    known = [(w.best, w.alive, w.largest, dict(w.regions)) for w in found]
    for w in found:
        w.sampled = len(tried)
    _visited(task, points, found)
    for w, (best, alive, largest, regions) in zip(found, known, strict=True):
        w.best, w.alive, w.largest, w.regions = best, alive, largest, regions  # suspicious points show less
    return tried


def _visited(
    task: Task, tried: Iterable[tuple[str, FloatPoint]], found: Sequence[OutputFinding], extreme: bool = False
) -> list[FloatPoint]:
    """Compare at points, as far as the budget goes; those that were visited."""
    visited = list[FloatPoint]()
    try:
        with Guard(task.meter):
            _visit(task, [(kind, p) for kind, p in tried if task.inside(p)], found, extreme, visited)
    except OutOfBudget:
        for w in found:
            if w.points >= FEW and not w.sampled:
                w.end(task.meter.used_up)
            else:
                w.stopped = task.meter.used_up
    return visited


def _visit(
    task: Task,
    tried: Sequence[tuple[str, FloatPoint]],
    found: Sequence[OutputFinding],
    extreme: bool,
    visited: list[FloatPoint],
) -> None:
    """Compare at the points at which an exact value exists and no kink is close."""
    later, most = [], task.meter.steps + PART * task.meter.limit
    for kind, point in tried:
        if all(w.wrong is not None for w in found) or any(w.always_raises for w in found):
            return
        if task.meter.steps > most and all(w.points >= FEW for w in found):
            for w in found:
                w.end("the work allowed for exact values was used up")
            break
        truth = truth_at(task, point, extreme)
        visited.append(point)
        if truth is not None and kind == "turning":  # the largest value of a region may come last
            later.append((point, truth))
            for w, right in zip(found, truth.right.values, strict=True):
                w.rescale(truth.region, right)
        elif truth is not None:
            compare_at(task, kind, point, truth, found)
    for point, truth in later:
        compare_at(task, "turning", point, truth, found)
