"""Constant arrays in generated code: a formula if one is found, otherwise the elements."""

from __future__ import annotations

import base64
import itertools
import math
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from symad.core.arrays import ArrayLike


# ---- arrays of integers: a range if there is one, otherwise a compressed text --------------------

# The index arrays of a sparse matrix have one element for each entry, but are regular: their differences
# repeat. The module contains the compressed differences as text, a few hundred characters where a display of
# the numbers would take megabytes.


MAX_DISPLAYED_ELEMENTS = 60
"""Elements up to which an array is displayed as a list, for the reader.

Origin: it bounds the length of a listing.
"""

MAX_CHARACTERS_A_LINE = 90
"""Characters of a compressed text in one line, so that lines stay short.

Origin: it bounds the length of a line.
"""


def _integers(text: str) -> NDArray[np.int64]:
    """The integers whose differences are given: 32-bit, little-endian, zlib, base 85."""
    differences = np.frombuffer(zlib.decompress(base64.b85decode(text)), "<i4")
    return np.cumsum(differences, dtype=np.int64)


def _integers_on_host(text: str) -> list[int]:
    """The same in plain Python, for libraries whose arrays are on a device."""
    differences = struct.iter_unpack("<i", zlib.decompress(base64.b85decode(text)))
    return list(itertools.accumulate(difference for (difference,) in differences))


def integers_text(array: Array, dtype: str, printer: Any) -> str | None:
    """An expression for an array of integers (of any dtype) as an array of ``dtype``; None for others."""
    if array.size <= MAX_DISPLAYED_ELEMENTS or array.dtype.kind not in "iuf":
        return None
    flat = array.ravel()
    if array.dtype.kind == "f" and not (
        np.isfinite(flat).all() and (flat == np.rint(flat)).all() and not np.signbit(flat).any()
    ):
        return None
    if np.abs(flat).max() >= 2**30:
        return None
    whole = flat.astype(np.int64)
    np_ = printer.np
    evenly = _range_text(whole)
    if evenly:
        text = f"{np_}.arange({evenly}, dtype={dtype})"
    elif np_ == "np":
        text = f"{printer.helper(_integers)}({_packed(whole)}).astype({dtype})"
    else:
        text = f"{np_}.array({printer.helper(_integers_on_host)}({_packed(whole)}), dtype={dtype})"
    return text if array.ndim == 1 else f"{text}.reshape({array.shape})"


def _range_text(whole: Array) -> str:
    """The arguments of arange; empty if the integers are no range."""
    step = int(whole[1] - whole[0])
    if step == 0 or (np.diff(whole) != step).any():
        return ""
    first, stop = int(whole[0]), int(whole[-1]) + step
    if step != 1:
        return f"{first}, {stop}, {step}"
    return f"{first}, {stop}" if first else str(stop)


def _packed(whole: Array) -> str:
    """The argument of `_integers`: the compressed differences as string literals."""
    differences = np.diff(whole, prepend=0).astype("<i4")
    text = base64.b85encode(zlib.compress(differences.tobytes(), 9)).decode("ascii")
    if len(text) <= MAX_CHARACTERS_A_LINE:
        return f'"{text}"'
    starts = range(0, len(text), MAX_CHARACTERS_A_LINE)
    lines = [f'    "{text[k : k + MAX_CHARACTERS_A_LINE]}"' for k in starts]
    return "\n" + "\n".join(lines) + "\n"


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
