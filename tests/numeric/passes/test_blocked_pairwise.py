"""Blocked kernel sums against the whole kernel matrix, and their cotangents."""

import numpy as np
import pytest
import sympy as sp

from symad.errors import ShapeError, TraceError
from symad.numeric.compiler import c_compiler
from symad.numeric.eager import pairwise as eager_pairwise
from symad.numeric.eager.calls import COMPILED, NUMPY, kernel_of
from symad.numeric.eager.pairwise import pairwise, pairwise_vjp
from symad.numeric.pairs.pair_functions import trace_pair

N, M, D, E = 41, 58, 4, 3
RNG = np.random.default_rng(0)
X, Y, WEIGHTS = RNG.normal(size=(N, D)), RNG.normal(size=(M, D)), RNG.normal(size=(M, E))
SCALES = np.array([1.0, 2.0, 0.7, 1.4])


def square(x, y):
    return ((x[:, None] - y) ** 2).sum(axis=-1)


def matern(x, y, ell):
    r = sp.sqrt((x - y).dot(x - y) + sp.Float(1e-12))
    return (1 + r / ell) * sp.exp(-r / ell)


def matern_matrix(x, y, ell):
    r = np.sqrt(square(x, y) + 1e-12)
    return (1 + r / ell) * np.exp(-r / ell)


# name: (pair function, parameters, the kernel matrix)
KERNELS = {
    "gaussian": (
        lambda x, y, ell: sp.exp(-(x - y).dot(x - y) / (2 * ell**2)),
        {"ell": 1.3},
        lambda x, y, ell: np.exp(-square(x, y) / (2 * ell**2)),
    ),
    "each axis its scale": (
        lambda x, y, ell: sp.exp(-sum(((x[k] - y[k]) / ell[k]) ** 2 for k in range(D)) / 2),
        {"ell": SCALES},
        lambda x, y, ell: np.exp(-square(x / ell, y / ell) / 2),
    ),
    "laplace": (
        lambda x, y, a: sp.exp(-a * sum(sp.Abs(x[k] - y[k]) for k in range(D))),
        {"a": 0.6},
        lambda x, y, a: np.exp(-a * np.abs(x[:, None] - y).sum(axis=-1)),
    ),
    "polynomial": (
        lambda x, y, c: (x.dot(y) / 3 + c) ** 3,
        {"c": 0.5},
        lambda x, y, c: (x @ y.T / 3 + c) ** 3,
    ),
    "matern": (matern, {"ell": 0.9}, matern_matrix),
    "periodic": (
        lambda x, y, p: sp.exp(-2 * sum(sp.sin(p * (x[k] - y[k])) ** 2 for k in range(D))),
        {"p": 0.8},
        lambda x, y, p: np.exp(-2 * (np.sin(p * (x[:, None] - y)) ** 2).sum(axis=-1)),
    ),
    "single components": (
        lambda x, y, p: sp.cos(x[0] * y[1] - p[1] * x[1] * y[0]) * sp.exp(x.dot(y) / 9) + p[0],
        {"p": np.array([0.4, -0.3])},
        lambda x, y, p: (
            np.cos(np.outer(x[:, 0], y[:, 1]) - p[1] * np.outer(x[:, 1], y[:, 0])) * np.exp(x @ y.T / 9)
            + p[0]
        ),
    ),
}


def reference(k, b, reduce):
    """The reduction of a whole kernel matrix."""
    if reduce == "sum":
        return k @ b
    p = np.exp(k - k.max())
    if reduce == "logsumexp":
        return np.log(p @ b) + k.max()
    return p @ b / (p.sum(axis=1) if b.ndim == 1 else p.sum(axis=1, keepdims=True))


CASES = [(n, r, False) for n in KERNELS for r in ("sum", "logsumexp", "softmax")]
CASES += [(n, "sum", True) for n in ("gaussian", "each axis its scale", "laplace", "single components")]


def settle(monkeypatch, compiled):
    """Whether sums over few pairs are compiled too."""
    if compiled:
        monkeypatch.setattr(eager_pairwise, "MIN_COMPILED_PAIRS", 1)


def weights(reduce):
    return np.abs(WEIGHTS[:, 0]) if reduce == "logsumexp" else WEIGHTS


@pytest.mark.parametrize(("name", "reduce", "compiled"), CASES)
def test_equals_the_kernel_matrix(name, reduce, compiled, monkeypatch):
    settle(monkeypatch, compiled)
    f, params, matrix = KERNELS[name]
    b = weights(reduce)
    found = pairwise(f, X, Y, b, reduce=reduce, params=params)
    np.testing.assert_allclose(found, reference(matrix(X, Y, **params), b, reduce), rtol=1e-11)


def directional(function, value, direction, step=1e-3):
    """d/dε function(value + ε direction) at 0, to O(step⁴)."""
    ends = [function(value + c * step * direction) for c in (-2, -1, 1, 2)]
    return (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step)


