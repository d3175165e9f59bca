"""One attempt at a proof: what is established once is not established again, and memory is given back."""

import gc

import pytest
from sympy import Symbol, UnevaluatedExpr, exp, expand, log, symbols

import symad
from symad.core.claims import Derivative, Derived
from symad.verification.checker.proofs import replay
from symad.verification.checker.terms import Term
from symad.verification.proof import find_proof
from symad.verification.proof.find_proof import EXHAUSTED, Limits, Strategy
from symad.verification.proof.sums import Board
from symad.verification.proof.whole_proofs import DIFFER, Attempt, find

x, y, z = (Symbol(name, real=True) for name in "xyz")
LIMITS = Limits(100_000, 4000)
RIGHT, WRONG = ((x + y) ** 3, expand((x + y) ** 3)), ((x + y) ** 3, x**3 + y**3)
LONG = ((x + y + z + 1) ** 8 * (x + 1), expand((x + y + z + 1) ** 8 * (x + 1)))


def claims(*sides):
    """That expressions are equal, one claim for each pair."""
    traced = [[symad.trace(e, inputs=[x, y, z]).output_nodes for e in pair] for pair in sides]
    return [Derived(Derivative("value", left), right) for left, right in traced]


@pytest.fixture
def starts(monkeypatch):
    """The claims of the goals of each start."""
    seen, start = [], Attempt._start

    def record(self, goals):
        seen.append([k for k, _, _ in goals])
        return start(self, goals)

    monkeypatch.setattr(Attempt, "_start", record)
    return seen


def goals(count):
    return [(k, 0, 0) for k in range(count)]


def test_a_proof_without_steps_is_written_by_the_first_start(starts):
    asked = claims(RIGHT, WRONG, RIGHT)
    attempt = Attempt(asked, Strategy(False, 60_000), LIMITS, None)
    proof = attempt.proof(goals(3))
    assert proof.goals == ((0, 0, 0), (2, 0, 0)) and proof.claims == (0, 2) and not proof.steps
    assert replay(asked, proof) and attempt.why == [DIFFER]
    assert starts == [[0, 1, 2]]


def test_a_proof_with_steps_has_only_those_of_its_goals(starts):
    product = UnevaluatedExpr(exp(x)) * UnevaluatedExpr(exp(y)) ** 2
    asked = claims((exp(x + 2 * y), product), (exp(x + 3 * y), product))
    proof = Attempt(asked, Strategy(False, 60_000), LIMITS, None).proof(goals(2))
    assert proof.goals == ((0, 0, 0),) and proof.steps and replay(asked, proof)
    assert starts == [[0, 1], [0]]


@pytest.mark.parametrize(("sides", "count"), [([WRONG], 3), ([RIGHT, WRONG], 4)])
def test_more_work_alone_is_tried_only_where_it_may_help(starts, sides, count):
    """Forms that differ do so by any work; where others are proved, there is more of it for the rest."""
    assert len(find(claims(*sides), goals(len(sides)), LIMITS).goals) == len(sides) - 1
    assert len(starts) == count


@pytest.mark.parametrize("least", [1, 1000])
def test_a_long_goal_leaves_the_others_their_part_if_that_is_enough(starts, monkeypatch, least):
    monkeypatch.setattr(find_proof, "MIN_PART", least)
    asked = claims(LONG, RIGHT)
    attempt = Attempt(asked, Strategy(False, 500), LIMITS, None)
    proof = attempt.proof(goals(2))
    assert attempt.why[0] == EXHAUSTED and starts[0] == [0, 1]
    assert (proof.goals == ((1, 0, 0),) and replay(asked, proof)) if least == 1 else proof is None


def test_the_work_of_all_goals_is_at_most_twice_what_is_allowed(monkeypatch):
    monkeypatch.setattr(find_proof, "MIN_PART", 1)
    attempt = Attempt(claims(LONG, WRONG, RIGHT, LONG), Strategy(False, 500), LIMITS, None)
    done, finder = attempt._start(goals(4))
    assert (2, 0, 0) in done and (1, 0, 0) not in done
    assert finder.field.work <= 2 * 500 + 4 * LIMITS.terms  # and each goal one product more


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


@pytest.mark.thorough
def test_sums_of_many_quotients_are_proved_term_by_term():
    """A common denominator of all of them would be too long."""
    rows = symbols("y:8", real=True)
    loss = sum(log(1 + (row - x) ** 2 * exp(z)) for row in rows)
    slope = sum(2 * (x - row) / (exp(-z) + (row - x) ** 2) for row in rows)
    certificate = symad.verify(loss, [x], gradient=slope)
    assert certificate.status == "proved" and {proof.way for proof in certificate.proofs} == {"sums"}
    assert symad.verify(loss, [x], gradient=slope + x).status == "refuted"
