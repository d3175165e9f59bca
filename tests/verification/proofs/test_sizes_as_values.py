"""Symbolic sizes that a candidate uses as numbers; sizes that no input has are refused by name."""

import pytest
import sympy as sp

import symad
from symad.errors import TraceError

n, m = sp.symbols("n m", integer=True, positive=True)
x = sp.Symbol("x", real=True)
X, A = sp.MatrixSymbol("X", n, n), sp.MatrixSymbol("A", n, m)
EYE, ONE = sp.Identity(n), sp.OneMatrix(n, m)
MEAN = sp.OneMatrix(1, n) * A * sp.OneMatrix(m, 1) / (n * m)

GRADIENTS = {
    "mean of the diagonal": (sp.Trace(X) / n, X, EYE / n, EYE / (n + 1)),
    "mean": (MEAN, A, ONE / (n * m), ONE / n**2),
    "times a size": (m * sp.Trace(X) + sp.Trace(A.T * A), X, m * EYE, n * EYE),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_gradient_without_the_input_may_use_its_sizes(name):
    f, by, right, wrong = GRADIENTS[name]
    assert symad.verify(f, by, gradient=right).status == "proved"
    assert symad.verify(f, by, gradient=wrong).status == "refuted"


def test_one_side_alone_has_the_array():
    assert symad.equal(sp.Trace(X - X) + sp.Trace(X) / n, sp.Trace(X) / n).status == "proved"
    assert symad.equal(sp.Trace(2 * EYE) / 2, sp.Trace(X) * 0 + n, inputs=[X]).status in ("proved", "tested")
    assert symad.equal(EYE, 2 * EYE, inputs=[X]).status == "refuted"


QUESTIONS = {
    "equal": lambda: symad.equal(EYE, sp.Identity(n) * 2),
    "equal: of numbers": lambda: symad.equal(sp.Trace(EYE), n),
    "check": lambda: symad.check(sp.Trace(EYE) * x, x),
    "check: a matrix": lambda: symad.check(EYE * x, x),
    "verify": lambda: symad.verify(x * sp.Trace(EYE), x, gradient=n),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_size_that_no_input_has_is_named(name):
    question = name.split(":")[0]
    with pytest.raises(TraceError, match=rf"{question}: no input has an axis of the size n; give a number"):
        QUESTIONS[name]()
