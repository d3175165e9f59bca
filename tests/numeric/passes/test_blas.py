"""Matrix products of compiled code: MKL's functions behind NumPy's interface, against NumPy itself."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from symad.numeric.compiled_arrays import blas
from symad.numeric.compiler.c_compiler import compiler

pytestmark = pytest.mark.skipif(
    blas.mkl() is None or compiler() is None, reason="needs the package mkl and a C compiler"
)

TOLERANCE = {"float32": 2e-5, "float64": 1e-13}


def _laid_out(array, layout):
    """The same numbers in another order of memory."""
    if layout == "columns":
        return np.asfortranarray(array)
    if layout == "part":
        whole = np.zeros([d + 3 for d in array.shape], array.dtype)
        whole[tuple(slice(1, d + 1) for d in array.shape)] = array
        return whole[tuple(slice(1, d + 1) for d in array.shape)]
    if layout == "every other":
        whole = np.zeros([2 * d for d in array.shape], array.dtype)
        whole[(slice(None, None, 2),) * array.ndim] = array
        return whole[(slice(None, None, 2),) * array.ndim]
    if layout == "backwards":
        turned = (slice(None, None, -1),) * array.ndim
        return np.ascontiguousarray(array[turned])[turned]
    return array


LAYOUTS = ("rows", "columns", "part", "every other", "backwards")


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((5, 7), (7, 3)),
        ((1, 7), (7, 3)),
        ((5, 7), (7, 1)),
        ((5, 1), (1, 3)),
        ((1, 1), (1, 1)),
        ((64, 32), (32, 48)),
        ((7,), (7, 3)),
        ((5, 7), (7,)),
        ((7,), (7,)),
        ((4, 5, 7), (4, 7, 3)),
        ((4, 5, 7), (7, 3)),
        ((2, 1, 5, 7), (3, 7, 6)),
    ],
)
def test_products_in_all_layouts(left, right, dtype):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=left).astype(dtype), rng.normal(size=right).astype(dtype)
    product = blas.product_function(dtype)
    expected = np.matmul(a.astype(float), b.astype(float))
    for one, other in itertools.product(LAYOUTS, LAYOUTS):
        made = product(_laid_out(a, one), _laid_out(b, other))
        assert made.dtype == dtype
        assert made.shape == expected.shape
        np.testing.assert_allclose(made, expected, rtol=0, atol=TOLERANCE[dtype] * 10)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_go_where_they_shall(layout):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(6, 4)), rng.normal(size=(4, 5))
    place = _laid_out(np.full((6, 5), np.nan), layout)
    made = blas.product_function("float64")(a, b, place)
    assert made is place
    np.testing.assert_allclose(place, a @ b, rtol=1e-13, atol=1e-14)


def test_a_result_over_an_operand():
    a = np.arange(9.0).reshape(3, 3)
    b = np.array([[2.0, 0, 1], [0, 1, 0], [1, 1, 1]])
    expected = a @ b
    blas.product_function("float64")(a, b, a)
    np.testing.assert_array_equal(a, expected)


def test_results_over_parts_of_operands():
    rng = np.random.default_rng(2)
    stack, b = rng.normal(size=(5, 40, 40)), rng.normal(size=(40, 40))
    expected = stack[:4] @ b
    blas.product_function("float64")(stack[:4], b, stack[1:])  # each result lies over the next operand
    np.testing.assert_allclose(stack[1:], expected, rtol=1e-12)
    square = rng.normal(size=(40, 40))
    expected = square @ square.T
    blas.product_function("float64")(square, square.T, square[::-1])
    np.testing.assert_allclose(square[::-1], expected, rtol=1e-12)


def test_empty_operands():
    product = blas.product_function("float64")
    assert product(np.ones((0, 3)), np.ones((3, 2))).shape == (0, 2)
    np.testing.assert_array_equal(product(np.ones((2, 0)), np.ones((0, 3))), np.zeros((2, 3)))
    np.testing.assert_array_equal(product(np.ones((2, 0)), np.ones(0)), np.zeros(2))


def test_a_matrix_times_its_transpose_is_symmetric():
    a = np.random.default_rng(2).normal(size=(37, 23))
    product = blas.product_function("float64")
    for one in (a, a.T, np.asfortranarray(a)):
        made = product(one, one.T)
        np.testing.assert_array_equal(made, made.T)
        np.testing.assert_allclose(made, one @ one.T, rtol=1e-12, atol=1e-13)


def test_repeated_vectors():
    a = np.random.default_rng(3).normal(size=(4, 6))
    ones = np.broadcast_to(np.array(2.0), (6,))
    np.testing.assert_allclose(blas.product_function("float64")(a, ones), 2 * a.sum(axis=1), rtol=1e-13)
    rows = np.broadcast_to(np.arange(6.0), (5, 6))
    product = blas.product_function("float64")
    np.testing.assert_allclose(product(rows, a.T), rows @ a.T, rtol=1e-13, atol=1e-14)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="mismatch in its core dimension"):
        blas.product_function("float64")(np.ones((2, 3)), np.ones((4, 5)))


@pytest.mark.filterwarnings("ignore:invalid value")
def test_infinities_and_nan():
    a, b = np.array([[np.inf, 1.0]]), np.array([[1.0, 0.0], [np.nan, 2.0]])
    made = blas.product_function("float64")(np.vstack([a, a]), b)
    assert np.isnan(made).all()


def test_threads():
    rng = np.random.default_rng(4)
    pairs = [(rng.normal(size=(40, 30)), rng.normal(size=(30, 20))) for _ in range(64)]
    product = blas.product_function("float64")
    with ThreadPoolExecutor(4) as pool:
        for (a, b), made in zip(pairs, pool.map(lambda pair: product(*pair), pairs), strict=True):
            np.testing.assert_allclose(made, a @ b, rtol=1e-12, atol=1e-13)


@pytest.fixture
def fresh():
    """The functions look again for the library, and again afterwards."""
    cached = (blas.mkl, blas.product_function, blas.product_address)
    for function in cached:
        function.cache_clear()
    yield
    for function in cached:
        function.cache_clear()


def test_numpy_on_request(monkeypatch, fresh):
    monkeypatch.setenv("SYMAD_BLAS", "numpy")
    assert blas.product_function("float64") is np.matmul
    with_scipy = blas.product_address("float64")
    monkeypatch.delenv("SYMAD_BLAS")
    for function in (blas.mkl, blas.product_function, blas.product_address):
        function.cache_clear()
    assert blas.product_function("float64") is not np.matmul
    assert blas.product_address("float64") != with_scipy
