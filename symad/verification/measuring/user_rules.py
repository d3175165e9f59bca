"""Derivative rules that users give, compared with numerical differentiation of the functions themselves.

The derivatives of the functions that symad knows are compared with 50-digit differentiation in its tests.
A function of a user's own (a SymPy class with `fdiff`, or one that was registered) is compared here, at
points of the certificate's seed, and its implementation in floats with that in many digits. A rule that
contradicts its function is refuted. No sample establishes a rule: what rests on one is at most measured, and
the headline says so.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import mpmath
import numpy as np
import sympy

from symad.core.arrays import Number
from symad.core.contents import nodes_at_any_depth
from symad.core.graph import ZERO, Node, Tangent, topological
from symad.errors import SymadError
from symad.facts.functions import fact
from symad.numbers.values import unchecked
from symad.ops.basic.sources import input_node
from symad.ops.elementwise.apply import Apply, apply
from symad.tracing.from_sympy.partials import partial
from symad.verification.certificate.certificate import GIVEN, Entry
from symad.verification.certificate.witness import Witness, digits_of
from symad.verification.values.fifty_digits import evaluate_all
from symad.verification.values.point_set import PointSet, exactly

if TYPE_CHECKING:
    from symad.verification.certificate.witness import Nested

DIGITS = 50
CLOSE = mpmath.mpf(10) ** -12
"""A difference of more than this, relative, is none of rounding."""

SAME = mpmath.mpf(10) ** -40
"""A smaller difference than this is none; between both, a rule may have rounded constants, or be wrong."""

SIMPLE, SAMPLED, LEAST, SECONDS = 5, 200, 40, 2.0
"""The points at which a rule is tried, simple ones and others; and the least number of them, of a function
that takes so long."""

BESIDE = Fraction(1, 7 * 10**7)
"""How far beside a place where a rule turns it is tried: on the boundary itself it says nothing."""

WIDE, SHORT = Fraction(1, 256), Fraction(1, 2**28)
"""Steps by which a function of few digits is differentiated, and by which it moves unless it has steps."""

LARGEST = 4096
"""The largest argument at which a function of few digits is differentiated: beyond, they are too few."""

STEADY, FAR_OFF, SHOWS = mpmath.mpf("1e-3"), mpmath.mpf("1e-2"), mpmath.mpf("2e-3")
"""Slopes that agree, rules that contradict them, and what would show in the digits of half precision."""

SECOND = ("hessian", "curvature")
"""The kinds of derivatives that differentiate rules."""

ENOUGH = 2
"""Points at which the rule has to agree."""

OFF = 1e-6
"""A relative difference of floats and many digits that is none of rounding, but for cancellation."""


@dataclass(frozen=True)
class Rule:
    """What is known about one derivative of one function."""

    name: str
    agreed: int = 0
    witness: Witness | None = None
    is_trivial: bool = False
    """True if there is nothing to establish."""


Use: TypeAlias = tuple["sympy.FunctionClass", int]
"""A function, and its number of arguments."""


def entries_of_rules(outputs: Sequence[Node], order: int, seed: int) -> list[Entry]:
    """What is known of users' functions in a graph: an entry for each rule, and each wrong implementation.

    A second derivative uses the rules of the functions in the first one, too. ``seed`` is that of the points.
    """
    found, done, uses = list[Entry](), set[Use](), _uses(outputs)
    for _ in range(order):
        slopes: list[Node] = []
        for head, count in [use for use in uses if use not in done]:
            done.add((head, count))
            found += _entry_of_implementation(head, count, seed)
            for position in range(count):
                rule, slope = _examined(head, count, position, seed)
                slopes += [slope] if isinstance(slope, Node) else []
                found += [entry] if (entry := _entry(rule)) is not None else []
        uses = _uses(slopes)
    return found


def _entry_of_implementation(head: type[sympy.Basic], count: int, seed: int) -> list[Entry]:
    """A refuted entry if a function has other values in floats than in many digits."""
    if not fact(head).users or not fact(head).digits:
        return []
    inputs = tuple(input_node(sympy.Dummy(f"x{k}", real=True), ()) for k in range(count))
    value = apply(head, *inputs)
    seen = list[tuple[dict[Node, Fraction], Any, Any]]()
    for point in islice(_points((value,), inputs, seed), SAMPLED):
        try:
            exact = mpmath.mpf(evaluate_all([value], point, DIGITS)[0])
            (made,) = unchecked([value], {n: np.float64(v) for n, v in point.items()})
        except Exception:  # whatever a user's function raises
            continue
        if mpmath.isfinite(exact) and np.isfinite(made) and 1e-300 < abs(exact) < 1e300:
            seen.append((point, exact, float(made)))
    off = [s for s in seen if abs(s[1] - s[2]) > OFF * max(abs(s[1]), abs(s[2]))]
    if not off or 2 * len(off) < len(seen):  # at hostile points floats lose digits
        off = [s for s in off if _is_steady(value, *s)]
    if not off:
        return []
    point, exact, made = off[0]
    claim = "its implementation contradicts its mpmath="
    witness = Witness(_told(point), digits_of(exact), repr(made))
    return [Entry(f"the implementation of {head.__name__}", "refuted", claim, 0.0, (), witness, reason=claim)]


def _is_steady(value: Node, point: dict[Node, Fraction], exact: Any, made: float) -> bool:
    """Whether a value in floats is as far off next to a point, and the function hardly moves between."""
    for part in (Fraction(1, 2**40), -Fraction(1, 2**40)):
        near = {n: v * (1 + part) for n, v in point.items()}
        try:
            there = mpmath.mpf(evaluate_all([value], near, DIGITS)[0])
            (float_there,) = unchecked([value], {n: np.float64(v) for n, v in near.items()})
        except Exception:  # whatever a user's function raises
            return False
        size = OFF / 100 * max(abs(exact), abs(made))
        if abs(there - exact) > size or abs(float(float_there) - made) > size:
            return False
    return True


def _told(point: dict[Node, Fraction]) -> dict[str, Nested]:
    return {f"x{k}" if len(point) > 1 else "x": str(v) for k, v in enumerate(point.values())}


def _uses(outputs: Sequence[Node]) -> list[Use]:
    """The functions of users in a graph, in loops and fused ops, too."""
    found = dict[Use, None]()
    for node in nodes_at_any_depth(outputs):
        if isinstance(node.op, Apply) and is_users(node.op.head):
            found[node.op.head, len(node.args)] = None
    return list(found)


def is_users(head: type[sympy.Basic]) -> bool:
    """Whether a function is a user's own."""
    module = getattr(head, "__module__", "") or ""
    if fact(head).users:  # registered
        return True
    return not fact(head).floats and not module.startswith(("sympy.", "symad."))


