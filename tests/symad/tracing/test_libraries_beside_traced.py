"""pandas, lists that contain themselves, arrays of objects, comparisons of sizes: results or named errors."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import SymadError, TraceError
from symad.numeric import lower

n = sp.Symbol("n", integer=True, positive=True)
DATA = np.arange(12.0).reshape(3, 4)


def cyclic():
    found = [1.0]
    found.append(found)
    return found


def endless(u):
    return u * endless(u - 1)


def test_what_pandas_cannot_do_is_named():
    pd = pytest.importorskip("pandas")
    for f, told in (
        (lambda u: pd.Series(u).sum(), r"pandas\.Series"),
        (lambda u: pd.DataFrame({"a": u}), r"pandas\.DataFrame"),
        (lambda u: pd.DataFrame(DATA) @ u, r"pandas\.DataFrame\.__matmul__"),
        (lambda u: pd.DataFrame(DATA).dot(u), r"pandas\.DataFrame\.dot"),
        (lambda u: pd.Series(DATA[0]) @ u, r"pandas\.Series\.__matmul__"),
    ):
        with pytest.raises(TraceError, match=told) as caught:
            symad.trace(f, [(4,)])
        assert "test_libraries_beside_traced.py" in str(caught.value)


def test_what_pandas_can_do():
    pd = pytest.importorskip("pandas")
    series = pd.Series(DATA[0])
    for f in (
        lambda u: u @ series,
        lambda u: series * u,
        lambda u: u @ pd.DataFrame(DATA.T),
        lambda u: series.map(lambda v: v * 2) - u,
    ):
        u = np.array([1.0, -1.0, 0.5, 2.0])
        np.testing.assert_allclose(symad.trace(f, [(4,)])(u), np.asarray(f(u)))
    each = symad.trace(lambda u: pd.Series([1.0, 2.0]).map(lambda v: v * u), [()])
    assert np.array_equal(each(3.0), [3, 6])


@pytest.mark.parametrize(
    "f",
    [
        lambda u: u * cyclic(),
        lambda u: np.sum([*cyclic(), u]),
        lambda u: np.array(cyclic()),
        lambda u: cyclic(),
        endless,
    ],
)
def test_recursion_without_end_is_named(f):
    with pytest.raises(TraceError, match=r"recursion does not end.*contains itself"):
        symad.trace(f, [()])


def test_an_input_that_contains_itself_is_named():
    with pytest.raises(TraceError, match=r"contains? itself"):
        symad.trace(lambda u: u, [cyclic()])


@pytest.mark.parametrize(
    "f",
    [
        lambda u: u.sum() * np.minimum(u.shape[0], 60),
        lambda u: u.sum() * np.maximum(2.0, u.shape[0]),
        lambda u: u[: min(u.shape[0], 3)],
        lambda u: u if u.shape[0] > 3 else 2 * u,
    ],
)
def test_comparisons_of_sizes_are_named(f):
    with pytest.raises(TraceError, match=r"test_libraries_beside_traced.*sympy\.Min"):
        symad.trace(f, [(n,)])


def test_the_function_that_the_message_names():
    graph = symad.trace(lambda u: u.sum() * sp.Min(u.shape[0], 2), [(n,)])
    assert graph(np.ones(1)) == 1 and graph(np.ones(5)) == 10


@pytest.mark.parametrize("call", [lambda g: g, lower], ids=["graph", "kernel"])
def test_arrays_of_objects_that_are_numbers(call):
    function = call(symad.trace(lambda u: np.sin(u) * 2, [(2,)]))
    for values in ([1, 2], [1, 2.5], [True, 2.5]):
        wanted = 2 * np.sin(np.array(values, dtype=float))
        np.testing.assert_allclose(function(np.array(values, dtype=object)), wanted, rtol=1e-15)


def test_whole_numbers_in_arrays_of_objects_stay_exact_where_they_can():
    square = symad.trace(lambda u: u * u, [(2,)])
    assert square(np.array([10**20 + 1, 3], dtype=object)).tolist() == [(10**20 + 1) ** 2, 9]


@pytest.mark.parametrize("wrong", [[1, None], [1, "a"], [1, [2]]])
def test_arrays_of_objects_that_are_no_numbers(wrong):
    graph = symad.trace(lambda length: length * 2, [(2,)])
    values = np.empty(2, dtype=object)
    values[:] = wrong
    for call in (graph, lower(graph), lower(graph, backend="c")):
        with pytest.raises((SymadError, TypeError), match="length"):
            call(values)
