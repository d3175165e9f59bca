"""NVRTC compiles the kernel sums for every architecture: no spills, vector loads, one ex2 per pair.

Needs only the pip package nvidia-cuda-nvrtc: no GPU, no driver, no CUDA toolkit.
"""

import ctypes
import importlib.metadata
import re

import pytest
import sympy as sp

from symad.gpu.pairwise import _compile


def library():
    """The NVRTC of the pip wheel."""
    for name in ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"):
        try:
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            if re.fullmatch(r"libnvrtc\.so\.\d+", file.name):
                return ctypes.CDLL(str(file.locate()))
    return None


NVRTC = library()
pytestmark = pytest.mark.skipif(NVRTC is None, reason="needs nvidia-cuda-nvrtc")


def compiled(source, architecture):
    """(PTX, compiler log) of a source text."""
    handle = ctypes.c_void_p()
    NVRTC.nvrtcCreateProgram(ctypes.byref(handle), source.encode(), b"sums.cu", 0, None, None)
    options = ["-std=c++17", f"-arch={architecture}", "--ptxas-options=-v", "-ftz=true"]
    pointers = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    status = NVRTC.nvrtcCompileProgram(handle, len(options), pointers)
    texts = []
    for what in ("PTX", "ProgramLog"):
        size = ctypes.c_size_t()
        getattr(NVRTC, f"nvrtcGet{what}Size")(handle, ctypes.byref(size))
        text = ctypes.create_string_buffer(max(size.value, 1))
        getattr(NVRTC, f"nvrtcGet{what}")(handle, text)
        texts.append(text.value.decode())
    assert status == 0, texts[1]
    return texts


def gaussian(x, y, ell):
    return sp.exp(-(x - y).dot(x - y) / (2 * ell**2))


def source(dimension, columns, reduce, real):
    return _compile(gaussian, dimension, (("ell", None),), columns, reduce, real, False)[2]


CASES = [
    (3, 1, "sum", "float"),
    (3, 1, "logsumexp", "float"),
    (16, 4, "softmax", "float"),
    (64, 1, "sum", "float"),
    (128, 40, "softmax", "float"),
    (3, 1, "sum", "double"),
    (128, 4, "sum", "double"),
]


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_compiles_without_spills(case, architecture):
    _, log = compiled(source(*case), architecture)
    spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
    assert len(spills) == 5 and all(pair == ("0", "0") for pair in spills), log
    assert "warning" not in log, log


def entry(ptx, name):
    """The text of one kernel."""
    start = ptx.index(f".visible .entry {name}(")
    return ptx[start : ptx.index("\n}", start)]


def test_the_inner_loop_is_lean():
    forward = entry(compiled(source(3, 1, "sum", "float"), "sm_90")[0], "pair_forward")
    assert "ld.shared.v4" in forward and "ld.shared.f32" not in forward
    exponentials = forward.count("ex2.approx.ftz.f32")
    assert exponentials and forward.count("ld.shared.v4") == exponentials / 4  # 4 points per load
    assert "div." not in forward.split("ld.shared.v4", 1)[1]  # 1/(2 ell²) stands before the loop
