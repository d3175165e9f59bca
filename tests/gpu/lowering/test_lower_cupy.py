"""CuPy code without a GPU: run against a strict stand-in, compared with NumPy code and graphs."""

from __future__ import annotations

import ast
import builtins
import importlib.util
import itertools
import sys

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.core.graph import Graph, topological
from symad.errors import LoweringError
from symad.gpu.compile import GpuError, kernel_text
from symad.numeric import lower
from symad.op_examples import EXAMPLES
from symad.ops.basic.sources import Input
from symad.saving.saved_ops import classes
from tests.gpu.cupy_agreement import WHERE, agree, library, on_device
from tests.gpu.cupy_standin import extras, installed
from tests.gpu.lowering.op_cases import RNG, SCALARS, example_graphs, example_values, x, y, z

NO_HALVES = {"Root", "Uniform", "FoldIn"}


@pytest.mark.sample(131, without=("AttentionSecond", "AttentionCotangent"))
@pytest.mark.parametrize(("graph", "dims"), list(example_graphs()))
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-12), ("float32", 2e-5), ("float16", 2e-2)])
@pytest.mark.parametrize("where", WHERE)
def test_every_op_equals_numpy_code(graph, dims, dtype, rtol, where):
    if any(type(n.op).__name__ == "Dimension" for n in graph.nodes):
        pytest.skip("no input tells the dimension")
    values = example_values(graph, dims)
    if any(type(n.op).__name__ == "MatrixPower" for n in graph.nodes):
        values = [np.asarray(3.0) if np.ndim(v) == 0 else v for v in values]
    if dtype == "float16" and any(type(n.op).__name__ in NO_HALVES for n in graph.nodes):
        with pytest.raises(LoweringError, match="float32 or float64"):
            lower(graph, backend="cupy", dtype=dtype)
        return
    agree(graph, values, dtype, rtol, where)


@pytest.mark.parametrize("e", SCALARS, ids=str)
@pytest.mark.parametrize("derived", [symad.trace, symad.gradient, symad.hessian])
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-12), ("float32", 1e-4)])
@pytest.mark.parametrize("where", WHERE)
def test_scalar_graphs_are_one_kernel_for_points_and_batches(e, derived, dtype, rtol, where):
    if derived is not symad.trace and e.has(sp.gamma):
        pytest.skip("digamma has no form in a kernel body")
    graph = derived(symad.trace(e, (x, y, z)))
    kernel = agree(graph, RNG.uniform(0.2, 1.9, (3, 7)), dtype, rtol, where)
    assert kernel.source.count("ElementwiseKernel(") == 1
    agree(graph, [0.4, 1.3, 0.7], dtype, rtol, where)
    batch = [RNG.uniform(0.2, 1.9, (4, 1)), RNG.uniform(0.2, 1.9, 5), 0.8]
    agree(graph, batch, dtype, rtol, where)


def test_numbers_may_stay_on_the_host():
    with installed():
        assert lower(x * y, backend="cupy")(2, np.float64(3.5)).item() == 7.0


def test_hundreds_of_scalar_inputs():
    xs = sp.symbols("x0:60", real=True)
    graph = symad.gradient(sp.Add(*[s**2 * t for s, t in itertools.pairwise(xs)]), xs)
    agree(graph, RNG.normal(size=(60, 3)))


def test_packed_vectors():
    xs = sp.symbols("x0:40", real=True)
    with installed() as cp:
        kernel = lower(symad.gradient(sp.Add(*[s**2 for s in xs]), xs), backend="cupy", packed=True)
        assert np.array_equal(kernel(cp.asarray(np.arange(40.0))).get(), 2 * np.arange(40.0))
        with pytest.raises(ValueError, match="shape"):
            kernel(cp.asarray(np.arange(39.0)))
        a = sp.MatrixSymbol("A", 3, 2)
        loss = symad.trace(lambda a, s: np.sum(np.tanh(a) * s), [(3, 2), ()])
        values = RNG.normal(size=7)
        expected = lower(symad.gradient(loss), packed=True)(values)
        got = lower(symad.gradient(loss), backend="cupy", packed=True)(cp.asarray(values))
        np.testing.assert_allclose(got.get(), expected, rtol=1e-13)
        assert a.shape == (3, 2)


