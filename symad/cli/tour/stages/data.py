"""Stages on real data: a time series, a table of tumours, the mechanics of a pendulum, CO₂."""

from __future__ import annotations

import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import sympy

import symad
from symad.cli.tour.stage import Finding, Made, Skip, TourModel, stage
from symad.models.generative import gaussian_process, kernels
from symad.models.layers import regression
from symad.models.sequences import ar

Array = np.ndarray


def sunspot_numbers() -> Array:
    """The yearly sunspot numbers 1700-2008 that statsmodels ships."""
    package = find_spec("statsmodels")
    if package is None or not package.submodule_search_locations:
        raise Skip("statsmodels is not installed (extra 'data')")
    # the file itself: the import of all models of statsmodels takes longer than this whole stage
    path = Path(package.submodule_search_locations[0], "datasets", "sunspots", "sunspots.csv")
    return np.loadtxt(path, delimiter=",", skiprows=1, usecols=1)


@stage(
    "sunspots", "AR(9) on the sunspot numbers, by least squares and by Newton; 50 years held out", quick=True
)
def sunspots() -> TourModel:
    """The loss as SymPy states it, differentiated by weights and bias."""
    loss = symad.trace(ar.loss(), [ar.w, ar.b, ar.x])
    small = loss.at({ar.T: 5, ar.s: 2})
    point = (np.zeros(9), 0.0, sunspot_numbers()[:120] / 50)
    return TourModel(loss, point, wrt=[ar.w, ar.b], use=forecast, check=small)


def forecast(made: Made) -> list[Finding]:
    """Two fits that must be one, and an honest test."""
    from symad.numeric import lower

    series = sunspot_numbers()
    train = series[:-50]
    fit = ar.fit(train, 9)
    wrt = [ar.w, ar.b]
    slope = np.append(*lower(symad.gradient(made.graph, wrt))(np.zeros(9), 0.0, train))
    step = -np.linalg.solve(lower(symad.hessian(made.graph, wrt))(np.zeros(9), 0.0, train), slope)
    apart = float(np.abs(step - np.append(fit.weights, fit.bias)).max())
    windows, actual = ar.seq2col(series[:-1], 9)[-50:], series[-50:]
    error = float(np.sqrt(np.mean((windows @ fit.weights + fit.bias - actual) ** 2)))
    naive = float(np.sqrt(np.mean((windows[:, 0] - actual) ** 2)))
    fibonacci = ar.fit([1, 1, 2, 3, 5, 8, 13, 21, 34, 55], 3)
    return [
        Finding(f"one Newton step from zero and least squares differ by {apart:.1e}", apart < 1e-10),
        Finding(
            f"held-out error {error:.1f} a year ahead; 'as last year' errs by {naive:.1f}", error < naive
        ),
        Finding(
            f"fitted to ten Fibonacci numbers the windows have rank {fibonacci.rank} of 4: the smallest "
            f"solution is w = {np.round(fibonacci.weights, 9).tolist()} (newest lag first)",
            fibonacci.rank == 3 and bool(np.allclose(fibonacci.weights, [1, 1, 0], atol=1e-9)),
        ),
    ]


def tumours() -> tuple[Array, Array]:
    """Thirty standardized measurements of 569 tumours, and labels ±1."""
    try:
        from sklearn.datasets import load_breast_cancer
    except ImportError:
        raise Skip("scikit-learn is not installed (extra 'data')") from None
    table = load_breast_cancer()
    return (table.data - table.data.mean(axis=0)) / table.data.std(axis=0), 2.0 * table.target - 1.0


@stage("logistic", "logistic regression of 569 tumours by Newton's method, against scikit-learn")
def logistic() -> TourModel:
    """The penalized loss, differentiated by weights and bias in all four Hessian modes."""
    xs, y = tumours()
    inputs = [regression.w, regression.b, regression.X, regression.y, regression.penalty]
    loss = symad.trace(regression.logistic_loss(), inputs)
    small = loss.at({regression.N: 2, regression.d: 2})
    point = (np.zeros(30), 0.0, xs, y, 0.5 / len(y))
    return TourModel(loss, point, wrt=[regression.w, regression.b], use=newton, check=small)


def newton(made: Made) -> list[Finding]:
    """Newton's method to convergence, and scikit-learn's coefficients."""
    from sklearn.linear_model import LogisticRegression

    from symad.numeric import lower

    xs, y = tumours()
    wrt = [regression.w, regression.b]
    slope, curve = lower(symad.gradient(made.graph, wrt)), lower(symad.hessian(made.graph, wrt))
    w, b, steps = np.zeros(30), 0.0, 0
    while steps < 30:
        g = np.append(*slope(w, b, xs, y, 0.5 / len(y)))
        if np.abs(g).max() < 1e-14:
            break
        move = np.linalg.solve(curve(w, b, xs, y, 0.5 / len(y)), g)
        w, b, steps = w - move[:-1], b - move[-1], steps + 1
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000, solver="newton-cholesky").fit(xs, y)
    apart = float(np.abs(theirs.coef_[0] - w).max())
    return [
        Finding(
            f"Newton converges in {steps} steps; coefficients differ from scikit-learn's by {apart:.0e}",
            apart < 1e-8,
        ),
        Finding(f"{np.mean(np.sign(xs @ w + b) == y):.1%} of the tumours are classified correctly", True),
    ]


