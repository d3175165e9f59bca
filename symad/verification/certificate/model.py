"""The model that a certificate of `symad.check` is about."""

from __future__ import annotations

from dataclasses import dataclass

import sympy

from symad.core.graph import Graph
from symad.core.signatures import Traceable


@dataclass(frozen=True)
class CertifiedModel:
    """The user's object, its graph, and the inputs by which it is differentiated."""

    given: Traceable
    graph: Graph
    wrt: tuple[sympy.Basic, ...]

    def __reduce__(self) -> tuple[type[CertifiedModel], tuple[object, ...]]:
        """Pickles the graph in place of the user's object: a Python function may not be picklable."""
        given = self.graph if callable(self.given) else self.given
        return CertifiedModel, (given, self.graph, self.wrt)
