"""Sums over pairs in CuPy code: streaming kernels launched by a standalone file, against NumPy code."""

import shutil

import numpy as np
import pytest
import sympy as sp

import symad
from symad.functions import pairwise
from tests.gpu.cupy_agreement import WHERE, agree

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def gaussian(x, y, ell):
    return sp.exp(-(x - y).dot(x - y) / (2 * ell**2))


def weighted(x, y, w, c):
    return sum(w[k] * x[k] * y[k] for k in range(3)) - c * sp.Abs(x[0] - y[2])


def draw(shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.uniform(0.3, 1.2, s)) for s in shapes]


def loss_of(f, names, reduce):
    def loss(x, y, b, *params):
        out = pairwise(f, x, y, b, reduce=reduce, params=dict(zip(names, params, strict=True)))
        return (out**2).sum()

    return loss


CASES = [
    (gaussian, {"ell": ()}, "sum", (7,)), (gaussian, {"ell": ()}, "softmax", (7, 2)),
    (weighted, {"w": (3,), "c": ()}, "logsumexp", (7,)), (weighted, {"w": (3,), "c": ()}, "sum", (7, 2)),
]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-11), ("float32", 2e-5)])
@pytest.mark.parametrize(("f", "sizes", "reduce", "b"), CASES)
def test_value_and_gradients(f, sizes, reduce, b, dtype, rtol, where):
    shapes = [(9, 3), (7, 3), b, *sizes.values()]
    graph = symad.value_and_gradient(symad.trace(loss_of(f, sizes, reduce), shapes))
    kernel = agree(graph, draw(shapes), dtype, rtol, where)
    assert '"pair_backward_columns"' in kernel.source
    assert ".item()" not in kernel.source


@pytest.mark.parametrize("where", WHERE)
def test_half_precision_and_log_sum_exps(where):
    shapes = [(9, 3), (7, 3), (7, 2), ()]
    graph = symad.trace(
        lambda x, y, b, ell: pairwise(
            gaussian, x, y, b, reduce="softmax", params={"ell": ell}, return_lse=True
        ),
        shapes,
    )
    agree(graph, draw(shapes), "float16", 4e-3, where)


@pytest.mark.thorough
def test_second_derivatives_and_long_points_follow_the_definition():
    shapes = [(4, 3), (5, 3), (5,), ()]
    graph = symad.hvp(symad.trace(loss_of(gaussian, ["ell"], "softmax"), shapes))
    agree(graph, [*draw(shapes), *draw(shapes, 1)], rtol=1e-10)
    shapes = [(2, 130), (3, 130), (3,), ()]
    kernel = agree(symad.trace(loss_of(gaussian, ["ell"], "sum"), shapes), draw(shapes))
    assert "pair_forward" not in kernel.source


@pytest.mark.thorough
def test_numbers_of_points_may_be_symbols():
    n, m = sp.symbols("n m", integer=True, positive=True)
    graph = symad.gradient(symad.trace(loss_of(gaussian, ["ell"], "sum"), [(n, 2), (m, 2), (m,), ()]))
    kernel = agree(graph, draw([(5, 2), (6, 2), (6,), ()]))
    assert '"pair_backward_rows"' in kernel.source
