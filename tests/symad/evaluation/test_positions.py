"""Index arrays in several axes: NumPy's values, and an error for each axis that an index leaves."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from sympy.tensor.array.expressions import ArraySymbol

import symad
from symad.errors import ShapeError
from symad.numeric import lower

n = sp.Symbol("n", integer=True, positive=True)
X = np.arange(24.0).reshape(3, 4, 2)


def traced(f, rows=3):
    x, i, j = ArraySymbol("x", (rows, 4, 2)), ArraySymbol("i", (2,)), ArraySymbol("j", (2,))
    return symad.trace(f, [x, i, j])


FUNCTIONS = {
    "pairs": lambda x, i, j: x[i, j],
    "with a slice between": lambda x, i, j: x[i, :, j % 2],
    "outer": lambda x, i, j: x[i[:, None], j],
    "a known index beside": lambda x, i, j: x[i, -1, j % 2],
    "new axis": lambda x, i, j: x[None, i, j],
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("rows", [3, n])
def test_values_are_those_of_numpy(name, rows):
    graph = traced(FUNCTIONS[name], rows)
    i, j = np.array([2, -3]), np.array([-4, 3])
    expected = FUNCTIONS[name](X, i, j)
    assert np.array_equal(graph(X, i, j), expected)
    assert np.array_equal(lower(graph)(X, i, j), expected)


BAD = [
    ([0, 1], [0, 4], "index 4.* 4: |index 4.* axis 1 of x has length 4"),
    ([0, 1], [0, -5], "index -5.*-4..3: axis 1 of x has length 4"),
    ([3, 0], [0, 0], "index 3.*-3..2: axis 0 of x has length 3"),
    ([0.5, 0], [0, 0], "index 0.5.*not an integer.*axis 0 of x"),
    ([0, 0], [np.nan, 0], "index nan.*not an integer.*axis 1 of x"),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("i", "j", "message"), BAD)
def test_an_index_that_leaves_its_axis_is_an_error(i, j, message):
    """Position (0, 4) of a 3 × 4 array is not position (1, 0)."""
    graph = traced(FUNCTIONS["pairs"])
    with pytest.raises(ShapeError, match=message):
        graph(X, i, j)
    with pytest.raises(IndexError, match=message):
        lower(graph)(X, i, j)


def test_the_error_of_evaluation_says_where():
    with pytest.raises(ShapeError, match=r"index 9.0 at position \(1,\)"):
        traced(FUNCTIONS["pairs"])(X, [0, 9], [0, 0])


def test_axes_keep_their_numbers_beside_slices_and_new_axes():
    graph = traced(lambda x, i, j: x[None, :, i, j])
    with pytest.raises(ShapeError, match="axis 2 of x has length 2"):
        graph(X, [0, 0], [0, 2])


def test_take_along_axis():
    x, i = ArraySymbol("x", (3, 4)), ArraySymbol("i", (3, 1))
    graph = symad.trace(lambda x, i: np.take_along_axis(x, i, axis=1), [x, i])
    values, places = X[:, :, 0], np.array([[0], [-1], [3]])
    expected = np.take_along_axis(values, places, axis=1)
    assert np.array_equal(graph(values, places), expected)
    assert np.array_equal(lower(graph)(values, places), expected)
    with pytest.raises(ShapeError, match="axis 1 of x has length 4"):
        graph(values, places + 4)


def test_sums_over_data_indices():
    """Σ_a y[k_a, l_a]: positions count from 0 there, and must stay in their axes."""
    a = sp.Symbol("a", integer=True)
    y, k, m = (sp.IndexedBase(s, shape=d) for s, d in (("y", (3, 4)), ("k", (2,)), ("l", (2,))))
    graph = symad.trace(sp.Sum(y[k[a], m[a]], (a, 0, 1)), [y, k, m])
    values = X[:, :, 0]
    assert graph(values, [2, 0], [1, 3]) == values[2, 1] + values[0, 3]
    for bad in ([0, 1], [0, 4]), ([0, 1], [0, -1]):
        with pytest.raises(ShapeError, match=r"0\.\.3: axis 1 of y has length 4"):
            graph(values, *bad)
        with pytest.raises(IndexError, match=r"0\.\.3: axis 1 of y has length 4"):
            lower(graph)(values, *bad)


def test_gradients_batches_and_single_precision():
    graph = traced(lambda x, i, j: np.sum(x[i, j] ** 2))
    i, j = np.array([2, -3]), np.array([-4, 3])
    expected = np.zeros_like(X)
    expected[i, j] = 2 * X[i, j]
    assert np.array_equal(symad.gradient(graph, wrt="x")(X, i, j), expected)
    kernel = lower(symad.gradient(graph, wrt="x"), dtype="float32")
    assert np.array_equal(kernel(X, i, j), expected) and kernel(X, i, j).dtype == np.float32
    pairs = traced(FUNCTIONS["pairs"])
    batch = symad.vmap(pairs, (None, 0, None))
    rows = np.array([[0, 1], [-1, 2]])
    assert np.array_equal(batch(X, rows, j), X[rows, j])
    with pytest.raises(ShapeError, match="axis 0 of x"):
        batch(X, rows + 2, j)
