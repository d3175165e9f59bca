"""Proofs for the entries of a certificate: found outside the checker, and accepted by it alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from symad.core.dims import size
from symad.core.graph import Node, rebuild, topological
from symad.core.questions import definition
from symad.library.parameter_derivatives import is_numerical
from symad.verification.budget import Budget
from symad.verification.certificate.certificate import STATUSES, Certificate, Comparison, Entry
from symad.verification.checker import Claim, Derivative, Proof
from symad.verification.checker.proofs import Goal
from symad.verification.checker.writing_out import RULES
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
    """What the checker is asked: that right sides are derivatives, and then that both sides are equal.

    Ops without a rule are replaced by their definitions, which is what `definitions_assumed` says.
    """
    right = [c.right.output_nodes for c in comparisons]
    equal = [
        Claim(Derivative("value", c.left.output_nodes), r) for c, r in zip(comparisons, right, strict=True)
    ]
    of = [
        Claim(c.derivative, r) if c.derivative else e
        for c, r, e in zip(comparisons, right, equal, strict=True)
    ]
    return [_defined(claim) for claim in (*of, *equal)]


def _defined(claim: Claim) -> Claim:
    """A claim with ops that have a rule, as far as definitions lead to them."""
    d = claim.derivative
    groups = (claim.outputs, d.function, d.v, d.w)
    nodes = [node for group in groups for node in group]
    if not _with_definition(nodes):
        return claim
    while _with_definition(nodes):
        nodes = list(rebuild(nodes, {}, _by_definition))
    rest = iter(nodes)
    outputs, function, v, w = (tuple(next(rest) for _ in group) for group in groups)
    return Claim(replace(d, function=function, v=v, w=w), outputs)


def _with_definition(nodes: Sequence[Node]) -> set[str]:
    """The ops that have no rule in the checker, but a definition."""
    order = topological(nodes)
    return {type(n.op).__name__ for n in order if type(n.op) not in RULES and definition(n.op, n) is not None}


def _by_definition(node: Node, args: tuple[Node, ...]) -> Node:
    new = node if args == node.args else Node.of(node.op, args)
    meaning = None if type(new.op) in RULES else definition(new.op, new)
    return new if meaning is None else meaning


def definitions_assumed(comparison: Comparison) -> tuple[str, ...]:
    """What is assumed of fused ops where the checker replays a proof."""
    d = comparison.derivative
    function = d.function if d else ()
    sides = (*comparison.left.output_nodes, *comparison.right.output_nodes, *function)
    names = sorted(_with_definition(sides))
    return (f"the definitions of {', '.join(names)}",) if names else ()


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
        derived = derived if turn else set(proved)
    made = []
    for (k, o), listed, weaker in zip(places, entries, tested, strict=True):
        for e, entry in enumerate(listed):
            if _rests_on_differences(comparisons[k], o):
                status = min(entry.status, "measured", key=STATUSES.index)
                made.append(replace(entry, status=status, reason=entry.reason or NUMERICAL))
            elif (k, o, 0 if has_symbolic_sizes(comparisons[k]) else e) in proved:
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


NUMERICAL = "a derivative by a parameter has no formula here: its function is differentiated numerically"


def _rests_on_differences(comparison: Comparison, output: int) -> bool:
    """Whether an output takes values from numerical differentiation, which nothing bounds."""
    sides = comparison.left.output_nodes[output], comparison.right.output_nodes[output]
    return any(map(is_numerical, topological(sides)))


def accepted(entry: Entry, comparison: Comparison, derived: bool) -> Entry:
    """An entry of which the checker accepts a proof; ``derived`` from its own table of derivatives."""
    same = entry.status == "proved" and entry.claim != ONE_GRAPH
    assumes = entry.assumes
    if derived and comparison.derivative is not None:
        assumes = tuple(a for a in assumes if a != OWN and NOT_COMPARED not in a)
    claim = entry.claim if same else replayed_claim(comparison)
    assumes = tuple(dict.fromkeys((*assumes, *definitions_assumed(comparison))))
    return replace(entry, status="proved", claim=claim, bound=0.0, reason="", checked=True, assumes=assumes)


def replayed_claim(comparison: Comparison) -> str:
    """What a proof of the checker says."""
    dims = sorted(map(str, comparison.left.dims | comparison.right.dims))
    return f"{REPLAYED}, for all {', '.join(dims)}" if dims else REPLAYED


def derived_for_all_sizes(derivative: Derivative, outputs: tuple[Node, ...]) -> bool:
    """Whether the checker accepts that some outputs are a derivative, for all sizes."""
    goals = [(0, o, 0) for o in range(len(outputs))]
    return len(find_for_all_sizes([Claim(derivative, outputs)], goals).goals) == len(goals)
