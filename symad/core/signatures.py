"""What the public functions take, as types: functions to differentiate, inputs chosen, arguments declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import sympy

from symad.core.graph import Graph

Traceable: TypeAlias = (
    "Graph | sympy.Basic | sympy.MatrixBase | float | Callable[..., object] "
    "| Sequence[Traceable] | Mapping[str, Traceable]"
)
"""What `symad.trace` makes a graph of."""

Wrt: TypeAlias = "sympy.Basic | sympy.MatrixBase | str | int | Sequence[Wrt] | Mapping[str, Wrt]"
"""An input, several, or a structure of them: by its symbol, its name, or its position."""

Inputs: TypeAlias = "sympy.Basic | sympy.MatrixBase | Sequence[object] | Mapping[str, object]"
"""The arguments in calling order: symbols, shapes, example arrays, and structures of them."""
