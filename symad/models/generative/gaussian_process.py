"""Gaussian processes and kernel ridge regression.

With the kernel matrix K (N, N), targets y (N,) and noise variance σ²,

    log p(y) = −½ yᵀ(K + σ²I)⁻¹y − ½ log det(K + σ²I) − (N/2) log 2π,
    mean at x*: k*ᵀ(K + σ²I)⁻¹y,    variance: k(x*, x*) − k*ᵀ(K + σ²I)⁻¹k*.

Hyperparameters are optimized in their logarithms; gradient and Hessian come from the traced
likelihood, through Cholesky factors. Source: Rasmussen and Williams (2006), algorithm 2.1 and
equation 5.9; kernel ridge regression is the mean with σ² as the ridge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sympy

from symad import functions
from symad.core.arrays import Array
from symad.core.graph import Graph
from symad.derivatives.hessian import hessian
from symad.derivatives.jacobian import gradient
from symad.derivatives.sweeps import value_and_gradient
from symad.errors import ShapeError, SymadError
from symad.models.generative import kernels
from symad.models.layers.options import refuse_complex
from symad.tracing import trace

N, D = sympy.symbols("N D", integer=True, positive=True)
noise = sympy.Symbol("noise", positive=True)


def parameters_of(kernel: sympy.Expr) -> list[sympy.Symbol]:
    """The kernel's own symbols in order of their names."""
    return sorted(kernel.free_symbols - {kernels.r2, kernels.inner}, key=str)


def log_density(matrix: Array, y: Array) -> Array:
    """log N(y; 0, K) of y (N,), for a covariance K (N, N)."""
    log_det = 2 * np.log(np.diagonal(np.linalg.cholesky(matrix))).sum()
    return -(y @ np.linalg.solve(matrix, y)) / 2 - log_det / 2 - matrix.shape[0] * np.log(2 * np.pi) / 2


def log_likelihood(kernel: sympy.Expr) -> Graph:
    """log p(y) as a graph of (log parameters (P + 1,), X (N, D), y (N,)); the noise comes last."""
    symbols = parameters_of(kernel)

    def log_p(theta: Array, xs: Array, y: Array) -> Array:
        values = np.exp(theta)
        point = {s: values[k] for k, s in enumerate(symbols)}
        noisy = values[len(symbols)] * functions.eye(xs.shape[0])
        return log_density(kernels.gram(kernel, xs, None, point) + noisy, y)

    return trace(log_p, inputs=[(len(symbols) + 1,), (N, D), (N,)])


@dataclass(frozen=True)
class Regression:
    """A fitted process: the kernel, its parameter values, the noise, the data and the weights."""

    kernel: sympy.Expr
    values: dict[sympy.Symbol, float]
    noise: float
    points: np.ndarray
    factor: np.ndarray
    weights: np.ndarray
    log_likelihood: float

    def predict(self, xs: Array) -> tuple[Array, Array]:
        """Mean (M,) or (M, T) and variance (M,) of the noise-free function at points (M, D)."""
        from scipy.linalg import solve_triangular

        cross = kernels.gram(self.kernel, self.points, xs, self.values)
        projected = solve_triangular(self.factor, cross, lower=True)
        own = np.array([kernels.gram(self.kernel, x[None], None, self.values)[0, 0] for x in np.asarray(xs)])
        return cross.T @ self.weights, own - (projected**2).sum(axis=0)


def condition(
    kernel: sympy.Expr, values: dict[sympy.Symbol, float], noise_: float, xs: Array, y: Array
) -> Regression:
    """The process given the data xs (N, D), y (N,) or (N, T), at fixed parameters.

    The T columns of y are separate processes with one kernel; their likelihoods are multiplied.

    Raises:
        ShapeError: the numbers of targets and points differ.
        SymadError: points or targets are not finite, or the kernel matrix with noise is not positive
            definite; the message gives its smallest eigenvalue.
    """
    refuse_complex("a Gaussian process", xs, y)
    xs, y = np.asarray(xs, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if y.ndim not in (1, 2) or len(y) != len(xs):
        raise ShapeError(f"points of shape {xs.shape} need targets (N,) or (N, T), not {y.shape}")
    if not (np.all(np.isfinite(xs)) and np.all(np.isfinite(y))):
        raise SymadError("the points or the targets contain values that are not finite; clean the data first")
    matrix = kernels.gram(kernel, xs, None, values) + noise_ * np.eye(len(xs))
    try:
        factor = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        low = kernels.smallest_eigenvalue(matrix)
        raise SymadError(
            f"the kernel matrix of {len(xs)} points with noise {noise_} is not positive definite: its "
            f"smallest eigenvalue is {low:.3e}; raise the noise (jitter) above {abs(low):.1e}"
        ) from None
    weights = np.linalg.solve(factor.T, np.linalg.solve(factor, y))
    own = np.log(np.diagonal(factor)).sum() + len(y) * np.log(2 * np.pi) / 2
    log_p = -(y * weights).sum() / 2 - own * (y.size // len(y))
    return Regression(kernel, values, noise_, xs, factor, weights, float(log_p))


def ridge(
    kernel: sympy.Expr, values: dict[sympy.Symbol, float], penalty: float, xs: Array, y: Array
) -> Regression:
    """Kernel ridge regression: weights (K + λI)⁻¹y."""
    return condition(kernel, values, penalty, xs, y)


def fit(
    kernel: sympy.Expr, xs: Array, y: Array, start: Sequence[float] | None = None, newton: int = 0
) -> Regression:
    """Maximize the likelihood over the kernel's parameters and the noise, from ``start`` (ones).

    L-BFGS with symad's gradient of the log parameters, bounded to e^±12; then at most ``newton`` steps of
    Newton's method with symad's Hessian, each taken only if the gradient becomes smaller.
    """
    from scipy.optimize import minimize

    symbols = parameters_of(kernel)
    graph = log_likelihood(kernel)
    slope = value_and_gradient(graph, "theta")
    refuse_complex("a Gaussian process", xs, y)
    xs, y = np.asarray(xs, dtype=np.float64), np.asarray(y, dtype=np.float64)

    def objective(theta: Array) -> tuple[float, Array]:
        try:
            value, gradient = slope(theta, xs, y)
        except np.linalg.LinAlgError:
            return 1e25, np.zeros_like(theta)
        return -float(value), -gradient

    first = np.log(np.ones(len(symbols) + 1) if start is None else np.asarray(start, dtype=np.float64))
    found = minimize(objective, first, jac=True, method="L-BFGS-B", bounds=[(-12, 12)] * len(first))
    values = np.exp(_polished(graph, found.x, xs, y, newton))
    chosen = dict(zip(symbols, values[:-1].tolist(), strict=True))
    return condition(kernel, chosen, float(values[-1]), xs, y)


def _polished(graph: Graph, theta: Array, xs: Array, y: Array, steps: int) -> Array:
    """Newton's method towards a zero of the gradient, from a point near it."""
    if not steps:
        return theta
    slope, curve = gradient(graph, "theta"), hessian(graph, "theta")
    here = slope(theta, xs, y)
    for _ in range(steps):
        there = theta - np.linalg.solve(curve(theta, xs, y), here)
        new = slope(there, xs, y)
        if not np.abs(new).max() < np.abs(here).max():
            break
        theta, here = there, new
    return theta
