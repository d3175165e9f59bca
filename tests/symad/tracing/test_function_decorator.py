"""`@symad.function`: the function with its derivatives, code, certificates and tables as methods."""

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

import symad

n = sp.Symbol("n", integer=True, positive=True)
x, y = sp.symbols("x y", real=True)


@symad.function(inputs=[(3,), (n, 3), (n,)])
def loss(w, X, t):
    """The mean squared error."""
    return np.mean((X @ w - t) ** 2)


rng = np.random.default_rng(0)
w, X, t = rng.normal(size=3), rng.normal(size=(5, 3)), rng.normal(size=5)
residual = X @ w - t


def test_it_is_called_as_the_function():
    assert abs(loss(w, X, t) - np.mean(residual**2)) < 1e-14
    assert abs(loss(w, t=t, X=X) - np.mean(residual**2)) < 1e-14
    assert loss.__name__ == "loss" and loss.__doc__ == "The mean squared error."
    assert list(loss.__signature__.parameters) == ["w", "X", "t"]
    with pytest.raises(symad.errors.SymadError, match="missing: t"):
        loss(w, X)


def test_derivatives_are_functions_of_this_kind():
    np.testing.assert_allclose(loss.gradient("w")(w, X, t), 2 * X.T @ residual / 5, rtol=1e-12)
    np.testing.assert_allclose(loss.hessian("w")(w, X, t), 2 * X.T @ X / 5, rtol=1e-12)
    np.testing.assert_allclose(loss.gradient("w").jacobian("w")(w, X, t), 2 * X.T @ X / 5, rtol=1e-12)
    np.testing.assert_allclose(loss.hvp("w")(w, X, t, w), 2 * X.T @ (X @ w) / 5, rtol=1e-12)
    value, bar = loss.value_and_gradient("w")(w, X, t)
    assert abs(value - np.mean(residual**2)) < 1e-14 and bar.shape == (3,)
    moved = loss.pushforward("w")(w, X, t, w)[1]
    back = loss.pullback("w")(w, X, t, 1.0)[1]
    assert abs(moved - back @ w) < 1e-12


@pytest.mark.thorough
def test_code_and_certificates():
    kernel = loss.gradient("w").lower()
    np.testing.assert_allclose(kernel(w, X, t), 2 * X.T @ residual / 5, rtol=1e-12)
    assert "w_bar" in loss.gradient("w").source
    assert loss.check("w").status in ("proved", "tested")
    right = loss.verify("w", gradient=lambda w, X, t: 2 * X.T @ (X @ w - t) / len(t), hostile=False)
    assert right.status == "measured"
    assert "Reverse mode" in str(symad.function(x**2).explain(x=3))


def test_whatever_takes_f_takes_it():
    assert symad.gradient(loss, "w")(w, X, t).shape == (3,)
    outer = symad.trace(lambda w: loss(2 * w, X, t), [(3,)])
    assert abs(outer(w) - np.mean((2 * X @ w - t) ** 2)) < 1e-12
    assert symad.equal(symad.function(x * y), y * x).status == "proved"


def test_exact_numbers_and_sympy():
    f = symad.function(x**2 * y, inputs=[x, y])
    assert f.gradient(x)(Fraction(1, 3), 2) == Fraction(4, 3)
    assert f(x, 3) == 3 * x**2


def test_a_python_function_needs_inputs():
    with pytest.raises(symad.errors.TraceError, match="inputs"):
        symad.function(lambda z: z)
