"""Loops over time as one kernel each: which loops are recognized, their values, and which stay loops."""

from __future__ import annotations

import ast
import shutil

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.core.graph import Node
from symad.core.questions import definition, evaluate
from symad.gpu.compile import kernel_text
from symad.gpu.passes.recurrences import Recurrence, recurrent
from symad.gpu.printers import recurrences as printing
from symad.models.layers.parameters import trace_model
from symad.models.sequences.lstm import LSTM
from symad.models.sequences.recurrent import Recurrent
from symad.models.sequences.rnn import RNN
from symad.numbers.values import unchecked
from symad.numeric import lower
from symad.ops.basic.sources import Input
from tests.gpu import nvrtc
from tests.gpu.cupy_agreement import WHERE, agree, leaves, library, on_device
from tests.gpu.cupy_standin import cuda
from tests.gpu.lowering.layers_of_states import RNG, layer, normal  # noqa: F401  (the numbers of each test are its own)
from tests.gpu.shim.driver import SCHEDULES, schedule

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def model(net, *data):
    graph = trace_model(net.loss, net.shapes, *data)
    return graph, [0.5 * normal(*s) for s in net.shapes.values()] + [*data]


CASES = {
    "lstm": lambda: layer("lstm"),
    "gru": lambda: layer("gru"),
    "rnn": lambda: layer("rnn"),
    "rnn, relu": lambda: layer("rnn", activation="relu"),
    "gru, no batch": lambda: layer("gru", (6, 2)),
    "lstm, no batch": lambda: layer("lstm", (6, 2)),
    "lstm, two layers": lambda: layer("lstm", layers=2),
    "gru, both directions": lambda: layer("gru", bidirectional=True),
    "lstm, lengths": lambda: layer("lstm", lengths=np.array([6, 2, 4])),
    "lstm, one step": lambda: layer("lstm", (1, 3, 2)),
    "our lstm": lambda: model(LSTM(2, 5, 3, 2), normal(4, 3, 2), normal(4, 3, 3)),
    "our rnn": lambda: model(RNN(2, 5, 3, skip=True), normal(4, 2), normal(4, 3)),
}


def recurrences(graph):
    return [n for n in recurrent(graph).nodes if isinstance(n.op, Recurrence)]


@pytest.mark.thorough
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("each_step", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name, each_step, where, monkeypatch):
    """In one launch, or in one for every step and level."""
    graph, values = CASES[name]()
    both = symad.value_and_gradient(graph)
    assert recurrences(both)
    if each_step:
        monkeypatch.setattr(printing, "MAX_MATRIX_BYTES", -1)
    kernel = agree(both, values, rtol=1e-10, where=where)
    assert "for t" not in kernel.source[kernel.source.rindex("\ndef ") :]
    if not each_step:
        agree(both, values, "float32", 1e-4, where)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precisions(dtype):
    pytest.importorskip("ml_dtypes")
    graph, values = CASES["gru"]()
    agree(symad.value_and_gradient(graph), values, dtype, 0.08)


@pytest.mark.thorough
@pytest.mark.parametrize("each_step", [False, True])
@pytest.mark.parametrize("name", ["gru", "lstm"])
def test_every_order_of_threads_gives_the_same_bits(name, each_step, monkeypatch):
    graph, values = CASES[name]()
    if each_step:
        monkeypatch.setattr(printing, "MAX_MATRIX_BYTES", -1)
    found = []
    with library() as cp:
        kernel = lower(symad.value_and_gradient(graph), backend="cupy", dtype="float32")
        for order in SCHEDULES:
            with schedule(order, 3):
                found.append([g.get().tobytes() for g in leaves(kernel(*on_device(cp, values, "float32")))])
    assert found[0] == found[1] == found[2]


