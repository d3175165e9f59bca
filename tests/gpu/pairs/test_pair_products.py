"""Kernel sums on tensor cores: values, the guaranteed error bounds, and the cases in which they are used."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import sympy as sp

import symad
from symad.gpu.eager import pairwise, pairwise_vjp
from symad.gpu.pairs.kernel_text import has_products, plan, products_source
from symad.numeric import lower
from symad.numeric.pairs.pair_functions import trace_pair
from tests.gpu import nvrtc
from tests.gpu.cupy_agreement import WHERE, library
from tests.gpu.cupy_standin import cuda
from tests.gpu.shim.driver import schedule

pytestmark = pytest.mark.thorough

KINDS = ("tf32x3", "bf16")
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def gaussian(x, y, ell):
    return sp.exp(-(x - y).dot(x - y) / (2 * ell**2))


def distance(x, y):
    return (x - y).dot(x - y)


def product(x, y):
    return x.dot(y)


def values(f, x, y, b, kind, reduce="sum", **params):
    with library() as cp, symad.gpu.options(pair_products=kind):
        return pairwise(f, *map(cp.asarray, (x, y, b)), reduce=reduce, params=params).get()


@needs_compiler
@pytest.mark.parametrize(("kind", "bound"), [("tf32x3", 3e-6), ("bf16", 0.02)])
@pytest.mark.parametrize("reduce", ["sum", "logsumexp", "softmax"])
@pytest.mark.parametrize(("d", "columns"), [(45, 11), (128, 5)])
def test_values(d, columns, reduce, kind, bound):
    rng = np.random.default_rng(d)
    x, y = (rng.normal(size=(rows, d)).astype("f4") for rows in (70, 131))
    b = rng.uniform(0.5, 1.5, 131 if reduce == "logsumexp" else (131, columns)).astype("f4")
    found = values(gaussian, x, y, b, kind, reduce, ell=0.7 * d**0.5)
    squares = ((x[:, None].astype(float) - y) ** 2).sum(axis=-1)
    matrix, weights = np.exp(-squares / (2 * 0.49 * d)), b.astype(float)
    powers = np.exp(matrix)
    expected = {
        "sum": matrix @ weights,
        "logsumexp": np.log(powers @ weights),
        "softmax": powers @ weights / powers.sum(axis=1).reshape(-1, *(1,) * (b.ndim - 1)),
    }[reduce]
    assert np.abs(found - expected).max() < bound * np.abs(expected).max()


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [32, 128])
@pytest.mark.parametrize("case", ["centered", "far from the origin", "nearly equal", "of one sign"])
def test_errors_are_below_the_bounds(case, d, kind):
    """Each pair by itself: the weights are the identity."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 16, d))
    x, y = {
        "centered": (x, y),
        "far from the origin": (x + 30, y + 30),
        "nearly equal": (x, x + 1e-3 * y),
        "of one sign": (np.abs(x) * 3, np.abs(y) * 3),
    }[case]
    x, y = x.astype("f4"), y.astype("f4")
    eye = np.eye(16, dtype="f4")
    exact_x, exact_y = x.astype(float), y.astype(float)
    nx, ny = (np.sqrt((a**2).sum(axis=1)) for a in (exact_x, exact_y))
    squares = ((exact_x[:, None] - exact_y) ** 2).sum(axis=-1)
    found = values(distance, x, y, eye, kind).astype(float)
    if kind == "tf32x3":
        assert (np.abs(found - squares) <= 2.0**-19 * (nx[:, None] ** 2 + ny**2)).all()
    else:
        rounding = 2.0**-19 * (nx[:, None] ** 2 + ny**2)  # of the sums, in float32
        wrong = np.abs(np.sqrt(np.maximum(found, 0)) - np.sqrt(squares)) > 2.0**-8 * (nx[:, None] + ny)
        assert not (wrong & (np.abs(found - squares) > rounding)).any()
    products = values(product, x, y, eye, kind).astype(float)
    unit = {"tf32x3": 2.0**-20, "bf16": 2.0**-7}[kind]
    assert (np.abs(products - exact_x @ exact_y.T) <= unit * nx[:, None] * ny).all()


