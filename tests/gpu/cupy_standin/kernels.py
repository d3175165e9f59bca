"""Generated kernels on the CPU: the C text of their bodies, compiled and run in a loop."""

from __future__ import annotations

import ctypes
import math
import re
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from tests.gpu.cupy_standin import cuda
from tests.gpu.cupy_standin.array import added, copied, host, ndarray
from tests.gpu.shim.driver import CpuModule

C_TYPES = {
    "float64": "double", "float32": "float", "float16": "float", "bfloat16": "float",
    "bool": "_Bool", "int64": "long long", "int32": "int",
}  # fmt: skip
INSIDE = {"float16": np.float32, "bfloat16": np.float32, "bool": np.bool_}
PREAMBLE = """
#include <math.h>
#define bool _Bool
#define true 1
#define false 0
#define __device__
"""
STRICT = ["-Wall", "-Wextra", "-Werror", "-Wdouble-promotion", "-Wfloat-conversion"]
RELAXED = ["-Wno-unused", "-Wno-unused-parameter", "-Wno-div-by-zero"]


_waiting: dict[str, list[str]] = {}
"""Loops that are declared and not yet compiled, by preamble."""

_loops: dict[tuple[str, str], Callable[..., None]] = {}


def declare(preamble, loop):
    """Registers a loop, to be compiled together with others of its preamble when one of them first runs."""
    if (preamble, loop) not in _loops:
        _waiting.setdefault(preamble, []).append(loop)


def compiled(preamble, loop):
    """The compiled function of a C text; one run of the compiler serves all waiting loops of the preamble."""
    if (preamble, loop) not in _loops:
        together = list(dict.fromkeys([*_waiting.pop(preamble, []), loop]))
        try:
            _compile(preamble, together)
        except AssertionError:  # perhaps in another loop, which no test runs
            _compile(preamble, [loop])
    return _loops[preamble, loop]


