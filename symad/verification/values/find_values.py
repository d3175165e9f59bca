"""Points at which nodes have real values: ordinary ones, and what a search for the domain finds.

A finite ball is a value at the point and around it. Where strict values do not tell, as arcsin at what is 1
everywhere, two precisions must agree, and nothing may be divided by the rest of a cancellation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import mpmath
import numpy as np

from symad.core.arrays import Number
from symad.core.dims import size
from symad.core.graph import Node, topological
from symad.errors import SymadError
from symad.numbers.values import unchecked
from symad.ops.basic.arithmetic import Mul
from symad.ops.basic.sources import Input, symbol_of
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.linalg.eigen import EigenSystem, EigenValues, EigenVectors
from symad.verification.budget import operations
from symad.verification.fields.prime_fields import Array
from symad.verification.values.balls import UNKNOWN, UNUSABLE, ball_values
from symad.verification.values.domains import divisors, margins, may_lack_values
from symad.verification.values.fifty_digits import PRECISIONS, is_manageable, settled_values
from symad.verification.values.point_set import PointSet, around, as_floats, exactly, is_whole

ORDINARY = 27
"""Points of ordinary sizes that are tried."""

STEPS, GROW, SHRINK = 600, 1.8, 0.88
"""Steps of the search, and how their size follows success and failure: about one in five succeeds."""

MAX_OPERATIONS_IN_DIGITS, MAX_OPERATIONS_IN_BALLS = 4_000, 250_000
"""The maximum numbers of scalar operations of graphs that are evaluated in many digits, too, and in balls
unless floats tell."""

MOST_INPUTS, MOST_ELEMENTS, MOST_IN_BALLS = 100_000, 10_000_000, 300_000
"""Elements of inputs beyond which few points are tried; of all nodes beyond which none are, or in floats."""

ROUNDED = 2.0**-20
"""What rounding may leave of a cancellation in floats, relatively: much more than it mostly does."""

FEW = 9
"""Points that are tried where inputs are large."""

BITS = 128
"""Precision of balls."""


class TooLarge(SymadError):
    """A graph is too large to be evaluated."""


def is_too_large(outputs: Sequence[Node]) -> bool:
    """Whether outputs are evaluated nowhere."""
    return bool(sum(size(n.shape) for n in topological(outputs)) > MOST_ELEMENTS)


def valued(outputs: Sequence[Node], point: Mapping[Node, Any]) -> list[Array]:
    """For each output which elements have a real value at a point of exact numbers, or of floats.

    What strict values do not know, as arcsin at what is 1 everywhere, has one if two precisions agree. Graphs
    that are too large for them are evaluated in floats.
    """
    floats = {node: as_floats(value) for node, value in point.items()}
    none = [np.zeros(tuple(map(int, o.shape)), dtype=bool) for o in outputs]
    if not is_manageable(outputs, floats, balls=True):
        return none
    work, count = _operations(outputs), sum(size(n.shape) for n in topological(outputs))
    rough = partial(_told, outputs, floats, lambda order: (unchecked(order, floats), ROUNDED))
    if (large := work > MAX_OPERATIONS_IN_BALLS or count > MOST_IN_BALLS) and (told := rough()) is not None:
        return told
    if count > MOST_IN_BALLS:
        return none
    exact = exactly(dict(point))
    balls = ball_values(outputs, exact, BITS)
    found = [_flags(lambda v: v.is_finite, b) for b in balls]
    unknown = [_flags(lambda v: v.mark == UNKNOWN, b) for b in balls]
    if large or not any(u.any() for u in unknown):
        return found
    in_digits = work <= MAX_OPERATIONS_IN_DIGITS
    more = (_told(outputs, floats, partial(_settled, point=exact)) if in_digits else rough()) or none
    return [f | (u & m) for f, u, m in zip(found, unknown, more, strict=True)]


def _flags(holds: Callable[[Any], bool], values: Array) -> Array:
    return np.array([holds(v) for v in values.ravel()], dtype=bool).reshape(values.shape)


def _operations(outputs: Sequence[Node]) -> float:
    try:
        return operations(topological(outputs))
    except LookupError:  # an op of somebody else's, which does not say what it costs
        return np.inf


def _settled(order: Sequence[Node], point: Mapping[Node, Any]) -> tuple[Sequence[Any], Any]:
    digits = settled_values(order, point, precisions=PRECISIONS[:2])

    # A 0 by an identity never settles: its two remainders agree in being none above the rounding.
    def known(value: mpmath.mpf, raw: mpmath.mpf) -> mpmath.mpf:
        return raw if not isinstance(raw, bool) and abs(raw) <= digits.floor else value

    each = np.frompyfunc(known, 2, 1)
    values = [each(v, digits.every[node]) for node, v in zip(order, digits.values, strict=True)]
    return values, digits.floor / digits.largest


Evaluated = Callable[[Sequence[Node]], "tuple[Sequence[Any], Any]"]
"""The values of nodes, and what rounding may leave of a cancellation, relatively."""


def _told(outputs: Sequence[Node], floats: Mapping[Node, Any], evaluate: Evaluated) -> list[Array] | None:
    """Which elements have finite values by rounded numbers; None where these may be those of remainders."""
    order = topological(outputs)
    if not all(map(_is_tellable, order)) or not is_manageable(outputs, floats):
        return None
    try:
        with np.errstate(all="ignore"):
            values, unit = evaluate(order)
    except UNUSABLE:
        return None
    every = {n: np.asarray(v) for n, v in zip(order, values, strict=True)}
    if not all(_is_told(node, every, unit) for node in order):
        return None
    return [_flags(lambda v: bool(mpmath.isfinite(v)), every[o]) for o in outputs]


def _is_tellable(node: Node) -> bool:
    """Whether numbers may tell that a node has a value: matrices are singular by rests of cancellations."""
    lone = (Apply, Mul, Pow, EigenSystem, EigenValues, EigenVectors)
    return isinstance(node.op, lone) or not may_lack_values(node)


def _is_told(node: Node, every: Mapping[Node, Array], unit: Any) -> bool:
    """Whether a node is divided by nothing that may be the rest of a cancellation, as 0 by identity."""
    for divisor in (node.args[k] for k in divisors(node)) if may_lack_values(node) else ():
        least = unit * max(_largest(every[n]) for n in topological([divisor]))
        least = 0 if isinstance(divisor.op, Input) else least
        if not all(abs(v) > least for v in every[divisor].ravel().tolist()):
            return False
    return True


def _largest(values: Array) -> Any:
    return max((abs(v) for v in values.ravel().tolist() if mpmath.isfinite(v)), default=0)


def have_values(outputs: Sequence[Node]) -> bool:
    """Whether each element of some nodes has a value at one of a few points."""
    try:
        found = [valued(outputs, point) for point in islice(places(outputs), FEW)]
    except TooLarge:
        return False
    return all(np.any(flags, axis=0).all() for flags in zip(*found, strict=True))


def places(outputs: Sequence[Node]) -> Iterator[dict[Node, Any]]:
    """Points at which some outputs may have values, the last one searched for.

    Raises:
        TooLarge: the graph is not evaluated.
    """
    if is_too_large(outputs):
        raise TooLarge(f"graphs of more than {MOST_ELEMENTS} elements are not evaluated")
    drawn = PointSet(tuple(outputs))
    if sum(size(n.shape) for n in drawn.arguments) > MOST_INPUTS:
        yield from drawn.plain(FEW)
        return
    tried = []
    for point in drawn.plain(ORDINARY):
        tried.append(next(around(exactly(point), 1, drawn.integers)))
        yield tried[-1]
    wanted = [m.inside for m in margins(topological(outputs))]
    if wanted and drawn.arguments:
        for point in _searched(wanted, tried, drawn.integers):
            yield from around(point, BESIDE, drawn.integers)


BESIDE = 6
"""Points next to one that was searched for: where it is the only one, there is no open set."""


def _searched(
    wanted: Sequence[Node], starts: Sequence[Mapping[Node, Any]], integers: Mapping[Node, Number]
) -> Iterator[dict[Node, Number]]:
    """The point closest to where some nodes are positive, by random steps downhill.

    What is minimized is how many of the nodes have no value, and then how far the others are below 0.
    """
    rng = np.random.default_rng(0)
    floats = [{n: as_floats(v) for n, v in p.items()} for p in starts]
    here = min(floats, key=lambda p: _violation(wanted, p))
    least, size = _violation(wanted, here), 1.0
    for _ in range(STEPS):
        there = {n: v if n in integers or is_whole(n) else _moved(n, v, size, rng) for n, v in here.items()}
        violation = _violation(wanted, there)
        if violation < least:
            here, least, size = there, violation, size * GROW
            if violation == (0, 0.0):
                break
        else:
            size *= SHRINK
    yield exactly(here)


def _violation(wanted: Sequence[Node], point: Mapping[Node, Number]) -> tuple[int, float]:
    values = [_in_floats(node, point) for node in wanted]
    missing = sum(int(np.isnan(v).sum()) for v in values)
    below = [np.minimum(v[~np.isnan(v)], 0.0) for v in values]
    return missing, -float(sum(b.sum() for b in below))


def _in_floats(node: Node, point: Mapping[Node, Number]) -> Array:
    """The value of a node, NaN where an op has none."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(unchecked([node], point)[0], dtype=float)
    except UNUSABLE:
        return np.full(tuple(map(int, node.shape)), np.nan)


def _moved(node: Node, value: Number, size: float, rng: np.random.Generator) -> np.ndarray | float:
    """A point beside, with the signs that the symbol promises."""
    symbol, number = symbol_of(node), np.asarray(value, dtype=float)
    moved = number + size * (np.abs(number) + 1) * rng.normal(size=number.shape)
    if getattr(symbol, "is_nonnegative", None):
        moved = np.abs(moved)
    elif getattr(symbol, "is_nonpositive", None):
        moved = -np.abs(moved)
    return moved if number.shape else float(moved)
