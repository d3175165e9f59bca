"""Attention that is written out becomes tiled attention: the pass alone on graphs, and whole models."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import symad
from symad import functions
from symad.gpu.passes.recognise_attention import recognised
from symad.models.layers.parameters import trace_model
from symad.models.transformers.attention import attention, causal_mask
from symad.models.transformers.transformer import Transformer
from symad.numeric import lower
from symad.ops.fused.attention_ops import AttentionOp
from symad.ops.fused.softmax import Softmax
from tests.gpu.cupy_agreement import WHERE, agree

RNG = np.random.default_rng(31)
SHAPES = [(2, 2, 6, 4), (2, 6, 4), (6, 4)]
SOME = (RNG.random((6, 6)) < 0.4) | np.eye(6, dtype=bool)
HIDDEN = SOME & (np.arange(6) != 2)[:, None]
BIAS = RNG.normal(size=(6, 6))


def written_with_numpy(q, k, v):
    t = q @ np.swapaxes(k, -1, -2) * 0.3
    return functions.softmax(t, axis=-1) @ v


FORMS = {
    "plain": lambda q, k, v: attention(q, k, v),
    "causal": lambda q, k, v: attention(q, k, v, causal_mask(6)),
    "masked": lambda q, k, v: attention(q, k, v, SOME),
    "rows that see nothing": lambda q, k, v: attention(q, k, v, HIDDEN),
    "bias": lambda q, k, v: attention(q, k, v, None, BIAS),
    "bias and mask": lambda q, k, v: attention(q, k, v, HIDDEN, BIAS),
    "with @": written_with_numpy,
    "one array": lambda q, k, v: attention(q, q, q, SOME),
    "twice": lambda q, k, v: attention(attention(q, k, v), k, v, SOME),
}


def kinds(graph):
    return {type(node.op) for node in graph.nodes}


def graphs(f, shape):
    plain = symad.trace(lambda q, k, v: np.sum(np.sin(f(q, k, v))), [shape] * 3)
    return plain, symad.value_and_gradient(plain)


def leaves(value):
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FORMS)
def test_the_pass_keeps_values_and_gradients(name, shape):
    values = [RNG.normal(size=shape) for _ in range(3)]
    for graph in graphs(FORMS[name], shape):
        made = recognised(graph)
        assert Softmax in kinds(graph)
        assert Softmax not in kinds(made)
        assert any(issubclass(kind, AttentionOp) for kind in kinds(made))
        for found, wanted in zip(leaves(made(*values)), leaves(graph(*values)), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("permuted", ["bhnm,bhmv->bhnv", "bhnm,bhmv->bnhv", "bhnm,bhmv->vhbn"])
def test_axes_in_other_orders(permuted):
    def f(q, k, v):
        weights = functions.softmax(np.einsum("bnhd,hmdb->bhnm", q, k) / 2, axis=-1)
        return np.sum(np.einsum(permuted, weights, v) ** 3)

    shapes = [(2, 5, 3, 4), (3, 6, 4, 2), (2, 3, 6, 7)]
    graph = symad.value_and_gradient(symad.trace(f, shapes))
    made = recognised(graph)
    assert Softmax not in kinds(made)
    values = [RNG.normal(size=s) for s in shapes]
    for found, wanted in zip(made(*values), graph(*values), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11)


def dense_weights(q, k, v):
    weights = functions.softmax(q @ k.T / 2, axis=-1)
    return np.sum(weights @ v) + np.sum(weights**2)


OTHERS = {
    "weights are read": (dense_weights, [(6, 4)] * 3),
    "a bias that is learned": (
        lambda q, k, v, b: np.sum(attention(q, k, v, None, b) ** 2),
        [(6, 4)] * 3 + [(6, 6)],
    ),
    "another axis": (lambda q, k, v: np.sum((functions.softmax(q @ k.T, axis=0) @ v) ** 2), [(6, 4)] * 3),
    "a softmax of no product": (
        lambda q, k, v: np.sum((functions.softmax(q, axis=-1) @ v) ** 2),
        [(6, 4), (2,), (4, 3)],
    ),
    "wide heads": (lambda q, k, v: np.sum(attention(q, k, v) ** 2), [(3, 260)] * 3),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_something_else_stays(name):
    f, shapes = OTHERS[name]
    graph = symad.value_and_gradient(symad.trace(f, shapes))
    assert recognised(graph) is graph


def test_a_learned_bias_is_tiled_without_its_gradient():
    f, shapes = OTHERS["a bias that is learned"]
    graph = symad.value_and_gradient(symad.trace(f, shapes), wrt=[0, 1, 2])
    made, values = recognised(graph), [RNG.normal(size=s) for s in shapes]
    assert Softmax not in kinds(made)
    for found, wanted in zip(made(*values), graph(*values), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-10), ("float32", 1e-4), ("bfloat16", 0.1)])
def test_shipped_transformers_are_tiled(dtype, rtol, where):
    pytest.importorskip("ml_dtypes")
    model = Transformer(7, 6, 8, 2, 2, position="alibi")
    tokens, targets = RNG.integers(0, 7, (2, 2, 6))
    graph = symad.value_and_gradient(
        trace_model(model.loss, model.shapes, tokens, targets), list(model.shapes)
    )
    values = [(0.5 * RNG.normal(size=s)).astype(dtype).astype(float) for s in model.shapes.values()]
    source = lower(graph, backend="cupy", dtype=dtype).source
    assert source.count("= _attention(") == source.count("= _attention_cotangents(") == 2
    if dtype != "bfloat16":
        agree(graph, [*values, tokens, targets], dtype, rtol, where)
