"""Saved .cu files: what they hold, what is refused, their results on the CPU, and nvcc."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest
import sympy as sp

import symad
import symad.gpu
from symad import functions
from symad.cli import main
from symad.core.graph import Graph, topological
from symad.errors import LoweringError
from symad.higher_order.scan import Scan
from symad.models.layers.parameters import trace_model
from symad.numeric import lower
from symad.op_examples import EXAMPLES
from symad.ops.basic.sources import Input
from tests.gpu.cupy_agreement import leaves
from tests.gpu.launch_cases import CASES as MODELS
from tests.gpu.lowering import cuda_files

x, y = sp.symbols("x y", real=True)
n = sp.Symbol("n", integer=True, positive=True)


def attention(q, k, v):
    return functions.attention(q, k, v, causal=True)


def near(a, b, width):
    return functions.pairwise(
        lambda a, b, w: sp.exp(-(a - b).dot(a - b) / w), a, b, params={"w": width}
    ).sum()


def model(name):
    function, shapes, data = MODELS[name]
    return symad.value_and_gradient(trace_model(function, shapes, *(np.shape(d) for d in data)))


SHAPES = [(1, 2, 40, 16)] * 3
CASES = {
    "scalar": lambda: symad.value_and_gradient(symad.trace(sp.sin(x) * y + sp.exp(x * y), (x, y))),
    "attention": lambda: symad.trace(attention, SHAPES),
    "loss": lambda: symad.value_and_gradient(symad.trace(lambda *a: (attention(*a) ** 2).sum(), SHAPES)),
    "narrow heads": lambda: symad.value_and_gradient(
        symad.trace(lambda *a: (attention(*a) ** 2).sum(), [(1, 2, 7, 3)] * 3)
    ),
    "pairs": lambda: symad.value_and_gradient(symad.trace(near, [(30, 3), (40, 3), ()])),
    "views": lambda: symad.trace(lambda a: (a.T[1:] + 2 * a[0, 1], a, a.sum(axis=0), a * 0 + 1), [(3, 4)]),
    "dict": lambda: symad.trace(lambda p, a: {"s": p["w"] * a + p["b"]}, [{"w": (3,), "b": ()}, (2, 3)]),
    **{name: (lambda name=name: model(name)) for name in MODELS if name != "images"},  # maxima by CuPy
}
WITH_ROWS = {name for name in MODELS if "language" in name or name == "classifier"}
SLOW = {
    "float64": {"language model, 2 layers", "language model, rotary", "language model, alibi"},
    "float32": {*WITH_ROWS, "lstm, 100 steps", "lstm of PyTorch", "gru of PyTorch", "transformer block"},
}


def saved(name, dtype, folder):
    """The path of a saved file, and its graph."""
    graph = CASES[name]()
    with symad.gpu.options(capture=True):
        kernel = lower(graph, backend="cupy", dtype=dtype)
    path = folder / "made.cu"
    kernel.save(path)
    return path, graph


def test_what_a_file_holds(tmp_path):
    path, _ = saved("attention", "bfloat16", tmp_path)
    source, header = path.read_text(), path.with_suffix(".h").read_text()
    prototype = (
        "int symad_attention(const uint16_t *in_q, const uint16_t *in_k, const uint16_t *in_v, "
        "uint16_t *out_1, void *workspace, struct CUstream_st *stream)"
    )
    assert f'extern "C" {prototype} {{' in source
    assert f"{prototype};" in header
    assert "in_q: bfloat16, shape (1, 2, 40, 16)" in header
    assert "1 launches" in header
    shared = int(re.search(r"at most (\d+) bytes of dynamic shared memory", header)[1])
    assert f"dim3{{1, 2, 1}}, dim3{{128, 1, 1}}, arguments, {shared}, stream" in source
    room = int(re.search(r"_WORKSPACE (\d+)", header)[1])
    assert room >= 4 * 2 * 40  # the log-sum-exps, one float32 for each query
    assert '#include "' not in source


def test_no_address_of_this_process_is_in_a_file():
    """A structure holds 0 where the launcher puts an address: files of equal functions are equal."""
    (step, *_) = EXAMPLES[Scan]()
    inputs = tuple(node for node in topological([step]) if isinstance(node.op, Input))
    with symad.gpu.options(capture=True):
        kernel = lower(Graph(inputs, (step,)), "cupy", "float32")
    text, _ = kernel.origin.standalone(kernel)
    held = {}
    for line in text.splitlines():
        if found := re.search(r"unsigned char (a\d+)\[\] = \{([\d, ]+)\}", line):
            held[found[1]] = [int(number) for number in found[2].split(",")]
        if found := re.search(r"memcpy\((a\d+) \+ (\d+), &p, 8\)", line):
            assert held[found[1]][int(found[2]) :][:8] == [0] * 8
    assert held


def test_intermediate_arrays_share_memory(tmp_path):
    """A chain of softmaxes needs the memory of two steps, not of all."""

    def chain(v):
        for k in range(1, 7):
            v = functions.softmax(v * k, axis=-1).T
        return v

    lower(symad.trace(chain, [(64, 64)]), backend="cupy", dtype="float32").save(tmp_path / "chain.cu")
    header = (tmp_path / "chain.h").read_text()
    assert int(re.search(r"(\d+) launches", header)[1]) >= 6
    assert int(re.search(r"_WORKSPACE (\d+)", header)[1]) <= 2 * 64 * 64 * 4


@pytest.mark.parametrize(
    ("graph", "told"),
    [
        (lambda: symad.trace(lambda a: a @ a, [(40, 40)]), r"needs cuBLAS.*options\(capture=True\)"),
        (lambda: symad.trace(lambda a: np.linalg.inv(a), [(3, 3)]), r"needs cupy\."),
        (lambda: symad.trace(lambda a: np.argsort(a) @ a, [(4,)]), r"needs cupy\.(ndarray\.)?argsort"),
        (lambda: symad.trace(lambda a: a + 1, [(n,)]), r"leaves n open; give lower\(f\.at"),
    ],
)
def test_what_is_not_a_launch_is_refused_by_name(graph, told, tmp_path):
    with pytest.raises(LoweringError, match=told):
        lower(graph(), backend="cupy").save(tmp_path / "x.cu")
    assert list(tmp_path.iterdir()) == []


def test_other_backends_have_no_cuda(tmp_path):
    with pytest.raises(LoweringError, match=r"has no CUDA; backend='cupy' prints it"):
        lower(CASES["scalar"]()).save(tmp_path / "x.cu")
    with pytest.raises(LoweringError, match="is packed"):
        lower(CASES["scalar"](), backend="cupy", packed=True).save(tmp_path / "x.cu")


def test_on_the_command_line(tmp_path, capsys):
    (tmp_path / "valley.py").write_text(
        "import sympy as sp\nx, y = sp.symbols('x y')\nvalley = (1 - x)**2 + 100*(y - x**2)**2\n"
    )
    given = ["lower", f"{tmp_path}/valley.py:valley", "--backend", "cupy", "--of", "gradient"]
    assert main([*given, "-o", str(tmp_path / "valley.cu")]) == 0
    lines = len((tmp_path / "valley.cu").read_text().splitlines())
    told = capsys.readouterr().out
    assert f"valley.cu: valley_gradient, {lines} lines, for cupy" in told
    assert "valley.h: valley_gradient" in told
    assert "int symad_valley_gradient(const double *in_x" in (tmp_path / "valley.h").read_text()


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, marks=[pytest.mark.slow] * (name in SLOW[dtype]))
        for name in CASES
        for dtype in ("float64", "float32")
    ],
)
def test_results_on_the_cpu(name, dtype, tmp_path):
    path, graph = saved(name, dtype, tmp_path)
    rng = np.random.default_rng(4)
    values = [rng.uniform(0.2, 0.9, tuple(map(int, node.shape))) for node in graph.input_nodes]
    data = MODELS[name][2] if name in MODELS else ()
    values[len(values) - len(data) :] = data
    expected = leaves(lower(graph.ungrouped())(*values))
    found, wrong = cuda_files.run(path, values, [np.shape(e) for e in expected], dtype)
    assert wrong == (0 if name in WITH_ROWS else None)
    bound = 1e-12 if dtype == "float64" else 3e-5
    for e, f in zip(expected, found, strict=True):
        np.testing.assert_allclose(f, e, rtol=bound, atol=bound * max(1.0, np.abs(e).max()))


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_a_wrong_row_is_recorded(tmp_path):
    lower(symad.trace(lambda t, i: t[i].sum(), [(5, 2), (3,)]), backend="cupy").save(tmp_path / "rows.cu")
    table = np.arange(10.0).reshape(5, 2)
    for rows, total, length in (([0, 4, -1], 1 + 17 + 17, 0), ([0, 4, 5], 1 + 17 + 1, 5)):
        (found,), wrong = cuda_files.run(tmp_path / "rows.cu", [table, np.array(rows)], [()], "float64")
        assert found == total  # a wrong row counts as 0
        assert wrong % 2**48 == length
        assert (wrong == 0) == (length == 0)


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize(
    ("name", "dtype"),
    [("loss", "bfloat16"), ("pairs", "float16"), ("vae", "bfloat16"), ("transformer block", "float32")],
)
def test_nvcc_compiles_files(name, dtype, tmp_path):
    """The source without warnings, and the header as C and as C++."""
    path, _ = saved(name, dtype, tmp_path)
    flags = ["-std=c++17", "-arch=sm_80", "--diag-suppress=177", "-Werror=all-warnings", "-c"]
    subprocess.run(["nvcc", *flags, str(path), "-o", str(tmp_path / "made.o")], check=True)
    for language in ("c", "c++"):
        subprocess.run(
            ["g++", "-x", language, "-Wall", "-Werror", "-fsyntax-only", "-"],
            input='#include "made.h"\nint main(void) { return 0; }\n', text=True, cwd=tmp_path, check=True,
        )  # fmt: skip