@pytest.mark.sample(12)
@pytest.mark.parametrize(("name", "reduce", "compiled"), CASES)
def test_cotangents_are_derivatives_of_the_kernel_matrix(name, reduce, compiled, monkeypatch):
    settle(monkeypatch, compiled)
    f, params, matrix = KERNELS[name]
    b = weights(reduce)
    rng = np.random.default_rng(7)
    lse = None
    out = pairwise(f, X, Y, b, reduce=reduce, params=params)
    if reduce == "softmax":
        lse = pairwise(f, X, Y, b, reduce=reduce, params=params, return_lse=True)[1]
    out_bar = rng.normal(size=out.shape)
    found = pairwise_vjp(f, X, Y, b, out, out_bar, lse=lse, reduce=reduce, params=params)

    def loss(x=X, y=Y, b=b, **changed):
        return (reference(matrix(x, y, **{**params, **changed}), b, reduce) * out_bar).sum()

    bars = {"x": found.x, "y": found.y, "b": found.b, **found.params}
    for argument, value in {"x": X, "y": Y, "b": b, **params}.items():
        direction = rng.normal(size=np.shape(value))
        if name == "laplace" and argument in "xy":
            direction = np.sign(direction) * 1e-3  # no kink of |x − y| within the steps
        expected = directional(lambda a, n=argument: loss(**{n: a}), value, direction)
        computed = (bars[argument] * direction).sum()
        np.testing.assert_allclose(computed, expected, rtol=2e-7, atol=1e-7)


def test_expressions_in_matrix_symbols_and_indexed_bases():
    ell = sp.Symbol("ell", positive=True)
    expected = np.exp(-square(X, Y) / (2 * 1.3**2)) @ WEIGHTS
    x, y = sp.MatrixSymbol("x", D, 1), sp.MatrixSymbol("y", D, 1)
    matrix = sp.exp(-((x - y).T * (x - y))[0, 0] / (2 * ell**2))
    x, y, k = sp.IndexedBase("x"), sp.IndexedBase("y"), sp.Symbol("k", integer=True)
    indexed = sp.exp(-sp.Sum((x[k] - y[k]) ** 2, (k, 0, D - 1)) / (2 * ell**2))
    for expression in (matrix, indexed):
        found = pairwise(expression, X, Y, WEIGHTS, params={"ell": 1.3})
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_sums_over_components_are_found_whatever_the_dimension():
    for dimension in (2, 3, 17, 128):
        traced = trace_pair(KERNELS["gaussian"][0], dimension, {"ell": None})
        assert len(traced.sums) == 1 and traced.loose == ()
    mixed = trace_pair(lambda x, y: x.dot(y) + x.dot(x) * sp.exp(2 * x.dot(y)) + x[0], 5)
    assert len(mixed.sums) == 2 and mixed.loose == (0,)


def test_no_weights_and_a_vector_of_weights():
    f, params, matrix = KERNELS["gaussian"]
    k = matrix(X, Y, **params)
    np.testing.assert_allclose(pairwise(f, X, Y, params=params), k.sum(axis=1), rtol=1e-12)
    vector = pairwise(f, X, Y, WEIGHTS[:, 0], params=params)
    np.testing.assert_allclose(vector, k @ WEIGHTS[:, 0], rtol=1e-10)
    lse = pairwise(f, X, Y, reduce="logsumexp", params=params)
    np.testing.assert_allclose(lse, np.log(np.exp(k).sum(axis=1)), rtol=1e-12)
    found = pairwise_vjp(f, X, Y, None, lse, np.ones(N), reduce="logsumexp", params=params)
    assert found.b is None


def test_single_precision():
    f, params, matrix = KERNELS["gaussian"]
    single = [a.astype(np.float32) for a in (X, Y, WEIGHTS)]
    found = pairwise(f, *single, params=params)
    assert found.dtype == np.float32
    expected = matrix(*(a.astype(float) for a in single[:2]), **params) @ WEIGHTS
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_far_logits_do_not_overflow():
    found = pairwise(lambda x, y: 1000 * x.dot(y), X, Y, reduce="logsumexp")
    k = 1000 * X @ Y.T
    top = k.max(axis=1, keepdims=True)
    np.testing.assert_allclose(found, top[:, 0] + np.log(np.exp(k - top).sum(axis=1)), rtol=1e-12)


@pytest.mark.parametrize("reduce", ["sum", "logsumexp", "softmax"])
def test_several_blocks_equal_the_kernel_matrix(reduce):
    f, params, matrix = KERNELS["gaussian"]
    rng = np.random.default_rng(2)
    x, y, b = rng.normal(size=(300, 2)), rng.normal(size=(900, 2)), rng.uniform(0.2, 1, 900)
    out = pairwise(f, x, y, b, reduce=reduce, params=params, return_lse=True)
    out, lse = out if reduce == "softmax" else (out, None)
    k = matrix(x, y, **params)
    np.testing.assert_allclose(out, reference(k, b, reduce), rtol=1e-11)
    found = pairwise_vjp(f, x, y, b, out, np.ones_like(out), lse=lse, reduce=reduce, params=params)
    weights = k if reduce == "sum" else np.exp(k) / np.exp(k).sum(axis=1, keepdims=True)
    if reduce == "logsumexp":
        weights = np.exp(k) / (np.exp(k) @ b)[:, None]
    np.testing.assert_allclose(found.b, weights.sum(axis=0), rtol=1e-10)


