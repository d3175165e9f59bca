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
from functools import cached_property, partial, reduce
from itertools import islice
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np

from symad.core.graph import Graph, Node
from symad.errors import SymadError
from symad.ops.basic.sources import ArrayConstant, Constant, symbol_of
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
    precision_of,
    refuse_arguments,
)
from symad.verification.measuring.directions import KIND, special_directions
from symad.verification.measuring.floating_errors import Error, nudged, plain
from symad.verification.measuring.found import RAISED, OutputFinding, entry_of, finite
from symad.verification.measuring.means import SamplePoint
from symad.verification.measuring.precisions import DOUBLE, Precision
from symad.verification.measuring.rounding_errors import effects, is_rounded, values_of
from symad.verification.measuring.sampling import KIND as SAMPLED
from symad.verification.measuring.sampling import SAMPLED as MANY
from symad.verification.measuring.sampling import ZEROS, gap, is_moderate, rows, suspicious, windows
from symad.verification.points import PointSet
from symad.verification.rewriting.rewrite import expand_definitions
from symad.verification.terms.exact_steps import with_exact_steps
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
    """What is measured, and against what.

    Args:
        candidate: calls the function with the values of the reference's inputs, floats and float64 arrays.
        reference: what it should compute; all sizes are numbers.
        names: of its outputs.
        flat: takes apart what the candidate returns.
        assumes: what is trusted.
        meter: stops the measurement.
        domain: positive where the claim is made.
        of: the function whose derivative is claimed.
        valued: where this function has a value whose derivative is claimed; a formula of the derivative may
            have values elsewhere. Where this is seldom so, all points count.
        directions: inputs in which the reference is linear: y_bar of a vector-Jacobian product.
        seed: of the points that are drawn.
        limits: the type in which the function computes, or that of its results if that has fewer digits.
    """

    candidate: Caller
    reference: Graph
    names: tuple[str, ...]
    flat: Flat
    assumes: tuple[str, ...]
    meter: Meter
    domain: Node | None = None
    of: tuple[Node, ...] = ()
    valued: Inside = lambda point: True
    directions: Sequence[Node] = ()
    seed: int = 0
    limits: Precision = DOUBLE

    @cached_property
    def outputs(self) -> tuple[Node, ...]:
        """What it should compute, in ops of which roundings are known."""
        return with_exact_steps(expand_definitions(self.reference.output_nodes))

    @cached_property
    def drawn(self) -> PointSet:
        """The points of the seed."""
        return PointSet(self.outputs, self.seed, self.reference.input_nodes, self.domain)

    @cached_property
    def usable(self) -> Inside:
        """Whether a point lies in the domain, and all places are inside of arrays."""
        reads, holds = reads_inside(self.reference.output_nodes), self.drawn.holds
        return lambda point: reads(point) and holds(point)

    @cached_property
    def ordinary(self) -> list[FloatPoint]:
        """Points of ordinary size, more of them where single ones show little."""
        count = ORDINARY * (1 + self.limits.is_low)
        found = self.of_type(p for _, p in ordinary_points(self.reference.input_nodes, self.integers, count))
        if self.domain is not None and sum(map(self.usable, found)) < count // 2:
            found += self.of_type(islice(self.drawn.points(MANY), count))
        return found

    @cached_property
    def inside(self) -> Inside:
        """Whether something is claimed at a point."""
        usable, valued = self.usable, self.valued
        if sum(usable(p) and valued(p) for p in self.ordinary) < FEW:
            return usable
        return lambda point: usable(point) and valued(point)

    @property
    def integers(self) -> Mapping[Node, tuple[int, int]]:
        """Inputs that must be integers."""
        return integer_inputs(self.reference.output_nodes)

    def of_type(self, points: Iterable[FloatPoint], bounded: bool = True) -> list[FloatPoint]:
        """The points with all inputs, in numbers of the type, if these are so large that products remain."""
        low, high = self.limits.span if bounded else (0.0, np.inf)
        made = (self.limits.rounded_point({**self._first, **p}) for p in points)
        return [p for p in made if all(_is_between(v, low, high) for v in p.values())]

    @cached_property
    def _first(self) -> FloatPoint:
        """Values of inputs that the outputs do not depend on."""
        (found,) = ordinary_points(self.reference.input_nodes, self.integers, 1)
        return found[1]

    def size_of(self, point: FloatPoint) -> float:
        """The largest input, or 1, times the largest direction, or 1."""
        sizes = [1.0, 1.0]
        for node, value in point.items():
            k = node in self.directions
            sizes[k] = max(sizes[k], float(np.max(np.abs(value), initial=0.0)))
        return sizes[0] * sizes[1]


