"""Sums over the first or last axes of arrays become products with ones."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.numeric import lower

CASES = [  # shape, axes, whether the sum becomes a product
    ((7, 5), 0, True),
    ((7, 5), 1, True),
    ((4, 3, 5), 0, True),
    ((4, 3, 5), (0, 1), True),
    ((4, 3, 5), (1, 2), True),
    ((4, 3, 5), 2, True),
    ((4, 3, 5), 1, False),
    ((4, 3, 5), (0, 2), False),
    ((7, 5), None, False),
    ((3, 5000), 1, False),  # by halves is more exact
    ((5000, 3), 0, True),
    ((0, 3), 0, True),
    ((3, 0), 1, True),
]


@pytest.mark.parametrize(("shape", "axes", "product"), CASES)
@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sums(shape, axes, product, backend, dtype):
    kernel = lower(symad.trace(lambda x: np.sum(x, axis=axes), [shape]), backend=backend, dtype=dtype)
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    wanted = np.sum(x, axis=axes, dtype=np.longdouble)
    sizes = np.sum(np.abs(x), axis=axes, dtype=np.longdouble)
    summed = x.size / max(np.size(wanted), 1)
    bound = summed * np.finfo(dtype).eps / 2 * sizes  # of the rounding of additions in any order
    for given in (x, np.asfortranarray(x)):
        assert np.shape(kernel(given)) == np.shape(wanted)
        assert (np.abs(kernel(given) - wanted) <= bound).all()
    assert ("ones_1" in kernel.source) is product
    assert (".sum(" in kernel.source) is not product


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_infinities_and_nan_pass(backend):
    kernel = lower(symad.trace(lambda x: (np.sum(x, axis=0), np.sum(x, axis=1)), [(3, 4)]), backend=backend)
    x = np.ones((3, 4))
    x[0, 1], x[1, 2], x[2, 2], x[2, 3] = np.inf, np.inf, -np.inf, np.nan
    with np.errstate(invalid="ignore"):
        for got, axis in zip(kernel(x), (0, 1), strict=True):
            np.testing.assert_array_equal(got, x.sum(axis=axis))


def test_symbolic_sizes():
    n, d = sp.symbols("n d", integer=True, positive=True)
    kernel = lower(symad.trace(lambda x: (np.sum(x, axis=0), np.sum(x, axis=1)), [(n, d)]))
    assert "_ones(n, np.float64) @ " in kernel.source  # of the rows; how long they are is not known
    for shape in ((6, 3), (1, 9), (40, 2)):
        x = np.random.default_rng(1).normal(size=shape)
        for got, axis in zip(kernel(x), (0, 1), strict=True):
            np.testing.assert_allclose(got, x.sum(axis=axis), rtol=1e-13)


def test_counts_are_sums():
    kernel = lower(symad.trace(lambda x: np.sum(np.where(x > 0, 1.0, 0.0), axis=0), [(50, 3)]))
    x = np.random.default_rng(2).normal(size=(50, 3))
    np.testing.assert_array_equal(kernel(x), (x > 0).sum(axis=0))


def test_sums_share_the_matrix_of_a_product():
    """Both biases of a recurrent layer have one gradient, in whatever order its sums are written."""

    def f(x, y):
        sums = np.sum(y, axis=(0, 2)), np.sum(np.sum(y, axis=2), axis=0), np.sum(np.sum(y, axis=0), axis=1)
        return (np.einsum("tkb,tjb->kj", x, y), *sums)

    kernel = lower(symad.trace(f, [(4, 3, 5), (4, 2, 5)]))
    body = kernel.source[kernel.source.index("def f(") :]
    assert body.count("ones_") == 1 and ".sum(" not in body
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=shape) for shape in ((4, 3, 5), (4, 2, 5)))
    for got, wanted in zip(kernel(x, y), f(x, y), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-13, atol=1e-13)
