"""Attention that users write out becomes tiled attention: the pass alone on graphs, and whole models."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.fused.attention_ops import AttentionOp, AttentionTangent
from symad.gpu.passes.recognize_attention import recognized
from symad.models.layers.parameters import trace_model
from symad.models.transformers.attention import attention, causal_mask, prefix_mask, window_mask
from symad.models.transformers.transformer import Transformer
from symad.numeric import lower
from symad.ops.arrays.softmax import Softmax, SoftmaxTangent
from tests.gpu.cupy_agreement import WHERE, agree, leaves

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


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FORMS)
def test_the_pass_keeps_values_and_gradients(name, shape):
    values = [RNG.normal(size=shape) for _ in range(3)]
    for graph in graphs(FORMS[name], shape):
        made = recognized(graph)
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
    made = recognized(graph)
    assert Softmax not in kinds(made)
    values = [RNG.normal(size=s) for s in shapes]
    for found, wanted in zip(made(*values), graph(*values), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11)


def dense_weights(q, k, v):
    weights = functions.softmax(q @ k.T / 2, axis=-1)
    return np.sum(weights @ v) + np.sum(weights**2)


OTHERS = {
    "weights are read": (dense_weights, [(6, 4)] * 3),
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
    assert recognized(graph) is graph


BIASES = {"of heads": (3, 6, 6), "of keys": (1, 1, 6), "of rows": (6, 1), "of all": (6, 6)}


@pytest.mark.parametrize("wrt", [[0, 1, 2, 3], [3], [0, 1, 2]], ids=str)
@pytest.mark.parametrize("mask", [None, HIDDEN], ids=["all", "masked"])
@pytest.mark.parametrize("name", BIASES)
def test_a_learned_bias_is_tiled_with_its_gradient(name, mask, wrt):
    shapes = [(2, 3, 6, 4)] * 3 + [BIASES[name]]
    plain = symad.trace(lambda q, k, v, b: np.sum(attention(q, k, v, mask, b) ** 2), shapes)
    graph = symad.value_and_gradient(plain, wrt=wrt)
    made, values = recognized(graph), [RNG.normal(size=s) for s in shapes]
    assert Softmax not in kinds(made)
    for found, wanted in zip(made(*values), graph(*values), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_relative_positions_that_are_learned():
    """A table that is read by j − i: its gradient is that of the bias, scattered."""
    place = np.arange(6)[None, :] - np.arange(6)[:, None] + 5

    def loss(q, k, v, table):
        return np.sum(attention(q, k, v, causal_mask(6), table[:, place]) ** 2)

    shapes = [(2, 3, 6, 4)] * 3 + [(3, 11)]
    graph = symad.value_and_gradient(symad.trace(loss, shapes))
    made, values = recognized(graph), [RNG.normal(size=s) for s in shapes]
    assert Softmax not in kinds(made)
    for found, wanted in zip(made(*values), graph(*values), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    if shutil.which("g++"):
        agree(graph, values, "float64", 1e-10)


PADDING = {"keys": (2, 1, 1, 6), "pairs": (2, 1, 6, 6), "all": (2, 2, 6, 6), "matrix": (6, 6), "rows": (6, 1)}


@pytest.mark.thorough
@pytest.mark.parametrize("where", ["graph", "stand-in"])
@pytest.mark.parametrize("name", PADDING)
def test_masks_that_are_given_with_each_call(name, where):
    """Which may hide all of a row: its output is 0, as the kernels have it."""
    seen = RNG.random(PADDING[name]) < 0.5
    seen.reshape(-1, seen.shape[-1])[0] = False
    shapes = [(2, 2, 6, 4)] * 3
    plain = symad.trace(lambda q, k, v, m: np.sum(attention(q, k, v, m) ** 2), [*shapes, seen])
    values = [*(RNG.normal(size=s) for s in shapes), seen]
    dots = [RNG.normal(size=s) for s in shapes]
    gradient, product = symad.value_and_gradient(plain, wrt=[0, 1, 2]), symad.hvp(plain, wrt=[0, 1, 2])
    if where == "stand-in":
        if name in ("keys", "pairs") and shutil.which("g++"):
            assert "attention_backward_kv" in agree(gradient, values, rtol=1e-10).source
        return
    for graph, given in ((plain, values), (gradient, values), (product, [*values, *dots])):
        made = recognized(graph)
        assert not {Softmax, SoftmaxTangent} & kinds(made)
        for found, wanted in zip(leaves(made(*given)), leaves(graph(*given)), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-12)


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("given", [True, False], ids=["given", "known"])
@pytest.mark.parametrize("shape", [(2, 1, 1, 6), (2, 1, 6, 1)], ids=["keys", "rows"])
def test_a_bias_that_hides_whole_rows_by_large_numbers(given, shape):
    """Their weights are equal, in float32 too, where -1e9 + log 6 is -1e9."""
    bias = np.zeros(shape)
    bias[0, ..., -1:] = bias[1] = -1e9

    def loss(q, k, v, *given):
        t = q @ np.swapaxes(k, -1, -2) / 2 + (given[0] if given else bias)
        return np.sum((functions.softmax(t, axis=-1) @ v) ** 2)

    shapes, zeros = [(2, 2, 6, 4)] * 3, np.zeros((2, 2, 6, 4))
    graph = symad.gradient(symad.trace(loss, [*shapes, shape] if given else shapes), wrt=[0, 1, 2])
    values = [zeros, zeros, RNG.normal(size=shapes[2]), *([bias] if given else [])]
    assert "attention_backward_kv" in agree(graph, values, "float32", 1e-5).source


def hidden_columns(m):
    return np.logical_or(m, np.logical_not(np.any(m, axis=-1))[None, :])


@pytest.mark.parametrize("other", [
    lambda q, k, v, m: functions.softmax(np.where(m, q @ k.T, -np.inf), axis=-1) @ v,  # 0/0 in hidden rows
    lambda q, k, v, m: np.where(
        np.any(m, axis=-1)[:, None],
        functions.softmax(np.where(hidden_columns(m), q @ k.T, -np.inf), axis=-1), 0.0,
    ) @ v,
], ids=["no rows", "rows as columns"])  # fmt: skip
def test_masks_of_other_forms_stay(other):
    graph = symad.trace(lambda *a: np.sum(other(*a)), [(6, 4)] * 3 + [SOME])
    assert Softmax in kinds(recognized(graph))


@pytest.mark.parametrize("position", ["learned", "rotary", "alibi", "relative"])
def test_shipped_transformers_are_recognized_with_their_gradients(position):
    """Layers of relative positions share one bias, whose gradient is a sum over the layers."""
    model = Transformer(7, 6, 8, 2, 2, position=position)
    tokens, targets = RNG.integers(0, 7, (2, 2, 6))
    graph = symad.value_and_gradient(
        trace_model(model.loss, model.shapes, tokens, targets), list(model.shapes)
    )
    made, values = recognized(graph), [0.5 * RNG.normal(size=s) for s in model.shapes.values()]
    weights = [n for n in made.nodes if isinstance(n.op, Softmax) and len(n.shape) == 4]
    assert not weights
    given = [*values, tokens, targets]
    flat = [np.concatenate([np.ravel(x) for x in leaves(g(*given))]) for g in (made, graph)]
    np.testing.assert_allclose(*flat, rtol=1e-11, atol=1e-12)


n = sp.Symbol("n", integer=True, positive=True)
LENGTHS = {
    "causal": lambda q, k, v: attention(q, k, v, causal_mask(n)),
    "window": lambda q, k, v: attention(q, k, v, window_mask(n, 3)),
    "prefix": lambda q, k, v: attention(q, k, v, prefix_mask(n, 2)),
    "not the first keys": lambda q, k, v: attention(
        q, k, v, functions.arange(n)[:, None] > functions.arange(n)[None, :] + 1
    ),
    "written": lambda q, k, v: functions.softmax(
        np.where(causal_mask(n), q @ np.swapaxes(k, -1, -2), -np.inf), axis=-1
    ) @ v,
}  # fmt: skip


@pytest.mark.parametrize("length", [1, 7])
@pytest.mark.parametrize("name", LENGTHS)
def test_masks_of_lengths_that_are_symbols(name, length):
    plain = symad.trace(lambda q, k, v: np.sum(np.sin(LENGTHS[name](q, k, v))), [(2, n, 4)] * 3)
    values = [RNG.normal(size=(2, length, 4)) for _ in range(3)]
    for graph in (plain, symad.value_and_gradient(plain)):
        made = recognized(graph)
        assert Softmax not in kinds(made)
        for found, wanted in zip(leaves(made(*values)), leaves(graph(*values)), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_one_code_for_all_lengths_is_tiled():
    plain = symad.trace(lambda q, k, v: np.sum(np.sin(LENGTHS["window"](q, k, v))), [(2, n, 4)] * 3)
    graph = symad.value_and_gradient(plain)
    for length in (1, 37):
        kernel = agree(graph, [RNG.normal(size=(2, length, 4)) for _ in range(3)], "float64", 1e-10)
    assert "attention_backward_kv" in kernel.source


def test_a_mask_that_may_hide_a_whole_row_stays_where_nothing_sets_it_to_0():
    later = lambda t: t[:, None] > t[None, :]  # noqa: E731
    f = lambda q, k, v: np.sum(  # noqa: E731
        functions.softmax(np.where(later(functions.arange(n)), q @ k.T, -np.inf), axis=-1) @ v
    )
    graph = symad.trace(f, [(n, 4)] * 3)
    assert recognized(graph) is graph


def same_values(made, graph):
    values = [RNG.normal(size=node.shape) for node in graph.input_nodes]
    for found, wanted in zip(leaves(made(*values)), leaves(graph(*values)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11)


@pytest.mark.sample(4)
@pytest.mark.parametrize("wrt", [None, [0, 1], [2]], ids=["all", "q and k", "v"])
@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[2]], ids=str)
@pytest.mark.parametrize("name", FORMS)
def test_hessian_products_are_tiled(name, shape, wrt):
    form = FORMS[name]
    if name == "one array":
        form, wrt = (lambda q, k, v: FORMS[name](q + k, q, v)), [0, 1]
    plain, _ = graphs(form, shape)
    graph = symad.hvp(plain, wrt=wrt)
    made = recognized(graph)
    assert Softmax in kinds(graph)
    assert not {Softmax, SoftmaxTangent} & kinds(made)
    assert AttentionTangent in kinds(made)
    same_values(made, graph)


@pytest.mark.parametrize("mode", ["reverse-over-forward", "reverse-over-reverse"])
def test_hessian_products_of_other_modes_stay(mode):
    plain, _ = graphs(FORMS["causal"], (2, 6, 4))
    graph = symad.hvp(plain, mode=mode)
    assert recognized(graph) is graph


@pytest.mark.thorough
def test_two_directions_and_the_gradient_at_once():
    plain, both = graphs(FORMS["bias and mask"], (2, 6, 4))
    product = symad.hvp(plain)

    def together(q, k, v, *dots):
        return both(q, k, v), product(q, k, v, *dots[:3]), product(q, k, v, *dots[3:])

    graph = symad.trace(together, [(2, 6, 4)] * 9)
    made = recognized(graph)
    assert not {Softmax, SoftmaxTangent} & kinds(made)
    values = [RNG.normal(size=(2, 6, 4)) for _ in range(9)]
    flat = [np.concatenate([np.ravel(x) for x in leaves(g(*values))]) for g in (made, graph)]
    np.testing.assert_allclose(*flat, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("permuted", ["bhnm,bhmv->bhnv", "bhnm,bhmv->vhbn"])
def test_hessian_products_with_axes_in_other_orders(permuted):
    def f(q, k, v):
        weights = functions.softmax(np.einsum("bnhd,hmdb->bhnm", q, k) / 2, axis=-1)
        return np.sum(np.einsum(permuted, weights, v) ** 3)

    graph = symad.hvp(symad.trace(f, [(2, 5, 3, 4), (3, 6, 4, 2), (2, 3, 6, 7)]))
    made = recognized(graph)
    assert not {Softmax, SoftmaxTangent} & kinds(made)
    same_values(made, graph)


def test_weights_that_a_direction_reads_stay():
    """The tangent of the weights is a result: the products with it stay over pairs."""

    def f(q, k, v):
        weights = functions.softmax(q @ k.T / 2, axis=-1)
        return np.sum(weights @ v) ** 2 + np.sum(weights**2)

    graph = symad.hvp(symad.trace(f, [(6, 4)] * 3))
    assert recognized(graph) is graph


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_hessian_products_of_a_shipped_transformer_are_tiled():
    model = Transformer(7, 6, 8, 2, 2)
    tokens, targets = RNG.integers(0, 7, (2, 2, 6))
    graph = symad.hvp(trace_model(model.loss, model.shapes, tokens, targets), list(model.shapes))
    shapes = [*model.shapes.values()]
    values = [0.5 * RNG.normal(size=s) for s in shapes]
    dots = [RNG.normal(size=s) for s in shapes]
    kernel = agree(graph, [*values, tokens, targets, *dots], "float32", 1e-4)
    for name in ("_attention_tangent", "_attention_second"):
        assert kernel.source.count(f"= {name}(") == 2
    assert kernel.source.count("= _attention(") == 2


@pytest.mark.thorough
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