def _is_between(value: Any, low: float, high: float) -> bool:
    sizes = np.abs(np.asarray(value, dtype=float))
    return bool(np.all(np.isfinite(sizes) & ((sizes == 0) | ((sizes >= low) & (sizes <= high)))))


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
    ordinary = [("ordinary", p) for p in task.ordinary]
    if few:
        found = _visited(task, [p for p in ordinary if task.inside(p[1])][:FEWEST], False)
        return Measured(*_told(task, found))
    special = special_directions(task.directions, list(filter(task.inside, task.ordinary))[:FEW])
    distant = islice((p for p in task.drawn.points(MANY) if not is_moderate(p)), FAR)
    tried = [
        *ordinary, *special,
        *(("far", p) for p in task.of_type(distant)),
        *(("turning", p) for p in task.of_type(turning_points(task.outputs, task.integers))),
    ]  # fmt: skip
    found, unseen = _visited(task, tried, False), ""
    if not any(w.wrong or w.stopped or w.stuck or w.unsteady for w in found):
        unseen = _sampled(task, found, tried, hostile)
    _repeated(task, first, found)
    entries, losses = _told(task, found)
    if (
        hostile
        and not any(e.status == "refuted" for e in entries)
        and not any(w.always_raises for w in found)
    ):
        extreme = _visited(task, _hostile(task), True)
        losses += [loss for w in extreme for loss in w.losses]
    return Measured(entries, losses, unseen)


def differs(task: Task, count: int) -> bool:
    """Whether floats differ at one of some points, so that it is worth measuring."""
    least = task.limits.visible
    for point in task.of_type(islice(filter(is_moderate, task.drawn.points(MANY)), count)):
        if task.usable(point) and gap(task.reference.output_nodes, partial(_called, task), point) > least:
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
            limits = reduce(Precision.coarser, map(precision_of, _returned(task, point)), task.limits)
            return replace(task, limits=limits), (point, _called(task, point))
    except Exception:  # whatever the user's function raises is told where the point is measured
        return task, None


def _repeated(task: Task, first: First | None, found: Sequence[OutputFinding]) -> None:
    """Call the function at the first point again: with a state of its own, another value may come out."""
    if first is None:
        return
    point, before = first
    try:
        with Guard(task.meter):
            after = _called(task, point)
    except Exception:  # what raises at a later time only has a state, too
        after = [np.full(v.shape, np.nan) for v in before]
    for w, old, new in zip(found, before, after, strict=True):
        with np.errstate(invalid="ignore"):
            apart = np.abs(new.astype(float) - old) > task.limits.visible * np.abs(old.astype(float))
        if np.any(apart | (np.isnan(new) != np.isnan(old))) and w.wrong is None:
            w.unsteady = w.unsteady or _where(task, point)


def _told(task: Task, found: Sequence[OutputFinding]) -> tuple[list[Entry], list[Loss]]:
    """The verdicts, and the losses of what is not wrong."""
    for w in found:
        w.accuse_means(task.limits)
    entries = [entry_of(n, w, task.assumes) for n, w in zip(task.names, found, strict=True)]
    return entries, [loss for w in found for loss in w.losses if w.wrong is None]


def _hostile(task: Task) -> list[tuple[str, FloatPoint]]:
    nodes = task.reference.input_nodes
    return [
        (kind, p)
        for kind, point in hostile_points(nodes, task.integers)
        for p in task.of_type([point], False)
    ]


