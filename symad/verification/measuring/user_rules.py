"""Derivative rules that users give, compared with numerical differentiation of the functions themselves.

The derivatives of the functions that symad knows are compared with 50-digit differentiation in its tests.
A function of a user's own (a SymPy class with `fdiff`, or one that was registered) is compared here,
wherever it evaluates to many digits. A rule that contradicts its function is refuted; one of a function
that does not evaluate is an assumption, and what rests on it is at most measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import mpmath
import numpy as np
import sympy

from symad.core.arrays import Number
from symad.core.contents import nodes_at_any_depth
from symad.core.graph import ZERO, Node, Tangent, topological
from symad.errors import SymadError
from symad.numbers.function_values import IMPLEMENTATIONS
from symad.numbers.numpy_names import NUMPY_NAMES
from symad.numbers.values import unchecked
from symad.ops.basic.sources import input_node
from symad.ops.elementwise.apply import Apply, apply
from symad.tracing.from_sympy.partials import partial
from symad.verification.certificate.certificate import Entry
from symad.verification.certificate.witness import Witness, digits_of
from symad.verification.values.fifty_digits import evaluate_all
from symad.verification.values.turning_points import turning_points

DIGITS = 50
CLOSE = mpmath.mpf(10) ** -12
"""A difference of more than this, relative, is none of rounding."""

SAME = mpmath.mpf(10) ** -40
"""A smaller difference than this is none; between both, a rule may have rounded constants, or be wrong."""

NEAR = (Fraction(7, 10), Fraction(13, 10), Fraction(-4, 10), Fraction(27, 10), Fraction(1, 5))
FAR = tuple(sign * Fraction(31, 10) * 3**k for k in range(7) for sign in (1, -1))
POINTS = (*NEAR, *FAR)
"""Where functions are tried, up to some thousands: a rule may be right for small arguments alone.

Each argument is moved by a little more than the one before.
"""

STRIDE = 4
"""So many points further the next argument is taken from, prime to the number of points."""

BESIDE = Fraction(1, 7 * 10**7)
"""How far beside a place where a rule turns it is tried: on the boundary itself it says nothing."""

WIDE, SHORT = Fraction(1, 256), Fraction(1, 2**28)
"""Steps by which a function of few digits is differentiated, and by which it moves unless it has steps."""

STEADY, FAR_OFF, SHOWS = mpmath.mpf("1e-3"), mpmath.mpf("1e-2"), mpmath.mpf("2e-3")
"""Slopes that agree, rules that contradict them, and what would show in the digits of half precision."""

SECOND = ("hessian", "curvature")
"""The kinds of derivatives that differentiate rules."""

ENOUGH = 2
"""Points at which the rule has to agree."""


@dataclass(frozen=True)
class Rule:
    """What is known about one derivative of one function."""

    name: str
    agreed: int = 0
    witness: Witness | None = None


Use: TypeAlias = tuple["sympy.FunctionClass", int]
"""A function, and its number of arguments."""


def entries_of_rules(outputs: Sequence[Node], order: int) -> list[Entry]:
    """One entry for each function of a user in a graph whose rule is wrong or cannot be established.

    A second derivative uses the rules of the functions in the first one, too.
    """
    found, done, uses = list[Entry](), set[Use](), _uses(outputs)
    for _ in range(order):
        slopes: list[Node] = []
        for head, count in [use for use in uses if use not in done]:
            done.add((head, count))
            for position in range(count):
                rule, slope = _examined(head, count, position)
                slopes += [slope] if isinstance(slope, Node) else []
                found += [entry] if (entry := _entry(rule)) is not None else []
        uses = _uses(slopes)
    return found


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
    if head in IMPLEMENTATIONS:  # registered
        return True
    return head not in NUMPY_NAMES and not module.startswith(("sympy.", "symad."))


def _entry(rule: Rule) -> Entry | None:
    label = f"the derivative of {rule.name}"
    if rule.witness is not None:
        claim = "the rule that was given contradicts the function"
        return Entry(label, "refuted", claim, 0.0, (), rule.witness, reason=claim)
    if rule.agreed >= ENOUGH:
        return None
    reason = f"assumes {label} as its author gives it: it was not found to be exact to many digits"
    return Entry(label, "measured", "not established", 1.0, reason=reason)


def _examined(head: type[sympy.Basic], count: int, position: int) -> tuple[Rule, Tangent]:
    """A rule at a few points, as far as the function evaluates there; and the slope by this rule."""
    import sympy

    inputs = tuple(input_node(sympy.Dummy(f"x{k}", real=True), ()) for k in range(count))
    name = f"{head.__name__} in argument {position + 1}" if count > 1 else str(head.__name__)
    value = apply(head, *inputs)
    agreed = 0
    try:
        slope = partial(value, position)
    except SymadError:
        return Rule(name, ENOUGH), ZERO  # differentiating it is an error anyhow
    if not isinstance(slope, Node):
        return Rule(name, ENOUGH), slope
    for point in _points(inputs, slope):
        pair = _both(value, slope, inputs[position], point)
        if pair is None:
            continue
        right, given = pair
        gap, size = abs(right - given), max(abs(right), abs(given), CLOSE)
        if gap > CLOSE * size:
            where = {f"x{k}" if count > 1 else "x": str(v) for k, v in enumerate(point.values())}
            return Rule(name, 0, Witness(where, digits_of(right), digits_of(given))), slope
        if gap > SAME * size:
            return Rule(name), slope
        agreed += 1
    return Rule(name, agreed), slope


def _points(inputs: Sequence[Node], slope: Node) -> Iterator[dict[Node, Fraction]]:
    """Where a rule is tried: with arguments of one size, of several sizes and signs, and where it turns."""
    strides = range(len(inputs)) if len(inputs) > 1 else range(1)
    for stride in strides:  # argument k is moved by k times as many places
        for start in range(len(POINTS)):
            chosen = [POINTS[(start + STRIDE * stride * k) % len(POINTS)] for k in range(len(inputs))]
            yield {n: x + Fraction(k, 7) for k, (n, x) in enumerate(zip(inputs, chosen, strict=True))}
    for point in turning_points([slope], {}):
        if len(point) == len(inputs):
            yield {n: Fraction(float(point[n])) + BESIDE for n in inputs}


def _both(value: Node, slope: Node, moved: Node, point: dict[Node, Fraction]) -> tuple[Number, Number] | None:
    """∂value/∂moved by differentiation of many digits, and by the rule; None where one has no value."""
    step = Fraction(1, 10**20)
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
    far = abs(slope - given) > FAR_OFF * max(abs(slope), abs(given))
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
