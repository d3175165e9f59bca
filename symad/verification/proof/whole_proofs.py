"""Whole proofs: claims written out, one attempt after the other, and what the checker accepts of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from symad.core.claims import Claim, Derivative, Goal, Proof
from symad.core.gc_pause import without_collecting
from symad.verification.checker.proofs import replay, written
from symad.verification.checker.quotients import Monomial
from symad.verification.checker.terms import Refused
from symad.verification.proof.board import Board
from symad.verification.proof.checksum import digest_of
from symad.verification.proof.cut_points import MAX_STARTS_WITHOUT_NAMES
from symad.verification.proof.find_proof import EXHAUSTED, UNUSABLE, Finder, Limits, SmallerUnit, Strategy

DIFFER = "the normal forms differ"

LONG = 1000
"""Claims of few elements and of so many terms are cut at once: without, their polynomials are too long."""

TWICE = ("curvature", "hessian")

WORK_OF_A_TERM, WORK_OF_ANOTHER = 4, 12
"""Steps that a term of a claim that is cut counts for, of those that an attempt may take. The second is
for other forms of a second derivative of which one has a proof: a test takes less."""

MAX_GOALS_CUT = 4
"""The maximum number of elements of a claim that is cut: a product with a direction says as much of all."""

MIN_NAMED_DIVISORS = 6
"""The minimum number of sums that are divided by and get names: the product of more is too long."""

NO_SWEEPS: Mapping[int, str] = {}

MIN_PART = 5000
"""The least work of each goal when an attempt that used up all of it is repeated in equal parts. Attempts
with more goals are not repeated: a transformer with 72 entries took five times as long."""

MAX_RESTARTS = 4
"""The maximum number of new starts of one attempt: an argument of an exponential had a smaller unit."""

STRATEGIES = (
    Strategy(False, 0, 60_000),
    Strategy(False, 1, 250_000, divisors=True),
    Strategy(False, 6, 120_000),
    Strategy(True, 0, 250_000),
    Strategy(True, 6, 250_000),
    Strategy(True, 0, 250_000, factor=True),
)
CUTTING = (Strategy(False, 0, 2_000_000, cut=True), Strategy(True, 0, 2_000_000, cut=True))
"""For what is too long for these."""


@dataclass(frozen=True)
class Found:
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

    def and_more(self, rest: Found) -> Found:
        """What was found of the same claims before and after."""
        proofs, reasons = self.proofs + rest.proofs, tuple(dict.fromkeys(self.reasons + rest.reasons))
        return Found(proofs, self.steps + rest.steps, reasons, self.covered | rest.covered)


@dataclass
class Search:
    """Proofs of some claims, and what was said on the way."""

    claims: Sequence[Claim]
    limits: Limits
    left: list[Goal]
    proofs: list[Proof]
    reasons: list[str]
    last: list[str]
    """What the last attempt said."""
    steps: int = 0
    length: dict[Derivative, int] = field(default_factory=dict)
    """The number of terms of claims with a proof, by the second derivative that they are about."""

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


def find_long(
    claims: Sequence[Claim], wanted: Sequence[Goal], limits: Limits, sweeps: Mapping[int, str] = NO_SWEEPS
) -> Found:
    """Proofs of claims of few elements and many terms, which are cut where both sides meet.

    ``sweeps`` are how claims were made, as `Proof` says it, where that is known.
    """
    search, covered = Search(claims, limits, list(wanted), [], [], []), set[int]()
    for group, sweep in sorted(_groups(claims, wanted, sweeps), key=lambda g: not g[1].islower()):
        most = limits.work // WORK_OF_ANOTHER
        long = {k for k in group if search.length.get(claims[k].derivative, 0) > most}
        covered |= long | _cut(search, [k for k in group if k not in long], sweep, LONG)
        search.last = [EXHAUSTED] if long else search.last
    left = [*search.last, *search.reasons] if not covered.isdisjoint(k for k, _, _ in search.left) else []
    return Found(tuple(search.proofs), search.steps, tuple(dict.fromkeys(left)), frozenset(covered))


def find(
    claims: Sequence[Claim],
    wanted: Sequence[Goal],
    limits: Limits,
    sweeps: Mapping[int, str] = NO_SWEEPS,
    before: Found | None = None,
) -> Found:
    """Proofs of as many goals as can be found, each of them replayed by the checker.

    ``before`` is what `find_long` found of these claims; without it, that is asked first.
    """
    if before is None:
        before = find_long(claims, wanted, limits, sweeps)
        rest = find(claims, [goal for goal in wanted if goal not in before.goals], limits, sweeps, before)
        return before.and_more(rest)
    if EXHAUSTED in before.reasons:  # without cuts they are longer still
        wanted = [goal for goal in wanted if goal[0] not in before.covered]
    if not wanted:
        return Found((), 0, before.reasons)
    chosen, reasons, board = _covered(claims, list(dict.fromkeys(k for k, _, _ in wanted)))
    search = Search(claims, limits, [goal for goal in wanted if goal[0] in chosen], [], reasons, [])
    for strategy in STRATEGIES:
        if not search.left:
            break
        if strategy.divisors and (board is None or len(board.divisors) < MIN_NAMED_DIVISORS):
            continue
        try:
            proof, why, board = _attempt(claims, search.left, strategy, limits, board)
        except UNUSABLE as problem:  # all together are too long
            proof, why = None, [str(problem)]
        search.accept(proof, why)
        if proof is None and not strategy.divisors and (EXHAUSTED in why or board is None):
            search.reasons.append(why[-1])
            break  # more work would go the same way
    if board is not None:
        board.close()
    for group in _groups(claims, [goal for goal in search.left if goal[0] not in before.covered], sweeps):
        _cut(search, *group, 0)
    told = dict.fromkeys([*search.reasons, *(search.last if search.left else [])])
    return Found(tuple(search.proofs), search.steps, tuple(told), frozenset(chosen))


Group: TypeAlias = "tuple[tuple[int, ...], str]"
"""Claims that are cut together, and how their directions are taken."""


def _groups(claims: Sequence[Claim], goals: Sequence[Goal], sweeps: Mapping[int, str]) -> list[Group]:
    """Claims of few elements each, about derivatives of one function that have values on the way in common.

    What was made forwards alone has none in common with what was made backwards.
    """
    found = dict[Any, list[int]]()
    for k, count in Counter(k for k, _, _ in goals).items():
        if count <= MAX_GOALS_CUT:
            d, how = claims[k].derivative, sweeps.get(k, "")
            found.setdefault((d.function, d.wrt, d.v, how.islower()), []).append(k)
    groups = [(tuple(group), sorted((sweeps.get(k, "") for k in group), key=len)) for group in found.values()]
    return [(group, ways[-1] if ways[-1].islower() else ways[0]) for group, ways in groups]


def _cut(search: Search, group: Sequence[int], sweeps: str, least: int) -> set[int]:
    """Proofs of the goals of some claims, with names for values that both sides go through.

    Returns the claims that were looked at: not those of less than that many terms, or of too many.
    """
    limits = replace(search.limits, work=search.limits.work * len(group))
    try:
        board = Board(search.claims, group, sweeps)
    except UNUSABLE:
        board = None
    length = 0 if board is None else len(board.terms.known)
    if board is None or length * WORK_OF_A_TERM > limits.work:
        return set[int]().union(*[_cut(search, [k], sweeps, least) for k in group if len(group) > 1])
    if length < least:
        board.close()
        return set()
    goals = [goal for goal in search.left if goal[0] in group and not board.cuts.differ(*board.goals[goal])]
    for strategy in CUTTING:
        if goals:
            proof, why, board = _attempt(search.claims, goals, strategy, limits, board)
            search.accept(proof, why)
            for k in proof.claims if proof is not None else ():
                if search.claims[k].derivative.kind in TWICE:
                    search.length[search.claims[k].derivative] = length
            if any(reason != DIFFER for reason in why):
                break  # with more functions written out it would be longer still
        goals = [goal for goal in goals if goal in search.left]
    if board is not None:
        board.close()
    return set(group)


def _covered(claims: Sequence[Claim], asked: Sequence[int]) -> tuple[list[int], list[str], Board | None]:
    """Which claims can be written out, why the others cannot, and all of them written out if they can."""
    chosen, reasons = list[int](), list[str]()
    try:
        return list(asked), [], Board(claims, asked)
    except UNUSABLE:
        pass
    for k in asked:
        try:
            written(claims, [k], "")
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
    """One strategy; each start has its steps anew, with what those before said of units and names."""

    claims: Sequence[Claim]
    strategy: Strategy
    limits: Limits
    board: Board | None
    why: list[str] = field(default_factory=list)
    """Why not more is proved."""
    units: dict[tuple[str, Monomial], Fraction] = field(default_factory=dict)
    restarts: int = 0
    given_up: int = 0
    """How often names were given up, and the work of these starts."""
    work: int = 0

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
        """The goals that are established, with units that are small enough and names that hide nothing."""
        while True:
            board = self._clean_board(goals)
            named = board.divisors if self.strategy.divisors else board.primal
            cuts = board.cuts if self.strategy.cut else None
            finder = Finder(self.strategy, named, self.limits, self.units, cuts)
            try:
                done, short = _established(finder, board, goals, self.why, sharing)
            except SmallerUnit:
                self.restarts += 1
                if self.restarts > MAX_RESTARTS:
                    raise GivenUp("the units of exponentials do not settle") from None
                continue
            if cuts is None or not cuts.gave_up:
                return Start(done, short, finder)
            self.given_up, self.work = self.given_up + 1, self.work + finder.field.work
            most = self.limits.work / len(board.chosen)
            if self.given_up > MAX_STARTS_WITHOUT_NAMES or self.work > most:
                raise GivenUp(EXHAUSTED)

    def _clean_board(self, goals: Sequence[Goal]) -> Board:
        """The claims of some goals written out, without what the start before has added."""
        chosen, board = tuple(dict.fromkeys(k for k, _, _ in goals)), self.board
        if board is None or board.chosen != chosen:
            old, board = board, Board(self.claims, chosen, board.sweeps if board else "")
            self.board = board
            if old is not None:
                old.close()
        board.clear()
        return board

    def _written(self, goals: Sequence[Goal], finder: Finder) -> Proof:
        """The steps of a start that established these goals, and with steps no others."""
        assert self.board is not None
        way = f"elements {self.board.sweeps}".strip()
        digest, claims = digest_of(goals, finder.steps), tuple(dict.fromkeys(k for k, _, _ in goals))
        return Proof(claims, tuple(goals), tuple(finder.steps), digest, way)


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
