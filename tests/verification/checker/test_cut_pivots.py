"""Matrices may be cut at the pivots of Cholesky factors: what this decides, and what it must not say."""

from random import Random

import numpy as np
import pytest
import sympy as sp

import symad
from symad.ops.basic.sources import input_node
from symad.ops.linalg.cholesky import cholesky
from symad.verification.budget import Budget, Meter
from symad.verification.fields.prime_fields import Field
from symad.verification.fields.primes import random_primes
from symad.verification.random_fields import runs
from symad.verification.random_fields.cut_pivots import with_fresh_pivots
from symad.verification.random_fields.cut_radicands import cuts_at_radicands
from symad.verification.random_fields.degree_bounds import Growths
from symad.verification.random_fields.function_values import Signatures
from symad.verification.random_fields.identity_testing import compare_nodes


def by_loops(K):
    """The Cholesky factor, one element after the other."""
    n = K.shape[0]
    L = [[0 * K[0, 0]] * n for _ in range(n)]
    for j in range(n):
        L[j][j] = np.sqrt(K[j, j] - sum(L[j][k] * L[j][k] for k in range(j)))
        for i in range(j + 1, n):
            L[i][j] = (K[i, j] - sum(L[i][k] * L[j][k] for k in range(j))) / L[j][j]
    return np.stack([np.stack(row) for row in L])


def symmetric(A):
    return A @ A.T + A + A.T


def inverse_by(L):
    return np.linalg.solve(L.T, np.linalg.solve(L, np.eye(L.shape[0])))


def sides(left, right, n):
    first = symad.trace(left, [(n, n)])
    return first, symad.trace(right, list(first.inputs))


EQUAL = {
    "the inverse": (lambda A: inverse_by(np.linalg.cholesky(symmetric(A))),
                    lambda A: np.linalg.inv(symmetric(A))),
    "the factor by loops": (lambda A: np.linalg.cholesky(symmetric(A)), lambda A: by_loops(symmetric(A))),
    "the inverse by loops": (lambda A: inverse_by(by_loops(symmetric(A))),
                             lambda A: inverse_by(np.linalg.cholesky(symmetric(A)))),
    "the lower triangle alone is read": (lambda A: np.linalg.cholesky(A) @ np.linalg.cholesky(A).T,
                                         lambda A: np.tril(A) + np.tril(A, -1).T),
}  # fmt: skip


@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.parametrize("n", [2, 5])
def test_factors_are_compared_without_extensions_of_the_field(name, n, monkeypatch):
    monkeypatch.setattr(runs, "MAX_CUT_LEVELS", 0)  # no root is taken exactly
    first, second = sides(*EQUAL[name], n)
    pairs = [(first.output_nodes[0], second.output_nodes[0])]
    assert compare_nodes(pairs, 1, Budget(), Meter(Budget())).pairs[0].certain.all()


def changed(L, at, factor):
    """An array with one element changed."""
    mask = np.zeros(L.shape)
    mask[at] = factor - 1
    return L + L * mask


WRONG = {
    "the sign of a column": (
        lambda A: np.linalg.cholesky(symmetric(A)),
        lambda A: np.linalg.cholesky(symmetric(A)) * (-1) ** np.arange(A.shape[0])),
    "one element": (
        lambda A: np.linalg.cholesky(symmetric(A)),
        lambda A: changed(np.linalg.cholesky(symmetric(A)), (1, 0), 1 + 2.0**-20)),
    "one element of the inverse": (
        lambda A: inverse_by(np.linalg.cholesky(symmetric(A))),
        lambda A: changed(np.linalg.inv(symmetric(A)), (0, 1), 1 + 2.0**-20)),
    "the transpose of the factor": (
        lambda A: np.linalg.cholesky(symmetric(A)).T @ np.linalg.cholesky(symmetric(A)),
        symmetric),
    "a matrix that is not symmetric": (
        lambda A: np.linalg.cholesky(A) @ np.linalg.cholesky(A).T, lambda A: A),
    "its inverse": (lambda A: inverse_by(np.linalg.cholesky(A)), np.linalg.inv),
    "the upper triangle": (np.linalg.cholesky, lambda A: np.linalg.cholesky(A.T)),
    "the factor of a multiple": (lambda A: np.linalg.cholesky(2 * symmetric(A)),
                                 lambda A: 2 * np.linalg.cholesky(symmetric(A))),
    "the factor by loops": (lambda A: by_loops(symmetric(A)), lambda A: by_loops(symmetric(A)).T),
}  # fmt: skip

