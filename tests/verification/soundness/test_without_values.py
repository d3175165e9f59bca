"""Expressions without a real value anywhere: no claim about them is proved, tested, measured or refuted."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.verification.values.instance_sizes import sizes_of
from symad.verification.without_values import NO_VALUE


def told(certificate):
    """The text of a certificate without its line breaks."""
    return " ".join(str(certificate).split())

x, y = sp.symbols("x y", real=True)
p = sp.Symbol("p", positive=True)
n = sp.Symbol("n", integer=True, positive=True)

NOWHERE = {
    "a logarithm": sp.log(-1 - x**2),
    "a root": sp.sqrt(-1 - x**2),
    "an inverse sine": sp.asin(2 + x**2),
    "an inverse hyperbolic cosine": sp.acosh(sp.sin(x) / 2),
    "an inverse hyperbolic tangent": sp.atanh(2 + x**2),
    "by the sign of a symbol": sp.log(-p),
    "a special function": sp.elliptic_k(2 + x**2),
    "two conditions": sp.sqrt(x) * sp.log(-x),
    "a minimum": sp.log(sp.Min(x, 0)),
    "at one point": sp.Piecewise((x, sp.Eq(x, 1))),
    "an inverse cosine at one point": sp.acos(sp.cosh(x)),
    "at whole exponents": (-1 - x**2) ** (x + 1),
    "each branch": sp.Piecewise((sp.log(x), x < 0), (sp.log(-x), True)),
    "divided by a hidden zero": 1 / (sp.sqrt(sp.exp(2 * x) + 2 + sp.exp(-2 * x)) - 2 * sp.cosh(x)),
    "the logarithm of a hidden zero": sp.log(sp.sin(x) ** 2 + sp.cos(x) ** 2 - 1),
}


@pytest.mark.sample(13)
@pytest.mark.parametrize("name", NOWHERE)
def test_functions_without_values_have_no_derivative(name):
    f = NOWHERE[name]
    (symbol,) = f.free_symbols
    for certificate in (
        symad.check(f),
        symad.verify(f, symbol, gradient=sp.diff(f, symbol)),
        symad.verify(f, symbol, gradient=sp.Integer(5)),
        symad.equal(f, 2 * f / 2),
    ):
        assert {e.status for e in certificate.entries} == {"undecided"}
        assert "real value" in told(certificate) and "PROVED" not in str(certificate)
        assert certificate.proofs == ()


def test_intervals_tell_what_has_no_value():
    assert "intervals show that log has none" in told(symad.check(sp.log(-1 - x**2)))
    assert "intervals show that asin has none" in told(symad.equal(sp.asin(2 + x**2), sp.asin(2 + x**2)))


def test_a_candidate_without_values_is_no_derivative():
    nothing = sp.log(-1 - x**2)
    assert symad.verify(x**2, x, gradient=2 * x + nothing - nothing * sp.cos(0)).status == "proved"
    assert symad.verify(x**2, x, gradient=2 * x + sp.log(-1 - x**2)).status == "undecided"


@pytest.mark.parametrize("slope", [lambda v: 2 * v / (1 + v * v), lambda v: 7.0], ids=["formal", "any"])
def test_programs_for_what_has_no_values_measure_nothing(slope):
    certificate = symad.verify(sp.log(-1 - x**2), x, gradient=slope, hostile=False)
    assert certificate.status == "undecided" and "real value" in told(certificate)
    outside = symad.verify(sp.log(-x), x, gradient=lambda v: 1 / v, where=x > 1, hostile=False)
    assert outside.status == "undecided" and "no open set" in told(outside)


@pytest.mark.thorough
def test_elements_with_values_keep_their_verdict():
    f = [x**2, sp.log(-1 - x**2)]
    right = sp.Matrix([[2 * x], [2 * x / (1 + x**2)]])
    certificate = symad.verify(f, x, jacobian=right)
    assert [e.status for e in certificate.entries] == ["proved", "undecided"]
    wrong = symad.verify(f, x, jacobian=2 * right)
    assert [e.status for e in wrong.entries] == ["refuted", "undecided"]
    program = symad.verify(
        f, x, jacobian=lambda v: np.array([[2 * v], [2 * v / (1 + v * v)]]), hostile=False
    )
    assert program.status == "undecided"
    product = symad.verify(f, x, jvp=lambda v, dot: (2 * v * dot, 7.0 * dot), hostile=False)
    assert [e.status for e in product.entries] == ["measured", "undecided"]


@pytest.mark.thorough
def test_symbolic_sizes():
    nothing = symad.trace(lambda a: np.log(-1 - a**2).sum(), [(n,)])
    assert symad.check(nothing).status == "undecided"
    assert symad.equal(nothing, nothing).status == "undecided"
    something = symad.trace(lambda a: np.log(1 + a**2).sum(), [(n,)])
    assert symad.check(something).status == "proved"


EMPTY_ARRAYS = {
    "a logarithm": lambda u: np.log(-1 - u @ u),
    "logarithms": lambda u: np.log(-1 - u * u).sum(),
    "a root": lambda u: np.sqrt(-1 - u @ u),
    "a root of whole parts": lambda u: np.sqrt(-1 - (np.floor(u) ** 2).sum()),
    "an inverse sine": lambda u: np.arcsin(2 + u @ u),
    "a maximum": lambda u: np.log(np.minimum(u, 0).sum()),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", EMPTY_ARRAYS)
@pytest.mark.parametrize("slope", [lambda u: 3 * u / (1 + u @ u), np.floor], ids=["analytic", "floor"])
def test_functions_of_any_size_without_values_have_no_derivative(name, slope):
    certificate = symad.verify(
        symad.trace(EMPTY_ARRAYS[name], [(n,)]), gradient=symad.trace(slope, [(n,)]), seed=1
    )
    assert certificate.status == "undecided" and NO_VALUE in told(certificate)


@pytest.mark.thorough
def test_a_difference_is_told_at_a_size_at_which_there_are_values():
    """log((5 − 2n) (1 + u·u)) has values for n = 1 and 2; the candidate is right for n = 2 alone."""
    f = symad.trace(lambda u: np.log((5 - 2 * u.shape[0]) * (1 + u @ u)), [(n,)])
    slope = symad.trace(lambda u: 2 * u / (1 + u @ u) + (u.shape[0] - 2) * u, [(n,)])
    (entry,) = symad.verify(f, gradient=slope, seed=1).entries
    assert entry.status == "refuted" and entry.claim.endswith("at n = 1")
    assert np.size(entry.witness.point["u"]) == 1


@pytest.mark.parametrize("one", [False, True], ids=["two outputs", "one array"])
def test_where_other_values_are_missing_a_value_is_compared(one):
    """log x and log(−x) have no values together."""
    f, wrong = ([sp.log(x), sp.log(-x) + k] for k in (0, 1))
    asked = sp.Array if one else list
    for candidate, statuses in ((f, ["proved", "proved"]), (wrong, ["proved", "refuted"])):
        certificate = symad.verify(asked(f), x, value=asked(candidate), seed=1)
        assert [e.status for e in certificate.entries] == statuses
        assert sorted(e.status for e in certificate.recheck().entries) == statuses
    empty = symad.verify([sp.log(x), sp.log(-1 - x**2)], x, value=[sp.log(x), sp.log(-1 - x**2)], seed=1)
    assert [e.status for e in empty.entries] == ["proved", "undecided"]


SOMEWHERE = {
    "close to a number": sp.log(sp.Rational(1, 10**6) - (x - sp.Rational(37123, 1000)) ** 2),
    "far away": sp.sqrt(x - 10**7),
    "far from 0 on both sides": sp.acosh(sp.Abs(x) / 10**5) * y,
    "a branch that is never taken": sp.Piecewise((sp.log(-1 - x**2), x**2 < -1), (sp.sin(x), True)),
    "large on the way": sp.log(sp.exp(sp.exp(x**2 + 6)) - 1),
    "a boundary everywhere": sp.asin(sp.sin(x) ** 2 + sp.cos(x) ** 2) * y,
}


@pytest.mark.parametrize("name", SOMEWHERE)
def test_domains_are_found(name):
    certificate = symad.equal(SOMEWHERE[name], SOMEWHERE[name])
    assert certificate.status == "proved"
    assert symad.equal(SOMEWHERE[name], 0).status != "proved"


def test_a_file_cannot_claim_what_has_no_values(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("symad.verification.accept.weakened", lambda verdict, seen: verdict)
        patch.setattr("symad.verification.tactics.nowhere_defined", lambda function, domain: "")
        forged = symad.verify(sp.log(-1 - x**2), x, gradient=2 * x / (1 + x**2))
        assert forged.status == "proved" and forged.proofs
    again = symad.Certificate.from_json(forged.to_json()).recheck()
    assert again.status == "undecided" and "real value" in told(again)


X = sp.MatrixSymbol("X", n, n)
d = sp.Symbol("d", integer=True, positive=True)

ARRAYS_NOWHERE = {
    "a factor of a negative matrix": (
        lambda a: np.sum(np.log(np.diag(np.linalg.cholesky(-a @ a.T - np.eye(2))))), (2, 2)
    ),
    "a determinant below 0": (lambda a: np.log(-1 - np.linalg.det(a) ** 2), (2, 2)),
    "a factor of an indefinite matrix": (
        lambda a: np.linalg.cholesky(np.diag([9, -1]) - np.outer(a, a))[0, 0], (2,)
    ),
    "an inverse of 0": (lambda a: np.linalg.inv(a @ a.T - (a.T @ a).T - a @ a.T + a.T @ a)[0, 0], (2, 2)),
    "an inverse of rank 1": (lambda a: np.linalg.inv(np.outer(a, a)), (2,)),
    "an inverse of rank 1, larger": (lambda a: np.linalg.inv(np.outer(a, a)).sum(), (30,)),
    "skew matrices of 3 rows": (lambda a: np.linalg.inv(a - a.T).sum(), (3, 3)),
    "in a loop": (lambda a: functions.scan(lambda h, x: np.log(-1 - (h + x) ** 2), 0.5, a).sum(), (3,)),
    "after an order": (lambda a: np.log(-1 - np.sort(a) ** 2).sum(), (3,)),
    "after a softmax": (lambda a: np.log(-1 - functions.softmax(a) ** 2).sum(), (3,)),
    "of eigenvalues": (lambda a: np.log(-1 - np.linalg.eigvalsh(a) ** 2).sum(), (2, 2)),
    "more than a hundred thousand": (lambda a: np.log(-1 - a**2).sum(), (400, 300)),
    "a large hidden zero": (lambda a: (1 / (np.sin(a) ** 2 + np.cos(a) ** 2 - 1)).sum(), (3000,)),
}  # fmt: skip


@pytest.mark.sample(11, without=("a large hidden zero",))
@pytest.mark.parametrize("name", ARRAYS_NOWHERE)
def test_arrays_without_values_are_equal_to_nothing(name):
    function, shape = ARRAYS_NOWHERE[name]
    f = symad.trace(function, [shape])
    certificate = symad.equal(f, f)
    assert certificate.status == "undecided" and "real value" in told(certificate)


def test_a_quotient_of_hidden_zeros_has_no_value():
    zero = sp.sqrt(sp.exp(2 * x) + 2 + sp.exp(-2 * x)) - 2 * sp.cosh(x)
    again = sp.Mul(zero**2 + zero, 1 / zero, evaluate=False)
    assert symad.equal(again, zero + 1).status == "undecided"


ARRAYS_SOMEWHERE = {
    "only far away": (
        lambda a: np.sum(np.log(np.diag(np.linalg.cholesky(a - 90 * np.eye(4))))), [(4, 4)]
    ),
    "normal equations": (lambda a, y: np.linalg.solve(a.T @ a, a.T @ y), [(n, d), (n,)]),
    "both products of a matrix": (
        lambda a: np.linalg.inv(a.T @ a).sum() + np.linalg.inv(a @ a.T).sum(), [(n, d)]
    ),
    "an inverse of two hundred rows": (lambda a: np.linalg.inv(a @ a.T + np.eye(200)), [(200, 3)]),
    "more than a hundred thousand": (lambda a: np.log(1 + a**2).sum() / a[0, 0], [(400, 300)]),
    "a root beside": (lambda a: np.where(a > 0, np.sqrt(a), np.log(-a)).sum(), [(400, 300)]),
}  # fmt: skip


@pytest.mark.sample(2, without=("hundred thousand", "root beside"))
@pytest.mark.parametrize("name", ARRAYS_SOMEWHERE)
def test_domains_of_arrays_are_found(name):
    f = symad.trace(*ARRAYS_SOMEWHERE[name])
    assert symad.equal(f, f).status == "proved"


def test_sizes_are_chosen_at_which_there_are_values():
    f = symad.trace(lambda a, y: np.linalg.solve(a.T @ a, a.T @ y).sum(), [(n, d), (n,)])
    assert sizes_of(f, f) == ((d, (2,)), (n, (3,)))


def test_outputs_without_values_leave_the_others_theirs():
    f = symad.trace(lambda a: (np.linalg.cholesky(-a @ a.T - np.eye(2)), a @ a), [(2, 2)])
    assert {e.status for e in symad.equal(f, f).entries} == {"undecided", "proved"}


@pytest.mark.thorough
def test_a_function_without_values_ends_a_claim_before_anything_is_tested():
    """A Aᵀ of a 20×3 matrix A is singular; with 3 columns of 3 rows it is not."""
    f, g = (symad.trace(lambda A: np.linalg.inv(A @ A.T).sum(), [(rows, 3)]) for rows in (20, 3))
    certificate = symad.check(f, seed=1)
    assert {e.status for e in certificate.entries} == {"undecided"}
    assert NO_VALUE in certificate.entries[0].reason and certificate.steps < 1_000_000
    assert symad.check(g, seed=1).status in ("proved", "tested")
