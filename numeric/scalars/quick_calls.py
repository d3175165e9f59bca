"""Calls of compiled scalar functions whose arguments are read in C.

A call through Python costs some tens of microseconds for its arguments: each is made an array, shapes are
compared, columns are arranged. Here floats, ints and float64 vectors go straight to the compiled function;
all other arguments take the way through Python. Python's headers are needed, as in `c_calls`; NumPy's, which
come with it, make reading faster.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from symad.core.graph import TupleOf
from symad.errors import LoweringError
from symad.numeric.compiler.c_calls import MAX_LOCKED, CFunction, c_text
from symad.numeric.compiler.c_compiler import compile_c, warn_once
from symad.numeric.numpy_arrays.memory_reuse import new_array
from symad.numeric.scalars.flat_results import FlatResults

MIN_LANES, MIN_LANES_IF_LONG, LONG_FUNCTION, NEVER = 40, 257, 2000, 2**62
"""Points from which several at a time are faster than one by one (25 to 36 for 5 to 60 operations, by
benchmarks/scalar/bench_small_batches.py); the same for functions of more than ``LONG_FUNCTION`` operations,
whose plan costs as much as some hundred calls, 20 µs per operation; and a number that is never reached."""

ROWS, POINTS, SEPARATE = 0, 1, 2
"""The layout of a batch's results: a row for each number, an array per point, or an array per number."""

MIN_BLOCK_BYTES = 1 << 20
"""From this many bytes on, all results of a batch are one block of memory, which is reused.

Ten results take 1.3 of the time in a block of 20 KiB, 1.0 in one of 640 KiB, 0.92 in one of 1.3 MB, 0.86 in
one of 10 MB (bench_scalar_thresholds.py, "block").
"""

FLOAT, FLOATS, ARRAY = 0, 1, 2
"""The result of a call at one point: a float, a tuple of floats, or the result of `finish` on a vector."""


READERS = "read_by_numpy.h", "read_by_buffers.h"
"""Two readers of arrays, the faster one first."""

NO_QUICK_CALLS = "each call of a compiled scalar function takes some 10 µs more, for arguments read in Python"


@cache
def _maker() -> Any:
    """The compiled function that makes calls; None, with one warning, without Python's headers.

    NumPy's headers make it faster by too little for a word where they are missing or of no use.
    """
    missing = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not missing.exists():
        warn_once(NO_QUICK_CALLS, f"{missing} is missing; Debian has it in python3-dev")
        return None
    library = None
    for reader in READERS:
        try:
            library = _library(reader)
            break
        except LoweringError as error:
            refused = str(error)
    else:
        warn_once(NO_QUICK_CALLS, refused[-200:])
    if library is None:  # no compiler works, which was said
        return None
    maker = ctypes.PyDLL(library._name, handle=library._handle).symad_quick
    maker.argtypes = (ctypes.c_void_p, ctypes.py_object)
    maker.restype = ctypes.py_object
    return maker


def _library(reader: str) -> ctypes.CDLL | None:
    """The library of calls with a reader of arrays, a file; None if nothing can be compiled.

    Raises:
        LoweringError: the compiler refuses the reader, as it does where NumPy's headers are missing.
    """
    options = ["-std=c11", f"-I{sysconfig.get_paths()['include']}"]
    options += ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    interpreter = sysconfig.get_config_var("EXT_SUFFIX")
    if reader != READERS[-1]:
        options += [f"-I{np.get_include()}", "-Werror=implicit-function-declaration"]
        interpreter += f" and NumPy {np.__version__}"
    return compile_c(c_text(interpreter, reader, "quick_calls.c"), [*options, f"-DSHORT={MAX_LOCKED}"])


@dataclass(frozen=True)
class Framed:
    """A compiled function with a frame that holds its vectors of inputs and results.

    Attributes:
        frame: a frame from `symad.numeric.compiler.c_calls.frame_of`.
        x: (inputs,), stored in the frame.
        y: (results,), stored in the frame.
        parts: the other objects whose addresses are in the frame.
    """

    frame: np.ndarray
    x: np.ndarray
    y: np.ndarray
    parts: Sequence[int | np.ndarray]


Lanes = Callable[[], "Framed | None"]
"""Plans the computation of several points at a time; None if that cannot be compiled."""


