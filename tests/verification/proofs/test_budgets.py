"""A budget of time or memory is a hard stop, and the certificate says so."""

import itertools
import threading
import time

import numpy as np
import pytest
from sympy import (
    Integer,
    Matrix,
    MatrixSymbol,
    Rational,
    Sum,
    Symbol,
    Trace,
    betainc,
    cos,
    eye,
    gamma,
    polylog,
    sin,
    sqrt,
    symbols,
    sympify,
    zeta,
)

import symad
from symad.core.claims import Derivative, Derived
from symad.errors import TraceError
from symad.verification import Budget
from symad.verification.budget import Guard, Meter, OutOfBudget, resident_memory
from symad.verification.certificate.certificate import Comparison
from symad.verification.checker.proofs import written
from symad.verification.proof.find_proof import Limits
from symad.verification.proof.whole_proofs import find
from symad.verification.proof.with_proofs import Replayed

x, y = symbols("x y", real=True)


def nested(depth):
    e = x
    for _ in range(depth):
        e = sin(e) * e + e + y
    return e


def many_roots(count):
    left = sum(sqrt(x + k) for k in range(1, count)) ** 2
    return left, sum(sqrt((x + k) * (x + j)) for k in range(1, count) for j in range(1, count))


def slow_function():
    s = zeta(x**2 + Rational(3, 2))
    return s, s + y**200 * gamma(x**50)


def long_identity(count):
    """Powers of sums, written in two ways: hundreds of thousands of products."""
    a, b, c, d, e = symbols("a b c d e", real=True)
    sums = [k + a + b * k + c + d * (k + 1) for k in range(1, count)]
    left = sum((t * e + t) ** 4 * (t - e) ** 2 for t in sums)
    return left, sum(t**4 * (e + 1) ** 4 * (t * t - 2 * t * e + e * e) for t in sums)


@pytest.mark.thorough
def test_a_hard_element_does_not_use_up_the_work_for_others():
    """Each has its part of the work: the others lost their proofs to the first one, and were tested."""
    easy = [((x + y) ** 2, x**2 + 2 * x * y + y**2), ((x - y) * (x + y), x**2 - y**2)]
    easy += [(sin(x) ** 2, 1 - cos(x) ** 2)]
    certificate = symad.equal(*map(Matrix, zip(*[long_identity(30), *easy], strict=True)), seed=1)
    assert [entry.status for entry in certificate.entries[1:]] == ["proved"] * 3
    assert all(entry.checked for entry in certificate.entries[1:])
    again = symad.verification.Certificate.from_json(certificate.to_json()).recheck(seed=2)
    assert [entry.status for entry in again.entries] == [entry.status for entry in certificate.entries]


HARD = {
    "special functions to many digits": lambda b: symad.equal(*slow_function(), seed=1, budget=b),
    "many roots": lambda b: symad.equal(*many_roots(14), seed=1, budget=b),
    "a tower of compositions": lambda b: symad.check(nested(40), seed=1, budget=b),
}
FEW = 1_000_000
"""Steps: about a second."""


@pytest.mark.thorough
@pytest.mark.parametrize("name", HARD)
def test_a_budget_of_steps_is_a_hard_stop(name):
    certificate = HARD[name](Budget(steps=FEW))
    text = " ".join(str(certificate).split())
    if name.startswith("special"):  # the two differ
        assert certificate.status == "refuted"
    if certificate.status == "undecided":
        assert "was used up" in text or "larger than allowed" in text or "deeper than" in text
    assert certificate.steps < 2 * FEW  # what is counted before it is done overshoots by one part


def outcome(certificate):
    """Everything that a verdict says, without the seconds."""
    return [(e.label, e.status, e.claim, e.bound, e.reason) for e in certificate.entries], certificate.steps


