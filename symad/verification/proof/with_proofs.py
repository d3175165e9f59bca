"""Proofs for the entries of a certificate: found outside the checker, and accepted by it alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from symad.core.dims import size
from symad.verification.budget import Budget
from symad.verification.certificate.certificate import Certificate, Comparison, Entry
from symad.verification.checker import Claim, Derivative
from symad.verification.checker.proofs import Goal
from symad.verification.proof.find_isomorphism import find_for_all_sizes
from symad.verification.proof.find_proof import Limits, find

REPLAYED = "equal by a proof that the checker replays"

SHARE = 8
"""Of the steps for proofs, the part that one attempt at a proof for the checker may take."""


def claims_of(comparisons: Sequence[Comparison]) -> list[Claim]:
    """What the checker is asked: that right sides are derivatives, and then that both sides are equal."""
    right = [c.right.output_nodes for c in comparisons]
    equal = [
        Claim(Derivative("value", c.left.output_nodes), r) for c, r in zip(comparisons, right, strict=True)
    ]
    of = [
        Claim(c.derivative, r) if c.derivative else e
        for c, r, e in zip(comparisons, right, equal, strict=True)
    ]
    return [*of, *equal]


def has_symbolic_sizes(comparison: Comparison) -> bool:
    """Whether a claim is about all sizes."""
    return bool(comparison.left.dims | comparison.right.dims)


def with_proofs(certificate: Certificate, entries: Sequence[Sequence[Entry]], budget: Budget) -> Certificate:
    """The certificate with its entries, given for each pair; what the checker accepts is proved."""
    comparisons = certificate.comparisons
    places = [(k, o) for k, c in enumerate(comparisons) for o in range(len(c.names))]
    written, any_size = list[Goal](), list[Goal]()
    for (k, o), listed in zip(places, entries, strict=True):
        if has_symbolic_sizes(comparisons[k]):
            if all(entry.status in ("proved", "measured") for entry in listed):
                any_size.append((k, o, 0))
        elif size(comparisons[k].right.output_nodes[o].shape) == len(listed):
            written += [(k, o, e) for e, entry in enumerate(listed) if entry.status in ("proved", "tested")]
    claims, limits = claims_of(comparisons), Limits(budget.proof_steps // SHARE, budget.terms)
    proofs, steps, reasons, proved = [], 0, list[str](), set[Goal]()
    for turn in (0, len(comparisons)):  # first as derivatives, then as equalities of both sides
        if turn and all(c.derivative is None for c in comparisons):
            break
        left = [(k + turn, o, e) for k, o, e in written if (k, o, e) not in proved]
        for found in (
            find(claims, left, limits),
            find_for_all_sizes(claims, [(k + turn, o, e) for k, o, e in any_size if (k, o, e) not in proved]),
        ):
            proofs += found.proofs
            steps += found.steps
            reasons += found.reasons
            proved |= {(k - turn, o, e) for k, o, e in found.goals}
    made = [
        accepted(entry, comparisons[k])
        if (k, o, 0 if has_symbolic_sizes(comparisons[k]) else e) in proved
        else entry
        for (k, o), listed in zip(places, entries, strict=True)
        for e, entry in enumerate(listed)
    ]
    missing = tuple(dict.fromkeys(reasons)) if not all(e.checked for e in made) else ()
    return replace(
        certificate, entries=tuple(made), proofs=tuple(proofs), proof_steps=steps, unchecked=missing
    )


def accepted(entry: Entry, comparison: Comparison) -> Entry:
    """An entry of which the checker accepts a proof."""
    claim = entry.claim if entry.status == "proved" else replayed_claim(comparison)
    return replace(entry, status="proved", claim=claim, bound=0.0, reason="", checked=True)


def replayed_claim(comparison: Comparison) -> str:
    """What a proof of the checker says."""
    dims = sorted(map(str, comparison.left.dims | comparison.right.dims))
    return f"{REPLAYED}, for all {', '.join(dims)}" if dims else REPLAYED
