"""Compiled scalar code as a Python function of points and batches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symad.core.arrays import Array, ArrayLike
from symad.core.graph import Graph
from symad.numeric.compiler.c_compiler import NotCompiled
from symad.numeric.kernel import Kernel
from symad.numeric.scalars.flat_results import FlatResults

Binder = Callable[[np.ndarray, np.ndarray], Callable[[], None]]
"""Makes a call without arguments from two arrays: it reads inputs from the first, writes the second."""


def python_function(
    graph: Graph,
    bind: Binder,
    many: Callable[[Sequence[np.ndarray]], np.ndarray] | None,
    plain: Callable[[], Kernel],
    packed: bool,
    shapes: Sequence[tuple[int, ...]] = (),
) -> Callable[..., Any]:
    """The Python function of bound calls; arguments that these do not accept go to the NumPy form.

    ``shapes`` are those of the arguments, if these are arrays whose elements are the inputs of the graph.
    """
    results, inputs = FlatResults.of(graph), len(graph.input_nodes)
    given = [*shapes] or [()] * inputs
    here = threading.local()  # each thread has its own vectors, which its calls reuse

    def at_point(values: ArrayLike) -> np.ndarray:
        try:
            x, y, run = here.call
        except AttributeError:
            x, y = np.zeros(inputs), np.zeros(results.total)
            here.call = x, y, run = x, y, bind(x, y)
        x[...] = values
        run()
        return y.copy()

    def call(*values: Array | float) -> Any:
        arrays = [np.asarray(v) for v in values]
        if len(values) != len(given) or any(a.dtype.kind not in "fiub" for a in arrays):
            return plain().function(*values)  # it raises the error with the names
        if [a.shape for a in arrays] == given:
            one = np.concatenate([a.ravel() for a in arrays]) if shapes else [float(a) for a in arrays]
            return results.split(at_point(one))
        if many is None:
            return plain().function(*values)
        batch = np.broadcast_shapes(*{a.shape for a in arrays})
        try:
            computed = many([_column(a, batch) for a in arrays])
        except NotCompiled:  # the function itself was compiled before: the disk may be full now
            return plain().function(*values)
        return results.at_points(computed, batch)

    def packed_call(vector: ArrayLike) -> Any:
        values = np.asarray(vector)
        if values.shape != (inputs,) or values.dtype.kind not in "fiub":
            return plain().function(vector)
        return results.split(at_point(values))

    return packed_call if packed else call


def _column(array: np.ndarray, batch: tuple[int, ...]) -> np.ndarray:
    """The values of one input at all points as a contiguous array; without a copy if they are one."""
    if array.shape == batch and array.dtype == np.float64 and array.flags.c_contiguous:
        return array
    return np.ascontiguousarray(np.broadcast_to(array, batch), dtype=np.float64)
