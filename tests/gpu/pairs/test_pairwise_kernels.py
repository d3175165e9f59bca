"""The CUDA kernel sums, run on the CPU, against the whole kernel matrix and NumPy's cotangents."""

import contextlib
import shutil

import numpy as np
import pytest
import sympy as sp

from symad.errors import ShapeError
from symad.gpu.eager import pairwise
from symad.gpu.eager import pairwise_vjp as gpu_vjp
from symad.numeric.eager.calls import kernel_of
from symad.numeric.eager.pairwise import pairwise_vjp
from tests.gpu.cupy_agreement import library
from tests.gpu.cupy_standin import cuda
from tests.gpu.shim.driver import schedule

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

N, M = 150, 301


@contextlib.contextmanager
def standin(processors=1):
    """The stand-in for CuPy; more processors split the stream of points further."""
    before = cuda.Device.attributes
    kernel_of.cache_clear()  # generated modules remember what they know of the device
    cuda.Device.attributes = {**before, "MultiProcessorCount": processors}
    try:
        with library() as cp:
            yield cp
    finally:
        cuda.Device.attributes = before
        kernel_of.cache_clear()


def on_device(cp, *arrays):
    return [None if a is None else cp.asarray(a) for a in arrays]


def device_params(cp, params):
    return {n: cp.asarray(v) if np.ndim(v) else v for n, v in params.items()}


def forward(cp, f, x, y, b, reduce, params):
    """(result, log-sum-exps or None)."""
    found = pairwise(
        f, *on_device(cp, x, y, b), reduce=reduce, params=device_params(cp, params), return_lse=True
    )
    return found if isinstance(found, tuple) else (found, None)


def square(x, y):
    return ((x[:, None] - y) ** 2).sum(axis=-1)


# name: (pair function, parameters from D, kernel matrix)
KERNELS = {
    "gaussian": (
        lambda x, y, ell: sp.exp(-(x - y).dot(x - y) / (2 * ell**2)),
        lambda d: {"ell": 0.7 * d**0.5},
        lambda x, y, ell: np.exp(-square(x, y) / (2 * ell**2)),
    ),
    "each axis its scale": (
        lambda x, y, ell: sp.exp(-sum(((x[k] - y[k]) / ell[k]) ** 2 for k in range(len(x))) / 2),
        lambda d: {"ell": d**0.5 * (0.5 + np.arange(d) / d)},
        lambda x, y, ell: np.exp(-square(x / ell, y / ell) / 2),
    ),
    "laplace plus polynomial": (
        lambda x, y, a, c: (
            sp.exp(-a * sum(sp.Abs(x[k] - y[k]) for k in range(len(x)))) + c * (x.dot(y) + 1) ** 2
        ),
        lambda d: {"a": 2.0 / d, "c": 0.1 / d},
        lambda x, y, a, c: (
            np.exp(-a * np.abs(x[:, None] - y).sum(axis=-1)) + c * (x @ y.T + 1) ** 2
        ),
    ),
    "single components": (
        lambda x, y, p: sp.cos(x[0] * y[1] - p[1] * x[1] * y[0]) + p[0] * x.dot(y) * x[0],
        lambda d: {"p": np.array([0.2, -0.3])},
        lambda x, y, p: (
            np.cos(np.outer(x[:, 0], y[:, 1]) - p[1] * np.outer(x[:, 1], y[:, 0]))
            + p[0] * (x @ y.T) * x[:, :1]
        ),
    ),
    "no parameter": (
        lambda x, y: sp.tanh(x.dot(y) / len(x)),
        lambda d: {},
        lambda x, y: np.tanh(x @ y.T / x.shape[1]),
    ),
}


def reference(k, b, reduce):
    """The reduction of a whole kernel matrix, with log-sum-exps."""
    p = np.exp(k - k.max())
    lse = np.log(p.sum(axis=1)) + k.max()
    if reduce == "sum":
        return k @ b, lse
    if reduce == "logsumexp":
        return np.log(p @ b) + k.max(), lse
    return (p @ b) / (p.sum(axis=1) if b.ndim == 1 else p.sum(axis=1, keepdims=True)), lse


# name, D, columns of b (0: a vector, None: no b), reduction, dtype, processors
CASES = [
    ("gaussian", 3, 0, "sum", np.float32, 1),
    ("gaussian", 3, 5, "softmax", np.float32, 4),
    ("gaussian", 1, 1, "sum", np.float64, 4),
    ("gaussian", 2, None, "logsumexp", np.float64, 1),
    ("gaussian", 70, 2, "sum", np.float32, 4),
    ("gaussian", 128, 40, "softmax", np.float32, 4),
    ("gaussian", 128, 1, "sum", np.float64, 1),
    ("each axis its scale", 5, 3, "sum", np.float32, 4),
    ("each axis its scale", 33, 0, "softmax", np.float64, 4),
    ("laplace plus polynomial", 16, 0, "logsumexp", np.float32, 4),
    ("laplace plus polynomial", 6, 33, "sum", np.float64, 1),
    ("single components", 4, 2, "sum", np.float64, 4),
    ("single components", 40, 1, "softmax", np.float32, 1),
    ("no parameter", 7, 2, "softmax", np.float64, 4),
]


