"""Whether the domain of a claim holds an open set of points: on less, equality of both sides says nothing.

A claim is about functions on an open set. On the points where x = 1 alone, or where no point is, every
candidate would agree with the derivative wherever both sides are compared.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from symad.core.graph import Graph, Node, rebuild
from symad.verification.certificate.certificate import Certificate, Entry
from symad.verification.claimed_domain import inside_of
from symad.verification.decide import versions
from symad.verification.measuring.hostile_points import Bounds, FloatPoint, ordinary_points, points_between
from symad.verification.measuring.instance_sizes import sizes_of

TRIED, AROUND, APART = 120, 6, 1e-7
"""Points that are tried, points around one that lies inside, and their relative distance."""

REASON = "where= holds on no open set of points that was found, so that nothing is claimed"


def holds_an_open_set(reference: Graph, condition: Node, bounds: Bounds) -> bool:
    """Whether a point was found around which the condition holds; symbolic sizes become numbers.

    Args:
        reference: whose inputs the condition is about.
        condition: positive where the claim is made.
        bounds: of inputs, as the condition implies them.
    """
    sizes = {symbol: values[0] for symbol, values in sizes_of(reference, reference)}
    concrete = reference.at(sizes)
    moved = dict(zip(reference.input_nodes, concrete.input_nodes, strict=True))
    inside = inside_of(rebuild((condition,), moved)[0])
    ends = {moved[node]: between for node, between in bounds.items() if node in moved}
    points = [*points_between(concrete.input_nodes, {}, ends, TRIED)] if ends else []
    points += ordinary_points(concrete.input_nodes, {}, TRIED)
    return any(inside(p) and all(map(inside, _around(p))) for _, p in points)


def _around(point: FloatPoint) -> Iterator[FloatPoint]:
    """Points close to one; integers stay."""
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