DECIDED = {
    "proved": lambda b: symad.check(sin(x * y) ** 2 / (1 + x**2), seed=7, budget=b),
    "out of steps": lambda b: symad.check(nested(30), seed=7, budget=b),
    "refuted": lambda b: symad.verify(sin(x * y), x, gradient=y * sin(x * y), seed=7, budget=b),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", DECIDED)
def test_the_same_seed_takes_the_same_steps_and_says_the_same_on_a_machine_that_stands_still(
    name, monkeypatch
):
    """A clock on which an hour passes between two looks changes nothing."""
    first = DECIDED[name](Budget(steps=FEW))
    hours = itertools.count(step=3600.0)
    monkeypatch.setattr("symad.verification.budget.time.monotonic", lambda: next(hours))
    again = DECIDED[name](Budget(steps=FEW))
    assert outcome(first) == outcome(again)
    assert first.steps > 0


def test_a_limit_of_time_is_an_option_and_the_certificate_says_so():
    without = symad.check(sin(x * y), seed=1)
    limited = symad.check(sin(x * y), seed=1, budget=Budget(seconds=300))
    assert without.notes == ()
    assert any("300 s of wall-clock time" in note and "load" in note for note in limited.notes)
    assert "300 s of wall-clock time" in " ".join(str(limited).split())
    assert symad.Certificate.from_json(limited.to_json()).notes == limited.notes


def test_no_time_at_all_leaves_everything_undecided():
    for budget, said in (
        (Budget(seconds=0), "the time allowed (0 s)"),
        (Budget(steps=0), "the work allowed (0 steps)"),
    ):
        certificate = symad.equal((x + y) ** 2, x**2 + 2 * x * y + y**2, budget=budget)
        assert certificate.status == "undecided"
        assert f"{said} was used up" in certificate.entries[0].reason


@pytest.mark.thorough
def test_an_inverse_is_compared_with_dual_numbers_and_not_expanded_by_sympy():
    """SymPy would expand quotients of polynomials at each pivot: ten seconds for nothing."""
    X = MatrixSymbol("X", 3, 3)
    certificate = symad.check(Trace((X * X.T + eye(3)).inv()))
    assert certificate.status in ("proved", "tested")
    assert not any("nothing independent" in a for a in certificate.assumes)


def test_large_arrays_of_residues_are_refused():
    ones = symad.trace(lambda A: np.sum(np.tanh(A) ** 2 + 1 / np.cosh(A) ** 2), [(4, 4)])
    certificate = symad.equal(ones, sympify(16), budget=Budget(residues=50, proof_steps=0))
    assert certificate.status == "undecided"
    assert "larger than allowed" in certificate.entries[0].reason


def test_large_polynomials_are_refused_in_proofs_and_only_there():
    left, right = (x + y + 1) ** 12, ((x + y + 1) ** 12).expand()
    certificate = symad.equal(left, right, budget=Budget(terms=10))
    assert certificate.status == "tested"
    assert "allowed: 10" in certificate.unchecked[0]


@pytest.mark.thorough
def test_a_computation_is_interrupted_wherever_it_is():
    meter = Meter(Budget(seconds=0.2))
    start = time.monotonic()
    with pytest.raises(OutOfBudget), Guard(meter):
        while True:
            pass
    assert time.monotonic() - start < 30
    assert meter.used_up == "the time allowed (0.2 s) was used up"
    time.sleep(0.6)  # nothing arrives after the guard is left
    assert sum(range(1000)) == 499500


@pytest.mark.skipif(not resident_memory(), reason="the system does not tell the memory of a process")
def test_memory_is_a_hard_stop():
    meter = Meter(Budget(seconds=20, memory=50 << 20))
    kept = []
    with pytest.raises(OutOfBudget), Guard(meter):
        while True:
            kept.append(bytearray(1 << 20))
            time.sleep(0.001)
    assert len(kept) < 2000
    assert meter.used_up == "the memory allowed (50 MiB) was used up"


def test_a_guard_that_is_left_in_time_leaves_nothing_behind():
    before = threading.active_count()
    for _ in range(20):
        with Guard(Meter(Budget(seconds=5))):
            assert 1 + 1 == 2
    time.sleep(0.3)
    assert threading.active_count() <= before + 1


@pytest.mark.parametrize("budget", [3, "much", {"steps": 3}, Budget])
def test_what_is_no_budget_is_refused(budget):
    x = symbols("x")
    for call in (
        lambda: symad.check(x**2, budget=budget),
        lambda: symad.equal(x, x, budget=budget),
        lambda: symad.verify(x**2, x, gradient=2 * x, budget=budget),
        lambda: symad.verify(x**2, x, gradient=lambda v: 2 * v, budget=budget),
    ):
        with pytest.raises(TypeError, match=r"budget is a symad\.verification\.Budget"):
            call()


@pytest.mark.parametrize("count", [10**6, 10**8])
def test_arrays_too_large_to_be_evaluated_are_undecided_with_the_reason(count):
    k = Symbol("k", integer=True)
    held = symad.equal(Sum(x**k, (k, 0, count)), x, seed=1)
    assert held.status == "undecided"
    assert f"an array of {count + 1:,} elements" in str(held).replace("\n    ", " ")


def test_two_sides_that_are_one_graph_are_proved_however_large():
    k = Symbol("k", integer=True)
    f = symad.trace(Sum(x**k, (k, 0, 10**6)))
    assert symad.equal(f, f, seed=1).status == "proved"


LARGE = Sum(x ** Symbol("k", integer=True), (Symbol("k", integer=True), 0, 10**6))
SQUARE = x**2 + 2 * x * y + y**2


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("sides", "statuses"),
    [
        (([LARGE, (x + y) ** 2], [x, SQUARE]), ["undecided", "proved"]),
        (([LARGE, (x + y) ** 2], [x, SQUARE + 1]), ["undecided", "refuted"]),
        (([(x + y) ** 2, LARGE, x], [SQUARE, LARGE, x]), ["proved", "proved", "proved"]),
    ],
)
def test_a_large_array_leaves_other_outputs_decided(sides, statuses):
    certificate = symad.equal(*sides, seed=1)
    assert [e.status for e in certificate.entries] == statuses, str(certificate)
    assert [e.status for e in certificate.recheck(seed=1).entries] == statuses


