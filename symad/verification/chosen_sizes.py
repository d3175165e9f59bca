"""Claims about all sizes that have no proof, at some sizes: measured, or by one element for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from symad.core.graph import topological
from symad.ops.basic.sources import Dimension
from symad.verification.accept import (
    DIFFER,
    PROOF,
    SAMPLE,
    TEST,
    Pair,
    Verdict,
    nothing_known,
    weakened,
)
from symad.verification.budget import operations
from symad.verification.rewriting.restated.by_elements import by_one_element
from symad.verification.solving import Goals, bound, inspected, searched, standing
from symad.verification.values.instance_sizes import Sizes, further_sizes, sizes_of


def at_sizes(goals: Goals) -> dict[int, Verdict]:
    """Claims about all sizes that have no proof, at some sizes: measured, or by one element for all."""
    made = dict[int, Verdict]()
    groups: dict[Sizes, list[int]] = {}
    for k, pair in goals.open.items():
        if goals.is_symbolic(pair):
            groups.setdefault(sizes_of(pair.comparison.left, pair.comparison.right), []).append(k)
    for sizes, group in groups.items():
        for k, verdict in zip(group, _at_sizes(goals, [goals.pairs[k] for k in group], sizes), strict=True):
            made[k] = verdict
    return made


def _at_sizes(goals: Goals, pairs: Sequence[Pair], sizes: Sizes) -> list[Verdict]:
    """The worst of the verdicts at all choices of sizes."""
    texts, worst = size_texts(sizes), list[Verdict]()
    for j in range(max(len(texts), 1)):
        chosen = {symbol: values[j] for symbol, values in sizes}
        text = f" at {texts[j]}" if texts else ""
        bounds = {k: bound(p, chosen) for k, p in enumerate(pairs)}
        there = Goals(bounds, goals.seed + j, goals.meter, goals.tactics)
        here = [replace(v, sizes=text) for v in standing(there)]
        worst = [a.worse(b) for a, b in zip(worst, here, strict=True)] if worst else here
        goals.primes = there.primes
    if not texts:
        return worst
    made = []
    for pair, verdict in zip(pairs, worst, strict=True):
        verdict = _measured(_elsewhere(pair, verdict, goals))
        verdict = _by_one_element(pair, verdict, goals)
        made.append(replace(verdict, at=texts))
    return made


def _by_one_element(pair: Pair, verdict: Verdict, goals: Goals) -> Verdict:
    """The verdict for all sizes where one element stands for all, and the identity test calls it equal."""
    sides = by_one_element(pair.asked) if (verdict.ground == SAMPLE).all() else None
    if sides is None or any(isinstance(n.op, Dimension) for n in topological(sides)):
        return verdict
    left, right = sides  # the domain is a condition in both
    alone = Pair(pair.comparison, pair.name, left, right, pair.place)
    (one,) = standing(Goals({0: alone}, goals.seed, goals.meter, goals.tactics))
    if one.ground != TEST:
        return verdict
    dims = ", ".join(sorted(map(str, pair.comparison.left.dims | pair.comparison.right.dims)))
    claim = f"{one.claim}, by one element that stands for all, for all {dims}"
    return replace(one, ground=np.full(verdict.ground.shape, TEST, dtype=object), claim=claim)


MAX_OPERATIONS = 100_000
"""Further sizes are tried if the two sides have at most this many scalar operations at them."""


def _elsewhere(pair: Pair, verdict: Verdict, goals: Goals) -> Verdict:
    """The verdict, or the one that all elements differ at another size, where they visibly do."""
    if not np.isin(verdict.ground, (PROOF, TEST)).all():
        return verdict
    for sizes in further_sizes(pair.comparison.left, pair.comparison.right):
        there = bound(pair, sizes)
        if operations(topological([there.left, there.right])) > MAX_OPERATIONS:
            continue
        found = weakened(nothing_known(there, ""), searched(goals, inspected(goals, {0: there})[0]))
        if (found.ground == DIFFER).any():
            return replace(found, sizes=f" at {', '.join(f'{s} = {v}' for s, v in sizes.items())}")
    return verdict


def _measured(verdict: Verdict) -> Verdict:
    """The verdict with "measured" for claims that hold at the chosen sizes: other sizes are not known."""
    ground = verdict.ground.copy()
    ground[np.isin(ground, (PROOF, TEST))] = SAMPLE
    return replace(verdict, ground=ground)


def size_texts(sizes: Sizes) -> tuple[str, ...]:
    """The sizes of each instance, as text."""
    count = len(sizes[0][1]) if sizes else 0
    return tuple(", ".join(f"{symbol} = {values[k]}" for symbol, values in sizes) for k in range(count))
