"""Generated CuPy kernels through NVIDIA's compiler, in the loop that CuPy writes around a body."""

from __future__ import annotations

import pytest
import sympy as sp

import symad
from symad import functions
from symad.models.layers.parameters import trace_model
from symad.models.sequences.lstm import LSTM
from symad.models.transformers.transformer import Transformer
from tests.gpu import nvrtc
from tests.gpu.cupy_agreement import module_of
from tests.gpu.kernels.kernel_texts import cuda_text, kernels_of
from tests.gpu.lowering.op_cases import SCALARS

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(nvrtc.library() is None, reason="needs the wheel nvidia-cuda-nvrtc"),
]


def model_graphs():
    transformer = Transformer(7, 6, 8, 2, 2, block="swiglu", position="rotary")
    lstm = LSTM(3, 4, 2, 1)
    yield "transformer", trace_model(transformer.loss, transformer.shapes, (2, 5), (2, 5))
    yield "lstm", trace_model(lstm.loss, lstm.shapes, (5, 3), (5, 2))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "graph"), list(model_graphs()))
def test_kernels_of_models_compile(name, graph, dtype):
    found = kernels_of(symad.value_and_gradient(graph), dtype)
    assert len(found) > 5
    for text in {cuda_text(kernel) for kernel in found}:
        cubin, report = nvrtc.compile_text(text, "sm_90")
        assert cubin
        assert all(kernel.spilled == 0 for kernel in report.values())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_kernels_of_scalar_functions_compile(dtype):
    x, y, z = sp.symbols("x y z", real=True)
    for e in SCALARS:
        (kernel,) = kernels_of(symad.trace(e, (x, y, z)), dtype)
        text = cuda_text(kernel)
        if dtype == "float32":
            assert "double" not in text
        assert nvrtc.compile_text(text, "sm_80")[0]


def test_float_kernels_run_in_float():
    """No instruction of a float32 kernel is double: the constants are float too."""
    if nvrtc.disassembler() is None:
        pytest.skip("needs the wheel nvidia-cuda-nvdisasm")
    x = sp.Symbol("x", real=True)
    (kernel,) = kernels_of(symad.trace(sp.exp(-x / 3) * sp.pi + x**3, (x,)), "float32")
    opcodes = nvrtc.instructions(nvrtc.compile_text(cuda_text(kernel), "sm_90")[0])
    assert opcodes["FMUL"] + opcodes["FFMA"] > 0
    assert not {"DADD", "DMUL", "DFMA"} & set(opcodes)


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_attention_and_pairs_in_modules_compile(dtype):
    """Every source that a module may launch, for the largest tiles."""
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")

    def loss(q, k, v, slope, x, ell):
        out = functions.attention(
            q, k, v, causal=True, params={"slope": slope},
            score=lambda s, b, h, i, j, slope: s + slope[h] * (j - i),
        )  # fmt: skip
        gaussian = functions.pairwise(
            lambda x, y, ell: sp.exp(-(x - y).dot(x - y) / ell), x, x, params={"ell": ell}
        )
        return (out**2).sum() + gaussian.sum()

    shapes = [(1, 2, 8, 64)] * 3 + [(2,), (5, 3), ()]
    graph = symad.value_and_gradient(symad.trace(loss, shapes))
    namespace = module_of(graph, dtype)
    plans = {k: v for k, v in namespace.items() if k.startswith("_plans_")}
    assert {k.removeprefix("_plans_").rstrip("_0123456789") for k in plans} == {
        "forward", "backward_q", "backward_kv"
    }  # fmt: skip
    for name, entries in plans.items():
        for *_, source in entries[0][2]:
            _, kernels = nvrtc.compile_text(source, "sm_90")
            kind = name.removeprefix("_plans_").rstrip("_0123456789")
            assert kernels[f"attention_{kind}"].spilled <= 16
    (pairs,) = [v for k, v in namespace.items() if k.startswith("_pair_plan") and isinstance(v, dict)]
    _, kernels = nvrtc.compile_text(pairs["source"], "sm_90")
    assert {"pair_forward", "pair_backward_rows", "pair_backward_columns"} <= kernels.keys()
