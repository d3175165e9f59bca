"""What the public functions take, as types: functions to differentiate, inputs chosen, arguments declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import sympy

from symad.core.arrays import ArrayLike
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

Memory: TypeAlias = "str | int | tuple[str, int]"
"""What reverse mode keeps of a loop: "all", "sqrt", ..., every k-th state, or a policy with its number."""

Where: TypeAlias = "sympy.Basic | Callable[..., ArrayLike] | bool | None"
"""A condition on the inputs of a graph: SymPy's, or a function of them; None for everywhere."""

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | float | None"
"""What a file in JSON holds."""