def problem(d, columns, dtype, reduce):
    rng = np.random.default_rng(d)
    x, y = rng.normal(size=(N, d)).astype(dtype), rng.normal(size=(M, d)).astype(dtype)
    if columns is None:
        return x, y, None
    b = rng.normal(size=(M, columns) if columns else M).astype(dtype)
    return x, y, np.abs(b) if reduce == "logsumexp" else b


def relative(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "d", "columns", "reduce", "dtype", "processors"), CASES)
def test_value_and_cotangents(name, d, columns, reduce, dtype, processors):
    f, make, matrix = KERNELS[name]
    params = make(d)
    x, y, b = problem(d, columns, dtype, reduce)
    rows = N if b is None or b.ndim == 1 else (N, b.shape[1])
    out_bar = np.random.default_rng(1).normal(size=rows).astype(dtype)
    with standin(processors) as cp:
        given = device_params(cp, params)
        out, lse = forward(cp, f, x, y, b, reduce, params)
        bars = gpu_vjp(
            f, *on_device(cp, x, y, b), out, cp.asarray(out_bar), lse=lse, reduce=reduce, params=given
        )
        out, lse = out.get(), None if lse is None else lse.get()
        found = {"x": bars.x.get(), "y": bars.y.get(), "b": None if bars.b is None else bars.b.get()}
        found_params = {name: bar.get() for name, bar in bars.params.items()}
    exact = [None if a is None else a.astype(np.float64) for a in (x, y, b)]
    weights = np.ones(M) if b is None else exact[2]
    expected, expected_lse = reference(matrix(exact[0], exact[1], **params), weights, reduce)
    bound = 3e-6 if dtype == np.float32 else 1e-13
    assert out.dtype == dtype and out.shape == expected.shape
    assert relative(out, expected) < bound
    if reduce == "softmax":
        assert relative(lse, expected_lse) < bound
    wanted = pairwise_vjp(
        f, *exact, expected, out_bar.astype(float), lse=expected_lse, reduce=reduce, params=params
    )
    for argument in ("x", "y") if b is None else ("x", "y", "b"):
        bar, right = found[argument], getattr(wanted, argument)
        assert bar.shape == right.shape and bar.dtype == dtype
        assert relative(bar, right) < 4 * bound, argument
    assert (found["b"] is None) == (b is None)
    for parameter, right in wanted.params.items():
        assert relative(found_params[parameter], right) < 10 * bound, parameter


@pytest.mark.thorough
def test_any_order_of_threads_gives_the_same_bits():
    f, make, _ = KERNELS["gaussian"]
    x, y, b = problem(70, 2, np.float32, "softmax")
    found = []
    with standin(4) as cp:
        arrays, params = on_device(cp, x, y, b), device_params(cp, make(70))
        for order in ("forward", "reverse", "random"):
            with schedule(order, seed=3):
                out, lse = pairwise(f, *arrays, reduce="softmax", params=params, return_lse=True)
                ones = cp.ones(out.shape, np.float32)
                bars = gpu_vjp(f, *arrays, out, ones, lse=lse, reduce="softmax", params=params)
            found.append([a.get().tobytes() for a in (out, lse, bars.x, bars.y, bars.b, bars.params["ell"])])
    assert found[0] == found[1] == found[2]


@pytest.mark.thorough
def test_two_level_sums_keep_single_precision_accurate():
    x, y = np.zeros((1, 2), np.float32), np.zeros((100_000, 2), np.float32)
    b = np.random.default_rng(0).uniform(0.5, 1.5, 100_000).astype(np.float32)
    with standin() as cp:
        (found,) = forward(cp, KERNELS["gaussian"][0], x, y, b, "sum", {"ell": 1.0})[0].get()
    expected = b.astype(np.float64).sum()
    naive = np.cumsum(b, dtype=np.float32)[-1]
    assert abs(found - expected) < 0.1 * abs(naive - expected)
    assert abs(found - expected) < 2e-6 * expected