@cache
def pendulum_equations(links: int) -> tuple[sympy.MatrixBase, list[sympy.Symbol], list[sympy.Symbol]]:
    """SymPy's own equations of motion: forcing vector, states, constants."""
    from sympy.physics.mechanics import find_dynamicsymbols
    from sympy.physics.mechanics.models import n_link_pendulum_on_cart

    kane = n_link_pendulum_on_cart(links, cart_force=True, joint_torques=False)
    states = [*kane.q, *kane.u]
    names = {s: sympy.Symbol(str(s.func), real=True) for s in states}
    for other in sorted(find_dynamicsymbols(kane.forcing_full), key=str):
        names.setdefault(other, sympy.Symbol(str(other.func), real=True))
    forcing = kane.forcing_full.xreplace(names)
    symbols = [names[s] for s in states]
    constants = sorted(forcing.free_symbols - set(symbols), key=str)
    return forcing, symbols, constants


@stage("pendulum", "six links on a cart: SymPy's equations of motion, their Jacobian, against SymPy's own")
def pendulum() -> TourModel:
    """The forcing vector by coordinates and speeds."""
    forcing, states, constants = pendulum_equations(6)
    point = [*np.linspace(-1, 1, len(states)), *np.linspace(0.5, 1.5, len(constants))]
    small, small_states, small_constants = pendulum_equations(2)
    check = symad.trace(small, [*small_states, *small_constants])
    return TourModel(forcing, point, [*states, *constants], wrt=states, use=linearize, check=check)


def linearize(made: Made) -> list[Finding]:
    """The Jacobian's code, its time, and SymPy's value at 30 digits."""
    from symad.numeric import lower

    forcing, states, constants = pendulum_equations(6)
    start = time.perf_counter()
    kernel = lower(symad.jacobian(symad.trace(forcing, [*states, *constants]), states))
    ours = time.perf_counter() - start
    start = time.perf_counter()
    reference = forcing.jacobian(states)
    theirs = time.perf_counter() - start
    values = [*np.linspace(-1, 1, len(states)), *np.linspace(0.5, 1.5, len(constants))]
    point = {s: sympy.Float(float(v), 30) for s, v in zip([*states, *constants], values, strict=True)}
    exact = np.array(reference.xreplace(point).evalf(30).tolist(), dtype=float)
    apart = float(np.abs(kernel(*map(float, values)) - exact).max() / np.abs(exact).max())
    return [
        Finding(
            f"SymPy to callable Jacobian in {ours:.2f} s; SymPy's jacobian alone takes {theirs:.2f} s", True
        ),
        Finding(
            f"it differs from SymPy's at 30 digits by {apart:.0e}, relative to the largest entry",
            apart < 1e-14,
        ),
    ]


@stage("gaussian process", "the likelihood of 60 diabetes patients under an RBF kernel, against scikit-learn")
def process() -> TourModel:
    """log p(y) by the logarithms of length, variance and noise."""
    xs, y = patients(12)
    graph = gaussian_process.log_likelihood(kernels.variance * kernels.rbf())
    small = graph.at({gaussian_process.N: 2, gaussian_process.D: 1})
    return TourModel(graph, (np.log([1.5, 0.8, 0.3]), xs, y), wrt=["theta"], use=likelihood, check=small)


def patients(count: int) -> tuple[Array, Array]:
    """Standardized measurements and disease progression from scikit-learn's diabetes table."""
    try:
        from sklearn.datasets import load_diabetes
    except ImportError:
        raise Skip("scikit-learn is not installed (extra 'data')") from None
    table = load_diabetes()
    return table.data[:count] * 20, (table.target[:count] - table.target.mean()) / table.target.std()


def likelihood(made: Made) -> list[Finding]:
    """Value and gradient at a point, and the maximum."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    xs, y = patients(60)
    value, slope = symad.value_and_gradient(made.graph, "theta")(np.log([1.5, 0.8, 0.3]), xs, y)
    theirs = GaussianProcessRegressor(ConstantKernel(0.8) * RBF(1.5) + WhiteKernel(0.3)).fit(xs, y)
    expected, gradient = theirs.log_marginal_likelihood(np.log([0.8, 1.5, 0.3]), eval_gradient=True)
    apart = max(abs(value - expected), np.abs(slope - gradient[[1, 0, 2]]).max())
    fitted = gaussian_process.fit(kernels.variance * kernels.rbf(), xs, y)
    better = abs(fitted.log_likelihood - theirs.log_marginal_likelihood_value_)
    return [
        Finding(
            f"log likelihood {value:.6f} and its slopes differ from scikit-learn's by {apart:.0e}",
            apart < 1e-6,
        ),
        Finding(
            f"the fitted maximum {fitted.log_likelihood:.6f} differs by {better:.0e}", bool(better < 1e-6)
        ),
    ]
