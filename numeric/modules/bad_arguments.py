"""Errors about the values that a kernel was called with, in terms of the user's model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sympy

from symad.core.arguments import Argument, were_given
from symad.core.identifiers import brief, counted, listed, visible


def reason(
    title: str, arguments: Sequence[Argument], values: Sequence[Any], scalar: bool, on_host: bool
) -> str | None:
    """The reason why code rejects some values, if its own error does not name them; None if unknown.

    ``scalar``: the code takes scalars, or arrays of points. ``on_host``: it takes NumPy's arrays.
    """
    names = [visible(a.name) for a in arguments]
    if len(values) != len(names):
        return _not_as_many(title, names, values)
    plain = [(name, v) for name, a, v in zip(names, arguments, values, strict=True) if a.structure is None]
    shapes = []
    for name, value in plain:
        try:
            shapes.append((name, np.shape(value)))
            text = isinstance(value, (list, tuple)) and np.asarray(value).dtype.kind not in "fiubO"
        except ValueError:
            return f"{name} was given nested lists whose rows differ in length; give an array"
        if on_host and isinstance(value, np.ndarray) and value.dtype == object:
            wrong = next((e for e in value.flat if not isinstance(e, (int, float))), None)
            return f"{name} must hold real numbers, not {brief(wrong)}"
        if on_host and (text or value is None or isinstance(value, (str, bytes, complex, Mapping))):
            return f"{name} must hold real numbers, not {brief(value)}"
    try:
        np.broadcast_shapes(*[shape for _, shape in shapes])
    except ValueError:
        shown = listed(f"{name} {shape}" for name, shape in shapes)
        if scalar:
            return f"the arrays of points given to {title} do not broadcast together: {shown}"
    return None


def _not_as_many(title: str, names: Sequence[str], values: Sequence[Any]) -> str:
    told = f"{title} takes {counted(len(names), 'value')} ({listed(names)}), but {were_given(len(values))}"
    if len(values) == 1 and np.ndim(values[0]) == 1:
        return f"{told}; a function of one vector, as scipy.optimize calls it, is lower(..., packed=True)"
    return f"{told}; missing: {listed(names[len(values) :])}" if len(values) < len(names) else told


# ---- what NumPy does not read as floats ----------------------------------------------------------


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
    if hasattr(value, "dtypes"):  # a DataFrame: of columns of several types NumPy makes objects
        value = np.asarray(value)
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
