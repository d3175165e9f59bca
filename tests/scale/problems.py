"""Functions of data for the tests of `symad.numeric.scale`, with their data."""

import numpy as np
import sympy as sp

import symad

n, d = sp.symbols("n d", integer=True, positive=True)
X, Y, W = sp.MatrixSymbol("X", n, d), sp.MatrixSymbol("y", n, 1), sp.MatrixSymbol("w", d, 1)
OVER = {"X": 0, "y": 0}


def traced(f):
    return symad.trace(f, [X, Y, W])


def mean_logistic(x, y, w):
    return np.mean(np.logaddexp(0, -y * (x @ w))) + (w**2).sum()


def data(rows=1003, columns=4, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, columns))
    w = rng.standard_normal((columns, 1))
    return x, np.sign(x @ w + rng.standard_normal((rows, 1))), w


def logistic_by_hand(x, y, w):
    """The value, gradient and Hessian of the mean logistic loss and |w|², from the textbook's formulas."""
    z = y * (x @ w)
    p = 1 / (1 + np.exp(z))
    value = np.mean(np.log1p(np.exp(-z))) + float((w**2).sum())
    gradient = -(x.T @ (y * p)) / len(x) + 2 * w
    hessian = x.T @ (x * (p * (1 - p))) / len(x) + 2 * np.eye(len(w))
    return value, gradient, hessian