def _sampled(
    task: Task, found: Sequence[OutputFinding], before: Iterable[tuple[str, FloatPoint]], far: bool
) -> str:
    """Measure at the points of a seed at which floats differ, of ordinary size alone if `far` is not asked.

    ``before`` are the points that were measured. Returns the windows without a point.
    """
    outputs = task.reference.output_nodes
    tried = [(k, p) for k, q in rows(task.drawn, task.directions, far) for p in task.of_type([q])]
    points, count = suspicious(outputs, partial(_called, task), tried, task.inside, task.limits)
    known = [(w.best, w.alive, w.largest, dict(w.regions)) for w in found]
    for w in found:
        w.sampled = count
    _visited(task, points, False, found, [p for _, p in before])
    for w, (best, alive, largest, regions) in zip(found, known, strict=True):
        w.best, w.alive, w.largest, w.regions = best, alive, largest, regions  # suspicious points show less
    return windows([p for _, p in (*before, *tried) if task.inside(p)])


def _visited(
    task: Task,
    tried: Iterable[tuple[str, FloatPoint]],
    extreme: bool,
    known: Sequence[OutputFinding] | None = None,
    usual: Sequence[FloatPoint] = (),
) -> Sequence[OutputFinding]:
    """What is found at some points, as far as the budget goes.

    The first of the usual points, by default of those that are visited, tell what turns at every point;
    points at which floats differ may all lie on one kink.
    """
    found = [OutputFinding() for _ in task.outputs] if known is None else known
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
    found: Sequence[OutputFinding],
    extreme: bool,
    usual: Sequence[FloatPoint],
) -> None:
    """Compare at the points at which an exact value exists and no kink is close."""
    nodes = all_nodes(*task.outputs)
    always = close_everywhere(nodes, [exactly(p) for p in usual])
    later = []
    for kind, point in tried:
        if all(w.wrong is not None for w in found) or any(w.always_raises for w in found):
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
        moved = effects(task.outputs, values, right.digits, partial(_counts, task, extreme))
        fixed = []
        if task.limits.is_low and not extreme:
            fixed = effects(task.outputs, values, right.digits, partial(_is_constant, task))
    except OutOfBudget:
        raise
    except (SymadError, ArithmeticError, ValueError):
        return None
    if not any(np.any(finite(v)) or not v.size for v in right.values):
        return None
    return _Truth(right, moved, regions_of(nodes, values), extreme, fixed)


def _counts(task: Task, extreme: bool, node: Node) -> bool:
    """Whether the rounding of a node counts: at extreme points those of inputs and results alone."""
    wanted = not extreme or not node.args or node in task.outputs
    return wanted and is_rounded(node, task.limits)


def _is_constant(task: Task, node: Node) -> bool:
    """Whether a node is a number that the type does not have."""
    return isinstance(node.op, (Constant, ArrayConstant)) and is_rounded(node, task.limits)


@dataclass(frozen=True)
class _Truth:
    """The exact values at a point, how far roundings may move them, and the region it lies in."""

    right: Precise
    moved: Sequence[Array]
    region: bytes
    extreme: bool
    fixed: Sequence[Array] = ()
    """How far roundings of constants, the same at all points, may move them."""


def _compare_at(
    task: Task, kind: str, point: FloatPoint, truth: _Truth, found: Sequence[OutputFinding]
) -> None:
    """Call the candidate at one point and compare."""
    here = _Here(kind, point, _where(task, point))
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


def _where(task: Task, point: FloatPoint) -> dict[str, Nested]:
    """A point as text."""
    return {str(symbol_of(n)): plain(point[n]) for n in task.reference.input_nodes if n in point}


def _returned(task: Task, point: FloatPoint) -> list[Any]:
    """What the candidate returns at a point, one part for each output."""
    with np.errstate(all="ignore"):
        result = task.candidate([point[n] for n in task.reference.input_nodes])
        returned = task.flat(result)
    if len(returned) != len(task.outputs):
        made = f"{len(returned)} outputs" if len(returned) != 1 else kind_of(result)
        count, names = len(task.outputs), ", ".join(task.names)
        raise BadReturn(
            f"verify: the function returned {made} instead of {count} output{'s' * (count != 1)} ({names})"
        )
    return returned