@pytest.mark.thorough
@pytest.mark.parametrize(("slope", "status"), [(2 * y, "proved"), (3 * y, "refuted")])
def test_derivatives_without_a_large_array_of_the_function_are_decided(slope, status):
    assert symad.verify(LARGE + y**2, y, gradient=slope, seed=1).status == status


def test_large_matrices_are_compared_as_a_whole():
    A, B = MatrixSymbol("A", 1000, 1000), MatrixSymbol("B", 1000, 1000)
    assert symad.equal(Trace(A.T * B), Trace(B * A.T), seed=1).status == "proved"
    assert symad.equal(Trace(A.T * B), Trace(A * B), seed=1).status == "undecided"


def test_exact_factors_of_a_million_digits_are_refused():
    with pytest.raises(TraceError, match=r"a factor has about 1,000,000 digits; .* at most 39,456 digits"):
        symad.trace(Integer(10) ** (10**6) * x)


@pytest.mark.thorough
def test_solutions_are_scouted_point_by_point_at_few_points(monkeypatch):
    """Each value is a solve: 4096 points at once took 50 s."""
    from symad.derivatives import implicit

    solved, solve = [], implicit._solve
    monkeypatch.setattr(implicit, "_solve", lambda *args: solved.append(1) or solve(*args))
    solution = symad.implicit(x + x**3 - y, x, [y])
    assert symad.check(solution, seed=1).status == "tested"
    assert 10 < len(solved) < 1000


@pytest.mark.parametrize(
    "f",
    [
        pytest.param(lambda q, x: polylog(q, x), id="polylog", marks=pytest.mark.thorough),
        pytest.param(lambda q, x: betainc(q, 2, 0, x), id="betainc"),
    ],
)
def test_derivatives_by_some_parameters_take_seconds(f):
    """∂Li_q(x)/∂q takes seconds for 120 digits, and was counted as a millisecond: no end in 500 s."""
    q, x = Symbol("q", positive=True), Symbol("x", real=True)
    start = time.process_time()
    assert symad.check(f(q, x), seed=1).status == "measured"
    assert time.process_time() - start < 60


@pytest.mark.parametrize("size", [12, 24])
def test_products_with_directions_are_written_out_by_what_they_have(size):
    """All outputs but one depend on one input each: their other derivatives take no steps of their own."""
    f = symad.trace(lambda A: (2 * A, A.sum()), [(size, size)])
    claim = Derivative(
        "pushforward", f.output_nodes, f.input_nodes, symad.trace(lambda V: V, [(size, size)]).input_nodes
    )
    slopes = symad.trace(lambda V: (2 * V, V.sum()), [(size, size)])
    writing, goals = written([Derived(claim, slopes.output_nodes)], [0])
    assert len(goals) == size**2 + 1 and all(left is right for left, right in goals.values())
    assert writing.terms.work < size**4 + 50 * size**2


def test_claims_are_written_out_within_the_steps_that_are_allowed():
    f, doubled = (symad.trace(g, [(12, 12)]) for g in (lambda A: A + A, lambda A: 2 * A))
    claim, goals = Derived(Derivative("value", f.output_nodes), doubled.output_nodes), [(0, 0, 0)]
    for most, proved in ((2 * Budget(steps=100).steps, False), (100_000, True)):
        found = find([claim], goals, Limits(100_000, 4000, most))
        assert bool(found.proofs) == proved == ("writing the claim out takes too long" not in found.reasons)
    comparison = Comparison("sums", f, ("value",), right=doubled)
    assert Replayed([comparison], Budget(steps=100)).limits == Limits(12, 4000, 200)
