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
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from functools import cache, lru_cache
from pathlib import Path

from symad.core.process import within
from symad.errors import LoweringError
from symad.numeric.compiler.private_folder import (
    Unusable,
    cache_folder,
    is_sound,
    keep,
    make_private,
    working_folder,
)

MAX_OPTIMIZED_LINES = 5000
"""A source with more lines than this is compiled with less optimization.

Origin: it bounds the time of compilation, not that of calls.
"""

QUIET_SECONDS = 2.0
"""A compiler that takes longer is reported on the standard error stream.

Origin: the time that a user waits without wondering.
"""

FULL = 2
"""The level of optimization that code is compiled with unless `optimized` asks for less."""

_level: ContextVar[int] = ContextVar("level", default=FULL)


def level() -> int:
    """The level of optimization that code is compiled with here."""
    return _level.get()


def optimized(wanted: int) -> AbstractContextManager[None]:
    """While this is active, code is compiled with this level of optimization: 0, 1, or `FULL`."""
    return within(_level, wanted)


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
    flags, key = _identified(tuple(command), tuple(options), source, level())
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
def _identified(
    command: Sequence[str], options: Sequence[str], source: str, wanted: int
) -> tuple[list[str], str]:
    """The options of the compiler for a source, and a key for all that decides about the library.

    Kept for a few sources: kernels of backend "runs" have one and the same.
    """
    less = min(wanted, 1) if source.count("\n") > MAX_OPTIMIZED_LINES else wanted
    flags = ["-std=c99", "-O2", "-fPIC", "-shared", *FLAGS, *options]
    flags += [f"-O{less}"] if less < FULL else []  # the last of several levels counts
    parts = [*command, *flags, processor() if options else "", platform.machine(), source]
    return flags, hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


_loaded: dict[tuple[Path | None, str], ctypes.CDLL] = {}
"""The libraries of this process, by folder and key."""

NO_COMPILER = "no C compiler was found: kernels of backend 'c' run in NumPy instead"
NOT_KEPT = "compiled kernels are not kept for other processes"
NOT_COMPILED = "kernels of backend 'c' run in NumPy instead: nothing can be compiled here"

_said: set[str] = set()


def warn_once(what: str, reason: str = "") -> None:
    """Warn once per process about a cause of slow calls, whatever the number of kernels."""
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
        whole = [*command, *flags, *more, str(text), "-o", str(made), "-lm"]
        code, words = _reported(whole, surroundings, source.count("\n"))
    except OSError as error:
        raise Unusable(f"{error.filename or command[0]}: {error.strerror or error}") from None
    if code < 0:
        raise Unusable(f"{command[0]} was ended by signal {-code}")
    return made if not code and made.is_file() else None, words


def _reported(command: list[str], surroundings: dict[str, str], lines: int) -> tuple[int, str]:
    """Run a compiler: its exit code, and what it says. What takes long is told in a line.

    A compiler is several processes. They are a group of their own, which an interrupt ends as a whole.
    """
    start, quiet, pipe = time.monotonic(), subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(
        command, env=surroundings, start_new_session=True, stdin=quiet, stdout=quiet, stderr=pipe
    ) as running:
        try:
            try:
                _, words = running.communicate(timeout=QUIET_SECONDS)
            except subprocess.TimeoutExpired:
                advice = "; lower(..., optimize=1) is quicker" if level() == FULL else ""
                _tell(f"symad: {command[0]} compiles {lines:,} lines of C{advice} ...")
                _, words = running.communicate()
                _tell(f" {time.monotonic() - start:.0f} s\n")
        except BaseException:
            if hasattr(os, "killpg"):
                with suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)
            running.kill()
            raise
        return running.returncode, words.decode(errors="replace")


def _tell(text: str) -> None:
    """Write to the standard error stream, if there is one."""
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()