def laplacian(x, y, ell):
    return sp.exp(-sp.sqrt((x - y).dot(x - y)) / ell)


@needs_compiler
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(("kind", "bound"), [("tf32x3", 1e-5), ("bf16", 0.03)])
@pytest.mark.parametrize("reduce", ["sum", "logsumexp", "softmax"])
@pytest.mark.parametrize(("f", "d", "columns"), [(gaussian, 45, 11), (laplacian, 128, 5)])
def test_gradients(f, d, columns, reduce, kind, bound, where):
    """Of the points, the weights and the parameter, against differentiation in torch in float64."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(d)
    x, y = (rng.normal(size=(rows, d)).astype("f4") for rows in (70, 131))
    b = rng.uniform(0.5, 1.5, (131, 1 if reduce == "logsumexp" else columns)).astype("f4")
    bar = rng.normal(size=(70, b.shape[1])).astype("f4")
    given, ell = b[:, 0] if reduce == "logsumexp" else b, 0.7 * d**0.5
    with library(where) as cp, symad.gpu.options(pair_products=kind):
        arrays = [cp.asarray(np.ascontiguousarray(a)) for a in (x, y, given)]
        found = pairwise(f, *arrays, reduce=reduce, params={"ell": ell}, return_lse=reduce == "softmax")
        out, lse = found if reduce == "softmax" else (found, None)
        out_bar = cp.asarray(bar[:, 0] if reduce == "logsumexp" else bar)
        runs = []
        for order in ("forward", "random"):
            with schedule(order, seed=5):
                runs.append(
                    pairwise_vjp(f, *arrays, out, out_bar, lse=lse, reduce=reduce, params={"ell": ell})
                )
        bars, again = ([a.get() for a in (r.x, r.y, r.b, r.params["ell"])] for r in runs)
    tensors = [torch.tensor(np.asarray(a, float), requires_grad=True) for a in (x, y, b, ell)]
    tx, ty, tb, tell = tensors
    squares = ((tx[:, None] - ty) ** 2).sum(dim=-1)
    power = -squares / (2 * tell**2) if f is gaussian else -torch.sqrt(squares) / tell
    k = torch.exp(power)
    k.retain_grad()
    value = {
        "sum": lambda: k @ tb,
        "logsumexp": lambda: torch.log(torch.exp(k) @ tb),
        "softmax": lambda: torch.softmax(k, dim=-1) @ tb,
    }[reduce]()
    (value * torch.tensor(bar.astype(float))).sum().backward()
    slope = -(2 if f is gaussian else 1) * k * power / tell  # what is summed for the parameter may cancel
    sizes = [None, None, None, (slope * k.grad).abs().sum().item()]
    for got, other, tensor, size in zip(bars, again, tensors, sizes, strict=True):
        exact = tensor.grad.numpy().reshape(got.shape)
        assert np.abs(got - exact).max() < bound * (size or np.abs(exact).max())
        assert got.tobytes() == other.tobytes()


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [33, 128])
@pytest.mark.parametrize("case", ["centered", "far from the origin", "nearly equal"])
def test_errors_of_gradients_are_below_the_bounds(case, d, kind):
    """Each pair by itself: x̄_i = A y_i + B x_i, where every x_i meets y_i alone."""
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 16, d))
    x, y = {
        "centered": (x, y),
        "far from the origin": (x + 30, y + 30),
        "nearly equal": (x, x + 1e-3 * y),
    }[case]
    x, y, eye = x.astype("f4"), y.astype("f4"), np.eye(16, dtype="f4")
    unit = {"tf32x3": 2.0**-19, "bf16": 2.0**-7}[kind]
    nx, ny = (np.linalg.norm(a.astype(float), axis=1) for a in (x, y))
    with library() as cp, symad.gpu.options(pair_products=kind):
        arrays = [cp.asarray(a) for a in (x, y, eye)]
        for f, a, b in ((product, 1, 0), (distance, -2, 2)):
            out = pairwise(f, *arrays)
            bars = pairwise_vjp(f, *arrays, out, cp.asarray(eye))
            room = unit * (abs(a) * ny + abs(b) * nx)
            exact = a * y.astype(float) + b * x.astype(float)
            assert (np.linalg.norm(bars.x.get() - exact, axis=1) <= room).all()
            exact = a * x.astype(float) + b * y.astype(float)
            room = unit * (abs(a) * nx + abs(b) * ny)
            assert (np.linalg.norm(bars.y.get() - exact, axis=1) <= room).all()


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
def test_squares_are_not_negative(kind):
    """Points that are equal, whose distance may be rounded below 0, where a root is not a number."""
    x = (np.random.default_rng(6).normal(size=(70, 64)) * 7 + 3).astype("f4")
    found = values(lambda x, y: sp.sqrt((x - y).dot(x - y)), x, x, np.eye(70, dtype="f4"), kind)
    assert np.isfinite(found).all()
    negative = values(lambda x, y: sp.sqrt(x.dot(x)) + 0 * y[0], x, x, np.ones(70, "f4"), kind)
    np.testing.assert_allclose(negative, 70 * np.linalg.norm(x.astype(float), axis=1), rtol=0.01)


@needs_compiler
def test_orders_of_threads():
    rng = np.random.default_rng(1)
    x, y = (rng.normal(size=(rows, 32)).astype("f4") for rows in (20, 70))
    b = rng.normal(size=(70, 2)).astype("f4")
    found = []
    for order in ("forward", "reverse", "random"):
        with schedule(order, seed=5):
            found.append(values(gaussian, x, y, b, "tf32x3", ell=4.0))
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


def test_where_they_are_used():
    def text(f, d, dtype="float32", kind="tf32x3"):
        graph = symad.trace(lambda x, y: symad.functions.pairwise(f, x, y), [(9, d), (8, d)])
        with symad.gpu.options(pair_products=kind):
            return lower(graph, backend="cupy", dtype=dtype).source

    used = "void __launch_bounds__(THREADS, 2)\n    pair_products("
    assert used in text(distance, 32)
    assert used not in text(distance, 32, kind="off")
    assert used in text(distance, 128)
    assert used not in text(distance, 31)
    assert used not in text(distance, 129)  # no error bounds are given for it
    assert used not in text(distance, 32, "float64")
    assert used not in text(lambda x, y: sum(sp.Abs(a - b) for a, b in zip(x, y, strict=True)), 32)
    assert used not in text(lambda x, y: x.dot(y) * x[0], 32)
    with pytest.raises(ValueError, match="none of"), symad.gpu.options(pair_products="fp8"):
        pass


@needs_compiler
def test_an_older_device_takes_ordinary_arithmetic(monkeypatch):
    x = np.random.default_rng(0).normal(size=(9, 40)).astype("f4")
    monkeypatch.setattr(cuda.Device, "compute_capability", "75")
    found = values(lambda a, b: a.dot(b) + 1, x, x, np.ones(9, "f4"), "bf16")
    np.testing.assert_allclose(found, (x.astype(float) @ x.T + 1).sum(axis=1), rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(nvrtc.library() is None, reason="needs the wheel nvidia-cuda-nvrtc")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("d", "columns", "reduce"), [(32, 1, "sum"), (64, 8, "softmax"), (128, 8, "softmax")]
)
def test_the_kernel_compiles_for_tensor_cores(d, columns, reduce, kind, arch):
    function = trace_pair(gaussian, d, {"ell": None})
    assert has_products(function)
    source = "".join(products_source(function, plan(function, columns, "float"), reduce, kind))
    cubin, kernels = nvrtc.compile_text(source, arch)
    names = ("pair_products", "pair_products_rows", "pair_products_columns")
    assert all(kernels[name].spilled == 0 for name in names)
    if nvrtc.disassembler() is not None:
        assert nvrtc.instructions(cubin)["HMMA"] > 0
