"""Small networks as one kernel: which regions of the graph are joined, and their values."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.core.graph import Graph, Node, topological
from symad.core.questions import definition, evaluate
from symad.gpu.passes.row_programs import RowProgram, row_programs
from symad.gpu.printers import recurrences as printing
from symad.models.layers.feedforward import FeedForward
from symad.models.layers.parameters import trace_model
from symad.numbers.values import unchecked
from symad.numeric import lower
from symad.ops.basic.sources import Input
from tests.gpu.cupy_agreement import WHERE, agree, leaves, library, on_device
from tests.gpu.launch_cases import CASES
from tests.gpu.shim.driver import SCHEDULES, schedule

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
RNG = np.random.default_rng(23)


def both(name):
    function, shapes, data = CASES[name]
    graph = symad.value_and_gradient(trace_model(function, shapes, *data), list(shapes))
    return graph, [*(0.5 * RNG.normal(size=s) for s in shapes.values()), *data]


def regions(graph):
    found = [n for n in topological(row_programs(graph.output_nodes)) if isinstance(n.op, RowProgram)]
    return {n.op.body: n for n in found}


@pytest.mark.thorough
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("small", [printing.MAX_MATRIX_BYTES, -1])
@pytest.mark.parametrize("name", ["feedforward", "vae", "gan, critic", "ddpm"])
def test_values_and_gradients(name, small, where, monkeypatch):
    """In one launch, or one for every level."""
    monkeypatch.setattr(printing, "MAX_MATRIX_BYTES", small)
    graph, values = both(name)
    assert len(regions(graph)) == 1
    kernel = agree(graph, values, rtol=1e-11, where=where)
    assert kernel.source.count("= _recurrence(") == 1


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_precisions(dtype):
    pytest.importorskip("ml_dtypes")
    graph, values = both("ddpm")
    agree(graph, values, dtype, {"float32": 1e-5, "float16": 0.02, "bfloat16": 0.08}[dtype])


@pytest.mark.thorough
@pytest.mark.parametrize("activation", ["relu", "tanh", "gelu", "silu"])
def test_all_sizes_equal(activation):
    """Rows are told from columns where every axis has the same length."""
    net = FeedForward((5, 5, 5), activation)
    graph = trace_model(net.loss, net.shapes, (5, 5), (5, 5))
    values = [0.7 * RNG.normal(size=s) for s in net.shapes.values()] + [*RNG.normal(size=(2, 5, 5))]
    agree(symad.value_and_gradient(graph), values, rtol=1e-11)


@pytest.mark.thorough
def test_what_needs_all_rows_stays_outside():
    """Batch norm between two layers: two regions, none of which waits for itself."""

    def loss(x, W, U):
        h = np.tanh(x @ W)
        h = (h - np.mean(h, axis=0)) / np.sqrt(np.mean(h**2, axis=0) + 1.0)
        return ((h @ U) ** 2).sum()

    graph = symad.value_and_gradient(symad.trace(loss, [(6, 4), (4, 3), (3, 2)]))
    agree(graph, [RNG.normal(size=s) for s in ((6, 4), (4, 3), (3, 2))], rtol=1e-10)


@pytest.mark.thorough
def test_parts_side_by_side_masks_and_columns():
    def f(x, y, W, V):
        h = np.concatenate([np.maximum(x @ W, 0), y], axis=1)
        z = h @ V
        return np.where(z[:, :2] > 0, z[:, 2:], x[:, 0][:, None]), np.exp(z)[:, 1], h

    shapes = [(7, 3), (7, 2), (3, 4), (6, 4)]
    graph = symad.trace(f, shapes)
    assert regions(graph)
    agree(graph, [RNG.normal(size=s) for s in shapes], rtol=1e-12)


@pytest.mark.thorough
def test_products_of_what_changes_and_transposes():
    def f(x, W):
        h = np.tanh(x @ W)
        return h @ h.T, (W @ x.T).T @ W, x.T @ h

    graph = symad.trace(f, [(4, 4), (4, 4)])
    agree(graph, [RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4))], rtol=1e-12)


def test_large_networks_go_to_cublas():
    net = FeedForward((64, 1024, 64), "tanh")
    graph = symad.value_and_gradient(trace_model(net.loss, net.shapes, (4096, 64), (4096, 64)))
    assert not regions(graph)


@pytest.mark.parametrize("name", ["feedforward", "classifier", "vae", "gan, generator", "ddpm"])
def test_the_pass_keeps_the_function_and_its_op_answers(name):
    graph, values = both(name)
    made = Graph(graph.input_nodes, row_programs(graph.output_nodes), graph.structure)
    for a, b in zip(leaves(graph(*values)), leaves(made(*values)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)
    for old in regions(graph).values():
        inputs = tuple(Node.of(Input(sp.Symbol(f"i{k}"), a.shape)) for k, a in enumerate(old.args))
        fresh = tuple(RNG.uniform(0.1, 0.9, a.shape) for a in old.args)
        node = Node.of(old.op, inputs)
        (expected,) = unchecked((definition(node.op, node),), dict(zip(inputs, fresh, strict=True)))
        np.testing.assert_allclose(evaluate(node.op, fresh), expected, rtol=1e-12)


@pytest.mark.thorough
def test_every_order_of_threads_gives_the_same_bits():
    graph, values = both("vae")
    found = []
    with library() as cp:
        kernel = lower(graph, backend="cupy", dtype="float32")
        for order in SCHEDULES:
            with schedule(order, 3):
                found.append([g.get().tobytes() for g in leaves(kernel(*on_device(cp, values, "float32")))])
    assert found[0] == found[1] == found[2]


@pytest.mark.thorough
def test_softmax_between_two_regions():
    def loss(x, W, U):
        return (functions.softmax(np.tanh(x @ W), axis=-1) @ U).sum()

    graph = symad.value_and_gradient(symad.trace(loss, [(6, 4), (4, 9), (9, 2)]))
    agree(graph, [RNG.normal(size=s) for s in ((6, 4), (4, 9), (9, 2))], rtol=1e-11)


@pytest.mark.thorough
def test_more_arrays_than_a_kernel_takes():
    net = FeedForward((3,) * 30, "tanh")
    graph = symad.value_and_gradient(trace_model(net.loss, net.shapes, (4, 3), (4, 3)))
    values = [0.7 * RNG.normal(size=s) for s in net.shapes.values()] + [*RNG.normal(size=(2, 4, 3))]
    agree(graph, values, rtol=1e-10)
