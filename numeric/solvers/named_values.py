"""Values given by name: for arguments, which may be objects of arrays, or for the inputs inside them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np
import sympy

from symad.core.arguments import Argument, argument_of, leaves_of
from symad.core.graph import Graph
from symad.core.signatures import ByInput, Inputs, Traceable, Tree
from symad.core.structures import Structure
from symad.errors import EvaluationError
from symad.tracing.wrt import WrtEntry, name_of, others

Start: TypeAlias = "str | tuple[sympy.Basic | str, ...]"
"""The form of a start: the names of the unknowns for a dict, "one" value, or a "sequence" of values."""


@dataclass(frozen=True)
class Named:
    """The arguments of a graph, and the inputs inside them, by name."""

    graph: Graph
    entries: Mapping[str, WrtEntry]

    @staticmethod
    def of(graph: Graph) -> Named:
        """The names of a graph."""
        inputs = {
            str(s): WrtEntry(argument_of(s), (n,))
            for s, n in zip(graph.inputs, graph.input_nodes, strict=True)
        }
        return Named(graph, inputs | {e.argument.name: e for e in others(graph, ())})

    def structure(self, name: str) -> Structure:
        """The structure of an argument; None for an input."""
        return self.entries[name].argument.structure if name in self.entries else None

    def values(
        self, pairs: Sequence[tuple[str, Tree]], is_whole: Callable[[Tree], bool] | None = None
    ) -> dict[str, Any]:
        """The values of inputs, from the values of arguments; values with an unknown name stay as they are.

        A value for which ``is_whole`` is true belongs to every input of its argument.
        """
        found: dict[str, Any] = {}
        for name, value in pairs:
            entry = self.entries.get(name)
            if entry is None:
                found[name] = value
                continue
            leaves = leaves_of(entry.argument.structure, value, name, is_whole)
            found |= dict(zip(map(name_of, entry.nodes), leaves, strict=True))
        return found

    def start(self, x0: Tree, given: Mapping[str, Tree]) -> tuple[Start, list[tuple[str, Tree]]]:
        """The form of a start, and its values by name."""
        taken = [e.nodes[0] for name, e in self.entries.items() if name in given and len(e.nodes) == 1]
        free = [e.argument for e in others(self.graph, taken)]
        whole = len(free) == 1 and free[0].structure is not None
        if isinstance(x0, Mapping) and not (whole and any(str(k) not in self.entries for k in x0)):
            return tuple(x0), [(str(k), v) for k, v in x0.items()]
        if len(free) == 1 and not self._is_listed(free[0], x0):
            return "one", [(free[0].name, x0)]
        values = list(x0) if isinstance(x0, (Sequence, np.ndarray)) else [x0]
        if len(values) != len(free):
            names = ", ".join(a.name for a in free)
            raise EvaluationError(
                f"{self.graph.name} has the unknowns {names}, but x0 has {len(values)} entries"
            )
        return "sequence", [(a.name, v) for a, v in zip(free, values, strict=True)]

    def _is_listed(self, argument: Argument, x0: Tree) -> bool:
        """Whether a start is the list of the one value of a scalar, as SciPy's callers give it."""
        scalar = argument.structure is None and not self.entries[argument.name].nodes[0].shape
        return scalar and isinstance(x0, (list, tuple, np.ndarray)) and np.shape(x0) == (1,)


def examples(f: Traceable, x0: Tree, data: ByInput | None) -> Inputs | None:
    """The values of the arguments of a Python function, whose shapes its inputs have; None for other forms.

    Raises:
        EvaluationError: a sequence x0 that has not one entry for each unknown.
    """
    if not isinstance(f, FunctionType):
        return None
    given = {str(k): v for k, v in (data or {}).items()}
    required = [k for k, p in inspect.signature(f).parameters.items() if p.default is p.empty]
    free = [k for k in required if k not in given]
    if isinstance(x0, Mapping) and (len(free) != 1 or free[0] in x0):
        return {**{str(k): _example(v) for k, v in x0.items()}, **given}
    values = list(x0) if len(free) != 1 and isinstance(x0, (list, tuple, np.ndarray)) else [x0]
    if len(values) != len(free):
        unknowns = ", ".join(free)
        raise EvaluationError(f"{f.__name__} has the unknowns {unknowns}, but x0 has {len(values)} entries")
    return {**{k: _example(v) for k, v in zip(free, values, strict=True)}, **given}


def _example(value: Tree) -> Any:
    """A value; a list of numbers is an array."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):  # an object of arrays
        return value
