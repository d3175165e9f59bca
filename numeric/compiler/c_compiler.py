"""Compiling C once: the system's compiler, and a private cache on disk, keyed by content.

A kernel works whatever is wrong with the system (no compiler, no home folder, a full disk, a damaged file):
its library is compiled again, or compiled without being stored, or the kernel runs in NumPy. One warning
states the reason.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import warnings
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path

from symad.errors import LoweringError
from symad.numeric.compiler.private_folder import (
    Unusable,
    cache_folder,
    is_sound,
    keep,
    make_private,
    working_folder,
)

MAX_OPTIMISED_LINES = 5000
"""A source with more lines than this is compiled with less optimisation.

Origin: it bounds the time of compilation, not that of calls.
"""

FLAGS = ("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
"""Arithmetic is not reordered or contracted; errno and exception flags, which nobody reads, are not kept."""

NATIVE = ("-ftree-vectorize", "-march=native")
"""Options for code that runs on the machine that compiles it: this processor's vector instructions."""


class NotCompiled(LoweringError):
    """Generated code needs a C compiler, and none works."""


@cache
def compiler() -> list[str] | None:
    """The C compiler: $CC, cc, gcc or clang; None, with one warning, if there is none."""
    found, warning = search()
    if warning:
        warnings.warn(warning, stacklevel=2)
    return found


def search() -> tuple[list[str] | None, str]:
    """The C compiler, and a warning if it is not the one asked for or if there is none."""
    chosen = os.environ.get("CC", "")
    try:
        words = shlex.split(chosen)
        reason = f"CC={chosen!r} is not found" if words and not shutil.which(words[0]) else ""
    except ValueError as error:
        words, reason = [], f"CC={chosen!r} is not a command ({error})"
    if words and not reason:
        return words, ""
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name], f"{reason}; {name} compiles instead" if reason else ""
    return None, f"{reason}, and {NO_COMPILER}" if reason else NO_COMPILER


