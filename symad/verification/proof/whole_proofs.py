"""Whole proofs: claims written out, one attempt after the other, and what the checker accepts of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import NamedTuple

from symad.core.claims import Claim, Goal, Proof
from symad.core.gc_pause import without_collecting
from symad.verification.checker.proofs import replay, written
from symad.verification.checker.quotients import Monomial
from symad.verification.checker.terms import Refused
from symad.verification.proof.checksum import digest_of
from symad.verification.proof.find_proof import EXHAUSTED, UNUSABLE, Finder, Limits, SmallerUnit, Strategy
from symad.verification.proof.sums import Board, by_sums

DIFFER = "the normal forms differ"

MIN_PART = 5000
"""The least work of each goal when an attempt that used up all of it is repeated in equal parts. Attempts
with more goals are not repeated: a transformer with 72 entries took five times as long."""

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

    claims: Sequence[Claim]
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


def find(claims: Sequence[Claim], wanted: Sequence[Goal], limits: Limits) -> AcceptedProofs:
    """Proofs of as many goals as can be found, each of them replayed by the checker."""
    if not wanted:
        return AcceptedProofs((), 0, ())
    chosen, reasons, board = _covered(claims, list(dict.fromkeys(k for k, _, _ in wanted)))
    search = ProofSearch(claims, limits, [goal for goal in wanted if goal[0] in chosen], [], reasons, [])
    for strategy in STRATEGIES:
        if not search.left:
            break
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
    told = dict.fromkeys([*search.reasons, *(search.last if search.left else [])])
    return AcceptedProofs(tuple(search.proofs), search.steps, tuple(told), frozenset(chosen))


def _covered(claims: Sequence[Claim], asked: Sequence[int]) -> tuple[list[int], list[str], Board | None]:
    """Which claims can be written out, why the others cannot, and all of them written out if they can."""
    chosen, reasons = list[int](), list[str]()
    try:
        return list(asked), [], Board(claims, asked)
    except UNUSABLE:
        pass
    for k in asked:
        try:
            written(claims, [k])
            chosen.append(k)
        except UNUSABLE as problem:
            reasons.append(str(problem))
    return chosen, reasons, None


class Sharing(Enum):
    """How much of the work of a start each goal may take."""

    FREE = "all that is left"
    PARTS = "an equal part at first, and then what all have left for those that need more"
    AT_LEAST = "an equal part, and what those before have left"


class Start(NamedTuple):
    """What one start established: goals in order, those for which the work was used up, and the machine."""

    done: list[Goal]
    short: list[Goal]
    finder: Finder


class GivenUp(Exception):
    """No further start would come to an end."""


@dataclass
class Attempt:
    """One strategy; each start has its steps anew, with what those before said of units."""

    claims: Sequence[Claim]
    strategy: Strategy
    limits: Limits
    board: Board | None
    why: list[str] = field(default_factory=list)
    """Why not more is proved."""
    units: dict[tuple[str, Monomial], Fraction] = field(default_factory=dict)
    restarts: int = 0

    def proof(self, goals: Sequence[Goal]) -> Proof | None:
        """A proof of those goals that can be established.

        Raises:
            GivenUp: it would start again and again.
        """
        left, sharing = list(goals), Sharing.FREE
        while left:
            start = self._start(left, sharing)
            if len(start.done) == len(left) or (start.done and not start.finder.steps):
                return self._written(start.done, start.finder)
            long_enough = len(left) > 1 and start.finder.allowed >= MIN_PART * len(left)
            if sharing is Sharing.FREE and start.short and long_enough:
                # One goal may have used up the work of the others. The better start is made once more,
                # since a proof has its steps in the order of its goals. The goals that failed for other
                # reasons would fail again.
                parted = self._start([g for g in left if g in {*start.done, *start.short}], Sharing.PARTS)
                left = max(start.done, parted.done, key=len)
                sharing = Sharing.AT_LEAST
            else:
                left = start.done  # again without the goals that failed
        return None

    def _start(self, goals: Sequence[Goal], sharing: Sharing) -> Start:
        """The goals that are established, with units that are small enough."""
        while True:
            board = self._clean_board(goals)
            finder = Finder(self.strategy, self.limits, self.units)
            try:
                done, short = _established(finder, board, goals, self.why, sharing)
            except SmallerUnit:
                self.restarts += 1
                if self.restarts > MAX_RESTARTS:
                    raise GivenUp("the units of exponentials do not settle") from None
                continue
            return Start(done, short, finder)

    def _clean_board(self, goals: Sequence[Goal]) -> Board:
        """The claims of some goals written out, without what the start before has added."""
        chosen, board = tuple(dict.fromkeys(k for k, _, _ in goals)), self.board
        if board is None or board.chosen != chosen:
            old, board = board, Board(self.claims, chosen)
            self.board = board
            if old is not None:
                old.close()
        board.clear()
        return board

    def _written(self, goals: Sequence[Goal], finder: Finder) -> Proof:
        """The steps of a start that established these goals, and with steps no others."""
        assert self.board is not None
        digest, claims = digest_of(goals, finder.steps), tuple(dict.fromkeys(k for k, _, _ in goals))
        return Proof(claims, tuple(goals), tuple(finder.steps), digest)


@without_collecting
def _attempt(
    claims: Sequence[Claim], goals: Sequence[Goal], strategy: Strategy, limits: Limits, board: Board | None
) -> tuple[Proof | None, list[str], Board | None]:  # fmt: skip
    """A proof of those goals that one strategy proves, why not of more, and what was written out."""
    attempt, proof = Attempt(claims, strategy, limits, board), None
    try:
        proof = attempt.proof(goals)
    except GivenUp as problem:
        attempt.why.append(str(problem))
    return proof, attempt.why, attempt.board


def _established(
    finder: Finder, board: Board, goals: Sequence[Goal], why: list[str], sharing: Sharing
) -> tuple[list[Goal], list[Goal]]:
    """The goals that are established, in this order, those for which the work was used up, and why."""
    done, left = list[Goal](), list(goals)
    for parts in (True, False) if sharing is Sharing.PARTS else (False,):
        short = list[Goal]()
        for k, goal in enumerate(left):
            if sharing is not Sharing.FREE:
                finder.share(len(goals), len(left) - k if parts else 1)
            try:
                if finder.equal(*board.goals[goal]):
                    done.append(goal)
                else:
                    why.append(DIFFER)
            except UNUSABLE as problem:
                if str(problem) == EXHAUSTED:
                    short.append(goal)
                if not parts or str(problem) != EXHAUSTED:
                    why.append(str(problem))
        left = short
    return done, left
