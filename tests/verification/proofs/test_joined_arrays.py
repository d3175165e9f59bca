"""Arrays of symbolic size that are joined from pieces are proved piece by piece; what differs is refuted."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.verification import Certificate

n, d = sp.symbols("n d", integer=True, positive=True)
STACKED = [(d + 1,), (n, d)]


def residual(t, X):
    return X @ t[:-1] + t[-1]


def slope(t, X, factor=2):
    r = residual(t, X)
    return np.concatenate([2 * X.T @ r, np.reshape(factor * r.sum(), (1,))])


@pytest.mark.parametrize(("factor", "status"), [(2, "proved"), (3, "refuted")])
def test_gradients_by_stacked_parameters(factor, status):
    f = symad.trace(lambda t, X: (residual(t, X) ** 2).sum(), STACKED)
    gradient = symad.trace(lambda t, X: slope(t, X, factor), STACKED)
    certificate = symad.verify(f, ["t"], gradient=gradient, seed=1)
    assert certificate.status == status, str(certificate)
    kept = Certificate.from_json(certificate.to_json()).recheck(seed=1)
    assert kept.status == status
    if status == "proved":
        assert [e.name for e in certificate.entries] == ["∂f/∂t[0:d]", "∂f/∂t[d:d + 1]"]
        assert "arrays that are joined are equal if their pieces are" in certificate.assumes


@pytest.mark.parametrize(("sign", "status"), [(1, "proved"), (-1, "refuted")])
def test_hessians_by_two_arrays(sign, status):
    f = symad.trace(lambda x, y: (x * y).sum(), [(n,), (n,)])

    def hessian(x, y):
        one, zero = np.eye(x.shape[0]), np.zeros((x.shape[0], x.shape[0]))
        return np.block([[zero, one], [sign * one, zero]])

    certificate = symad.verify(f, hessian=symad.trace(hessian, [(n,), (n,)]), seed=1)
    assert certificate.status == status, str(certificate)


DIFFERENT = {
    "exchanged": (lambda x, y: np.concatenate([x, y]), lambda x, y: np.concatenate([y, x]), [(n,), (n,)]),
    "other cuts": (
        lambda t: np.concatenate([t[:-1], t[-1:]]),
        lambda t: np.concatenate([t[1:], t[:1]]),
        [(n + 1,)],
    ),
    "overlapping slices": (
        lambda t: np.concatenate([t[:-1] * t[1:], t[:1]]),
        lambda t: np.concatenate([t[:-1] * t[:-1], t[:1]]),
        [(n + 1,)],
    ),
    "a piece of another": (
        lambda x, y: np.concatenate([x, x + y]),
        lambda x, y: np.concatenate([x, y + y]),
        [(n,), (n,)],
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_in_a_piece_is_refuted(name):
    f, g, shapes = DIFFERENT[name]
    assert symad.equal(symad.trace(f, shapes), symad.trace(g, shapes)).status == "refuted"


def test_pieces_of_an_input_that_overlap_stay_one_input():
    f = symad.trace(lambda t: np.concatenate([t[:-1] * t[1:], t[:1]]), [(n + 1,)])
    g = symad.trace(lambda t: np.concatenate([t[1:] * t[:-1], 1 * t[:1]]), [(n + 1,)])
    assert symad.equal(f, g).status in ("proved", "tested", "measured")