def test_code_is_kept_by_the_formula_and_not_by_the_function():
    power = 1

    def f(x, y):
        return x.dot(y) ** power

    np.testing.assert_allclose(pairwise(f, X, Y), (X @ Y.T).sum(axis=1))
    known = kernel_of.cache_info().currsize
    pairwise(lambda x, y: x.dot(y), X, Y)
    assert kernel_of.cache_info().currsize == known  # another function of the same formula
    power = 2
    np.testing.assert_allclose(pairwise(f, X, Y), ((X @ Y.T) ** 2).sum(axis=1))


def used(monkeypatch):
    """The libraries that later calls compute with."""
    seen = []
    called = eager_pairwise.called

    def noted(nodes, outputs, dtype, values, library):
        seen.append(library)
        return called(nodes, outputs, dtype, values, library)

    monkeypatch.setattr(eager_pairwise, "called", noted)
    return seen


def test_sums_over_many_pairs_are_compiled_and_others_are_not(monkeypatch):
    f, params, _ = KERNELS["gaussian"]
    monkeypatch.setattr(eager_pairwise, "MIN_COMPILED_PAIRS", N * M)
    seen = used(monkeypatch)
    out = pairwise(f, X, Y, WEIGHTS, params=params)
    pairwise_vjp(f, X, Y, WEIGHTS, out, out, params=params)
    pairwise(f, X[1:], Y, WEIGHTS, params=params)
    pairwise(f, X, Y, reduce="logsumexp", params=params)
    assert seen == [COMPILED, COMPILED, NUMPY, NUMPY]


def test_without_a_compiler_blocks_compute_and_nothing_is_said(monkeypatch, recwarn):
    f, params, matrix = KERNELS["gaussian"]
    monkeypatch.setattr(eager_pairwise, "MIN_COMPILED_PAIRS", 1)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(c_compiler.shutil, "which", lambda name: None)
    seen = used(monkeypatch)
    found = pairwise(f, X, Y, WEIGHTS, params=params)
    assert seen == [NUMPY] and not recwarn.list
    np.testing.assert_allclose(found, matrix(X, Y, **params) @ WEIGHTS, rtol=1e-11)


def test_memory_grows_with_the_points_not_their_product():
    import tracemalloc

    def peak(points):
        x = np.random.default_rng(0).normal(size=(points, 3))
        pairwise(KERNELS["gaussian"][0], x, x, params={"ell": 1.0})  # the code is made
        tracemalloc.start()
        pairwise(KERNELS["gaussian"][0], x, x, params={"ell": 1.0})
        high = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return high

    long, short = peak(6000), peak(3000)
    assert long < 6000 * 6000 * 8 / 50
    assert long < 2.5 * short


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((X, Y[:, :3], None), {}, ShapeError, "same D"),
        ((X, Y, WEIGHTS[:-1]), {}, ShapeError, "b must be"),
        ((X, Y.astype(np.float32), None), {}, TypeError, "same for all"),
        ((X.tolist(), Y, None), {}, TypeError, "numeric.pairwise takes numpy"),
        ((X, Y, None), {"reduce": "mean"}, ValueError, "use one of sum"),
        ((X, Y, None), {"reduce": "softmax"}, ShapeError, "needs b"),
        ((X, Y, WEIGHTS), {"reduce": "logsumexp"}, ShapeError, "logsumexp takes"),
        ((X, Y, None), {"params": {"ell": 1.0, "w": 2.0}}, TraceError, "holds w"),
        ((X, Y, None), {"params": {}}, TraceError, "asks for parameter ell"),
    ],
)
def test_errors_name_what_is_wrong(arguments, options, error, message):
    options = {"params": {"ell": 1.0}} | options
    with pytest.raises(error, match=message):
        pairwise(KERNELS["gaussian"][0], *arguments, **options)


def test_errors_of_the_pair_function():
    with pytest.raises(TraceError, match="uses w"):
        pairwise(lambda x, y: x.dot(y) * sp.Symbol("w"), X, Y)
    with pytest.raises(TraceError, match="return a scalar"):
        pairwise(lambda x, y: x, X, Y)
    with pytest.raises(ShapeError, match=r"need shape \(4, 1\)"):
        pairwise(sp.MatrixSymbol("x", 3, 1)[0, 0], X, Y)


def test_a_parameter_may_have_the_name_of_an_argument():
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=(5, 2)), rng.normal(size=(4, 2))
    squares = ((x[:, None] - y) ** 2).sum(-1)

    def f(x, y, b):
        return sp.exp(-b * (x - y).dot(x - y))

    out = pairwise(f, x, y, params={"b": 0.7})
    np.testing.assert_allclose(out, np.exp(-0.7 * squares).sum(1), rtol=1e-13)
    bars = pairwise_vjp(f, x, y, None, out, np.ones(5), params={"b": 0.7})
    np.testing.assert_allclose(bars.params["b"], -(squares * np.exp(-0.7 * squares)).sum(), rtol=1e-12)