# ---- models --------------------------------------------------------------------------------------


def network(inputs, w1, b1, w2, b2, targets):
    hidden = np.tanh(inputs @ w1 + b1)
    logits = hidden @ w2 + b2
    return -np.sum(targets * functions.log_softmax(logits, axis=1)) / 6


def layer_norm(a, gain, bias):
    mean = np.mean(a, axis=1)[:, None]
    variance = np.mean((a - mean) ** 2, axis=1)[:, None]
    return np.sum(((a - mean) / np.sqrt(variance + 1e-5) * gain + bias) ** 3)


def attention_of_one_head(q, k, v):
    return np.sum((functions.softmax(q @ k.T / 2, axis=1) @ v) ** 2)


def gaussian_process(points, targets, scale):
    squares = np.sum((points[:, None, :] - points[None, :, :]) ** 2, axis=2)
    covariance = np.exp(-squares / scale**2) + 0.1 * np.eye(5)
    return targets @ np.linalg.solve(covariance, targets) + np.linalg.slogdet(covariance)[1]


def lstm(inputs, h, c, w, u, b):
    def step(state, row):
        h, c = state
        gates = w @ row + u @ h + b
        i, f, o = (functions.sigmoid(gates[k]) for k in range(3))
        c = f * c + i * np.tanh(gates[3])
        return o * np.tanh(c), c

    h, c = functions.scan(step, (h, c), inputs)
    return np.sum(h**2)


T, H, D = sp.symbols("T H D", integer=True, positive=True)
MODELS = [
    (network, [(6, 4), (4, 5), (5,), (5, 3), (3,), (6, 3)], None),
    (layer_norm, [(4, 6), (6,), (6,)], None),
    (attention_of_one_head, [(4, 3), (5, 3), (5, 2)], None),
    (gaussian_process, [(5, 2), (5,), ()], None),
    (lstm, [(T, D), (H,), (H,), (4, H, D), (4, H, H), (4, H)], {T: 6, H: 3, D: 2}),
]


def model_values(shapes, dims):
    sizes = [tuple(int(sp.sympify(d).subs(dims or {})) for d in s) for s in shapes]
    return [RNG.uniform(0.2, 1.0, s) for s in sizes]


@pytest.mark.thorough
@pytest.mark.parametrize(("model", "shapes", "dims"), MODELS, ids=lambda p: getattr(p, "__name__", ""))
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-10), ("float32", 3e-4)])
@pytest.mark.parametrize("where", WHERE)
def test_models_and_their_gradients(model, shapes, dims, dtype, rtol, where):
    graph = symad.trace(model, shapes)
    values = model_values(shapes, dims)
    agree(graph, values, dtype, rtol, where)
    agree(symad.value_and_gradient(graph), values, dtype, rtol, where)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["forward-over-reverse", "reverse-over-reverse"])
@pytest.mark.parametrize(("model", "shapes", "dims"), MODELS[1:], ids=lambda p: getattr(p, "__name__", ""))
def test_hessian_products_of_models(model, shapes, dims, mode):
    graph = symad.hvp(symad.trace(model, shapes), mode=mode)
    values = model_values(shapes, dims)
    agree(graph, [*values, *model_values(shapes, dims)], rtol=1e-8)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("f", [lambda a: np.sum(a * a), np.sum], ids=["map", "plain"])
def test_half_precision_adds_in_float32(f, where):
    graph = symad.trace(f, [(5000,)])
    with library(where) as cp:
        kernel = lower(graph, backend="cupy", dtype="float16")
        total = kernel(*on_device(cp, [np.ones(5000)], "float16"))
        assert total.dtype == np.float16
        assert total.item() == 5000  # adding in float16 stops at 2048


