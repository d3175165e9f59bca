"""Compiled loops at run time: their functions, the BLAS product, and the addresses of arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from symad.core.arrays import ArrayLike
from symad.errors import LoweringError
from symad.numeric.compiled_arrays.blas import product_address
from symad.numeric.compiled_arrays.c.small_systems import SINGULAR
from symad.numeric.compiled_arrays.ufuncs import load
from symad.numeric.compiler.c_calls import CFunction
from symad.numeric.compiler.c_compiler import FULL, optimized


def compiled_loops(source: str, names: Sequence[str], optimize: int = FULL) -> list[CFunction]:
    """The loops of a C source, compiled with a level of optimization.

    Raises:
        LoweringError: there is no C compiler, or it refused the source.
    """
    with optimized(optimize):
        library = load(source)
    if library is None:
        raise LoweringError("compiled loops need a C compiler: none was found; use backend='numpy'")
    return [getattr(library, name) for name in names]


def run_loop(
    loop: CFunction,
    dtype: str,
    steps: int,
    state: ArrayLike,
    moving: Sequence[np.ndarray],
    fixed: Sequence[np.ndarray],
    results: Sequence[np.ndarray],
) -> None:
    """Run a compiled loop.

    Args:
        loop: a function from `compiled_loops`.
        dtype: the type of all arrays.
        steps: the number of steps.
        state: the initial state.
        moving: arrays with one element of the first axis for each step.
        fixed: the arrays that all steps read.
        results: arrays to fill, in the order of their first axis. That of the states may have fewer places
            than there are steps; the places are then used in turn.

    Raises:
        MemoryError: the values of one step do not fit in memory.
        LinAlgError: a matrix of a step is singular.
    """
    fixed = [np.ascontiguousarray(a, dtype) for a in fixed]
    moving = [_with_whole_steps(a, dtype) for a in moving]
    states, first = results[0], np.asarray(state, dtype)
    if first.strides != states.strides[1:]:  # it is stored apart from the others
        first = np.ascontiguousarray(first)
    frame = [steps, product_address(dtype), len(states), first.ctypes.data]
    size = np.dtype(dtype).itemsize
    for array in moving:
        frame += [array.ctypes.data, array.strides[0] // size]
    frame += [array.ctypes.data for array in fixed]
    for array in results:
        frame += [array.ctypes.data, array.strides[0] // size]
    problem = loop(np.array(frame, dtype=np.int64).ctypes.data_as(ctypes.c_void_p))
    if problem == SINGULAR:
        raise np.linalg.LinAlgError("Singular matrix")
    if problem:
        raise MemoryError("no memory for the values of one step")


def _with_whole_steps(array: ArrayLike, dtype: str) -> np.ndarray:
    """The array, copied if the elements of one step are not contiguous."""
    made = np.asarray(array, dtype)
    whole = not len(made) or made[0].flags.c_contiguous
    return made if whole and made.strides[0] % made.itemsize == 0 else np.ascontiguousarray(made)
