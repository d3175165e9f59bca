"""Linear and logistic regression.

Data X (N, d), targets y (N,), weights w (d,), bias b, ridge penalty λ ≥ 0. With the score
z_n = Σ_k X_nk w_k + b,

    least squares   (1/N) Σ_n (z_n − y_n)² + λ ‖w‖²
    logistic        (1/N) Σ_n log(1 + exp(−y_n z_n)) + λ ‖w‖²,    y_n = ±1.

The logistic loss is the negative log-likelihood of P(y | x) = σ(y z). Source: Hastie, Tibshirani,
Friedman, "The Elements of Statistical Learning" (2009), sections 3.2 and 4.4.
"""

from __future__ import annotations

import sympy

from symad.functions import softplus

N, d = sympy.symbols("N d", integer=True, positive=True)
X = sympy.IndexedBase("X", shape=(N, d))
y = sympy.IndexedBase("y", shape=(N,))
w = sympy.IndexedBase("w", shape=(d,))
b = sympy.Symbol("b", real=True)
penalty = sympy.Symbol("lambda", nonnegative=True)


def score(n: sympy.Expr) -> sympy.Expr:
    """z_n = Σ_k X_nk w_k + b."""
    k = sympy.Symbol("k", integer=True)
    return sympy.Sum(X[n, k] * w[k], (k, 0, d - 1)) + b


def _ridge() -> sympy.Expr:
    j = sympy.Symbol("j", integer=True)
    return penalty * sympy.Sum(w[j] ** 2, (j, 0, d - 1))


def least_squares_loss() -> sympy.Expr:
    """The penalized mean squared error, in the symbols of this module."""
    n = sympy.Symbol("n", integer=True)
    return sympy.Sum((score(n) - y[n]) ** 2, (n, 0, N - 1)) / N + _ridge()


def logistic_loss() -> sympy.Expr:
    """The penalized mean logistic loss, in the symbols of this module; targets are ±1."""
    n = sympy.Symbol("n", integer=True)
    return sympy.Sum(softplus(-y[n] * score(n)), (n, 0, N - 1)) / N + _ridge()
