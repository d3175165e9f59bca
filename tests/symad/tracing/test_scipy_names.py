"""SciPy's functions of whole arrays in traced functions: SciPy's own numbers, and their derivatives."""

import numpy as np
import pytest
import scipy
import scipy.special as special
from scipy import linalg
from scipy.special import log_softmax, logsumexp, softmax

import symad

rng = np.random.default_rng(5)
Z, W = rng.normal(size=(3, 4)), rng.random((3, 4))
L = np.tril(rng.normal(size=(4, 4))) + 3 * np.eye(4)

CASES = {
    "log-sum-exp": lambda z: logsumexp(z),
    "along an axis": lambda z: special.logsumexp(z, axis=1),
    "axes kept": lambda z: scipy.special.logsumexp(z, axis=0, keepdims=True),
    "weights": lambda z: logsumexp(z, axis=1, b=W),
    "weights that are traced": lambda z: logsumexp(z, b=z**2),
    "weights of both signs": lambda z: logsumexp(z[:, :2], axis=-1, b=[1.0, -0.1], return_sign=True)[0],
    "a list": lambda z: logsumexp([z[0, 0], z[1, 1]]),
    "softmax": lambda z: softmax(z) * np.cos(z),
    "softmax along an axis": lambda z: special.softmax(z, axis=1) ** 2,
    "log-softmax": lambda z: log_softmax(z, axis=0),
    "triangular": lambda z: linalg.solve_triangular(L, z.T, lower=True, check_finite=False),
    "Cholesky": lambda z: linalg.cho_solve((L, True), z.T),
    "exponential": lambda z: scipy.linalg.expm(z[:, :3] / 4),
    "numbers": lambda z: z * logsumexp([1.0, 2.0]) + softmax(np.ones(4)),
}




@pytest.mark.parametrize("case", CASES)
def test_numbers_are_scipys(case):
    f = CASES[case]
    graph = symad.trace(f, [Z.shape])
    np.testing.assert_allclose(graph(Z), f(Z), rtol=1e-13, atol=1e-14)
    d = rng.normal(size=Z.shape)
    numeric = (np.asarray(f(Z + 1e-6 * d)) - np.asarray(f(Z - 1e-6 * d))) / 2e-6
    slope = symad.pushforward(graph)(Z, d)[-1]
    np.testing.assert_allclose(slope, numeric, rtol=1e-7, atol=1e-8)


def test_large_values_do_not_overflow():
    graph = symad.trace(lambda z: logsumexp(z, b=[1.0, 2.0, 3.0]), [(3,)])
    assert graph(np.full(3, 1000.0)) == pytest.approx(1000 + np.log(6), rel=1e-15)
