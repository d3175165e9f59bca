"""Graphs called inside traced functions: values, dimensions, derivatives of derivatives, errors."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.numeric import lower

n, m = sp.symbols("n m", integer=True, positive=True)


def test_a_function_of_a_gradient_and_its_derivative():
    """|∇f|² for f = Σ x³ is Σ 9 x⁴, with slope 36 x³."""
    slope = symad.gradient(symad.trace(lambda x: (x**3).sum(), [(n,)]), "x")
    norm = symad.trace(lambda v: (slope(v) ** 2).sum(), [(m,)])
    point = np.array([1.0, -2.0, 0.5])
    assert norm(point) == (9 * point**4).sum()
    assert np.allclose(symad.gradient(norm, "v")(point), 36 * point**3, rtol=1e-15)
    assert np.allclose(lower(symad.hessian(norm, "v"))(point), np.diag(108 * point**2), rtol=1e-15)


def test_scalars_tuples_and_constants():
    x, y = sp.symbols("x y", real=True)
    pair = symad.trace((x * y, x + y))
    found = symad.trace(lambda a: pair(a, 3.0)[0] + pair(2.0, a)[1], [sp.Symbol("a", real=True)])
    assert found(5.0) == 22.0
    assert symad.equal(found, 4 * sp.Symbol("a", real=True) + 2).status == "proved"


def test_scalar_graphs_are_applied_to_arrays():
    x, y = sp.symbols("x y", real=True)
    wave = symad.trace((sp.sin(x) * y, sp.Integer(2)))
    found = symad.trace(lambda a, b, c: wave(a, b)[0] * c + wave(a, 1.0)[1], [(n, 1), (m,), sp.Symbol("c")])
    a, b = np.array([[0.5], [2.0]]), np.array([1.0, 3.0, -1.0])
    assert np.allclose(found(a, b, 2.0), 2 * np.sin(a) * b + 2, rtol=1e-15)
    assert np.allclose(lower(found)(a, b, 2.0), 2 * np.sin(a) * b + 2, rtol=1e-15)


def test_dimensions_that_are_known_or_sums():
    total = symad.trace(lambda x: (x * x).sum(axis=0), [(n, 2)])
    joined = symad.trace(lambda a, b: total(np.concatenate([a, b])), [(n, 2), (m, 2)])
    a, b = np.arange(6.0).reshape(3, 2), np.ones((1, 2))
    assert np.array_equal(joined(a, b), (a * a).sum(axis=0) + 1)
    fixed = symad.trace(lambda a: total(a), [(3, 2)])
    assert np.array_equal(fixed(a), (a * a).sum(axis=0))


def test_what_does_not_fit_is_named():
    total = symad.trace(lambda x: x.sum(), [(n, 2)])
    with pytest.raises(symad.errors.ShapeError, match="axis 1 of x"):
        symad.trace(lambda a: total(a), [(4, 3)])
    with pytest.raises(symad.errors.EvaluationError, match="takes 1 value"):
        symad.trace(lambda a: total(a, a), [(4, 2)])
    square = symad.trace(lambda x: x.sum(), [(n, n)])
    with pytest.raises(symad.errors.ShapeError, match="gives n"):
        symad.trace(lambda a: square(a), [(n, m)])
