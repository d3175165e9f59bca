"""Likelihoods of Gaussian processes: `check`, and backward passes derived by hand, with inputs X, y and θ."""

import numpy as np
import pytest

import symad

pytestmark = pytest.mark.thorough


def kernel(X, theta):
    """v exp(−|x − x'|²/(2 l²)) + s I with v, l, s = exp θ, its first part, and X_i − X_j."""
    gap = X[:, None] - X[None, :]
    smooth = np.exp(theta[0]) * np.exp(-gap * gap / (2 * np.exp(2 * theta[1])))
    return smooth + np.exp(theta[2]) * np.eye(X.shape[0]), smooth, gap


def cholesky_by_loops(K):
    n = K.shape[0]
    L = [[0] * n for _ in range(n)]
    for j in range(n):
        L[j][j] = np.sqrt(K[j, j] - sum(L[j][k] * L[j][k] for k in range(j)))
        for i in range(j + 1, n):
            L[i][j] = (K[i, j] - sum(L[i][k] * L[j][k] for k in range(j))) / L[j][j]
    return L


def forwards(L, y):
    """L⁻¹ y by substitution."""
    u = []
    for i in range(len(L)):
        u.append((y[i] - sum(L[i][k] * u[k] for k in range(i))) / L[i][i])
    return u


def by_cholesky(K, y):
    L = np.linalg.cholesky(K)
    u = np.linalg.solve(L, y)
    return (u * u).sum() / 2 + np.log(np.diagonal(L)).sum()


def by_loops(K, y):
    L = cholesky_by_loops(K)
    return sum(u * u for u in forwards(L, y)) / 2 + sum(np.log(L[i][i]) for i in range(len(L)))


def by_solve(K, y):
    return y @ np.linalg.solve(K, y) / 2 + np.log(np.linalg.det(K)) / 2


def score_by_inverse(K, y):
    """(K⁻¹ − a aᵀ)/2 and a = K⁻¹ y."""
    inverse = np.linalg.inv(K)
    a = inverse @ y
    return (inverse - np.outer(a, a)) / 2, a


def score_by_solves(K, y):
    """The same by two triangular systems."""
    L = np.linalg.cholesky(K)
    a = np.linalg.solve(L.T, np.linalg.solve(L, y))
    inverse = np.linalg.solve(L.T, np.linalg.solve(L, np.eye(K.shape[0])))
    return (inverse - np.outer(a, a)) / 2, a


def score_of_a_factor(K, y):
    """Backwards through u = L⁻¹ y and through L Lᵀ = K (Murray, arXiv:1602.07527, equation 10)."""
    L = np.linalg.cholesky(K)
    u = np.linalg.solve(L, y)
    y_bar = np.linalg.solve(L.T, u)
    L_bar = np.diag(1 / np.diagonal(L)) - np.tril(np.outer(y_bar, u))
    P = np.tril(L.T @ L_bar)
    P = P - np.diag(np.diagonal(P)) / 2
    S = np.linalg.solve(L.T, np.linalg.solve(L.T, P.T).T)
    return (S + S.T) / 2, y_bar


def score_by_loops(K, y):
    """Backwards through the loops of the factor (Murray, section 4)."""
    L, n = cholesky_by_loops(K), K.shape[0]
    u = forwards(L, y)
    L_bar, u_bar, y_bar, K_bar = [[0] * n for _ in range(n)], list(u), [0] * n, [[0] * n for _ in range(n)]
    for i in reversed(range(n)):
        y_bar[i] = u_bar[i] / L[i][i]
        L_bar[i][i] = (1 - u_bar[i] * u[i]) / L[i][i]
        for k in range(i):
            L_bar[i][k] = -y_bar[i] * u[k]
            u_bar[k] = u_bar[k] - y_bar[i] * L[i][k]
    for j in reversed(range(n)):
        for i in reversed(range(j, n)):
            s = L_bar[i][j] / L[j][j] / (2 if i == j else 1)
            if i > j:
                L_bar[j][j] = L_bar[j][j] - s * L[i][j]
            for k in range(j):
                L_bar[i][k] = L_bar[i][k] - s * L[j][k]
                L_bar[j][k] = L_bar[j][k] - s * L[i][k]
            K_bar[i][j] = K_bar[i][j] + s / 2
            K_bar[j][i] = K_bar[j][i] + s / 2
    return np.stack([np.stack(row) for row in K_bar]), np.stack(y_bar)


def gradient(score, change=lambda K_bar, K: K_bar):
    """By X, y and θ, from that by K."""

    def of(X, y, theta):
        K, smooth, gap = kernel(X, theta)
        K_bar, y_bar = score(K, y)
        K_bar = change(K_bar, K)
        part, square = K_bar * smooth, np.exp(2 * theta[1])
        by_theta = part.sum(), (part * gap * gap).sum() / square, np.exp(theta[2]) * np.trace(K_bar)
        return -2 * (part * gap).sum(axis=1) / square, y_bar, np.stack(by_theta)

    return of


def traced(f, n):
    return symad.trace(f, [(n,), (n,), (3,)])


def likelihood(form, n):
    return traced(lambda X, y, theta: form(kernel(X, theta)[0], y), n)


PASSES = {
    "triangular systems": (by_cholesky, score_by_solves),
    "the inverse": (by_cholesky, score_by_inverse),
    "through the factor": (by_cholesky, score_of_a_factor),
    "loops": (by_loops, score_by_loops),
    "the factor of a likelihood by loops": (by_loops, score_by_solves),
    "loops for a factor": (by_cholesky, score_by_loops),
    "a factor for a determinant": (by_solve, score_by_solves),
}


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("n", [2, pytest.param(6, marks=pytest.mark.slow)])
def test_backward_passes_derived_by_hand(name, n):
    form, score = PASSES[name]
    f, found = likelihood(form, n), traced(gradient(score), n)
    assert symad.verify(f, list(f.inputs), gradient=found).status in ("proved", "tested")


CHANGED = {
    "a factor": lambda K_bar, K: 2 * K_bar,
    "the lower triangle": lambda K_bar, K: np.tril(K_bar),
    "half the diagonal": lambda K_bar, K: K_bar - np.diag(np.diagonal(K_bar)) / 2,
    "one element": lambda K_bar, K: K_bar * (1 + np.eye(len(K))[:, :1] * np.eye(len(K))[1:2] * 2.0**-20),
    "a term": lambda K_bar, K: K_bar + K * 2.0**-20,
}


@pytest.mark.parametrize("change", ["half the diagonal", "one element"])
def test_changed_passes_are_refuted(change):
    form, score = PASSES["the inverse"]
    f, found = likelihood(form, 2), traced(gradient(score, CHANGED[change]), 2)
    assert symad.verify(f, list(f.inputs), gradient=found).status == "refuted"


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGED)
@pytest.mark.parametrize("name", ["the inverse", "loops for a factor"])
def test_changed_passes_of_four_points_are_refuted(name, change):
    form, score = PASSES[name]
    f, found = likelihood(form, 4), traced(gradient(score, CHANGED[change]), 4)
    assert symad.verify(f, list(f.inputs), gradient=found).status == "refuted"


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_symads_own_derivatives_are_certified(n):
    """Gradients in two modes and four Hessians; the reference are Dual numbers, with roots in roots."""
    assert symad.check(likelihood(by_cholesky, n)).status in ("proved", "tested")