def _compile(preamble, loops):
    named = [loop.replace("void loop(", f"void loop_{k}(", 1) for k, loop in enumerate(loops)]
    text = "\n".join([PREAMBLE, preamble, *named])
    with tempfile.TemporaryDirectory() as folder:  # an open library outlives its file
        library = Path(folder) / "kernels.so"
        made = subprocess.run(
            ["gcc", "-O0", "-shared", "-fPIC", *STRICT, *RELAXED, "-o", library, "-x", "c", "-", "-lm"],
            input=text, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if made.returncode:
            raise AssertionError(f"the kernel does not compile:\n{made.stderr}\n{text}")
        opened = ctypes.CDLL(str(library))
    for k, loop in enumerate(loops):
        _loops[preamble, loop] = opened[f"loop_{k}"]


class Parameter:
    """A parameter of a kernel, such as "float32 x0" or "raw float32 out"."""

    def __init__(self, text):
        *modifiers, self.dtype, self.name = text.split()
        if modifiers not in ([], ["raw"]):
            raise ValueError(f"Invalid kernel parameter {text!r}")
        self.raw = bool(modifiers)
        if self.name in ("i", "n") or self.name.startswith("_") or self.dtype not in C_TYPES:
            raise ValueError(f"Invalid kernel parameter {text!r}")
        self.c_type = C_TYPES[self.dtype]

    def check(self, value):
        """CuPy's rule: an array has exactly the declared type; numbers are converted."""
        if isinstance(value, ndarray):
            if value.dtype != np.dtype(self.dtype):
                raise TypeError(f"Type is mismatched. {self.name} {value.dtype} {self.dtype}")
        elif not isinstance(value, (int, float, bool, np.generic)):
            raise TypeError(f"Unsupported type {type(value)} for {self.name}")


def parameters(text):
    return [Parameter(part) for part in text.split(",")]


def prepared(parameter, value, shape):
    """A contiguous array in the type of the C text, broadcast unless raw."""
    kind = INSIDE.get(parameter.dtype, parameter.dtype)
    inside = host(value) if isinstance(value, ndarray) else np.asarray(value)
    if not parameter.raw:
        inside = np.broadcast_to(inside, shape)
    return np.ascontiguousarray(inside, dtype=kind)


def check_name(name):
    if not re.fullmatch(r"[a-zA-Z_]\w*", name):
        raise ValueError(f"Invalid kernel name: {name!r}")


MADE: list[object] = []
"""The kernels and modules that were made, in order."""


class ElementwiseKernel:
    """A kernel that runs its body for every element."""

    def __init__(self, inputs, outputs, body, name="kernel", preamble=""):
        check_name(name)
        self.inputs, self.outputs = parameters(inputs), parameters(outputs)
        self.name, self.body, self.preamble = name, body, preamble
        MADE.append(self)
        self.loop = self._loop()
        declare(preamble, self.loop)

    def _loop(self):
        everything = self.inputs + self.outputs
        signature = ", ".join(f"{p.c_type} *all_{p.name}" for p in everything)
        lines = []
        for p in everything:
            if p.raw:
                lines.append(f"{p.c_type} *{p.name} = all_{p.name};")
            elif p in self.inputs:
                lines.append(f"const {p.c_type} {p.name} = all_{p.name}[i];")
            else:
                lines.append(f"{p.c_type} {p.name};")
        stores = [f"all_{p.name}[i] = {p.name};" for p in self.outputs if not p.raw]
        inner = "\n".join([*lines, self.body, *stores])
        body = f"for (long long i = 0; i < size; ++i) {{\n{inner}\n}}"
        return f"void loop(long long size, {signature}) {{\n{body}\n}}\n"

    def __call__(self, *args, size=None):
        if len(args) not in (len(self.inputs), len(self.inputs) + len(self.outputs)):
            raise TypeError(f"Wrong number of arguments: {len(args)}")
        everything = self.inputs + self.outputs
        for p, value in zip(everything, args, strict=False):
            p.check(value)
        sized = [
            v._inside
            for p, v in zip(everything, args, strict=False)
            if not p.raw and isinstance(v, ndarray)
        ]
        if (size is None) != bool(sized):
            raise ValueError("Loop size is undecided." if size is None else "size with plain arrays")
        shape = np.broadcast_shapes(*(a.shape for a in sized)) if size is None else (size,)
        ins = [prepared(p, v, shape) for p, v in zip(self.inputs, args, strict=False)]
        given = args[len(self.inputs) :]
        if given:
            outs = [prepared(p, v, v.shape) for p, v in zip(self.outputs, given, strict=True)]
        else:
            outs = [np.empty(shape, INSIDE.get(p.dtype, p.dtype)) for p in self.outputs]
        cuda.launched(math.prod(shape) > 0)
        pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in [*ins, *outs]]
        compiled(self.preamble, self.loop)(ctypes.c_longlong(math.prod(shape)), *pointers)
        with np.errstate(over="ignore"):
            results = [o.astype(p.dtype, copy=False) for p, o in zip(self.outputs, outs, strict=True)]
        if given:
            for target, result in zip(given, results, strict=True):
                target._inside[...] = result
            return given[0] if len(given) == 1 else given
        made = tuple(ndarray(r) for r in results)
        return made[0] if len(made) == 1 else made


