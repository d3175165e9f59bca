"""Gaussian processes on real data: likelihood, gradient, Hessian, optimum by scikit-learn and torch."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

import symad
from symad.models.generative import gaussian_process as gp
from symad.models.generative import kernels
from symad.numeric import lower

b, c, d, l_b, l_c, l_s = sp.symbols("b c d l_b l_c l_s", positive=True)
SEASON = sp.exp(-2 * sp.sin(sp.pi * sp.sqrt(kernels.r2)) ** 2 / l_s**2) * sp.exp(-kernels.r2 / (2 * l_b**2))
CO2 = d * kernels.inner + b * SEASON + c * (1 + kernels.r2 / (2 * l_c**2)) ** -1
START = np.array([6.0, 0.5, 2.0, 60.0, 1.0, 1.3, 0.05])  # b, c, d, l_b, l_c, l_s, noise


def diabetes(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Measurements, and the standardized progression."""
    table = load_diabetes()
    return table.data[:count] * 20, (table.target[:count] - table.target.mean()) / table.target.std()


def co2(count: int) -> tuple[np.ndarray, np.ndarray]:
    """The last months of the record: centered years (N, 1) and ppm."""
    sm = pytest.importorskip("statsmodels.api")
    monthly = sm.datasets.co2.load_pandas().data["co2"].resample("MS").mean().interpolate()[-count:]
    years = (monthly.index.year + (monthly.index.month - 0.5) / 12).to_numpy(float)
    return (years - years.mean())[:, None], (monthly - monthly.mean()).to_numpy()


def sk_co2(values: np.ndarray) -> sk.Kernel:
    """The same kernel in scikit-learn's words."""
    vb, vc, vd, wb, wc, ws, noise = values
    season = sk.ConstantKernel(vb) * sk.RBF(wb) * sk.ExpSineSquared(ws, 1.0, periodicity_bounds="fixed")
    irregular = sk.ConstantKernel(vc) * sk.RationalQuadratic(wc, 1.0, alpha_bounds="fixed")
    growth = sk.ConstantKernel(vd) * sk.DotProduct(1e-12, sigma_0_bounds="fixed")
    return season + irregular + growth + sk.WhiteKernel(noise)


def sk_rbf(values: np.ndarray) -> sk.Kernel:
    length, variance, noise = values
    return sk.ConstantKernel(variance) * sk.RBF(length) + sk.WhiteKernel(noise)


CASES = {
    "diabetes": (
        kernels.variance * kernels.rbf(), diabetes, 80, np.array([1.5, 0.8, 0.3]), sk_rbf, [1, 0, 2]
    ),
    "CO2": (CO2, co2, 96, START, sk_co2, [0, 3, 5, 1, 4, 2, 6]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_likelihood_and_gradient_are_scikit_learns(name: str) -> None:
    kernel, data, count, values, theirs, order = CASES[name]
    xs, y = data(count)
    value, gradient = symad.value_and_gradient(gp.log_likelihood(kernel), "theta")(np.log(values), xs, y)
    other = GaussianProcessRegressor(theirs(values), alpha=0, optimizer=None).fit(xs, y)
    expected, slope = other.log_marginal_likelihood(theirs(values).theta, eval_gradient=True)
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(gradient[order], slope, rtol=1e-10, atol=1e-10 * np.abs(slope).max())


@pytest.mark.parametrize("name", CASES)
def test_hessian_is_torchs(name: str) -> None:
    """By torch's double backward pass, in double precision."""
    torch = pytest.importorskip("torch")
    kernel, data, _, values, _, _ = CASES[name]
    xs, y = data(48)
    points, targets = torch.tensor(xs), torch.tensor(y)

    def matrix(v):
        r2 = ((points[:, None] - points[None]) ** 2).sum(-1)
        if name == "diabetes":
            return v[1] * torch.exp(-r2 / (2 * v[0] ** 2)) + v[2] * torch.eye(48, dtype=torch.float64)
        season = v[0] * torch.exp(-2 * torch.sin(torch.pi * (points - points.T)) ** 2 / v[5] ** 2)
        season = season * torch.exp(-r2 / (2 * v[3] ** 2))
        irregular = v[1] / (1 + r2 / (2 * v[4] ** 2))
        return season + irregular + v[2] * points @ points.T + v[6] * torch.eye(48, dtype=torch.float64)

    def log_p(theta):
        k = matrix(theta.exp())
        rest = 24 * np.log(2 * np.pi)
        return -(targets @ torch.linalg.solve(k, targets)) / 2 - torch.logdet(k) / 2 - rest

    expected = torch.autograd.functional.hessian(log_p, torch.tensor(np.log(values))).numpy()
    ours = symad.hessian(gp.log_likelihood(kernel), "theta")
    for found in (ours(np.log(values), xs, y), lower(ours)(np.log(values), xs, y)):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_the_optimum_is_scikit_learns(name: str) -> None:
    """Its likelihood at our optimum is ours, its gradient there 0, its own optimum no better."""
    kernel, data, count, values, theirs, _ = CASES[name]
    xs, y = data(count)
    ours = gp.fit(kernel, xs, y, start=values, newton=10)
    found = np.array([*(ours.values[s] for s in gp.parameters_of(kernel)), ours.noise])
    fixed = GaussianProcessRegressor(theirs(found), alpha=0, optimizer=None).fit(xs, y)
    there, slope = fixed.log_marginal_likelihood(theirs(found).theta, eval_gradient=True)
    assert ours.log_likelihood == pytest.approx(there, abs=1e-6)
    assert np.abs(slope).max() < 1e-6
    own = GaussianProcessRegressor(theirs(values), alpha=0).fit(xs, y)
    assert ours.log_likelihood > own.log_marginal_likelihood_value_ - 1e-6
    new = xs[:20] + 0.13
    mean, variance = ours.predict(new)
    expected, deviation = fixed.predict(new, return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(variance + ours.noise, deviation**2, rtol=1e-6, atol=1e-8)


def test_several_targets_are_scikit_learns() -> None:
    xs, y = diabetes(50)
    both = np.stack([y, xs[:, 2] ** 2], axis=1)
    values = {kernels.length: 2.0}
    ours = gp.condition(kernels.rbf(), values, 0.3, xs, both)
    theirs = GaussianProcessRegressor(sk.RBF(2.0), alpha=0.3, optimizer=None).fit(xs, both)
    np.testing.assert_allclose(ours.predict(xs + 0.1)[0], theirs.predict(xs + 0.1), rtol=1e-10, atol=1e-12)
    assert ours.log_likelihood == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-10)
    with pytest.raises(symad.errors.ShapeError, match=r"points of shape \(50, 10\) need targets .* \(49,\)"):
        gp.condition(kernels.rbf(), values, 0.3, xs, y[:-1])


@pytest.mark.thorough
def test_derivatives_of_the_likelihood_are_certified() -> None:
    graph = gp.log_likelihood(kernels.variance * kernels.linear()).at({gp.N: 2, gp.D: 1})
    certificate = symad.check(graph, wrt=["theta"])
    assert certificate.status in ("proved", "tested"), str(certificate)