@pytest.mark.sample(2)
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(("model", "shapes", "dims"), MODELS, ids=lambda p: getattr(p, "__name__", ""))
def test_bfloat16_storage(model, shapes, dims, where):
    pytest.importorskip("ml_dtypes")
    if model is gaussian_process:
        pytest.skip("its covariance matrix is not positive definite in eight bits")
    values = [v.astype("bfloat16").astype(float) for v in model_values(shapes, dims)]
    agree(symad.trace(model, shapes), values, "bfloat16", 5e-2, where)


@pytest.mark.parametrize("where", WHERE)
def test_row_numbers_keep_their_type(where):
    graph = symad.trace(lambda table, rows: functions.lookup(table, rows[::-1]), [(5000, 2), (3,)])
    table, rows = RNG.normal(size=(5000, 2)), np.array([4097, 2049, 0])
    with library(where) as cp:
        kernel = lower(graph, backend="cupy", dtype="float16")
        got = kernel(cp.asarray(table.astype("float16")), cp.asarray(rows))
        assert np.array_equal(got.get(), table.astype("float16")[rows[::-1]])
        with pytest.raises(IndexError, match=r"0\.\.4999"):
            kernel(cp.asarray(table.astype("float16")), cp.asarray(rows + 4096))
            symad.gpu.check_indices()
        with pytest.raises(IndexError, match="integers"):
            kernel(cp.asarray(table.astype("float16")), cp.asarray(rows + 0.5))


# ---- the generated text --------------------------------------------------------------------------


def test_a_chain_is_one_kernel():
    graph = symad.trace(lambda a, b, s: np.exp(-((a - b) ** 2) * s) + np.sin(a) / b, [(4, 3), (4, 3), ()])
    source = lower(graph, backend="cupy").source
    assert source.count("ElementwiseKernel(") == 1
    assert "cp.exp" not in source
    assert "cp.sin" not in source


def test_a_map_and_its_sum_are_one_kernel():
    graph = symad.trace(lambda a, b: np.sum((a - b) ** 2, axis=1), [(4, 3), (4, 3)])
    source = lower(graph, backend="cupy").source
    assert source.count("ReductionKernel(") == 1
    assert "ElementwiseKernel(" not in source


def test_a_step_of_an_lstm_is_a_few_launches():
    graph = symad.value_and_gradient(symad.trace(lstm, MODELS[-1][1]))
    source = lower(graph, backend="cupy").source
    lines = source[source.index("def lstm") :].splitlines()
    starts = [k for k, line in enumerate(lines) if line.startswith("    for ")]
    assert len(starts) == 2  # forward and backward through time
    for start in starts:
        body = list(itertools.takewhile(lambda line: line.startswith(" " * 8), lines[start + 1 :]))
        kernels = [line for line in body if "_kernel_" in line]
        products = [line for line in body if "_product(" in line]
        assert len(products) == 1
        assert len(kernels) <= 4
        assert not any("_pad" in line for line in body)


