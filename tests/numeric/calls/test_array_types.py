"""Generated array code stays in the precision that was asked for, and holds pieces of repeated arrays."""

import numpy as np
import pytest
import sympy as sp
from scipy import special

import symad
from symad import functions
from symad.numeric import lower
from symad.numeric.compiler.c_compiler import compiler

n = sp.Symbol("n", integer=True, positive=True)
needs_compiler = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
BACKENDS = ["numpy", pytest.param("c", marks=needs_compiler)]


def first_mean(x):
    return np.mean(np.sin(x)[0]) + x.shape[0] * np.mean(x)


def doubled_mean(x):
    return np.mean(2 * np.sin(np.stack([x[0], x[0, 0] * x[1], x[0]])))


def kept(x):
    return np.maximum(x[0, 0, 0], 0) * np.where(x[0, 0, 1] > 0.5, 2, 3)


@pytest.mark.sample(2)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [first_mean, doubled_mean, kept])
def test_quotients_and_selections_of_numbers_keep_single_precision(f, backend):
    """NumPy's quotients of Python's numbers are in double precision, and make that of arrays."""
    x = np.random.default_rng(0).uniform(size=(3, 3, 3))
    graph = symad.value_and_gradient(symad.trace(f, [(n, n, n)]))
    value, slope = lower(graph, backend=backend, dtype="float32")(x)
    assert np.asarray(value).dtype == np.asarray(slope).dtype == np.float32
    np.testing.assert_allclose(value, f(x), rtol=1e-6)
    step = 1e-6 * np.ones_like(x)
    np.testing.assert_allclose(np.sum(slope * step), (f(x + step) - f(x - step)) / 2, rtol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_single_positions_of_a_repeated_array(backend):
    mean = symad.trace(lambda x: np.mean(np.sum(np.stack([x, x]), axis=1)), [(3, 3)])
    value, slope = lower(symad.value_and_gradient(mean), backend=backend)(np.eye(3))
    assert value == 1
    np.testing.assert_allclose(slope, np.full((3, 3), 1 / 3), rtol=1e-15)


@pytest.mark.parametrize("backend", BACKENDS)
def test_conditions_alone_in_a_kernel(backend):
    def f(x, y):
        inside = np.logical_and(np.logical_or(x > 0, y > 0), np.logical_not(np.logical_and(x > 1, y > 1)))
        return np.stack([np.where(inside, x, y), np.where(np.logical_not(inside), x, y)])

    x, y = np.random.default_rng(1).normal(size=(2, 5, 4))
    np.testing.assert_array_equal(lower(symad.trace(f, [(5, 4)] * 2), backend=backend)(x, y), f(x, y))


@pytest.mark.parametrize("backend", BACKENDS)
def test_packed_results_that_are_numbers_keep_single_precision(backend):
    graph = symad.value_and_gradient(symad.trace(lambda x, y: np.sum(np.sin(x)), [(n,), ()]))
    value, slope = lower(graph, backend=backend, dtype="float32", packed=True)(np.arange(4.0))
    assert value.dtype == slope.dtype == np.float32
    np.testing.assert_allclose(value, np.sin(np.arange(3)).sum(), rtol=1e-6)
    np.testing.assert_allclose(slope, [*np.cos(np.arange(3)), 0], rtol=1e-6)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_result_that_is_a_constant_belongs_to_the_caller(backend, order):
    matrix = np.arange(6.0).reshape(2, 3)
    product = symad.trace((lambda x: matrix @ x) if order == "C" else (lambda x: x @ matrix.T), [(3,)])
    jacobian = lower(symad.jacobian(product), backend=backend)
    jacobian(np.ones(3))[...] = 7
    np.testing.assert_array_equal(jacobian(np.ones(3)), matrix)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_row_numbers_inside_and_outside_of_a_part(backend, dtype):
    """The same constants choose rows in a part, and are added to the row numbers of a batch outside."""
    columns = np.array([-1, 1, 2, 2])

    def f(x, i):
        chosen = symad.remat(lambda y: np.take(y, columns, 1))(x)
        return np.sum(chosen**2) + np.sum(x[i, 1] * i)

    graph = symad.vmap(symad.value_and_gradient(symad.trace(f, [(3, 3), (2,)]), wrt=[0]), in_axes=(0, None))
    x, i = np.random.default_rng(2).normal(size=(4, 3, 3)), np.array([0, 2])
    expected = 2 * x * [0, 1, 3]
    expected[:, i, 1] += i
    value, slope = lower(graph, backend=backend, dtype=dtype)(x, i)
    assert value.dtype == slope.dtype == dtype
    np.testing.assert_allclose(value, [f(a, i) for a in x], rtol=1e-5)
    np.testing.assert_allclose(slope, expected, rtol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_blocks_of_rows_beside_a_size_that_is_not_known(backend):
    def f(x, y, z):
        near = np.exp(-((x[:, None] - y[None, :]) ** 2))
        return np.sum(np.sin(np.sum(near, 1)[:, None] * z[None, :]))

    x, y, z = (np.random.default_rng(3).uniform(size=k) for k in (600, 600, 4))
    kernel = lower(symad.trace(f, [(600,), (600,), (n,)]), backend=backend)
    np.testing.assert_allclose(kernel(x, y, z), f(x, y, z), rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "part",
    [
        symad.remat(lambda y: y.T),
        symad.remat(lambda y: y.reshape(-1)[::2]),
        lambda y: functions.affine_scan(np.cos(y), y),
    ],
)
def test_what_may_be_its_argument_is_not_overwritten_with_it(part, backend):
    """The array of ``y`` ends with the product, and may hold it; ``h`` may be a view of ``y``."""

    def f(x):
        y = np.sin(x)
        h = part(y)
        return y * (2 + np.sum(h * h)), h

    x = np.random.default_rng(4).uniform(size=(1, 3))
    for found, expected in zip(lower(symad.trace(f, [(n, 3)]), backend=backend)(x), f(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_mean_of_nothing_is_in_single_precision(backend):
    graph = symad.value_and_gradient(symad.trace(lambda x: np.mean(np.hypot(x[1:], x[:-1])), [(1,)]))
    with np.errstate(all="ignore"):
        value, slope = lower(graph, backend=backend, dtype="float32")(np.ones(1))
    assert np.isnan(value) and slope.dtype == np.float32
    np.testing.assert_array_equal(slope, [0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_of_derivatives_are_in_single_precision(backend):
    """The root of pi in the derivative of erf."""

    def f(x):
        return np.sum(functions.scan(lambda c, t: special.erf(c), x[0], x, memory="recompute"))

    x = np.linspace(-1, 1, 6).reshape(3, 2)
    single = lower(symad.gradient(symad.trace(f, [(3, 2)]), wrt=0), backend=backend, dtype="float32")(x)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, symad.gradient(symad.trace(f, [(3, 2)]), wrt=0)(x), rtol=1e-5)


def test_jacobian_of_an_empty_value():
    """Axes of length 0 are not cut into parts."""
    graph = symad.jacobian(symad.trace(lambda x: np.diff(x, axis=1)[:, :-1, 1:], [(2, 2, 2)]), mode="reverse")
    assert lower(graph)(np.ones((2, 2, 2))).shape == (0, 8)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_that_parts_are_given(backend, dtype):
    """The gradient of a part is a part that is given the number 1; NumPy repeats it as an integer."""

    def f(x):
        return symad.remat(lambda y: np.sum(special.erf(np.where(y > 0.1, y, 0.3 * y))))(x)

    graph = symad.gradient(symad.trace(f, [(2, 3)]), wrt=0)
    x = np.random.default_rng(6).normal(size=(2, 3))
    slope = lower(graph, backend=backend, dtype=dtype)(x)
    assert slope.dtype == dtype
    y, rate = np.where(x > 0.1, (x, np.ones_like(x)), (0.3 * x, np.full_like(x, 0.3)))
    np.testing.assert_allclose(slope, 2 / np.sqrt(np.pi) * np.exp(-(y**2)) * rate, rtol=1e-6)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_a_list_that_contains_itself_is_refused(backend):
    endless = [1.0]
    endless.append(endless)
    with pytest.raises(ValueError, match="x was given nested lists"):
        lower(sp.Symbol("x") ** 2, backend)(endless)
