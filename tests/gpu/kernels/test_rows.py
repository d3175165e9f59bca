"""Regions of rows as single kernels: layer norm and its gradients, and graphs that must not be joined."""

import shutil

import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.graph import topological
from symad.models.layers.normalization import layer_norm, rms_norm
from symad.numeric.fusion.nest import Nest
from symad.numeric.fusion.rows import fuse_rows
from tests.gpu.cupy_agreement import WHERE, agree

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
SHAPES = [(5, 3, 16), (16,), (16,)]


def draw(shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=s) for s in shapes]


def launches(source):
    """Kernels and reductions in the body of the entry point."""
    body = source[source.rindex("\ndef ") :]
    return sum(body.count(text) for text in ("_kernel_", ".sum(", "cp.tensordot", " @ "))


def groups(graph):
    made = fuse_rows(graph.output_nodes)
    return {n.op.body for n in topological(made) if isinstance(n.op, Nest)}


@pytest.mark.thorough
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
def test_norms_are_one_kernel(norm, where):
    shapes = SHAPES if norm is layer_norm else SHAPES[:2]
    graph = symad.trace(norm, shapes)
    kernel = agree(graph, draw(shapes), rtol=1e-12, where=where)
    assert launches(kernel.source) == 1
    for dtype, rtol in (("float32", 1e-5), ("float16", 1e-2)):
        agree(graph, draw(shapes), dtype, rtol, where)


@pytest.mark.sample(2)
@pytest.mark.parametrize("where", WHERE)
def test_value_and_gradients(where):
    """One kernel for all of the rows; sums over all rows remain."""
    graph = symad.value_and_gradient(symad.trace(lambda *a: (layer_norm(*a) ** 3).sum(), SHAPES))
    kernel = agree(graph, draw(SHAPES), rtol=1e-11, where=where)
    assert launches(kernel.source) <= 4
    assert len(groups(graph)) == 1


@pytest.mark.thorough
def test_hessian_vector_products():
    graph = symad.hvp(symad.trace(lambda *a: (layer_norm(*a) ** 3).sum(), SHAPES))
    agree(graph, [*draw(SHAPES), *draw(SHAPES, 1)], rtol=1e-9)


@pytest.mark.thorough
def test_a_path_that_leaves_a_region_does_not_come_back_to_it():
    """Norm, product, norm of the same shape: two kernels, the product between them."""

    def f(x, w):
        return layer_norm(layer_norm(x, np.ones(16)) @ w + x, np.ones(16))

    shapes = [(6, 16), (16, 16)]
    graph = symad.trace(f, shapes)
    assert len(groups(graph)) == 2
    agree(graph, draw(shapes), rtol=1e-11)
    both = symad.value_and_gradient(symad.trace(lambda x, w: (f(x, w) ** 2 * x).sum(), shapes))
    agree(both, draw(shapes), rtol=1e-10)


def test_rows_and_columns_of_a_square():
    """One vector is repeated along rows and along columns."""

    def f(x, v):
        y = x * v[:, None] + v
        return y / np.sum(np.abs(y) * v, axis=-1, keepdims=True) + np.sum(y, axis=-1)[:, None]

    agree(symad.trace(f, [(12, 12), (12,)]), draw([(12, 12), (12,)]), rtol=1e-11)


def test_results_per_row_and_conditions():
    def f(x, limit):
        centered = x - np.mean(x, axis=-1, keepdims=True)
        kept = np.where(centered > limit, centered, 0.1 * centered)
        total = np.sum(kept * centered, axis=-1)
        return kept / (1 + total[:, None]), total, np.sqrt(np.abs(total))

    graph = symad.trace(f, [(7, 20), ()])
    assert groups(graph)
    agree(graph, [*draw([(7, 20)]), 0.2], rtol=1e-11)


@pytest.mark.thorough
def test_symbolic_sizes_and_no_rows():
    n, d = sp.symbols("n d", integer=True, positive=True)
    graph = symad.trace(layer_norm, [(n, d), (d,), (d,)])
    kernel = agree(graph, draw([(4, 37), (37,), (37,)]), rtol=1e-12)
    assert launches(kernel.source) == 1
    agree(graph, draw([(0, 8), (8,), (8,)]))
