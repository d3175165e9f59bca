"""Results shown with plain numbers: 1.0 for np.float64(1.0)."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def plain(value: object) -> str:
    """The repr of a value, or of dicts, lists and tuples of values, with NumPy's numbers as Python's."""
    if isinstance(value, np.generic):
        return repr(value.item())
    if type(value) is dict:
        return "{" + ", ".join(f"{plain(k)}: {plain(v)}" for k, v in value.items()) + "}"
    if type(value) is list:
        return f"[{', '.join(map(plain, value))}]"
    if type(value) is tuple:
        return f"({', '.join(map(plain, value))}{',' * (len(value) == 1)})"
    return repr(value)


def plain_fields(made: DataclassInstance) -> str:
    """The repr of a dataclass, as `dataclasses` writes it, with plain numbers."""
    shown = ", ".join(f"{f.name}={plain(getattr(made, f.name))}" for f in fields(made) if f.repr)
    return f"{type(made).__qualname__}({shown})"
