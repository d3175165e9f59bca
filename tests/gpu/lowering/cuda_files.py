"""Runs a saved .cu file on the CPU: g++ compiles it with the shim's kernels and calls of CUDA's runtime."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np

from tests.gpu.shim.driver import SHIM, kernel_names
from tests.kept import digest, folder, kept

FLAGS = ("-std=c++17", "-Og", "-w", "-fPIC", "-shared", "-fno-strict-aliasing")


def library(path):
    """The file as a library of this process."""
    shim = "".join((SHIM.parent / name).read_text() for name in ("cuda_runtime.h", "cuda_shim.h"))
    source = Path(path).read_text()
    assert kernel_names(source)

    def make(target):
        command = ["g++", *FLAGS, f"-I{SHIM.parent}", "-x", "c++", str(path), "-o", str(target)]
        subprocess.run(command, check=True)

    return ctypes.CDLL(str(kept(folder("kernels") / f"{digest(source, shim, *FLAGS)}.so", make)))


def aligned(shape, dtype):
    """Memory at a multiple of 256 bytes, filled with NaN or another number that no result is."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.full(count + 256, 0xFF, np.uint8)
    start = -raw.ctypes.data % 256
    return raw[start : start + count].view(dtype).reshape(shape)


def run(path, values, shapes, dtype):
    """The results of the function of a file, given the shapes of the results; and the wrong row, or None."""
    header = Path(path).with_suffix(".h").read_text()
    name = re.search(r"^int (\w+)\(", header, re.MULTILINE)[1]
    room = int(re.search(rf"#define {name.upper()}_WORKSPACE (\d+)", header)[1])
    given = [aligned(np.shape(v), np.int64 if np.asarray(v).dtype.kind == "i" else dtype) for v in values]
    for array, value in zip(given, values, strict=True):
        array[...] = value
    made = [aligned(shape, dtype) for shape in shapes]
    wrong = [aligned((1,), np.int64)] * ("*out_wrong_row" in header)
    arrays = [*given, *made, *wrong, aligned((room,), np.uint8)]
    function = library(path)[name]
    function.argtypes = [ctypes.c_void_p] * (len(arrays) + 1)
    assert function(*(a.ctypes.data for a in arrays), None) == 0
    return made, int(wrong[0][0]) if wrong else None