@pytest.mark.thorough
@pytest.mark.parametrize("rows", [1, 17, 40])
@pytest.mark.parametrize("hidden", [3, 70])
def test_many_rows_and_columns(rows, hidden, monkeypatch):
    """Several tiles each way, sums longer than a tile is deep."""
    made = Recurrent("lstm", 2, hidden)
    graph = trace_model(lambda p, x: (made.apply(p, x)[0] ** 2).sum(), made.shapes, (3, rows, 2))
    values = [0.3 * normal(*s) for s in made.shapes.values()] + [normal(3, rows, 2)]
    both = symad.value_and_gradient(graph)
    agree(both, values, rtol=1e-10)
    monkeypatch.setattr(printing, "MAX_MATRIX_BYTES", -1)
    agree(both, values, rtol=1e-10)


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
def test_launches_of_a_loop(kind, monkeypatch):
    """One launch for all steps; one a step forwards and backwards where matrices are large."""
    graph, values = layer(kind, (50, 3, 2))
    both, counts = symad.value_and_gradient(graph), []
    for small in (printing.MAX_MATRIX_BYTES, -1):
        monkeypatch.setattr(printing, "MAX_MATRIX_BYTES", small)
        with library() as cp:
            kernel = lower(both, backend="cupy", dtype="float32")
            arrays = on_device(cp, values, "float32")
            kernel(*arrays)
            cuda.counts.clear()
            kernel(*arrays)
            counts.append(cuda.counts["launches"])
    assert counts[0] <= 30
    assert counts[1] - counts[0] <= 2 * 50 + 2


@pytest.mark.thorough
def test_higher_derivatives_and_forward_mode():
    graph, values = CASES["gru"]()
    directions = [normal(*v.shape) for v in values]
    agree(symad.pushforward(graph), [*values, *directions], rtol=1e-9)
    agree(symad.hvp(graph), [*values, *directions], rtol=1e-8)


@pytest.mark.thorough
def test_symbolic_sizes():
    T, N, d = sp.symbols("T N d", integer=True, positive=True)

    def loss(x, W, U, h):
        return (functions.scan(lambda h, z: np.tanh(h @ W + z), h, x @ U) ** 2).sum()

    graph = symad.value_and_gradient(symad.trace(loss, [(T, N, d), (5, 5), (d, 5), (N, 5)]))
    assert recurrences(graph)
    for t, n in ((1, 1), (5, 6), (3, 70)):
        agree(graph, [normal(t, n, 2), 0.4 * normal(5, 5), normal(2, 5), normal(n, 5)], rtol=1e-10)


def test_no_steps_and_no_rows():
    def f(x, W, h):
        return functions.scan(lambda s, z: np.tanh(s @ W + z), h, x)

    T, N = sp.symbols("T N", integer=True, nonnegative=True)
    graph = symad.trace(f, [(T, N, 4), (4, 4), (N, 4)])
    assert recurrences(graph)
    for shape in ((0, 3, 4), (2, 0, 4)):
        agree(graph, [np.zeros(shape), normal(4, 4), np.zeros(shape[1:])])


@pytest.mark.thorough
def test_a_matrix_as_state():
    """Linear attention: S = g S + k vᵀ, rows of S apart; read out after the loop."""

    def f(k, v, gate):
        zeros = np.zeros((3, 4))
        states = functions.scan(lambda S, z: z[2] * S + z[0][:, None] * z[1][None, :], zeros, (k, v, gate))
        return (states**2).sum()

    graph = symad.value_and_gradient(symad.trace(f, [(5, 3), (5, 4), (5,)]))
    agree(graph, [normal(5, 3), normal(5, 4), normal(5)], rtol=1e-10)


STAY = {
    "softmax": (lambda h, x, W: functions.softmax(h @ W + x, axis=-1), "Softmax"),
    "over rows": (lambda h, x, W: np.tanh(h + x + np.sum(h, axis=0)), "a sum"),
    "of itself": (lambda h, x, W: np.tanh(h @ (h.T @ h) + x) @ W, "product"),
}


@pytest.mark.parametrize("name", STAY)
def test_what_stays_a_loop(name):
    step, _ = STAY[name]
    graph = symad.value_and_gradient(
        symad.trace(
            lambda x, W: (functions.scan(lambda h, z: step(h, z, W), np.zeros((3, 3)), x) ** 2).sum(),
            [(4, 3, 3), (3, 3)],
        )
    )
    assert not recurrences(graph)
    values = [normal(4, 3, 3), 0.5 * normal(3, 3)]
    kernel = agree(graph, values, rtol=1e-9)
    assert "concatenate" not in kernel.source and "_joined" not in kernel.source  # no state is copied
    if name == "softmax":
        assert "h_before = h_all[:4]" in kernel.source and "h_bar_before = h_bar_all[:4]" in kernel.source
        agree(graph, values, "float16", rtol=2e-2)


