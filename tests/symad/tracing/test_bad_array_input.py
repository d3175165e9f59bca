"""Arrays that do not fit: every error names what the user wrote; empty arrays work."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symad
from symad.numeric import lower

n, d = sp.symbols("n d", integer=True, positive=True)
A, v = sp.MatrixSymbol("A", n, d), sp.MatrixSymbol("v", d, 1)
ENERGY = sp.Trace((A * v).T * (A * v))
GRAPH = symad.trace(ENERGY, [A, v])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((np.ones((2, 3)), np.ones((4, 1))), r"axis 0 of v gives d = 4, but axis 1 of A gives d = 3"),
        ((np.ones(3), np.ones((3, 1))), r"A has shape \(n, d\), but the value given has shape \(3,\)"),
        ((np.ones((2, 3)), np.ones((3, 2))), r"axis 1 of v must have size 1"),
        ((np.ones((2, 3)), 1.0), r"v has shape \(d, 1\)"),
    ],
)
def test_shapes_that_do_not_fit(values: tuple[object, ...], message: str) -> None:
    with pytest.raises(symad.errors.ShapeError, match=message):
        GRAPH(*values)


@pytest.mark.parametrize("bad", [np.array([["a"]]), np.ones((1, 1)) * 1j, np.array([[None]])])
def test_arrays_that_are_no_real_numbers(bad: np.ndarray) -> None:
    with pytest.raises(symad.errors.EvaluationError, match="v was given an array"):
        GRAPH(np.ones((2, 1)), bad)


def test_empty_arrays() -> None:
    empty = np.ones((0, 3))
    assert GRAPH(empty, np.ones((3, 1))) == 0.0
    gradient = symad.gradient(GRAPH, v)
    assert np.array_equal(gradient(empty, np.ones((3, 1))), np.zeros((3, 1)))
    assert np.array_equal(lower(gradient)(empty, np.ones((3, 1))), np.zeros((3, 1)))
    assert symad.hessian(GRAPH, v)(np.ones((2, 0)), np.ones((0, 1))).shape == (0, 0)


def test_a_dimension_is_never_an_input() -> None:
    with pytest.raises(symad.errors.TraceError, match="n is a dimension"):
        symad.gradient(n * ENERGY, n)
    graph = symad.trace(n * ENERGY, [A, v])
    assert graph(np.ones((2, 1)), np.ones((1, 1))) == 4.0


def test_unknown_wrt_of_a_graph() -> None:
    with pytest.raises(symad.errors.DerivativeError, match=r"'w' is not an input of f; its inputs are A, v"):
        symad.gradient(GRAPH, "w")
    assert symad.gradient(GRAPH, "v").output_nodes == symad.gradient(GRAPH, 1).output_nodes
    pair = symad.trace(lambda d, s: d["u"] ** 2 * s, [{"u": (), "v": ()}, ()])
    with pytest.raises(symad.errors.DerivativeError, match=r"its inputs are d \(d\['u'\], d\['v'\]\), s"):
        symad.gradient(pair, "u")
    assert symad.gradient(pair, "d['u']")({"u": 2.0, "v": 1.0}, 3.0) == 12.0
    with pytest.raises(symad.errors.TraceError, match="for SymPy expressions give v itself, the symbol"):
        symad.gradient(ENERGY, "v")


def test_elements_are_no_inputs() -> None:
    with pytest.raises(symad.errors.TraceError, match="is an element; inputs are whole arrays"):
        symad.gradient(ENERGY, v[0, 0])


def test_missing_inputs_are_named() -> None:
    with pytest.raises(symad.errors.TraceError, match="depends on v, missing"):
        symad.trace(ENERGY, [A])


def test_gradient_of_a_matrix_is_refused() -> None:
    with pytest.raises(symad.errors.DerivativeError, match=r"outputs of shape \(n, 1\)"):
        symad.gradient(A * v, v)


def test_integer_arrays_are_promoted() -> None:
    assert GRAPH(np.array([[1, 2]]), np.array([[1], [1]])) == 9.0
    half = symad.trace(ENERGY / 2, [A, v])
    assert half(np.array([[1]]), np.array([[1]])) == 0.5


def test_integer_symbols_take_integral_floats_only() -> None:
    k = sp.Symbol("k", integer=True)
    graph = symad.trace(k**2)
    assert graph(3.0) == 9.0
    with pytest.raises(symad.errors.EvaluationError, match="k is an integer"):
        graph(2.5)


@pytest.mark.parametrize("given", [None, "x", 3, [], {}, sp.Symbol("x"), len])
def test_only_graphs_have_a_sympy_form(given):
    with pytest.raises(symad.errors.TraceError, match=f"to_sympy was given a {type(given).__name__}"):
        symad.to_sympy(given)
