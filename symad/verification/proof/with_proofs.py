"""Proofs for the entries of a certificate: found outside the checker, and accepted by it alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain
from math import prod

import numpy as np
import sympy

from symad.core.claims import Derivative, Derived, Goal, Proof, regrouped
from symad.core.graph import Node, rebuild, topological
from symad.core.questions import definition
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import ArrayConstant, constant, eye
from symad.ops.elementwise.apply import apply
from symad.ops.linalg.slogdet import DeterminantSign, log_absolute_determinant
from symad.ops.linalg.solve_det import LogDeterminant, MatrixOp, determinant
from symad.tracing.from_sympy.parameter_derivatives import is_numerical
from symad.verification.budget import Budget
from symad.verification.certificate.certificate import NOT_COMPARED, STATUSES, Certificate, Comparison, Entry
from symad.verification.checker.proofs import replay
from symad.verification.checker.terms import Refused
from symad.verification.checker.writing_out import RULES
from symad.verification.proof.checksum import digest_of, is_damaged
from symad.verification.proof.find_proof import EXHAUSTED, Limits
from symad.verification.proof.node_proofs import find_for_all_sizes
from symad.verification.proof.whole_proofs import AcceptedProofs, find
from symad.verification.terms.depending import depending

# ---- arrays of numbers and log |det A| in terms that the checker has rules for -------------------


NUMBERS = "arrays of numbers that are c on the diagonal and d elsewhere are d + (c − d) I"
SIGNED = "log |det A| is log(det(A)²)/2"


def read(nodes: Sequence[Node]) -> tuple[list[Node], set[str]]:
    """The nodes in these terms, and what that assumes."""
    assumed = set[str]()

    def reading(node: Node, args: tuple[Node, ...]) -> Node:
        new = node.over(args)
        made, why = _array(new), NUMBERS
        if made is None:
            made, why = _signed(new), SIGNED
        if made is None:
            return new
        assumed.add(why)
        return made

    return list(rebuild(nodes, {}, reading)), assumed


def _array(node: Node) -> Node | None:
    """A square array of numbers by the identity matrix; None for any other node."""
    if not isinstance(node.op, ArrayConstant) or len(node.shape) != 2 or len({*node.shape}) > 1:
        return None
    array, n = node.op.array, node.op.shape[0]
    if n < 2 or array.dtype.kind not in "if" or not np.isfinite(array).all():
        return None
    on, off = array[0, 0], array[0, 1]
    if not np.array_equal(array, np.where(np.eye(n), on, off)):
        return None
    ends = [Fraction(x.item()) for x in (off, on)]
    scaled = mul(constant(ends[1] - ends[0]), eye(n))
    return add(broadcast_to(constant(ends[0]), node.shape), scaled) if ends[0] else scaled


def _signed(node: Node) -> Node | None:
    """log(det(A)²)/2 for the log determinant of A with its first row times the sign of det A."""
    if not isinstance(node.op, LogDeterminant):
        return None
    for sign in topological(node.args):
        if isinstance(sign.op, DeterminantSign) and log_absolute_determinant(sign.args[0]) is node:
            det = determinant(sign.args[0])
            return mul(constant(Fraction(1, 2)), apply(sympy.log, mul(det, det)))
    return None


REPLAYED = "equal by a proof that the checker replays"

ONE_GRAPH = "both sides are one and the same graph"
OWN = "symad's derivative rules (check(f) certifies them)"
"""What a certificate assumes where the checker has not derived the derivative itself."""

SHARE = 8
"""Of the steps for proofs, the part that one attempt at a proof for the checker may take."""


def claims_of(comparisons: Sequence[Comparison]) -> list[Derived]:
    """What the checker is asked: that right sides are derivatives, and then that both sides are equal.

    Ops without a rule are replaced by their definitions, which is what `definitions_assumed` says.
    """
    right = [c.right.output_nodes for c in comparisons]
    equal = [
        Derived(Derivative("value", c.left.output_nodes), r) for c, r in zip(comparisons, right, strict=True)
    ]
    of = [
        Derived(c.derivative, r) if c.derivative else e
        for c, r, e in zip(comparisons, right, equal, strict=True)
    ]
    return _defined([*of, *equal])


DIRECTED = ("slope", "curvature")
"""The kinds of claims along directions."""

MANY_ELEMENTS = 64
"""The number of elements of a gradient from which relations between whole arrays are tried first."""

SWEEPS = {
    "gradient (forward)": "v", "Jacobian (forward)": "v", "Hessian (forward-over-reverse)": "Wv",
    "Hessian (reverse-over-forward)": "vW", "Hessian (forward-over-forward)": "vw",
}  # fmt: skip
"""How the derivatives of `check` are made along directions, in the letters of `Proof`."""


def sweeps_of(comparison: Comparison) -> str:
    """How a product with directions was probably made; nothing for backwards alone."""
    return _letters(comparison.derivative, comparison.right_name) if comparison.derivative else ""


def _letters(derivative: Derivative, name: str) -> str:
    return "v" if derivative.kind == "pushforward" else SWEEPS.get(name, "")


class Meanings(dict[Node, "Node | None"]):
    """The definitions of ops that have no rule in the checker, each made once; None for other ops."""

    def __missing__(self, node: Node) -> Node | None:
        self[node] = meaning = None if type(node.op) in RULES else definition(node.op, node)
        return meaning

    def put_in(self, node: Node, args: tuple[Node, ...]) -> Node:
        """The definition of a node with new arguments, or the node with these if it has none."""
        new = node.over(args)
        return self[new] or new

    def names(self, nodes: Sequence[Node]) -> list[str]:
        """The ops below some nodes that have a definition."""
        return sorted({type(n.op).__name__ for n in topological(nodes) if self[n] is not None})


def _defined(claims: Sequence[Derived]) -> list[Derived]:
    """Claims with ops that have a rule, as far as definitions lead to them, and readings of matrices."""
    groups = [(c.outputs, *c.derivative.groups) for c in claims]
    parts = [list(chain(*part)) for part in groups]
    matrices, meanings = with_matrices(parts), Meanings()
    nodes = [n for part in parts for n in (part if matrices.isdisjoint(part) else read(part)[0])]
    while depending(nodes, meanings.__getitem__):
        nodes = list(rebuild(nodes, {}, meanings.put_in))
    rest, made = iter(nodes), list[Derived]()
    for claim, part in zip(claims, groups, strict=True):
        outputs, *of = regrouped(rest, part)
        made.append(Derived(Derivative(claim.derivative.kind, *of), outputs))
    return made


def with_matrices(parts: Iterable[Sequence[Node]]) -> set[Node]:
    """The nodes below some nodes that are made by functions of matrices."""
    return depending((n for part in parts for n in part), lambda node: isinstance(node.op, MatrixOp))


def definitions_assumed(comparisons: Sequence[Comparison]) -> list[tuple[str, ...]]:
    """What is assumed of fused ops where the checker replays proofs, for each comparison."""
    parts = [tuple(chain(*c.groups[:3])) for c in comparisons]
    matrices, meanings, made = with_matrices(parts), Meanings(), list[tuple[str, ...]]()
    fused = depending((n for part in parts for n in part), meanings.__getitem__)
    for part in parts:
        sides, readings = (part, set[str]()) if matrices.isdisjoint(part) else read(part)
        names = meanings.names(sides) if sides is not part or not fused.isdisjoint(part) else []
        made.append((*(f"the definition of {name}" for name in names), *sorted(readings)))
    return made


def _is_asked_whole(comparison: Comparison) -> bool:
    """Whether a claim about arrays of known sizes is put to relations between whole arrays first."""
    kind = comparison.derivative.kind if comparison.derivative is not None else ""
    if kind != "gradient" or comparison.is_symbolic:
        return kind in DIRECTED
    return sum(prod(n.shape) for n in comparison.left.output_nodes) >= MANY_ELEMENTS


NOTHING = AcceptedProofs((), 0, ())


def accepted_proof(claims: Sequence[Derived], proof: Proof) -> AcceptedProofs:
    """A proof, if the checker accepts it."""
    try:
        return AcceptedProofs((proof,), replay(claims, proof), ())
    except Refused as problem:
        return AcceptedProofs((), 0, (str(problem),))


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
    asked: set[Goal] = field(default_factory=set)
    """Elements of arrays whose sizes are numbers that the checker was asked about."""
    tried: set[Goal] = field(default_factory=set)
    """Outputs with symbolic sizes that the checker was asked about."""
    derived: set[Goal] = field(default_factory=set)
    """Of the goals, those that follow from the checker's own table of derivatives."""

    @cached_property
    def claims(self) -> list[Derived]:
        """What the checker is asked."""
        return claims_of(self.comparisons)

    @cached_property
    def limits(self) -> Limits:
        """What one attempt at a proof may take."""
        most = min(self.budget.proof_steps, self.budget.steps)
        return Limits(most // SHARE, self.budget.terms, 2 * most)  # a step of writing takes half of one

    @cached_property
    def sweeps(self) -> dict[int, str]:
        """How the claims were made."""
        return {k: how for k, c in enumerate(self.comparisons) if (how := sweeps_of(c))}

    def replay(self, proofs: Sequence[Proof]) -> list[str]:
        """Have the checker replay proofs that are given; returns what is to be said of the others."""
        count, notes = len(self.comparisons), list[str]()
        for proof in proofs:
            try:
                if is_damaged(proof):
                    raise Refused("a step was changed: the proof has another checksum")
                self.steps += replay(self.claims, proof)
            except Refused as problem:
                notes.append(f"a proof that this certificate holds is refused: {problem}")
                continue
            self.proofs.append(proof)
            self.goals |= {(k % count, o, e) for k, o, e in proof.goals}
            self.derived |= {goal for goal in proof.goals if goal[0] < count}
        return notes

    def elements(self, wanted: Sequence[Goal]) -> None:
        """Find proofs for elements of arrays whose sizes are numbers."""
        left = [goal for goal in wanted if goal not in self.asked]
        self.asked.update(left)
        if not self.limits.work:  # to write claims out would take most of the time
            self.reasons.append(EXHAUSTED)
            return
        self._ask(left, lambda goals: find(self.claims, goals, self.limits))

    def whole_arrays(self, wanted: Sequence[Goal]) -> None:
        """Find proofs by relations between whole arrays: with matrices, along directions, of long gradients.

        They hold for all sizes, and are short, where elements of inverses are quotients of long polynomials,
        and where arrays have many elements.
        """
        reasons = list(self.reasons)
        sides = [(*c.outputs, *c.derivative.function) for c in self.claims[: len(self.comparisons)]]
        matrices = with_matrices(sides)
        chosen = [goal for goal in wanted if not matrices.isdisjoint(sides[goal[0]])]
        self._ask(chosen, lambda goals: find_for_all_sizes(self.claims, goals, self.sweeps))
        for k in [k for k, c in enumerate(self.comparisons) if _is_asked_whole(c)]:
            left = [goal for goal in wanted if goal[0] == k and goal not in self.goals]
            found = find_for_all_sizes(self.claims, left, self.sweeps) if left else NOTHING
            self._keep(found, 0)
            if EXHAUSTED in found.reasons:
                break  # the others are as long
        self.reasons = reasons

    def for_all_sizes(self, wanted: Sequence[Goal]) -> None:
        """Find proofs for outputs with symbolic sizes."""
        left = [goal for goal in wanted if goal not in self.tried]
        self.tried.update(left)
        self._ask(left, lambda goals: find_for_all_sizes(self.claims, goals, self.sweeps))

    def proves_for_all_sizes(self, place: tuple[int, int]) -> bool:
        """Whether the checker accepts a proof for an output with symbolic sizes."""
        k, _ = place
        self.for_all_sizes([(k, o, 0) for o in range(len(self.comparisons[k].names))])
        return (*place, 0) in self.goals

    def identical(self, wanted: Sequence[Goal]) -> None:
        """Have the checker see of outputs that both sides are one node."""
        count = len(self.comparisons)
        for k, o, e in wanted:
            claim, goals = self.claims[k + count], ((k + count, o, e),)
            node = claim.nodes.index(claim.outputs[o])
            steps = [["", [[node, node]]]], [[], [[1, [[0, []]]]]]
            proof = Proof((k + count,), goals, steps, digest_of(goals, steps), "networks")
            self._keep(accepted_proof(self.claims, proof), count)

    def _ask(self, wanted: Sequence[Goal], search: Callable[[Sequence[Goal]], AcceptedProofs]) -> None:
        """First as derivatives, then as equalities of both sides."""
        count = len(self.comparisons)
        for turn in (0, count):
            if turn and (EXHAUSTED in self.reasons or all(c.derivative is None for c in self.comparisons)):
                break  # as equalities they are as long
            left = [(k + turn, o, e) for k, o, e in wanted if (k, o, e) not in self.goals]
            self._keep(search(left) if left else NOTHING, turn)

    def _keep(self, found: AcceptedProofs, turn: int) -> None:
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
    """The certificate with its entries, given for each output, and the proofs of those that are proved."""
    comparisons = certificate.comparisons
    places = [(k, o) for k, c in enumerate(comparisons) for o in range(len(c.names))]
    made, lost = list[Entry](), set[Goal]()
    assumed, numerical = definitions_assumed(comparisons), _resting_on_differences(comparisons)
    for (k, o), listed in zip(places, entries, strict=True):
        for e, entry in enumerate(listed):
            goal = (k, o, 0 if comparisons[k].is_symbolic else e)
            sides = comparisons[k].left.output_nodes[o], comparisons[k].right.output_nodes[o]
            if not numerical.isdisjoint(sides):
                status = min(entry.status, "measured", key=STATUSES.index)
                made.append(replace(entry, status=status, reason=entry.reason or NUMERICAL))
                lost.add(goal)
            elif goal in known.goals and entry.status == "proved":
                made.append(replayed(entry, comparisons[k], goal in known.derived, assumed[k]))
            else:
                shown = entry.checked or entry.status != "proved"
                made.append(entry if shown else replace(entry, status="undecided", reason=NOT_REPLAYED))
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


NOT_REPLAYED = "there is no proof of it that the checker replays"
NUMERICAL = "a derivative by a parameter has no formula here: its function is differentiated numerically"


def _resting_on_differences(comparisons: Sequence[Comparison]) -> set[Node]:
    """The nodes that take values from numerical differentiation, which nothing bounds."""
    sides = (n for c in comparisons for n in (*c.left.output_nodes, *c.right.output_nodes))
    return depending(sides, is_numerical)


def replayed(entry: Entry, comparison: Comparison, derived: bool, more: Sequence[str]) -> Entry:
    """A proved entry with what its proof rests on; ``derived`` from the checker's own table of derivatives.

    ``more`` is what `definitions_assumed` says.
    """
    assumes = entry.assumes
    if derived and comparison.derivative is not None:
        assumes = tuple(a for a in assumes if a != OWN and NOT_COMPARED not in a)
    claim = replayed_claim(comparison) if entry.claim == ONE_GRAPH else entry.claim
    return replace(entry, claim=claim, checked=True, assumes=tuple(dict.fromkeys((*assumes, *more))))


def replayed_claim(comparison: Comparison) -> str:
    """What a proof of the checker says."""
    dims = sorted(map(str, comparison.left.dims | comparison.right.dims))
    return f"{REPLAYED}, for all {', '.join(dims)}" if dims else REPLAYED


def derived_for_all_sizes(derivative: Derivative, outputs: tuple[Node, ...], name: str) -> bool:
    """Whether the checker accepts that outputs are a derivative, for all sizes; ``name`` says how made."""
    claims, letters = _defined([Derived(derivative, outputs)]), {0: _letters(derivative, name)}
    goals = [(0, o, 0) for o in range(len(outputs))]
    return len(find_for_all_sizes(claims, goals, letters).goals) == len(goals)
