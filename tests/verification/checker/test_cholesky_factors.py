"""Cholesky factors: what is decided about them, and what must not be said."""

import numpy as np
import pytest

import symad


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
@pytest.mark.parametrize("n", [2, pytest.param(3, marks=pytest.mark.thorough)])
def test_factors_are_compared(name, n):
    first, second = sides(*EQUAL[name], n)
    assert symad.equal(first, second, seed=1).status in ("proved", "tested")


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
