"""Proofs for the entries of a certificate: found outside the checker, and accepted by it alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from symad.core.dims import size
from symad.core.graph import Node
from symad.verification.budget import Budget
from symad.verification.certificate.certificate import Certificate, Comparison, Entry
from symad.verification.checker import Claim, Derivative, Proof
from symad.verification.checker.proofs import Goal
from symad.verification.proof.find_isomorphism import find_for_all_sizes
from symad.verification.proof.find_proof import Limits, find

REPLAYED = "equal by a proof that the checker replays"

ONE_GRAPH = "both sides are one and the same graph"
OWN = "symad's derivative rules (check(f) certifies them)"
NOT_COMPARED = "nothing independent was compared"
"""What a certificate assumes where the checker has not derived the derivative itself."""

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


def with_proofs(
    certificate: Certificate,
    entries: Sequence[Sequence[Entry]],
    tested: Sequence[Sequence[Entry]],
    budget: Budget,
) -> Certificate:
    """The certificate with its entries, given for each pair; what the checker accepts is proved.

    ``tested`` has the same entries without proofs: of a derivative for which the checker has all rules, and
    that it does not accept, no more is said.
    """
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
    proofs, steps, reasons, covered = list[Proof](), 0, list[str](), set[int]()
    proved, derived = set[Goal](), set[Goal]()
    for turn in (0, len(comparisons)):  # first as derivatives, then as equalities of both sides
        if turn and all(c.derivative is None for c in comparisons):
            break
        left = [(k + turn, o, e) for k, o, e in written if (k, o, e) not in proved]
        others = [(k + turn, o, e) for k, o, e in any_size if (k, o, e) not in proved]
        for found in (find(claims, left, limits), find_for_all_sizes(claims, others)):
            proofs += found.proofs
            steps += found.steps
            reasons += found.reasons
            proved |= {(k - turn, o, e) for k, o, e in found.goals}
            covered |= {k for k in found.covered if not turn and comparisons[k].derivative is not None}
        derived = derived or set(proved)
    made = []
    for (k, o), listed, weaker in zip(places, entries, tested, strict=True):
        for e, entry in enumerate(listed):
            if (k, o, 0 if has_symbolic_sizes(comparisons[k]) else e) in proved:
                made.append(accepted(entry, comparisons[k], (k, o, e) in derived))
            elif entry.status == "proved" and k in covered and weaker:
                why = f"{entry.claim}, but the checker does not replay it: {reasons[0]}"
                made.append(replace(weaker[e], reason=why))
            else:
                made.append(entry)
    missing = tuple(dict.fromkeys(reasons)) if not all(e.checked for e in made) else ()
    return replace(
        certificate, entries=tuple(made), proofs=tuple(proofs), proof_steps=steps, unchecked=missing
    )


def accepted(entry: Entry, comparison: Comparison, derived: bool) -> Entry:
    """An entry of which the checker accepts a proof; ``derived`` from its own table of derivatives."""
    same = entry.status == "proved" and entry.claim != ONE_GRAPH
    assumes = entry.assumes
    if derived and comparison.derivative is not None:
        assumes = tuple(a for a in assumes if a != OWN and NOT_COMPARED not in a)
    claim = entry.claim if same else replayed_claim(comparison)
    return replace(entry, status="proved", claim=claim, bound=0.0, reason="", checked=True, assumes=assumes)


def replayed_claim(comparison: Comparison) -> str:
    """What a proof of the checker says."""
    dims = sorted(map(str, comparison.left.dims | comparison.right.dims))
    return f"{REPLAYED}, for all {', '.join(dims)}" if dims else REPLAYED


def derived_for_all_sizes(derivative: Derivative, outputs: tuple[Node, ...]) -> bool:
    """Whether the checker accepts that some outputs are a derivative, for all sizes."""
    goals = [(0, o, 0) for o in range(len(outputs))]
    return len(find_for_all_sizes([Claim(derivative, outputs)], goals).goals) == len(goals)
