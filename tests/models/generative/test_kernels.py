"""Kernels and Gaussian processes: identities proved, matrices against loops, fits against scikit-learn."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy as sp
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.kernel_ridge import KernelRidge

import symad
from symad.models.generative import gaussian_process as gp
from symad.models.generative import kernels
from symad.numeric import lower

VALUES = {
    kernels.length: 1.3,
    kernels.variance: 0.7,
    kernels.alpha: 0.9,
    kernels.period: 2.1,
    kernels.offset: 0.4,
}
KERNELS = {
    "rbf": (kernels.rbf(), sk.RBF(1.3)),
    "matern 1/2": (kernels.matern(sp.Rational(1, 2)), sk.Matern(1.3, nu=0.5)),
    "matern 3/2": (kernels.matern(sp.Rational(3, 2)), sk.Matern(1.3, nu=1.5)),
    "matern 5/2": (kernels.matern(sp.Rational(5, 2)), sk.Matern(1.3, nu=2.5)),
    "periodic": (kernels.periodic(), sk.ExpSineSquared(1.3, 2.1)),
    "rational quadratic": (kernels.rational_quadratic(), sk.RationalQuadratic(1.3, 0.9)),
    "linear": (kernels.linear(), sk.DotProduct(np.sqrt(0.4))),
    "sum": (kernels.rbf() + kernels.linear(), sk.RBF(1.3) + sk.DotProduct(np.sqrt(0.4))),
    "product": (
        kernels.variance * kernels.rbf() * kernels.periodic(),
        sk.ConstantKernel(0.7) * sk.RBF(1.3) * sk.ExpSineSquared(1.3, 2.1),
    ),
}
POINTS = np.random.default_rng(0).normal(size=(7, 3))


def used(kernel: sp.Expr) -> dict[sp.Symbol, float]:
    return {s: v for s, v in VALUES.items() if s in kernel.free_symbols}


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_matrices_are_scikit_learns(name: str) -> None:
    ours, theirs = KERNELS[name]
    points = POINTS[:, :1] if kernels.waves(ours) else POINTS
    others = points[:4] + 0.3
    assert np.allclose(kernels.gram(ours, points, others, used(ours)), theirs(points, others), rtol=1e-12)
    assert kernels.is_kernel_on(ours, POINTS[:, :1], used(ours))


def test_what_is_no_kernel_is_found_out() -> None:
    assert not kernels.is_kernel_on(kernels.periodic(), POINTS, used(kernels.periodic()))
    assert not kernels.is_kernel_on(-kernels.rbf(), POINTS, {kernels.length: 1.0})
    with pytest.raises(symad.errors.SymadError, match="smallest eigenvalue is -1"):
        kernels.reconstruct([[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize("where", ["arrays", "traced"])
@pytest.mark.parametrize("name", ["periodic", "product"])
def test_periodic_kernels_are_for_the_line(name: str, where: str) -> None:
    kernel = KERNELS[name][0].subs(kernels.period, 1.5)
    parameters = used(kernel)

    def matrix(xs):
        return kernels.gram(kernel, xs, None, parameters)

    evaluated = matrix if where == "arrays" else lambda xs: symad.trace(matrix, [xs.shape])(xs)
    with pytest.raises(symad.errors.SymadError, match=r"sin\(.*is one on the line only.* 3 coordinates"):
        evaluated(POINTS)
    # the product over coordinates is a kernel again
    both = evaluated(POINTS[:, :1]) * evaluated(POINTS[:, 1:2])
    assert kernels.smallest_eigenvalue(both) > -1e-12
    assert not kernels.waves(sp.sinc(sp.sqrt(kernels.r2)))  # a kernel in three dimensions


def test_missing_parameters_are_named() -> None:
    with pytest.raises(symad.errors.SymadError, match="needs values for length"):
        kernels.gram(kernels.rbf(), POINTS)
    with pytest.raises(symad.errors.SymadError, match=r"length of .* is positive, but was given 0"):
        kernels.gram(kernels.rbf(), POINTS, None, {kernels.length: 0.0})
    with pytest.raises(symad.errors.ShapeError, match=r"points \(N, D\)"):
        kernels.gram(kernels.rbf(), POINTS, POINTS[:, :2], {kernels.length: 1.0})


SMOOTH = {  # −∂²k/∂x² at equal points, from the series of k in |x − y|
    "rbf": (kernels.rbf(), lambda ell, p: 1 / ell**2),
    "matern 3/2": (kernels.matern(sp.Rational(3, 2)), lambda ell, p: 3 / ell**2),
    "matern 5/2": (kernels.matern(sp.Rational(5, 2)), lambda ell, p: 5 / (3 * ell**2)),
    "periodic": (kernels.periodic(), lambda ell, p: 4 * np.pi**2 / (ell * p) ** 2),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_at_equal_points(name: str) -> None:
    kernel, curve = SMOOTH[name]
    ours = used(kernel)
    graph = symad.trace(lambda x, y: kernels.gram(kernel, x, y, ours).sum(), [(1, 1), (1, 1)])
    point = np.array([[0.7]])
    expected = curve(VALUES[kernels.length], VALUES[kernels.period]) * np.array([[-1, 1], [1, -1]])
    for gradient, hessian in (
        (symad.gradient(graph), symad.hessian(graph)),
        (lower(symad.gradient(graph)), lower(symad.hessian(graph))),
    ):
        assert [float(g[0, 0]) for g in gradient(point, point)] == [0.0, 0.0]
        assert np.allclose(hessian(point, point), expected, rtol=1e-14)
    beyond = np.array([[0.7 + 1e-4]])
    assert np.allclose(symad.hessian(graph)(point, beyond), expected, rtol=1e-3)  # continuous


@pytest.mark.parametrize("nu", [1, 3, 5])
def test_gradients_of_a_matrix_with_its_diagonal_are_torchs(nu: int) -> None:
    torch = pytest.importorskip("torch")
    weights = np.random.default_rng(3).normal(size=(7, 7))
    kernel = kernels.matern(sp.Rational(nu, 2))
    graph = symad.trace(
        lambda x, ell: (kernels.gram(kernel, x, None, {kernels.length: ell}) * weights).sum(),
        [(7, 3), sp.Symbol("ell", positive=True)],
    )
    x, ell = (
        torch.tensor(POINTS, requires_grad=True),
        torch.tensor(1.3, dtype=torch.double, requires_grad=True),
    )
    away = torch.tensor(1 - np.eye(7))
    r2 = ((x[:, None] - x[None]) ** 2).sum(-1)
    d = np.sqrt(nu) * torch.sqrt(r2 + 1 - away) / ell  # the diagonal is 1 whatever the points
    factor = {1: 1, 3: 1 + d, 5: 1 + d + d**2 / 3}[nu]
    (factor * torch.exp(-d) * away * torch.tensor(weights)).sum().backward()
    for slopes in (symad.gradient(graph)(POINTS, 1.3), lower(symad.gradient(graph))(POINTS, 1.3)):
        assert np.allclose(slopes[0], x.grad.numpy(), rtol=1e-10, atol=1e-13)
        assert np.allclose(slopes[1], ell.grad.item(), rtol=1e-10)


@pytest.mark.parametrize(("n", "degree"), [(1, 3), (2, 2), (2, 4), (3, 3), (4, 2)])
def test_polynomial_features_give_the_kernel(n: int, degree: int) -> None:
    x, y = list(sp.symbols(f"x1:{n + 1}", real=True)), list(sp.symbols(f"y1:{n + 1}", real=True))
    phi_x, phi_y = (kernels.polynomial_features(v, degree) for v in (x, y))
    assert len(phi_x) == kernels.feature_dimension(n, degree)
    product = sum(a * b for a, b in zip(x, y, strict=True)) ** degree
    assert sp.expand(phi_x.dot(phi_y) - product) == 0  # by SymPy
    assert symad.equal(phi_x.dot(phi_y), product).status == "proved"


def test_worked_feature_map() -> None:
    a, b = sp.symbols("a b", real=True)
    assert set(kernels.polynomial_features([a, b], 2)) == {a**2, b**2, sp.sqrt(2) * a * b}


def test_one_hot_words_and_unit_features() -> None:
    words = np.eye(4)[[0, 1, 1, 3]]
    assert np.array_equal(kernels.gram(kernels.inner, words), (words[:, None] == words[None]).all(-1))
    unit = POINTS / np.linalg.norm(POINTS, axis=1, keepdims=True)
    assert np.abs(kernels.gram(kernels.inner, unit)).max() <= 1 + 1e-15


def test_reconstruction_up_to_rotation() -> None:
    matrix = kernels.gram(kernels.inner, POINTS)
    points = kernels.reconstruct(matrix)
    assert points.shape == (7, 3)  # the matrix is degenerate: rank 3 of 7
    assert np.allclose(points @ points.T, matrix, atol=1e-12)
    q, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))
    assert np.allclose((points @ q) @ (points @ q).T, matrix, atol=1e-12)


def test_kernel_coordinates_give_the_matrix_back() -> None:
    """φ(x_i) = K e_i with ⟨u, v⟩ = uᵀK⁻¹v: K_ij = φ_iᵀ K⁻¹ φ_j; the same after every rotation Q."""
    k, q = sp.MatrixSymbol("K", 3, 3), sp.MatrixSymbol("Q", 3, 3)
    graph = symad.trace((q * k).T * (q * k.inverse() * q.T) * (q * k), [k, q])
    matrix = kernels.gram(kernels.rbf(), POINTS[:3], None, {kernels.length: 1.0})
    rotation, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))
    assert np.allclose(graph(matrix, rotation), matrix, rtol=1e-12)


def test_cholesky_coordinates() -> None:
    """⟨x, y⟩_M = xᵀMy is the plain product of Lx and Ly for M = LᵀL, L upper triangular: proved."""
    u = sp.symbols("u0:6", real=True)
    x, y = sp.Matrix(sp.symbols("x0:3", real=True)), sp.Matrix(sp.symbols("y0:3", real=True))
    upper = sp.Matrix([[u[0], u[1], u[2]], [0, u[3], u[4]], [0, 0, u[5]]])
    assert symad.equal((x.T * (upper.T * upper) * y)[0], (upper * x).dot(upper * y)).status == "proved"


# ---- Gaussian processes ---------------------------------------------------------------------------


def data(count: int) -> tuple[np.ndarray, np.ndarray]:
    table = load_diabetes()
    return table.data[:count] * 20, (table.target[:count] - table.target.mean()) / table.target.std()


def test_likelihood_hessian_at_high_precision() -> None:
    xs, y = data(4)
    graph = gp.log_likelihood(kernels.variance * kernels.rbf())
    theta = np.log([1.5, 0.8, 0.3])
    hessian = symad.hessian(graph, "theta")(theta, xs, y)
    gradient = symad.gradient(graph, "theta")
    with mpmath.workdps(50):
        step = mpmath.mpf(10) ** -15
        exact = [np.frompyfunc(mpmath.mpf, 1, 1)(a) for a in (xs, y)]
        columns = []
        for k in range(3):
            shifted = [
                np.array([mpmath.mpf(t) + s * step * (j == k) for j, t in enumerate(theta)]) for s in (1, -1)
            ]
            high, low = (gradient(t, *exact) for t in shifted)
            columns.append([float((a - b) / (2 * step)) for a, b in zip(high, low, strict=True)])
    assert np.allclose(hessian, np.array(columns).T, rtol=1e-10)


def test_prediction_at_given_parameters_is_scikit_learns() -> None:
    xs, y = data(60)
    ours = gp.condition(kernels.rbf(), {kernels.length: 2.0}, 0.5, xs, y)
    theirs = GaussianProcessRegressor(sk.RBF(2.0), alpha=0.5, optimizer=None).fit(xs, y)
    mean, variance = ours.predict(xs[:9] + 0.2)
    expected, deviation = theirs.predict(xs[:9] + 0.2, return_std=True)
    assert np.allclose(mean, expected, rtol=1e-10, atol=1e-12)
    assert np.allclose(variance, deviation**2, rtol=1e-10, atol=1e-12)


def test_ridge_regression_is_scikit_learns() -> None:
    xs, y = data(60)
    ours = gp.ridge(kernels.matern(sp.Rational(3, 2)), {kernels.length: 2.0}, 0.1, xs, y)
    theirs = KernelRidge(alpha=0.1, kernel=lambda a, b: sk.Matern(2.0, nu=1.5)(a[None], b[None])[0, 0]).fit(
        xs, y
    )
    assert np.allclose(ours.predict(xs + 0.1)[0], theirs.predict(xs + 0.1), rtol=1e-10, atol=1e-12)


def test_matrices_that_are_not_positive_definite() -> None:
    twice = np.zeros((2, 3))
    with pytest.raises(symad.errors.SymadError, match=r"smallest eigenvalue is .*raise the noise"):
        gp.condition(kernels.rbf(), {kernels.length: 1.0}, -0.1, twice, np.zeros(2))