def _called(task: Task, point: FloatPoint) -> list[Array]:
    """The same as arrays of the right shapes."""
    shapes = [tuple(int(d) for d in o.shape) for o in task.outputs]
    parts = zip(_returned(task, point), shapes, task.names, strict=True)
    return [as_real_array(v, s, n) for v, s, n in parts]


@dataclass(frozen=True)
class _Here:
    kind: str
    point: FloatPoint
    where: Mapping[str, Nested]
    near: dict[int, tuple[Any, Any]] = field(default_factory=dict)  # right and called, by steps away


def _compare_arrays(
    task: Task, k: int, w: OutputFinding, here: _Here, got: Array, right: Array, truth: _Truth
) -> None:
    """Update what is found about output ``k`` with one point."""
    limits = task.limits
    w.seen = seen = limits.visible
    known, beside = finite(right), task.size_of(here.point)
    largest = float(max((abs(v) for v in right[known]), default=mpmath.mpf(0))) if right.shape else 0.0
    if here.kind == "ordinary":
        w.rescale(truth.region, right)
        if truth.fixed:
            place = SamplePoint(truth.region, here.where, got, right)
            w.means.add(place, truth.moved[k], truth.fixed[k], limits)
    below = limits.factor * limits.eps * w.scale.get(truth.region, 0.0)
    resolved = np.full(right.shape, np.inf)
    for index in filter(known.__getitem__, np.ndindex(*right.shape)):
        moved = float(truth.moved[k][index])
        unknown = truth.right.floor if truth.extreme else moved * UNKNOWN
        error = Error.of(float(got[index]), right[index], moved + largest, unknown, limits, beside)
        resolved[index] = error.resolution
        lost = error.excess > 1 and error.absolute <= below
        if error.resolution <= seen and not lost:
            w.relative, w.ulps = max(w.relative, error.relative), max(w.ulps, error.ulps)
        if error.excess > 1:
            told = digits_of(right[index]), repr(float(got[index]))
            if _blinds(task, k, w, here, index, error, told, lost):
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


NEAR = ("ordinary", "far", "turning", SAMPLED, ZEROS, KIND)
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
    changes = [[n] for n, v in here.point.items() if np.asarray(v).dtype.kind == "f"]
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
    if here.kind in ("far", SAMPLED, ZEROS) and _is_small_beside(task, k, here, at, error):
        return False
    if np.isnan(error.got):  # where other directions give values, a product has one for these
        return here.kind in (ZEROS, KIND) and not w.stuck
    if np.isinf(error.got):
        return here.kind in ("ordinary", ZEROS, KIND)
    try:
        if 0 not in here.near:
            here.near[0] = None, _called(task, here.point)
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


BESIDE = 1e4
"""An error of at most so many times what roundings of the largest value explain is looked at by larger steps:
1 − tanh² of 15 has the same error at many floats."""


def _is_steady(task: Task, k: int, here: _Here, at: tuple[int, ...], coarse: bool) -> bool:
    """Whether the error hardly changes between neighboring floats, or floats a little apart."""
    errors = []
    for step in range(1, NEIGHBORS + 1):
        key = -step if coarse else step
        if key not in here.near:
            fixed = task.directions if here.kind == KIND else ()
            moved = {n: nudged(v, step, task.limits, coarse) for n, v in here.point.items() if n not in fixed}
            near = {**here.point, **moved}
            exact = settled_values(task.outputs, exactly(near), meter=task.meter).values
            here.near[key] = exact, _called(task, near)
        right, got = (values[k][at] for values in here.near[key])
        errors.append(float(mpmath.mpf(float(got)) - right))
    spread, middle = max(errors) - min(errors), abs(sum(errors)) / len(errors)
    return bool(np.isfinite(middle) and spread <= middle / 2)
