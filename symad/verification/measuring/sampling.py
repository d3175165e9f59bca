"""Points of the seed at which a numeric function is called: a hundred and more, in every stratum and region.

Both sides are compared in floats, which costs little; where these differ, the point is measured like others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from symad.core.graph import Node, topological
from symad.numbers.values import unchecked
from symad.verification.fields.prime_fields import Array
from symad.verification.points import UNUSABLE, FloatPoint, PointSet
from symad.verification.values.points import is_whole
from symad.verification.values.turning_points import watched_quantities

SAMPLED, LEAST, SECONDS = 160, 32, 2.0
"""The number of points; after LEAST of them, a function that has taken SECONDS is called no more."""

LOOKED_AT, SUSPICIOUS = 12, 1e-8
"""The number of points that are measured, and the relative difference of floats from which on they are."""

KIND = "sampled"
"""What these points are called."""


FAR = 1.2e4
"""The size of one input, or of all directions, where others are of ordinary size: a pass may clip them."""


DECADES = (-6, 9)
"""The powers of ten by which every fourth point is scaled."""


def rows(points: PointSet, directions: Sequence[Node], far: bool) -> Iterator[FloatPoint]:
    """Points of all strata, or of ordinary size, beside what turns, with an element 0 or one input far."""
    drawn = points.points(SAMPLED if far else 4 * SAMPLED)
    drawn = drawn if far else islice(filter(is_moderate, drawn), SAMPLED)
    rng = np.random.default_rng(points.seed % 2**63)
    whole = [n for n in points.arguments if n in points.integers or is_whole(n)]
    able = [[n] for n in points.arguments if n not in whole and n not in directions] if directions else []
    for k, point in enumerate(chain(islice(points.turning(), LOOKED_AT), drawn)):
        arrays = [n for n, v in point.items() if np.size(v) > 1 and n not in points.integers]
        if k % 8 == 7 and arrays:
            node = arrays[int(rng.integers(len(arrays)))]
            changed = np.array(point[node], dtype=float)
            changed.flat[int(rng.integers(changed.size))] = 0.0
            point = {**point, node: changed}
        elif k % 8 == 3 and able:
            chosen = [*able, list(directions)][k // 8 % (len(able) + 1)]
            point = {n: v * FAR if n in chosen else v for n, v in point.items()}
        elif k % 4 == 1:
            size = 10.0 ** rng.uniform(*DECADES)
            point = {n: v if n in whole else v * size for n, v in point.items()}
        yield point


def is_moderate(point: FloatPoint) -> bool:
    """Whether all numbers are of ordinary size, or 0: a function without a value there is at fault."""
    sizes = [np.abs(np.asarray(v, dtype=float)) for v in point.values()]
    return all(bool(np.all((s == 0) | ((s > 2.0**-10) & (s < 12)))) for s in sizes)


def suspicious(
    outputs: Sequence[Node],
    call: Callable[[FloatPoint], list[Array]],
    tried: Iterator[FloatPoint],
    inside: Callable[[FloatPoint], bool],
) -> tuple[list[FloatPoint], int]:
    """The points at which floats differ, one of each region first, and how many points were tried."""
    watched = [q for q in watched_quantities(topological(outputs)) if np.prod(q.shape, dtype=int) <= 64]
    found: list[tuple[float, bytes, FloatPoint]] = []
    start, count = time.process_time(), 0
    for point in tried:
        if count >= LEAST and time.process_time() - start > SECONDS:
            break
        if not inside(point):
            continue
        try:
            with np.errstate(all="ignore"):
                right = unchecked((*outputs, *watched), point)
        except UNUSABLE:
            continue
        count += 1
        gap = _gap(call, point, right[: len(outputs)])
        if gap > SUSPICIOUS:
            signs = [np.sign(np.nan_to_num(np.asarray(v, dtype=float))) for v in right[len(outputs) :]]
            key = b"".join(s.astype(np.int8).tobytes() for s in signs)
            found.append((gap, key, point))
    found.sort(key=lambda f: -f[0])
    first: dict[bytes, int] = {}
    for k, (_, key, _) in enumerate(found):
        first.setdefault(key, k)
    order = [*first.values(), *(k for k in range(len(found)) if k not in first.values())]
    return [found[k][2] for k in order[:LOOKED_AT]], count


def _gap(call: Callable[[FloatPoint], list[Array]], point: FloatPoint, right: Sequence[Any]) -> float:
    """The largest relative difference of floats at a point; 1 where the function has no value alone."""
    try:
        made = call(point)
    except Exception:  # whatever the user's function raises is told where the point is measured
        return 1.0
    worst = 0.0
    for got, value in zip(made, right, strict=True):
        u, v = np.asarray(got, dtype=float), np.asarray(value, dtype=float)
        known = np.isfinite(v)
        with np.errstate(all="ignore"):
            gaps = np.abs(u - v) / np.maximum(np.maximum(np.abs(u), np.abs(v)), 1e-300)
        gaps = np.where(known, np.where(np.isfinite(gaps), gaps, 1.0), 0.0)
        worst = max(worst, float(np.max(gaps, initial=0.0)))
    return worst
