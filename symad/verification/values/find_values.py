"""Points at which nodes have real values: ordinary ones, and what a search for the domain finds.

Small graphs are evaluated in balls of Arb, where a finite ball is a value at the point and around it. Where
balls meet a boundary, as arcsin at what is 1 everywhere, two precisions must agree. Large graphs are
evaluated in floats of two precisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice
from random import Random
from typing import Any

import mpmath
import numpy as np
import sympy
from sympy.codegen.cfunctions import log1p

from symad.core.arrays import Number
from symad.core.dims import size
from symad.core.graph import Node, topological
from symad.errors import SymadError
from symad.higher_order.adjugate import Adjugate, AdjugateTangent
from symad.ops.arrays.ordering import SortingPositions
from symad.ops.arrays.positions import Positions
from symad.ops.arrays.random import RandomOp
from symad.ops.arrays.reduction import Extreme, Product
from symad.ops.arrays.softmax import ExponentialOp
from symad.ops.basic.arithmetic import Add, Mul, add, sub
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import ShapingOp
from symad.ops.basic.sources import Input, Source, constant, constant_value, symbol_of
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Condition, Select
from symad.ops.linalg.cholesky import Cholesky, Triangle
from symad.ops.linalg.eigen import eigenvalues
from symad.ops.linalg.slogdet import DeterminantSign
from symad.ops.linalg.solve_det import Determinant, LogDeterminant, determinant
from symad.ops.sparse.csr import CompressedRows
from symad.verification.budget import operations
from symad.verification.fields.integer_inputs import integer_inputs
from symad.verification.fields.prime_fields import Array
from symad.verification.terms.discontinuities import KINKED
from symad.verification.terms.linear_terms import number
from symad.verification.values.hostile_points import exactly, is_manageable
from symad.verification.values.intervals import ENTIRE, MONOTONE, Interval
from symad.verification.values.points import points
from symad.verification.values.ranges import ranges
from symad.verification.values.scouting import as_floats
from symad.verification.values.steady_values import (
    AGREED,
    ROUGHLY,
    in_digits,
    in_floats,
    steady_values,
    values_of,
)

ORDINARY = 27
"""Points of ordinary sizes that are tried."""

STEPS, GROW, SHRINK = 600, 1.8, 0.88
"""Steps of the search, and how their size follows success and failure: about one in five succeeds."""

MAX_OPERATIONS_IN_BALLS = 4_000
"""The maximum number of scalar operations that balls evaluate; beyond it floats decide."""

MOST_INPUTS, MOST_ELEMENTS = 100_000, 10_000_000
"""Elements of inputs beyond which points are floats, and of all nodes beyond which nothing is evaluated."""

FEW = 9
"""Points that are tried where inputs are large."""

NEAR = 10**9 + 7
"""The inverse of the relative distance to points of few digits."""

BITS, DIGITS = 128, (50, 100)
"""Precision of balls, and the two decimal precisions compared."""

TOTAL = (ENTIRE | set(MONOTONE) | KINKED) - {sympy.log, log1p, sympy.Mod}
"""Functions that have a value at every real number."""

MARGINS: dict[type[sympy.Basic], tuple[bool, Callable[[Node], Node]]] = {
    sympy.log: (False, lambda a: a),
    log1p: (False, lambda a: add(a, constant(1))),
    sympy.asin: (True, lambda a: sub(constant(1), apply(sympy.Abs, a))),
    sympy.acos: (True, lambda a: sub(constant(1), apply(sympy.Abs, a))),
    sympy.atanh: (False, lambda a: sub(constant(1), apply(sympy.Abs, a))),
    sympy.acosh: (True, lambda a: sub(a, constant(1))),
    sympy.acoth: (False, lambda a: sub(apply(sympy.Abs, a), constant(1))),
    sympy.asec: (True, lambda a: sub(apply(sympy.Abs, a), constant(1))),
    sympy.acsc: (True, lambda a: sub(apply(sympy.Abs, a), constant(1))),
    sympy.loggamma: (False, lambda a: a),
}
"""For each function that is not defined everywhere, whether its boundary belongs to the domain, and what is
positive inside."""


class TooLarge(SymadError):
    """A graph is too large to be evaluated."""


@dataclass(frozen=True)
class Margin:
    """What must be positive for a node to have a value on an open set."""

    of: Node
    inside: Node
    closed: bool = False
    """Whether it has a value where that is 0, too."""
    always: bool = True
    """Whether this holds whatever other arguments are: x^y has values for x < 0 where y is an integer."""


def margins(nodes: Sequence[Node]) -> list[Margin]:
    """The conditions under which nodes have values, as far as they are known."""
    found = []
    for node in nodes:
        if isinstance(node.op, Pow):
            base, exponent = node.args[0], number(node.args[1])
            if exponent is None or exponent.denominator > 1:
                found.append(Margin(node, base, True, exponent is not None))
        elif isinstance(node.op, Apply) and node.op.head in MARGINS and len(node.args) == 1:
            closed, inside = MARGINS[node.op.head]
            found.append(Margin(node, inside(node.args[0]), closed))
        elif isinstance(node.op, Cholesky):
            found.append(Margin(node, eigenvalues(node.args[0])))
        elif isinstance(node.op, LogDeterminant):
            found.append(Margin(node, determinant(node.args[0])))
    return found


def is_small(outputs: Sequence[Node]) -> bool:
    """Whether outputs are evaluated in balls."""
    try:
        return operations(topological(outputs)) <= MAX_OPERATIONS_IN_BALLS
    except LookupError:  # an op of somebody else's, which does not say what it costs
        return False


def is_too_large(outputs: Sequence[Node]) -> bool:
    """Whether outputs are evaluated nowhere."""
    return bool(sum(size(n.shape) for n in topological(outputs)) > MOST_ELEMENTS)


TOTAL_OPS = (
    Source, ShapingOp, Add, Einsum, Extreme, Product, Condition, Select, ExponentialOp, Triangle, Determinant,
    DeterminantSign, Adjugate, AdjugateTangent, RandomOp, CompressedRows, Positions, SortingPositions,
)  # fmt: skip
"""Ops that have values wherever their arguments have."""


def may_lack_values(node: Node) -> bool:
    """Whether a node may have no value although its arguments have."""
    op = node.op
    if isinstance(op, Apply):
        return op.head not in TOTAL
    if isinstance(op, Mul):
        return -1 in op.powers
    if isinstance(op, Pow):
        exponent = constant_value(node.args[1])
        return not (isinstance(exponent, int) and exponent >= 0)
    return not isinstance(op, TOTAL_OPS)


@dataclass(frozen=True)
class Place:
    """A point, as exact numbers, and what is known there; of a large one as floats."""

    point: Mapping[Node, Any]
    is_exact: bool = True

    @cached_property
    def floats(self) -> dict[Node, Array | float]:
        """The nearest floats."""
        return {node: as_floats(value) for node, value in self.point.items()}

    def valued(self, outputs: Sequence[Node]) -> list[Array]:
        """For each output which elements have a value."""
        if not (self.is_exact and is_small(outputs)):
            return self.by_floats(outputs)
        rough = [~np.isnan(_as_floats(v)) for v in values_of(outputs, in_floats(self.floats))]
        if not any(r.any() for r in rough):
            return rough
        if not is_manageable(outputs, self.floats):
            return self.by_floats(outputs)
        found = self.precisely(outputs)
        if all((f | ~r).all() for f, r in zip(found, rough, strict=True)):
            return found
        return [f | g for f, g in zip(found, self._in_digits(outputs), strict=True)]

    def precisely(self, outputs: Sequence[Node]) -> list[Array]:
        """The same in balls, whose numbers have no largest one."""
        from symad.verification.values.balls import in_balls

        with in_balls(self.point, BITS) as way:
            return [~np.asarray(way.missing(v)).astype(bool) for v in values_of(outputs, way)]

    def _in_digits(self, outputs: Sequence[Node]) -> list[Array]:
        first, second = (in_digits(self.point, digits) for digits in DIGITS)
        values = steady_values(outputs, (first, second), AGREED)
        agree = np.frompyfunc(_agree, 2, 1)
        return [np.asarray(agree(a, b)).astype(bool) for a, b in values]

    def by_floats(self, outputs: Sequence[Node]) -> list[Array]:
        """The same in floats of two precisions."""
        ways = in_floats(self.floats, np.float32), in_floats(self.floats)
        values = steady_values(outputs, ways, ROUGHLY)
        return [~np.isnan(_as_floats(a)) & ~np.isnan(_as_floats(b)) for a, b in values]


def have_values(outputs: Sequence[Node]) -> bool:
    """Whether each element of some nodes has a value at one of a few points, by floats."""
    try:
        found = [place.by_floats(outputs) for place in islice(places(outputs), FEW)]
    except TooLarge:
        return False
    return all(np.any(flags, axis=0).all() for flags in zip(*found, strict=True))


def _as_floats(value: Any) -> Array:
    return np.asarray(value, dtype=float)


def _agree(a: Number, b: Number) -> bool:
    """Whether two numbers are close; what is 0 by an identity differs by its rounding."""
    a, b = mpmath.mpf(a), mpmath.mpf(b)
    if not (mpmath.isfinite(a) and mpmath.isfinite(b)):
        return False
    return bool(abs(a - b) <= AGREED * max(1, abs(a), abs(b)))


def places(outputs: Sequence[Node]) -> Iterator[Place]:
    """Points at which some outputs may have values, the last one searched for.

    Raises:
        TooLarge: the graph is not evaluated.
    """
    nodes = topological(outputs)
    inputs = [n for n in nodes if isinstance(n.op, Input)]
    integers = integer_inputs(nodes)
    if is_too_large(outputs):
        raise TooLarge(f"graphs of more than {MOST_ELEMENTS} elements are not evaluated")
    if sum(size(n.shape) for n in inputs) > MOST_INPUTS:
        yield from (Place(point, False) for point in large_points(inputs, integers))
        return
    tried = []
    for point in points(inputs, integers, ORDINARY):
        tried.append(Place(_moved_a_little(point, integers)))
        yield tried[-1]
    wanted = [m.inside for m in margins(nodes)]
    if wanted and inputs:
        for point in _searched(wanted, tried, integers):
            yield from (Place(_moved_a_little(point, integers, seed)) for seed in range(BESIDE))


BESIDE = 6
"""Points next to one that was searched for: where it is the only one, there is no open set."""


def _moved_a_little(
    point: Mapping[Node, Any], integers: Mapping[Node, Any], seed: int = 0
) -> dict[Node, Any]:
    """A point beside, on no line such as x = 1: what has a value there alone has none on an open set."""
    rng = Random(seed)

    def moved(value: Fraction) -> Fraction:
        part = Fraction(rng.randrange(1, NEAR), NEAR * NEAR)
        return value + (part if seed % 2 == 0 else -part) * (value or 1)

    each = np.frompyfunc(moved, 1, 1)
    return {n: v if n in integers or _is_whole(n) else each(v) for n, v in point.items()}


def large_points(
    inputs: Sequence[Node], integers: Mapping[Node, tuple[int, int]]
) -> Iterator[dict[Node, Any]]:
    """Points in floats between −2 and 2, every third one of positive numbers."""
    rng = np.random.default_rng(0)
    for k in range(FEW):
        yield {node: _drawn(node, integers.get(node), k % 3 == 2, rng) for node in inputs}


def _drawn(node: Node, span: tuple[int, int] | None, positive: bool, rng: np.random.Generator) -> Any:
    shape, symbol = tuple(int(d) for d in node.shape), symbol_of(node)
    if span is not None:
        return rng.integers(span[0], max(span[1], span[0] + 1), size=shape)
    drawn = rng.uniform(-2, 2, size=shape)
    if _is_whole(node):
        drawn = np.round(4 * drawn)
    if getattr(symbol, "is_nonpositive", None):
        return -abs(drawn)
    return abs(drawn) if positive or getattr(symbol, "is_nonnegative", None) else drawn


def _searched(
    wanted: Sequence[Node], starts: Sequence[Place], integers: Mapping[Node, Number]
) -> Iterator[dict[Node, Number]]:
    """The point closest to where some nodes are positive, by random steps downhill.

    What is minimised is how many of the nodes have no value, and then how far the others are below 0.
    """
    rng = np.random.default_rng(0)
    here = min((p.floats for p in starts), key=lambda p: _violation(wanted, p))
    least, size = _violation(wanted, here), 1.0
    for _ in range(STEPS):
        there = {n: v if n in integers or _is_whole(n) else _moved(n, v, size, rng) for n, v in here.items()}
        violation = _violation(wanted, there)
        if violation < least:
            here, least, size = there, violation, size * GROW
            if violation == (0, 0.0):
                break
        else:
            size *= SHRINK
    yield exactly(here)


def _violation(wanted: Sequence[Node], point: Mapping[Node, Number]) -> tuple[int, float]:
    values = [np.asarray(v, dtype=float) for v in values_of(wanted, in_floats(point))]
    missing = sum(int(np.isnan(v).sum()) for v in values)
    below = [np.minimum(v[~np.isnan(v)], 0.0) for v in values]
    return missing, -float(sum(b.sum() for b in below))


def _is_whole(node: Node) -> bool:
    return bool(getattr(symbol_of(node), "is_integer", False))


def _moved(node: Node, value: Number, size: float, rng: np.random.Generator) -> np.ndarray | float:
    """A point beside, with the signs that the symbol promises."""
    symbol, number = symbol_of(node), np.asarray(value, dtype=float)
    moved = number + size * (np.abs(number) + 1) * rng.normal(size=number.shape)
    if getattr(symbol, "is_nonnegative", None):
        moved = np.abs(moved)
    elif getattr(symbol, "is_nonpositive", None):
        moved = -np.abs(moved)
    return moved if number.shape else float(moved)


def nowhere(outputs: Sequence[Node], box: Mapping[Node, Interval]) -> list[Node]:
    """The nodes below some outputs that have no value while the inputs lie in a box, by intervals."""
    wanted = [m for m in margins(topological(outputs)) if m.always]
    known = ranges([m.inside for m in wanted], box) if wanted else {}
    return [m.of for m in wanted if known and _is_outside(known[m.inside], m.closed)]


def _is_outside(values: Number, closed: bool) -> bool:
    every = np.asarray(values, dtype=object).ravel()
    return all(bool(v.high < 0 if closed else v.high <= 0) for v in every) and len(every) > 0