ELSEWHERE = {
    "positive pivots in another element": (
        lambda A: np.stack([np.linalg.cholesky(A)[1, 1], np.abs(A[0, 0])]),
        lambda A: np.stack([np.linalg.cholesky(A)[1, 1], A[0, 0]])),
    "a determinant in another element": (
        lambda A: np.stack([np.linalg.cholesky(A)[1, 1], np.sqrt(np.linalg.det(A) ** 2)]),
        lambda A: np.stack([np.linalg.cholesky(A)[1, 1], np.linalg.det(A)])),
    "a sign in another element": (
        lambda A: np.stack([np.sign(np.linalg.cholesky(A)[0, 0] * A[1, 0]), np.sign(A[0, 0] * A[1, 0])]),
        lambda A: np.stack([np.sign(A[1, 0]), np.sign(A[1, 0])])),
}  # fmt: skip


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", [*WRONG, *ELSEWHERE])
def test_wrong_neighbours_are_not_called_equal(name):
    first, second = sides(*(WRONG | ELSEWHERE)[name], 2)
    assert symad.equal(first, second, seed=1).status in ("refuted", "undecided")


def cut(name, n):
    """The elements that a cut calls equal, and both sides."""
    first, second = sides(*(WRONG | ELSEWHERE)[name], n)
    sampler = runs.Sampler(first.output_nodes, second.output_nodes, Random(1), Meter(Budget()), (), {})
    return sampler.cut()[0].certain, first, second


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("n", [2, 4])
def test_a_cut_calls_no_elements_equal_that_differ_at_a_point(name, n):
    found, first, second = cut(name, n)
    point = np.random.default_rng(0).normal(size=(n, n)) + 6 * np.eye(n)
    differs = abs(first(point) - second(point)) > 1e-12
    assert differs.any() and not (found & differs).any()


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_pivot_is_not_positive_where_another_element_takes_no_factor(name):
    found, _, _ = cut(name, 2)
    assert not found[1]


def test_the_matrix_with_fresh_pivots_has_the_factor_that_is_entered():
    """L Lᵀ is the matrix modulo primes, and only the diagonal is changed; equal matrices stay equal."""
    node = cholesky(input_node(sp.MatrixSymbol("A", 4, 4), (4, 4)))
    cuts, rng = cuts_at_radicands([node]), Random(1)
    functions = Signatures(Field(tuple(random_primes(rng, 3, 31))), rng)
    value = functions.field.random(rng, (4, 4))
    made = with_fresh_pivots(value, node.args[0], cuts, functions)
    again = with_fresh_pivots(value, node.args[0], cuts, functions)
    assert np.array_equal(made, again)
    assert np.array_equal(made, with_fresh_pivots(made, node.args[0], cuts, functions))
    assert (made != value).any(axis=0).tolist() == np.eye(4, dtype=bool).tolist()
    for p, a in zip(functions.field.primes, made.astype(object), strict=True):
        lower = sp.Matrix((np.tril(a) + np.tril(a, -1).T).tolist())
        for k in range(1, 5):  # each leading minor is a square modulo p
            assert pow(int(lower[:k, :k].det()) % p, (p - 1) // 2, p) == 1


def test_the_degrees_of_the_matrix_with_fresh_pivots_are_within_their_bound():
    n = 4
    node = cholesky(input_node(sp.MatrixSymbol("A", n, n), (n, n)))
    cuts = cuts_at_radicands([node])
    (bound,) = Growths(cuts=cuts).measure([node.args[0]])
    a = sp.Matrix(n, n, lambda i, j: sp.Symbol(f"a{max(i, j)}{min(i, j)}"))
    r = sp.symbols(f"r:{n}")
    L = sp.zeros(n, n)
    for j in range(n):
        L[j, j] = r[j]
        for i in range(j + 1, n):
            L[i, j] = sp.cancel((a[i, j] - sum(L[i, k] * L[j, k] for k in range(j))) / r[j])
    for k in range(n):
        over, under = sp.fraction(sp.cancel(sum(L[k, m] ** 2 for m in range(k + 1))))
        under = sp.Poly(under, *r)
        missing = bound.under_deg - under.total_degree()
        over = sp.Poly(over, *r, *a.free_symbols)
        assert missing >= 0 and over.total_degree() + missing <= bound.deg
        assert sum(map(abs, over.coeffs())) <= 2**bound.bits
