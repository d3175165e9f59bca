"""np.add.at, np.add.reduceat and np.bincount on traced values, against NumPy itself."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import ShapeError, TraceError
from symad.numeric import lower


def adding(rng):
    """np.add.at or np.subtract.at into rows, elements, slices and masks of an array, places named twice."""
    shape = tuple(rng.integers(1, 5, rng.integers(1, 3)))
    count = int(rng.integers(0, 7))
    ufunc = [np.add, np.subtract][rng.integers(2)]
    kinds = [
        rng.integers(-shape[0], shape[0], count),
        tuple(rng.integers(0, d, count) for d in shape),
        slice(0, int(rng.integers(1, shape[0] + 1))),
        rng.random(shape) < 0.5,
        int(rng.integers(shape[0])),
        (rng.integers(0, shape[0], (2, count)), ...),
    ]
    key = kinds[rng.integers(len(kinds))]
    start, wanted = rng.normal(size=shape), np.empty(shape)[key].shape
    values = rng.normal(size=max(int(np.prod(wanted)), 1))

    def f(u):
        y = np.zeros(shape)
        y += start
        ufunc.at(y, key, u[: int(np.prod(wanted))].reshape(wanted))
        return y

    return f, values


def segments(rng):
    """np.add.reduceat with places in any order."""
    shape = tuple(rng.integers(1, 6, rng.integers(1, 4)))
    axis = int(rng.integers(-len(shape), len(shape)))
    places = rng.integers(0, shape[axis], rng.integers(1, 6))
    return lambda u: np.add.reduceat(u.reshape(shape), places, axis=axis), rng.normal(size=np.prod(shape))


def bins(rng):
    """np.bincount with weights."""
    places = rng.integers(0, 5, rng.integers(1, 9))
    longest = int(rng.integers(0, 9))
    return lambda u: np.bincount(places, u, longest), rng.normal(size=len(places))


def check(make, seed):
    f, u = make(np.random.default_rng(seed))
    graph = symad.trace(f, [u.shape])
    np.testing.assert_allclose(graph(u), f(u), rtol=1e-14, atol=1e-14)
    zero = f(np.zeros(len(u)))
    wanted = np.stack([(f(e) - zero).ravel() for e in np.eye(len(u))], 1)  # affine
    found = symad.jacobian(graph, sparse=True)(u)
    np.testing.assert_allclose(found.toarray(), wanted, rtol=0, atol=4e-15)
    assert found.nnz == np.count_nonzero(np.abs(wanted) > 1e-12)
    if seed % 4 == 0:
        np.testing.assert_allclose(lower(graph)(u), f(u), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("make", [adding, segments, bins])
def test_random_places(make):
    for seed in range(5):
        check(make, seed)


@pytest.mark.thorough
@pytest.mark.parametrize("make", [adding, segments, bins])
def test_many_random_places(make):
    for seed in range(5, 100):
        check(make, seed)


def test_views_and_values_see_what_is_added():
    def f(u):
        y = 2 * u
        tail = y[1:]
        np.add.at(tail, [0, 0], u[:2])
        np.add.at(y, u > 0.5, 1.0)
        return y * tail[0]

    u = np.array([0.25, 1.0, 3.0])
    np.testing.assert_allclose(symad.trace(f, [(3,)])(u), f(u.copy()))


def test_symbolic_lengths_and_traced_places():
    n = sp.Symbol("n", integer=True, positive=True)

    def f(u, k):
        y = 2 * u
        np.add.at(y, [0, 0], u[:2])
        z = np.zeros(3)
        np.add.at(z, k, u[:3])
        return y, z

    graph = symad.trace(f, [(n,), (3,)])
    u, k = np.arange(1.0, 6.0), np.array([2, 0, 2])
    for got, wanted in zip(graph(u, k), f(u, k), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", ["maximum", "minimum", "multiply", "logaddexp"])
def test_other_functions_by_segments(name):
    ufunc, places = getattr(np, name), [0, 3, 1, 2]
    graph = symad.trace(lambda u: ufunc.reduceat(u, places), [(5,)])
    u = np.array([0.5, -2.0, 3.0, 1.5, 0.25])
    np.testing.assert_allclose(graph(u), ufunc.reduceat(u, places), rtol=1e-14)


OUTSIDE = np.zeros(3)


@pytest.mark.parametrize(
    ("f", "told"),
    [
        (lambda u: np.add.at(OUTSIDE, [0], u[:1]), "made outside"),
        (lambda u: np.multiply.at(2 * u, [0], 2.0), r"np\.multiply\.at.*test_adding_at_places"),
        (lambda u: np.add.at(2 * u, [5], 1.0), r"np\.add\.at.*index 5 is out of bounds"),
        (lambda u: np.add.at(2 * u, [0, 1], u), r"np\.add\.at.*shape \(2,\), the value has shape \(4,\)"),
        (lambda u: np.add.reduceat(u, [0, 7]), r"reduceat: \[0, 7\] are not places in 0\.\.3"),
        (lambda u: np.add.reduceat(u, u), r"np\.add\.reduceat.*must be known"),
        (lambda u: np.arctan2.reduceat(u, [0]), r"np\.arctan2\.reduceat"),
    ],
)
def test_what_is_refused(f, told):
    with pytest.raises((ShapeError, TraceError), match=told):
        symad.trace(f, [(4,)])
