"""Calls of compiled scalar functions whose arguments are read in C.

A call through Python costs some tens of microseconds for its arguments: each is made an array, shapes are
compared, columns laid out. Here floats, ints and float64 vectors go straight to the compiled function;
everything else takes the way through Python. Needs Python's headers, as `c_calls` does, and is faster with
NumPy's, which come with it.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from symad.core.graph import TupleOf
from symad.errors import LoweringError
from symad.numeric.compiler.c_calls import SHORT, CFunction
from symad.numeric.compiler.c_compiler import compile_c
from symad.numeric.compiler.quick_calls_source import SOURCE
from symad.numeric.compiler.vector_arguments_source import BY_BUFFERS, BY_NUMPY
from symad.numeric.numpy_arrays.memory_reuse import new_array
from symad.numeric.scalars.flat_results import FlatResults

FEW_POINTS = 2000
"""Points up to which a batch is computed one point after the other where several at a time cannot be
compiled, or are not planned because the function is long."""

LEAST_LANES, LEAST_OF_LONG, LONG, NEVER = 40, 256, 2000, 2**62
"""Points from which on a compiled function is slower than several points at a time (25 to 36 for 5 to 60
operations, benchmarks/bench_small_batches.py); the same for functions of more than ``LONG`` operations, whose
plan takes the time of some hundred calls: 20 µs an operation."""

ROWS, POINTS, SEPARATE = 0, 1, 2
"""Results of a batch: a row for each number, an array for each point, or an array for each number."""

LARGE = 1 << 18
"""Bytes from which on all results of a batch are one block of memory that is used again."""

FLOAT, FLOATS, ARRAY = 0, 1, 2
"""What a call at one point returns: a float, a tuple of floats, or what `finish` makes of a vector."""


@cache
def _maker() -> Any:
    """The compiled function that makes calls; None without a compiler or Python's headers."""
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").exists():
        return None
    options = ["-std=c11", f"-I{include}"]
    options += ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    interpreter = sysconfig.get_config_var("EXT_SUFFIX")
    headers, reader = Path(np.get_include()), BY_BUFFERS
    if (headers / "numpy" / "ndarraytypes.h").exists():
        options.append(f"-I{headers}")
        interpreter += f" and NumPy {np.__version__}"
        reader = BY_NUMPY
    try:
        library = compile_c(SOURCE % (interpreter, SHORT, reader), options)
    except LoweringError:
        return None
    if library is None:
        return None
    maker = ctypes.PyDLL(library._name, handle=library._handle).symad_quick
    maker.argtypes = (ctypes.c_void_p, ctypes.py_object)
    maker.restype = ctypes.py_object
    return maker


@dataclass(frozen=True)
class Framed:
    """A compiled function of a frame that holds its vectors of inputs and results.

    Attributes:
        frame: of `symad.numeric.compiler.c_calls.frame_of`.
        x: (inputs,), in the frame.
        y: (results,), in the frame.
        parts: what else the frame has the addresses of.
    """

    frame: np.ndarray
    x: np.ndarray
    y: np.ndarray
    parts: Sequence[int | np.ndarray]


Lanes = Callable[[], "Framed | None"]
"""Plans the computation of several points at a time; None where it cannot be compiled."""


def quick_call(
    function: CFunction | Framed,
    results: FlatResults,
    inputs: int,
    operations: int,
    packed: bool,
    otherwise: Callable[..., Any],
    lanes: Lanes | None = None,
    few: int = FEW_POINTS,
    least: int = LEAST_LANES,
    most: int = NEVER,
) -> Callable[..., Any]:
    """The Python function of a compiled one, with its arguments read in C where that is possible.

    Args:
        function: of ctypes, ``void f(const double *x, double *y)``, without state of its own; or `Framed`.
        results: what stands in y.
        inputs: how many numbers stand in x.
        operations: about how many a call executes; long calls release Python's lock.
        packed: whether x itself is the argument.
        otherwise: the function that takes what is neither a number nor a float64 vector.
        lanes: computes several points at a time; without it more than ``few`` points go to ``otherwise``.
        few: the points that are computed one after the other, if need be.
        least: the points from which on several are computed at a time, unless the function is long.
        most: more points than these go to ``otherwise``.
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
    if isinstance(function, Framed):
        address = [0, function.frame.ctypes.data, function.x.ctypes.data, function.y.ctypes.data]
    else:
        address = [ctypes.cast(function, ctypes.c_void_p).value or 0, 0, 0, 0]
    batches, new_rows, finish_rows = _batches(results, scalars and (one or flat), one)
    new_block = _block(results, batches, one)
    least = (least if operations <= LONG else min(few, LEAST_OF_LONG) + 1) if lanes is not None else NEVER
    rest = [inputs, total, operations, packed, returns, batches, few if total else -1, least, most]
    rest.append(LARGE // (8 * max(total, 1)))
    numbers = np.array([*address, *rest], np.int64)
    kept: list[Framed] = []

    def plan() -> int:
        found = lanes() if lanes is not None else None
        if found is None:
            return 0
        kept.append(found)
        return int(found.frame.ctypes.data)

    objects = (
        np.ndarray, lambda: np.empty(shape), finish, new_rows, finish_rows, otherwise, plan, (function, kept),
        new_block,
    )  # fmt: skip
    made: Callable[..., Any] = maker(numbers.ctypes.data, objects)
    return made


def _batches(
    results: FlatResults, floats: bool, one: bool
) -> tuple[int, Callable[[int], np.ndarray], Callable[..., Any] | None]:
    """How results of a batch are laid out, what makes arrays for a number of points, and the last step."""
    if floats:
        return (ROWS if one else SEPARATE), np.empty, None
    if results.whole is not None:
        inner = results.whole
        return POINTS, lambda points: np.empty((points, *inner)), None
    total = results.total
    finish = lambda rows: results.at_points(rows, rows.shape[1:])  # noqa: E731
    return ROWS, lambda points: np.empty((total, points)), finish


def _block(results: FlatResults, layout: int, one: bool) -> Callable[[int], np.ndarray]:
    """What makes the memory of large results for a number of points."""
    new = new_array()
    if layout == POINTS:
        inner = results.whole or ()
        return lambda points: new((points, *inner), np.float64)
    rows = () if one and layout == ROWS else (results.total,)
    return lambda points: new((*rows, points), np.float64)
