"""The functions by which the outermost function of generated code takes its arguments apart.

`symad.numeric.targets.pasting` copies them into a module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from symad.core.arrays import Array

Given: TypeAlias = Any
"""What a caller gives: these functions find out whether it is an array."""


def _shaped(name: str, value: Given, shape: tuple[int, ...]) -> Given:
    """The value as an array of a shape, after the axes of a batch."""
    array = np.asarray(value)
    lead = array.ndim - len(shape)
    if lead < 0 or array.shape[lead:] != shape:
        if [d for d in array.shape if d != 1] != [d for d in shape if d != 1]:
            raise TypeError(f"{name} is an array of shape {shape}, but was given one of shape {array.shape}")
        return array.reshape(shape)
    return array


def _of_points(array: Given, axes: int) -> list[Given]:
    """Arrays of points, from one where the axes of a batch lead."""
    lead = array.shape[: array.ndim - axes]
    return list(np.moveaxis(array.reshape((*lead, -1)), -1, 0))


def _entries(name: str, value: Given, shape: tuple[int, ...]) -> list[Given]:
    """Numbers, or arrays of points."""
    array = _shaped(name, value, shape)
    return _of_points(array, len(shape)) if array.ndim > len(shape) else array.ravel().tolist()


def _entries_on_device(name: str, value: Given, shape: tuple[int, ...]) -> list[Given]:
    """The same without a copy to the host."""
    array = _shaped(name, value, shape)
    each = map(array.ravel().__getitem__, range(array.size))
    return _of_points(array, len(shape)) if array.ndim > len(shape) else [*each]


def _keys(name: str, value: Given, keys: Sequence[Given]) -> None:
    given = list(value) if hasattr(value, "keys") else None
    if given is None or set(given) != set(keys):
        found = type(value).__name__ if given is None else f"one with {', '.join(map(str, given))}"
        raise TypeError(f"{name} is a dict with the keys {', '.join(map(str, keys))}, but was given {found}")


def _fields(name: str, value: Given, fields: Sequence[str]) -> None:
    given = list(value) if isinstance(value, dict) else [f for f in fields if hasattr(value, f)]
    if set(given) != set(fields):
        told = f"{type(value).__name__} with {', '.join(map(str, given)) or 'none of them'}"
        raise TypeError(f"{name} has the fields {', '.join(fields)}, but was given a {told}")


def _field(value: Given, field: str) -> Given:
    return value[field] if isinstance(value, dict) else getattr(value, field)


def _length(name: str, value: Given, count: int) -> None:
    if not isinstance(value, (list, tuple)) or len(value) != count:
        found = f"one of {len(value)}" if isinstance(value, (list, tuple)) else type(value).__name__
        raise TypeError(f"{name} is a list or tuple of {count} entries, but was given {found}")


def _axis(name: str, value: Given, axis: int) -> int:
    shape = np.shape(value)
    if len(shape) <= axis:
        raise ValueError(f"{name} has shape {shape}, without an axis {axis}")
    return shape[axis]


def _vector(name: str, value: Given, size: int) -> Array:
    array = np.asarray(value)
    if array.shape != (size,):
        told = f"{array.shape}" if array.shape else f"a {type(value).__name__}: it is one flat vector"
        raise ValueError(f"{name} must have shape ({size},), not {told}")
    return array


def _number(name: str, value: Given) -> Given:
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be a real number, not of shape {array.shape} and {array.dtype}")
    return array.item()
