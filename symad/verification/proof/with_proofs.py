"""Proofs for the entries of a certificate: found outside the checker, and accepted by it alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from symad.core.graph import Node, rebuild, topological
from symad.core.questions import definition
from symad.ops.linalg.solve_det import MatrixOp
from symad.tracing.from_sympy.parameter_derivatives import is_numerical
from symad.verification.budget import Budget
from symad.verification.certificate.certificate import STATUSES, Certificate, Comparison, Entry
from symad.verification.checker.proofs import Claim, Derivative, Goal, Proof, replay
from symad.verification.checker.terms import Refused
from symad.verification.checker.writing_out import RULES
from symad.verification.proof.checksum import digest_of
from symad.verification.proof.find_isomorphism import find_for_all_sizes
from symad.verification.proof.find_proof import EXHAUSTED, Limits
from symad.verification.proof.readings import read
from symad.verification.proof.whole_proofs import Found, find, find_long

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


SWEEPS = {
    "gradient (forward)": "v", "Jacobian (forward)": "v", "Hessian (forward-over-reverse)": "Wv",
    "Hessian (reverse-over-forward)": "vW", "Hessian (forward-over-forward)": "vw",
}  # fmt: skip
"""How the derivatives of `check` are made along directions, in the letters of `Proof`."""


def sweeps_of(comparison: Comparison) -> str:
    """How a product with directions was probably made; nothing for backwards alone."""
    pushed = comparison.derivative is not None and comparison.derivative.kind == "pushforward"
    return "v" if pushed else SWEEPS.get(comparison.right_name, "")


def _defined(claim: Claim) -> Claim:
    """A claim with ops that have a rule, as far as definitions lead to them, and readings of matrices."""
    d = claim.derivative
    groups = (claim.outputs, d.function, d.v, d.w)
    nodes = [node for group in groups for node in group]
    matrices = has_matrices(nodes)
    if not _with_definition(nodes) and not matrices:
        return claim
    nodes = read(nodes)[0] if matrices else nodes
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


def has_matrices(nodes: Sequence[Node]) -> bool:
    """Whether nodes are made by functions of matrices."""
    return any(isinstance(node.op, MatrixOp) for node in topological(nodes))


def definitions_assumed(comparison: Comparison) -> tuple[str, ...]:
    """What is assumed of fused ops where the checker replays a proof."""
    d = comparison.derivative
    function = d.function if d else ()
    sides = (*comparison.left.output_nodes, *comparison.right.output_nodes, *function)
    read_sides, readings = read(sides) if has_matrices(sides) else (sides, set[str]())
    names = sorted(_with_definition(read_sides))
    return (*((f"the definitions of {', '.join(names)}",) if names else ()), *sorted(readings))


def has_symbolic_sizes(comparison: Comparison) -> bool:
    """Whether a claim is about all sizes."""
    return bool(comparison.left.dims | comparison.right.dims)


NOTHING = Found((), 0, ())


def accepted_proof(claims: Sequence[Claim], proof: Proof) -> Found:
    """A proof, if the checker accepts it."""
    try:
        return Found((proof,), replay(claims, proof), ())
    except Refused as problem:
        return Found((), 0, (str(problem),))


@dataclass
class Replayed:
    """What the checker accepts of some comparisons: goals, proofs, and why there is not more."""

    comparisons: Sequence[Comparison]
    budget: Budget
    proofs: list[Proof] = field(default_factory=list)
    steps: int = 0
    """How many the checker took."""
    reasons: list[str] = field(default_factory=list)
    covered: set[int] = field(default_factory=set)
    """The derivatives for which the checker has all rules: without its proof they are not proved."""
    goals: set[Goal] = field(default_factory=set)
    before: Found = NOTHING
    """What was found of claims that are cut."""
    tried: set[Goal] = field(default_factory=set)
    """Outputs with symbolic sizes that the checker was asked about."""
    derived: set[Goal] = field(default_factory=set)
    """Of the goals, those that follow from the checker's own table of derivatives."""

    @cached_property
    def claims(self) -> list[Claim]:
        """What the checker is asked."""
        return claims_of(self.comparisons)

    @cached_property
    def limits(self) -> Limits:
        """What one attempt at a proof may take."""
        return Limits(self.budget.proof_steps // SHARE, self.budget.terms)

    @cached_property
    def sweeps(self) -> dict[int, str]:
        """How the claims were made."""
        return {k: how for k, c in enumerate(self.comparisons) if (how := sweeps_of(c))}

    def long(self, wanted: Sequence[Goal]) -> None:
        """Find proofs for claims of few elements and many terms: these are found sooner than a test."""
        if wanted and self.limits.work:
            self.before = find_long(self.claims, wanted, self.limits, self.sweeps)
            self._keep(self.before, 0)

    def elements(self, wanted: Sequence[Goal]) -> None:
        """Find proofs for elements of arrays whose sizes are numbers."""
        self._ask(wanted, lambda goals: find(self.claims, goals, self.limits, self.sweeps, self.before))

    def matrices(self, wanted: Sequence[Goal]) -> None:
        """Find proofs for outputs with functions of matrices, by relations between whole matrices.

        They hold for all sizes, and are short, where elements of inverses are quotients of long polynomials.
        """
        reasons = list(self.reasons)
        sides = [(*c.outputs, *c.derivative.function) for c in self.claims[: len(self.comparisons)]]
        matrices = {k for k, nodes in enumerate(sides) if has_matrices(nodes)}
        chosen = [goal for goal in wanted if goal[0] in matrices]
        self._ask(chosen, lambda goals: find_for_all_sizes(self.claims, goals))
        self.reasons = reasons

    def for_all_sizes(self, wanted: Sequence[Goal]) -> None:
        """Find proofs for outputs with symbolic sizes."""
        left = [goal for goal in wanted if goal not in self.tried]
        self.tried.update(left)
        self._ask(left, lambda goals: find_for_all_sizes(self.claims, goals))

    def proves_for_all_sizes(self, place: tuple[int, int]) -> bool:
        """Whether the checker accepts a proof for an output with symbolic sizes."""
        self.for_all_sizes([(*place, 0)])
        return (*place, 0) in self.goals

    def identical(self, wanted: Sequence[Goal]) -> None:
        """Have the checker see of outputs that both sides are one node."""
        count = len(self.comparisons)
        for k, o, e in wanted:
            goals = ((k + count, o, e),)
            proof = Proof((k + count,), goals, (), digest_of(goals, ()), "same")
            self._keep(accepted_proof(self.claims, proof), count)

    def _ask(self, wanted: Sequence[Goal], search: Callable[[Sequence[Goal]], Found]) -> None:
        """First as derivatives, then as equalities of both sides."""
        count = len(self.comparisons)
        for turn in (0, count):
            if turn and (EXHAUSTED in self.reasons or all(c.derivative is None for c in self.comparisons)):
                break  # as equalities they are as long
            left = [(k + turn, o, e) for k, o, e in wanted if (k, o, e) not in self.goals]
            self._keep(search(left) if left else NOTHING, turn)

    def _keep(self, found: Found, turn: int) -> None:
        """Keep what was found, of derivatives in turn 0."""
        self.proofs += found.proofs
        self.steps += found.steps
        self.reasons += found.reasons
        proved = {(k - turn, o, e) for k, o, e in found.goals}
        self.goals |= proved
        if not turn:
            self.derived |= proved
            self.covered |= {k for k in found.covered if self.comparisons[k].derivative is not None}

    def lost(self, goals: set[Goal]) -> None:
        """Take back goals that fell to a test, and the proofs that claim them."""
        count = len(self.comparisons)
        self.goals -= goals
        self.proofs = [p for p in self.proofs if not goals & {(k % count, o, e) for k, o, e in p.goals}]


def with_proofs(certificate: Certificate, entries: Sequence[Sequence[Entry]], known: Replayed) -> Certificate:
    """The certificate with its entries, given for each output; what the checker accepts is proved."""
    comparisons = certificate.comparisons
    places = [(k, o) for k, c in enumerate(comparisons) for o in range(len(c.names))]
    symbolic = [
        (k, o, 0)
        for (k, o), listed in zip(places, entries, strict=True)
        if has_symbolic_sizes(comparisons[k]) and all(e.status in ("proved", "measured") for e in listed)
    ]
    known.for_all_sizes(symbolic)
    known.identical(
        [
            goal
            for (k, o), listed in zip(places, entries, strict=True)
            for e, entry in enumerate(listed)
            if entry.claim == ONE_GRAPH and (goal := (k, o, e)) not in known.goals
        ]
    )
    made, lost = list[Entry](), set[Goal]()
    assumed = [definitions_assumed(c) for c in comparisons]
    for (k, o), listed in zip(places, entries, strict=True):
        for e, entry in enumerate(listed):
            goal = (k, o, 0 if has_symbolic_sizes(comparisons[k]) else e)
            if _rests_on_differences(comparisons[k], o):
                status = min(entry.status, "measured", key=STATUSES.index)
                made.append(replace(entry, status=status, reason=entry.reason or NUMERICAL))
                lost.add(goal)
            elif goal in known.goals and (entry.status in ("proved", "tested") or goal in symbolic):
                made.append(accepted(entry, comparisons[k], goal in known.derived, assumed[k]))
            else:
                made.append(_not_replayed(entry))
                lost.add(goal)
    known.lost(lost & known.goals)
    missing = tuple(dict.fromkeys(known.reasons)) if not all(e.checked for e in made) else ()
    return replace(
        certificate,
        entries=tuple(made),
        proofs=tuple(known.proofs),
        proof_steps=known.steps,
        unchecked=missing,
    )


NOT_REPLAYED = "normal forms decide it, and no proof that the checker replays"


def _not_replayed(entry: Entry) -> Entry:
    """An entry of which the checker replays no proof: it is at most tested, whoever calls it proved."""
    if entry.status != "proved" or entry.checked:
        return entry
    return replace(entry, status="tested", reason=entry.reason or NOT_REPLAYED)


NUMERICAL = "a derivative by a parameter has no formula here: its function is differentiated numerically"


def _rests_on_differences(comparison: Comparison, output: int) -> bool:
    """Whether an output takes values from numerical differentiation, which nothing bounds."""
    sides = comparison.left.output_nodes[output], comparison.right.output_nodes[output]
    return any(map(is_numerical, topological(sides)))


def accepted(entry: Entry, comparison: Comparison, derived: bool, more: Sequence[str]) -> Entry:
    """An entry of which the checker accepts a proof; ``derived`` from its own table of derivatives.

    ``more`` is what `definitions_assumed` says.
    """
    same = has_symbolic_sizes(comparison) and entry.status == "proved" and entry.claim != ONE_GRAPH
    assumes = entry.assumes
    if derived and comparison.derivative is not None:
        assumes = tuple(a for a in assumes if a != OWN and NOT_COMPARED not in a)
    claim = entry.claim if same else replayed_claim(comparison)
    assumes = tuple(dict.fromkeys((*assumes, *more)))
    return replace(entry, status="proved", claim=claim, bound=0.0, reason="", checked=True, assumes=assumes)


def replayed_claim(comparison: Comparison) -> str:
    """What a proof of the checker says."""
    dims = sorted(map(str, comparison.left.dims | comparison.right.dims))
    return f"{REPLAYED}, for all {', '.join(dims)}" if dims else REPLAYED


def derived_for_all_sizes(derivative: Derivative, outputs: tuple[Node, ...]) -> bool:
    """Whether the checker accepts that some outputs are a derivative, for all sizes."""
    goals = [(0, o, 0) for o in range(len(outputs))]
    return len(find_for_all_sizes([Claim(derivative, outputs)], goals).goals) == len(goals)