def _entry(rule: Rule) -> Entry | None:
    label = f"the derivative of {rule.name}"
    if rule.witness is not None:
        claim = "the rule that was given contradicts the function"
        return Entry(label, "refuted", claim, 0.0, (), rule.witness, reason=claim)
    if rule.is_trivial:
        return None
    if rule.agreed >= ENOUGH:
        reason = f"{GIVEN}{rule.name} (sampled at {rule.agreed} points)"
        return Entry(label, "measured", "agrees with difference quotients", 1.0, reason=reason)
    reason = f"assumes {label} as its author gives it: it was not found to be exact to many digits"
    return Entry(label, "measured", "not established", 1.0, reason=reason)


def _examined(head: type[sympy.Basic], count: int, position: int, seed: int) -> tuple[Rule, Tangent]:
    """A rule at many points, as far as the function evaluates there; and the slope by this rule."""
    inputs = tuple(input_node(sympy.Dummy(f"x{k}", real=True), ()) for k in range(count))
    name = f"{head.__name__} in argument {position + 1}" if count > 1 else str(head.__name__)
    value = apply(head, *inputs)
    agreed, start = 0, time.process_time()
    try:
        slope = partial(value, position)
    except SymadError:
        return Rule(name, is_trivial=True), ZERO  # differentiating it is an error anyhow
    if not isinstance(slope, Node):
        return Rule(name, is_trivial=True), slope
    inexact = False
    for point in islice(_points((value, slope), inputs, seed + position), SAMPLED):
        if agreed >= LEAST and time.process_time() - start > SECONDS:
            break
        pair = _both(value, slope, inputs[position], point)
        if pair is None:
            continue
        right, given = pair
        gap, size = abs(right - given), max(abs(right), abs(given), CLOSE)
        if gap > CLOSE * size:
            return Rule(name, 0, Witness(_told(point), digits_of(right), digits_of(given))), slope
        inexact |= bool(gap > SAME * size)
        agreed += 1
    return Rule(name, 0 if inexact else agreed), slope