@pytest.mark.thorough
def test_a_function_that_reads_another_value_gets_other_kernels():
    x, y, _ = problem(3, 1, np.float64, "sum")
    factor = 1

    def f(a, b):
        return factor * a.dot(b)

    with standin() as cp:
        once = forward(cp, f, x, y, None, "sum", {})[0].get()
        factor = 3
        thrice = forward(cp, f, x, y, None, "sum", {})[0].get()
    np.testing.assert_allclose(once, (x @ y.T).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(thrice, 3 * once, rtol=1e-12)


def test_a_second_call_prints_nothing():
    x, y, b = problem(3, 1, np.float64, "sum")
    with standin() as cp:
        for ell in (1.0, 2.0):
            forward(cp, KERNELS["gaussian"][0], x, y, b, "sum", {"ell": ell})
        assert kernel_of.cache_info().misses == 1


def test_empty_point_sets():
    f = KERNELS["gaussian"][0]
    x, y = np.zeros((3, 2)), np.zeros((0, 2))
    with standin() as cp:
        np.testing.assert_array_equal(forward(cp, f, x, y, None, "sum", {"ell": 1.0})[0].get(), np.zeros(3))
        zeros, ones = cp.asarray(np.zeros(3)), cp.asarray(np.ones(3))
        bars = gpu_vjp(f, cp.asarray(x), cp.asarray(y), None, zeros, ones, params={"ell": 1.0})
        assert bars.y.shape == (0, 2) and not bars.x.get().any() and bars.params["ell"].get() == 0
        assert np.isneginf(forward(cp, f, x, y, None, "logsumexp", {"ell": 1.0})[0].get()).all()


def test_errors():
    f = KERNELS["gaussian"][0]
    with standin() as cp:
        wide, points = cp.asarray(np.zeros((3, 129))), cp.asarray(np.zeros((3, 2)))
        with pytest.raises(ShapeError, match="at most 128"):
            pairwise(f, wide, wide, params={"ell": 1.0})
        with pytest.raises(TypeError, match="give a number or a "):
            pairwise(f, points, points, params={"ell": memory_of(np.ones(2))})
        row = cp.asarray(np.zeros(3))
        with pytest.raises(ShapeError, match=r"out_bar has shape \(2,\)"):
            gpu_vjp(f, points, points, None, row, cp.asarray(np.zeros(2)), params={"ell": 1.0})


def memory_of(array):
    """An array of another library, as far as shape and dtype tell."""

    class Other:
        shape, dtype, ndim = array.shape, array.dtype, array.ndim

    return Other()


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "d", "columns", "reduce", "dtype", "processors"), CASES)
def test_on_a_device(name, d, columns, reduce, dtype, processors):
    import cupy

    f, make, matrix = KERNELS[name]
    params = make(d)
    x, y, b = problem(d, columns, dtype, reduce)
    device = [None if a is None else cupy.asarray(a) for a in (x, y, b)]
    on_device = {n: cupy.asarray(v) if np.ndim(v) else v for n, v in params.items()}
    out = pairwise(f, *device, reduce=reduce, params=on_device)
    exact = [None if a is None else a.astype(np.float64) for a in (x, y, b)]
    weights = np.ones(M) if b is None else exact[2]
    expected, lse = reference(matrix(exact[0], exact[1], **params), weights, reduce)
    bound = 3e-6 if dtype == np.float32 else 1e-13
    assert relative(out.get(), expected) < bound
    out_bar = np.random.default_rng(1).normal(size=out.shape).astype(dtype)
    device_lse = cupy.asarray(lse.astype(dtype))
    bars = [
        gpu_vjp(f, *device, out, cupy.asarray(out_bar), lse=device_lse,
                            reduce=reduce, params=on_device)
        for _ in range(2)
    ]  # fmt: skip
    wanted = pairwise_vjp(
        f, *exact, expected, out_bar.astype(float), lse=lse, reduce=reduce, params=params
    )
    for argument in ("x", "y") if b is None else ("x", "y", "b"):
        first, second = (getattr(bar, argument).get() for bar in bars)
        np.testing.assert_array_equal(first, second)
        assert relative(first, getattr(wanted, argument)) < 4 * bound
    for parameter, right in wanted.params.items():
        assert relative(bars[0].params[parameter].get(), right) < 10 * bound


@pytest.mark.gpu
def test_arrays_of_two_libraries_are_refused():
    import cupy

    x = np.zeros((3, 2), np.float32)
    with pytest.raises(TypeError, match=r"takes cupy\.ndarray"):
        pairwise(KERNELS["no parameter"][0], x, cupy.asarray(x))


def test_numpy_arrays_stay_on_the_cpu():
    f, _, matrix = KERNELS["no parameter"]
    x, y, b = problem(3, 2, np.float64, "sum")
    expected = matrix(x, y) @ b
    np.testing.assert_allclose(pairwise(f, x, y, b), expected, rtol=1e-11)
    bars = gpu_vjp(f, x, y, b, expected, np.ones_like(expected))
    np.testing.assert_allclose(bars.b, matrix(x, y).sum(axis=0)[:, None] + 0 * b, rtol=1e-11)
