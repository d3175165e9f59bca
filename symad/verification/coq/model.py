"""What a certificate of `symad.check` is about."""

from __future__ import annotations

from dataclasses import dataclass

import sympy

from symad.core.graph import Graph
from symad.core.signatures import Traceable


@dataclass(frozen=True)
class Model:
    """The object as it was given, its graph, and the inputs by which it is differentiated."""

    given: Traceable
    graph: Graph
    wrt: tuple[sympy.Basic, ...]

    def __reduce__(self) -> tuple[type[Model], tuple[object, ...]]:
        """A Python function may not travel to another process; its graph says what was given."""
        given = self.graph if callable(self.given) else self.given
        return Model, (given, self.graph, self.wrt)
