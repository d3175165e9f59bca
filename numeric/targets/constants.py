"""Constant arrays in generated code: a formula if one is found, otherwise the elements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from symad.numeric.targets.integers import MAX_DISPLAYED_ELEMENTS, integers_text

if TYPE_CHECKING:
    from symad.core.arrays import ArrayLike

Array = np.ndarray


def constant_text(array: Array, dtype: str, printer: Any) -> str:
    """An expression for a constant array as an array of ``dtype``."""
    found = _uniform(array, dtype, printer.np) or _triangle(array, printer.np)
    if found is None:
        numbers = array.astype(np.int8) if array.dtype.kind == "b" else array
        found = integers_text(numbers, dtype, printer)
    return found or f"{printer.np}.array({nested_text(array.tolist(), printer.np)}, dtype={dtype})"


def nested_text(value: ArrayLike, np_: str) -> str:
    """Nested lists of numbers as a Python display; infinities and NaN by their names in NumPy."""
    if isinstance(value, list):
        return f"[{', '.join([nested_text(part, np_) for part in value])}]"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{np_}.nan" if value != value else f"{np_}.inf" if value > 0 else f"-{np_}.inf"
    return repr(value)


def _uniform(array: Array, dtype: str, np_: str) -> str | None:
    """The expression of an array that is empty or has one value everywhere; None for others."""
    if not array.size:
        return f"{np_}.zeros({array.shape}, dtype={dtype})"
    if array.size <= MAX_DISPLAYED_ELEMENTS:
        return None
    value = array.flat[0]
    if not (array == value).all() or np.signbit(array).any():
        return None
    if not value:
        return f"{np_}.zeros({array.shape}, dtype={dtype})"
    return f"{np_}.full({array.shape}, {nested_text(value.item(), np_)}, dtype={dtype})"


def _triangle(array: Array, np_: str) -> str | None:
    """The expression of a mask that holds on and below a diagonal, or above it; None for others."""
    if array.dtype.kind != "b" or array.ndim != 2 or array.size <= MAX_DISPLAYED_ELEMENTS:
        return None
    rows, columns = array.shape
    for text, mask in (("", array), ("~", ~array)):
        k = int(mask[0].sum()) - 1
        if (mask == np.tri(rows, columns, k, dtype=bool)).all():
            return f"{text}{np_}.tri({rows}, {columns}, {k}, dtype=bool)"
    return None
