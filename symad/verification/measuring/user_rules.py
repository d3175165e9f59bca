"""Derivative rules that users give, compared with numerical differentiation of the functions themselves.

The derivatives of the functions that symad knows are compared with 50-digit differentiation in its tests.
A function of a user's own (a SymPy class with `fdiff`, or one that was registered) is compared here,
wherever it evaluates to many digits. A rule that contradicts its function is refuted; one of a function
that does not evaluate is an assumption, and what rests on it is at most measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import sympy

from symad.core.arrays import Number
from symad.core.graph import Graph, Node, topological
from symad.errors import SymadError
from symad.numbers.function_values import IMPLEMENTATIONS
from symad.numbers.numpy_names import NUMPY_NAMES
from symad.ops.basic.sources import input_node
from symad.ops.elementwise.apply import Apply, apply
from symad.tracing.from_sympy.partials import partial
from symad.verification.certificate.certificate import Entry
from symad.verification.certificate.witness import Witness, digits_of
from symad.verification.values.fifty_digits import evaluate_all

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

LONG, FLAT = Fraction(1, 8), mpmath.mpf(10) ** -6
"""Steps over which a function is constant that has no other slope than 0, and a slope that would show there
in the digits of a float."""

ENOUGH = 2
"""Points at which the rule has to agree."""


@dataclass(frozen=True)
class Rule:
    """What is known about one derivative of one function."""

    name: str
    agreed: int = 0
    witness: Witness | None = None


def entries_of_rules(graphs: Sequence[Graph]) -> list[Entry]:
    """One entry for each function of a user in some graphs whose rule is wrong or cannot be established."""
    heads: dict[tuple[sympy.FunctionClass, int], None] = {}
    for graph in graphs:
        for n in topological(graph.output_nodes):
            if isinstance(n.op, Apply) and is_users(n.op.head):
                heads[n.op.head, len(n.args)] = None
    found = []
    for head, count in heads:
        for position in range(count):
            entry = _entry(_examined(head, count, position))
            found += [entry] if entry is not None else []
    return found


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


def _examined(head: type[sympy.Basic], count: int, position: int) -> Rule:
    """A rule at a few points, as far as the function evaluates there."""
    import sympy

    inputs = tuple(input_node(sympy.Dummy(f"x{k}", real=True), ()) for k in range(count))
    name = f"{head.__name__} in argument {position + 1}" if count > 1 else str(head.__name__)
    value = apply(head, *inputs)
    agreed = 0
    try:
        slope = partial(value, position)
    except SymadError:
        return Rule(name, ENOUGH)  # differentiating it is an error anyhow
    if not isinstance(slope, Node):
        return Rule(name, ENOUGH)
    for start in POINTS:
        point = {n: start + Fraction(k, 7) for k, n in enumerate(inputs)}
        pair = _both(value, slope, inputs[position], point)
        if pair is None:
            continue
        right, given = pair
        gap, size = abs(right - given), max(abs(right), abs(given), CLOSE)
        if gap > CLOSE * size:
            where = {f"x{k}" if count > 1 else "x": str(v) for k, v in enumerate(point.values())}
            return Rule(name, 0, Witness(where, digits_of(right), digits_of(given)))
        if gap > SAME * size:
            return Rule(name)
        agreed += 1
    return Rule(name, agreed)


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
        if abs(slopes[0] - slopes[1]) > CLOSE * max(map(abs, slopes)) or near[1] == near[3] != near[2]:
            return None  # the function has fewer digits than were asked for, or a kink
        if near[0] == near[2] == near[4] and given != 0:
            return _where_flat(value, given, moved, point)
        return (4 * slopes[0] - slopes[1]) / 3, given


def _where_flat(
    value: Node, given: Any, moved: Node, point: dict[Node, Fraction]
) -> tuple[Any, Any] | None:
    """A slope of 0 and the rule where it is not small, if the function is constant over long steps, too.

    tanh 2x has no other digits than those of 1 at x = 84. A function of few digits is constant over short
    steps alone.
    """
    try:
        ends = [_number(value, {**point, moved: point[moved] + k * LONG}) for k in (-2, -1, 0, 1, 2)]
    except Exception:  # whatever a user's function raises
        return None
    return (mpmath.mpf(0), given) if len(set(ends)) == 1 and abs(given) > FLAT else None


def _number(node: Node, point: dict[Node, Fraction]) -> Number:
    used = {n: v for n, v in point.items() if n in topological([node])}
    with mpmath.workdps(2 * DIGITS):
        return mpmath.mpf(np.asarray(evaluate_all([node], used, 2 * DIGITS)[0]).ravel()[0])