def quick_call(
    function: CFunction | Framed,
    results: FlatResults,
    inputs: int,
    operations: int,
    packed: bool,
    otherwise: Callable[..., Any],
    lanes: Lanes | None,
    least: int = NEVER,
    most: int = NEVER,
    shapes: Sequence[tuple[int, ...]] = (),
) -> Callable[..., Any]:
    """The Python function of a compiled one, with its arguments read in C where that is possible.

    Args:
        function: a ctypes function ``void f(const double *x, double *y)`` without state, or a `Framed`.
        results: the results in y.
        inputs: the number of entries of x.
        operations: the approximate number of operations of a call; long calls release Python's lock.
        packed: whether x itself is the argument.
        otherwise: the function for arguments that are neither numbers nor float64 vectors.
        lanes: computes several points at a time; without it batches go to ``otherwise``.
        least: the points from which several are computed at a time. If that cannot be compiled, any number is
            computed one by one, in 0.1 to 0.4 of NumPy's time.
        most: batches of more points than this go to ``otherwise``.
        shapes: the shapes of the arguments, if these are arrays whose elements are the inputs.
    """
    maker = _maker()
    if maker is None:
        return otherwise
    total = results.total
    scalars = not any(results.shapes) and all(m is None for m in results.matrices)
    one = scalars and results.structure is None
    flat = isinstance(results.structure, TupleOf) and all(item is None for item in results.structure.items)
    returns = ARRAY if not scalars or not (one or flat) else FLOAT if one else FLOATS
    shape = results.whole or (total,)
    finish = results.split if results.whole is None else None
    address = _address(function)
    batches, new_rows, finish_rows = _batches(results, scalars and (one or flat), one)
    new_block = _block(results, batches, one)
    few = NEVER if lanes is not None and total else -1
    rest = [inputs, total, operations, packed, returns, batches, few, least, most]
    rest.append(MIN_BLOCK_BYTES // (8 * max(total, 1)))
    table = np.array([number for shape in shapes for number in (len(shape), *shape)], np.int64)
    rest += [len(shapes), table.ctypes.data if shapes else 0]
    numbers = np.array([*address, *rest], np.int64)
    kept: list[Framed] = []
    plan = partial(_planned, lanes, kept)
    objects = (
        np.ndarray, lambda: np.empty(shape), finish, new_rows, finish_rows, otherwise, plan, 
        (function, kept, table), new_block,
    )  # fmt: skip
    made: Callable[..., Any] = maker(numbers.ctypes.data, objects)
    return made


def _address(function: CFunction | Framed) -> list[int]:
    """The addresses of a function, of its frame, and of the frame's vectors; 0 for those that it lacks."""
    if isinstance(function, Framed):
        return [0, function.frame.ctypes.data, function.x.ctypes.data, function.y.ctypes.data]
    return [ctypes.cast(function, ctypes.c_void_p).value or 0, 0, 0, 0]


def _planned(lanes: Lanes | None, kept: list[Framed]) -> int:
    """The address of the frame for several points at a time, which is kept; 0 if there is none."""
    found = lanes() if lanes is not None else None
    if found is None:
        return 0
    kept.append(found)
    return int(found.frame.ctypes.data)


def _batches(
    results: FlatResults, floats: bool, one: bool
) -> tuple[int, Callable[[int], np.ndarray], Callable[..., Any] | None]:
    """The layout of a batch's results, the function that allocates them, and the last step."""
    if floats:
        return (ROWS if one else SEPARATE), np.empty, None
    if results.whole is not None:
        inner = results.whole
        return POINTS, lambda points: np.empty((points, *inner)), None
    total = results.total
    finish = lambda rows: results.at_points(rows, rows.shape[1:])  # noqa: E731
    return ROWS, lambda points: np.empty((total, points)), finish


def _block(results: FlatResults, layout: int, one: bool) -> Callable[[int], np.ndarray]:
    """The function that allocates large results for a number of points."""
    new = new_array()
    if layout == POINTS:
        inner = results.whole or ()
        return lambda points: new((points, *inner), np.float64)
    rows = () if one and layout == ROWS else (results.total,)
    return lambda points: new((*rows, points), np.float64)
