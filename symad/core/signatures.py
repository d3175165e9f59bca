"""The types of arguments of public functions: functions to differentiate, selected and declared inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import sympy

from symad.core.arrays import ArrayLike
from symad.core.graph import Graph

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Traceable: TypeAlias = (
    "Graph | sympy.Basic | sympy.MatrixBase | float | Callable[..., object] "
    "| Sequence[Traceable] | Mapping[str, Traceable]"
)
"""The objects that `symad.trace` accepts."""

Wrt: TypeAlias = "sympy.Basic | sympy.MatrixBase | str | int | Sequence[Wrt] | Mapping[str, Wrt]"
"""An input, several, or a structure of them: by its symbol, its name, or its position."""

Inputs: TypeAlias = "sympy.Basic | sympy.MatrixBase | Sequence[object] | Mapping[str, object]"
"""The arguments in calling order: symbols, shapes, example arrays, and structures of them."""

Tree: TypeAlias = "ArrayLike | Mapping[str, Tree] | Sequence[Tree] | DataclassInstance"
"""Arrays in a structure: dicts, lists, tuples and dataclasses of them."""

ByInput: TypeAlias = "Mapping[sympy.Basic | str, Tree]"
"""Values of inputs, by their symbols or names."""

Over: TypeAlias = "Mapping[sympy.Basic | str, int]"
"""For each input that data are cut along, by its symbol or name, the axis."""

Memory: TypeAlias = "str | int | tuple[str, int]"
"""The states of a loop that reverse mode keeps: "all", "sqrt", ..., every k-th, or (policy, parameter)."""

Where: TypeAlias = "sympy.Basic | Callable[..., ArrayLike] | bool | None"
"""A condition on the inputs of a graph: SymPy's, or a function of them; None for everywhere."""

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | float | bool | None"
"""The contents of a JSON file."""
