"""What NumPy does not read as floats: SymPy's π, Fractions, and tensors with a history of gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy


def as_floats(values: Sequence[Any], around: tuple[Any, ...] = ()) -> list[Any] | None:
    """The values with exact numbers rounded to floats, tensors without history; None if there are none.

    ``around`` are the lists that contain the values: one that contains itself stays.
    """
    floats = [value if any(value is a for a in around) else _rounded(value, around) for value in values]
    return floats if any(a is not b for a, b in zip(floats, values, strict=True)) else None


def _rounded(value: Any, around: tuple[Any, ...] = ()) -> Any:
    """The value with exact numbers rounded to floats; the same object if it has none."""
    if getattr(value, "requires_grad", False) is True:
        return value.detach()
    if isinstance(value, dict):
        parts = as_floats(list(value.values()))
        return value if parts is None else dict(zip(value, parts, strict=True))
    if isinstance(value, (list, tuple)):
        return as_floats(value, (*around, value)) or value
    if isinstance(value, sympy.MatrixBase):
        value = np.array(value.tolist(), dtype=object)
    if isinstance(value, np.ndarray) and value.dtype == object:
        entries = [_rounded(entry) for entry in value.ravel().tolist()]
        real = all(isinstance(entry, (int, float)) for entry in entries)
        return np.array(entries, dtype=float).reshape(value.shape) if real else value
    if isinstance(value, (int, float, str)) or hasattr(value, "dtype") or not hasattr(value, "__float__"):
        return value
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):  # an expression with symbols, or a complex number
        return value
