"""NumPy ufuncs made from compiled C at run time, without the headers of Python or NumPy.

NumPy's C interface to ufuncs is a table of functions in a capsule, whose order is part of its binary
interface: entries 1 and 31 make a ufunc and a generalized ufunc from inner loops. As ufuncs, the kernels
inherit broadcasting, type conversion, ``out`` arguments, overlap checks and the release of the interpreter
lock from NumPy.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from symad.errors import LoweringError
from symad.numeric.compiler.c_compiler import FULL, NotCompiled, compile_c, level, optimized

FROM_LOOPS, FROM_LOOPS_AND_SIGNATURE = 1, 31
"""Positions in NumPy's table of functions."""

NO_IDENTITY = -1

OPTIONS = (
    "-O3", "-march=native", "-mprefer-vector-width=512", "-fno-math-errno", "-fno-trapping-math",
    "-ffp-contract=fast", "-fopenmp",
)  # fmt: skip
"""Options for vector code. errno and floating-point traps are lost; infinities, NaN and signed zeros stay."""

STRAIGHT = (*OPTIONS, "-fno-tree-pre", "-fno-thread-jumps", "--param=max-completely-peeled-insns=60")
"""GCC must not duplicate arithmetic for the branches of a selection: vector code computes both branches.

Small loops are unrolled up to 60 instructions, not 200. The time of compilation of loops over time steps
falls to 0.4 and that of calls stays: 0.98 to 1.01 for gradients of RK4 steps of 2 to 40 states.
"""

PLAIN = ("-O3", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math")
"""Options for compilers that do not know the others."""

Declaration = tuple[str, str, str]
"""The name of an inner loop, its types such as "ff->f", and the signature of its cores; "" for none."""


def compiled(source: str, declarations: Sequence[Declaration], optimize: int = FULL) -> list[np.ufunc]:
    """One ufunc for each declared inner loop of a C source, compiled with a level of optimization.

    Raises:
        NotCompiled: there is no C compiler, or none that works.
        LoweringError: the compiler refused the source.
    """
    with optimized(optimize):
        library = load(source)
    if library is None:
        raise NotCompiled("this code needs a C compiler that works; use backend='numpy'")
    return [ufunc(library, *declaration) for declaration in declarations]


def load(source: str) -> ctypes.CDLL | None:
    """The shared library of a C source, with vector code and threads if the compiler supports them.

    None if nothing can be compiled, even if that is found out only now.
    """
    try:
        return _loaded(source, level())
    except NotCompiled:
        return None


@cache
def _loaded(source: str, level: int) -> ctypes.CDLL:
    """The library of a source, compiled with a level of optimization."""
    gnu_threads()
    library: ctypes.CDLL | None = None
    with _passive_waiting():
        for options in (STRAIGHT, OPTIONS):
            with suppress(LoweringError):
                library = compile_c(source, options)
                break
        else:
            library = compile_c(source, PLAIN)
    if library is None:
        raise NotCompiled
    return library


@cache
def gnu_threads() -> bool:
    """Whether GNU's OpenMP library is installed; generated code and MKL then share its threads.

    A forked process inherits none of its parent's threads and would wait for them, so it uses one thread.
    """
    with _passive_waiting():
        try:
            library = ctypes.CDLL("libgomp.so.1", ctypes.RTLD_GLOBAL)
        except OSError:
            return False
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: library.omp_set_num_threads(1))
    return True


@contextmanager
def _passive_waiting() -> Iterator[None]:
    """While this is active, OpenMP is loaded such that its waiting threads sleep.

    Spinning threads would take the cores from NumPy's own. The library reads the setting once, on loading.
    """
    before = os.environ.get("OMP_WAIT_POLICY")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_WAIT_POLICY"]


@cache
def _makers() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """NumPy's functions that make ufuncs."""
    try:
        core = import_module("numpy._core._multiarray_umath")
    except ImportError:  # NumPy 1
        core = import_module("numpy.core._multiarray_umath")
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = pointer(core._UFUNC_API, None)
    table = ctypes.cast(address, ctypes.POINTER(ctypes.c_void_p))
    voids, numbers, texts = [ctypes.c_void_p] * 2, [ctypes.c_int] * 4, [ctypes.c_char_p] * 2
    arguments = [*voids, ctypes.c_char_p, *numbers, *texts, ctypes.c_int]
    plain = ctypes.PYFUNCTYPE(ctypes.py_object, *arguments)
    general = ctypes.PYFUNCTYPE(ctypes.py_object, *arguments, ctypes.c_char_p)
    return plain(table[FROM_LOOPS]), general(table[FROM_LOOPS_AND_SIGNATURE])


_kept: list[object] = []
"""Objects that ufuncs point to; they must live as long as the process."""


def ufunc(
    library: ctypes.CDLL, name: str, types: str, signature: str, given: ctypes.Array[Any] | None = None
) -> np.ufunc:
    """A ufunc of one inner loop, which receives the address of ``given``, a ctypes array."""
    inputs, outputs = types.split("->")
    loop = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    address = None if given is None else ctypes.addressof(given)
    loops, data = (ctypes.c_void_p * 1)(loop), (ctypes.c_void_p * 1)(address)
    kinds = ctypes.create_string_buffer(bytes(np.dtype(c).num for c in inputs + outputs))
    texts = ctypes.create_string_buffer(name.encode()), ctypes.create_string_buffer(b"compiled by symad")
    _kept.append((library, loops, data, given, kinds, texts))
    arguments = (
        ctypes.addressof(loops), ctypes.addressof(data), kinds, 1, len(inputs), len(outputs), NO_IDENTITY,
        *(ctypes.cast(t, ctypes.c_char_p) for t in texts), 0,
    )  # fmt: skip
    plain, general = _makers()
    return general(*arguments, signature.encode()) if signature else plain(*arguments)