def check_launch(grid, block, args):
    """Checks the limits of a launch, and counts it.

    Grids: at most 2³¹ − 1 blocks along x, 65535 along y and z; blocks: at most 1024 threads, 64 along z. A
    size of 0 becomes 1 (cupy/cuda/function.pyx, lines 148-150 [225-227]); the driver checks the limits, CuPy
    does not (table of compute capabilities, CUDA programming guide). NumPy arrays are passed by value if they
    have one element (lines 66-80 [120-134]). Of a device array only the pointer is passed (line 57 [111]).
    Memory of the pool starts at multiples of 512 bytes (cupy/cuda/memory.pyx, line 40 [33]), a view at any
    address. The shim checks the alignment of each copy.
    """
    cuda.launched()
    grid, block = (*grid, 1, 1)[:3], (*block, 1, 1)[:3]
    if grid[0] >= 2**31 or max(grid[1:]) > 65535 or math.prod(block) > 1024 or block[2] > 64:
        raise cuda.CUDARuntimeError(f"CUDA_ERROR_INVALID_VALUE: grid {grid}, block {block}")
    size = sum(a.nbytes if isinstance(a, (np.ndarray, np.generic)) else 8 for a in args)
    if size > 4096:  # the limit of older devices, and before CUDA 12.1 of compute capability 7.0 and later
        raise cuda.CUDARuntimeError(f"CUDA_ERROR_INVALID_VALUE: {size} bytes of parameters")
    if min(*grid, *block) < 1:
        raise AssertionError(f"an empty launch: grid {grid}, block {block}; CuPy would make it 1")
    for a in args:
        if isinstance(a, np.ndarray) and a.size != 1:
            raise TypeError("Unsupported type: a NumPy array among the arguments of a kernel")
        if isinstance(a, ndarray) and not a._inside.flags.c_contiguous:
            raise AssertionError("a kernel gets the pointer of a view that is not contiguous")


class RawKernel:
    """A CUDA kernel, run by the CPU shim."""

    def __init__(self, code, name, options=()):
        self.code, self.name, self.options = code, name, options
        MADE.append(self)

    def __call__(self, grid, block, args, *, shared_mem=0):
        check_launch(grid, block, args)
        inside = [host(a) if isinstance(a, ndarray) else a for a in args]
        _module(self.code).get_function(self.name)(grid, block, inside, shared_mem=shared_mem)


class RawModule:
    """A CUDA source, run by the CPU shim."""

    def __init__(self, code, options=()):
        self.code, self.options = code, options
        MADE.append(self)

    def compile(self):
        _module(self.code)

    def get_function(self, name):
        return RawFunction(_module(self.code).get_function(name))


class RawFunction:
    """A kernel of a module; arguments are device arrays, or NumPy scalars and structures by value."""

    def __init__(self, kernel):
        self.__dict__["kernel"] = kernel

    def __setattr__(self, name, value):
        if name != "max_dynamic_shared_size_bytes":
            raise AttributeError(name)
        self.kernel.max_dynamic_shared_size_bytes = value

    def __call__(self, grid, block, args, *, shared_mem=0):
        check_launch(grid, block, args)
        inside = [host(a) if isinstance(a, ndarray) else a for a in args]
        self.kernel(grid, block, inside, shared_mem=shared_mem)


@cache
def _module(code):
    return CpuModule(code)


class ReductionKernel:
    """The sum of a mapped expression over axes: the only reduction that generated code uses."""

    def __init__(
        self, inputs, outputs, mapped, reduced, after, identity, name="k", reduce_type=None, preamble=""
    ):
        check_name(name)
        self.given = inputs, outputs, mapped, reduced, after, identity, name, reduce_type, preamble
        (self.output,) = parameters(outputs)
        if (reduced, identity) != ("a + b", "0"):
            raise NotImplementedError(f"{reduced}; {identity}")
        self.inputs = parameters(inputs)
        if any(p.raw for p in self.inputs):
            raise NotImplementedError("raw arrays in reductions")
        if reduce_type not in ("float", "double"):
            raise ValueError(f"reduce_type={reduce_type!r}")
        wide = {"float": "float32", "double": "float64"}[reduce_type]
        body = f"mapped_value = {mapped};"
        self.map = ElementwiseKernel(inputs, f"{wide} mapped_value", body, name, preamble)
        self.end = ElementwiseKernel(f"{wide} a", outputs, f"{after};", name, preamble)
        MADE[-2:] = [self]

    def __call__(self, *args, axis):
        values = self.map(*args)  # one launch with the sum
        with np.errstate(all="ignore"):
            total = ndarray(np.asarray(added(values._inside, axis)))
        made = self.end(total)
        cuda.launched(-(total.size > 0))
        return made


for _kind in (ElementwiseKernel, RawKernel, RawFunction, ReductionKernel):
    _kind.__call__ = cuda.recorded(_kind.__call__, copied)
