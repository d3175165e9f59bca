"""Whole proofs: claims written out, one attempt after the other, and what the checker accepts of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from symad.core.claims import Derived, Goal, Proof
from symad.core.process import without_collecting
from symad.verification.checker.proofs import replay, written
from symad.verification.checker.terms import Refused
from symad.verification.proof.checksum import digest_of
from symad.verification.proof.find_proof import (
    EXHAUSTED,
    UNUSABLE,
    Finder,
    Limits,
    SmallerUnit,
    Strategy,
    Unit,
)
from symad.verification.proof.sums import Board, by_sums

DIFFER = "the normal forms differ"

MAX_RESTARTS = 4
"""The maximum number of new starts of one attempt: an argument of an exponential had a smaller unit."""

STRATEGIES = (
    Strategy(False, 60_000), Strategy(False, 250_000), Strategy(True, 250_000),
    Strategy(True, 250_000, factor=True),
)  # fmt: skip


@dataclass(frozen=True)
class AcceptedProofs:
    """What the checker accepted: proofs, and how many steps they took; and why there are not more."""

    proofs: tuple[Proof, ...]
    steps: int
    reasons: tuple[str, ...]
    covered: frozenset[int] = frozenset()
    """The claims for which there are rules."""

    @property
    def goals(self) -> set[Goal]:
        """All goals that are proved."""
        return {goal for proof in self.proofs for goal in proof.goals}


@dataclass
class ProofSearch:
    """Proofs of some claims, and what was said on the way."""

    claims: Sequence[Derived]
    limits: Limits
    left: list[Goal]
    proofs: list[Proof]
    reasons: list[str]
    last: list[str]
    """What the last attempt said."""
    steps: int = 0

    def accept(self, proof: Proof | None, why: list[str]) -> None:
        """A proof, if the checker accepts it."""
        if proof is not None:
            try:
                self.steps += without_collecting(replay)(self.claims, proof)
            except Refused as problem:
                self.reasons.append(str(problem))
                return
            self.proofs.append(proof)
            proved = set(proof.goals)
            self.left = [goal for goal in self.left if goal not in proved]
        self.last = why

    def accepted(self, chosen: Iterable[int]) -> AcceptedProofs:
        """What was found of the claims that can be written out."""
        told = dict.fromkeys([*self.reasons, *(self.last if self.left else [])])
        return AcceptedProofs(tuple(self.proofs), self.steps, tuple(told), frozenset(chosen))


def find(claims: Sequence[Derived], wanted: Sequence[Goal], limits: Limits) -> AcceptedProofs:
    """Proofs of as many goals as can be found, each of them replayed by the checker."""
    if not wanted:
        return AcceptedProofs((), 0, ())
    chosen, reasons, board = _covered(claims, list(dict.fromkeys(k for k, _, _ in wanted)), limits)
    search = ProofSearch(claims, limits, [goal for goal in wanted if goal[0] in chosen], [], reasons, [])
    proof: Proof | None = None
    for strategy in STRATEGIES:
        if not search.left:
            break
        if strategy is STRATEGIES[1] and proof is None:
            continue  # the first one needed no more work
        try:
            proof, why, board = _attempt(claims, search.left, strategy, limits, board)
        except UNUSABLE as problem:  # all together are too long
            proof, why = None, [str(problem)]
        search.accept(proof, why)
        if strategy is STRATEGIES[0] and board is not None and search.left:
            search.accept(by_sums(claims, search.left, board), why)
        if proof is None and (EXHAUSTED in why or board is None):
            search.reasons += why[-1:] if search.left else []
            break  # more work would go the same way
    if board is not None:
        board.close()
    return search.accepted(chosen)


def _covered(
    claims: Sequence[Derived], asked: Sequence[int], limits: Limits
) -> tuple[list[int], list[str], Board | None]:
    """Which claims can be written out, why the others cannot, and all of them written out if they can."""
    chosen, reasons = list[int](), list[str]()
    try:
        return list(asked), [], Board(claims, asked, limits.writing)
    except UNUSABLE as problem:
        if len(asked) == 1:
            return [], [str(problem)], None
    for k in asked:
        try:
            written(claims, [k], limits.writing)
            chosen.append(k)
        except UNUSABLE as problem:
            reasons.append(str(problem))
    return chosen, reasons, None


class GivenUp(Exception):
    """No further start would come to an end."""


@dataclass
class Attempt:
    """One strategy; each start has its steps anew, with what those before said of units."""

    claims: Sequence[Derived]
    strategy: Strategy
    limits: Limits
    board: Board | None
    why: list[str] = field(default_factory=list)
    """Why not more is proved."""
    units: dict[tuple[str, Unit], Fraction] = field(default_factory=dict)
    restarts: int = 0

    def proof(self, goals: Sequence[Goal]) -> Proof | None:
        """A proof of those goals that can be established.

        Raises:
            GivenUp: it would start again and again.
        """
        left = list(goals)
        while left:
            done, finder = self._start(left)
            if len(done) == len(left) or (done and not finder.steps):
                return self._written(done, finder)
            left = done  # again without the goals that failed: the steps of a proof are those of its goals
        return None

    def _start(self, goals: Sequence[Goal]) -> tuple[list[Goal], Finder]:
        """The goals that are established in one go, in order, with units that are small enough."""
        while True:
            board = self._clean_board(goals)
            finder = Finder(self.strategy, self.limits, self.units)
            try:
                return [goal for goal in goals if self._holds(finder, board, goal, len(goals))], finder
            except SmallerUnit:
                self.restarts += 1
                if self.restarts > MAX_RESTARTS:
                    raise GivenUp("the units of exponentials do not settle") from None

    def _holds(self, finder: Finder, board: Board, goal: Goal, goals: int) -> bool:
        """Whether a goal is established by the work that is left, or by its part of that for all goals."""
        finder.share(goals)
        try:
            if finder.equal(*board.goals[goal]):
                return True
            self.why.append(DIFFER)
        except UNUSABLE as problem:
            self.why.append(str(problem))
        return False

    def _clean_board(self, goals: Sequence[Goal]) -> Board:
        """The claims of some goals written out, without what the start before has added."""
        chosen, board = tuple(dict.fromkeys(k for k, _, _ in goals)), self.board
        if board is None or board.chosen != chosen:
            old, board = board, Board(self.claims, chosen, self.limits.writing)
            self.board = board
            if old is not None:
                old.close()
        board.clear()
        return board

    def _written(self, goals: Sequence[Goal], finder: Finder) -> Proof:
        """The steps of a start that established these goals, and with steps no others."""
        digest, claims = digest_of(goals, finder.steps), tuple(dict.fromkeys(k for k, _, _ in goals))
        return Proof(claims, tuple(goals), tuple(finder.steps), digest)


@without_collecting
def _attempt(
    claims: Sequence[Derived], goals: Sequence[Goal], strategy: Strategy, limits: Limits, board: Board | None
) -> tuple[Proof | None, list[str], Board | None]:  # fmt: skip
    """A proof of those goals that one strategy proves, why not of more, and what was written out."""
    attempt, proof = Attempt(claims, strategy, limits, board), None
    try:
        proof = attempt.proof(goals)
    except GivenUp as problem:
        attempt.why.append(str(problem))
    return proof, attempt.why, attempt.board
