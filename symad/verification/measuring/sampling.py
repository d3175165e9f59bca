"""Points of the seed at which a numeric function is called: a hundred and more, in every stratum and region.

Both sides are compared in floats, which costs little; where these differ, the point is measured like others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise
from typing import Any

import numpy as np

from symad.core.graph import Node, topological
from symad.numbers.values import unchecked
from symad.ops.basic.sources import symbol_of
from symad.verification.fields.prime_fields import Array
from symad.verification.measuring.precisions import Precision
from symad.verification.values.point_set import UNUSABLE, FloatPoint, PointSet, as_plain
from symad.verification.values.strata import PROGRAMS
from symad.verification.values.turning_points import watched_quantities

SAMPLED, LEAST, SECONDS = 160, 32, 2.0
"""The number of points; after LEAST of them, a function that has taken SECONDS is called no more."""

LOOKED_AT, SUSPICIOUS = 12, 1e-8
"""The number of points that are measured, and the relative difference of floats from which on they are."""

ROUNDINGS = 32
"""The same in roundings, of a type of fewer digits."""

SIZED = ("scaled", "one far")
"""Strata that a program meets in use: other units, and one input that is far off."""

KIND, ZEROS, SPECIAL = "sampled", "zeros among others", "directions"
"""What these points are called; the last ones have special directions."""

MAX_ALONE = 4
"""The maximum number of directions of which each is tried as the only one that is not 0."""


def rows(points: PointSet, far: bool) -> Iterator[tuple[str, FloatPoint]]:
    """Zero, points of special directions, beside what turns, and of all strata of programs.

    Unless more are asked for, points that are not of ordinary size are of the strata of `SIZED` alone.
    """
    directions = points.together
    yield from ((ZEROS, p) for p in points.points(1, ["zeros"]))
    for point, change in zip(filter(is_moderate, points.points(SAMPLED)), _special(directions), strict=False):
        yield SPECIAL, {n: as_plain(change[n](np.asarray(v)) + 0.0) if n in change else v  # no −0
                        for n, v in point.items()}  # fmt: skip
    drawn = points.points(SAMPLED if far else 4 * SAMPLED, PROGRAMS)
    if not far:
        usual = islice(filter(is_moderate, drawn), SAMPLED)
        drawn = chain.from_iterable(zip(points.points(SAMPLED, SIZED), usual, strict=False))
    for point in chain(islice(points.turning(), LOOKED_AT), drawn):
        yield "far" if not is_moderate(point) else ZEROS if _has_zeros(point) else KIND, point


def _has_zeros(point: FloatPoint) -> bool:
    """Whether an input that is no index has a 0."""
    return any(v.dtype.kind == "f" and bool((v == 0).any()) for v in map(np.asarray, point.values()))


DIRECTIONS: tuple[Callable[[Array], Array], ...] = (
    lambda v: 0 * v,
    lambda v: 0 * v + 1,
    lambda v: v * (np.arange(v.size) % 2).reshape(v.shape),
    lambda v: v * (1 - np.arange(v.size) % 2).reshape(v.shape),
    lambda v: v * (np.arange(v.size) == v.size - 1).reshape(v.shape),
    lambda v: -np.abs(v),
)
"""Zero, ones, zeros in every other element, one element that is not 0, and none that is positive: a program
that divides by a direction, or has a branch for it, is wrong there alone. A loss that reads some of the
outputs has such cotangents."""


def _special(directions: Sequence[Node]) -> list[Mapping[Node, Callable[[Array], Array]]]:
    """Changes of all directions, and of all but one."""
    changes = [dict.fromkeys(directions, form) for form in DIRECTIONS] if directions else []
    for alone in directions[:MAX_ALONE] if len(directions) > 1 else ():
        changes.append({node: DIRECTIONS[0] for node in directions if node is not alone})
    return list(changes)


def is_moderate(point: FloatPoint) -> bool:
    """Whether all numbers are of ordinary size, or 0: a function without a value there is at fault."""
    sizes = [np.abs(np.asarray(v, dtype=float)) for v in point.values()]
    return all(bool(np.all((s == 0) | ((s > 2.0**-10) & (s < 12)))) for s in sizes)


Named = tuple[str, FloatPoint]


def suspicious(
    outputs: Sequence[Node],
    call: Callable[[FloatPoint], list[Array]],
    tried: Iterable[Named],
    inside: Callable[[FloatPoint], bool],
    limits: Precision,
) -> tuple[list[Named], list[FloatPoint]]:
    """Points at which floats differ, one of each region and of each input that is 0 first; and all tried."""
    watched = [q for q in watched_quantities(topological(outputs)) if np.prod(q.shape, dtype=int) <= 64]
    found: list[tuple[float, bytes, Named]] = []
    start, seen = time.process_time(), list[FloatPoint]()
    for kind, point in tried:
        if len(seen) >= LEAST and time.process_time() - start > SECONDS:
            break
        if not inside(point):
            continue
        try:
            with np.errstate(all="ignore"):
                right = unchecked((*outputs, *watched), point)
        except UNUSABLE:
            continue
        seen.append(point)
        gap = _gap(call, point, right[: len(outputs)])
        if gap > max(SUSPICIOUS, ROUNDINGS * limits.eps):
            signs = [np.sign(np.nan_to_num(np.asarray(v, dtype=float))) for v in right[len(outputs) :]]
            zeros = [np.asarray(v) == 0 for v in point.values()]
            alike = bytes(int(z.any()) + int(z.all()) for z in zeros)
            key = kind.encode() + alike + b"".join(s.astype(np.int8).tobytes() for s in signs)
            found.append((gap, key, (kind, point)))
    found.sort(key=lambda f: -f[0])
    first: dict[bytes, int] = {}
    for k, (_, key, _) in enumerate(found):
        first.setdefault(key, k)
    order = [*first.values(), *(k for k in range(len(found)) if k not in first.values())]
    return [found[k][2] for k in order[:LOOKED_AT]], seen


def windows(tried: Sequence[FloatPoint]) -> str:
    """For each input without axes the widest interval of ordinary size in which it had no value."""
    told = []
    for node in [n for n in tried[0] if not n.shape] if tried else ():
        values = sorted({float(p[node]) for p in tried if node in p})
        near = [v for v in values if 2.0**-10 < abs(v) < 2.0**9]
        gaps = [(max(abs(a), abs(b)) / min(abs(a), abs(b)), a, b) for a, b in pairwise(near) if a * b > 0]
        if gaps:
            _, low, high = max(gaps)
            told.append(f"{low:.4g} < {symbol_of(node)} < {high:.4g}")
    return f"no point was tried with {' or '.join(told)}: an error there alone would be unseen" * bool(told)


def gap(outputs: Sequence[Node], call: Callable[[FloatPoint], list[Array]], point: FloatPoint) -> float:
    """The largest difference of floats at a point, relative to the largest element."""
    try:
        with np.errstate(all="ignore"):
            right = [np.asarray(v, dtype=float) for v in unchecked(outputs, point)]
    except UNUSABLE:
        return 0.0
    sizes = [float(np.max(np.abs(v), initial=0.0, where=np.isfinite(v))) for v in right]
    return _gap(call, point, right, sizes)


def _gap(
    call: Callable[[FloatPoint], list[Array]],
    point: FloatPoint,
    right: Sequence[Any],
    sizes: Sequence[float] | None = None,
) -> float:
    """The largest relative difference of floats at a point; 1 where the function has no value alone."""
    try:
        made = call(point)
    except Exception:  # whatever the user's function raises is told where the point is measured
        return 1.0
    worst = 0.0
    for got, value, size in zip(made, right, sizes or [1e-300] * len(made), strict=True):
        u, v = np.asarray(got, dtype=float), np.asarray(value, dtype=float)
        known = np.isfinite(v)
        with np.errstate(all="ignore"):
            gaps = np.abs(u - v) / np.maximum(np.maximum(np.abs(u), np.abs(v)), size)
        gaps = np.where(known, np.where(np.isfinite(gaps), gaps, 1.0), 0.0)
        worst = max(worst, float(np.max(gaps, initial=0.0)))
    return worst
