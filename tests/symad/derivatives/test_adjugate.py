"""Determinants at singular matrices: their derivatives against SymPy's and mpmath's."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symad
from symad.derivatives.hessian import MODES
from symad.numeric import lower

A = sp.MatrixSymbol("A", 3, 3)
SINGULAR = {
    "rank 2": np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]),
    "rank 1": np.outer([1.0, 2, 3], [2, -1, 1]),
    "zero": np.zeros((3, 3)),
    "invertible": np.array([[2.0, 1, 0], [1, -3, 1], [0, 1, 1]]),
    "reflection": np.diag([1.0, 1, -1]),
}


def derivatives(value):
    """By SymPy, of the determinant written out."""
    entries = sp.symbols("a0:9")
    det = sp.expand(sp.Matrix(3, 3, entries).det())
    point = dict(zip(entries, map(sp.Rational, value.ravel().astype(int).tolist()), strict=True))
    first = [sp.diff(det, e).subs(point) for e in entries]
    second = [[sp.diff(det, e, f).subs(point) for f in entries] for e in entries]
    return np.array(first, float).reshape(3, 3), np.array(second, float)


@pytest.mark.parametrize("name", SINGULAR)
def test_gradients(name):
    value = SINGULAR[name]
    graph = symad.gradient(sp.Determinant(A), A)
    expected = derivatives(value)[0]
    adjugate = np.array(sp.Matrix(value.astype(int)).adjugate().T.tolist(), float)
    assert np.array_equal(expected, adjugate)
    for found in (graph(value), lower(graph)(value)):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", SINGULAR)
@pytest.mark.parametrize("mode", MODES)
def test_second_derivatives(name, mode):
    value = SINGULAR[name]
    graph = symad.hessian(sp.Determinant(A), A, mode=mode)
    for found in (graph(value), lower(graph)(value)):
        np.testing.assert_allclose(found, derivatives(value)[1], rtol=1e-13, atol=1e-13)


def test_third_derivatives():
    """Of det along E, E, E: 6 det E, at a singular matrix."""
    t = sp.Symbol("t", real=True)
    direction = sp.Matrix([[1, 0, 2], [3, 1, 0], [0, 1, 1]])
    line = sp.ImmutableMatrix(SINGULAR["rank 2"].astype(int)) + t * direction
    first = symad.gradient(sp.Determinant(line), t)
    third = symad.gradient(symad.gradient(first, t), t)
    assert third(0.0) == pytest.approx(6 * int(direction.det()), rel=1e-12)


def test_exact_numbers():
    value = sp.Matrix([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    assert sp.Matrix(symad.gradient(sp.Determinant(A), A)(value)) == value.adjugate().T


def test_many_rows():
    """The gradient of a singular 30 × 30 determinant: a product of rank one, as the adjugate is."""
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(30, 30)) / 5
    matrix[:, -1] = matrix[:, :-1] @ rng.normal(size=29) / 5
    found = lower(symad.gradient(sp.Determinant(sp.MatrixSymbol("B", 30, 30))))(matrix).T
    minor = np.linalg.det(np.delete(np.delete(matrix, 4, 0), 7, 1)) * (-1) ** 11
    assert found[7, 4] == pytest.approx(minor, rel=1e-10)
    scale = np.abs(found).max()
    assert np.abs(matrix @ found).max() < 1e-13 * scale * 30
    assert np.linalg.matrix_rank(found, tol=1e-10 * scale) == 1


def test_stacks():
    f = symad.trace(lambda x: np.sum(np.linalg.det(x) ** 2 + np.linalg.det(x)), inputs=[(2, 3, 3)])
    stack = np.stack([SINGULAR["rank 2"], SINGULAR["invertible"]])
    expected = [
        derivatives(v)[0] * (2 * np.linalg.det(v) + 1) for v in stack
    ]
    np.testing.assert_allclose(symad.gradient(f)(stack), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("style", ["fast", "plain"])
def test_the_gradient_of_a_determinant_of_infinities_ends(style):
    """LAPACK's singular values of this matrix never end; the other matrix of the stack has its value."""
    a = np.array([[np.inf, 1, 2], [3, np.inf, 1], [2, 3, 1]])
    gradient = symad.gradient(symad.trace(lambda A: np.linalg.det(A).sum(), [(2, 3, 3)]))
    kernel, good = lower(gradient, style=style), np.diag([1.0, 2, 3])
    for made in (gradient, kernel):
        found = np.reshape(made(np.stack([a, good])), (2, 3, 3))
        assert np.isnan(found[0]).all()
        np.testing.assert_allclose(found[1], np.diag([6.0, 3, 2]), atol=1e-12)