@cache
def processor() -> str:
    """A text that identifies the kind of processor: code for it may not run on another."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        return platform.processor()


def compile_c(source: str, options: Sequence[str] = ()) -> ctypes.CDLL | None:
    """The shared library of a C source; None, with one warning, if none can be made.

    Args:
        source: C99 text.
        options: further options for the compiler, after the usual ones.

    Raises:
        LoweringError: the compiler works but refused the source; the message contains its output.
    """
    command = compiler()
    if command is None:
        return None
    flags, key = _identified(tuple(command), tuple(options), source)
    reasons: list[str] = []
    try:
        folder = cache_folder()
        if (loaded := _loaded.get((folder, key))) is None:
            make_private(folder)
            loaded = _loaded[folder, key] = _from_cache(folder / f"{key}.so", command, flags, source)
        return loaded
    except Unusable as error:
        reasons.append(str(error))
    try:
        if (loaded := _loaded.get((None, key))) is None:
            loaded = _loaded[None, key] = _without_cache(command, flags, source)
        warn_once(NOT_KEPT, reasons[0])
        return loaded
    except Unusable as error:
        warn_once(NOT_COMPILED, "; ".join(dict.fromkeys([*reasons, str(error)])))
    return None


@lru_cache(maxsize=8)
def _identified(command: Sequence[str], options: Sequence[str], source: str) -> tuple[list[str], str]:
    """The options of the compiler for a source, and a key for all that decides about the library.

    Kept for a few sources: kernels of backend "runs" have one and the same.
    """
    level = "-O1" if source.count("\n") > MAX_OPTIMISED_LINES else "-O2"
    flags = ["-std=c99", level, "-fPIC", "-shared", *FLAGS, *options]
    parts = [*command, *flags, processor() if options else "", platform.machine(), source]
    return flags, hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


_loaded: dict[tuple[Path | None, str], ctypes.CDLL] = {}
"""The libraries of this process, by folder and key."""

NO_COMPILER = "no C compiler was found: kernels of backend 'c' run in NumPy instead"
NOT_KEPT = "compiled kernels are not kept for other processes"
NOT_COMPILED = "kernels of backend 'c' run in NumPy instead: nothing can be compiled here"

_said: set[str] = set()


def warn_once(what: str, reason: str = "") -> None:
    """Warn once per process of what is slower than it could be, however many kernels are affected."""
    if what not in _said:
        _said.add(what)
        warnings.warn(f"{what} ({reason})" if reason else what, stacklevel=4)


@cache
def native_options() -> tuple[str, ...]:
    """`NATIVE` if the compiler accepts these options, else none."""
    try:
        compile_c(PROBE, NATIVE)
    except LoweringError:
        return ()
    return NATIVE


PROBE = "int symad_probe;\n"
"""A source that every working compiler accepts."""


def _from_cache(library: Path, command: list[str], flags: list[str], source: str) -> ctypes.CDLL:
    """A stored library; it is compiled (again) if it is missing, damaged or cannot be loaded."""
    if is_sound(library):
        try:
            return ctypes.CDLL(str(library))
        except OSError:
            pass  # compiled by another machine that shares the folder
    with working_folder(library.parent) as scratch:
        made = _build(command, flags, source, scratch)
        try:
            keep(made, library)
        except OSError as error:
            raise Unusable(f"{library.parent}: {error.strerror or error}") from None
        return _load(library, command, scratch)


def _without_cache(command: list[str], flags: list[str], source: str) -> ctypes.CDLL:
    """A library for this process only; its file is deleted once it is loaded."""
    with working_folder() as scratch:
        return _load(_build(command, flags, source, scratch), command, scratch)


def _load(library: Path, command: list[str], scratch: Path) -> ctypes.CDLL:
    """The library, loaded.

    Raises:
        Unusable: no library can be loaded here.
        LoweringError: this one cannot, as it calls a function that nothing defines.
    """
    try:
        return ctypes.CDLL(str(library))
    except OSError as error:
        told = f"the compiled library cannot be loaded: {error}"
    try:
        probe, _ = _compile(command, ["-fPIC", "-shared"], PROBE, scratch)
        works = probe is not None and ctypes.CDLL(str(probe)) is not None
    except OSError:
        works = False
    raise LoweringError(told) if works else Unusable(told)


def _build(command: list[str], flags: list[str], source: str, scratch: Path) -> Path:
    """The library, compiled in a working folder.

    Raises:
        Unusable: the compiler does not work here, for any source.
        LoweringError: the compiler refused this source.
    """
    made, words = _compile(command, flags, source, scratch)
    if made is not None:
        return made
    lines = words.strip().splitlines()
    causes = [line for line in lines if any(sign in line for sign in NO_ROOM)]
    if causes or _compile(command, [], PROBE, scratch, "-c")[0] is None:
        told = [*causes, *lines[-1:], "it made no library"][0]
        raise Unusable(f"{command[0]} does not work: {told[-200:]}")
    raise LoweringError(f"{' '.join(command)} refused the generated code:\n{words[-2000:]}")


NO_ROOM = (
    *(os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM, errno.EROFS)),
    "terminated program",
    "terminated with signal",
    "virtual memory exhausted",
)
"""Messages of compilers that ran out of space or were killed."""


def _compile(
    command: list[str], flags: list[str], source: str, scratch: Path, *more: str
) -> tuple[Path | None, str]:
    """The file that the compiler made, or None, and the compiler's output; ``scratch`` is its work folder."""
    text, made = scratch / "kernel.c", scratch / "kernel.so"
    surroundings = {**os.environ, "TMPDIR": str(scratch), "LC_ALL": "C"}
    try:
        made.unlink(missing_ok=True)
        text.write_text(source, encoding="utf-8")
        done = subprocess.run(
            [*command, *flags, *more, str(text), "-o", str(made), "-lm"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env=surroundings,
        )
    except OSError as error:
        raise Unusable(f"{error.filename or command[0]}: {error.strerror or error}") from None
    words = done.stderr.decode(errors="replace")
    if done.returncode < 0:
        raise Unusable(f"{command[0]} was ended by signal {-done.returncode}")
    return made if not done.returncode and made.is_file() else None, words
