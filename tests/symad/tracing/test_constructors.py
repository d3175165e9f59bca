"""NumPy's functions that use no protocol are replaced while a function is traced, and only then."""

import os
import threading

import numpy as np
import pytest
import sympy

import symad
from symad.tracing.from_numpy import making

PLACES = [(place, name) for place, name, _ in making.REPLACED]


def now():
    """The functions in their places."""
    return [vars(place)[name] for place, name in PLACES]


ORIGINALS = now()


def filled(x):
    """A function that needs the replacements: x in an array that np.zeros makes."""
    y = np.zeros(2)
    y[0] = x * x
    return y


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_constructors_are_restored_however_a_trace_ends(error):
    def fails(x):
        assert np.zeros is not ORIGINALS[PLACES.index((np, "zeros"))]
        raise error("from the user's code")

    with pytest.raises(error):
        symad.trace(fails, [()])
    assert now() == ORIGINALS
    assert np.array_equal(symad.trace(filled, [()])(3.0), [9.0, 0.0])
    assert now() == ORIGINALS


def test_a_replacement_that_fails_leaves_none_behind(monkeypatch):
    """An interrupt in the middle is the same: here the last of the replacements has no place."""
    places = (*making._in_numpy(), (np.fft, {"fft": None, "no such function": None}))
    monkeypatch.setattr(making, "_in_numpy", lambda: places)
    with pytest.raises(KeyError):
        symad.trace(filled, [()])
    assert now() == ORIGINALS and making._traces == 0


def test_threads_that_trace_nothing_get_numpys_arrays_and_traces_may_overlap():
    inside, leave = threading.Event(), threading.Event()
    made = {}

    def waits(x):
        inside.set()
        assert leave.wait(30)
        return filled(x)

    thread = threading.Thread(target=lambda: made.update(graph=symad.trace(waits, [()])))
    thread.start()
    try:
        assert inside.wait(30)
        plain = [np.zeros(3), np.asarray([1, 2]), np.full(2, 5.0), np.arange(3), np.empty(0), np.array(1.5)]
        assert {type(value) for value in plain} == {np.ndarray}
        assert [value.dtype.kind for value in plain] == ["f", "i", "f", "i", "f", "f"]
        assert np.isscalar(1.0) and not np.isscalar(np.ones(2))
        assert np.array_equal(symad.trace(filled, [()])(3.0), [9.0, 0.0])  # begins and ends inside the other
        assert now() != ORIGINALS  # the other one still needs them
    finally:
        leave.set()
        thread.join()
    assert np.array_equal(made["graph"](2.0), [4.0, 0.0])
    assert now() == ORIGINALS


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_child_of_a_fork_has_numpys_own_constructors():
    inside, leave = threading.Event(), threading.Event()

    def waits(x):
        inside.set()
        assert leave.wait(30)
        return x

    thread = threading.Thread(target=symad.trace, args=(waits, [()]))
    thread.start()
    try:
        assert inside.wait(30)
        child = os.fork()
        if child == 0:
            os._exit(0 if now() == ORIGINALS else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert now() != ORIGINALS
    finally:
        leave.set()
        thread.join()
    assert now() == ORIGINALS


A, B = np.array([1.0, 4.0]), np.array([2.0, 3.0])

OF_LISTS = {
    "sum": lambda x, y: np.sum([x, y], axis=0),
    "mean": lambda x, y: np.mean([x, y]),
    "std": lambda x, y: np.std((x, y), axis=0),
    "max": lambda x, y: np.max([x, y], axis=0),
    "all": lambda x, y: 1.0 * np.all([x > 1, y > 1], axis=0),
    "nanmax": lambda x, y: np.nanmax([x, y]),
    "sort": lambda x, y: np.sort([[x[1], 2.0, y[0]], [1, 0, y[1]]]),
    "median": lambda x, y: np.median([x[0], y[0], x[1]]),
    "det": lambda x, y: np.linalg.det([x, y]),
    "inv": lambda x, y: np.linalg.inv([[x[0], 1], [0, y[1]]]),
    "norm": lambda x, y: np.linalg.norm([x, y]),
}


@pytest.mark.parametrize("name", OF_LISTS)
def test_functions_of_lists_compute_what_numpy_computes(name):
    f = OF_LISTS[name]
    np.testing.assert_allclose(symad.trace(f, [(2,), (2,)])(A, B), f(A, B), rtol=1e-14)
    assert now() == ORIGINALS


def test_lists_of_arrays_of_symbolic_size():
    n = sympy.Symbol("n", integer=True, positive=True)
    graph = symad.trace(lambda x, y: np.sum([x, y], axis=0) * np.max([x, y]), [(n,), (n,)])
    assert np.array_equal(graph(A, B), 4 * (A + B))


def test_lists_of_different_lengths_are_named():
    with pytest.raises(symad.errors.ShapeError, match=r"the shapes \(2,\), \(1, 2\) differ"):
        symad.trace(lambda x, y: np.sum([x, [y]]), [(2,), (2,)])
    with pytest.raises(symad.errors.TraceError, match="give functions of NumPy arrays, not lists"):
        symad.trace(lambda x, y: np.maximum([x, y], 0), [(), ()])


def test_series_of_pandas_are_constants():
    pandas = pytest.importorskip("pandas")
    series, frame = pandas.Series(A), pandas.DataFrame({"a": A, "b": B})
    graph = symad.trace(lambda x: (series * x + x / series, frame - x, np.multiply(series, x)), [(2,)])
    for found, expected in zip(graph(B), (A * B + B / A, np.stack([A, B], axis=1) - B, A * B), strict=True):
        assert np.array_equal(found, expected)