def test_a_loop_in_a_loop_and_a_state_that_only_the_next_step_reads():
    def f(x, W):
        def step(h, z):
            return functions.scan(lambda r, w: functions.softmax(r * w + h, axis=-1), z, W)[-1]

        return functions.scan(step, np.zeros((3, 3)), x)[-1]

    graph = symad.trace(f, [(4, 3, 3), (3, 3, 3)])
    kernel = agree(graph, [normal(4, 3, 3), normal(3, 3, 3)], rtol=1e-10)
    assert kernel.source.count("for t") == 2


@pytest.mark.thorough
def test_states_of_different_widths_stay_a_loop():
    graph, values = layer("lstm", projection=3)
    agree(symad.value_and_gradient(graph), values, rtol=1e-10)


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn, relu", "lstm, lengths"])
def test_the_pass_keeps_the_function_and_its_op_answers(name):
    graph, values = CASES[name]()
    both = symad.value_and_gradient(graph)
    made = recurrent(both)
    for a, b in zip(leaves(both(*values)), leaves(made(*values)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    for old in recurrences(both):
        fresh = [normal(*a.shape) for a in old.args]
        inputs = [Node.of(Input(sp.Symbol(f"i{k}"), a.shape)) for k, a in enumerate(old.args)]
        node = Node.of(old.op, tuple(inputs))
        (expected,) = unchecked((definition(node.op, node),), dict(zip(inputs, fresh, strict=True)))
        np.testing.assert_allclose(evaluate(node.op, tuple(fresh)), expected, rtol=1e-12)


def strings(module: str) -> dict[str, str]:
    """The sources of kernels in a module, which add the strings of the files that they share."""
    found: dict[str, str] = {}

    def text(value: ast.expr) -> str:
        if isinstance(value, ast.BinOp):
            return text(value.left) + text(value.right)
        return found[value.id] if isinstance(value, ast.Name) else ast.literal_eval(value)

    for statement in ast.parse(module).body:
        name = statement.targets[0].id if isinstance(statement, ast.Assign) else ""
        if name.startswith("_source") or name.endswith(("_H", "_CU")):
            found[name] = text(statement.value)
    return {name: source for name, source in found.items() if name.startswith("_source")}


def test_sources_share_the_files_of_kernels():
    graph, _ = layer("rnn", (9, 64, 32))
    module = lower(symad.value_and_gradient(graph), backend="cupy", dtype="float64").source
    first, *others = [source for source in strings(module).values() if "recurrence(Arrays" in source]
    assert others
    for name in ("prims.h", "recurrence.h"):
        assert kernel_text(name) in first
        assert module.count(kernel_text(name)) == 1


@pytest.mark.thorough
@pytest.mark.skipif(nvrtc.library() is None, reason="needs the wheel nvidia-cuda-nvrtc")
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_kernels_compile_without_spills(arch, dtype):
    pytest.importorskip("ml_dtypes")
    graph, _ = layer("lstm", (9, 64, 32))
    kernel = lower(symad.value_and_gradient(graph), backend="cupy", dtype=dtype)
    sources = [text for text in strings(kernel.source).values() if "recurrence(Arrays" in text]
    assert len(sources) == 2
    for source in sources:
        _, kernels = nvrtc.compile_text(source, arch)
        assert kernels["recurrence"].spilled == 0
        assert kernels["recurrence"].registers <= 255


@pytest.mark.sample(2)
@pytest.mark.parametrize("memory", ["recompute", 2, "sqrt"])
def test_recomputed_loops_that_begin_with_a_number(memory):
    """The number is an array of the device: the steps that are computed again repeat and divide by it."""

    def f(x):
        return np.sum(functions.scan(lambda c, t: np.tanh(c + t / 2), np.zeros(()), x, memory) ** 2)

    graph = symad.value_and_gradient(symad.trace(f, [(5,)]))
    point = np.linspace(-1, 1, 5)
    value, slope = graph(point)
    with library() as cp:
        found = lower(graph, "cupy")(*on_device(cp, [point], "float64"))
        np.testing.assert_allclose(found[0].get(), value, rtol=1e-13)
        np.testing.assert_allclose(found[1].get(), slope, rtol=1e-12)