def _points(outputs: Sequence[Node], inputs: Sequence[Node], seed: int) -> Iterator[dict[Node, Fraction]]:
    """Where a rule is tried: at simple points, beside the places where it turns, and at those of a seed."""
    points = PointSet(tuple(outputs), seed, tuple(inputs))
    try:
        turning = list(points.turning())
    except Exception:  # whatever a user's function raises
        points, turning = PointSet((), seed, tuple(inputs)), []
    yield from map(exactly, points.plain(SIMPLE))
    for p in map(exactly, turning):
        yield {n: v + BESIDE for n, v in p.items()}
    yield from map(exactly, points.points(SAMPLED))


def _both(value: Node, slope: Node, moved: Node, point: dict[Node, Fraction]) -> tuple[Number, Number] | None:
    """∂value/∂moved by differentiation of many digits, and by the rule; None where one has no value."""
    step = Fraction(1, 10**20) * (min(Fraction(1), abs(point[moved])) or 1)
    try:
        near = [_number(value, {**point, moved: point[moved] + k * step}) for k in (-2, -1, 0, 1, 2)]
        given = _number(slope, point)
    except Exception:  # whatever a user's function raises
        return None
    if not all(mpmath.isfinite(v) for v in (*near, given)):
        return None
    with mpmath.workdps(2 * DIGITS):
        h = mpmath.mpf(step.numerator) / step.denominator
        slopes = [(near[3] - near[1]) / (2 * h), (near[4] - near[0]) / (4 * h)]
        exact = abs(slopes[0] - slopes[1]) <= CLOSE * max(map(abs, slopes)) and near[1] != near[3]
        exact &= abs(near[1] - 2 * near[2] + near[3]) <= CLOSE * abs(near[3] - near[1])  # no kink
        return ((4 * slopes[0] - slopes[1]) / 3, given) if exact else _roughly(value, given, moved, point)


def _roughly(value: Node, given: Any, moved: Node, point: dict[Node, Fraction]) -> tuple[Any, Any] | None:
    """The slope of a function of few digits, where it has one and the rule is far from it; else None.

    Slopes to the left, to the right and across must agree, which those at a kink do not. A function that
    does not move over short steps is constant over long ones, too, or has steps.
    """
    if any(abs(v) > LARGEST for v in point.values()):
        return None
    places = {k: WIDE * k for k in (-2, -1, 0, 1, 2)} | {3: SHORT, -3: -SHORT}
    try:
        f = {k: _number(value, {**point, moved: point[moved] + by}) for k, by in places.items()}
    except Exception:  # whatever a user's function raises
        return None
    largest, step = max(map(abs, f.values())), mpmath.mpf(1) / WIDE.denominator
    if len(set(f.values())) == 1:
        return (mpmath.mpf(0), given) if abs(given) * step > max(SHOWS * largest, CLOSE) else None
    sides = [(4 * (f[k] - f[0]) - (f[2 * k] - f[0])) / (2 * k * step) for k in (-1, 1)]
    slope = (f[1] - f[-1]) / (2 * step)
    if (
        not mpmath.isfinite(slope)
        or f[3] == f[-3]
        or max(abs(s - slope) for s in sides) > STEADY * abs(slope)
    ):
        return None
    far = abs(slope - given) > max(FAR_OFF * max(abs(slope), abs(given)), CLOSE / step)  # floats have steps
    return (mpmath.mpf(mpmath.nstr(slope, 4)), given) if far else None


def _number(node: Node, point: dict[Node, Fraction]) -> Number:
    """The value in many digits, or in those of floats, if the function takes no others."""
    used = {n: v for n, v in point.items() if n in topological([node])}
    try:
        value = evaluate_all([node], used, 2 * DIGITS)[0]
    except Exception:  # whatever a user's function raises
        value = unchecked([node], {n: np.float64(v) for n, v in used.items()})[0]
    with mpmath.workdps(2 * DIGITS):
        return mpmath.mpf(np.asarray(value).ravel()[0])
