"""Proofs of equal sums term by term: a common denominator of many quotients would be too long."""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.claims import Claim, Goal, Proof
from symad.verification.proof.board import Board
from symad.verification.proof.checksum import digest_of
from symad.verification.proof.find_isomorphism import IsomorphismFinder
from symad.verification.proof.find_proof import UNUSABLE

MIN_DIVISORS, MAX_MADE = 6, 20_000
"""The minimum number of sums that are divided by: a common denominator of fewer is short. The maximum number
of products made in one attempt."""


def by_sums(claims: Sequence[Claim], goals: Sequence[Goal], board: Board) -> Proof | None:
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
