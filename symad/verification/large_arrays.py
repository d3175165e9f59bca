"""Claims about arrays that are too large to be evaluated: proved without their elements, or undecided.

Each output counts alone: what does not depend on a large array is decided as anywhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from symad.core.claims import Goal
from symad.core.graph import Graph, Node, topological
from symad.verification.certificate.certificate import Comparison
from symad.verification.goals import MAX_SINGLE_ENTRIES, Pair, Verdict, certain
from symad.verification.proof.with_proofs import ONE_GRAPH, Replayed, replayed_claim

MAX_ELEMENTS = 1 << 18
"""The maximum number of elements of an array in a claim. With 100,000 the work allowed is used up in 25 s."""


def largest(nodes: Iterable[Node]) -> int:
    """The number of elements of the largest array below some nodes whose size is a number."""
    return max((prod(n.shape) for n in topological(nodes) if is_fixed(n)), default=0)


def is_fixed(node: Node) -> bool:
    """Whether the sizes of a node are numbers."""
    return all(isinstance(d, int) for d in node.shape)


def one_by_one(comparison: Comparison) -> list[Comparison]:
    """A comparison for each output if one of them is large: proofs write all outputs of a comparison out."""
    left, right, claim = comparison.left, comparison.right, comparison.derivative
    if len(comparison.names) == 1 or largest((*left.output_nodes, *right.output_nodes)) <= MAX_ELEMENTS:
        return [comparison]
    made = []
    for k, (name, a, b) in enumerate(
        zip(comparison.names, left.output_nodes, right.output_nodes, strict=True)
    ):
        alone = claim
        if claim is not None and claim.kind in ("value", "pushforward"):
            alone = replace(claim, function=claim.function[k : k + 1])
        elif claim is not None:
            alone = replace(claim, wrt=claim.wrt[k : k + 1])
        one, other = Graph(left.input_nodes, (a,)), Graph(right.input_nodes, (b,))
        made.append(replace(comparison, left=one, right=other, names=(name,), derivative=alone))
    return made


def without_elements(pairs: Sequence[Pair], known: Replayed) -> dict[int, Verdict]:
    """Verdicts on claims about large arrays: proved for whole arrays, or undecided."""
    made = dict[int, Verdict]()
    for k, pair in enumerate(pairs):
        most = largest((pair.left, pair.right))
        if most > MAX_ELEMENTS:
            reason = (
                f"it has an array of {most:,} elements, and arrays of at most {MAX_ELEMENTS:,} are evaluated"
            )
            made[k] = _whole(pair, known) or nothing_known(pair, reason)
    return made


def _whole(pair: Pair, known: Replayed) -> Verdict | None:
    """The verdict that a claim is proved, if the checker accepts a proof that writes no elements out."""
    if pair.left is pair.right:
        return certain(pair, ONE_GRAPH)
    count = prod(pair.left.shape) if is_fixed(pair.left) else 1
    goals: list[Goal] = [(*pair.place, e) for e in range(count if count <= MAX_SINGLE_ENTRIES else 1)]
    reasons = list(known.reasons)
    known.for_all_sizes(goals)
    known.reasons = reasons  # what other entries lack has other reasons
    return certain(pair, replayed_claim(pair.comparison)) if known.goals.issuperset(goals) else None


def nothing_known(pair: Pair, reason: str) -> Verdict:
    """The verdict that every element is undecided."""
    shape = tuple(d if isinstance(d, int) else 1 for d in pair.left.shape)
    return Verdict(np.full(shape, "undecided", dtype=object), "", 0.0, reason=reason)
