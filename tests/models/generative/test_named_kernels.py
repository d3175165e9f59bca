"""Kernels and regressions against scikit-learn's of the same names."""

import numpy as np
import pytest
import sympy

import symad
from symad.errors import SymadError
from symad.models.generative import named_kernels as k
from symad.numeric import lower

pytest.importorskip("sklearn")
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import polynomial_kernel

DATA = load_diabetes()
X, Y = 20 * DATA.data[:25, :3], (DATA.target[:25] - 150) / 80
NEW = 20 * DATA.data[30:35, :3]

PAIRS = {
    "RBF": (k.RBF(1.3), sk.RBF(1.3)),
    "RBF with ARD": (k.RBF([1.3, 0.7, 2.0]), sk.RBF([1.3, 0.7, 2.0])),
    "Matern": (k.Matern([1.3, 0.9, 1.1], nu=2.5), sk.Matern([1.3, 0.9, 1.1], nu=2.5)),
    "Matern 1/2": (k.Matern(1.3, nu=0.5), sk.Matern(1.3, nu=0.5)),
    "RationalQuadratic": (k.RationalQuadratic(1.3, 0.8), sk.RationalQuadratic(1.3, 0.8)),
    "DotProduct": (k.DotProduct(0.6), sk.DotProduct(0.6)),
    "sum and product": (
        1.7 * k.RBF(1.3) * k.RationalQuadratic(1.1, 0.8) + k.DotProduct(0.6) ** 2 + k.WhiteKernel(0.2),
        1.7 * sk.RBF(1.3) * sk.RationalQuadratic(1.1, 0.8) + sk.DotProduct(0.6) ** 2 + sk.WhiteKernel(0.2),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_matrices_likelihoods_and_slopes_are_scikit_learns(name):
    ours, theirs = PAIRS[name]
    ours, theirs = ours + k.WhiteKernel(0.3), theirs + sk.WhiteKernel(0.3)
    np.testing.assert_allclose(ours.theta, theirs.theta, rtol=1e-14)
    np.testing.assert_allclose(ours(X), theirs(X), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(ours(X, NEW), theirs(X, NEW), rtol=1e-11, atol=1e-13)
    reference = GaussianProcessRegressor(theirs, optimizer=None).fit(X, Y)
    value, slope = reference.log_marginal_likelihood(theirs.theta, eval_gradient=True)
    graph = symad.trace(
        lambda theta, xs, y: k.log_marginal_likelihood(ours, theta, xs, y),
        [ours.theta.shape, X.shape, Y.shape],
    )
    graph = symad.value_and_gradient(graph, "theta")
    for f in (lower(graph), graph)[: 2 if name == "sum and product" else 1]:
        found, gradient = f(ours.theta, X, Y)
        assert abs(found - value) < 1e-10 * abs(value)
        np.testing.assert_allclose(gradient, slope, rtol=1e-10, atol=1e-10)
    mean, covariance = k.posterior(ours, ours.theta, X, Y, NEW)
    expected, spread = reference.predict(NEW, return_cov=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(covariance, spread, rtol=1e-10, atol=1e-12)


def test_polynomials():
    expected = polynomial_kernel(X, NEW, degree=4, gamma=0.3, coef0=1.5)
    np.testing.assert_allclose(k.Polynomial(4, 0.3, 1.5)(X, NEW), expected, rtol=1e-12)


@pytest.mark.thorough
def test_kernel_ridge_from_end_to_end():
    reference = KernelRidge(alpha=0.4, kernel="polynomial", degree=2, gamma=0.2, coef0=0.5).fit(X, Y)
    ours = k.Polynomial(2, 0.2, 0.5)
    graph = symad.trace(
        lambda theta, penalty, xs, y, new: k.kernel_ridge(ours, theta, penalty, xs, y, new),
        [(2,), (), X.shape, Y.shape, NEW.shape],
    )
    for f in (graph, lower(graph), lower(graph, backend="c")):
        np.testing.assert_allclose(f(ours.theta, 0.4, X, Y, NEW), reference.predict(NEW), rtol=1e-10)
    slope = symad.jacobian(graph, ["penalty"])(ours.theta, 0.4, X, Y, NEW)[:, 0]
    penalized = polynomial_kernel(X, degree=2, gamma=0.2, coef0=0.5) + 0.4 * np.eye(len(X))
    across = polynomial_kernel(NEW, X, degree=2, gamma=0.2, coef0=0.5)
    expected = -across @ np.linalg.solve(penalized, np.linalg.solve(penalized, Y))
    np.testing.assert_allclose(slope, expected, rtol=1e-10)


def test_periodic_kernels():
    """On the line the two are one; in the plane the one of circles is a kernel, the other is refused."""
    line = X[:, :1]
    np.testing.assert_allclose(k.Periodic(1.3, 2.1)(line), sk.ExpSineSquared(1.3, 2.1)(line), rtol=1e-11)
    np.testing.assert_allclose(k.ExpSineSquared(1.3, 2.1)(line), k.Periodic(1.3, 2.1)(line), rtol=1e-11)
    plane = k.Periodic(1.3, 2.1)(X)
    product = np.prod([sk.ExpSineSquared(1.3, 2.1)(X[:, d : d + 1]) for d in range(3)], axis=0)
    np.testing.assert_allclose(plane, product, rtol=1e-11)
    assert np.linalg.eigvalsh(plane)[0] > -1e-12
    np.testing.assert_allclose(k.Periodic(1.3, 2.1)(X + 2.1), plane, rtol=1e-10)
    with pytest.raises(SymadError, match="on the line"):
        k.ExpSineSquared(1.3, 2.1)(X)


def test_worked_numbers():
    x, y = np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]])
    assert k.Polynomial(2, 0.5, 1.0)(x, y)[0, 0] == (0.5 * 1 + 1) ** 2
    assert k.DotProduct(2.0)(x, y)[0, 0] == 5.0
    assert k.RBF([2.0, 3.0])(x, y)[0, 0] == pytest.approx(np.exp(-(1 + 1) / 2))


@pytest.mark.thorough
def test_certificates():
    theta = sympy.IndexedBase("theta", shape=(2,))
    for kernel in (k.Polynomial(2), k.RBF([1.0, 2.0])):
        graph = symad.trace(lambda t, x, y, f=kernel: f(x, y, t)[0, 0], [theta, (1, 2), (1, 2)])
        assert symad.check(graph).status in ("proved", "tested")


def test_what_does_not_fit_is_refused():
    with pytest.raises(SymadError, match="positive"):
        k.RBF(0.0)
    with pytest.raises(SymadError, match="2 lengths"):
        k.RBF([1.0, 2.0])(X)
    with pytest.raises(SymadError, match="2 parameters"):
        (k.RBF() + 1.0)(X, theta=np.zeros(3))
    with pytest.raises(SymadError, match="power"):
        k.RBF() ** 0.5
