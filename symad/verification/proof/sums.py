"""Proofs of equal sums term by term: a common denominator of many quotients would be too long."""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.claims import Derived, Goal, Proof
from symad.core.process import without_collecting
from symad.verification.checker.proofs import written
from symad.verification.checker.terms import MAX_WORK, Terms
from symad.verification.proof.checksum import digest_of
from symad.verification.proof.find_isomorphism import IsomorphismFinder
from symad.verification.proof.find_proof import UNUSABLE


def take_back(terms: Terms, count: int) -> None:
    """Forget all terms after the first ones: the checker numbers those that it makes itself."""
    late = {terms.known.popitem()[1] for _ in range(len(terms.known) - count)}
    terms.numbers = {value: term for value, term in terms.numbers.items() if term not in late}
    terms.truths -= late
    terms.masked -= late


class Board:
    """Some claims written out, for one attempt after the other."""

    @without_collecting
    def __init__(self, claims: Sequence[Derived], chosen: Sequence[int], most: int = MAX_WORK) -> None:
        """Raises what the checker does where a claim cannot be written out, or by more than ``most``."""
        self.chosen = tuple(chosen)
        writing, self.goals = written(claims, chosen, most)
        writing.made.clear()
        writing.kept.clear()  # it refers to the writing
        self.terms = writing.terms
        self._start = len(self.terms.known), self.terms.work

    def clear(self) -> None:
        """Forget the terms that an attempt has made."""
        count, self.terms.work = self._start
        take_back(self.terms, count)

    def close(self) -> None:
        """Let go of the terms, which refer to their table: else they wait for the garbage collector."""
        self.chosen = ()  # so that no attempt takes it for these claims
        for held in (self.terms.known, self.terms.numbers, self.terms.truths):
            held.clear()


MIN_DIVISORS, MAX_MADE = 6, 20_000
"""The minimum number of sums that are divided by: a common denominator of fewer is short. The maximum number
of products made in one attempt."""


def by_sums(claims: Sequence[Derived], goals: Sequence[Goal], board: Board) -> Proof | None:
    """A proof of those goals whose sides have equal products, one by one; None if there are none.

    ``board`` is used if it has these claims.
    """
    if not board.goals.keys() >= set(goals):
        board = Board(claims, list(dict.fromkeys(k for k, _, _ in goals)))
    powers = [t for t in board.terms.known.values() if t.kind == "power" and t.data < 0]
    if len({t.args[0] for t in powers if t.args[0].kind == "sum"}) < MIN_DIVISORS:
        return None
    for define in (False, True):
        left = list(goals)
        while left:
            board.clear()
            finder = IsomorphismFinder(define, most=MAX_MADE)
            done = [goal for goal in left if _equal(finder, board, goal)]
            if len(done) == len(left):  # else steps of the others are among these
                steps = tuple(map(list, finder.found))
                return Proof(board.chosen, tuple(done), steps, digest_of(done, steps), "sums")
            left = done
    return None


def _equal(finder: IsomorphismFinder, board: Board, goal: Goal) -> bool:
    try:
        return finder.equal(*board.goals[goal])
    except UNUSABLE:
        return False
