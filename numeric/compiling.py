"""Compiling C once: the system's compiler, a cache on disk by content, safe for many processes."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from symad.errors import LoweringError

LONG = 5000
"""Lines above which the compiler is asked for less optimisation."""

FLAGS = ("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
"""The arithmetic stays as it is written; errno and exception flags, which nobody reads, are not kept."""

NATIVE = ("-ftree-vectorize", "-march=native")
"""For code that is compiled where it runs: vector instructions of this processor."""


@cache
def compiler() -> list[str] | None:
    """The C compiler: $CC, cc, gcc or clang; None, said once, where there is none."""
    for candidate in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        words = shlex.split(candidate)
        if words and shutil.which(words[0]):
            return words
    warnings.warn("no C compiler was found: kernels of backend 'c' run in NumPy instead", stacklevel=2)
    return None


def cache_folder() -> Path:
    """Where compiled kernels are kept: $SYMAD_CACHE, or symad in the user's cache folder."""
    base = (
        os.environ.get("SYMAD_CACHE")
        or Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "symad"
    )
    return Path(base)


@cache
def processor() -> str:
    """What tells one kind of processor from another: code for this one may not run elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        return platform.processor()


def compile_c(source: str, options: Sequence[str] = ()) -> ctypes.CDLL | None:
    """The shared library of a C source; None without a compiler.

    Args:
        source: C99.
        options: further options of the compiler, after the usual ones.

    Raises:
        LoweringError: the compiler refused the source; its words are in the message.
    """
    command = compiler()
    if command is None:
        return None
    level = "-O1" if source.count("\n") > LONG else "-O2"
    flags = ["-std=c99", level, "-fPIC", "-shared", *FLAGS, *options]
    parts = [*command, *flags, processor() if options else "", source]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    folder = _writable(cache_folder())
    library = folder / f"{key}.so"
    if not library.exists():
        _build(command, flags, source, library)
    return ctypes.CDLL(str(library))


@cache
def native_options() -> tuple[str, ...]:
    """`NATIVE` where the compiler knows these options, else none."""
    try:
        compile_c("int symad_probe;\n", NATIVE)
    except LoweringError:
        return ()
    return NATIVE


def _writable(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return folder if os.access(folder, os.W_OK) else Path(tempfile.mkdtemp(prefix="symad"))
    except OSError:
        return Path(tempfile.mkdtemp(prefix="symad"))


def _build(command: list[str], flags: list[str], source: str, library: Path) -> None:
    """Compile beside the final place, then move: other processes never see half a file."""
    with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
        text, made = Path(scratch) / "kernel.c", Path(scratch) / "kernel.so"
        text.write_text(source, encoding="utf-8")
        done = subprocess.run(
            [*command, *flags, str(text), "-o", str(made), "-lm"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LoweringError(f"{' '.join(command)} refused the generated code:\n{done.stderr[-2000:]}")
        os.replace(made, library)
