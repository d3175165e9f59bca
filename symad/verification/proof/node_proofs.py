"""Finding proofs for all sizes: at once, or node by node, each the derivative of a node of the function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TypeAlias

from symad.core.claims import Claim, Derivative, Goal, Proof
from symad.core.graph import Node
from symad.verification.checker.proofs import DAMAGE, ForAllSizes, replay, sure
from symad.verification.checker.terms import Refused, Term, Terms
from symad.verification.checker.writing_out import Writing
from symad.verification.proof.checksum import digest_of
from symad.verification.proof.find_isomorphism import IsomorphismFinder
from symad.verification.proof.find_proof import EXHAUSTED, Json
from symad.verification.proof.node_sweeps import Sweeps, guessed, numbered
from symad.verification.proof.whole_proofs import Found

MAX_TERM_STEPS, MAX_NODE_STEPS = 25_000, 400_000
"""The maximum number of steps of writing, for one output at once, and for a claim node by node."""

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

Key: TypeAlias = "tuple[int, Node, Node] | int"
"""What an identity is about: a pair with the number of its sweep, or an output."""

Opened: TypeAlias = dict[Key, list[Node]]
Ranking: TypeAlias = Callable[[Node, Node | None, set[Node]], tuple[bool, bool, bool, int]]


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
    claims: Sequence[Claim], wanted: Sequence[Goal], letters: Mapping[int, str] | None = None
) -> Found:
    """Proofs of the goals for which there are some, accepted by the checker."""
    proofs, count, reasons = list[Proof](), 0, list[str]()
    asked: dict[int, dict[int, list[Goal]]] = {}
    for goal in wanted:
        asked.setdefault(goal[0], {}).setdefault(goal[1], []).append(goal)
    for k, goals in asked.items():
        known = known_steps(claims[k], (letters or {}).get(k, ""), tuple(goals))
        for o, met in goals.items():
            steps, problem = (known[o], "") if o in known else steps_at_once(claims[k], o)
            if problem:
                reasons.append(problem)
                continue
            proof = Proof((k,), tuple(met), steps, digest_of(met, steps), "networks")
            try:
                count += replay(claims, proof)
                proofs.append(proof)
            except Refused as refused:
                reasons.append(str(refused))
    return Found(tuple(proofs), count, tuple(reasons))


@lru_cache(64)
def steps_at_once(claim: Claim, o: int) -> tuple[Steps, str]:
    """Steps for output o of a claim, or why none are found."""
    first = ""
    for define in (False, True):
        try:
            return _at_once(claim, o, define), ""
        except Refused as problem:
            first = first or str(problem)
            if str(problem) == EXHAUSTED:
                break  # with definitions written out it is longer
    return (), first


def _at_once(claim: Claim, o: int, define: bool) -> Steps:
    """The steps of a proof for one output.

    Raises:
        Refused: the search ends without one.
    """
    finder = IsomorphismFinder(define)
    try:
        ((left, right),) = ForAllSizes(BriefTerms(MAX_TERM_STEPS)).lemmas(claim, o, ())
        if not finder.equal(left, right):
            raise Refused(DIFFER)
    except DAMAGE:  # networks do not state this kind of claim
        kind = claim.derivative.kind
        raise Refused(f"the checker has no rule for all sizes for a claim of the kind {kind!r}") from None
    return (), ((), tuple(map(list, finder.found)))


# ---- node by node ------------------------------------------------------------------------------------


@lru_cache(64)
def known_steps(claim: Claim, letters: str, outputs: tuple[int, ...]) -> dict[int, Steps]:
    """Steps for some outputs of a claim node by node, as far as they are found."""
    if claim.derivative.kind in ("value", "hessian"):
        return {}
    sweeps, made = guessed(claim, sweeps_for(claim.derivative, letters)), dict[int, Steps]()
    opened = Opened()
    for o in outputs:
        found = _steps_of(claim, o, sweeps, opened)
        if found:
            made[o] = found
        elif o == outputs[0]:
            break  # the others have the same pairs
    return made


def _steps_of(claim: Claim, o: int, sweeps: Sweeps, opened: Opened) -> Steps:
    """Steps for one output by the pairs that it depends on; none if none are found."""
    there = sure(claim, o)
    sweeps = tuple((s, {a: b for a, b in pairs.items() if {a, b} <= there}) for s, pairs in sweeps)
    for _ in range(MAX_RESTARTS):
        if not any(pairs for _, pairs in sweeps):
            break  # at once is the same
        search = Search(claim, o, sweeps, opened)
        try:
            bad = search.run()
        except (Refused, *DAMAGE):
            break
        if not bad:
            return search.steps
        sweeps = tuple(
            (letter, {a: b for a, b in pairs.items() if (j, a, b) not in bad})
            for j, (letter, pairs) in enumerate(sweeps)
        )
    return ()


def sweeps_for(derivative: Derivative, letters: str) -> str:
    """The letters of the sweeps by which a derivative is made, if they are not known."""
    usual = {"pushforward": "v", "slope": "V", "curvature": "VW"}.get(derivative.kind, "X")
    return letters if sorted(letters.upper()) == sorted(usual.upper()) else usual


class Search:
    """The search for the steps of all identities of some sweeps."""

    def __init__(self, claim: Claim, o: int, sweeps: Sweeps, found: Opened) -> None:
        """``found`` are the nodes opened for identities of earlier searches."""
        self.claim, self.o, self.sweeps, self.found = claim, o, sweeps, found
        self.order = {n: k for k, n in enumerate(claim.nodes)}
        self.cut = {n for _, pairs in sweeps for n in (*pairs, *pairs.values())}
        self.uses = dict[Node, set[Node]]()
        self.steps: Steps = ()

    def run(self) -> set[Key]:
        """The pairs, and the output, for which no steps are found."""
        pairs = [(j, *pair) for j, (_, d) in enumerate(self.sweeps) for pair in d.items()]
        keys: list[Key] = [*pairs, self.o]
        parts, tries = self._parts(keys)
        bad = {key for key in keys if key not in parts}
        if tries > len(parts) and not bad:  # what was tried in vain has made terms, which are numbered
            parts, _ = self._parts(keys)
        self.steps = numbered(self.claim, self.sweeps), *parts.values()
        if self.o in bad and len(bad) == 1:
            raise Refused(DIFFER)
        return bad

    def _parts(self, keys: Sequence[Key]) -> tuple[dict[Key, Part], int]:
        """The steps for each pair and the output, as far as they are found, and the number of attempts."""
        writing = ForAllSizes(BriefTerms(MAX_NODE_STEPS))
        parts, tries = dict[Key, Part](), 0
        for key, sides in zip(keys, writing.lemmas(self.claim, self.o, self.sweeps), strict=True):
            identity = Identity(*sides, writing, self._rank)
            node = None if isinstance(key, int) else key[1]
            made = [] if isinstance(key, int) or sides[0] is sides[1] else [key[2]]
            start = self.found.get(key, made)
            if (opened := identity.opened(start, node)) is not None:
                self.found[key] = opened
                parts[key] = [self.order[n] for n in opened], identity.steps
            tries += identity.tries
        return parts, tries

    def _rank(self, n: Node, node: Node | None, odd: set[Node]) -> tuple[bool, bool, bool, int]:
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

    def __init__(self, left: Term, right: Term, writing: Writing, rank: Ranking) -> None:
        """``rank`` says which nodes are tried first."""
        self.left, self.right, self.writing, self.rank = left, right, writing, rank
        self.steps: Sequence[Json] = ()
        self.tries = 0

    def opened(self, nodes: list[Node], node: Node | None) -> list[Node] | None:
        """The nodes opened so that both sides are equal, beginning with some; None if none are found."""
        count, first, second = self._gap(nodes)
        for _ in range(MAX_OPENED):
            if not count:
                return nodes
            odd = first ^ second or first | second
            left = sorted((first | second).difference(nodes), key=lambda n: self.rank(n, node, odd))
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
        for define in (False, True):
            self.tries += 1
            finder = IsomorphismFinder(define, {n: partial(self.writing.opened, n) for n in opened})
            try:
                equal = finder.equal(self.left, self.right)
            except Refused as problem:
                if str(problem) == EXHAUSTED:
                    raise
                return LONG, set(), set()
            if equal:
                self.steps = tuple(map(list, finder.found))
                return 0, set(), set()
            gap = finder.odd_nodes()
            if not finder.definable:
                break
        return gap
