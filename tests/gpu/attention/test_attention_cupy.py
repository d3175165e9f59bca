"""Attention ops in CuPy code: tiled kernels launched by a standalone file, against NumPy code."""

import ast
import shutil

import numpy as np
import pytest
import sympy as sp

import symad
import symad.gpu
from symad.functions import attention
from symad.numeric import lower
from tests.gpu.cupy_agreement import WHERE, agree, library, on_device
from tests.gpu.foreign import Foreign

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
SHAPES = [(1, 4, 9, 8), (1, 2, 11, 8), (1, 2, 11, 6)]


def draw(shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=s) for s in shapes]


def capped(s, b, h, i, j, slope, cap):
    return cap * sp.tanh((s + slope[h] * (j - i)) / cap)


def window(b, h, i, j):
    return (i - j < 4) & (j - i < 3)


def causal_loss(q, k, v):
    out, lse = attention(q, k, v, causal=True, return_lse=True)
    return (out**2).sum() + lse.sum()


def scored_loss(q, k, v, slope, cap):
    params = {"slope": slope, "cap": cap}
    return (attention(q, k, v, score=capped, mask=window, params=params) ** 2).sum()


@pytest.mark.thorough
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-11), ("float32", 1e-5)])
def test_value_and_gradients(dtype, rtol, where):
    graph = symad.value_and_gradient(symad.trace(causal_loss, SHAPES))
    kernel = agree(graph, draw(SHAPES), dtype, rtol, where)
    assert "attention_backward_kv" in kernel.source


@pytest.mark.thorough
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(dtype, where):
    pytest.importorskip("ml_dtypes")
    """Log-sum-exps and parameters are float32 inside."""

    def f(q, k, v, slope):
        return attention(
            q, k, v, causal=True, return_lse=True, params={"slope": slope},
            score=lambda s, b, h, i, j, slope: s + slope[h] * (j - i),
        )  # fmt: skip

    shapes = [*SHAPES, (4,)]
    agree(symad.trace(f, shapes), draw(shapes), dtype, 3e-2, where)


@pytest.mark.thorough
@pytest.mark.parametrize("where", WHERE)
def test_learned_parameters(where):
    """A scalar, and a slope per head; no number comes back to the host for them."""
    shapes = [*SHAPES, (4,), ()]
    graph = symad.value_and_gradient(symad.trace(scored_loss, shapes))
    values = [*draw(shapes[:-1], 1), np.array(1.5)]
    kernel = agree(graph, values, "float64", 1e-10, where)
    assert ".item()" not in kernel.source
    assert ".get()" not in kernel.source


@pytest.mark.thorough
@pytest.mark.parametrize("where", WHERE)
def test_tables_documents_and_biases(where):
    """Cotangents of a relative table, of a bias for every pair, and a mask that reads an array."""
    n = 9
    document = np.array([0, 0, 0, 1, 1, 1, 1, 300, 300])

    def loss(q, k, v, table, bias):
        out = attention(
            q, k, v, params={"table": table, "bias": bias, "document": document},
            score=lambda s, b, h, i, j, table, bias: s + table[i - j + n - 1] + bias[h, i, j],
            mask=lambda b, h, i, j, document: sp.Eq(document[i], document[j]),
        )  # fmt: skip
        return (out**3).sum()

    shapes = [(1, 2, n, 4)] * 3 + [(2 * n - 1,), (2, n, n)]
    graph = symad.value_and_gradient(symad.trace(loss, shapes))
    agree(graph, draw(shapes, 2), "float64", 1e-10, where)


@pytest.mark.thorough
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-10), ("float32", 1e-4)])
def test_hessian_vector_products(dtype, rtol, where):
    graph = symad.hvp(symad.trace(scored_loss, [*SHAPES, (4,), ()]), wrt=[0, 1, 2])
    values = [*draw([*SHAPES, (4,)], 3), np.array(1.5)]
    kernel = agree(graph, [*values, *draw(SHAPES, 4)], dtype, rtol, where)
    for name in ("attention_tangent", "attention_second_q", "attention_second_kv"):
        assert f'"{name}"' in kernel.source


@pytest.mark.thorough
def test_moving_parameters_and_unknown_widths_use_the_definition():
    graph = symad.hvp(symad.trace(scored_loss, [*SHAPES, (4,), ()]), wrt=[3])
    values = [*draw([*SHAPES, (4,)], 5), np.array(1.5), draw([(4,)], 6)[0]]
    agree(graph, values, "float64", 1e-10)
    d = sp.Symbol("d", integer=True, positive=True)
    shapes = [(1, 1, 3, d)] * 3
    kernel = agree(symad.trace(causal_loss, shapes), draw([(1, 1, 3, 5)] * 3, 7))
    assert "attention_forward" not in kernel.source


@pytest.mark.thorough
def test_lengths_may_stay_symbols():
    n = sp.Symbol("n", integer=True, positive=True)
    graph = symad.gradient(symad.trace(causal_loss, [(1, 2, n, 8)] * 3))
    kernel = agree(graph, draw([(1, 2, 7, 8)] * 3, 8))
    assert "attention_backward_q" in kernel.source


@pytest.mark.thorough
def test_scales_of_both_signs_in_one_program():
    """The kernels fold a positive scale into the scores alone: the two do not share their text."""

    for order in ((0.7, -0.7), (-0.7, 0.7)):

        def value(q, k, v, order=order):
            return sum((attention(q, k, v, scale=c) ** 2).sum() for c in order)

        graph = symad.value_and_gradient(symad.trace(value, SHAPES))
        agree(graph, [3 * a for a in draw(SHAPES, 12)], "float32", 1e-4)


def test_wide_heads_use_the_definition():
    kernel = agree(symad.trace(causal_loss, [(1, 1, 3, 260)] * 3), draw([(1, 1, 3, 260)] * 3, 9))
    assert "attention_forward" not in kernel.source


def test_the_file_imports_only_cupy_and_what_it_needs():
    graph = symad.gradient(symad.trace(causal_loss, SHAPES))
    source = lower(graph, backend="cupy").source
    tree = ast.parse(source)
    imported = {a.name for node in tree.body if isinstance(node, ast.Import) for a in node.names}
    imported |= {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert imported <= {"cupy", "math", "functools", "os", "contextlib", "hashlib", "pathlib", "uuid"}
    with symad.gpu.options(autotune=False):
        assert "import os" not in lower(graph, backend="cupy").source


def test_a_device_that_is_too_small(monkeypatch):
    from tests.gpu.cupy_standin import cuda

    small = {**cuda.Device.attributes, "MaxSharedMemoryPerBlockOptin": 9000}
    monkeypatch.setattr(cuda.Device, "attributes", small)
    with library() as cp:
        kernel = lower(symad.trace(causal_loss, SHAPES), backend="cupy")
        with pytest.raises(ValueError, match=r"bytes of shared memory; this device has 9\.0 and 9000"):
            kernel(*on_device(cp, draw(SHAPES)))


def test_tensors_come_in_by_dlpack():
    """Memory of another library is taken without a copy; a NumPy array is refused by name."""
    values = draw(SHAPES, 10)
    graph = symad.trace(causal_loss, SHAPES)
    with library() as cp:
        kernel = lower(graph, backend="cupy")
        expected = kernel(*on_device(cp, values)).item()
        assert kernel(*map(Foreign, values)).item() == expected
        with pytest.raises(TypeError, match=r"q is a numpy\.ndarray.*pass cupy\.asarray\(q\)"):
            kernel(*values)
