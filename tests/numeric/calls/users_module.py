"""Functions that tests register from a module, so that saved files can import them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def bump(t: Array) -> Array:
    """The square of a number, by NumPy."""
    return np.square(t)
