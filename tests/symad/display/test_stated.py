"""What certificates claim, in words and formulas that are read from their graphs."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.core.claims import Derivative
from symad.display.stated import stated
from symad.verification.certificate.certificate import Certificate, Comparison

n, d = sp.symbols("n d", integer=True, positive=True)
X, w = sp.MatrixSymbol("X", n, d), sp.MatrixSymbol("w", d, 1)
hidden, square = sp.MatrixSymbol(r"\\quad", 2, 2), sp.MatrixSymbol("x^2", 2, 2)


def claimed(graph, kind="gradient"):
    """The claim that a gradient is itself, of a function."""
    made = symad.gradient(graph)
    claim = Derivative(kind, graph.output_nodes, graph.input_nodes, (), ())
    names = tuple("abc"[: len(made.output_nodes)])
    comparison = Comparison("", made, names, derivative=claim, right=made)
    (told,) = stated(Certificate("words of the file", (), (comparison,)))
    return told


@pytest.mark.parametrize(
    ("graph", "told"),
    [
        (symad.trace(sp.Symbol("x") ** 2), "the gradient by x of x**2"),
        (symad.trace((X * w).T * X * w), "the gradient by X (n, d), w (d, 1) of wᵀ Xᵀ X w"),
        (
            symad.trace(lambda q: np.sum(functions.attention(q, q, q, causal=True)), [(n, d)]),
            "the gradient by q (n, d) of Σ_(i, j)(attention_(j ≤ i)(q, q, q))_(i j)",
        ),
        (
            symad.trace(lambda x: functions.fold(lambda s, t: np.tanh(s + t), 0.0, x), [(3,)]),
            "the gradient by x (3,) of scan(0.0, x)_2; scan(h_0, x): h_t = tanh(h_(t - 1) + x_t)",
        ),
        (symad.trace(sp.trace(hidden)), r"the gradient by \\quad (2, 2) of Trace(\\quad)"),
        (symad.trace(sp.trace(square)), "the gradient by x^2 (2, 2) of Trace(x^2)"),
    ],
)
def test_claims_are_formulas_and_hide_no_name(graph, told):
    assert claimed(graph) == told
