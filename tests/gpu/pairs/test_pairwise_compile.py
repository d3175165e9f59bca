"""NVRTC compiles the kernel sums everywhere: no spills, vector loads, one ex2 per pair."""

import ctypes

import pytest
import sympy as sp

import symad
from symad import functions
from tests.gpu.cupy_agreement import module_of
from tests.gpu.nvrtc import compile_text, library

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(library() is None, reason="needs nvidia-cuda-nvrtc"),
]


def gaussian(x, y, ell):
    return sp.exp(-(x - y).dot(x - y) / (2 * ell**2))


def source(dimension, columns, reduce, real):
    """The source of all kernels of a sum, from the module that is printed for it."""
    weights = (8,) if reduce == "logsumexp" else (8, columns)
    graph = symad.trace(
        lambda x, y, b, ell: functions.pairwise(gaussian, x, y, b, reduce=reduce, params={"ell": ell}),
        [(9, dimension), (8, dimension), weights, ()],
    )
    return module_of(graph, {"float": "float32", "double": "float64"}[real])["_pair_plan_1"]["source"]


CASES = [
    (3, 1, "sum", "float"),
    (3, 1, "logsumexp", "float"),
    (16, 4, "softmax", "float"),
    (64, 1, "sum", "float"),
    (128, 40, "softmax", "float"),
    (3, 1, "sum", "double"),
    (128, 4, "sum", "double"),
]


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_90a", "sm_100", "sm_120"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_compiles_without_spills(case, architecture):
    _, kernels = compile_text(source(*case), architecture)
    passes = ["pair_forward", "pair_backward_rows", "pair_backward_columns"]
    assert sorted(kernels) == sorted([*passes, "pair_combine", "pair_combine_levels"])
    assert all(kernel.spilled == 0 for kernel in kernels.values()), kernels


def ptx(text):
    """The virtual assembly of a source text."""
    program, nvrtc = ctypes.c_void_p(), library()
    options = (ctypes.c_char_p * 3)(b"-arch=compute_90", b"-std=c++17", b"-ftz=true")
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"sums.cu", 0, None, None)
    assert nvrtc.nvrtcCompileProgram(program, 3, options) == 0
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    result = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, result)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return result.value.decode()


def test_the_inner_loop_is_lean():
    text = ptx(source(3, 1, "sum", "float"))
    start = text.index(".visible .entry pair_forward(")
    forward = text[start : text.index("\n}", start)]
    loads = forward.count("ld.shared.v4")
    assert loads and "ld.shared.f32" not in forward
    assert forward.count("ex2.approx.ftz.f32") == 4 * loads  # four points share each load
    assert "div." not in forward.split("ld.shared.v4", 1)[1]  # 1/(2 ell²) stands before the loop
