"""Generalized linear models of data that are computed part by part, by Newton's method, which here is IRLS.

With the canonical link the Hessian of −log L is XᵀWX, so that a Newton step is a step of iteratively
reweighted least squares (McCullagh and Nelder, "Generalized Linear Models", 1989, section 2.5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy

import symad
from symad import functions
from symad.core.graph import Graph
from symad.core.identifiers import not_one_of
from symad.errors import EvaluationError
from symad.numeric.scale.chunks import is_dask
from symad.numeric.scale.distribute import distribute
from symad.numeric.scale.fits import minimize
from symad.numeric.solvers.newton import Minimum

Array = np.ndarray

FAMILIES: dict[str, Callable[[Array, Array], Array]] = {
    "gaussian": lambda eta, y: (y - eta) ** 2 / 2,
    "binomial": lambda eta, y: functions.softplus(eta) - y * eta,
    "poisson": lambda eta, y: np.exp(eta) - y * eta,
}
"""−log L of one observation, without terms that do not depend on the coefficients."""

RANGES = {"gaussian": (-np.inf, np.inf), "binomial": (0.0, 1.0), "poisson": (0.0, np.inf)}


@dataclass(frozen=True)
class LinearModel:
    """A fitted generalized linear model.

    Attributes:
        coefficients: the coefficients of the columns of X, in order.
        intercept: the constant, 0.0 if the model has none.
        standard_errors: √diag(φ (XᵀWX)⁻¹), with that of the intercept last if there is one; φ = 1, except
            for "gaussian", where it is the residual variance SSE/(n − p).
        family: the name of the family.
        count: the number of observations.
        fit: the run of Newton's method.
    """

    coefficients: Array
    intercept: float
    standard_errors: Array = field(repr=False)
    family: str
    count: int
    fit: Minimum = field(repr=False)

    @property
    def converged(self) -> bool:
        """Whether the maximum of the likelihood was found; classes that a plane separates have no maximum."""
        return self.fit.converged


def glm(
    X: Array,
    y: Array,
    family: str = "binomial",
    *,
    intercept: bool = True,
    penalty: float = 0.0,
    tolerance: float = 1e-10,
    iterations: int = 100,
    **options: Any,
) -> LinearModel:
    """The coefficients that maximize the likelihood of a generalized linear model with its canonical link.

    Args:
        X: (n, d), a NumPy or Dask array; `columns` makes one from a data frame.
        y: (n,) or (n, 1), in the same parts as X: 0 and 1 (or shares) for "binomial", counts for "poisson".
        family: "binomial" (logistic regression), "poisson" or "gaussian".
        intercept: whether the model has a constant, which is not penalized.
        penalty: λ in the term λ/2 |β|², which is added to −log L; scikit-learn's C is 1/λ.
        tolerance: the largest allowed component of the gradient of −log L/n.
        iterations: the most steps.
        options: options of `symad.numeric.scale.distribute`: client, scheduler, threads, rows, ...

    Raises:
        EvaluationError: the family is unknown, a target is out of its range, or the penalty is negative.
        ShapeError: X and y do not fit.
    """
    if family not in FAMILIES:
        raise EvaluationError(not_one_of("family", family, FAMILIES))
    if not penalty >= 0:
        raise EvaluationError(f"penalty={penalty!r}: give a number ≥ 0")
    X, y = (a if is_dask(a) else np.asarray(a) for a in (X, y))
    y = y.reshape(-1) if y.ndim == 2 and y.shape[1] == 1 else y
    if X.ndim != 2:
        raise EvaluationError(f"X has {X.ndim} axes; give observations by columns, (n, d)")
    loss = _loss(family, int(X.shape[1]), intercept, penalty)
    over, data = {"X": 0, "y": 0}, {"X": X, "y": y}
    _check_targets(family, y, options)
    start = np.zeros(int(X.shape[1]) + intercept)
    found = minimize(loss, start, data=data, over=over, tolerance=tolerance, iterations=iterations, **options)
    beta, n = np.asarray(found.x), int(X.shape[0])
    both = symad.join(symad.gradient(loss, "beta"), symad.hessian(loss, "beta"))
    slope, curvature = distribute(both, over, **options)(X, y, beta)
    inverse = np.linalg.pinv(curvature, hermitian=True)
    if found.converged:  # the last step changes no digit of the likelihood, but about half the digits of β
        beta = beta - inverse @ slope
    scale = 2 * n * _plain(found.value, beta, penalty, intercept, n) / max(n - len(beta), 1)
    phi = scale if family == "gaussian" else 1.0
    errors = np.sqrt(phi / n * np.diag(inverse))
    constant = float(beta[-1]) if intercept else 0.0
    return LinearModel(beta[: X.shape[1]], constant, errors, family, n, found)


def _plain(value: float, beta: Array, penalty: float, intercept: bool, n: int) -> float:
    """The mean loss without its penalty."""
    slopes = beta[:-1] if intercept else beta
    return float(value - penalty / (2 * n) * slopes @ slopes) if penalty else float(value)


def _loss(family: str, columns: int, intercept: bool, penalty: float) -> Graph:
    """−log L/n + λ/(2n) |β|²."""
    n = sympy.Symbol("n", integer=True, positive=True)
    term = FAMILIES[family]

    def loss(X: Array, y: Array, beta: Array) -> Array:
        slopes = beta[:columns]
        eta = X @ slopes + (beta[columns] if intercept else 0)
        total = term(eta, y).sum()
        if penalty:
            total = total + penalty / 2 * (slopes**2).sum()
        return total / X.shape[0]

    arrays = [("X", (n, columns)), ("y", (n,)), ("beta", (columns + intercept,))]
    return symad.trace(loss, [sympy.IndexedBase(name, shape=shape) for name, shape in arrays])


def _check_targets(family: str, y: Array, options: dict[str, Any]) -> None:
    low, high = RANGES[family]
    if family == "gaussian":
        return
    n = sympy.Symbol("n", integer=True, positive=True)
    extremes = symad.trace(lambda y: (np.min(y), np.max(y)), [sympy.IndexedBase("y", shape=(n,))])
    smallest, largest = distribute(extremes, {"y": 0}, **options)(y)
    if smallest < low or largest > high:
        wrong = smallest if smallest < low else largest
        raise EvaluationError(f"a target of the {family} family is {wrong}; it lies in [{low:g}, {high:g}]")
