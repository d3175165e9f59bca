"""NumPy ufuncs made from compiled C at run time, without Python's or NumPy's headers.

NumPy's C interface to ufuncs is a table of functions behind a capsule, in an order that is part of its
binary interface: numbers 1 and 31 make a ufunc and a generalized ufunc from inner loops. As ufuncs, the
kernels get broadcasting, conversion of types, results in given arrays, overlap checks and the release of
the interpreter lock from NumPy itself.
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
from symad.numeric.compiler.c_compiler import NotCompiled, compile_c

FROM_LOOPS, FROM_LOOPS_AND_SIGNATURE = 1, 31
"""Places in NumPy's table of functions."""

NO_IDENTITY = -1

OPTIONS = (
    "-O3", "-march=native", "-mprefer-vector-width=512", "-fno-math-errno", "-fno-trapping-math",
    "-ffp-contract=fast", "-fopenmp",
)  # fmt: skip
"""Vector code: errno and floating-point traps are not kept, infinities, NaN and signed zeros are."""

STRAIGHT = (*OPTIONS, "-fno-tree-pre", "-fno-thread-jumps")
"""No arithmetic twice for the two branches of a selection (GCC): vector code computes both anyway."""

PLAIN = ("-O3", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math")
"""For compilers that know no more."""

Declaration = tuple[str, str, str]
"""The name of an inner loop; its types such as "ff->f"; the signature of its cores, or nothing."""


def compiled(source: str, declarations: Sequence[Declaration]) -> list[np.ufunc]:
    """One ufunc for each declared inner loop of a C source.

    Raises:
        NotCompiled: there is no compiler, or none that works here.
        LoweringError: it refused the source.
    """
    library = load(source)
    if library is None:
        raise NotCompiled("this code needs a C compiler that works; use backend='numpy'")
    return [ufunc(library, *declaration) for declaration in declarations]


def load(source: str) -> ctypes.CDLL | None:
    """The shared library of a C source, with vector code and threads where the compiler has them.

    None where nothing can be compiled, perhaps only now.
    """
    try:
        return _loaded(source)
    except NotCompiled:
        return None


@cache
def _loaded(source: str) -> ctypes.CDLL:
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
    """Whether GNU's OpenMP is here, which generated code and MKL then share.

    A forked process has none of the threads that its parent had, but waits for them: it works alone.
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
    """Threads of OpenMP that wait sleep: spinning ones would take the cores from NumPy's own.

    The library reads this once, when it is loaded.
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
"""What ufuncs point to: they live as long as the process."""


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