def test_sources_import_only_cupy_and_free_what_is_dead():
    graph = symad.value_and_gradient(symad.trace(network, MODELS[0][1]))
    source = lower(graph, backend="cupy", dtype="float32").source
    imported = {
        alias.name.split(".")[0]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert imported <= {"cupy", "cupyx", "math", "numpy"}
    own = source.replace(kernel_text("prims.h"), "")  # which knows all element types
    assert "double" not in own
    assert "float64" not in own
    lines = source.splitlines()
    freed = [name for line in lines if "    del " in line for name in line.split("del ")[1].split(", ")]
    assert freed
    for name in freed:
        after = lines[[k for k, line in enumerate(lines) if "    del " in line and name in line][-1] + 1 :]
        assert not any(f"{name} " in f"{line} ".replace(",", " ").replace(")", " ") for line in after)


@pytest.mark.thorough
def test_every_name_is_defined_before_it_is_read():
    """Also where the text of an op needs statements of its own, whatever was lowered before."""
    assert "SparseSolve" in classes()  # all ops are loaded
    for make in list(EXAMPLES.values()):
        for node in make():
            inputs = tuple(n for n in topological([node]) if isinstance(n.op, Input))
            if type(node.op).__name__ == "Dimension" or Graph(inputs, (node,)).dims:
                continue
            tree = ast.parse(lower(Graph(inputs, (node,)), backend="cupy").source)
            entry = [f for f in tree.body if isinstance(f, ast.FunctionDef)][-1]
            names = [n for n in ast.walk(entry) if isinstance(n, ast.Name)]
            made = {n.id for n in names if isinstance(n.ctx, ast.Store)}
            made |= {n.arg for n in ast.walk(entry) if isinstance(n, ast.arg)}
            made |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)} | {*dir(builtins)}
            made |= {a.asname or a.name for n in tree.body if hasattr(n, "names") for a in n.names}
            outside = (n for top in tree.body if isinstance(top, ast.Assign) for n in ast.walk(top))
            made |= {n.id for n in outside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            read = {n.id for n in names if isinstance(n.ctx, ast.Load)}
            assert {name.partition(".")[0] for name in read} <= {m.partition(".")[0] for m in made}, node


def test_saved_files_stand_alone(tmp_path):
    graph = symad.gradient(symad.trace(layer_norm, MODELS[1][1]))
    values = model_values(MODELS[1][1], None)
    path = tmp_path / "model.py"
    lower(graph, backend="cupy").save(path)
    with installed() as cp:
        spec = importlib.util.spec_from_file_location("saved_model", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        entry = [n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef)][-1]
        got = getattr(module, entry)(*on_device(cp, values))
    for g, e in zip(got, lower(graph)(*values), strict=True):
        np.testing.assert_allclose(g.get(), e, rtol=1e-12)


# ---- bad input -----------------------------------------------------------------------------------


def test_without_cupy_the_text_is_there_and_the_call_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    kernel = lower(x * y, backend="cupy")
    assert "ElementwiseKernel" in kernel.source
    with pytest.raises(GpuError, match=r"gpu-cuda12.*gpu-cuda13.*backend=\"numpy\""):
        kernel(1.0, 2.0)


def test_without_a_driver_the_error_says_so(monkeypatch):
    with installed() as cp:

        def no_driver():
            raise cp.cuda.runtime.CUDARuntimeError("cudaErrorInsufficientDriver")

        monkeypatch.setattr(cp.cuda.runtime, "getDeviceCount", no_driver)
        with pytest.raises(GpuError, match=r"cudaErrorInsufficientDriver.*backend=\"numpy\""):
            lower(x * y, backend="cupy")(1.0, 2.0)
        monkeypatch.setattr(cp.cuda.runtime, "getDeviceCount", lambda: 0)
        with pytest.raises(GpuError, match="no CUDA device"):
            lower(x * y, backend="cupy")(1.0, 2.0)


def test_numpy_arrays_are_refused_by_name():
    graph = symad.trace(lambda a, b: a + b, [(2, 2), (2, 2)])
    names = [str(s) for s in graph.inputs]
    with installed() as cp:
        kernel = lower(graph, backend="cupy")
        with pytest.raises(TypeError, match=rf"{names[1]} is a numpy.ndarray.*cupy.asarray"):
            kernel(cp.asarray(np.eye(2)), np.eye(2))
        with pytest.raises(TypeError, match=r"y is a numpy.ndarray"):
            lower(x * y, backend="cupy")(cp.asarray(np.ones(3)), np.ones(3))


def test_shapes_and_types_are_checked_at_the_door():
    graph = symad.trace(lambda a, b: a @ b, [(2, 3), (3, 2)])
    with installed() as cp:
        kernel = lower(graph, backend="cupy")
        with pytest.raises(ValueError, match="shape"):
            kernel(*on_device(cp, [np.ones((2, 3)), np.ones((2, 2))]))
        with pytest.raises(TypeError, match="real numbers"):
            kernel(*on_device(cp, [np.ones((2, 3)), np.ones((3, 2))], "complex128"))


def test_out_of_memory_names_the_planned_peak(monkeypatch):
    n = sp.Symbol("n", integer=True, positive=True)
    graph = symad.trace(lambda a: np.concatenate([a, a @ a]), [(n, n)])
    with installed() as cp:

        def full(*args, **kwargs):
            raise MemoryError("Out of memory allocating 1 bytes")

        monkeypatch.setattr(cp, "empty", full)
        with pytest.raises(GpuError, match=r"GiB at the peak in float32.*allocating 1 bytes"):
            lower(graph, backend="cupy", dtype="float32")(*on_device(cp, [np.eye(256)], "float32"))


def test_unknown_types_and_functions_are_errors():
    with pytest.raises(LoweringError, match="float8"):
        lower(x, backend="cupy", dtype="float8")
    with pytest.raises(LoweringError, match=r"Ei.*backend='numpy'"):
        lower(sp.Ei(x), backend="cupy")


# ---- the stand-in itself -------------------------------------------------------------------------


def test_the_stand_in_refuses_what_a_gpu_would_not_forgive():
    pytest.importorskip("ml_dtypes")
    with installed() as cp:
        a = cp.asarray(np.ones(3, np.float32))
        for wrong in (
            lambda: a + np.ones(3),
            lambda: np.ones(3) + a,
            lambda: bool(a[0]),
            lambda: float(a[0]),
            lambda: list(a),
            lambda: np.sin(a),
            lambda: np.asarray(a),
            lambda: a * cp.asarray(np.ones(3)),
            lambda: cp.stack([a, a.get()]),
        ):
            with pytest.raises(TypeError):
                wrong()
        with pytest.raises(TypeError, match="mismatched"):
            cp.ElementwiseKernel("float64 x0", "float64 y0", "y0 = x0;")(a)
        with pytest.raises(ValueError, match="undecided"):
            cp.ElementwiseKernel("float32 x0", "float32 y0", "y0 = x0;")(1.0)
        with pytest.raises(ValueError, match="Invalid"):
            cp.ElementwiseKernel("float32 n", "float32 y0", "y0 = n;")
        with pytest.raises(AssertionError, match="double"):
            cp.ElementwiseKernel("float32 x0", "float32 y0", "y0 = x0 * 2.0;")(a)
        assert not hasattr(cp, "errstate")
        bits = cp.asarray(np.ones((2, 2, 2)).astype("bfloat16"))
        with pytest.raises(ValueError, match="no batched product of bfloat16"):
            bits @ bits
        with pytest.raises(NotImplementedError, match="Sorting"):
            cp.argsort(bits)
        with pytest.raises(TypeError, match="only supports"):
            extras.scatter_add(bits, cp.asarray(np.array([0, 1])), bits)
        kernel = cp.RawKernel('extern "C" __global__ void f(float *x) { x[0] = 1; }', "f")
        for grid, block in (((1, 65536), (32,)), ((2**31,), (32,)), ((1,), (2048,)), ((1,), (1, 1, 65))):
            with pytest.raises(cp.cuda.CUDARuntimeError, match="INVALID_VALUE"):
                kernel(grid, block, (a,))
        with pytest.raises(AssertionError, match="empty launch"):
            kernel((0,), (32,), (a,))
        before = cp.cuda.counts["synchronizations"]
        a.get(), a[:1].item()
        assert cp.cuda.counts["synchronizations"] == before + 2
        with cp.cuda.Device(1), pytest.raises(ValueError, match="different from the current device"):
            a + a
