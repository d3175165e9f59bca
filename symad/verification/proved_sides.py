"""Compares the forms of a derivative with a form that is already proved.

`check` has two gradients and four Hessians of the same function, and an independent reference that is written
out element by element and is much longer. Equality with a proved form is an equivalent claim if that form has
a value at every point; at points where it has none, the claim would be empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from symad.core.gc_pause import without_collecting
from symad.core.graph import Node
from symad.verification.goals import Pair, Verdict
from symad.verification.rewriting.identities.infinities import without_infinities
from symad.verification.rewriting.rewrite import expand_definitions
from symad.verification.values.ranges import always_exist


@without_collecting
def beside_proved(pairs: Sequence[Pair], proved: Mapping[int, Verdict]) -> list[Pair]:
    """The pairs; where there is a proved form of the same derivative, it becomes the left side."""
    found = list(pairs)
    exists = cache(lambda j: always_exist(_plain(pairs[j])))
    for k, pair in enumerate(pairs):
        others = [j for j in proved if k not in proved and _is_another_form(pair, pairs[j])]
        if others and exists(others[0]):
            found[k] = replace(pair, left=pairs[others[0]].right)
    return found


def _is_another_form(pair: Pair, other: Pair) -> bool:
    derivative, output = pair.comparison.derivative, pair.place[1]
    return derivative is not None and (derivative, output) == (other.comparison.derivative, other.place[1])


def _plain(pair: Pair) -> tuple[Node, ...]:
    return without_infinities(expand_definitions([pair.right]))


def told(pair: Pair, asked: Pair, verdict: Verdict) -> Verdict:
    """The verdict on a pair that was decided with another left side."""
    if asked is pair:
        return verdict
    return replace(verdict, claim=f"{verdict.claim}, to another form of it that is proved")
