"""Finding proofs for all sizes: at once, or node by node, each the derivative of a node of the function."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, TypeAlias

from symad.core.claims import Derivative, Derived, Goal, Proof
from symad.core.graph import Node
from symad.verification.checker.defined import sure
from symad.verification.checker.proofs import DAMAGE, ForAllSizes, replay
from symad.verification.checker.terms import Refused, Term, Terms
from symad.verification.checker.writing_out import Writing
from symad.verification.proof.checksum import digest_of
from symad.verification.proof.find_isomorphism import MAX_NETWORKS_MADE, IsomorphismFinder
from symad.verification.proof.find_proof import EXHAUSTED, Json
from symad.verification.proof.node_sweeps import Sweeps, guessed, numbered
from symad.verification.proof.sums import take_back
from symad.verification.proof.whole_proofs import AcceptedProofs

MAX_TERM_STEPS, MAX_NODE_STEPS = 25_000, 400_000
"""The maximum number of steps of writing, for one output at once, and for a claim node by node."""

NETWORKS = {True: (10_000, 40), False: (8_000, 15)}
"""How many networks may be made for a group of outputs, and for each node more: for symbols as sizes, and for
numbers, where elements can be compared instead."""

MAX_RESTARTS, MAX_OPENED, MAX_TRIED = 4, 6, 6
"""The maximum numbers of times that pairs are left out, of nodes opened for one identity, and of nodes tried
before one of them is opened."""

LONG = 1_000_000
"""More networks than there are."""

DIFFER = "the contraction networks differ"

Part: TypeAlias = tuple[Sequence[int], Sequence[Json]]
"""The nodes that are opened for one identity, and the answers to the questions about it."""

Steps: TypeAlias = tuple[Json, ...]
"""The sweeps of a proof and its parts, as `Proof` has them."""

Key: TypeAlias = "tuple[int, Node, Term] | int"
"""What an identity is about: a node of the function, with the number of its sweep; or an output."""

Opened: TypeAlias = dict[Any, list[Node]]
"""The nodes opened for identities, by the number of the sweep and the node, or by that of the output."""


class BriefTerms(Terms):
    """Terms of a claim that is short enough to have a proof here."""

    def __init__(self, most: int) -> None:
        """``most`` steps are allowed."""
        self.most = most
        super().__init__()

    def spend(self, work: int) -> None:
        """Count work; the finder gives up where there is too much."""
        super().spend(work)
        if self.work > self.most:
            raise Refused(EXHAUSTED)


def find_for_all_sizes(
    claims: Sequence[Derived], wanted: Sequence[Goal], letters: Mapping[int, str] | None = None
) -> AcceptedProofs:
    """Proofs of the goals for which there are some, accepted by the checker."""
    proofs, count, reasons = list[Proof](), 0, list[str]()
    asked: dict[int, list[Goal]] = {}
    for goal in wanted:
        asked.setdefault(goal[0], []).append((0, *goal[1:]))
    for k, goals in asked.items():
        found = proofs_of(claims[k], (letters or {}).get(k, ""), tuple(goals))
        for proof in found.proofs:
            moved = tuple((k, *goal[1:]) for goal in proof.goals)
            proofs.append(replace(proof, claims=(k,), goals=moved, digest=digest_of(moved, proof.steps)))
        count += found.steps
        reasons += found.reasons
    return AcceptedProofs(tuple(proofs), count, tuple(reasons))


@lru_cache(64)
def proofs_of(claim: Derived, letters: str, goals: tuple[Goal, ...]) -> AcceptedProofs:
    """Proofs of goals of one claim that the checker accepts; outputs with the same lemmas have one proof."""
    proofs, count, reasons = list[Proof](), 0, list[str]()
    outputs = list(dict.fromkeys(o for _, o, _ in goals))
    made, failed = _node_by_node(claim, letters, outputs)
    for o in outputs:
        if not any(o in group for group in made):
            steps, problem = ((), failed[o]) if o in failed else _at_once(claim, o)
            made |= {(o,): steps} if steps else {}
            reasons += [problem] if problem else []
    for group, steps in made.items():
        met = tuple(goal for goal in goals if goal[1] in group)
        proof = Proof((0,), met, steps, digest_of(met, steps), "networks")
        try:
            count += replay([claim], proof)
            proofs.append(proof)
        except Refused as refused:
            reasons.append(str(refused))
    return AcceptedProofs(tuple(proofs), count, tuple(reasons))


def _at_once(claim: Derived, o: int) -> tuple[Steps, str]:
    """Steps for output o of a claim without pairs of nodes, or why none are found."""
    first = ""
    for define in (False, True):
        finder = IsomorphismFinder(define)
        try:
            ((left, right),) = ForAllSizes(BriefTerms(MAX_TERM_STEPS)).lemmas(claim, [o], ()).values()
            if finder.equal(left, right):
                return ((), ((), tuple(map(list, finder.found)))), ""
            problem = DIFFER
        except Refused as refused:
            problem = str(refused)
        except DAMAGE:
            kind = claim.derivative.kind
            return (), f"the checker has no rule for all sizes for a claim of the kind {kind!r}"
        first = first or problem
        if problem == EXHAUSTED:
            break  # with definitions written out it is longer
    return (), first


# ---- node by node ------------------------------------------------------------------------------------


def _node_by_node(
    claim: Derived, letters: str, outputs: Sequence[int]
) -> tuple[dict[tuple[int, ...], Steps], dict[int, str]]:
    """Steps for groups of outputs with the same lemmas; and outputs for which nothing else is tried."""
    if claim.derivative.kind in ("value", "hessian"):
        return {}, {}
    sweeps, wrong = guessed(claim, sweeps_for(claim.derivative, letters))
    opened, there = Opened(), sure(claim, [o for o in outputs if o not in wrong])
    groups, made = dict[object, tuple[Sweeps, list[int]]](), dict[tuple[int, ...], Steps]()
    for o in there:  # with the pairs that have values there
        own = tuple((s, {a: b for a, b in d.items() if {a, b} <= there[o]}) for s, d in sweeps)
        groups.setdefault(tuple((s, *d.items()) for s, d in own), (own, []))[1].append(o)
    failed = {o: DIFFER for o in outputs if o in wrong}
    for own, group in groups.values():
        try:
            done, steps = _steps_of(claim, group, own, opened)
            made |= {done: steps} if done else {}
        except Refused as problem:  # it takes too long, and the elements of known sizes can be compared
            failed |= {} if _is_symbolic(claim) else dict.fromkeys(group, str(problem))
    return made, failed


def _is_symbolic(claim: Derived) -> bool:
    """Whether a size is no number."""
    return not all(isinstance(d, int) for n in claim.nodes for d in n.shape)


def _steps_of(
    claim: Derived, outputs: Sequence[int], sweeps: Sweeps, opened: Opened
) -> tuple[tuple[int, ...], Steps]:  # fmt: skip
    """Steps for as many outputs as possible by the pairs of some sweeps; and these outputs.

    Raises:
        Refused: there is more to do than is allowed.
    """
    most, more = NETWORKS[_is_symbolic(claim)]
    left = most + more * len(claim.nodes)
    for _ in range(MAX_RESTARTS):
        if not outputs or not any(pairs for _, pairs in sweeps):
            break  # at once is the same
        search = StepSearch(claim, outputs, sweeps, opened, left)
        try:
            bad = search.run()
        except (Refused, *DAMAGE) as problem:
            if str(problem) == EXHAUSTED:
                raise
            break
        if not bad:
            return tuple(outputs), search.steps
        left = search.left
        pairs = {key[:2] for key in bad if not isinstance(key, int)}
        sweeps = tuple(
            (letter, {a: b for a, b in rest.items() if (j, a) not in pairs})
            for j, (letter, rest) in enumerate(sweeps)
        )
        if not pairs:
            outputs = [o for o in outputs if o not in bad]
    return (), ()


def sweeps_for(derivative: Derivative, letters: str) -> str:
    """The letters of the sweeps by which a derivative is made, if they are not known."""
    usual = {"pushforward": "v", "slope": "V", "curvature": "VW"}.get(derivative.kind, "X")
    return letters if sorted(letters.upper()) == sorted(usual.upper()) else usual


class Draft(ForAllSizes):
    """Claims written out, where what was tried in vain is taken back: proofs number what is made."""

    def __init__(self, most: int) -> None:
        """``most`` steps are allowed."""
        super().__init__(BriefTerms(most))

    def place(self) -> tuple[int, int, int, int]:
        """How much is made."""
        bound = next(self.fresh)
        self.fresh = itertools.count(bound, -2)
        return len(self.terms.known), len(self.made), len(self.kept), bound

    def back(self, place: tuple[int, int, int, int]) -> None:
        """Take back what is made since a place."""
        terms, made, kept, bound = place
        take_back(self.terms, terms)
        self.made = dict(itertools.islice(self.made.items(), made))
        # bodies of scans keep terms of their own
        self.kept = {k: v for k, v in itertools.islice(self.kept.items(), kept) if not isinstance(v, Writing)}
        self.fresh = itertools.count(bound, -2)


class StepSearch:
    """The search for the steps of all identities of some sweeps."""

    def __init__(
        self, claim: Derived, outputs: Sequence[int], sweeps: Sweeps, found: Opened, left: int
    ) -> None:
        """``found`` are the nodes opened in earlier searches; ``left`` networks may be made."""
        self.left = left
        self.claim, self.outputs, self.sweeps, self.found = claim, outputs, sweeps, found
        self.order = {n: k for k, n in enumerate(claim.nodes)}
        self.cut = {n for _, pairs in sweeps for n in (*pairs, *pairs.values())}
        self.uses = dict[Node, set[Node]]()
        self.steps: Steps = ()
        self.helped: list[list[Node]] = []  # nodes opened besides the derivative, last ones first

    def run(self) -> set[Key]:
        """The pairs, and the outputs, for which no steps are found."""
        writing = Draft(MAX_NODE_STEPS)
        parts, bad = list[Part](), set[Key]()
        for key, sides in writing.lemmas(self.claim, self.outputs, self.sweeps).items():
            identity = Identity(*sides, self, writing)
            place, node, start = key, None, list[Node]()
            if not isinstance(key, int):
                place, node = key[:2], key[1]
                start = [self.sweeps[key[0]][1][node]] if sides[0] is not sides[1] else []
            if (opened := identity.opened(self.found.get(place, start), node)) is None:
                bad.add(key)
                continue
            self.found[place] = opened
            if len(more := [n for n in opened if n not in start]) > 1:
                self.helped = [more, *(nodes for nodes in self.helped if nodes != more)]
            parts.append(([self.order[n] for n in opened], identity.steps))
        self.steps = numbered(self.claim, self.sweeps), *parts
        if bad.issuperset(self.outputs) and len(bad) == len(self.outputs):
            raise Refused(DIFFER)
        return bad

    def rank(self, n: Node, node: Node | None, odd: set[Node]) -> tuple[bool, bool, bool, int]:
        """Nodes by which an identity for a node may come true: first those that are computed by the node."""
        uses = self._used(n)
        return n is not node and node not in uses, odd.isdisjoint(uses), n not in odd, -self.order[n]

    def _used(self, node: Node) -> set[Node]:
        """The nodes of pairs by which a node is computed."""
        if node not in self.uses:
            parts = [{a} if a in self.cut else self._used(a) for a in node.args]
            self.uses[node] = set[Node]().union(*parts)
        return self.uses[node]


class Identity:
    """Two sides that are equal if some nodes are opened: replaced by what they compute."""

    def __init__(self, left: Term, right: Term, search: StepSearch, writing: Draft) -> None:
        """The search says which nodes are tried first."""
        self.left, self.right, self.search, self.writing = left, right, search, writing
        self.steps: Sequence[Json] = ()

    def opened(self, nodes: list[Node], node: Node | None) -> list[Node] | None:
        """The nodes opened so that both sides are equal, beginning with some; None if none are found."""
        count, first, second = self._gap(nodes)
        for more in self.search.helped[:MAX_TRIED] if count else ():
            if more[0] in first | second and not self._gap(both := list(dict.fromkeys([*nodes, *more])))[0]:
                return both
        for _ in range(MAX_OPENED):
            if not count:
                return nodes
            odd = first ^ second or first | second
            left = sorted((first | second).difference(nodes), key=lambda n: self.search.rank(n, node, odd))
            best = None
            for n in left[:MAX_TRIED]:
                found = self._gap(more := [*nodes, n])
                best = min(best or (*found, more), (*found, more), key=lambda b: b[0])
                if 2 * best[0] < count:
                    break
            if best is None:
                return None
            count, first, second, nodes = best
        return None if count else nodes

    def _gap(self, opened: list[Node]) -> tuple[int, set[Node], set[Node]]:
        """How many networks are on one side only, and the nodes in those of each; 0 if both are equal."""
        start = self.writing.place()
        for define in (False, True):
            most = min(self.search.left, MAX_NETWORKS_MADE)
            finder = IsomorphismFinder(define, {n: partial(self.writing.opened, n) for n in opened}, most)
            try:
                equal = finder.equal(self.left, self.right)
            except Refused as problem:
                if str(problem) == EXHAUSTED:
                    raise
                gap = LONG, set[Node](), set[Node]()
            else:
                if equal:
                    self.steps = tuple(map(list, finder.found))
                    return 0, set(), set()
                gap = finder.odd_nodes()
            finally:
                self.search.left -= finder.made
            self.writing.back(start)
            if gap[0] == LONG or not finder.definable:
                break
        return gap
