"""Compile CUDA source with g++ and run its kernels on NumPy arrays, through cuda_shim.h.

`CpuModule` has the calling convention of `cupy.RawModule`: ``module.get_function(name)`` gives a
callable ``(grid, block, args, shared_mem=0)``. Arguments are NumPy arrays (passed as pointers),
NumPy scalars and arrays of a structured dtype with one entry (passed by value); a null pointer is
np.uint64(0). Unlike a GPU it refuses arguments of the wrong number, size or layout.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import subprocess
from functools import cache
from pathlib import Path

import numpy as np

from tests.kept import digest, folder, kept

SHIM = Path(__file__).with_name("cuda_shim.h")
SCHEDULES = ("forward", "reverse", "random")
_schedule = ("forward", 1)


class KernelError(RuntimeError):
    """A kernel broke the rules of CUDA: deadlock, divergence, misalignment, wrong arguments."""


@contextlib.contextmanager
def schedule(name, seed=1):
    """Sets the order of threads inside ``with``: forward, reverse (copies happen at once), or random."""
    global _schedule
    before, _schedule = _schedule, (name, seed)
    try:
        yield
    finally:
        _schedule = before


def sanitized():
    """True if this process runs under AddressSanitizer (see `sanitizer_environment`)."""
    return os.environ.get("SYMAD_SHIM_SANITIZE") == "1"


def sanitizer_environment():
    """Environment for a subprocess whose kernels run under AddressSanitizer and UBSan."""
    runtime = subprocess.run(
        ["g++", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return {
        **os.environ,
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=99:detect_stack_use_after_return=0",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "SYMAD_SHIM_SANITIZE": "1",
    }


def kernel_names(source):
    """Names of the ``extern "C" __global__`` functions of a source text."""
    return re.findall(r"__global__\s+void\s+(?:__launch_bounds__\(.*?\)\s+)?(\w+)\s*\(", source)


_WRAPPER = """
extern "C" const char* run_{name}(const unsigned* grid, const unsigned* block, size_t shared,
                                  void** args, const size_t* sizes, size_t count, int schedule,
                                  unsigned seed) {{
  return shim::launch(&{name}, grid, block, shared, args, sizes, count, schedule, seed);
}}
"""


def build(source):
    """Path of a shared library with the kernels of ``source``; built once per text."""
    names = kernel_names(source)
    text = f'#include "cuda_shim.h"\n{source}\n' + "".join(_WRAPPER.format(name=n) for n in names)
    flags = ["-std=c++17", "-Og", "-fPIC", "-Wno-attributes", "-fno-strict-aliasing"]
    if sanitized():
        flags += ["-g1", "-fsanitize=address,undefined", "-fno-omit-frame-pointer"]
    header = _precompiled(tuple(flags))
    options = [*flags, "-shared", f"-I{header.parent}"]
    library = folder("kernels") / f"{digest(header.parent.name, text)}.so"
    return kept(library, lambda target: _compile(options, text, ".cpp", target))


@cache
def _precompiled(flags):
    """cuda_shim.h compiled with these flags, in a folder of its own."""
    text = SHIM.read_text()

    def make(made):
        made.mkdir()
        (made / "cuda_shim.h").write_text(text)
        _compile([*flags, "-x", "c++-header"], text, ".h", made / "cuda_shim.h.gch")

    version = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout
    return kept(folder("kernels") / digest(version, text, *flags), make) / "cuda_shim.h.gch"


def _compile(flags, text, suffix, target):
    """Compiles a text to a file."""
    code = target.with_name(f"{target.name}{suffix}")
    code.write_text(text)
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    done = subprocess.run(
        ["g++", *flags, str(code), "-o", str(target)],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    if done.returncode:
        raise KernelError(f"g++ failed on {code}:\n{done.stderr[:6000]}")
    code.unlink()


class CpuModule:
    """The kernels of a CUDA source text, compiled for the CPU."""

    def __init__(self, source):
        self.library = ctypes.CDLL(str(build(source)))

    def get_function(self, name):
        """The kernel called ``name``."""
        function = getattr(self.library, f"run_{name}")
        function.restype = ctypes.c_char_p
        return CpuKernel(name, function)


class CpuKernel:
    """One kernel: ``kernel((gx, gy, gz), (bx, by, bz), args, shared_mem=bytes)``."""

    def __init__(self, name, function):
        self.name = name
        self.function = function
        self.max_dynamic_shared_size_bytes = 48 * 1024

    def __call__(self, grid, block, args, *, shared_mem=0):
        if shared_mem > self.max_dynamic_shared_size_bytes:
            raise KernelError(
                f"{self.name}: {shared_mem} bytes of shared memory, the limit set is "
                f"{self.max_dynamic_shared_size_bytes}"
            )
        values = [_value(self.name, k, a) for k, a in enumerate(args)]
        pointers = (ctypes.c_void_p * max(len(values), 1))(*[v.ctypes.data for v in values])
        sizes = (ctypes.c_size_t * max(len(values), 1))(*[v.nbytes for v in values])
        name, seed = _schedule
        message = self.function(
            _three(grid), _three(block), ctypes.c_size_t(shared_mem), pointers, sizes,
            ctypes.c_size_t(len(values)), SCHEDULES.index(name), ctypes.c_uint(seed),
        )
        if message is not None:
            raise KernelError(f"{self.name}: {message.decode()}")


def _three(sizes):
    sizes = (*sizes, 1, 1)[:3]
    return (ctypes.c_uint * 3)(*[int(s) for s in sizes])


def _value(kernel, position, argument):
    """The bytes of one kernel argument, as an array."""
    if isinstance(argument, np.ndarray) and argument.dtype.fields is not None:
        if argument.size != 1:
            raise KernelError(f"{kernel}: argument {position} has {argument.size} structures, not 1")
        return np.ascontiguousarray(argument).reshape(1)
    if isinstance(argument, np.ndarray):
        if not argument.flags.c_contiguous:
            raise KernelError(f"{kernel}: argument {position} is not contiguous")
        return np.array([argument.ctypes.data], np.uint64)
    if isinstance(argument, np.generic):
        return np.array([argument])
    raise KernelError(
        f"{kernel}: argument {position} is a {type(argument).__name__}; a GPU would pass int as 8 "
        "bytes and float as double: give a NumPy scalar"
    )
