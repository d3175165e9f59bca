"""Compile CUDA text for any architecture with NVIDIA's runtime compiler: a pip wheel, no GPU needed."""

from __future__ import annotations

import ctypes
import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from tests.kept import digest, folder, kept


@dataclass(frozen=True)
class Kernel:
    """The assembler's report on one kernel."""

    registers: int
    spilled: int  # bytes stored


class NvrtcError(RuntimeError):
    """The source does not compile."""


def _wheel_file(package, pattern):
    try:
        found = [f for f in files(package) or [] if re.search(pattern, str(f))]
    except PackageNotFoundError:
        return None
    return Path(found[0].locate()) if found else None


@lru_cache(maxsize=1)
def library():
    """libnvrtc of the wheel nvidia-cuda-nvrtc, or None."""
    for package in ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"):
        path = _wheel_file(package, r"libnvrtc\.so\.\d+$")
        if path is not None:
            return ctypes.CDLL(str(path))
    return None


def disassembler():
    """nvdisasm of the wheel nvidia-cuda-nvdisasm, or None."""
    path = _wheel_file("nvidia-cuda-nvdisasm", r"bin/nvdisasm$")
    if path is not None:
        path.chmod(0o755)
    return path


def _text(lib, program, what):
    size = ctypes.c_size_t()
    getattr(lib, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    getattr(lib, f"nvrtcGet{what}")(program, buffer)
    return buffer.raw[: size.value]


def compile_text(source, arch):
    """(cubin, {name: Kernel}) of a source text for an architecture such as "sm_90"; kept by the text."""
    options = [f"-arch={arch}", "-std=c++17", "-ftz=true", "--ptxas-options=-v"]
    built = kept(
        folder("nvrtc") / digest(version(), source, *options),
        lambda path: path.write_bytes(_compiled(source, options)),
    ).read_bytes()
    size = int.from_bytes(built[:8], "little")
    log, cubin = built[8 : 8 + size].decode(), built[8 + size :]
    if not cubin:
        raise NvrtcError(log[:4000])
    return cubin, _kernels(log)


def _compiled(source, options):
    """The length of the log, the log, and the cubin, which is empty if the source does not compile."""
    lib = library()
    program = ctypes.c_void_p()
    lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    try:
        given = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        failed = lib.nvrtcCompileProgram(program, len(options), given)
        log = _text(lib, program, "ProgramLog").rstrip(b"\0")
        cubin = b"" if failed else _text(lib, program, "CUBIN")
        return len(log).to_bytes(8, "little") + log + cubin
    finally:
        lib.nvrtcDestroyProgram(ctypes.byref(program))


def _kernels(log):
    pattern = (
        r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores.*?Used (\d+) registers"
    )
    return {
        name: Kernel(int(registers), int(spilled))
        for name, spilled, registers in re.findall(pattern, log, re.DOTALL)
    }


def instructions(cubin):
    """The number of occurrences of each opcode (without modifiers) in a cubin."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run(
            [str(disassembler()), "-c", file.name], capture_output=True, text=True, check=True
        ).stdout
    return Counter(re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)", text))


def version():
    """The version of the compiler, such as "13.0"."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"
