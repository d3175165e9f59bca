"""User-defined functions, on floats and arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symad.core.arrays import Array


def elementwise(name: str, function: Callable[..., object], *values: Array | float) -> Array | float:
    """A user's function of floats and arrays: a new array of their common shape and type.

    Raises:
        TypeError: the function does not accept arrays, or its results are not real numbers.
        ValueError: its result has another shape.
    """
    shape = np.broadcast_shapes(*[np.shape(v) for v in values])
    try:
        made = np.asarray(function(*values))
    except TypeError as error:
        if not shape:
            raise
        raise TypeError(
            f"{name} has to take NumPy arrays, as numpy.vectorize makes it do: {error}"
        ) from error
    if made.dtype.kind not in "fiub":
        raise TypeError(f"{name} has to return real numbers, not {made.dtype}")
    if made.shape != shape:
        raise ValueError(f"{name} has to work elementwise: of shape {shape} it makes {made.shape}")
    kinds = [v.dtype for v in values if hasattr(v, "dtype")]
    return np.array(made, dtype=np.result_type(*kinds, np.float32) if kinds else np.float64)[()]
