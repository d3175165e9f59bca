"""Cheap calls of compiled code.

A call through ctypes takes a third of a microsecond, as long as a hundred operations. If Python's headers are
installed, a few lines of C are compiled once, which make a Python function from a compiled function and the
frame of its arguments: a call then takes a tenth of that. Otherwise ctypes is used.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from symad.core.arrays import Array
from symad.errors import LoweringError
from symad.numeric.compiler.c_compiler import compile_c

MAX_LOCKED = 20_000
"""A call of at most this many operations keeps Python's lock.

A call that releases it takes 2.3 times as long at 64 operations, 1.18 at 1,280, 1.01 at 5,120, 1.00 at 20,480
(bench_scalar_thresholds.py, "lock"); but where another thread runs Python, it waits for up to 5 ms.
"""

SOURCES = Path(__file__).parent / "sources"


def c_text(interpreter: str, *names: str) -> str:
    """The files of numeric/compiler/sources with these names, concatenated, for one version of Python.

    A comment names the version, so that each has a library of its own.
    """
    return "\n".join([f"/* For {interpreter}. */", *((SOURCES / name).read_text("utf-8") for name in names)])


@cache
def _binder() -> Any:
    """The compiled function that binds; None if there is no compiler, or Python's headers are missing."""
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").exists():
        return None
    late = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    try:
        source = c_text(sysconfig.get_config_var("EXT_SUFFIX"), "bound_calls.c")
        library = compile_c(source, ["-std=c11", f"-I{include}", *late])
    except LoweringError:
        return None
    if library is None:
        return None
    binder = ctypes.PyDLL(library._name, handle=library._handle).symad_bind  # PyDLL keeps Python's lock
    binder.argtypes = (ctypes.c_int64, ctypes.py_object, ctypes.c_int64)
    binder.restype = ctypes.py_object
    return binder


CFunction: TypeAlias = "ctypes._NamedFuncPointer"
"""A function of a library that ctypes has loaded."""


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    """The address of an array, as an object that keeps the array alive."""
    return array.ctypes.data_as(ctypes.c_void_p)


def aligned_zeros(*shape: int) -> np.ndarray:
    """A float64 array of zeros aligned to a cache line, so that no vector load spans two lines."""
    count = int(np.prod(shape))
    room = np.zeros(count + 8)
    skipped = -room.ctypes.data % 64 // 8
    return room[skipped : skipped + count].reshape(shape)


def check_sizes(x: Array, y: Array, inputs: int, outputs: int) -> None:
    """Raises ValueError unless the bound vectors have the sizes of the inputs and the results."""
    if x.shape != (inputs,) or y.shape != (outputs,):
        raise ValueError(f"bind: x must have {inputs} elements and y {outputs}, not {len(x)} and {len(y)}")


def frame_of(function: CFunction, parts: Sequence[int | np.ndarray]) -> np.ndarray:
    """The address of a compiled function, followed by its frame, as a vector of 64-bit integers."""
    address = ctypes.cast(function, ctypes.c_void_p).value
    numbers = [p if isinstance(p, int) else p.ctypes.data for p in parts]
    return np.array([address, *numbers], dtype=np.int64)


def bound(
    function: CFunction, parts: Sequence[int | np.ndarray], operations: int = MAX_LOCKED + 1
) -> Callable[[], None]:
    """A Python function without arguments that calls a compiled function with a fixed frame.

    Args:
        function: a ctypes function; its argument is the address of a frame of 64-bit integers.
        parts: the contents of the frame: arrays, by their addresses, and lengths. They are kept alive as
            long as the result.
        operations: the approximate number of operations of a call; short calls keep Python's lock.
    """
    return bound_frame(function, frame_of(function, parts), parts, operations)


def bound_frame(
    function: CFunction,
    frame: np.ndarray,
    parts: Sequence[int | np.ndarray],
    operations: int = MAX_LOCKED + 1,
) -> Callable[[], None]:
    """As `bound`, for a frame from `frame_of` whose numbers may change between calls."""
    binder = _binder()
    if binder is not None:
        unlocked = operations > MAX_LOCKED
        made: Callable[[], None] = binder(frame.ctypes.data, (frame, parts, function), unlocked)
        return made
    function.restype = None
    call = partial(function, pointer(frame[1:]))
    vars(call)["parts"] = parts  # the call holds their addresses, so it must keep the arrays alive
    return call
