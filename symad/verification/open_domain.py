"""Decides if the domain of a claim contains an open set of points; without one, equality says nothing.

A claim is about functions on an open set. If the domain is the single point x = 1, or empty, every candidate
agrees with the derivative wherever both sides are compared. The same holds where the function has no value,
as √x log x has none for x < 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from symad.core.graph import Graph, Node, rebuild
from symad.errors import SymadError
from symad.numbers.values import unchecked
from symad.verification.certificate.certificate import Certificate, Entry
from symad.verification.claimed_domain import inside_of
from symad.verification.decide import versions
from symad.verification.values.hostile_points import Bounds, FloatPoint, ordinary_points, points_between
from symad.verification.values.instance_sizes import sizes_of

TRIED, AROUND, APART = 120, 6, 1e-7
"""The number of points to try, the number of points around a point inside, and their relative distance."""

REASON = (
    "no open set of points was found on which where= holds and the function has values, so that nothing is "
    "claimed"
)


def holds_an_open_set(claim: Graph, condition: Node, bounds: Bounds) -> bool:
    """True if the condition holds around some points, and each element of a claim has a value at one of them.

    Args:
        claim: the function and what is claimed of it; symbolic sizes become numbers.
        condition: positive where the claim is made.
        bounds: of inputs, as the condition implies them.
    """
    sizes = {symbol: values[0] for symbol, values in sizes_of(claim, claim)}
    concrete = claim.at(sizes)
    moved = dict(zip(claim.input_nodes, concrete.input_nodes, strict=True))
    inside = inside_of(rebuild((condition,), moved)[0])
    ends = {moved[node]: between for node, between in bounds.items() if node in moved}
    points = [*points_between(concrete.input_nodes, {}, ends, TRIED)] if ends else []
    points += ordinary_points(concrete.input_nodes, {}, TRIED)
    has_value = [np.zeros(tuple(map(int, y.shape)), dtype=bool) for y in concrete.output_nodes]
    for _, point in points:
        if not (inside(point) and all(map(inside, _around(point)))):
            continue
        try:
            values = unchecked(concrete.output_nodes, point)
        except (SymadError, ArithmeticError, ValueError):
            continue
        finite = [np.isfinite(np.asarray(value, dtype=float)) for value in values]
        has_value = [known | now for known, now in zip(has_value, finite, strict=True)]
        if all(known.all() for known in has_value):
            return True
    return False


def _around(point: FloatPoint) -> Iterator[FloatPoint]:
    """Points close to a point; integers do not change."""
    rng = np.random.default_rng(0)
    for _ in range(AROUND):
        yield {node: _close(node, value, rng) for node, value in point.items()}


def _close(node: Node, value: object, rng: np.random.Generator) -> object:
    symbol = getattr(node.op, "symbol", None)
    if getattr(symbol, "is_integer", False):
        return value
    number = np.asarray(value, dtype=float)
    return number + APART * (1 + np.abs(number)) * rng.uniform(-1, 1, size=number.shape)


def claims_nothing(title: str) -> Certificate:
    """The certificate of a claim on a domain without an open set."""
    entry = Entry(title, "undecided", "not decided", 1.0, (), reason=REASON)
    return Certificate(title, (entry,), (), 0, (), versions(), 0.0, 0, (REASON,))
