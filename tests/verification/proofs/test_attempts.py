"""One attempt at a proof: what is established once is not established again, and memory is given back."""

import gc

import pytest
from sympy import Symbol, UnevaluatedExpr, exp, expand

import symad
from symad.core.claims import Claim, Derivative
from symad.verification.checker.proofs import replay
from symad.verification.checker.terms import Term
from symad.verification.proof import whole_proofs
from symad.verification.proof.find_proof import EXHAUSTED, Limits, Strategy
from symad.verification.proof.sums import Board
from symad.verification.proof.whole_proofs import DIFFER, Attempt, Sharing

x, y, z = (Symbol(name, real=True) for name in "xyz")
LIMITS = Limits(100_000, 4000)
RIGHT, WRONG = ((x + y) ** 3, expand((x + y) ** 3)), ((x + y) ** 3, x**3 + y**3)
LONG = ((x + y + z + 1) ** 8 * (x + 1), expand((x + y + z + 1) ** 8 * (x + 1)))


def claims(*sides):
    """That expressions are equal, one claim for each pair."""
    traced = [[symad.trace(e, inputs=[x, y, z]).output_nodes for e in pair] for pair in sides]
    return [Claim(Derivative("value", left), right) for left, right in traced]


@pytest.fixture
def starts(monkeypatch):
    """How goals shared the work of each start, and which."""
    seen, establish = [], whole_proofs._established

    def record(finder, board, goals, why, sharing):
        seen.append((sharing, [k for k, _, _ in goals]))
        return establish(finder, board, goals, why, sharing)

    monkeypatch.setattr(whole_proofs, "_established", record)
    return seen


def goals(count):
    return [(k, 0, 0) for k in range(count)]


def test_a_proof_without_steps_is_written_by_the_first_start(starts):
    asked = claims(RIGHT, WRONG, RIGHT)
    attempt = Attempt(asked, Strategy(False, 60_000), LIMITS, None)
    proof = attempt.proof(goals(3))
    assert proof.goals == ((0, 0, 0), (2, 0, 0)) and proof.claims == (0, 2) and not proof.steps
    assert replay(asked, proof) and attempt.why == [DIFFER]
    assert starts == [(Sharing.FREE, [0, 1, 2])]


def test_a_proof_with_steps_has_only_those_of_its_goals(starts):
    product = UnevaluatedExpr(exp(x)) * UnevaluatedExpr(exp(y)) ** 2
    asked = claims((exp(x + 2 * y), product), (exp(x + 3 * y), product))
    proof = Attempt(asked, Strategy(False, 60_000), LIMITS, None).proof(goals(2))
    assert proof.goals == ((0, 0, 0),) and proof.steps and replay(asked, proof)
    assert [k for _, k in starts] == [[0, 1], [0]]


def test_what_failed_for_good_is_not_tried_again_in_parts(starts, monkeypatch):
    monkeypatch.setattr(whole_proofs, "MIN_PART", 1)
    attempt = Attempt(claims(WRONG, LONG), Strategy(False, 500), LIMITS, None)
    attempt.proof(goals(2))
    assert attempt.why[:2] == [DIFFER, EXHAUSTED]
    assert (Sharing.PARTS, [1]) in starts and (Sharing.PARTS, [0, 1]) not in starts


@pytest.mark.thorough
def test_terms_are_freed_without_the_garbage_collector():
    board = Board(claims(RIGHT, LONG), [0, 1])
    assert len(board.terms.known) > 10
    gc.collect()
    gc.disable()
    try:
        before = sum(isinstance(o, Term) for o in gc.get_objects())
        count = len(board.terms.known)
        board.close()
        del board
        freed = before - sum(isinstance(o, Term) for o in gc.get_objects())
        assert freed >= count - 2  # −∞ and its 0 are left
    finally:
        gc.enable()
