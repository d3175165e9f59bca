"""Derivatives of the factors of A = Q R by hand, against those of the Cholesky factors of AᵀA and QᵀQ = I."""

import numpy as np
import pytest

import symad

pytestmark = pytest.mark.thorough


def strict(M):
    """The part below the diagonal."""
    return np.tril(M, -1)


def pushforward_of_q(A, A_dot):
    """Q Ω + (I − Q Qᵀ) X with X = A_dot R⁻¹ and the skew Ω that has the lower part of Qᵀ X."""
    Q, R = symad.functions.qr(A)
    X = np.linalg.solve(R.T, A_dot.T).T
    M = Q.T @ X
    return Q @ (strict(M) - strict(M).T) + X - Q @ M


def pushforward_of_r(A, A_dot):
    """(M − Ω) R with M = Qᵀ A_dot R⁻¹ (Walter & Lehmann, arXiv:1001.1654, section 4)."""
    Q, R = symad.functions.qr(A)
    M = np.linalg.solve(R.T, (Q.T @ A_dot).T).T
    return (M - strict(M) + strict(M).T) @ R


def pullback_of_q(A, Q_bar):
    """(Q_bar + Q S) R⁻ᵀ with the symmetric S that has the lower part of −Q_barᵀ Q."""
    Q, R = symad.functions.qr(A)
    M = -Q_bar.T @ Q
    S = strict(M) + strict(M).T + np.diag(np.diagonal(M))
    return np.linalg.solve(R, (Q_bar + Q @ S).T).T


CLAIMS = {
    "the pushforward of Q": (0, "jvp", pushforward_of_q),
    "the pushforward of R": (1, "jvp", pushforward_of_r),
    "the pullback of Q": (0, "vjp", pullback_of_q),
}


def certificate(name, shape, change=lambda value: value):
    part, kind, by_hand = CLAIMS[name]
    f = symad.trace(lambda A: symad.functions.qr(A)[part], [shape])
    seed = f.output_nodes[0].shape if kind == "vjp" else shape
    return symad.verify(f, ["A"], **{kind: symad.trace(lambda *x: change(by_hand(*x)), [shape, seed])})


@pytest.mark.parametrize("name", CLAIMS)
@pytest.mark.parametrize("shape", [(2, 2), (3, 2), pytest.param((4, 3), marks=pytest.mark.slow)])
def test_derivatives_by_hand(name, shape):
    assert certificate(name, shape).status in ("proved", "tested")


CHANGED = {
    "the sign": lambda value: -value,
    "the order of rows": lambda value: value[::-1],
    "the first column": lambda value: value * (1 - np.eye(value.shape[1])[0]),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_derivatives_with_a_wrong_factor_are_refuted(name):
    assert certificate(name, (3, 2), lambda value: value * (1 + 2.0**-20)).status == "refuted"


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGED)
@pytest.mark.parametrize("name", CLAIMS)
@pytest.mark.parametrize("shape", [(2, 2), (3, 2)])
def test_changed_derivatives_are_refuted(name, change, shape):
    assert certificate(name, shape, CHANGED[change]).status == "refuted"


def parts(a):
    """The eigenvalues and eigenvectors of A + Aᵀ."""
    return np.linalg.eigh(a + a.T)


SPECTRA = {
    "the matrix": (lambda a: (lambda w, v: (v * w) @ v.T)(*parts(a)), lambda a: a + a.T),
    "its square": (lambda a: (lambda w, v: (v * w**2) @ v.T)(*parts(a)), lambda a: (a + a.T) @ (a + a.T)),
    "orthogonal vectors": (lambda a: parts(a)[1].T @ parts(a)[1], lambda a: np.eye(2) + 0 * a),
    "the trace": (lambda a: np.sum(parts(a)[0]), lambda a: 2 * np.trace(a)),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", SPECTRA)
def test_what_eigenvectors_are_made_for_holds(name):
    left, right = (symad.trace(f, [(2, 2)]) for f in SPECTRA[name])
    assert symad.equal(left, right, seed=1).status == "tested"
    other = symad.trace(lambda a: SPECTRA[name][1](a) + a[0, 1] / 10**6, [(2, 2)])
    assert symad.equal(left, other, seed=1).status == "refuted"
