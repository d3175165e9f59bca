"""Proofs for the entries of a certificate: found outside the checker, and accepted by it alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from symad.core.dims import size
from symad.verification.budget import Budget
from symad.verification.certificate.certificate import Certificate, Comparison, Entry
from symad.verification.checker import Claim, Derivative
from symad.verification.checker.proofs import Goal
from symad.verification.proof.find_proof import Limits, find

REPLAYED = "equal by a proof that the checker replays"


SHARE = 8
"""Of the steps for proofs, the part that one attempt at a proof for the checker may take."""


def claims_of(comparisons: Sequence[Comparison]) -> list[Claim]:
    """What the checker is asked about each comparison."""
    return [
        Claim(c.derivative or Derivative("value", c.left.output_nodes), c.right.output_nodes)
        for c in comparisons
    ]


def places(comparisons: Sequence[Comparison]) -> list[tuple[int, int]]:
    """The comparison and the output of each pair, in order."""
    return [(k, o) for k, c in enumerate(comparisons) for o in range(len(c.names))]


def with_proofs(certificate: Certificate, entries: Sequence[Sequence[Entry]], budget: Budget) -> Certificate:
    """The certificate with its entries, given for each pair; what the checker accepts is proved."""
    comparisons = certificate.comparisons
    wanted = list[Goal]()
    for (k, o), listed in zip(places(comparisons), entries, strict=True):
        if size(comparisons[k].right.output_nodes[o].shape) == len(listed):
            wanted += [(k, o, e) for e, entry in enumerate(listed) if entry.status in ("proved", "tested")]
    found = find(claims_of(comparisons), wanted, Limits(budget.proof_steps // SHARE, budget.terms))
    goals = found.goals
    made = [
        accepted(entry) if (k, o, e) in goals else entry
        for (k, o), listed in zip(places(comparisons), entries, strict=True)
        for e, entry in enumerate(listed)
    ]
    return replace(
        certificate,
        entries=tuple(made),
        proofs=found.proofs,
        proof_steps=found.steps,
        unchecked=found.reasons,
    )


def accepted(entry: Entry) -> Entry:
    """An entry of which the checker accepts a proof."""
    claim = entry.claim if entry.status == "proved" else REPLAYED
    return replace(entry, status="proved", claim=claim, bound=0.0, reason="", checked=True)
