"""Passes that save launches: graphs keep their values, and the ops of these passes have all rules of ops."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.core.graph import Graph, Node, topological
from symad.core.questions import definition, evaluate
from symad.gpu.passes.fusion import Sums, joined_sums
from symad.gpu.passes.known_rows import known_rows
from symad.gpu.passes.shared_products import Copied, shared_products
from symad.gpu.printers.row_kernels import sums_source
from symad.higher_order.scan import Local
from symad.models.layers.parameters import trace_model
from symad.numbers.values import unchecked
from symad.numeric import lower
from symad.numeric.fusion.nest import Nest, summed
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.sources import Input, constant
from symad.ops.elementwise.powers import power
from tests.gpu import nvrtc
from tests.gpu.cupy_agreement import WHERE, agree, leaves, library, on_device
from tests.gpu.launch_cases import CASES
from tests.gpu.shim.driver import SCHEDULES, schedule

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
RNG = np.random.default_rng(17)
PASSES = {"known_rows": known_rows, "shared_products": shared_products, "joined_sums": joined_sums}


def both(name):
    function, shapes, data = CASES[name]
    graph = symad.value_and_gradient(trace_model(function, shapes, *data), list(shapes))
    return graph, [*(0.3 * RNG.normal(size=s) for s in shapes.values()), *data]


@pytest.mark.parametrize("run", PASSES)
@pytest.mark.parametrize("name", ["transformer block", "language model, 1 layer", "classifier", "vae"])
def test_passes_keep_the_function(run, name):
    graph, values = both(name)
    made = Graph(graph.input_nodes, tuple(PASSES[run](graph.output_nodes)), graph.structure)
    for a, b in zip(leaves(graph(*values)), leaves(made(*values)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def kinds(graph, run):
    return [type(n.op) for n in topological(PASSES[run](graph.output_nodes))]


def test_what_the_passes_find():
    graph, _ = both("transformer block")
    assert kinds(graph, "joined_sums").count(Sums) == 6  # β, γ of both norms, b_1, b_2
    assert Copied in kinds(graph, "shared_products")
    graph, _ = both("language model, 1 layer")
    found = kinds(graph, "known_rows")
    before = [type(n.op) for n in graph.nodes]
    assert found.count(ScatterAdd) == before.count(ScatterAdd) - 2  # positions in order, classes of rows
    assert found.count(Gather) == before.count(Gather) - 2  # positions in order, a table that counts


def test_ops_answer():
    x = Node.of(Input(sp.Symbol("x"), (3, 4, 2)))
    y = Node.of(Input(sp.Symbol("y"), (5, 2)))
    local = Node.of(Local(0, (3, 4, 2)))
    square = power(summed(mul(local, local), (0, 1, 2)), constant(2))
    then = Nest(Graph((local,), (square,)), 0, (3, 4, 2), (0, 1, 2))
    given = {x: RNG.normal(size=(3, 4, 2)), y: RNG.normal(size=(5, 2))}
    nodes = {
        "sums": (Node.of(Sums(((2, 0), (1,)), 0), (x, y)), given[x].sum(axis=1).T),
        "other": (Node.of(Sums(((2, 0), (1,)), 1), (x, y)), given[y].sum(axis=0)),
        "copied": (Node.of(Copied(), (x,)), given[x]),
        "then": (Node.of(then, (x,)), (given[x] ** 2).sum() ** 2),
    }
    for node, expected in nodes.values():
        assert node.shape == expected.shape
        values = tuple(given[a] for a in node.args)
        np.testing.assert_allclose(evaluate(node.op, values), expected, rtol=1e-14)
        (written,) = unchecked((definition(node.op, node),), given)
        np.testing.assert_allclose(written, expected, rtol=1e-14)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_many_sums(dtype, where):
    """More arrays than one launch takes, of three kinds of axes, one of them empty."""
    pytest.importorskip("ml_dtypes")
    shapes = [(k % 4 + 1, 9 * (k % 3), k % 5 + 1) for k in range(27)] + [(300, 70)]

    def f(*arrays):
        made = [np.sum(a, axis=(0, 1)) for a in arrays[:9]] + [np.sum(a, axis=(1,)) for a in arrays[9:18]]
        return (*made, *(np.sum(a, axis=0) for a in arrays[18:]))

    graph = symad.trace(f, shapes)
    values = [RNG.integers(-2, 3, s).astype(float) for s in shapes]
    values[-1] = RNG.integers(0, 2, shapes[-1]) * 0.5
    with library(where) as cp:
        kernel = lower(graph, backend="cupy", dtype=dtype)
        assert kernel.source.count("= _sums(") == 2
        given = on_device(cp, values, dtype)
        got = leaves(kernel(*given))
        for g, e in zip(got, f(*values), strict=True):
            np.testing.assert_allclose(g.get().astype(float), e, rtol=0.01 if dtype == "bfloat16" else 0)
        bits = []
        for order in SCHEDULES:
            with schedule(order, 5):
                bits.append([g.get().tobytes() for g in leaves(kernel(*given))])
    assert bits[0] == bits[1] == bits[2]


def test_scaled_sums():
    def f(x, y):
        return np.mean((x - y) ** 2), np.sqrt(np.sum(x)), 3 / np.sum(x * y)

    kernel = agree(symad.trace(f, [(4, 5), (4, 5)]), [*RNG.uniform(1, 2, (2, 4, 5))], rtol=1e-13)
    assert kernel.source.count("ReductionKernel") == 3


@pytest.mark.parametrize("end", [True, False])
def test_one_class_in_each_row(end):
    """The gradient of picked scores, with indices that are known to be in range and others that are not."""

    def f(z, t):
        picked = np.take_along_axis(z, t[..., None], axis=-1)[..., 0]
        return np.sum(picked * np.arange(6.0).reshape(2, 3))

    def known(z, t):
        return f(z, functions.lookup(functions.arange(5), t))

    graph = symad.gradient(symad.trace(known if end else f, [(2, 3, 5), np.zeros((2, 3), int)]), wrt=0)
    rows = RNG.integers(0, 5, (2, 3))
    if not end:
        rows = rows - 5  # NumPy counts them from the end
    expected = np.zeros((2, 3, 5))
    np.put_along_axis(expected, rows[..., None], np.arange(6.0).reshape(2, 3, 1), axis=-1)
    with library() as cp:
        kernel = lower(graph, backend="cupy")
        got = kernel(cp.asarray(np.zeros((2, 3, 5))), cp.asarray(rows)).get()
    assert ("_segment_sum" in kernel.source) is not end
    np.testing.assert_array_equal(got, expected)


def test_results_that_are_parts_of_one_array_do_not_overlap():
    def f(x, a, b, c):
        return x @ a, x @ b, x @ c

    shapes = [(2, 4, 3), (3, 2), (3, 2), (3, 2)]
    values = [RNG.normal(size=s) for s in shapes]
    with library() as cp:
        kernel = lower(symad.trace(f, shapes), backend="cupy")
        assert kernel.source.count("_product(") == 2  # the function and one call
        first, second, third = kernel(*on_device(cp, values))
        first += 1.0
        np.testing.assert_allclose(second.get(), values[0] @ values[2], rtol=1e-14)
        np.testing.assert_allclose(first.get(), values[0] @ values[1] + 1, rtol=1e-14)
        np.testing.assert_allclose(third.get(), values[0] @ values[3], rtol=1e-14)


@pytest.mark.skipif(nvrtc.library() is None, reason="needs the wheel nvidia-cuda-nvrtc")
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_the_kernel_of_sums_compiles(dtype):
    for arch in ("sm_80", "sm_90"):
        _, kernels = nvrtc.compile_text("".join(sums_source(dtype)), arch)
        assert kernels["sums"].spilled == 0


@pytest.mark.thorough
def test_slices_of_one_array_in_a_loop_are_that_array():
    """Three products with W[k] in a step that stays a loop: one product with W, forwards and backwards."""

    def value(W, h, xs):
        def step(h, x):
            a, b, c = (W[k] @ h for k in range(3))
            return functions.softmax(a * b + c + x)

        return functions.scan(step, h, xs)[-1].sum() + (W**2).sum()

    shapes = [(3, 4, 4), (4,), (5, 4)]
    graph = symad.value_and_gradient(symad.trace(value, shapes))
    kernel = agree(graph, [RNG.normal(size=s) for s in shapes])
    assert "for t" in kernel.source
