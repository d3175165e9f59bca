"""Gram products and the bounds that allow them, against NumPy and evaluation."""

import re

import numpy as np
import pytest
import sympy

import symad
from symad import functions
from symad.evaluation.value_ranges import value_ranges
from symad.numeric import lower

RNG = np.random.default_rng(7)


def traced(f, *shapes):
    return symad.trace(f, inputs=list(shapes))


def ranges(nodes):
    """The bounds of nodes as floats."""
    return {node: (float(v.low), float(v.high)) for node, v in value_ranges(nodes).items()}


def is_gram(kernel):
    """Whether a matrix is multiplied by its own transpose."""
    return re.search(r"(\w+)\.T @ \1\b", kernel.source) is not None


LOSSES = {
    "logistic": lambda w, X, y: np.mean(functions.softplus(X @ w) - y * (X @ w)),
    "poisson": lambda w, X, y: np.sum(np.exp(X @ w) - y * (X @ w)) / 3,
    "squares": lambda w, X, y: 0.5 * np.sum((X @ w - y) ** 2),
    "weighted squares": lambda w, X, y: np.sum(y**2 * (X @ w) ** 2),
    "concave": lambda w, X, y: -np.sum(np.exp(X @ w)) + np.sum(y),
}

CURVATURES = {
    "logistic": lambda z, y: 1 / (2 + 2 * np.cosh(z)) / len(z),
    "poisson": lambda z, y: np.exp(z) / 3,
    "squares": lambda z, y: np.ones(len(z)),
    "weighted squares": lambda z, y: 2 * y**2,
    "concave": lambda z, y: -np.exp(z),
}


@pytest.mark.parametrize("name", LOSSES)
def test_hessians_of_linear_models_are_grams(name):
    w, X, y = RNG.normal(size=9) / 9, RNG.normal(size=(12, 9)), RNG.normal(size=12)
    kernel = lower(symad.hessian(traced(LOSSES[name], (9,), (12, 9), (12,)), wrt=[0]))
    expected = X.T @ np.diag(CURVATURES[name](X @ w, y)) @ X
    assert np.allclose(kernel(w, X, y), expected, rtol=1e-12, atol=1e-14)
    assert is_gram(kernel)


def test_weights_of_unknown_sign_have_no_root():
    w, X = RNG.normal(size=4), RNG.normal(size=(9, 4))
    kernel = lower(symad.hessian(traced(lambda w, X: np.sum(np.sin(X @ w)), (4,), (9, 4)), wrt=[0]))
    assert np.allclose(kernel(w, X), X.T @ np.diag(-np.sin(X @ w)) @ X, rtol=1e-12)
    assert not is_gram(kernel) and "sqrt" not in kernel.source


def test_products_that_are_no_grams():
    """Rows weighted along a free axis, and other products of a matrix with its parts."""
    A, s = RNG.normal(size=(5, 5)), RNG.uniform(1, 2, size=5)
    cases = {
        "free axis": (lambda A, s: (A * np.exp(s)).T @ A, (A * np.exp(s)).T @ A),
        "not transposed": (lambda A, s: (A * np.exp(s)[:, None]) @ A, (A * np.exp(s)[:, None]) @ A),
        "other side": (lambda A, s: (A * np.exp(s)) @ A.T, (A * np.exp(s)) @ A.T),
        "quotient": (lambda A, s: (1 / A * np.exp(s)[:, None]).T @ A, (1 / A * np.exp(s)[:, None]).T @ A),
        "elementwise": (lambda A, s: np.sum(A * A * np.exp(s)), np.sum(A * A * np.exp(s))),
    }
    for name, (f, expected) in cases.items():
        kernel = lower(traced(f, (5, 5), (5,)))
        assert np.allclose(kernel(A, s), expected, rtol=1e-12), name


def test_saturated_probabilities_give_no_nan():
    """Where σ rounds to 1 the curvature is exactly 0, never a root of something negative."""
    kernel = lower(symad.hessian(traced(LOSSES["logistic"], (1,), (4, 1), (4,)), wrt=[0]))
    X = np.array([[-800.0], [-40.0], [40.0], [800.0]])
    assert np.all(np.isfinite(kernel(np.ones(1), X, np.zeros(4))))


def test_bounds_hold():
    x, y = sympy.symbols("x y", real=True)
    positive = sympy.Symbol("p", positive=True)
    expressions = [
        sympy.tanh(x) ** 2, 1 - sympy.tanh(x) ** 2, sympy.exp(x) * sympy.sin(y), 1 / (1 + x**2),
        -sympy.cosh(x), sympy.Max(x, 0) - sympy.Min(y, 0),
        functions.sigmoid(x) * (1 - functions.sigmoid(x)), x**3 * y**2,
        sympy.log(1 + positive), 2 * sympy.sqrt(positive) / 3, sympy.erf(x) - 1, 1 / (sympy.tanh(x) - 2),
        sympy.Abs(x) / positive, (sympy.sin(x) - 3) ** 3, sympy.cos(x) ** -2,
    ]  # fmt: skip
    graph = symad.trace(expressions, inputs=[x, y, positive])
    found = ranges(graph.output_nodes)
    for _ in range(200):
        point = (*RNG.normal(scale=3, size=2), RNG.exponential())
        for node, value in zip(graph.output_nodes, graph(*point), strict=True):
            low, high = found[node]
            assert low <= value <= high, (node, point)
    bounds = [found[node] for node in graph.output_nodes]
    assert bounds[0] == bounds[1] == bounds[6] == (0, 1)
    assert bounds[4] == (-np.inf, -1) and bounds[11] == (-1, pytest.approx(-1 / 3))
    assert bounds[13] == (-64, -8) and bounds[8][0] == 0


def test_bounds_of_arrays():
    graph = traced(
        lambda A, v: (
            A.T @ A, np.sum(A * A, axis=0), np.cos(A) @ np.ones(3), np.exp(A) @ np.exp(v),
            np.concatenate([np.exp(v), 0 * v - 1]), functions.softmax(A, axis=-1), np.eye(3)[1:],
        ),
        (4, 3), (3,),
    )  # fmt: skip
    found = [ranges(graph.output_nodes)[node] for node in graph.output_nodes]
    inf = np.inf
    assert found == [(-inf, inf), (0, inf), (-3, 3), (0, inf), (-1, inf), (0, 1), (0, 1)]


@pytest.mark.parametrize(("rows", "columns", "gram"), [(7, 8, False), (512, 8, False), (512, 9, True)])
def test_narrow_products_are_no_grams(rows, columns, gram):
    """BLAS multiplies two arrays of at most 8 columns faster than one by itself."""
    X, w = RNG.normal(size=(rows, columns)), RNG.normal(size=columns)
    kernel = lower(
        symad.hessian(traced(lambda w, X: np.sum(functions.softplus(X @ w)), w.shape, X.shape), [0])
    )
    assert is_gram(kernel) is gram
    p = 1 / (1 + np.exp(-X @ w))
    np.testing.assert_allclose(kernel(w, X), (X.T * (p * (1 - p))) @ X, rtol=1e-12, atol=1e-12)
